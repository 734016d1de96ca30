"""Check a file of audio or video before it is opened."""

from pathlib import Path

from attention_viz.errors import AttentionVizError

# In bytes.
_LARGEST_FILE = 2_000_000_000


def existing(path: str, kind: str, one: str, refusal: type[AttentionVizError]) -> Path:
    """Return a file's path.

    Args:
        path: the path that a person gave.
        kind: the kind of file, "video".
        one: one of them, as a sentence names it, "a video".
        refusal: the error to raise if there is none, or it is too large.
    """
    try:
        found = Path(path)
        if not found.is_file():
            raise refusal(f"no {kind} file at {path[:200]!r}; check the path")
        if (size := found.stat().st_size) > _LARGEST_FILE:
            raise refusal(f"{found.name} has {size:,} bytes; use at most {_LARGEST_FILE:,}")
    except (OSError, ValueError) as error:
        if isinstance(error, AttentionVizError):
            raise
        raise refusal(f"can't read {one} at {path[:200]!r}: {error}") from None
    return found
