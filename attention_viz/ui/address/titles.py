"""A page's title and description, known before anything has run."""

import keyword

from attention_viz.serving import permissions
from attention_viz.serving.uploads import shows_of
from attention_viz.sources import CATALOGUE
from attention_viz.trace.kind import InputKind
from attention_viz.trace.spelling import visible
from attention_viz.ui.address.state import State

APP = "attention_viz"
# As much of a text as a browser's tab or a link's preview shows.
_LONGEST = 80

# What attention is between, one and several, if that isn't tokens.
_UNITS = {InputKind.PICTURE: ("patch", "patches"), InputKind.SOUND: ("frame", "frames")}

# By the page's name in the URL: its label, and what it shows of {text} in {model}, of which each {unit} attends.
_PAGES = {
    "": (
        "Explore",
        "See which {units} each {unit} of {text} attends to in {model}, head by head, in exact weights.",
    ),
    "steps": ("Step by step", "Follow one attention weight of {text} in {model} from the vectors to the output."),
    "masks": ("Masks", "Block {units} of {text} and see how the attention weights and the output of {model} change."),
    "heads": ("Heads", "See what each head of {model} does with {text}, and what changes without it."),
    "cross": ("Cross-attention", "See which input each output word of {model} attends to, for {text}."),
    "compare": ("Compare", "Compare the attention of {model} in {text} with that of another text, model or edit."),
    "why": ("Why", "See which words and earlier heads of {model} make an attention score or a next word of {text}."),
    "learn": ("Learn", "Learn attention from words to whole models, with the real numbers of {text}."),
    "class": ("Class", "See which exercises of the course a class is stuck on."),
}


def label(page: str) -> str:
    """Return a page's label by its name in the URL; an unknown one is Explore's."""
    return _PAGES.get(page, _PAGES[""])[0]


def labels() -> dict[str, str]:
    """Return each page's label by its name in the URL, in the menu's order."""
    return {page: label for page, (label, _) in _PAGES.items()}


def file_of(page: str) -> str:
    """Return a page's file by its name in the URL."""
    return f"pages/{page}.py" if page else "app.py"


def folder_of(page: str) -> str:
    """Return a page's folder in `ui/pages`; Python's own words can't be imported, so they end in an underscore."""
    return f"{page}_" if keyword.iskeyword(page) else page


def title(page: str, state: State) -> str:
    """Return a page's title, such as "The bank of the river · Explore · attention_viz"."""
    return " · ".join((_thing(state), label(page), APP))


def description(page: str, state: State) -> str:
    """Describe what a page shows, in a sentence."""
    named = _thing(state)
    text = f"“{named}”" if named == _text(state) else named
    entry = CATALOGUE.get(state.model)
    unit, units = ("token", "tokens") if entry is None else _UNITS.get(entry.reads, ("token", "tokens"))
    sentence = _PAGES.get(page, _PAGES[""])[1]
    return sentence.format(text=text, model=permissions.display_name(state.model), unit=unit, units=units)


def _thing(state: State) -> str:
    """Name the text, image or audio, in one short line."""
    entry = CATALOGUE.get(state.model)
    if entry is None or entry.reads.has_text:
        return _text(state)
    return shows_of(state.shown) or "your own file"


def _text(state: State) -> str:
    words = " ".join(state.text[: 4 * _LONGEST].split())
    short = words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"
    return visible(short).replace("␣", " ") if short else "no text"
