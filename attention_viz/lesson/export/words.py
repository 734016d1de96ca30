"""The page's own words, in the current language."""

from attention_viz.lesson.translation import translate

__all__ = ["keeping_words", "page_words"]


def page_words() -> dict[str, str]:
    """Return the words by name; {count} and the like stay, for the browser to fill in."""
    return {**_around(), **_lesson(), **_exercise()}


def keeping_words() -> dict[str, str]:
    """Return the words of `static/lesson/keeping.js`."""
    return {
        "save": translate("Save progress"),
        "open": translate("Open progress"),
        "anew": translate("Start anew"),
        "sure": translate("Clear all progress in this browser?"),
        "clear": translate("Clear progress"),
        "cancel": translate("Cancel"),
        "count": translate(
            "Exercises in this browser: {tried} tried, {solved} solved.", tried="{tried}", solved="{solved}"
        ),
        "refused": translate("This isn’t a progress file. Open a file from “Save progress”."),
    }


def _around() -> dict[str, str]:
    return {
        "course": translate("The attention course"),
        "skip": translate("Skip to the lesson"),
        "lessons": translate("Lessons"),
        "solved": translate("solved"),
        "text": translate("Sentence"),
        "progress": translate("Progress"),
        "noFile": translate("The file {file} is missing. Copy the course’s whole folder.", file="{file}"),
        "noScript": translate("This course needs JavaScript. Allow it for this page."),
    }


def _lesson() -> dict[str, str]:
    return {
        "back": translate("← Back"),
        "next": translate("Next →"),
        "minutes": translate("{count} minutes", count="{count}"),
        "quoted": translate("Text: “{text}”", text="{text}"),
        "drawn": translate("Random numbers from a seed: they mean nothing."),
        "queryWord": translate("Query word"),
        "predict": translate("Predict"),
        "answer": translate("See the answer"),
        "pressWord": translate("Click a word to choose it."),
        "glossary": translate("Glossary"),
    }


def _exercise() -> dict[str, str]:
    return {
        "exercise": translate("Exercise: {label}", label="{label}"),
        "yourAnswer": translate("Your answer"),
        "number": translate("A number, such as 0.58 or 1/3"),
        "check": translate("Check"),
        "solution": translate("Solution"),
        "another": translate("New exercise"),
        "hint": translate("Hint {number} of {count}", number="{number}", count="{count}"),
        "hintName": translate("Hint {number}.", number="{number}"),
        "solutionIs": translate("Solution: {answer}.", answer="{answer}"),
        "noHints": translate("No more hints"),
        "right": translate("Right."),
        "wrong": translate("Not yet."),
        "nothing": translate("Choose or type an answer first."),
    }
