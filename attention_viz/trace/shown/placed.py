"""Check tokens' places in pictures and sounds."""

from collections.abc import Sequence

from attention_viz.errors import TraceError
from attention_viz.trace.shown.unit import Unit

__all__ = ["check_places"]

# A grid of patches has at most so many places for each position there is: a model may read a quarter of a picture's.
_EMPTIEST = 16


def check_places(places: Sequence[tuple[float, ...] | None]) -> None:
    """Refuse places in nothing, and patches without a grid or with a nearly empty one."""
    kinds = {len(place) for place in places if place is not None}
    if len(kinds) > 1 or not kinds <= {len(unit.axes) for unit in Unit if unit.axes}:
        raise TraceError(
            f"places of {' and '.join(map(str, sorted(kinds)))} numbers came with tokens; a sound's have one, in "
            "seconds, and a picture's two, its row and its column"
        )
    patches = [place for place in places if Unit.of(place) is Unit.PATCH and place is not None]
    for place in patches:
        if not all(one >= 0 and float(one).is_integer() for one in place):
            raise TraceError(f"a patch is said to be at {place}; its row and its column are whole numbers from 0 on")
    rows, columns = (int(max((place[axis] for place in patches), default=-1)) + 1 for axis in (0, 1))
    if rows * columns > _EMPTIEST * len(places):
        raise TraceError(
            f"{len(patches):,} patches are said to be in {rows:,} rows and {columns:,} columns; a grid may have "
            f"{_EMPTIEST} times as many places as there are positions, {_EMPTIEST * len(places):,}"
        )
