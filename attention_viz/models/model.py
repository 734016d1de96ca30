"""A transformers model whose attention is ours while we look: text in, `Trace` out."""

import functools
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from attention_viz.edits import Edit
from attention_viz.errors import ShapeError, TextTooLong, UnsupportedModel
from attention_viz.models.comparison import compare
from attention_viz.models.gate import Gate, gate_of
from attention_viz.models.probe import Anatomy, probe
from attention_viz.models.reading import Reading, count_tokens, read, token_limit
from attention_viz.models.recorder import OURS, Call, Recorder, recording
from attention_viz.tokens import Fit, Tokens, fit_text
from attention_viz.trace import Fidelity, Layer, Provenance, Trace

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["AttentionModel", "wrap"]


def wrap(hf_model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase | None" = None) -> "AttentionModel":
    """Look into a transformers model that is already in memory.

    Works on the object it is given, without a copy, and leaves its configuration as it found it. A small run decides
    at once whether the model can be recorded exactly.

    Args:
        hf_model: any transformers model of text: an encoder or a causal decoder.
        tokenizer: what turns text into its tokens; without one, use `trace_ids`.

    Raises:
        UnsupportedModel: the model's attention can't be recorded exactly.
    """
    name = str(getattr(hf_model.config, "name_or_path", "") or type(hf_model).__name__)
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
    _gate: Gate
    _provenance: Provenance

    @classmethod
    def of(
        cls, hf_model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase | None", provenance: Provenance
    ) -> "AttentionModel":
        """Probe a model and wrap it, with what is known of where it comes from."""
        gate = gate_of(hf_model)
        anatomy = probe(hf_model, functools.partial(_run, hf_model, gate))
        provenance = replace(
            provenance, dtype=str(hf_model.dtype).removeprefix("torch."), versions=_versions(hf_model.device)
        )
        limit = token_limit(hf_model, tokenizer)
        return cls(provenance.model, hf_model, tokenizer, anatomy.stream, limit, anatomy, gate, provenance)

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
                f"a target was given, and {self.name} is no encoder–decoder: it has an {self.stream} only"
            )
        reading = read(self.name, self.tokenizer, text, second_text)
        self._check_length(len(reading.tokens))
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
        if input_ids.ndim != 2 or input_ids.shape[0] != 1 or input_ids.shape[1] == 0:
            raise ShapeError(f"trace_ids takes one row of ids, (1, n) with n ≥ 1; got {tuple(input_ids.shape)}")
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        if attention_mask.shape != input_ids.shape:
            raise ShapeError(
                f"attention_mask needs the ids' shape {tuple(input_ids.shape)}; got {tuple(attention_mask.shape)}"
            )
        self._check_length(input_ids.shape[1])
        reading = Reading.of_ids(input_ids, attention_mask, self.tokenizer)
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

    def _check_length(self, count: int) -> None:
        if self.limit is not None and count > self.limit:
            raise TextTooLong(self.name, count, self.limit)

    def _trace(self, reading: Reading, edits: Sequence[Edit], provenance: Provenance) -> Trace:
        run = functools.partial(_run, self.hf_model, self._gate, reading.inputs(self.hf_model.device))
        output, calls = run(edits=edits)
        self._check_calls(calls)
        layers = tuple(Layer(call.attention, label) for call, label in zip(calls, self._anatomy.labels, strict=True))
        real = [not padded for padded in reading.tokens.padding]
        measure = _measured(calls, output, run, real if reading.padded else None) if not edits else _unedited(run, real)
        tokens: dict[str, Tokens] = {self.stream: reading.tokens}
        provenance = replace(provenance, edits=tuple(str(edit) for edit in edits))
        return Trace({self.stream: layers}, tokens, tokens, output, provenance, measure)

    def _check_calls(self, calls: Sequence[Call]) -> None:
        """A pass that took another way through the model than the probe did is not shown."""
        if [id(call.module) for call in calls] != [id(module) for module in self._anatomy.modules]:
            raise UnsupportedModel(
                f"{self.name} made {len(calls)} attention calls for this text where the probe saw "
                f"{len(self._anatomy.modules)}, or in another order; which layer is which can't be told"
            )


def _measured(
    calls: Sequence[Call], output: Tensor, run: Callable[..., tuple[Tensor, Sequence[Call]]], real: list[bool] | None
) -> Callable[[], Fidelity]:
    return lambda: compare(calls, output, lambda: run(ours=False)[0], real)


def _unedited(run: Callable[..., tuple[Tensor, Sequence[Call]]], real: list[bool]) -> Callable[[], Fidelity]:
    """An edited run has nothing to be compared with; it carries the fidelity of the same run without its edits."""

    def measure() -> Fidelity:
        output, calls = run()
        fidelity = compare(calls, output, lambda: run(ours=False)[0], real)
        return replace(fidelity, reference=f"{fidelity.reference}, before the edits")

    return measure


def _run(
    hf_model: "PreTrainedModel",
    gate: Gate,
    inputs: dict[str, Tensor],
    *,
    ours: bool = True,
    edits: Sequence[Edit] = (),
) -> tuple[Tensor, Sequence[Call]]:
    """One pass, with our attention (recorded) or with the model's own; the output without its batch axis."""
    recorder = Recorder(edits)
    token = recording.set(recorder if ours else None)
    try:
        with torch.no_grad(), gate.running(OURS if ours else "eager"):
            result = hf_model(**inputs)
    finally:
        recording.reset(token)
    return _output(result), recorder.calls


def _output(result: Any) -> Tensor:
    """Logits where the model has a head, else the last hidden state; without the batch axis."""
    for name in ("logits", "prediction_logits", "last_hidden_state"):
        tensor = getattr(result, name, None)
        if isinstance(tensor, Tensor):
            return tensor[0]
    raise UnsupportedModel(f"the model returns {type(result).__name__}, with neither logits nor a last hidden state")


def _versions(device: torch.device) -> dict[str, str]:
    packages = {name: version(name) for name in ("torch", "transformers")}
    return {"attention_viz": _own_version(), **packages, "python": platform.python_version(), "device": device.type}


def _own_version() -> str:
    import attention_viz

    return attention_viz.__version__
