"""The page's own words, in the current language."""

from attention_viz.lesson.translation import translate

__all__ = ["page_words"]


def page_words() -> dict[str, str]:
    """Return the words by name; {count} and the like stay, for the browser to fill in."""
    return {**_around(), **_lesson(), **_exercise()}


def _around() -> dict[str, str]:
    return {
        "course": translate("The attention course"),
        "skip": translate("Skip to the lesson"),
        "lessons": translate("Lessons"),
        "solved": translate("solved"),
        "text": translate("Sentence"),
        "progress": translate("Progress"),
        "save": translate("Save progress"),
        "open": translate("Open progress"),
        "anew": translate("Start anew"),
        "sure": translate("Forget every solved exercise in this browser?"),
        "noProgress": translate("This file isn’t a progress file. Open one from “Save progress”."),
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
        "howShares": translate("Drag the bars, or click the line that you think gets most."),
        "howOne": translate("Click your guess."),
        "howPicture": translate("Click the place in the image."),
        "glossary": translate("Glossary"),
    }


def _exercise() -> dict[str, str]:
    return {
        "exercise": translate("Exercise"),
        "yourAnswer": translate("Your answer"),
        "number": translate("A number, such as 0.58 or 1/3"),
        "check": translate("Check"),
        "solution": translate("Solution"),
        "another": translate("New exercise"),
        "hint": translate("Hint {number} of {count}", number="{number}", count="{count}"),
        "hintName": translate("Hint"),
        "noHints": translate("No more hints"),
        "right": translate("Right."),
        "wrong": translate("Not yet."),
        "nothing": translate("Choose or type an answer first."),
    }
