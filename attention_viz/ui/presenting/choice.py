"""The URL's slide, written by the browser, kept by the page."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from attention_viz.ui.address.codec import Older, modernised, parameter, read, write
from attention_viz.ui.address.kinds import AnyText

__all__ = ["PresentChoice", "presented"]

_FIRST = "1.1"
_SLIDE = re.compile(r"[1-9]\d{0,2}\.[12]")


class _SlideKind(AnyText):
    """A slide and step; older links only switched slides on."""

    def meant(self, text: str, known: object) -> str:
        """The first slide, where slides were asked for."""
        return _FIRST if text == "on" else text


@dataclass(frozen=True)
class PresentChoice:
    """Which slide is shown."""

    slide: str = parameter("", _SlideKind(longest=5), "the slide that is shown", brief=True, older=Older("present"))


def presented(address: Mapping[str, str]) -> dict[str, str]:
    """Return the URL's slide parameters, if any."""
    asked, _ = read(PresentChoice(), modernised([PresentChoice], address))
    return write(asked) if _SLIDE.fullmatch(asked.slide) else {}
