"""Read TransformerLens's cache: each layer's weights, and queries, keys and values that reproduce them."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, cast

import torch
from torch import Tensor

from attention_viz.errors import ShapeError, TraceError
from attention_viz.operation.attention import Attention, attend
from attention_viz.operation.kernel import BOUNDS
from attention_viz.operation.rope import rotated
from attention_viz.trace.given.from_tensors import (
    Labels,
    Made,
    Stack,
    call_of_weights,
    causal_by_weights,
    compared_with_weights,
    differing,
    floating,
    origin_of,
    output_of,
    row_of_batch,
    sampled,
    tokens_of,
    trace_of_stacks,
    version_of,
)
from attention_viz.trace.given.from_weights import weights_alone
from attention_viz.trace.kept import KeptLayers
from attention_viz.trace.kind import STREAM_KINDS, STREAMS
from attention_viz.trace.provenance import Fidelity
from attention_viz.trace.tokens import Tokens

_PATTERN = "hook_pattern"
# "blocks.0.attn." of a decoder or encoder, "decoder_blocks.0.cross_attn." of a Bridge, "decoder.0.cross_attn." before.
_HOOK = re.compile(r"(?:(encoder|decoder)(?:_blocks)?|blocks)\.(\d{1,5})\.(attn|self_attn|cross_attn)\.hook_pattern")
# Where queries and keys are that the scores were made of, the best first, and whether their heads come first.
_PAIRS = (("hook_rot_q", "hook_rot_k", False), ("hook_q_normed", "hook_k_normed", True), ("hook_q", "hook_k", False))
# A difference of a weight, relative to its layer's largest, beyond which queries and keys belong to other weights.
_FAR, _HALF_FAR = 1e-3, 5e-2


@dataclass(frozen=True)
class CachedLayer:
    """One layer's hooks of one row of the batch, heads first.

    Attributes:
        where: the hooks' prefix, such as "blocks.0.attn.".
        weights: (head, query, key), as they came.
        mixed: hook_z, the heads' outputs (head, query, d_v), if it is there.
    """

    where: str
    number: int
    stream: str | None
    weights: Tensor
    hooks: Mapping[str, Tensor]

    @property
    def mixed(self) -> Tensor | None:
        """Each head's own output, (head, query, d_v); None if it isn't there."""
        found = self.hooks.get("hook_z")
        return None if found is None or found.ndim != 3 else found.transpose(0, 1)

    @property
    def has_terms(self) -> bool:
        """Whether queries, keys and values are there."""
        return "hook_v" in self.hooks and any(q in self.hooks and k in self.hooks for q, k, _ in _PAIRS)


@dataclass(frozen=True)
class Fit:
    """A layer's call, its distance from the weights that came, and whether its mask only follows their zeros."""

    call: Attention
    far: float
    by_zeros: bool = False


def read_cache(cache: Any, batch: int | None) -> tuple[list[CachedLayer], tuple[str, ...]]:
    """Return each layer with weights, and the names of those that no layer's name fits."""
    entries = getattr(cache, "cache_dict", cache)
    if not isinstance(entries, Mapping):
        raise ShapeError(f"cache must be an ActivationCache or a dict of its tensors; got {type(cache).__name__}")
    if wrong := [name for name in cast("Mapping[object, Any]", entries) if not isinstance(name, str)]:
        raise ShapeError(f"the cache's names must be str, such as blocks.0.attn.hook_pattern; got {wrong[0]!r:.40}")
    hooks = cast("Mapping[str, Any]", entries)
    patterns = [name for name in hooks if name.endswith(_PATTERN)]
    layers = [layer for name in patterns if (layer := _layer(hooks, name, batch)) is not None]
    if not layers:
        named = ", ".join(patterns[:3]) or "no name that ends with hook_pattern"
        raise TraceError(
            f"the cache has no blocks.{{layer}}.attn.hook_pattern ({named}); keep it with names_filter, and load the "
            'Bridge with attn_implementation "eager"'
        )
    return layers, tuple(name.removesuffix(f".{_PATTERN}") for name in patterns if _HOOK.fullmatch(name) is None)


def _layer(hooks: Mapping[str, Any], name: str, batch: int | None) -> CachedLayer | None:
    """Return one layer's tensors without their batch axis."""
    if (found := _HOOK.fullmatch(name)) is None:
        return None
    side, number, module = found.groups()
    weights = floating(hooks[name], name)
    if weights.ndim not in (3, 4):
        raise ShapeError(f"{name} must have the shape (batch, head, query, key); got {tuple(weights.shape)}")
    batched = weights.ndim == 4
    where = name.removesuffix(_PATTERN)
    own = {key[len(where) :]: one for key, one in hooks.items() if key.startswith(where) and key != name}
    rows = {
        key: (row_of_batch(one, batch, f"{where}{key}") if one.ndim == 4 else one).detach()
        for key, one in own.items()
        if "." not in key and isinstance(one, Tensor) and one.is_floating_point() and one.ndim == 3 + batched
    }
    tables = {
        key: (one[min(batch or 0, len(one) - 1)] if one.ndim == 3 else one).detach()
        for key in ("hook_cos", "hook_sin")
        if isinstance(one := own.get(key), Tensor) and len(one)
    }
    terms = ("hook_v", *(one for pair in _PAIRS for one in pair[:2]))
    if broken := [key for key in terms if key in rows and not bool(rows[key].isfinite().all())]:
        raise TraceError(f"{where}{broken[0]} has numbers that aren't finite")
    stream = "cross" if module == "cross_attn" else side
    kept = row_of_batch(weights, batch, name) if batched else weights
    return CachedLayer(where, int(number), stream, kept.detach().clone(), rows | tables)


def streams_of(layers: Sequence[CachedLayer], stream: str | None) -> dict[str, list[CachedLayer]]:
    """Group layers by stream, in their order; a lone stack's is decided by its weights."""
    found: dict[str, list[CachedLayer]] = {}
    lone = [layer for layer in layers if layer.stream is None]
    closed = bool(lone) and causal_by_weights([layer.weights for layer in lone]) is not None
    for layer in sorted(layers, key=lambda one: one.number):
        found.setdefault(layer.stream or stream or ("decoder" if closed else "encoder"), []).append(layer)
    return {name: found[name] for name in ("encoder", "decoder", "cross") if name in found} | found


def numbers_of_cache(cache: Any, layers: Sequence[CachedLayer]) -> KeptLayers:
    """Return the layers' numbers, among all of the model's layers if the cache still has its model."""
    numbers = [layer.number for layer in layers]
    blocks = getattr(getattr(cache, "model", None), "blocks", None) if layers[0].where.startswith("blocks.") else None
    if blocks is None:
        return KeptLayers.all_of(numbers)
    attending = {place for place, block in enumerate(blocks) if hasattr(block, "attn")} | set(numbers)
    rest = [place for place in range(len(blocks)) if place not in attending]
    every = KeptLayers.all_of(sorted(attending), rest)
    return KeptLayers(KeptLayers.all_of(numbers).numbers, every.every, every.without)


def fit(layer: CachedLayer, cache: Any, terms: bool, scale: float | None, softcap: float | None) -> Fit:
    """Make a layer's call.

    Raises:
        TraceError: with `terms`, no queries and keys there give its weights.
    """
    weights, name = layer.weights, layer.where + _PATTERN
    closed = causal_by_weights([weights])
    plain = call_of_weights(weights, closed, name)
    if not terms:
        return Fit(plain, 0.0)
    cap = _softcap(cache) if softcap is None else softcap
    best: Fit | None = None
    rest = product(_scales(layer, cache, scale), _masks(layer, closed))
    for query, key, factor, mask, by_zeros in _candidates(layer, list(rest)):
        call = attend(query, key, layer.hooks["hook_v"].transpose(0, 1).clone(), mask, scale=factor, softcap=cap)
        if call.shape != weights.shape:
            raise ShapeError(f"queries and keys of {layer.where} give weights {call.shape}; {name} has {weights.shape}")
        found = Fit(call, weights_differ(call, layer), by_zeros)
        best = found if best is None or found.far < best.far else best
        if found.far <= BOUNDS[weights.dtype]:
            break
    if best is None or best.far > (_HALF_FAR if weights.dtype in (torch.float16, torch.bfloat16) else _FAR):
        raise _disagreement(layer, best)
    return best


def weights_differ(call: Attention, layer: CachedLayer) -> float:
    """Return the largest difference of a call's weights from the layer's, relative to its largest."""
    some = sampled(call.shape)
    part, theirs = (call, layer.weights) if some is None else (call.rows(some.tolist()), layer.weights[:, some])
    return differing(part.weights, theirs)


def output_differs(call: Attention, layer: CachedLayer) -> float | None:
    """Return the same of the heads' outputs; None without hook_z."""
    if layer.mixed is None:
        return None
    some = sampled(call.shape)
    part, theirs = (call, layer.mixed) if some is None else (call.rows(some.tolist()), layer.mixed[:, some])
    return differing(part.output, theirs)


def _candidates(
    layer: CachedLayer, rest: Sequence[tuple[float, tuple[Tensor | None, bool]]]
) -> Iterator[tuple[Tensor, Tensor, float, Tensor | None, bool]]:
    """Yield each pair of queries and keys, heads first, with each scale and mask."""
    tables = layer.hooks.get("hook_cos"), layer.hooks.get("hook_sin")
    for query_name, key_name, heads_first in _PAIRS:
        query, key = layer.hooks.get(query_name), layer.hooks.get(key_name)
        if query is None or key is None:
            continue
        if not heads_first:
            query, key = query.transpose(0, 1), key.transpose(0, 1)
        pairs = [(query.clone(), key.clone())]
        if "rot" not in query_name and all(one is not None and len(one) == key.shape[-2] for one in tables):
            pairs.insert(0, rotated(query, key, tables, None))
        yield from ((*pair, factor, *mask) for pair, (factor, mask) in product(pairs, rest))


def _scales(layer: CachedLayer, cache: Any, scale: float | None) -> Iterator[float]:
    """Yield the factors that the scores may have: the one passed, else the model's own, else 1/√d_k."""
    if scale is not None:
        yield scale
        return
    model = getattr(cache, "model", None)
    config = getattr(model, "cfg", None)
    divisor = getattr(config, "attn_scale", None)
    if not getattr(config, "use_attn_scale", True):
        yield 1.0
    elif isinstance(divisor, float) and divisor > 0:
        yield 1 / divisor
    blocks = getattr(model, layer.where.split(".")[0], None)
    module = getattr(blocks[layer.number], layer.where.split(".")[2], None) if blocks is not None else None
    own = getattr(getattr(module, "original_component", None), "scaling", None)
    if isinstance(own, float):
        yield own
    width = next(layer.hooks[name].shape[-1] for name, _, _ in _PAIRS if name in layer.hooks)
    yield width**-0.5


def _softcap(cache: Any) -> float | None:
    """Return the model's soft cap on scores, if it has one."""
    cap = getattr(getattr(getattr(cache, "model", None), "cfg", None), "attn_scores_soft_cap", None)
    return cap if isinstance(cap, float) and cap > 0 else None


def _masks(layer: CachedLayer, closed: Tensor | None) -> Iterator[tuple[Tensor | None, bool]]:
    """Yield masks that fit the weights, each with whether it only follows their zeros."""
    scores = layer.hooks.get("hook_attn_scores")
    if scores is not None and scores.shape == layer.weights.shape:
        allowed = scores > torch.finfo(scores.dtype).min / 2
        # Some models' hook has other numbers: scores before the mask, or the weights themselves.
        shares = scores.double().masked_fill(~allowed, -torch.inf).softmax(-1).nan_to_num(0)
        if differing(shares, layer.weights) <= BOUNDS[layer.weights.dtype]:
            yield _of_one_head(allowed), False
    yield closed, False
    if not bool((layer.weights > 0).all()):
        yield _of_one_head(layer.weights > 0), True


def _of_one_head(allowed: Tensor) -> Tensor | None:
    """Return a mask of all heads once if it is the same for each; None if nothing is blocked."""
    if bool(allowed.all()):
        return None
    return allowed[0] if bool((allowed == allowed[:1]).all()) else allowed


def _disagreement(layer: CachedLayer, best: Fit | None) -> TraceError:
    """Name weights that no queries and keys there give."""
    far = "" if best is None else f" by {best.far:.2g} of its largest weight"
    how = "" if best is None else f" (scale {best.call.scale:.4g}, softcap {best.call.softcap})"
    return TraceError(
        f"{layer.where}{_PATTERN} differs{far} from the softmax of its queries and keys{how}. A bias such as ALiBi "
        "isn't in the cache, and a hook may have changed the weights; cache hook_rot_q and hook_rot_k too, pass scale= "
        'or softcap=, or pass what="weights" to take the weights alone'
    )


def trace_of_cache(
    kind: type[Made],
    cache: Any,
    named: tuple[Labels, Labels, str | None],
    batch: int | None,
    what: str,
    numbers: tuple[float | None, float | None],
    name: str | None,
) -> Made:
    """Make a trace of a cache; `numbers` are the scale and the soft cap, if named."""
    tokens, target, stream = named
    if what not in ("all", "weights"):
        raise ShapeError(f'unknown what {what!r}; choose "all" or "weights"')
    if stream is not None and stream not in STREAMS:
        raise TraceError(f"unknown stream {stream!r}; choose {', '.join(STREAM_KINDS)}")
    layers, left_out = read_cache(cache, batch)
    terms = what == "all" and all(layer.has_terms for layer in layers)
    found = {
        stream: [(layer, fit(layer, cache, terms, *numbers)) for layer in some]
        for stream, some in streams_of(layers, stream).items()
    }
    stacks = {
        stream: Stack(
            tuple(one.call for _, one in some),
            *_tokens(stream, [layer for layer, _ in some], (tokens, target), several="encoder" in found),
            numbers_of_cache(cache, [layer for layer, _ in some]),
        )
        for stream, some in found.items()
    }
    last = next(stack for stream, stack in reversed(stacks.items()) if stream != "cross" or len(stacks) == 1).calls[-1]
    pairs = [(layer, one.call) for some in found.values() for layer, one in some]
    fits = [one for some in found.values() for _, one in some]
    origin = origin_of(name or _name(cache), last, _notes(cache, terms, what, fits))
    origin = replace(origin, versions={**origin.versions, **version_of(cache)}).leaving_out(left_out)
    return trace_of_stacks(kind, stacks, output_of(last), origin, lambda: _compared(pairs, terms))


def _tokens(
    stream: str, layers: Sequence[CachedLayer], labels: tuple[Labels, Labels], several: bool
) -> tuple[Tokens, Tokens]:
    """Return a stream's tokens; refuse layers of different texts."""
    shapes = {tuple(layer.weights.shape[-2:]) for layer in layers}
    ((queries, keys), *others) = sorted(shapes)
    if others or (queries != keys and stream != "cross"):
        phrase = ", ".join(f"{one} × {other}" for one, other in sorted(shapes))
        raise ShapeError(
            f"all layers of the {stream} need one text that attends to itself; got (query, key) = {phrase}. Run the "
            "whole text at once, without past_kv_cache"
        )
    tokens, target = labels
    own = target if stream == "cross" or (stream == "decoder" and several) else tokens
    asking = tokens_of(own, queries, f"tokens of the {stream}")
    return asking, tokens_of(tokens, keys, "tokens of the encoder") if stream == "cross" else asking


def _name(cache: Any) -> str:
    """Return the name of the cache's model."""
    name = getattr(getattr(getattr(cache, "model", None), "cfg", None), "model_name", None)
    return name if isinstance(name, str) and name else "a TransformerLens cache"


def _notes(cache: Any, terms: bool, what: str, fits: Sequence[Fit]) -> tuple[str, ...]:
    """Say where the numbers are from, and what isn't known of them."""
    parts = "queries, keys, values and weights" if terms else "weights"
    notes = [f"The {parts} are those of a {type(cache).__name__} of TransformerLens; no model ran here."]
    if what == "all" and not terms:
        notes.append("The cache lacks hook_q, hook_k or hook_v of some layer, so the weights were taken alone.")
    if any(one.by_zeros for one in fits):
        notes.append("Cells whose weight is 0 are taken as blocked, since the cache has no scores that show its mask.")
    return tuple(notes)


def _compared(pairs: Sequence[tuple[CachedLayer, Attention]], terms: bool) -> Fidelity:
    """Compare the weights, and the heads' outputs, with the cache's own."""
    if not terms:
        weights = [layer.weights for layer, _ in pairs]
        return compared_with_weights([call for _, call in pairs], weights, weights_alone(weights))
    started = time.perf_counter()
    weight = max(weights_differ(call, layer) for layer, call in pairs)
    outputs = [output_differs(call, layer) for layer, call in pairs]
    output = None if None in outputs else max(one for one in outputs if one is not None)
    some = [rows for _, call in pairs if (rows := sampled(call.shape)) is not None]
    bound = max(BOUNDS[layer.weights.dtype] for layer, _ in pairs)
    heads = "hook_pattern, and its heads' outputs, hook_z" if output is not None else "hook_pattern (without hook_z)"
    reference = f"the cache's own weights, {heads}"
    seconds = time.perf_counter() - started
    return Fidelity(output, weight, bound, reference, seconds, len(some[0]) if some else None)
