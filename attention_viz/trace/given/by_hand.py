"""Traces made by hand: of queries, keys and values, of weights alone, or of other packages' results."""

from collections.abc import Sequence
from typing import Any, Literal, Self

from torch import Tensor

from attention_viz.operation.layouts import heads_first
from attention_viz.operation.rope import Positions
from attention_viz.trace.given.from_cache import trace_of_cache
from attention_viz.trace.given.from_outputs import read_outputs, trace_of_outputs
from attention_viz.trace.given.from_tensors import (
    Labels,
    Layers,
    calls_of_qkv,
    calls_of_weights,
    compared,
    compared_with_weights,
    noted,
    trace_of_calls,
)
from attention_viz.trace.trace_data import TraceData


class GivenTrace(TraceData):
    """A trace that other code's tensors make."""

    @classmethod
    def from_qkv(
        cls,
        query: Layers,
        key: Layers,
        value: Layers,
        allowed: Tensor | Sequence[Tensor | None] | None = None,
        *,
        scale: float | None = None,
        bias: Tensor | Sequence[Tensor | None] | None = None,
        softcap: float | None = None,
        sinks: Tensor | Sequence[Tensor | None] | None = None,
        labels: Labels = None,
        key_labels: Labels = None,
        stream: str | None = None,
        batch: int | None = None,
        layout: str | None = None,
        d_k: int | None = None,
        rope: Positions | Sequence[Positions] = None,
        positions: Sequence[int] | Tensor | None = None,
        name: str = "your own queries, keys and values",
    ) -> Self:
        """Make a trace from the queries, keys and values of your own code; our attention computes the rest.

        Its fidelity compares with torch's attention on the same numbers, or, with a soft cap or sinks, which torch's
        attention lacks, with the same formula in float64.

        Args:
            query: (head, query, d_k), (query, d_k) or (batch, head, query, d_k); or a list with one per layer.
            key: (head, key, d_k) and so on; key and value may have fewer heads than query.
            value: (head, key, d_v) and so on.
            allowed: True if a query may attend to a key, as in `attend`; one for all layers, or a list.
            scale: multiplies the scores; 1/√d_k by default.
            bias: added to the scaled scores; one for all layers, or a list.
            softcap: bounds the scaled scores to ±softcap, smoothly.
            sinks: one extra logit per head; one tensor for all layers, or a list.
            labels: one text per query; positions by default.
            key_labels: one text per key, if the keys are other tokens than the queries.
            stream: "encoder", "decoder" or "cross"; by default "cross" if the keys are other tokens, "decoder" if no
                query may attend to later tokens, else "encoder".
            batch: the row of a batch, from 0; required if there are several.
            layout: "bhsd" for (batch, head, position, width), "bshd" for (batch, position, head, width), "flat" for
                (batch, position, head · width), each with or without its batch axis. By default "bhsd"; ambiguous
                shapes are refused.
            d_k: the width of a head of a flat query or key; a flat value has as many heads as its key.
            rope: rotary positions to apply first, if queries and keys were saved before it: an `av.Rope`, or the
                model's own (cos, sin), each (key, dim); or a list with one per layer, None for a layer without. By
                default, they were applied already. Nothing compares them with the run's own, and a note says so.
            positions: a whole number per key, for an `av.Rope`; 0, 1, 2 … by default. Queries have those of the last
                keys.
            name: the name in figures and files.

        Raises:
            ShapeError: shapes, dtypes or positions don't fit together, or the layout or batch row is missing.
            TraceError: wrong number of labels, or no such stream.
        """
        query, key, value = heads_first(query, key, value, layout, d_k, (labels, key_labels, stream), allowed)
        numbers = {"scale": scale, "softcap": softcap}
        calls = calls_of_qkv(query, key, value, allowed, bias, sinks, batch, rope, positions, **numbers)
        return trace_of_calls(cls, calls, (labels, key_labels, stream), name, lambda: compared(calls), noted(rope))

    @classmethod
    def from_weights(
        cls,
        weights: Any,
        labels: Labels = None,
        key_labels: Labels = None,
        *,
        allowed: Tensor | Sequence[Tensor | None] | None = None,
        stream: str | None = None,
        batch: int | None = None,
        name: str = "your own weights",
    ) -> Self:
        """Make a trace from attention weights alone, such as another library's, for figures, tables and metrics.

        Anything that needs queries, keys and values (steps, norms, single heads' tensors, long texts' terms) raises an
        error. The origin of the weights is unknown, so the trace is never "verified".

        Args:
            weights: (head, query, key), one head's (query, key), or a batch's (batch, head, query, key); or a list with
                one per layer, such as transformers' `attentions`. Tensors, or anything torch converts to tensors.
            labels: one text per query; positions by default.
            key_labels: one text per key, if the keys are other tokens than the queries.
            allowed: True if a query may attend to a key. By default everywhere, since a weight of 0 isn't always
                blocked; but causal if no layer has a weight on a later token.
            stream: as in `from_qkv`.
            batch: the row of a batch, from 0; required if there are several.
            name: the name in figures and files.

        Raises:
            ShapeError: wrong shape, or the batch row is missing.
            TraceError: negative or non-finite weights, rows that sum neither to 1 nor to 0, a weight above 0 that isn't
                allowed, wrong number of labels, or no such stream.
        """
        calls, rows = calls_of_weights(weights, allowed, (labels, key_labels, stream), batch)
        return trace_of_calls(
            cls, calls, (labels, key_labels, stream), name, lambda: compared_with_weights(calls, rows)
        )

    @classmethod
    def from_outputs(
        cls,
        outputs: Any,
        tokens: Labels = None,
        target: Labels = None,
        *,
        stream: str | None = None,
        batch: int | None = None,
        layers: Sequence[int] | None = None,
        name: str | None = None,
    ) -> Self:
        """Make a trace from the output of a transformers model, or of its `generate`.

        It has the streams of `attentions`, `encoder_attentions`, `decoder_attentions` and `cross_attentions`. A
        generation's steps become whole rows: the prompt's, then one per step, along the beam of its sequence. The last
        generated token was never read, so it has no row. The limits of `from_weights` hold.

        Args:
            outputs: a `ModelOutput` or a dict with its fields, from a model with `attn_implementation="eager"` and
                `output_attentions=True`; of `generate`, also with `return_dict_in_generate=True`. Its attentions must
                be tokens by tokens: outputs of Longformer, LED, Perceiver and Swin are refused, but a dict or
                `generate` may not show their distances, latents or windows. A beam search needs `beam_indices`.
            tokens: one text per token, or `Tokens`; of an encoder–decoder, the encoder's. A generation's may have its
                last token. Ids or positions by default.
            target: the decoder's tokens in an encoder–decoder.
            stream: as in `from_qkv`, for `attentions`.
            batch: the row of a batch, or of the generated sequences, from 0; required if there are several.
            layers: the model's number of each layer with weights, in a model with other layers too; 0, 1, 2 … by
                default.
            name: the name in figures and files; the output's class by default.

        Raises:
            ShapeError: wrong shapes, a tuple without names, or the batch row is missing.
            TraceError: no weights, None in place of a layer's, weights that aren't over tokens, or a beam search
                without `beam_indices`; and as `from_weights` does.
        """
        handed = read_outputs(outputs, (tokens, target, stream), batch, layers)
        return trace_of_outputs(cls, handed, outputs, name)

    @classmethod
    def from_cache(
        cls,
        cache: Any,
        tokens: Labels = None,
        target: Labels = None,
        *,
        what: Literal["all", "weights"] = "all",
        scale: float | None = None,
        softcap: float | None = None,
        stream: str | None = None,
        batch: int | None = None,
        name: str | None = None,
    ) -> Self:
        """Make a trace from TransformerLens's `ActivationCache`, of a HookedTransformer or a TransformerBridge.

        Queries, keys and values are taken if every layer has them and they reproduce its `hook_pattern`. Fidelity
        compares the weights with `hook_pattern`, and the heads' outputs with `hook_z`. Without them, the trace has
        weights alone, as of `from_weights`.

        Args:
            cache: of `run_with_cache`; or a dict with its names and tensors.
            tokens: one text per token, such as `model.to_str_tokens(text)`; of an encoder–decoder, the encoder's.
                Positions by default.
            target: the decoder's tokens in an encoder–decoder.
            what: "weights" takes `hook_pattern` alone, such as with a bias that isn't in the cache, or after a hook.
            scale: multiplies the scores; the model's own by default, or 1/√d_k if it isn't known.
            softcap: bounds the scaled scores; the model's own by default.
            stream: as in `from_qkv`.
            batch: the row of a batch, from 0; required if there are several.
            name: the name in figures and files; the model's by default.

        Raises:
            ShapeError: wrong shapes, or the batch row is missing.
            TraceError: no `hook_pattern`, or queries and keys that give other weights; and as `from_weights` does.
        """
        return trace_of_cache(cls, cache, (tokens, target, stream), batch, what, (scale, softcap), name)
