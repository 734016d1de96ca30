"""Split one number of an opened run into rows, and split those further."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from attention_viz.circuits.asked import Asked, Direction, Logit, Score
from attention_viz.circuits.matrices import Around, WordMatrices
from attention_viz.circuits.opened import Leaf, OpenedRun, cut_off
from attention_viz.circuits.rows import WritingPart, WritingParts, matrix
from attention_viz.errors import ShapeError, UnsupportedModel
from attention_viz.inputs.vocabulary import token_of
from attention_viz.operation.attention import Attention
from attention_viz.operation.numerics import REORDERED
from attention_viz.operation.shapes import of_head, shared_heads
from attention_viz.operation.token_mixer import TokenMixer
from attention_viz.recording.gradients import ModelRun, along
from attention_viz.trace.kept import LayerNumber
from attention_viz.trace.rerun import Along
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

# How far a slope may be from the direction that the weights say, of the slope's own length.
_BOUND = 2e-3


@dataclass(frozen=True, eq=False)
class OpenNumber:
    """One number of one opened run."""

    run: ModelRun
    trace: Trace
    opened: OpenedRun
    of: Asked
    parts: WritingParts
    sides: dict[str, Tensor]
    total: float

    @classmethod
    def begin(cls, run: ModelRun, trace: Trace, opened: OpenedRun, of: Asked) -> "OpenNumber":
        """Find the number in the opened run."""
        parts = WritingParts(opened, run)
        with opened.asking():
            sides = (
                _score(run, trace, opened, of) if isinstance(of, Score) else {"output": _output(run, trace, opened, of)}
            )
        for side, number in sides.items():
            if not number.requires_grad:
                raise cut_off(run.name, f"the {side} of this number", number, opened)
        return cls(run, trace, opened, of, parts, sides, float(next(iter(sides.values())).detach()))

    def rows(self) -> "tuple[pandas.DataFrame, float]":
        """Return all sides' table, and the larger remainder."""
        import pandas

        tables: list[pandas.DataFrame] = []
        missed = 0.0
        for side in self.sides:
            sums, rest = self.sums(side)
            missed = max(missed, rest, key=abs)
            tables.append(self.table(side, sums))
        return pandas.concat(tables, ignore_index=True), missed

    def sums(self, side: str) -> tuple[dict[WritingPart, float], float]:
        """Return each part's contribution to a side, and the remainder; refuse a large one."""
        number = self.sides[side]
        with self.opened.asking(), self.run.runner.door:
            sums = self.parts.sums(self.opened.contributions(number))
        rest = float(number.detach().double()) - sum(sums.values())
        largest = max((abs(one) for one in sums.values()), default=0.0)
        if abs(rest) > REORDERED * max(largest, 1e-6):
            raise UnsupportedModel(
                f"can't decompose {self.run.name}: contributions to the {self.of} miss {rest:.3g} of "
                f"{self.total:.3g}; {self._why_missed()}"
            )
        return sums, rest

    def _why_missed(self) -> str:
        dtype = self.run.runner.model.dtype
        if dtype.itemsize < torch.float32.itemsize:
            return f'load it with dtype="float32" instead of {str(dtype).removeprefix("torch.")}'
        return "it has a nonlinear step that isn't known here"

    def apart(self) -> tuple[float, float | None]:
        """Return a score's position bias and soft cap."""
        if not isinstance(self.of, Score):
            return 0.0, None
        call = self._call(self.of.layer, self.of.stream)
        if call.bias is None:
            return 0.0, call.softcap
        return float(call.bias.expand(call.shape)[self.of.head, self.of.query, self.of.key]), call.softcap

    def table(self, side: str, sums: dict[WritingPart, float]) -> "pandas.DataFrame":
        """Return one side's rows, largest first."""
        import pandas

        found = sorted((one for one in sums.items() if one[1] != 0.0), key=lambda one: -abs(one[1]))
        names = [self._token(part.stream, part.position) for part, _ in found]
        columns: dict[str, object] = {
            "side": [side] * len(found),
            "kind": [part.kind for part, _ in found],
            "stream": [part.stream for part, _ in found],
            **{
                name: pandas.array([getattr(part, name) for part, _ in found], dtype="Int64")
                for name in ("layer", "head", "position")
            },
            "token": [token for token, _ in names],
            "contribution": [number for _, number in found],
            "written": [written for _, written in names],
        }
        if not self._several:
            del columns["stream"]
        return pandas.DataFrame(columns)

    def _token(self, stream: str | None, position: int | None) -> tuple[str | None, str | None]:
        """Return a position's token, raw and readable; None twice if there is none."""
        tokens = self.run.queries.get(stream or "") or self.run.tokens
        if position is None or position >= len(tokens):
            return None, None
        return tokens.labels[position], tokens.written[position]

    def joint(self, count: int) -> "pandas.DataFrame":
        """See `Decomposition.joint`."""
        import pandas

        if not isinstance(self.of, Score):
            raise ShapeError(f"pairs need an av.Score, which has two sides; got the {self.of}")
        with self.opened.asking(), self.run.runner.door:
            query, key, scale = _vectors(self.run, self.trace, self.opened, self.of)
            rows, ours = matrix(self.parts, [self.opened.contributions(one) for one in query])
            columns, theirs = matrix(self.parts, [self.opened.contributions(one) for one in key])
        rows, ours = _without_position(rows, ours)
        columns, theirs = _without_position(columns, theirs)
        pairs = ours @ theirs.T * scale
        best = pairs.abs().flatten().topk(min(count, pairs.numel())).indices.tolist()
        found = [(rows[one // len(columns)], columns[one % len(columns)], float(pairs.flatten()[one])) for one in best]
        names = [f"{side}_{name}" for side in ("query", "key") for name in ("kind", "layer", "head")]
        frame = pandas.DataFrame(
            [(a.kind, a.layer, a.head, b.kind, b.layer, b.head, number) for a, b, number in found],
            columns=[*names, "contribution"],
        )
        return frame.astype({name: "Int64" for name in names if not name.endswith("kind")})

    def sources(self, layer: int, head: int, stream: str | None) -> "pandas.DataFrame":
        """See `Decomposition.sources`."""
        import pandas

        stream, call, slope = self._slope(layer, head, stream)
        one = call.head(head)
        weights = one.weights
        shares = weights * (slope @ one.value.to(slope).T)
        keys = self.trace.key_tokens(stream)
        spots = shares.nonzero().tolist()
        rows = [
            (at, key, keys.labels[key], float(weights[at, key]), float(shares[at, key]), keys.written[key])
            for at, key in spots
        ]
        frame = pandas.DataFrame(rows, columns=["position", "source", "token", "weight", "contribution", "written"])
        return frame.sort_values("contribution", key=abs, ascending=False, ignore_index=True)

    def fetched(self) -> "pandas.DataFrame":
        """See `Decomposition.fetched`."""
        import pandas

        parts = [leaf for leaf in self.opened.leaves if leaf.call is not None or leaf.mixer is not None]
        tables: list[pandas.DataFrame] = []
        for side, number in self.sides.items():
            with self.opened.asking(), self.run.runner.door:
                slopes = torch.autograd.grad(
                    number, [leaf.tensor for leaf in parts], retain_graph=True, allow_unused=True
                )
            for leaf, slope in zip(parts, cast("Sequence[Tensor | None]", slopes), strict=True):
                if slope is not None:
                    tables.append(self._fetched(side, leaf, slope[0]))
        columns = ["side", "stream", "layer", "head", "source", "token", "contribution", "written"]
        return pandas.concat(tables, ignore_index=True) if tables else pandas.DataFrame(columns=columns)

    def _fetched(self, side: str, leaf: Leaf, slope: Tensor) -> "pandas.DataFrame":
        """Return one layer's heads by source: Σ over queries of weight · (slope · value)."""
        import pandas

        if leaf.mixer is None:
            stream, layer = self.run.anatomy.places[cast("int", leaf.call)]
            call, whole = self._call(layer, stream), False
            value = shared_heads(call.value, call.query)
            shares = (call.weights * (slope @ value.mT)).double().sum(dim=1)
        else:
            # Its leaf are the values, so that its slope is summed over queries and weighted already.
            mixer = self.opened.mixers[leaf.mixer]
            stream, layer, whole = mixer.stream, mixer.layer, mixer.mixer.per == "channel"
            shares = (slope * leaf.tensor[0].detach()).double().sum(dim=-1)
            shares = shares.sum(dim=0, keepdim=True) if whole else shares
        spots = shares.nonzero()
        keys = self.trace.key_tokens(stream)
        heads = [None] * len(spots) if whole else spots[:, 0].tolist()
        return pandas.DataFrame(
            {
                "side": side,
                "stream": stream,
                "layer": layer,
                "head": pandas.array(heads, dtype="Int64") if self.opened.mixers else heads,
                "source": spots[:, 1].tolist(),
                "token": [keys.labels[at] for at in spots[:, 1].tolist()],
                "contribution": shares[spots[:, 0], spots[:, 1]].tolist(),
                "written": [keys.written[at] for at in spots[:, 1].tolist()],
            }
        )

    def through(self, layer: int, head: int, stream: str | None) -> "pandas.DataFrame":
        """See `Decomposition.through`."""
        stream, call, slope = self._slope(layer, head, stream)
        if isinstance(call, TokenMixer):
            raise UnsupportedModel(
                f"can't open the values of layer {layer} ({call.kind}), which has no softmax: most such layers compute "
                "them by nonlinear steps; use sources for its tokens"
            )
        number = self.run.anatomy.call(stream, LayerNumber(layer))
        open_call = self.opened.call(number, self.run.name)
        with self.opened.asking(), self.run.runner.door:
            value = of_head(open_call.value, head, len(open_call.query))
            if not value.requires_grad:
                raise cut_off(self.run.name, f"the values of layer {layer}", value, self.opened)
            # A trace that was made in inference mode has weights without slopes; a copy takes part in them.
            fetched = ((call.weights[head].clone() @ value) * slope).sum()
            sums = self.parts.sums(self.opened.contributions(fetched))
        return self.table("output", sums)

    def _slope(self, layer: int, head: int, stream: str | None) -> tuple[str, Attention | TokenMixer, Tensor]:
        """Return the stream, the call and the number's gradient, (query, d_v)."""
        stream, call, leaf = self.opened.head_leaf(self.run, self.trace, layer, head, stream)
        output = leaf.tensor if leaf.mixer is None else self.opened.mixers[leaf.mixer].output
        slopes = torch.zeros_like(output)
        with self.opened.asking(), self.run.runner.door:
            for side in self.sides.values():
                (found,) = cast(
                    "tuple[Tensor | None]", torch.autograd.grad(side, [output], retain_graph=True, allow_unused=True)
                )
                slopes = slopes if found is None else slopes + found
        return stream, call, slopes[0, head].detach()

    @property
    def _several(self) -> bool:
        """Return whether rows need the name of their stream."""
        return len(self.run.anatomy.layers) + len(self.run.anatomy.mixers) > 1

    def _call(self, layer: int, stream: str | None) -> Attention:
        return self.trace.attention(layer, self.trace.attention_stream(stream))


def _vectors(run: ModelRun, trace: Trace, opened: OpenedRun, of: Score) -> tuple[Tensor, Tensor, float]:
    """Return a score's query and key, still attached to their leaves, and the scale."""
    if of.stream in trace.mixers:
        there = f"a layer of {', '.join(trace.attention_streams)}" if trace.layers else "a token's logit, av.Logit"
        raise ShapeError(f"layer {of.layer} of the {of.stream} has no softmax, so it has no scores; choose {there}")
    stream = trace.attention_stream(of.stream)
    there = trace.attention(of.layer, stream)
    for name, asked, count in zip(("head", "query", "key"), (of.head, of.query, of.key), there.shape, strict=True):
        if not 0 <= asked < count:
            raise ShapeError(f"no {name} {asked}; layer {of.layer} has 0 to {count - 1}")
    call = opened.call(run.anatomy.call(stream, LayerNumber(of.layer)), run.name)
    query = call.query[of.head, of.query]
    keys = of_head(call.key, of.head, len(call.query))
    key = keys[of.key]
    if of.relative:
        allowed = torch.ones(len(keys), dtype=torch.bool)
        if there.allowed is not None:
            allowed = there.allowed.expand(there.shape)[of.head, of.query].clone()
        allowed[of.key] = False
        if not allowed.any():
            raise ShapeError(
                f"query {of.query} may attend to no other key, so no mean can be subtracted; leave out relative"
            )
        key = key - keys[allowed.to(keys.device)].mean(dim=0)
    return query, key, there.scale


def _score(run: ModelRun, trace: Trace, opened: OpenedRun, of: Score) -> dict[str, Tensor]:
    query, key, scale = _vectors(run, trace, opened, of)
    return {"query": (query @ key.detach()) * scale, "key": (query.detach() @ key) * scale}


def _output(run: ModelRun, trace: Trace, opened: OpenedRun, of: Logit | Direction) -> Tensor:
    output = opened.output
    if isinstance(of, Direction):
        return along(run, output, Along(of.vector, of.position))
    rows = len(output)
    if not -rows <= of.position < rows:
        raise ShapeError(f"no position {of.position}; the output has positions {-rows} to {rows - 1}")
    if no_words := run.anatomy.no_words:
        raise UnsupportedModel(
            f"the {of} needs an unembedding, which {run.name} lacks; use an av.Direction of its output ({no_words})"
        )
    row, logits = output[of.position], trace.output_at(of.position)
    token = token_of(run.name, run.tokenizer, logits, of.token)
    if of.against is None:
        return row[token]
    return row[token] - row[token_of(run.name, run.tokenizer, logits, of.against, like=token)]


def _without_position(parts: Sequence[WritingPart], table: Tensor) -> tuple[list[WritingPart], Tensor]:
    names = [part._replace(position=None) for part in parts]
    known = list(dict.fromkeys(names))
    found = torch.zeros(len(known), table.shape[1], dtype=table.dtype)
    found.index_add_(0, torch.tensor([known.index(name) for name in names], dtype=torch.long), table)
    return known, found


@dataclass(frozen=True)
class Proof:
    """Which matrices agree with a run.

    Attributes:
        composed: readers ("query", "key", "value") that match every earlier head.
        embedded: every layer's values match on embeddings.
        keyed: its queries and keys match on embeddings.
        worded: every head matches in writing to logits.
    """

    composed: frozenset[str]
    embedded: bool
    keyed: bool
    worded: bool


def prove(opened: OpenedRun, numbers: Sequence[int], layers: Sequence[Around], words: WordMatrices) -> Proof:
    """Compare matrix products with a run's gradients."""
    heads = {leaf.call: leaf for leaf in opened.leaves if leaf.kind == "head"}
    written = [heads.get(number) for number in numbers]
    table = [leaf for leaf in opened.leaves if leaf.kind == "embedding"]
    names = ("query", "key", "value")
    composed, embedded = set(names), set(names)
    for layer, (number, around) in enumerate(zip(numbers, layers, strict=True)):
        for name in names:
            matrix: Tensor | None = getattr(around, name)
            if matrix is None:
                composed.discard(name)
                embedded.discard(name)
                continue
            read: Tensor = getattr(opened.calls[number], name)[:, 0]
            mix = torch.randn(read.shape, generator=torch.Generator().manual_seed(layer))
            asked = (read * mix.to(read)).sum()
            slopes = _slopes(asked, [*written[:layer], *table], 0)
            lengths = around.lengths.get(name, torch.ones(len(matrix)))
            direction = torch.einsum("hmd,hd->m", matrix, mix.to(matrix) * lengths.to(matrix)[:, None])
            for before, slope in zip(layers[:layer], slopes, strict=False):
                if before.output is None or slope is None or not _along(slope, before.output @ direction):
                    composed.discard(name)
            if not any(slope is not None and _along(slope, direction) for slope in slopes[layer:]):
                embedded.discard(name)
    return Proof(
        frozenset(composed), "value" in embedded, {"query", "key"} <= embedded, _worded(opened, written, layers, words)
    )


def _worded(opened: OpenedRun, written: Sequence[Leaf | None], layers: Sequence[Around], words: WordMatrices) -> bool:
    if words.unembedding is None or opened.output.ndim != 2 or opened.output.shape[1] != len(words.unembedding):
        return False
    word = opened.output[-1].argmax()
    slopes = _slopes(opened.output[-1, word], written, -1)
    direction = words.towards(word[None])[:, 0]
    return all(
        around.output is not None and slope is not None and _along(slope, around.output @ direction)
        for around, slope in zip(layers, slopes, strict=True)
    )


def _slopes(number: Tensor, leaves: Sequence[Leaf | None], position: int) -> list[Tensor | None]:
    """Return gradients at a position: (head, d_v) for heads, (d_model,) for embeddings."""
    there = [leaf.tensor for leaf in leaves if leaf is not None]
    if not there or not number.requires_grad:
        return [None] * len(leaves)
    found = iter(torch.autograd.grad(number, there, retain_graph=True, allow_unused=True))
    slopes = [None if leaf is None else next(found) for leaf in leaves]
    return [None if slope is None else slope.flatten(0, -3)[..., position, :].squeeze(0) for slope in slopes]


def _along(slope: Tensor, expected: Tensor) -> bool:
    """Return whether each head's gradient points along the expected direction, not opposite."""
    if slope.shape != expected.shape:
        return False
    slope, expected = slope.double(), expected.double()
    size = (slope * expected).sum(-1, keepdim=True) / expected.square().sum(-1, keepdim=True).clamp_min(1e-30)
    return bool((size >= 0).all()) and bool((slope - size * expected).norm(dim=-1).le(_BOUND * slope.norm()).all())
