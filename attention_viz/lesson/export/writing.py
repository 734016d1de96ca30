"""Write the course into a folder: one page, its script and style, and a data file per lesson and text."""

import html
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from attention_viz import __version__
from attention_viz.errors import AttentionVizError
from attention_viz.explorer.source import course_page_source
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.lesson.course import EXERCISES, LESSONS, check_lessons
from attention_viz.lesson.export.packed import packed, script_call
from attention_viz.lesson.export.picture import asked_image
from attention_viz.lesson.export.states import lesson_states
from attention_viz.lesson.export.tasks import exercise_data
from attention_viz.lesson.export.words import keeping_words, page_words
from attention_viz.lesson.lesson import Ask, Lesson
from attention_viz.lesson.quiz import PARTS, quiz_data
from attention_viz.lesson.render import TERMS
from attention_viz.lesson.scene import FEWEST, LONGEST, RunText, Scene
from attention_viz.lesson.translation import current_language, translate
from attention_viz.trace.files.whole_file import write_whole
from attention_viz.trace.kind import InputKind
from attention_viz.trace.splitting import first_words, split_words
from attention_viz.views.export.browser_script import PLOTLY_SCRIPT

__all__ = ["Written", "write_course"]

# The most states of a lesson with one text: 30 layers with each of ten words, or 6 settings with each of 24 and more.
MOST_STATES = 300
# The most letters of a text that are looked at.
_LETTERS = 1500
_FUNCTION = "attentionCourse"
# The page comes last: until then an older course stays whole, and a broken-off one isn't taken for one.
_FILES = (PLOTLY_SCRIPT.name, "course.css", "course.js", "index.js", "index.html")
_PAGE = """<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="stylesheet" href="course.css">
</head>
<body>
<a id="skip" class="course-skip" href="#lesson">{skip}</a>
<header class="course-top"><span class="course-name">{title}</span><div id="top"></div></header>
<div class="course-page">
<div id="lessons" class="course-list"><div class="av-explorer av-course"></div></div>
<main id="lesson" tabindex="-1"><noscript>{no_script}</noscript></main>
</div>
<div id="news" class="av-live" role="status"></div>
<script src="course.js"></script>
</body>
</html>
"""
# Nothing is asked of another host; "file:" is for a page from a disk. Plotly writes styles of its own.
_OWN = "'self' file:"
_POLICY = "; ".join(
    (
        "default-src 'none'",
        f"script-src {_OWN}",
        f"style-src {_OWN} 'unsafe-inline'",
        f"img-src {_OWN} data: blob:",
        f"media-src {_OWN}",
    )
)


@dataclass(frozen=True)
class Written:
    """The written course: its size in bytes, and a sentence for each missing part."""

    size: int
    lacking: tuple[str, ...]


def write_course(
    out: Path,
    texts: Sequence[str],
    run: RunText,
    *,
    lessons: Sequence[str] = tuple(LESSONS),
    seeds: Sequence[int] = range(5),
    notation: str = "rows",
    progress: Callable[[int, int, str], object] = lambda done, of, name: None,
) -> Written:
    """Write the course in the current language to a folder, whose other files stay.

    Args:
        run: runs a text through a model.
        lessons: names of `LESSONS`.
        seeds: of the exercises, one exercise each.
        progress: called before each lesson of a text, with how many are done, of how many, and its name.

    Raises:
        AttentionVizError: a text has fewer than two words, or a lesson doesn't exist.
        OSError: the folder can't be written.
    """
    lacking = list[str]()
    read = [_readable(text, lacking) for text in texts]
    check_lessons(lessons)
    out.mkdir(parents=True, exist_ok=True)
    (out / "data").mkdir(exist_ok=True)
    files = dict[str, list[str]]()
    for name in lessons:
        for place, text in enumerate(read):
            known = files.setdefault(name, [])
            progress(len(files) * len(read) - len(read) + place, len(lessons) * len(read), name)
            if LESSONS[name].sample is not None and known:
                known.append(known[0])
                continue
            data = _lesson(out, name, Scene(text, run, notation=notation), seeds, lacking)
            file = f"data/{name}.js" if LESSONS[name].sample is not None else f"data/{name}-{place + 1}.js"
            write_whole(out / file, script_call(_FUNCTION, file, packed(data)).encode())
            known.append(file)
    _write_page(out, read, files)
    return Written(_size(out, files), tuple(dict.fromkeys(lacking)))


def _size(out: Path, files: Mapping[str, list[str]]) -> int:
    ours = {*_FILES, *(file for some in files.values() for file in some)}
    sounds = {f"data/{sample.file}" for sample in SAMPLES.values() if sample.kind is InputKind.SOUND}
    return sum((out / file).stat().st_size for file in ours | sounds if (out / file).exists())


def _readable(text: str, lacking: list[str]) -> str:
    """Return a text as the course reads it: its first words, if it is long."""
    short = " ".join(text[:_LETTERS].split())
    words = split_words(short)
    if len(words) < FEWEST:
        found = "no word" if not words else "only one word"
        raise AttentionVizError(f"the text {text[:40]!r} has {found}; give one of two words or more")
    if len(words) <= LONGEST and len(text) <= _LETTERS:
        return short
    begin = first_words(short, LONGEST)
    lacking.append(f"a text was cut after {LONGEST} words and signs: “{begin}”")
    return begin


def _lesson(out: Path, name: str, scene: Scene, seeds: Sequence[int], lacking: list[str]) -> dict[str, object]:
    lesson = LESSONS[name]
    try:
        ask = lesson.ask(scene)
        found = lesson_states(name, lesson, scene, ask, MOST_STATES)
    except AttentionVizError as error:
        lacking.append(f"lesson {name}: {error}")
        return {"missing": str(error)}
    if found.left_out:
        lacking.append(f"lesson {name}: {found.left_out} of its settings with “{scene.text}”, beyond {MOST_STATES}")
    exercises, why = list[dict[str, object]](), ""
    try:
        exercises = [exercise_data(EXERCISES[lesson.exercise].make(scene, seed), seed) for seed in seeds]
    except AttentionVizError as error:
        why = str(error)
        lacking.append(f"the exercise of lesson {name}: {error}")
    return {
        "question": found.question,
        "states": found.states,
        "control": {
            "label": translate(lesson.control.label),
            "ordered": lesson.control.ordered,
            "words": lesson.control.words,
        },
        **_sample(out, lesson, scene, ask),
        "madeFrom": lesson.made_from(scene),
        "exercises": exercises,
        "noExercise": why,
    }


def _sample(out: Path, lesson: Lesson, scene: Scene, ask: Ask) -> dict[str, str]:
    """Return the image or sound that a lesson asks about; a sound is a file beside the page."""
    if lesson.sample is None or ask.opening is not None:
        return {"image": "", "sound": "", "shows": ""}
    sample = SAMPLES[lesson.sample(scene)]
    if sample.kind is InputKind.SOUND:
        shutil.copyfile(sample.path, out / "data" / sample.file)
        return {"image": "", "sound": f"data/{sample.file}", "shows": translate(sample.shows)}
    return {"image": asked_image(ask), "sound": "", "shows": translate(sample.shows)}


def _write_page(out: Path, texts: Sequence[str], files: Mapping[str, list[str]]) -> None:
    words = page_words()
    lessons = [
        {
            "name": name,
            "title": f"{place}. {translate(LESSONS[name].title)}",
            "minutes": LESSONS[name].minutes,
            "idea": translate(LESSONS[name].idea) if LESSONS[name].idea else "",
            "exercise": translate(EXERCISES[LESSONS[name].exercise].label),
            "ownText": LESSONS[name].sample is not None,
            "files": files[name],
        }
        for place, name in enumerate(files, 1)
    ]
    terms = [[translate(term), translate(meaning)] for term, meaning in TERMS.items()]
    index = {"language": current_language(), "version": __version__, "texts": list(texts), "lessons": lessons}
    index |= {"tests": [quiz_data(part) for part in PARTS], "terms": terms, "words": words, "keeping": keeping_words()}
    page = _PAGE.format(
        language=current_language(),
        policy=_POLICY,
        title=html.escape(words["course"]),
        skip=html.escape(words["skip"]),
        no_script=html.escape(words["noScript"]),
    )
    style, script = course_page_source()
    index_script = script_call(_FUNCTION, "index.js", packed(index))
    contents = (PLOTLY_SCRIPT.read_bytes(), style.encode(), script.encode(), index_script.encode(), page.encode())
    for file, content in zip(_FILES, contents, strict=True):
        write_whole(out / file, content)
