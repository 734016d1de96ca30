"""A text and its image's file as one entry of a corpus, which names the file's contents."""

import hashlib
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple, cast

from attention_viz.errors import ScanError, UnusablePicture, UnusableText
from attention_viz.inputs.media.files import existing

# Separates an entry's parts; no path has it.
_SIGN = "\0"


class Pictured(NamedTuple):
    """A text, its image's path, and the sha256 of the file."""

    text: str
    path: str
    sha256: str

    @classmethod
    def of(cls, text: str, path: Path) -> "Pictured":
        """Read a file's sha256.

        Raises:
            UnusablePicture: the file is missing or too large.
        """
        return cls(text, str(path), _sha256(existing(str(path), "image", "an image", UnusablePicture)))

    @classmethod
    def of_entry(cls, entry: str) -> "Pictured":
        """Read an entry of a corpus."""
        sha256, path, text = entry.split(_SIGN, 2)
        return cls(text, path, sha256)

    @property
    def entry(self) -> str:
        """The pair as one text."""
        return _SIGN.join((self.sha256, self.path, self.text))

    def check(self) -> None:
        """Refuse a file that has changed since it was named."""
        if _sha256(existing(self.path, "image", "an image", UnusablePicture)) != self.sha256:
            raise ScanError(f"{self.path} has changed since the scan read it; restore it, or scan into another folder")


def checked_pair(one: object, name: str) -> tuple[str, Path]:
    """Return a corpus's text and image path; `name` is the corpus's."""
    pair = cast("tuple[Any, ...]", one) if isinstance(one, tuple | list) else ()
    if len(pair) != 2 or not isinstance(pair[0], str):
        got = "a text alone" if isinstance(one, str) else type(one).__name__
        raise UnusableText(
            f"{name} has {got} where a text with an image is needed; give pairs (text, path), or a .jsonl, .csv or "
            ".parquet file with a column for each"
        )
    text, path = pair
    if not isinstance(path, str | PathLike) or not fspath(cast("str", path)) or _SIGN in str(path):
        raise UnusablePicture(f"an image of a corpus must be a file's path; got {path!r:.80}")
    return text, Path(cast("str", path))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
