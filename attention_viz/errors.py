"""Every error type of ours. Each message says what was asked, what came, and what is allowed."""

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
]


def __dir__() -> list[str]:
    """What is there for others, as a prompt lists it."""
    return sorted(__all__)


class AttentionVizError(Exception):
    """The base of every error raised here on purpose: catch it to show the message instead of a traceback."""


class AttentionVizWarning(UserWarning):
    """What is worth knowing of work that goes on all the same: that it takes long, or that a file holds less."""


class ScanError(AttentionVizError):
    """A scan that can't go on: its folder is another's or in use, can't be written, or isn't a scan."""


class ShapeError(AttentionVizError, ValueError):
    """Tensors or sizes that don't fit together, or an index outside what there is."""


class ModelNotFound(AttentionVizError, LookupError):
    """No model of that name: not in the catalogue, no usable folder, and not to be had from the hub."""


# So many characters of a story are shown on either side of what is wrong with it.
_SHOWN = 300


class HypothesisError(AttentionVizError, ValueError):
    """A story about heads that can't be read, or can't be tested.

    Attributes:
        place: at which character of it, from 0.
    """

    def __init__(self, message: str, said: str, place: int) -> None:
        """Show the place within the story; of a long one, what is around it."""
        before, after = said[:place], said[place:]
        before = before if len(before) <= _SHOWN else f"…{before[-_SHOWN:]}"
        after = after if len(after) <= _SHOWN else f"{after[:_SHOWN]}…"
        super().__init__(f"{message}, at character {place + 1} of “{before}▸{after}”")
        self.place = place


class LoadCancelled(AttentionVizError):
    """Loading a model was stopped, because nobody waits for it any more."""


class DownloadCancelled(AttentionVizError):
    """A download that was stopped before its end; what had come of the file under way is thrown away."""


class UnsupportedModel(AttentionVizError):
    """A model whose attention can't be recorded exactly: refused by name rather than shown wrongly."""


class UnusableText(AttentionVizError, ValueError):
    """A text that leaves nothing to attend to, or that the model has no way to read."""


class UnusablePicture(AttentionVizError, ValueError):
    """A picture that can't be read, in which there is nothing to look at, or that the model has no way to read."""


class UnusableSound(AttentionVizError, ValueError):
    """A sound that can't be read, in which there is nothing to hear, or that the model has no way to read."""


class TextTooLong(UnusableText):
    """A text with more tokens than the model has positions.

    Attributes:
        count: how many tokens the text has, special ones included.
        limit: how many the model can take.
    """

    def __init__(self, model: str, count: int, limit: int, what: str = "text") -> None:
        """Say by how much the text is over, and how to shorten it."""
        alternative = ", or use model.fit(text), which says what fits and what is cut" if what == "text" else ""
        super().__init__(
            f"{model} reads at most {limit} tokens at once and this {what} has {count}. Shorten it{alternative}."
        )
        self.count = count
        self.limit = limit


class TraceError(AttentionVizError, ValueError):
    """A trace that lacks what was asked of it, or a file that is not a trace of ours."""


def first_line(error: BaseException) -> str:
    """What a foreign error says, without the advice for somebody else that often follows.

    A line that ends in a colon announces the next one, which is said with it.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ["no reason given"]
    said = next((at for at, line in enumerate(lines) if not line.endswith(":")), len(lines) - 1)
    return " ".join(lines[: said + 1])
