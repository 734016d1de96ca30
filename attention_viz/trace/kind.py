"""What a model reads, and the words that depend on it."""

from enum import StrEnum

from attention_viz.errors import AttentionVizError, UnsupportedModel, UnusablePicture, UnusableSound, UnusableText


class InputKind(StrEnum):
    """What a model reads; equal to its name as text, by which URLs, files and tables know it.

    Attributes:
        one: with its article.
        plural: several of them.
        does: what a model does that reads such.
        handed: how code hands one over.
        error: what is raised for one that can't be read.
    """

    TEXT = "text", "a text", "texts", "reads text", "a str", UnusableText
    PICTURE = "picture", "a picture", "pictures", "reads pictures", "av.Picture(path)", UnusablePicture
    SOUND = "sound", "a sound", "sounds", "hears", "av.Sound(path)", UnusableSound
    TENSORS = "tensors", "tensors", "tensors", "reads tensors", "tensors by name", UnsupportedModel
    BESIDE = (
        "text beside a picture",
        "a text beside a picture",
        "texts beside pictures",
        "reads a text beside a picture",
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
        """One row of the table."""
        kind = str.__new__(cls, name)
        kind._value_ = name
        kind.one, kind.plural, kind.does, kind.handed, kind.error = one, plural, does, handed, error
        return kind


# What comes in files of its own, is read in place of a text, and is shown beside the weights. Each has its field in
# `Seen`, `Provenance` and the pages' `State`.
MEDIA = (InputKind.PICTURE, InputKind.SOUND)
