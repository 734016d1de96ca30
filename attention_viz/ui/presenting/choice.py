"""What the address keeps while slides are shown: the browser writes it, the page leaves it as it is."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from attention_viz.ui.address.codec import parameter, read, write
from attention_viz.ui.address.kinds import Text

__all__ = ["PresentChoice", "presented"]

_SLIDE = re.compile(r"[1-9]\d{0,2}\.[12]")


@dataclass(frozen=True)
class PresentChoice:
    """Which slide is shown."""

    slide: str = parameter("", Text(longest=5), "the slide that is shown", brief=True)


def presented(address: Mapping[str, str]) -> dict[str, str]:
    """What stays in an address of the slides that are shown; nothing where it names none.

    Args:
        address: its parameters, as anybody may have typed them.
    """
    asked, _ = read(PresentChoice(), address)
    return write(asked) if _SLIDE.fullmatch(asked.slide) else {}
