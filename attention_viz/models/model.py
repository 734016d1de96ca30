"""A transformers model whose attention is ours while we look: text in, `Trace` out."""

import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from attention_viz.attention import Attention
from attention_viz.edits import Edit, check_layers
from attention_viz.errors import ShapeError, TextTooLong, UnsupportedModel, UnusableText
from attention_viz.models.comparison import compare
from attention_viz.models.probe import Anatomy, probe
from attention_viz.models.reading import Reading, count_tokens, read, token_limit, vocabulary
from attention_viz.models.recorder import Call
from attention_viz.models.running import Pass, Runner
from attention_viz.models.wiring import Wiring
from attention_viz.projection import Projection
from attention_viz.tokens import Fit, fit_text
from attention_viz.trace import Fidelity, Layer, Provenance, Trace

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["AttentionModel", "wrap"]


def wrap(hf_model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase | None" = None) -> "AttentionModel":
    """Look into a transformers model that is already in memory.

    Works on the object it is given, without a copy, and leaves its configuration as it found it. A small run decides
    at once whether the model can be recorded exactly. Others may run the model at the same time and get what they
    always get; only training has to wait, since the model is in evaluation mode while it is recorded.

    Args:
        hf_model: any transformers model of text: an encoder or a causal decoder.
        tokenizer: what turns text into its tokens; without one, use `trace_ids`.

    Raises:
        UnsupportedModel: the model's attention can't be recorded exactly.
    """
    config = getattr(hf_model, "config", None)
    if config is None:
        raise UnsupportedModel(f"wrap takes a transformers model; got {type(hf_model).__name__}, without configuration")
    name = str(getattr(config, "name_or_path", "") or type(hf_model).__name__)
    return AttentionModel.of(hf_model, tokenizer, Provenance(model=name))


@dataclass(frozen=True, eq=False)
class AttentionModel:
    """A model whose attention can be seen: made by `load` or `wrap`, safe to use from several threads.

    Attributes:
        name: the name it was loaded by.
        hf_model: the transformers model itself.
        tokenizer: what turns text into its tokens, where there is one.
        stream: "encoder" where tokens see the whole text, "decoder" where they see only what came before.
        limit: how many tokens it can read at once; None where nothing says.
    """

    name: str
    hf_model: "PreTrainedModel"
    tokenizer: "PreTrainedTokenizerBase | None"
    stream: str
    limit: int | None
    _anatomy: Anatomy
    _runner: Runner
    _provenance: Provenance

    @classmethod
    def of(
        cls, hf_model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase | None", provenance: Provenance
    ) -> "AttentionModel":
        """Probe a model and wrap it, with what is known of where it comes from."""
        runner, limit = Runner.of(hf_model), token_limit(hf_model, tokenizer)
        anatomy = probe(runner, limit)
        dtype, versions = str(hf_model.dtype).removeprefix("torch."), _versions(hf_model.device)
        provenance = replace(provenance, dtype=dtype, versions=versions)
        return cls(provenance.model, hf_model, tokenizer, anatomy.stream, limit, anatomy, runner, provenance)

    @property
    def layer_count(self) -> int:
        """How many attention layers it has."""
        return len(self._anatomy.modules)

    def trace(
        self, text: str, second_text: str | None = None, *, target: str | None = None, edits: Sequence[Edit] = ()
    ) -> Trace:
        """Run a text through the model with our attention and keep what it computed.

        Args:
            text: what to read.
            second_text: a second sentence, for encoders that read pairs.
            target: what an encoder–decoder should say; refused by every other model.
            edits: changes made inside the model, such as `Allow`.

        Raises:
            UnusableText: nothing to read in it, or no tokenizer to read it with.
            TextTooLong: more tokens than the model has positions.
            UnsupportedModel: a target for a model that has none.
        """
        if target is not None:
            raise UnsupportedModel(
                f"a target was given, and {self.name} is no encoder–decoder: its only stream is the {self.stream}"
            )
        second_text = second_text if second_text and second_text.strip() else None
        if second_text is not None and self.stream != "encoder":
            raise UnusableText(f"a second sentence was given, and {self.name} reads one text only, as every decoder")
        reading = read(self.name, self.tokenizer, text, second_text)
        self._check_ids(reading.tokens.ids)
        return self._trace(reading, edits, replace(self._provenance, text=text, second_text=second_text))

    def trace_ids(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        *,
        decoder_input_ids: Tensor | None = None,
        edits: Sequence[Edit] = (),
    ) -> Trace:
        """Run token ids through the model with our attention and keep what it computed.

        Args:
            input_ids: one row, (1, n).
            attention_mask: (1, n), 1 for real positions and 0 for padding, on either side. Padded positions stay as
                rows and columns, labelled as padding; their keys get exactly 0.
            decoder_input_ids: for encoder–decoders; refused by every other model.
            edits: changes made inside the model, such as `Allow`.

        Raises:
            ShapeError: more than one row, none, or ids and mask of different shape.
            TextTooLong: more tokens than the model has positions.
            UnsupportedModel: decoder ids for a model that has no use for them.
        """
        if decoder_input_ids is not None:
            raise UnsupportedModel(f"decoder_input_ids were given, and {self.name} is no encoder–decoder")
        if not isinstance(input_ids, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
            raise ShapeError(f"trace_ids takes a tensor of ids, (1, n); got {type(input_ids).__name__}")
        if input_ids.ndim != 2 or input_ids.shape[0] != 1 or input_ids.shape[1] == 0:
            raise ShapeError(f"trace_ids takes one row of ids, (1, n) with n ≥ 1; got {tuple(input_ids.shape)}")
        if input_ids.dtype not in (torch.int32, torch.int64):
            raise ShapeError(f"ids are whole numbers, int64 or int32; got {input_ids.dtype}")
        self._check_ids(cast("list[int]", input_ids[0].tolist()))
        reading = Reading.of_ids(input_ids, _checked_mask(input_ids, attention_mask), self.tokenizer)
        return self._trace(reading, edits, self._provenance)

    def verify(self, text: str) -> Fidelity:
        """How far the model's output with our attention is from its output without, on this text."""
        return self.trace(text).fidelity

    def fit(self, text: str, limit: int | None = None) -> Fit:
        """Which part of a text the model can read at once, and what would have to be cut.

        Args:
            text: what to read.
            limit: a lower limit than the model's own, in tokens.

        Raises:
            UnusableText: no tokenizer to read it with.
        """
        bounds = [bound for bound in (limit, self.limit) if bound is not None]
        return fit_text(text, lambda part: count_tokens(self.name, self.tokenizer, part), min(bounds, default=None))

    def projections(self, layer: int) -> Mapping[str, Projection]:
        """The learned matrices around one layer's attention, by "query", "key", "value" and "output".

        Those that were found, that is: where a model does something else between a matrix and its attention, that
        matrix is left out.

        Raises:
            ShapeError: there is no such layer.
        """
        if not 0 <= layer < self.layer_count:
            raise ShapeError(f"layer {layer} was asked for; {self.name} has layers 0 to {self.layer_count - 1}")
        return self._anatomy.wirings[layer].projections()

    def _trace(self, reading: Reading, edits: Sequence[Edit], provenance: Provenance) -> Trace:
        check_layers(edits, self.layer_count)
        inputs = self._runner.inputs(reading.tensors)
        recorded = self._runner.record(inputs, edits)
        self._check_calls(recorded.calls)
        calls = zip(recorded.calls, self._anatomy.labels, strict=True)
        layers = tuple(Layer(call.attention, label) for call, label in calls)
        tokens = {self.stream: reading.tokens}
        return Trace(
            layers={self.stream: layers},
            queries=tokens,
            keys=tokens,
            output=recorded.output,
            provenance=replace(provenance, edits=tuple(str(edit) for edit in edits)),
            measure=_measure(self._runner, inputs, None if edits else recorded, reading.real),
            complete=lambda: {self.stream: _surrounded(self._runner, inputs, edits, layers, self._anatomy.wirings)},
        )

    def _check_ids(self, ids: Sequence[int]) -> None:
        if self.limit is not None and len(ids) > self.limit:
            raise TextTooLong(self.name, len(ids), self.limit)
        known = vocabulary(self.hf_model)
        wrong = [number for number in ids if not 0 <= number < known]
        if wrong:
            raise UnusableText(f"there is a token {wrong[0]}; {self.name} knows the ids 0 to {known - 1}")

    def _check_calls(self, calls: Sequence[Call]) -> None:
        """A pass that took another way through the model than the probe did is not shown."""
        if [id(call.module) for call in calls] != [id(module) for module in self._anatomy.modules]:
            raise UnsupportedModel(
                f"{self.name} made {len(calls)} attention calls for this text where the probe saw "
                f"{len(self._anatomy.modules)}, or in another order; which layer is which can't be told"
            )


def _checked_mask(ids: Tensor, mask: Tensor | None) -> Tensor:
    """The mask of a row of ids as whole numbers; all real where there is none."""
    if mask is None:
        return torch.ones_like(ids)
    if mask.shape != ids.shape:
        raise ShapeError(f"attention_mask needs the ids' shape {tuple(ids.shape)}; got {tuple(mask.shape)}")
    if not bool(((mask == 0) | (mask == 1)).all()):
        raise ShapeError("attention_mask has 1 for real positions and 0 for padding; something else came")
    if not bool(mask.any()):
        raise UnusableText("attention_mask says that every position is padding, so there is nothing to read")
    return mask.long()


def _measure(
    runner: Runner, inputs: dict[str, Tensor], recorded: Pass | None, real: Sequence[bool] | None
) -> Callable[[], Fidelity]:
    """What makes a trace's fidelity, when it is asked for.

    Without a recorded pass to compare, the trace was edited: its model without the edits is measured instead.
    """

    def measure() -> Fidelity:
        if recorded is not None:
            return compare(recorded, runner, inputs, real)
        unedited = compare(runner.record(inputs), runner, inputs, real)
        return replace(unedited, reference=f"{unedited.reference}, before the edits")

    return measure


def _surrounded(
    runner: Runner,
    inputs: dict[str, Tensor],
    edits: Sequence[Edit],
    layers: Sequence[Layer],
    wirings: Sequence[Wiring],
) -> tuple[Layer, ...]:
    """The layers with what stands around their calls, from the same run once more.

    Where the model has changed since, the run differs and what it shows doesn't belong to the trace.
    """
    again, around = runner.record_around(inputs, edits, wirings)
    if len(again.calls) != len(layers):
        return tuple(layers)
    pairs = zip(layers, again.calls, strict=True)
    return tuple(
        around.layer(number, layer.attention, layer.label) if _alike(layer.attention, call.attention) else layer
        for number, (layer, call) in enumerate(pairs)
    )


def _alike(one: Attention, other: Attention) -> bool:
    """Whether two calls had the same inputs, up to the order in which threads add."""
    terms = ((one.query, other.query), (one.key, other.key), (one.value, other.value))
    return all(a.shape == b.shape and torch.allclose(a, b, rtol=1e-3, atol=1e-5) for a, b in terms)


def _versions(device: torch.device) -> dict[str, str]:
    packages = {name: version(name) for name in ("torch", "transformers")}
    # Ours is read from the package in use, which may run from its source without being installed.
    own = str(vars(sys.modules[__name__.partition(".")[0]])["__version__"])
    return {"attention_viz": own, **packages, "python": platform.python_version(), "device": device.type}
