"""How far a conversion is, in a terminal."""

from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def shown(words: str) -> Generator[Callable[[int, int], None]]:
    """What takes the number of bytes that are written, and of those that will be, and draws a bar of them.

    The bar goes to standard error, where that is a terminal, and begins with the first number.
    """
    bars: list[Bar] = []

    def tell(done: int, of: int) -> None:
        if not bars:
            bars.append(Bar(words, of))
        bars[0].show(done)

    try:
        yield tell
    finally:
        for bar in bars:
            bar.close()


class Bar:
    """A bar of the library that draws those of downloads, which isn't imported before there is something to draw."""

    def __init__(self, words: str, of: int) -> None:
        """Draw an empty bar for `of` bytes."""
        from tqdm import tqdm

        self._drawn = tqdm(desc=words, total=of, unit="B", unit_scale=True, disable=None)

    def show(self, done: int) -> None:
        """Draw it as far as that."""
        self._drawn.update(done - self._drawn.n)

    def close(self) -> None:
        """End it."""
        self._drawn.close()
