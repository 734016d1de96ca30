"""Each exercise of a progress file, made again from its lesson, text and seed, and its answers checked again."""

from collections.abc import Callable
from dataclasses import dataclass

from attention_viz.errors import AttentionVizError
from attention_viz.lesson.course import EXERCISES, LESSONS
from attention_viz.lesson.exercise import Cells, Exercise, NumberAnswer, OptionAnswer, written
from attention_viz.lesson.progress.record import Tried
from attention_viz.lesson.scene import FEWEST, LONGEST, RunText, Scene
from attention_viz.trace.splitting import split_words

__all__ = ["Checked", "MakeExercise", "WrongAnswer", "check", "made_again"]

# Makes an exercise from its kind, text and seed.
MakeExercise = Callable[[str, str, int], Exercise]
_OPTION = 60


@dataclass(frozen=True)
class WrongAnswer:
    """A wrong answer, and its likely cause or ""."""

    answer: str
    cause: str


@dataclass(frozen=True)
class Checked:
    """A tried exercise after the check.

    Attributes:
        question: "" without answers, or if the exercise couldn't be made again.
        solved: whether one of the answers is right.
        wrong: the wrong answers before it.
        problem: why nothing could be checked, or "".
    """

    tried: Tried
    question: str = ""
    solved: bool = False
    wrong: tuple[WrongAnswer, ...] = ()
    problem: str = ""

    @property
    def count(self) -> int:
        """The number of answers, up to the right one."""
        return len(self.wrong) + self.solved


def made_again(kind: str, text: str, seed: int, run: RunText) -> Exercise:
    """Make an exercise as the course does; raise `AttentionVizError` for a text that the course wouldn't read."""
    if not EXERCISES[kind].available:
        raise AttentionVizError(f"its model isn't installed: {EXERCISES[kind].needs}")
    if not FEWEST <= (count := len(split_words(text))) <= LONGEST:
        raise AttentionVizError(f"its text has {count} words; the course reads {FEWEST} to {LONGEST}")
    return EXERCISES[kind].make(Scene(text, run), seed)


def check(tried: Tried, make: MakeExercise) -> Checked:
    """Check an exercise's answers; the file's own word for it doesn't count."""
    if tried.lesson not in LESSONS:
        return Checked(tried, problem=f"unknown lesson “{tried.lesson}”")
    if not tried.tries:
        return Checked(tried)
    try:
        exercise = make(LESSONS[tried.lesson].exercise, tried.text, tried.seed)
    except AttentionVizError as error:
        return Checked(tried, problem=str(error))
    wrong = list[WrongAnswer]()
    for answer in tried.tries:
        parsed = exercise.answer.read(answer)
        if parsed is None:
            continue
        if exercise.answer.accepts(parsed):
            return Checked(tried, exercise.question, solved=True, wrong=tuple(wrong))
        wrong.append(WrongAnswer(_shown(exercise, parsed), exercise.slip(parsed)))
    if not wrong:
        return Checked(tried, problem="no answer that the exercise can read")
    return Checked(tried, exercise.question, wrong=tuple(wrong))


def _shown(exercise: Exercise, parsed: object) -> str:
    """Write an answer as the student saw it."""
    match exercise.answer:
        case NumberAnswer() if isinstance(parsed, float | int):
            return written(parsed)
        case OptionAnswer(options=options) if isinstance(parsed, int):
            return options[parsed][:_OPTION]
        case Cells() as cells:
            return cells.quoted(parsed)
        case _:
            return ""
