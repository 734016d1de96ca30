"""All of this package's error types. Each message names the problem, the value and the fix."""

__all__ = [
    "AttentionVizError",
    "AttentionVizWarning",
    "DownloadCancelled",
    "HypothesisError",
    "LoadCancelled",
    "ModelNotFound",
    "ScanError",
    "ShapeError",
    "TextTooLong",
    "TraceError",
    "UnsupportedModel",
    "UnusablePicture",
    "UnusableSound",
    "UnusableText",
    "UnusableVideo",
]
# The characters shown on either side of the error in a hypothesis.
_SHOWN = 300


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)


class AttentionVizError(Exception):
    """Base of every error raised here on purpose. Catch it to show the message instead of a traceback."""


class AttentionVizWarning(UserWarning):
    """A warning about work that still goes ahead: it takes long, or a file holds less than the run."""


class ScanError(AttentionVizError):
    """A scan can't continue: its folder belongs to another scan, is in use, can't be written, or isn't a scan."""


class ShapeError(AttentionVizError, ValueError):
    """Tensors or sizes don't fit together, or an index is out of range."""


class ModelNotFound(AttentionVizError, LookupError):
    """No model has this name: it isn't in the catalogue, a usable folder, or on the hub."""


class HypothesisError(AttentionVizError, ValueError):
    """A hypothesis about heads that can't be read or tested.

    Attributes:
        place: the position of the error in the hypothesis, in characters from 0.
    """

    def __init__(self, message: str, said: str, place: int) -> None:
        """Show the position of the error in the hypothesis, or in a part of a long one."""
        before, after = said[:place], said[place:]
        before = before if len(before) <= _SHOWN else f"…{before[-_SHOWN:]}"
        after = after if len(after) <= _SHOWN else f"{after[:_SHOWN]}…"
        super().__init__(f"{message}, at character {place + 1} of “{before}▸{after}”")
        self.place = place


class LoadCancelled(AttentionVizError):
    """Loading a model was cancelled, because its caller is gone."""


class DownloadCancelled(AttentionVizError):
    """A download was stopped before its end. The unfinished file is deleted."""


class UnsupportedModel(AttentionVizError):
    """The model's attention can't be recorded exactly, so it isn't shown at all."""


class UnusableText(AttentionVizError, ValueError):
    """The text leaves nothing to attend to, or the model can't read it."""


class UnusablePicture(AttentionVizError, ValueError):
    """The image can't be read or has no content, or the model can't read images."""


class UnusableSound(AttentionVizError, ValueError):
    """The audio can't be read or has no content, or the model can't read audio."""


class UnusableVideo(AttentionVizError, ValueError):
    """The video can't be read or has no frames, or the model can't read videos."""


class TextTooLong(UnusableText):
    """The text has more tokens than the model has positions.

    Attributes:
        count: the text's tokens, special ones included.
        limit: the model's largest number of tokens.
    """

    def __init__(self, model: str, count: int, limit: int, what: str = "text") -> None:
        """Name the text's token count, the limit, and a way to shorten it."""
        alternative = ", or call model.fit(text), which returns the part that fits" if what == "text" else ""
        super().__init__(f"{model} reads at most {limit} tokens, and this {what} has {count}. Shorten it{alternative}.")
        self.count = count
        self.limit = limit


class TraceError(AttentionVizError, ValueError):
    """A trace lacks the requested data, or a file isn't a trace of ours."""


def first_line(error: BaseException) -> str:
    """Return a foreign error's first line, without the advice that often follows.

    A line that ends in a colon is joined with the next one.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ["no reason given"]
    said = next((at for at, line in enumerate(lines) if not line.endswith(":")), len(lines) - 1)
    return " ".join(lines[: said + 1])
