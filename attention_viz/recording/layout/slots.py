"""Names the positions that a model adds to its input: latents, object queries, virtual tokens.

Rows that no change of the input moves in a module's first call were learned. Later calls have the same ones if nothing
moves them while each position keeps to itself. Words beside slots are where changing them moves a row.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from torch import Tensor

from attention_viz.errors import UnsupportedModel
from attention_viz.recording.layout.axes import PROMPT, SEEN, TEXT, Axes, Axis
from attention_viz.recording.layout.origins import (
    Origins,
    Side,
    other_text,
    sides_of,
    words_of_rows,
)
from attention_viz.recording.towers import in_tower
from attention_viz.trace.kind import STREAMS, Unit

if TYPE_CHECKING:
    from attention_viz.recording.runner import Pass, Runner


class UnmatchedWordsError(UnsupportedModel):
    """Raised if words aren't in their order, however attention is heard."""


# A text for a Q-Former, which has its own, and the one for the model's own words.
_IDS = ("qformer_input_ids", "input_ids")
# Stands for the stream of a text's words, whichever that is.
WORDS = "words"
# A module's name with its numbers left out, the number of its queries and keys, and whether an image or audio asks.
_Part = tuple[str, int, int, bool]


@dataclass(frozen=True)
class SlotStreams:
    """The streams with slots: one name per call, and their axes.

    Ordinary calls have "" for a name, or "seen" if their positions are of an image or audio beside a text.
    """

    names: tuple[str, ...]
    axes: Mapping[str, Axes]


def slot_streams(runner: "Runner", inputs: Mapping[str, Tensor], recorded: "Pass", paths: Sequence[str]) -> SlotStreams:
    """Find the streams whose queries or keys the model adds.

    Args:
        paths: each call's module name.
    """
    family, tiles = type(runner.model).__name__, [call.tiles for call in recorded.calls]
    sides = [
        (_of_tile(queries, count, family), _of_tile(keys, count, family))
        for (queries, keys), count in zip(sides_of(runner, inputs, recorded.calls), tiles, strict=True)
    ]
    # LXMERT's modules attend from words to patches, and from patches to words.
    parts: list[_Part] = [
        (re.sub(r"\d+", "*", path), len(queries), len(keys), queries.alone.kinds == (SEEN,))
        for path, (queries, keys) in zip(paths, sides, strict=True)
    ]
    found, reader = dict[_Part, tuple[str, Axes]](), _Reader.of(runner, inputs)
    for part in dict.fromkeys(parts):
        if (own := reader.named(part, *sides[parts.index(part)], found)) is not None:
            found[part] = own
    _check_words(runner, inputs, tiles, {parts.index(part): axes for part, (_, axes) in found.items()})
    names, axes = numbered(family, found)
    for part in dict.fromkeys(parts):
        kinds = [side.alone.kinds for side in sides[parts.index(part)]]
        if part not in names and reader.length and kinds == [(SEEN,), (SEEN,)] and not in_tower(part[0]):
            names[part] = SEEN
    return SlotStreams(tuple(names.get(part, "") for part in parts), axes)


def _of_tile(side: Side, tiles: int, family: str) -> Side:
    """Return the first tile's rows."""
    return Side(*(Origins(*(_alike(one, tiles, family) for one in _kinds(of))) for of in (side.found, side.alone)))


def _kinds(origins: Origins) -> tuple[Tensor, Tensor, Tensor]:
    return origins.text, origins.seen, origins.prompt


def _alike(rows: Tensor, tiles: int, family: str) -> Tensor:
    """Return the first tile's rows; refuse tiles that differ."""
    several = rows.unflatten(0, (tiles, -1)) if len(rows) else rows[None]
    if not bool((several == several[0]).all()):
        raise UnsupportedModel(f"{family} adds other positions to some of its images than to others")
    return several[0]


def numbered(family: str, found: Mapping[_Part, tuple[str, Axes]]) -> tuple[dict[_Part, str], dict[str, Axes]]:
    """Number streams of one kind whose positions differ: "pooling", "pooling 2"; return names and axes."""
    names, axes, firsts = dict[_Part, str](), dict[str, Axes](), dict[str, _Part]()
    for part, (kind, own) in found.items():
        alike = [one for one, first in firsts.items() if found[first] == (kind, own) and first[1:3] == part[1:3]]
        if (name := next((one for one in alike if _beside(firsts[one][0], part[0])), "")) == "":
            number = 1 + sum(found[first][0] == kind for first in firsts.values())
            name = kind if number == 1 else f"{kind} {number}"
            if name not in (WORDS, *STREAMS):
                raise UnsupportedModel(
                    f"{family} adds more sets of positions than can be named: {kind} has {number}; use a model with "
                    "fewer"
                )
            firsts[name], axes[name] = part, own
        names[part] = name
    return names, axes


@dataclass(frozen=True)
class _Reader:
    """Facts of a model and its inputs, for the rules.

    Attributes:
        asks: the number of object queries; 0 without.
        length: the number of a text's words; 0 without.
        lengths: those of all texts that it reads.
        reads_more: whether it reads an image or audio.
        writes: whether it has a target.
    """

    asks: int
    length: int
    lengths: frozenset[int]
    reads_more: bool
    writes: bool

    @classmethod
    def of(cls, runner: "Runner", inputs: Mapping[str, Tensor]) -> "_Reader":
        """Read a model's configuration and inputs."""
        asks: Any = getattr(runner.model.config, "num_queries", None)
        return cls(
            asks if isinstance(asks, int) else 0,
            inputs["input_ids"].shape[1] if "input_ids" in inputs else 0,
            frozenset(inputs[name].shape[1] for name in _IDS if name in inputs),
            any(tensor.is_floating_point() for tensor in inputs.values()),
            "decoder_input_ids" in inputs,
        )

    def named(
        self, part: _Part, queries: Side, keys: Side, found: Mapping[_Part, tuple[str, Axes]]
    ) -> tuple[str, Axes] | None:
        """Return the stream of a part's first call and its axes; None if it has no slots."""
        path = part[0]
        # Queries of a target; and a tower's own positions, which nothing moves if its weights are near 0.
        writes = self.writes and any("decoder" in one for one in path.split("."))
        crosses = {queries.alone.kinds, keys.alone.kinds} == {(TEXT,), (SEEN,)}
        if writes or (in_tower(path) and len(queries) == len(keys) and not crosses):
            return None
        unit = Unit.OBJECT if self.asks and "decoder" in path.split(".") else Unit.LATENT
        own = self._continued(path, queries, keys, found) or _learned(queries, keys, unit, reads_more=self.reads_more)
        if own is None and unit is Unit.OBJECT and len(queries) == len(keys) == self.asks:
            # Queries that a model chooses from what it reads.
            own = "slots", Axes(Axis(unit, before=len(queries)), Axis(unit, before=len(queries)))
        if own is None and not any(bool(side.found.seen.any()) for side in (queries, keys)):
            own = _virtual(queries, keys, self.length)
        # A pooled text may read an image, as in X-CLIP.
        if own is not None and own[0] != "cross":
            self._check_counts(path, own[1], len(queries), len(keys))
        return own

    def _check_counts(self, path: str, axes: Axes, queries: int, keys: int) -> None:
        """Refuse positions that words move but that aren't words, such as one word's states in earlier layers."""
        for axis, count in ((axes.queries, queries), (axes.keys, keys)):
            if axis.rest == TEXT and self.lengths and count - axis.slots not in self.lengths:
                tokens = " or ".join(map(str, sorted(self.lengths)))
                raise UnsupportedModel(
                    f"{path} attends over {count - axis.slots} positions that aren't the text's {tokens} tokens, "
                    "such as one token's states in earlier layers; use a model without"
                )

    def _continued(
        self, path: str, queries: Side, keys: Side, found: Mapping[_Part, tuple[str, Axes]]
    ) -> tuple[str, Axes] | None:
        """Return the stream of a part whose positions are the slots of one before it, which have read something."""
        for (other, *_), (_, axes) in reversed(list(found.items())):
            if not _beside(path, other) or not axes.queries.slots:
                continue
            asks, answers = _again(queries, axes.queries), _again(keys, axes.queries)
            if asks is not None and asks == answers and len(queries) == len(keys) != self.length:
                return "slots", Axes(asks, asks)
            if asks is not None and len(queries) != len(keys):
                return "pooling", Axes(asks, _read_by(keys, asks.unit, asks.slots))
            if answers is None or answers.unit is not Unit.LATENT:
                continue
            if bool(queries.found.still.all()) and bool((~keys.found.still).all()):
                return "readout", Axes(Axis(Unit.OUTPUT, before=len(queries)), answers)
            if queries.alone.kinds == (SEEN,) and bool(queries.alone.seen.all()):
                return "readout", Axes(Axis(rest=SEEN), answers)
        return None


def _again(side: Side, axis: Axis) -> Axis | None:
    """Return the axis of a side whose rows are an axis's slots, with or without others beside them."""
    found = _axis(side.alone, axis.unit)
    return found if found in (axis, Axis(axis.unit, before=axis.slots)) else None


def _learned(queries: Side, keys: Side, unit: Unit, *, reads_more: bool) -> tuple[str, Axes] | None:
    """Return a part's stream if its first call's queries are slots, alone or beside others."""
    if bool(queries.found.still.all()):
        own = Axis(unit, before=len(queries))
        if bool(keys.found.still.all()) and len(keys) == len(queries):
            return "slots", Axes(own, own)
        return "pooling", Axes(own, _read_by(keys, unit, len(queries)))
    own = _axis(queries.found, unit)
    beside = own is not None and own.slots > 0 and (own.rest == PROMPT or (own.rest == TEXT and reads_more))
    if own is not None and beside and _axis(keys.found, unit) == own:
        return "slots", Axes(own, own)
    return _crossing(queries, keys, unit)


def _crossing(queries: Side, keys: Side, unit: Unit) -> tuple[str, Axes] | None:
    """Return "cross" for words that read an image or audio, or the other way round."""
    seen = _axis(keys.found, unit)
    if bool(queries.found.text.all()) and not bool(keys.found.text.any()) and seen is not None and seen.rest == SEEN:
        return "cross", Axes(Axis(rest=TEXT), seen)
    # A class token among the queries comes from nothing.
    if queries.alone.kinds == (SEEN,) and keys.alone.kinds == (TEXT,) and bool(keys.alone.text.all()):
        return "cross", Axes(Axis(rest=SEEN), Axis(rest=TEXT))
    return None


def _virtual(queries: Side, keys: Side, length: int) -> tuple[str, Axes] | None:
    """Return the words' stream, if virtual tokens are among its keys, and maybe among its queries."""
    rows, columns = _axis(queries.found, Unit.VIRTUAL), _axis(keys.found, Unit.VIRTUAL)
    if rows is None or columns is None or not columns.slots or len(keys) - columns.slots != length:
        return None
    return (WORDS, Axes(rows, columns)) if len(queries) - rows.slots == length else None


def _read_by(keys: Side, unit: Unit, slots: int) -> Axis:
    """Return the axis of keys that slots read; a class token that nothing moved isn't a slot."""
    found = _axis(keys.found, unit)
    if found is not None and found.rest and found.slots in (0, slots):
        return found
    return Axis(unit, rest=TEXT if keys.alone.kinds == (TEXT,) else SEEN)


def _axis(origins: Origins, unit: Unit) -> Axis | None:
    """Return the axis, if its slots are together at one end."""
    still = origins.still.tolist()
    rest = next((kind for kind in (SEEN, TEXT, PROMPT) if kind in origins.kinds), "")
    if not rest:
        return Axis(unit, before=len(still))
    if rest == PROMPT:  # a row that fills up the points belongs to them
        return Axis(unit, before=still.index(False), rest=rest)
    if sum(one != other for one, other in pairwise(still)) > 1:
        return None
    count = sum(still)
    return Axis(unit, before=count if still[0] else 0, after=0 if still[0] else count, rest=rest)


def _check_words(
    runner: "Runner", inputs: Mapping[str, Tensor], tiles: Sequence[int], axes: Mapping[int, Axes]
) -> None:
    """Refuse words in another order than the text's, as changing each of them shows.

    Args:
        tiles: each call's.
        axes: by a call's number.
    """
    name = next((one for one in _IDS if one in inputs), None)
    if name is None or not any(TEXT in (one.queries.rest, one.keys.rest) for one in axes.values()):
        return
    # Placeholders can't be changed.
    changed = (other_text(runner, {name: inputs[name]})[name] != inputs[name])[0].tolist()
    rows = words_of_rows(runner, inputs, name)
    for number, own in axes.items():
        for side, axis in enumerate((own.queries, own.keys)):
            moved = _alike(rows[number][side], tiles[number], type(runner.model).__name__).tolist()
            if axis.rest != TEXT or len(moved) - axis.slots != len(changed):
                continue  # these words have numbers for names
            found = moved[axis.before : len(moved) - axis.after]
            wrong = [at for at, own_word in enumerate(found) if changed[at] and own_word != at + 1]
            if wrong:
                at, word = wrong[0], found[wrong[0]]
                raise UnmatchedWordsError(
                    f"can't match positions to words: {type(runner.model).__name__} has "
                    f"{f'word {word - 1}' if word else 'no word'} of its text at position {axis.before + at}, not word "
                    f"{at}"
                )


def _beside(one: str, other: str) -> bool:
    """Return whether two modules are in one part of a model, below its outermost ones."""
    first, second = one.split("."), other.split(".")
    common = next((at for at, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]), 0)
    return common > 0 and first[:common] != ["model"]
