"""The URL of the page's selection."""

from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit, urlunsplit

__all__ = ["link"]


def link(address: str, parameters: Mapping[str, str]) -> str:
    """Return a page's URL for a state."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc, parts.path or "/", urlencode(parameters), ""))
