"""Finds where the text's tokens are among the rows that a sparse module reads, and which slots are beside them."""

import contextlib
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.recording.hooks import hooked
from attention_viz.recording.layout.axes import TEXT, Axes, Axis
from attention_viz.recording.sparse.hearing import sparse_turns
from attention_viz.recording.sparse.positions import NONE, Positions, changed_rows, origins
from attention_viz.recording.sparse.reading import found_in
from attention_viz.recording.sparse.turn import SparseSite, Turn
from attention_viz.recording.twin import Twin
from attention_viz.trace.kind import Unit

_Place = tuple[type[nn.Module], int]


def placed(twin: Twin, several: Sequence[Mapping[str, Tensor]], sites: Sequence[SparseSite]) -> list[SparseSite]:
    """Return the sites with the text that each reads and the row of its first token, the same for several texts."""
    found = [_starts(twin, inputs, sites) for inputs in several]
    if any(one != found[0] for one in found):
        raise UnsupportedModel("its tokens begin at another row of its states for another text")
    sets = list[SparseSite]()
    for site in sites:
        own = [found[0].get((site.kind, number), ("", 0)) for number in range(len(site.of(twin.model)))]
        names = {name for name, _ in own if name}
        if len(names) != 1:
            raise UnsupportedModel(f"{site.kind.__name__} reads several texts")
        sets.append(replace(site, reads=names.pop(), starts=tuple(start for _, start in own)))
    return sets


@dataclass(eq=False)
class _HeldTurns:
    """Repeats the outputs of a run's sparse turns, so that a row of states depends on its own token alone."""

    outputs: list[object] = field(default_factory=list[object])
    states: list[list[Tensor]] = field(default_factory=list[list[Tensor]])
    places: list[_Place] = field(default_factory=list[_Place])
    heard: list[list[Tensor]] = field(default_factory=list[list[Tensor]])

    def first(self, turn: Turn, _count: int) -> None:
        """Keep a turn."""
        self.outputs.append(turn.run().output)
        self.states.append([one.clone() for one in turn.rows])
        self.places.append((turn.site.kind, turn.number))

    def again(self, turn: Turn, _count: int) -> object:
        """Keep a turn's states, and repeat its output."""
        self.heard.append([one.clone() for one in turn.rows])
        return self.outputs[len(self.heard) - 1]


def _starts(twin: Twin, inputs: Mapping[str, Tensor], sites: Sequence[SparseSite]) -> dict[_Place, tuple[str, int]]:
    """Return the ids and the row of the first token that each module reads; the others must follow in order."""
    turns, found = _HeldTurns(), dict[_Place, tuple[str, int]]()
    with sparse_turns(twin.model, sites, turns.first):
        _ = twin.run(inputs, "eager")
    for name in (name for name in inputs if name.endswith("input_ids")):
        count, rows = inputs[name].shape[1], iter(_moved_by(twin, inputs, name, sites, turns))
        for place, states in zip(turns.places, turns.states, strict=True):
            own, *others = [next(rows) for _ in states]
            start = _first(own, count)
            if start is not None and not any(bool((one != NONE).any()) for one in others):
                if found.setdefault(place, (name, start)) != (name, start):
                    raise UnsupportedModel(f"{place[0].__name__} reads its text at several rows")
    for kind, _ in {*turns.places} - {*found}:
        raise UnsupportedModel(f"{kind.__name__} reads states that aren't the text's tokens in order")
    return found


def _moved_by(
    twin: Twin, inputs: Mapping[str, Tensor], name: str, sites: Sequence[SparseSite], turns: _HeldTurns
) -> list[Int[Tensor, " row"]]:
    """Return the token that moves each row of all states."""
    ids = inputs[name]

    def changed(tokens: Bool[Tensor, " token"]) -> list[Tensor]:
        turns.heard = []
        with sparse_turns(twin.model, sites, turns.again), _other_words(twin.model, ids, tokens):
            _ = twin.run(inputs, "eager")
        pairs = zip(turns.states, turns.heard, strict=True)
        return [changed_rows(*both) for one in pairs for both in zip(*one, strict=True)]

    return origins(ids.shape[1], changed)


def _first(rows: Int[Tensor, " row"], count: int) -> int | None:
    """Return the row of the first token; None if the rows aren't all tokens in order, between rows of none."""
    start = int((rows >= 0).long().argmax())
    here = torch.full_like(rows, NONE)
    here[start : start + count] = torch.arange(count)[: len(rows) - start]
    return start if torch.equal(here, rows) else None


@contextlib.contextmanager
def _other_words(model: nn.Module, ids: Tensor, tokens: Bool[Tensor, " token"]) -> Generator[None]:
    """Add noise to the embeddings of some tokens; the model may pad a text behind."""
    chance, count = torch.Generator().manual_seed(0), ids.shape[1]

    def disturb(_module: nn.Module, inputs: tuple[Any, ...], _named: object, output: object) -> Tensor | None:
        own = inputs[0] if inputs else None
        if not (isinstance(own, Tensor) and isinstance(output, Tensor) and own.ndim == 2):
            return None
        if not torch.equal(own[:, :count], ids):
            return None
        noise = torch.randn(output[:, :count].shape, generator=chance).to(output) * (1 + output[:, :count].abs())
        some = torch.where(tokens[:, None].to(output.device), noise, 0)
        return torch.cat([output[:, :count] + some, output[:, count:]], 1)

    tables = [module for module in model.modules() if isinstance(module, nn.Embedding)]
    with hooked(tables, disturb):
        yield


def with_slots(twin: Twin, inputs: Mapping[str, Tensor], sites: Sequence[SparseSite]) -> tuple[SparseSite, ...]:
    """Return the sites with the kinds of their rows and columns; `inputs` has a text of several blocks."""
    found = dict[type[nn.Module], Axes | None]()

    def take(turn: Turn, count: int) -> None:
        if turn.site.kind not in found:
            *_, shown = found_in(turn, count)
            found[turn.site.kind] = _axes(turn, shown) if len(shown.keys[1]) else None

    with sparse_turns(twin.model, sites, take):
        _ = twin.run(inputs, "eager")
    return tuple(replace(site, axes=found.get(site.kind)) for site in sites)


def _axes(turn: Turn, shown: Positions) -> Axes:
    rows, columns = len(shown.queries[1]), len(shown.keys[1])
    if turn.site.rest:
        each, left = divmod(columns, len(shown.keys[0]))
        if left or rows != columns:
            raise UnsupportedModel(f"{turn.name} has {columns} slots, which aren't as many per token")
        return Axes(*[Axis(Unit.PREDICTION, rest=TEXT, each=each)] * 2)
    if shown.summaries:
        return Axes(Axis(Unit.BLOCK, rest=TEXT), Axis(Unit.BLOCK, rest=TEXT, per=_per(turn, shown)))
    return Axes(Axis(Unit.GLOBAL, after=rows, rest=TEXT), Axis(Unit.GLOBAL, after=columns, rest=TEXT))


def _per(turn: Turn, shown: Positions) -> int:
    """Return the number of tokens that a slot sums; refuse other slots than sums of blocks in order.

    The last block has the tokens left over, too.
    """
    states, *others = turn.rows
    with torch.enable_grad():
        states = states.detach().requires_grad_()
        swap = {id(turn.rows[0]): states}
        run = replace(
            turn,
            inputs=tuple(swap.get(id(one), one) for one in turn.inputs),
            named={name: swap.get(id(one), one) for name, one in turn.named.items()},
        ).run()
        values = next(iter(run.values.values()))[[*shown.keys[1]]]
        weights = torch.arange(1.0, values.shape[-1] + 1).sin().to(values)
        slopes = [torch.autograd.grad(one @ weights, states, retain_graph=True)[0] for one in values]
    members = torch.stack([one[0].abs().sum(-1) > 0 for one in slopes]).cpu()[:, turn.start :]
    count, slots = len(shown.queries[0]), len(members)
    per = int(members[0].sum())
    expected = torch.arange(count).div(max(per, 1), rounding_mode="floor").clamp_max(slots - 1)
    if slots < 2 or count // max(per, 1) != slots or not torch.equal(members[:, :count].long().argmax(0), expected):
        raise UnsupportedModel(f"{turn.name} has {slots} slots, but they aren't sums of blocks of the text in order")
    if others or not bool((members.sum(0)[:count] == 1).all()) or bool(members[:, count:].any()):
        raise UnsupportedModel(f"{turn.name} has {slots} slots that share tokens")
    return per
