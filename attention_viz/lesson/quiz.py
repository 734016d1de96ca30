"""A test of learning: ten questions, the same before and after the course."""

from collections.abc import Sequence
from dataclasses import dataclass

from attention_viz.lesson.translation import translate

__all__ = ["PARTS", "QUIZ", "UNKNOWN", "QuizQuestion", "correct", "quiz_data"]

# When the test is taken, by name, with its heading.
PARTS = {"before": "Test before the course", "after": "Test after the course"}
# The answer "I don't know". Every other answer is an option's place from 0, as "#2".
UNKNOWN = "?"


@dataclass(frozen=True)
class QuizQuestion:
    """A question in English with its options, the right one's place, and the reason; `lesson` teaches it."""

    lesson: str
    question: str
    options: tuple[str, ...]
    right: int
    reason: str


QUIZ: tuple[QuizQuestion, ...] = (
    QuizQuestion(
        "scaling",
        "Why are scores divided by √d_k?",
        (
            "So that the weights of each row add up to 1.",
            "Scores of wider vectors spread further, and the softmax would give nearly everything to one key.",
            "So that a long sentence doesn't get larger scores than a short one.",
            "So that no score is negative.",
        ),
        1,
        "A sum of d_k products spreads about as √d_k. Divided by it, scores spread equally at every width.",
    ),
    QuizQuestion(
        "softmax",
        "What do the attention weights of one query add up to?",
        ("1", "the number of tokens", "√d_k", "That depends on the scores."),
        0,
        "The softmax turns the scores of a row into shares, so they add up to 1.",
    ),
    QuizQuestion(
        "masks",
        "Why does a mask set a blocked score to −∞ and not to 0?",
        (
            "With 0, the row would add up to more than 1.",
            "With 0, training would have no gradient.",
            "A score of 0 still gets a share, since e⁰ = 1.",
            "−∞ is faster to compute.",
        ),
        2,
        "The softmax raises e to each score: e⁰ is 1, but e to the power of −∞ is 0.",
    ),
    QuizQuestion(
        "scores",
        "“bank” looks at “river”. Which two vectors give the score?",
        (
            "the key of “bank” and the query of “river”",
            "the values of both",
            "the embeddings of both",
            "the query of “bank” and the key of “river”",
        ),
        3,
        "The word that looks brings its query; each word that can be found has a key.",
    ),
    QuizQuestion(
        "roles",
        "Why does a word have a value besides its key?",
        (
            "The value holds the word's position.",
            "A word can be found by one thing and pass on another.",
            "The value is the key after the softmax.",
            "Two vectors need less memory than one.",
        ),
        1,
        "Keys decide who gets a share; values are mixed. Each has a matrix of its own.",
    ),
    QuizQuestion(
        "softmax",
        "Why a softmax, instead of dividing each score by the sum of its row?",
        (
            "Dividing would take longer.",
            "The sum of a row is always 1 already.",
            "Scores can be negative or add up to 0, and shares can't be negative.",
            "A softmax gives every word the same share.",
        ),
        2,
        "The exponential makes every number positive before the division.",
    ),
    QuizQuestion(
        "heads",
        "What are several heads in a layer good for?",
        (
            "Each has its own matrices, so each can look for something else at the same time.",
            "Each reads its own part of the numbers of a word's vector.",
            "Each works on its own part of the sentence.",
            "They vote, and the majority decides.",
        ),
        0,
        "Every head reads all numbers of all vectors, with queries, keys and values of its own.",
    ),
    QuizQuestion(
        "around",
        "What happens to the output of a head?",
        (
            "It replaces the word's vector.",
            "It is multiplied with the word's vector.",
            "It gives the next word's probabilities directly.",
            "Its projection by W_O is added to the word's vector.",
        ),
        3,
        "Heads and MLPs add to the residual stream and replace nothing.",
    ),
    QuizQuestion(
        "around",
        "What comes after attention in a layer of a transformer?",
        (
            "nothing: the next layer's attention",
            "an MLP, which changes each word's vector by itself",
            "a softmax over the whole vocabulary",
            "the same attention again, for the other half of the heads",
        ),
        1,
        "A layer has two steps: attention between words, then an MLP for each word; both add their output.",
    ),
    QuizQuestion(
        "limits",
        "“bank” gives “river” a weight of 0.58. What does this say about the model's answer?",
        (
            "58 % of the answer comes from “river”.",
            "Without “river”, the answer would be another.",
            "Not enough: the value may be small, or later layers may not use it. Test it by ablating the head.",
            "That the model knows this bank is a river's.",
        ),
        2,
        "A weight is the share of a value in the mixture, and not its effect.",
    ),
)


def quiz_data(part: str) -> dict[str, object]:
    """Return the test for the browser, as JSON values in the current language; the right answers only after the course.

    Args:
        part: one of `PARTS`.
    """
    after = part == "after"
    questions = [
        {
            "question": translate(one.question),
            "options": [translate(option) for option in one.options],
            "lesson": one.lesson,
            **({"right": one.right, "reason": translate(one.reason)} if after else {}),
        }
        for one in QUIZ
    ]
    return {"part": part, "heading": translate(PARTS[part]), "questions": questions, "words": _words()}


def correct(answers: Sequence[str]) -> tuple[bool | None, ...]:
    """Return which of the test's answers are right, question by question; None for one that is missing."""
    found = (*answers[: len(QUIZ)], *[""] * (len(QUIZ) - len(answers)))
    return tuple(None if not answer else answer == f"#{one.right}" for answer, one in zip(found, QUIZ, strict=True))


def _words() -> dict[str, str]:
    return {
        "why": translate(
            "Ten questions, without names or marks. Answer them before the first lesson and after the last, and see "
            "what the course taught you."
        ),
        "unknown": translate("I don't know"),
        "finish": translate("Finish"),
        "left": translate("Questions without an answer: {count}.", count="{count}"),
        "kept": translate("Your answers are in your progress. You see the right ones after the course."),
        "score": translate("{right} of {count} are right.", right="{right}", count="{count}"),
        "earlier": translate("Before the course: {right}.", right="{right}"),
        "right": translate("Right."),
        "wrong": translate("Not right: “{answer}”", answer="{answer}"),
        "see": translate("See the lesson"),
    }
