"""Finds a model's sparse attention, and tests its reading."""

import contextlib
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from attention_viz.edits.kinds.masks import Block
from attention_viz.errors import UnsupportedModel
from attention_viz.operation.kernel import BOUNDS
from attention_viz.recording.differences import Difference
from attention_viz.recording.outputs.breaking import SEEN
from attention_viz.recording.runner import Runner
from attention_viz.recording.sparse.finding import site_of, sparse_kinds
from attention_viz.recording.sparse.hearing import sparse_turns
from attention_viz.recording.sparse.reading import blocked, found_in
from attention_viz.recording.sparse.starts import placed, with_slots
from attention_viz.recording.sparse.turn import SparseSite, Turn
from attention_viz.recording.twin import Twin

# How far two ways to block a cell may be apart by rounding, as a share of what that changes.
_AGREES = 1e-2


@dataclass(frozen=True)
class SparseKinds:
    """The classes of modules that attend to other numbers of keys than a text has tokens.

    Attributes:
        keys: that number, by class.
        lengths: of the texts.
    """

    keys: Mapping[type[nn.Module], int]
    lengths: Sequence[int]

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.keys)

    @classmethod
    def of(cls, twin: Twin, inputs: Mapping[str, Tensor]) -> "SparseKinds":
        """Return the classes found in a run; none with a picture or a sound, whose positions aren't known yet."""
        lengths = sorted({tensor.shape[1] for name, tensor in inputs.items() if name.endswith("input_ids")})
        is_text = bool(lengths) and not SEEN & {*inputs}
        return cls(sparse_kinds(lambda: twin.run(inputs, "eager"), lengths) if is_text else {}, lengths)

    def sites(
        self, twin: Twin, inputs: Mapping[str, Tensor], others: Sequence[Mapping[str, Tensor]]
    ) -> tuple[SparseSite, ...]:
        """Return each class's site, found in a run, with its positions in all."""
        found = dict[type[nn.Module], SparseSite]()

        def take(turn: Turn, _count: int) -> None:
            if turn.site.kind not in found:
                found[turn.site.kind] = site_of(turn)

        with sparse_turns(twin.model, [SparseSite(kind, (), "") for kind in self.keys], take):
            _ = twin.run(inputs, "eager")
        sites = placed(twin, (inputs, *others), tuple(found.values()))
        sites = [replace(one, rest=hidden_rows_matter(twin, others[0], [one])) for one in sites]
        return with_slots(twin, inputs, sites)

    @contextlib.contextmanager
    def naming(self) -> Generator[None]:
        """Say in a refusal that the model attends sparsely, or to fewer positions than the text has."""
        try:
            yield
        except UnsupportedModel as error:
            keys, tokens = next(iter(self.keys.values())), " and ".join(map(str, self.lengths))
            kind = "buckets or pooled tokens" if keys < min(self.lengths) else "blocks, summaries or frames"
            raise UnsupportedModel(
                f"it attends to {keys} keys in a text of {tokens} tokens, as over {kind}, and {error}"
            ) from error


def hidden_rows_matter(twin: Twin, inputs: Mapping[str, Tensor], sites: Sequence[SparseSite]) -> bool:
    """Return whether rows that aren't shown change the output: then those aren't padding."""

    def disturb(turn: Turn, count: int) -> object:
        first, _, shown = found_in(turn, count)
        hidden = torch.ones(len(first.context), 1, dtype=torch.bool)
        hidden[shown.rows] = False
        noise = torch.randn(first.context.shape, generator=generator) * hidden
        return turn.run(context=first.context + noise.to(first.context)).output

    generator, found = torch.Generator().manual_seed(0), Difference()
    before = twin.run(inputs, "eager")
    with sparse_turns(twin.model, sites, disturb):
        found.add(twin.run(inputs, "eager"), before)
    return found.relative > BOUNDS.get(before.dtype, 0.0)


def check_rest(twin: Twin, inputs: Mapping[str, Tensor]) -> None:
    """Refuse sparse attention from rows that aren't shown and change the output."""
    if hidden_rows_matter(twin, inputs, twin.plan.sparse):
        raise UnsupportedModel(
            "it attends from more positions than the text has tokens, such as global tokens or further streams of its "
            "own; use a model whose positions are its tokens"
        )


def check_sparse_edits(runner: Runner, inputs: Mapping[str, Tensor], places: Sequence[tuple[str, int]]) -> None:
    """Block one cell per kind of sparse attention, by an edit and in the model's own softmaxes: both must agree."""
    twin, before, sparse = runner.twin(), runner.record(inputs), runner.switch.plan.sparse
    for site in sparse:
        number = next((number for number, one in enumerate(before.modules) if type(one) is site.kind), None)
        if number is None:
            continue
        (stream, layer), call = places[number], before.calls[number].attention
        allowed = torch.ones(1) if call.allowed is None else call.allowed.cpu()
        tokens = inputs[site.reads].shape[1]
        query, key = (int(one) for one in allowed.expand(call.shape).bool().any(0)[:tokens].nonzero()[-1])
        ours = runner.record(inputs, (Block(query, key, layer=layer, stream=stream),), places).output

        def block(turn: Turn, count: int, number: int = number, cell: tuple[int, int] = (query, key)) -> object:
            own = twin.original[turn.module] is before.modules[number]
            return blocked(turn, count, *cell) if own else None

        with sparse_turns(twin.model, sparse, block):
            theirs = twin.run(inputs, "eager")
        apart, moved = Difference(), Difference()
        apart.add(ours, theirs)
        moved.add(ours, before.output[:])
        if apart.relative > BOUNDS.get(ours.dtype, 0.0) and apart.apart > _AGREES * moved.apart:
            raise UnsupportedModel(
                f"blocking a cell in its {stream}'s first layer changes the output differently from blocking it in its "
                f"own logits, by {apart.relative:.1e} relative"
            )
