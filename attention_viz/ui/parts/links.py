"""The address of what is on the screen, to hand on."""

from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit, urlunsplit

__all__ = ["link"]


def link(address: str, parameters: Mapping[str, str]) -> str:
    """The address of a page in a certain state."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc, parts.path or "/", urlencode(parameters), ""))
