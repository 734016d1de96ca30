"""Trace an encoder–decoder: its encoder's and decoder's inputs, and each step's output."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from attention_viz.edits.edit import Edit
from attention_viz.inputs.check import Inputs
from attention_viz.inputs.device import device_of
from attention_viz.inputs.labelling import tokens_of_ids
from attention_viz.inputs.text import InputRow
from attention_viz.recording.outputs.generation import answer_of, decoder_inputs, spoken_answer_of
from attention_viz.recording.runner import Pass
from attention_viz.recording.tracer import TokenAxes, Tracer
from attention_viz.trace.ahead import Progress
from attention_viz.trace.seen import NOTHING, Seen
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Provenance, Trace

if TYPE_CHECKING:
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase


@dataclass(frozen=True, eq=False)
class Answering:
    """The tracer of one encoder–decoder; `source` labels an image's or sound's positions, `every` all streams'."""

    tracer: Tracer
    inputs: Inputs
    tokenizer: "PreTrainedTokenizerBase | None"
    source: Callable[[Pass], Tokens] | None = None
    seen: Seen = NOTHING
    every: Callable[[Pass], TokenAxes] | None = None

    def trace(
        self,
        reading: InputRow,
        target: Tokens | None,
        edits: Sequence[Edit],
        provenance: Provenance,
        keep: frozenset[int] | None = None,
        progress: Progress | None = None,
    ) -> Trace:
        """Trace with the decoder's target; None for the model's own output."""
        model = self.inputs.model
        if target is not None:
            target = self._without_start(target)
            read = decoder_inputs(model, torch.tensor([target.numbers], device=device_of(model)))
            return self._trace(reading, read, target, edits, provenance, keep, progress)
        say = answer_of if self.source is None else spoken_answer_of
        read, answer = say(self.tracer.runner, self._of(reading), self.inputs.target_limit)
        ids = [int(number) for number in answer[0]]
        text = None if self.tokenizer is None else self.tokenizer.decode(ids, skip_special_tokens=True)
        described = replace(provenance, target=cast("str | None", text), generated=len(ids))
        return self._trace(reading, read, tokens_of_ids(self.tokenizer, ids), edits, described, keep, progress)

    def trace_ids(
        self,
        reading: InputRow,
        read: Tensor | Sequence[int],
        edits: Sequence[Edit],
        provenance: Provenance,
        keep: frozenset[int] | None = None,
    ) -> Trace:
        """Trace with the decoder's input ids; the last step predicts the model's own choice."""
        return self._trace(reading, read, None, edits, provenance, keep)

    def _trace(
        self,
        reading: InputRow,
        read: Tensor | Sequence[int],
        produced: Tokens | None,
        edits: Sequence[Edit],
        provenance: Provenance,
        keep: frozenset[int] | None = None,
        progress: Progress | None = None,
    ) -> Trace:
        read = self.inputs.row(read, "decoder ids")
        known = tokens_of_ids(self.tokenizer, [int(number) for number in read[0]])

        def axes(recorded: Pass) -> TokenAxes:
            source = reading.tokens if self.source is None else self.source(recorded)
            said = self._produced(known, recorded.output[:]) if produced is None else produced
            merged = self.tracer.anatomy.merged
            pair = TokenAxes.of_merged(source, known) if merged else TokenAxes.of_pair(source, known, said)
            if self.every is None:
                axes = self.tracer.anatomy.axes.items()
                return pair.with_slots({one: own.of_text(pair.queries[one], pair.keys[one]) for one, own in axes})
            return pair.within(self.every(recorded))

        # All of it is to be read, said outright: some models take the token that pads for padding wherever it stands.
        answer = {"decoder_input_ids": read, "decoder_attention_mask": torch.ones_like(read)}
        inputs = {**self._of(reading), **self.tracer.runner.inputs(answer)}
        if "decoder_attention_mask" in inputs:
            provenance = replace(provenance, added=(*provenance.added, "decoder_attention_mask"))
        return self.tracer.trace(inputs, axes, edits, provenance, keep, progress, self.seen)

    def _of(self, reading: InputRow) -> dict[str, Tensor]:
        return self.tracer.runner.inputs(reading.tensors)

    def _without_start(self, target: Tokens) -> Tokens:
        """Drop the decoder's start tokens, which some tokenizers add to a target."""
        start = getattr(self.inputs.model.config, "decoder_start_token_id", None)
        if self.source is None or target.numbers[0] != start:
            return target
        return tokens_of_ids(self.tokenizer, target.numbers[1:])

    def _produced(self, read: Tokens, output: Tensor) -> Tokens:
        if not self.tracer.anatomy.no_words:
            return tokens_of_ids(self.tokenizer, [*read.numbers[1:], int(output[-1].argmax())])
        # Without a head nobody knows what the last step would produce.
        following = tokens_of_ids(self.tokenizer, read.numbers[1:])
        return Tokens(
            (*following.labels, "…"),
            (*following.numbers, -1),
            words=(*following.words, None),
            special=(*following.special, False),
            spelling=(*following.spelling, "text"),
        )
