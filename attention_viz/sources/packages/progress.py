"""Show a conversion's progress in a terminal."""

from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def shown(words: str) -> Generator[Callable[[int, int], None]]:
    """Yield a function of the bytes written and in all that draws a bar on standard error, if that is a terminal."""
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
    """A tqdm bar, imported only if there is something to draw."""

    def __init__(self, words: str, of: int) -> None:
        """Draw an empty bar for `of` bytes."""
        from tqdm import tqdm

        self._drawn = tqdm(desc=words, total=of, unit="B", unit_scale=True, disable=None)

    def show(self, done: int) -> None:
        """Draw it up to `done` bytes."""
        self._drawn.update(done - self._drawn.n)

    def close(self) -> None:
        """Finish the bar."""
        self._drawn.close()
