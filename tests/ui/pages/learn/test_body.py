"""What the Learn page decides: what a lesson says, how an answer is met, and what the address and files keep."""

import html
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, quote_plus

import pytest

from attention_viz.edits.edit import Edit
from attention_viz.lesson import EXERCISES, LESSONS, Scene, answer_sheet, lesson_text
from attention_viz.lesson.exercise import Cells, OptionAnswer
from attention_viz.lesson.formulas import words_and_symbols
from attention_viz.lesson.words import in_words
from attention_viz.models.model import AttentionModel
from attention_viz.serving.models import facts_of
from attention_viz.serving.run import Request
from attention_viz.serving.runs import run_request
from attention_viz.serving.settings import Settings
from attention_viz.trace.kind import MEDIA
from attention_viz.trace.trace import Trace
from attention_viz.ui.front import teacher
from tests.ui.screens import Screen

TEXT = "The bank of the river was flooded"


def run(model: str, text: str, *, edits: Sequence[Edit] = (), beside: str | None = None, picture: str = "") -> Trace:
    asked = Request(model, shown=text) if facts_of(model).reads in MEDIA else Request(model, text, shown=picture)
    return run_request(asked, beside=beside, edits=edits).trace


SCENE = Scene(TEXT, run)


@pytest.fixture(scope="module")
def screen() -> Screen:
    """One reader, who looks at one lesson after the other."""
    return Screen().open(f"/learn?text={quote_plus(TEXT)}")


def lesson(screen: Screen, address: str) -> Screen:
    text = "" if "text=" in address else f"&text={quote_plus(TEXT)}"
    return screen.back_to(f"/learn?{address}{text}")


def said(screen: Screen) -> str:
    """Everything on the page as plain text, on one line."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>|\*\*", "", screen.words)).split())


def test_a_lesson_is_told_in_the_numbers_of_the_run(screen: Screen, minilm: AttentionModel) -> None:
    weight = float(minilm.trace(TEXT).weights(0, 4)[2, 5])
    assert f"“bank” looks at “river”: {weight:.2f}" in said(lesson(screen, "lesson=why&guess=shown"))
    screen.pick("Query word", "7")
    # The same head, and the word is the query on every other page.
    row = minilm.trace(TEXT).weights(0, 4)[7]
    among = "" if row[5] == row.max() else "of the words that aren’t next to it "
    assert f"0, head 4, {among}“flooded” looks most at “river”: {float(row[5]):.2f}" in said(screen)
    assert (screen.address["query"], screen.address["key"]) == ("7", "5")


def test_a_head_and_a_word_from_another_page_are_the_lessons(screen: Screen, minilm: AttentionModel) -> None:
    lesson(screen, "lesson=why&guess=shown&layer=5&head=6&query=2&key=7")
    row = minilm.trace(TEXT).weights(5, 6)[2]
    among = "" if row[7] == row.max() else "of the words that aren’t next to it "
    assert f"5, head 6, {among}“bank” looks most at “flooded”: {float(row[7]):.2f}" in said(screen)
    assert "the app’s other pages show, too" in said(screen)
    lesson(screen, "lesson=softmax&guess=shown&layer=5&head=6&query=7&key=2&word=1")
    assert (screen.address["layer"], screen.address["head"], screen.address["query"]) == ("5", "6", "2")
    lesson(screen, "lesson=why&guess=shown&model=SmolLM2-135M-Instruct&layer=20&head=3")
    assert "the app’s other pages show, too" not in said(screen)  # another model: the lesson's own head


def test_looking_further_opens_on_the_lessons_own_head(screen: Screen) -> None:
    lesson(screen, "lesson=jobs&guess=shown&layer=2&head=1")
    # Below the menu's own links.
    further = {one.label: parse_qs(one.query_string) for one in screen.all("page_link")[-2:]}
    assert further.keys() == {"Explore", "Heads"}
    assert all(address["model"] == ["SmolLM2-135M-Instruct"] for address in further.values())
    told = re.search(r"in layer (\d+), head (\d+) of SmolLM2", said(screen))
    assert told is not None
    assert all((address["layer"], address["head"]) == ([told[1]], [told[2]]) for address in further.values())
    lesson(screen, "lesson=plain&guess=shown&layer=2&head=1")
    own = parse_qs(screen.all("page_link")[-1].query_string)
    assert {"layer": ["2"], "head": ["1"]}.items() <= own.items()


def asked(screen: Screen) -> dict[str, Any]:
    """What the page hands to the bars."""
    (found,) = [one.proto.json for one in screen.all("bidi_component") if one.proto.id.endswith("-learn-predict")]
    return json.loads(found)


# How the line begins that only paper shows.
ON_PAPER = ("Sentence\\:", "Image\\:", "Audio\\:")


def before_a_move(screen: Screen) -> list[str]:
    """What stands beside the list of lessons: title, steps, exercise and buttons; not what only paper shows."""
    columns: list[list[Any]] = [[*one.get("markdown"), *one.get("caption")] for one in screen.app.columns]
    (texts,) = [one for one in columns if any(str(text.value).startswith(ON_PAPER) for text in one)]
    told = [text.value for text in texts if not str(text.value).startswith(ON_PAPER)]
    return [re.sub(r"\\(.)", r"\1", str(text)) for text in told] + ["← Back", "Next →"]


def test_at_most_sixty_words_stand_before_the_guess_and_nothing_of_the_answer(screen: Screen) -> None:
    for name, one in LESSONS.items():
        lesson(screen, f"lesson={name}")
        question = asked(screen)
        assert question["truth"] is None and question["guess"] is None
        words = " ".join([*before_a_move(screen), question["words"]["show"], question["words"]["skip"]])
        # What introduces the question has a limit of its own.
        for introduction, most in ((one.idea, 50), (one.ask(replace(SCENE, word=None)).premise, 40)):
            # A text that the question is about is as long as it is.
            assert introduction in words and len(re.sub("“[^”]*”", "", introduction).split()) <= most
            words = words.replace(introduction, "")
        assert LESSONS[name].title in words
        assert EXERCISES[one.exercise].label[1:] in words
        assert len(re.findall(r"\w[\w’'-]*", words)) <= 60, words
        assert one.ask(replace(SCENE, word=None)).finding not in words


def test_a_guess_stays_beside_what_is_true_until_something_else_is_asked(screen: Screen) -> None:
    ask = LESSONS["why"].ask(SCENE)
    lesson(screen, "lesson=why&guess=0.0.10.0.0.20.0.70.0")
    question = asked(screen)
    assert question["guess"] == "0.0.10.0.0.20.0.70.0"
    assert question["truth"]["written"] == [*ask.written] and question["truth"]["right"] == [5]
    assert ask.finding in said(screen)
    assert "Not quite: “flooded”, 0.16, ranks 2 of 9. The answer is “river”: 0.58." in said(screen)
    # Another word, another row: nothing was guessed of it.
    screen.pick("Query word", "7")
    assert screen.address["guess"] == "shown" and asked(screen)["guess"] is None
    for wrong in ("0.0.10", "50.50.50.0.0.0.0.0.0", "<b>", "5"):
        lesson(screen, f"lesson=why&guess={quote_plus(wrong)}")
        assert asked(screen)["truth"] is None
    lesson(screen, "lesson=heads&guess=3")
    assert "Right. The answer is “8 numbers”." in said(screen)
    # Of another sentence nothing was guessed.
    screen.picker("Sentence").set_value("The cat sat because it was tired.")
    screen.run()
    assert asked(screen)["truth"] is None and "guess" not in screen.address
    # Back leads to the sentence and the guess about it.
    assert "Right. The answer is “8 numbers”." in said(lesson(screen, "lesson=heads&guess=3"))


def test_an_exercise_is_checked_explained_hinted_and_kept_in_the_address(screen: Screen) -> None:
    lesson(screen, "lesson=scores&seed=3&done=why&guess=shown")
    exercise = EXERCISES["score"].make(SCENE, 3)
    screen.picker("Your answer").set_value("no number")
    assert exercise.answer.form in said(screen.press("Check"))
    screen.picker("Your answer").set_value("999")
    assert f"Not yet. {exercise.check('999').words}" in said(screen.press("Check"))
    assert exercise.hints[0] in said(screen.press(f"Hint 1 of {len(exercise.hints)}"))
    assert screen.address["done"] == "why"
    assert exercise.working not in said(screen)
    assert f"Solution: {exercise.solution}. {exercise.working}" in said(screen.press("Solution"))
    screen.picker("Your answer").set_value(exercise.solution)
    assert f"Right. {exercise.working}" in said(screen.press("Check"))
    assert screen.address["done"] == "why.scores"
    listed = {one["title"]: one.get("done", False) for one in screen.channel("learn", "lessons")["lessons"]}
    assert [title for title, done in listed.items() if done] == ["1. Why attention", "5. Scores"]
    assert screen.picker("Next: Softmax →")
    screen.press("New exercise")
    assert screen.address["exercise_seed"] == "4"
    assert EXERCISES["score"].make(SCENE, 4).question in said(screen)
    assert not screen.alerts


def test_a_mask_is_mended_cell_by_cell_and_a_choice_is_made(screen: Screen) -> None:
    lesson(screen, "lesson=masks&seed=2&done=&guess=shown")
    answer = EXERCISES["mask"].make(SCENE, 2).answer
    assert isinstance(answer, Cells)
    lines = [one for one in screen.all("button_group") if "-mask-" in str(one.key)]
    assert len(lines) == len(answer.rows)
    for row, line in enumerate(lines):
        line.set_value(sorted(column for at, column in answer.right if at == row))
    assert "Right." in said(screen.press("Check"))
    assert screen.address["done"] == "masks"
    lesson(screen, "lesson=why&seed=2&guess=shown")
    exercise = EXERCISES["strongest"].make(SCENE, 2)
    assert "Choose or type an answer first." in said(screen.press("Check"))
    answers = screen.picker("Your answer")
    answers.set_value(next(at for at, option in enumerate(answers.options) if exercise.solution in option))
    assert "Right." in said(screen.press("Check"))


def test_the_notation_holds_through_the_course(screen: Screen) -> None:
    def formula() -> str:
        return "\n".join(re.findall(r"\$[^$]+\$", screen.words))

    rows = formula() if lesson(screen, "lesson=scores&notation=rows&guess=shown") else ""
    assert formula() == rows != ""
    columns = formula() if lesson(screen, "lesson=scores&notation=columns&guess=shown") else ""
    assert columns != rows
    screen.press("Next →")
    assert (screen.address["notation"], screen.address["lesson"]) == ("columns", "softmax")


def test_a_room_is_asked_each_lessons_question_and_exercise_and_has_the_answers_on_a_key(screen: Screen) -> None:
    # Made only once somebody asks: some exercises run a model a dozen times.
    assert not [one for one in lesson(screen, "lesson=why").all("bidi_component") if "present" in one.proto.id]
    assert lesson(screen, "lesson=why&present=on").address["slide"] == "1.1"
    assert "present" not in screen.address
    for place, (name, one) in enumerate(LESSONS.items(), 1):
        lesson(screen, f"lesson={name}&slide=2.1")
        asks, *between, exercise = screen.slides
        ask, made = one.ask(SCENE), EXERCISES[one.exercise].make(SCENE, 0)
        measured = name in ("cost", "practice")
        assert asks["ask"][0][0] == ask.question and (measured or asks["tell"][0][0] == ask.finding)
        shown = asks["picture"]
        assert shown["tokens"][shown["key"]] == in_words(ask.options[min(ask.right)], 34)
        asked = [text for text, latex in words_and_symbols(made.question) if not latex]
        assert [text for text, role in exercise["ask"] if role != "formula"] == asked
        told = [text for text, _ in exercise["tell"]]
        # Wrong cells of a mask are marked in its table, not listed.
        answer = ["The marked cells are wrong"] if name == "masks" else ["Answer: ", made.solution]
        assert told == [made.question, *answer, made.working]
        figure = [slide for slide in between if slide["figure"] is not None]
        assert len(figure) == (not ask.complete)
        if not measured:
            says = one.show(SCENE).says
            assert all(slide["tell"] == [[says, ""]] for slide in figure)
        blocks = lesson_text(name, one.show(SCENE).facts).split("\n\n")
        formulas = [block for block in blocks if block.startswith("$$")]
        assert sum(len(slide["formulas"]) for slide in between) <= len(formulas)
        assert bool(formulas) == any(slide["formulas"] for slide in between)
        assert all(formula.startswith("<math ") for slide in between for formula in slide["formulas"])
        assert len(exercise["given"]) == len(answer_sheet(SCENE, [0], [one.exercise])[0].given)
        assert (exercise["picture"] is not None) == isinstance(made.answer, OptionAnswer)
        assert all(slide["source"].startswith(f"{place}. {one.title}") for slide in screen.slides)
        # What is made from a picture or a sound names no sentence.
        of_text = name not in ("picture", "sound", "where")
        assert all((f"“{TEXT}”" in slide["source"]) == of_text for slide in screen.slides)
        assert f"{one.made_from(SCENE)}, seed 0" in said(screen)
        assert not screen.alerts
    assert screen.address["slide"] == "2.1"


def test_what_an_address_cant_have_and_strange_texts_are_answered_in_words(screen: Screen) -> None:
    lesson(screen, "lesson=magic&notation=x&done=magic&choice=99&seed=-1&guess=shown")
    for part in ("lesson “magic”", "choice “99”", "exercise_seed “-1”"):
        assert any(f"The URL asks for {part}" in one for one in screen.warnings)
    assert "1. Why attention" in said(screen)
    assert "The box has no word" in said(lesson(screen, "lesson=scores&text="))
    lesson(screen, f"lesson=scores&text={quote_plus('<b>bold</b> & $x$ :smile: ' * 9)}")
    assert "The course reads the first 24 words" in said(screen)
    assert "<b>" not in "".join(screen.written)
    assert "5. Scores" in said(screen)


def test_a_teacher_has_the_answers_and_a_link_without_the_key(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teacher, "SETTINGS", Settings(teacher="correct horse"))
    lesson(screen, f"lesson=heads&seed=7&answers={teacher.answers_key()}&done=why&student=3")
    told = said(screen)
    kinds = [one.exercise for one in LESSONS.values() if one.exercise not in ("matters", "head")]
    for solved in answer_sheet(SCENE, [7], kinds):
        assert solved.question in told
        assert f"Answer: {solved.solution}" in told
        assert solved.working in told
    assert "A picture is words, too. It uses a bundled picture instead of the sentence." in told
    (link,) = [one.value for one in screen.all("code")]
    assert {"lesson=heads", "exercise_seed=7"} <= set(link.partition("?")[2].split("&"))
    assert not [name for name in ("done", "student", "answers") if f"{name}=" in link]


@pytest.mark.parametrize("key", ["on", "1", "correct horse", "0123456789abcdef", "%00", "ü"])
def test_whoever_has_no_key_sees_the_lesson_and_a_notice(
    screen: Screen, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    for setting in ("", "correct horse"):
        monkeypatch.setattr(teacher, "SETTINGS", Settings(teacher=setting))
        lesson(screen, f"lesson=scores&seed=7&answers={key}&guess=shown")
        told = said(screen)
        assert "Only the teacher’s link opens the answer sheet." in told
        assert "Answer sheet" not in told and "5. Scores" in told
        assert EXERCISES["score"].make(SCENE, 7).working not in told
    assert not [one for one in screen.all("button") if one.label == "Answer sheet"]


def notes(screen: Screen) -> dict[str, Any]:
    """What the page hands to the browser's record."""
    return screen.channel("learn", "noting")


def test_the_browser_gets_every_checked_answer_hint_and_shown_solution() -> None:
    screen = Screen().open(f"/learn?lesson=scores&exercise_seed=3&guess=shown&text={quote_plus(TEXT)}")
    assert notes(screen)["notes"] == [] and notes(screen)["course"] == {"lessons": [], "student": 0}
    exercise = EXERCISES["score"].make(SCENE, 3)
    for answer in ("no number", "999"):
        screen.picker("Your answer").set_value(answer)
        screen.press("Check")
    screen.press(f"Hint 1 of {len(exercise.hints)}")
    screen.press("Solution")
    screen.picker("Your answer").set_value(exercise.solution)
    screen.press("Check")
    posed = {"lesson": "scores", "text": TEXT, "seed": 3}
    assert notes(screen)["notes"] == [
        {"number": 1, **posed, "answer": "999", "right": False},
        {"number": 2, **posed, "hints": 1},
        {"number": 3, **posed, "solution": True},
        {"number": 4, **posed, "answer": exercise.solution, "right": True},
    ]


def test_a_choice_is_noted_by_its_place() -> None:
    screen = Screen().open(f"/learn?lesson=why&exercise_seed=2&guess=shown&text={quote_plus(TEXT)}")
    answer = EXERCISES["strongest"].make(SCENE, 2).answer
    assert isinstance(answer, OptionAnswer)
    screen.picker("Your answer").set_value(min(answer.right))
    screen.press("Check")
    assert [(one["answer"], one["right"]) for one in notes(screen)["notes"]] == [(f"#{min(answer.right)}", True)]
    assert screen.address["done"] == "why"


def test_a_class_opens_its_lessons_in_its_order_and_asks_once_for_a_number() -> None:
    screen = Screen().open(f"/learn?lessons=softmax.scores&student=0&text={quote_plus(TEXT)}")
    assert "Which number did your teacher give you?" in said(screen)
    screen.picker("Your number (1 to 99)").set_value(7)
    screen.press("Start")
    assert (screen.address["student"], screen.address["exercise_seed"]) == ("7", "700")
    assert screen.address["lesson"] == "softmax"
    _, *listed, _ = (one["title"] for one in screen.channel("learn", "lessons")["lessons"])
    assert listed == ["1. Softmax", "2. Scores"]
    screen.press("Next →")
    assert screen.address["lesson"] == "scores" and screen.picker("Next →").disabled
    # A student's link names the number only, and another exercise stays within the student's seeds.
    screen = Screen().open(f"/learn?lessons=scores&student=7&guess=shown&text={quote_plus(TEXT)}")
    assert screen.address["exercise_seed"] == "700"
    assert EXERCISES["score"].make(SCENE, 700).question in said(screen)
    screen.press("New exercise")
    assert screen.address["exercise_seed"] == "701"
    assert notes(screen)["course"] == {"lessons": ["scores"], "student": 7}
    again = Screen().open(f"/learn?lessons=scores&student=7&exercise_seed=799&guess=shown&text={quote_plus(TEXT)}")
    assert again.press("New exercise").address["exercise_seed"] == "700"


def test_what_is_asked_about_is_seen_or_heard_before_the_guess(screen: Screen) -> None:
    lesson(screen, "lesson=picture")
    before = asked(screen)["opening"]["image"]
    assert before.startswith("data:image/png") and "Press the place in the image" in said(screen)
    # The answer lies over the picture itself.
    lesson(screen, "lesson=picture&guess=shown")
    question = asked(screen)
    assert question["truth"]["opening"]["image"] not in (before, "") and "image" not in question["opening"]
    for guess in ("", "&guess=shown"):
        assert len(lesson(screen, f"lesson=sound{guess}").all("audio")) == 1
    assert not lesson(screen, "lesson=why").all("image", "audio")


def test_a_lesson_is_saved_as_a_handout_and_a_worksheet_in_the_language_of_the_page(screen: Screen) -> None:
    lesson(screen, "lesson=scores&seed=3&guess=shown&lang=en")
    exercise = EXERCISES["score"].make(SCENE, 3)
    handout, worksheet = (screen.download(f"{kind} (HTML)").decode() for kind in ("Handout", "Worksheet"))
    for page in (handout, worksheet):
        assert html.escape(exercise.question.partition("“")[0]) in page
        assert TEXT in page and exercise.working not in page
    assert "Plotly.newPlot" in handout and "Plotly.newPlot" not in worksheet
    lesson(screen, "lesson=scores&seed=3&guess=shown&lang=de")
    assert '<html lang="de">' in screen.download("Arbeitsblatt (HTML)").decode()
    assert not screen.alerts
