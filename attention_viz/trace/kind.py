"""The kinds of input and of tokens, with their wording."""

from collections.abc import Sequence
from enum import StrEnum

from attention_viz.errors import (
    AttentionVizError,
    TraceError,
    UnsupportedModel,
    UnusablePicture,
    UnusableSound,
    UnusableText,
    UnusableVideo,
)

__all__ = [
    "CROSSING_STREAMS",
    "MEDIA",
    "MIXER",
    "SLOTS",
    "SLOT_STREAMS",
    "STREAMS",
    "STREAM_KINDS",
    "InputKind",
    "Unit",
    "check_places",
    "check_text",
    "stream_kind",
]

# A grid of patches has at most so many places for each position there is: a model may read a quarter of a picture's.
_EMPTIEST = 16


def _numbered(kinds: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for kind in kinds for name in (kind, *(f"{kind} {number}" for number in range(2, 10))))


# What reads a picture or a sound alone is named after it; what such a tower hands on comes after it. Slots read the
# input in "pooling" and each other in "slots", and what the model gives out reads them in "readout".
STREAM_KINDS = ("picture", "sound", "encoder", "decoder", "cross", "pooling", "slots", "readout")
# A part that attends over other positions has a stream of its own: "picture 2", and so on.
STREAMS = _numbered(STREAM_KINDS)
SLOT_STREAMS = _numbered(("pooling", "slots", "readout"))
# Those whose queries are other positions than their keys.
CROSSING_STREAMS = _numbered(("cross", "pooling", "readout"))
# The stream of layers without a softmax; if a layer has several, the second one's is "mixer 2", and so on.
MIXER = "mixer"


def stream_kind(stream: str) -> str:
    """Return a stream's name without its number."""
    return stream.partition(" ")[0]


class InputKind(StrEnum):
    """A kind of model input; equals its name, which URLs, files and tables use.

    Attributes:
        one: the name with its article.
        plural: the name in the plural.
        does: a verb phrase for a model that reads it.
        handed: the code that passes one.
        error: the error for an unreadable one.
    """

    TEXT = "text", "a text", "texts", "reads text", "a str", UnusableText
    PICTURE = "picture", "an image", "images", "reads images", "av.Picture(path)", UnusablePicture
    SOUND = "sound", "audio", "audio", "reads audio", "av.Sound(path)", UnusableSound
    VIDEO = "video", "a video", "videos", "reads videos", "av.Video(path)", UnusableVideo
    TENSORS = "tensors", "tensors", "tensors", "reads tensors", "tensors by name", UnsupportedModel
    BESIDE = (
        "text beside a picture",
        "a text with an image",
        "texts with images",
        "reads text with images",
        "picture=",
        UnusablePicture,
    )

    one: str
    plural: str
    does: str
    handed: str
    error: type[AttentionVizError]

    def __new__(
        cls, name: str, one: str, plural: str, does: str, handed: str, error: type[AttentionVizError]
    ) -> "InputKind":
        """Set one table row's attributes."""
        kind = str.__new__(cls, name)
        kind._value_ = name
        kind.one, kind.plural, kind.does, kind.handed, kind.error = one, plural, does, handed, error
        return kind

    @property
    def medium(self) -> "InputKind | None":
        """The kind of its files; None for text or tensors alone."""
        return InputKind.PICTURE if self is InputKind.BESIDE else self if self in MEDIA else None

    @property
    def has_text(self) -> bool:
        """Whether a text is read, alone or beside an image."""
        return self in (InputKind.TEXT, InputKind.BESIDE)


# What comes in files of its own, is read in place of a text, and is shown beside the weights. Each has its field in
# `Seen`, `Provenance` and the pages' `State`.
MEDIA = (InputKind.PICTURE, InputKind.SOUND)


class Unit(StrEnum):
    """A token's unit: a word or piece of one, an image patch, an audio frame, or a position that the model adds.

    Attributes:
        token: the name of one if a word may have several pieces.
        tokens: its plural.
        whole: the kind of input they are parts of; None for slots.
        axes: the names of its position's numbers; empty for words.
        short: its name in figures.
    """

    WORD = "word", "words", "token", "tokens", InputKind.TEXT, ()
    PATCH = "patch", "patches", "patch", "patches", InputKind.PICTURE, ("row", "column")
    FRAME = "frame", "frames", "frame", "frames", InputKind.SOUND, ("second",)
    LATENT = "latent", "latents", "latent", "latents", None, ()
    GROUP = "group", "groups", "group", "groups", None, ()
    OBJECT = "object query", "object queries", "object query", "object queries", None, (), "query"
    OUTPUT = "output query", "output queries", "output query", "output queries", None, (), "output"
    GLOBAL = "global token", "global tokens", "global token", "global tokens", None, (), "global"
    BLOCK = "block", "blocks", "block", "blocks", None, ()
    PREDICTION = "prediction", "predictions", "prediction", "predictions", None, ()
    PROMPT = "prompt", "prompts", "prompt", "prompts", None, ()
    VIRTUAL = "virtual token", "virtual tokens", "virtual token", "virtual tokens", None, (), "virtual"

    plural: str
    token: str
    tokens: str
    whole: InputKind | None
    axes: tuple[str, ...]
    short: str

    def __new__(
        cls,
        name: str,
        plural: str,
        token: str,
        tokens: str,
        whole: InputKind | None,
        axes: tuple[str, ...],
        short: str = "",
    ) -> "Unit":
        """Set one table row's attributes."""
        unit = str.__new__(cls, name)
        unit._value_ = name
        unit.plural, unit.token, unit.tokens, unit.whole, unit.axes = plural, token, tokens, whole, axes
        unit.short = short or name
        return unit

    @classmethod
    def of(cls, place: Sequence[float] | None) -> "Unit":
        """Return the unit that has such a place."""
        return cls.WORD if place is None else next(unit for unit in cls if len(unit.axes) == len(place))

    def named(self, place: Sequence[float]) -> str:
        """Name one by its place: "patch 3, 5", row and column from 0, or "1.20 s", as the explorer does."""
        return f"{place[0]:.2f} s" if self is Unit.FRAME else f"{self} {', '.join(f'{one:g}' for one in place)}"

    def shortened(self, label: str) -> str:
        """Shorten a label for figures: "query 12" for "object query 12"."""
        return self.short + label.removeprefix(self) if label.startswith(f"{self} ") else label


# Positions that are no part of the input: the model learned them, or makes them.
SLOTS = tuple(unit for unit in Unit if unit.whole is None)


def check_places(places: Sequence[tuple[float, ...] | None]) -> None:
    """Refuse mixed or unknown kinds of places, patches off a grid, and a nearly empty grid."""
    kinds = {len(place) for place in places if place is not None}
    if len(kinds) > 1 or not kinds <= {len(unit.axes) for unit in Unit if unit.axes}:
        raise TraceError(
            "tokens need places of one kind, (row, column) for image patches or (seconds,) for audio frames; got "
            f"lengths {' and '.join(map(str, sorted(kinds)))}"
        )
    patches = [place for place in places if Unit.of(place) is Unit.PATCH and place is not None]
    for place in patches:
        if not all(one >= 0 and float(one).is_integer() for one in place):
            raise TraceError(f"a patch needs a row and a column, whole numbers from 0; got {place}")
    rows, columns = (int(max((place[axis] for place in patches), default=-1)) + 1 for axis in (0, 1))
    if rows * columns > _EMPTIEST * len(places):
        raise TraceError(
            f"{len(patches):,} patches don't fit {rows:,} rows × {columns:,} columns; a grid may have {_EMPTIEST} "
            f"times as many places as positions, {_EMPTIEST * len(places):,}"
        )


def check_text(text: object, what: str = "a text") -> None:
    """Refuse anything but a str."""
    if not isinstance(text, str):
        raise UnusableText(f"{what} must be a str; got {type(text).__name__}")
