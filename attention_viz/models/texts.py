"""Trace, continue and batch texts and ids with a pretrained model."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar, cast

import torch
from torch import Tensor

from attention_viz.edits.edit import Edit
from attention_viz.edits.eviction import Evict
from attention_viz.errors import ShapeError, UnsupportedModel, UnusableText
from attention_viz.inputs.chats import check_messages, written_chat
from attention_viz.inputs.check import checked_mask, padded
from attention_viz.inputs.labelling import with_doubled
from attention_viz.inputs.text import InputRow, Wording, read, read_target
from attention_viz.inputs.vocabulary import random_twice
from attention_viz.models.next_token import NextToken
from attention_viz.models.parts import ModelParts
from attention_viz.recording.batches.batched_edits import batch_outputs
from attention_viz.trace.ahead import Progress
from attention_viz.trace.kept import KeptCells
from attention_viz.trace.kind import InputKind
from attention_viz.trace.trace import Provenance, Trace
from attention_viz.trace.trace_data import attach, behind

_Input = TypeVar("_Input")


def as_text(
    parts: ModelParts, text: _Input, wording: Wording, *, continues: bool = False
) -> tuple[_Input | str, Wording]:
    """Return a chat's messages as a text, for a model that reads text alone; return anything else as it is.

    Args:
        continues: whether the model continues a last message of the assistant's.
    """
    if parts.reader is not None or not isinstance(text, list | tuple):
        return text, wording
    messages = check_messages(cast("Sequence[object]", text))
    return written_chat(messages), replace(wording, chat=True, messages=messages, continues=continues)


def _origin(parts: ModelParts, text: str, reading: InputRow, wording: Wording) -> Provenance:
    layout = reading.layout
    return replace(
        parts.provenance,
        text=text,
        special_tokens=wording.special_tokens,
        chat=wording.chat,
        messages=wording.messages,
        segments=layout.segments,
        answer=layout.answer,
        notes=(*with_doubled(parts.provenance.notes, reading.tokens), *layout.notes),
    )


def trace_text(
    parts: ModelParts,
    text: str,
    second_text: str | None,
    target: str | None,
    edits: Sequence[Edit],
    keep: frozenset[int] | None,
    wording: Wording,
    progress: Progress | None,
    cells: KeptCells | None = None,
) -> Trace:
    """Trace a text, or two sentences; see `AttentionModel.trace`."""
    name, facts = parts.name, parts.facts
    if target is not None and not facts.is_encoder_decoder:
        raise UnsupportedModel(
            f"{name} isn't an encoder–decoder (its only stream is the {facts.streams[0]}); leave out target"
        )
    second_text = second_text if not isinstance(second_text, str) or second_text.strip() else None
    if second_text is not None and facts.streams != ("encoder",):
        kind = "an encoder–decoder" if facts.is_encoder_decoder else "a decoder"
        kind = "a model without softmax attention" if not parts.tracer.anatomy.streams else kind
        raise UnusableText(f"{name} is {kind}, which reads one text only; leave out the second sentence")
    reading = read(name, parts.tokenizer, text, second_text, wording, parts.inputs.limit)
    parts.inputs.check_tokens(reading.tokens)
    parts = parts.of_length(len(reading.tokens))
    provenance = replace(_origin(parts, text, reading, wording), second_text=second_text)
    if facts.is_encoder_decoder:
        produced = None if target is None else read_target(name, parts.tokenizer, target)
        return parts.answering.trace(reading, produced, edits, replace(provenance, target=target), keep, progress)
    if cells is not None:
        check_cells(parts, cells, len(reading.tokens))
        return parts.trace_row(reading, edits, provenance, keep, progress, cells)
    return _repeatable(parts, parts.trace_row(reading, edits, provenance, keep, progress))


def check_cells(parts: ModelParts, cells: KeptCells, tokens: int) -> None:
    """Refuse to keep some heads or rows of a model whose layers aren't all softmax attention over one text."""
    anatomy = parts.tracer.anatomy
    if parts.facts.is_encoder_decoder or anatomy.mixer_places or anatomy.axes or not anatomy.streams:
        raise UnsupportedModel(
            f"{parts.name} can't keep {cells} only: heads= and queries= take an encoder or a decoder whose layers all "
            "have softmax attention. Use layers="
        )
    if cells.queries is not None and cells.queries > tokens:
        raise ShapeError(f"queries keeps the last rows, at most the text's {tokens:,}; got {cells.queries:,}")


def trace_ids(
    parts: ModelParts,
    input_ids: Tensor | Sequence[int],
    attention_mask: Tensor | None = None,
    decoder_input_ids: Tensor | Sequence[int] | None = None,
    edits: Sequence[Edit] = (),
    keep: frozenset[int] | None = None,
    cells: KeptCells | None = None,
) -> Trace:
    """Trace one row of ids; see `AttentionModel.trace_ids`."""
    row = parts.inputs.row(input_ids)
    parts = parts.of_length(row.shape[1])
    reading = InputRow.of_ids(row, checked_mask(row, attention_mask), parts.tokenizer)
    takes_mask = "attention_mask" in parts.tracer.runner.named
    added = ("attention_mask",) if attention_mask is None and takes_mask else ()
    provenance = replace(parts.provenance, added=added)
    if cells is not None:
        check_cells(parts, cells, len(reading.tokens))
        return parts.trace_row(reading, edits, provenance, keep, cells=cells)
    if not parts.facts.is_encoder_decoder:
        return _repeatable(parts, parts.trace_row(reading, edits, provenance, keep))
    if decoder_input_ids is None:
        return parts.answering.trace(reading, None, edits, provenance, keep)
    return parts.answering.trace_ids(reading, decoder_input_ids, edits, provenance, keep)


def _repeatable(parts: ModelParts, trace: Trace) -> Trace:
    """Let a trace run its model's induction test."""
    return attach(trace, replace(behind(trace), repeat=lambda: repeated_random(parts)))


def repeated_random(parts: ModelParts, tokens: int | None = None, seed: int = 0) -> Trace:
    """Trace random tokens twice in a row; see `AttentionModel.repeated_random`."""
    if parts.facts.is_encoder_decoder:
        raise UnsupportedModel(
            f"{parts.name} is an encoder–decoder, which can't repeat random tokens in one text; use an encoder or a "
            "decoder"
        )
    inputs = parts.inputs
    ids = random_twice(parts.name, inputs.model, parts.tokenizer, inputs.limit, tokens, seed)
    return trace_ids(parts, ids, torch.ones_like(ids))


def trace_padded(parts: ModelParts, text: str, padding: int, edits: Sequence[Edit], wording: Wording) -> Trace:
    """Trace a text with labelled padding after it that every position can attend to."""
    ids, tokens = padded(parts.name, parts.tokenizer, text, padding, wording)
    # Gradients can't be asked of it: the model's output doesn't count padding, and the run doesn't know of any.
    stream = parts.facts.streams[0]
    return trace_ids(parts, ids, edits=edits).derived(queries={stream: tokens}, keys={stream: tokens})


def run_batch(
    parts: ModelParts, before: Trace, tries: Sequence[Sequence[Edit]], only: int | None
) -> list[Tensor] | None:
    """Run a trace's text under several lists of edits in one batch; None if it takes single runs."""
    if parts.facts.is_encoder_decoder or parts.reader is not None:
        return None
    origin = before.provenance
    if not origin.generated and not origin.messages:
        wording = Wording(origin.special_tokens, origin.chat)
        reading = read(parts.name, parts.tokenizer, origin.text or "", origin.second_text, wording)
        return batch_outputs(parts.of_length(len(reading.tokens)).tracer, reading, before, tries, only)
    # A chat, and a text that a decoder continued, are read as their ids.
    ids = torch.tensor([before.query_tokens().numbers])
    parts = parts.of_length(ids.shape[1])
    reading = InputRow.of_ids(ids, torch.ones_like(ids), parts.tokenizer)
    found = batch_outputs(parts.tracer, reading, before, tries, only)
    if found is None:
        alone = [trace_ids(parts, ids, edits=edits).output for edits in tries]
        found = alone if only is None else [one[only : only + 1] for one in alone]
    return found


def continue_text(
    parts: ModelParts, text: str, tokens: int, evict: Evict | None, following: NextToken, wording: Wording
) -> Iterator[Trace]:
    """Check the arguments at once; then trace the text, and one token more each time."""
    check_continues(parts, tokens, evict, following)
    following = following.seeded()
    reading = read(parts.name, parts.tokenizer, text, None, wording, parts.inputs.limit)
    provenance = _origin(parts, text, reading, wording)

    def traces() -> Iterator[Trace]:
        parts.inputs.check_tokens(reading.tokens)
        first = _repeatable(parts, parts.trace_row(reading, (), provenance))
        yield first
        yield from parts.growing.traces(first, tokens, evict, following)

    return traces()


def extend_trace(
    parts: ModelParts, trace: Trace, tokens: int, evict: Evict | None, following: NextToken
) -> Iterator[Trace]:
    """Continue a decoder's trace; see `AttentionModel.extend`."""
    check_continues(parts, tokens, evict, following)
    parts.growing.check_start(trace, evict)
    return parts.growing.traces(trace, tokens, evict, following.seeded(trace.provenance))


def check_continues(parts: ModelParts, tokens: int, evict: Evict | None, following: NextToken) -> None:
    """Refuse to continue a text if the model can't, or the count or the eviction is wrong."""
    if why := _why_not_continued(parts):
        raise UnsupportedModel(f"{parts.name} can't continue a text, because {why}")
    if type(tokens) is not int or tokens < 0:
        raise ShapeError(f"can't generate {tokens} tokens; give a whole number of at least 0")
    following.check(parts.name, parts.inputs.model, parts.tokenizer)
    parts.growing.check(evict)


def _why_not_continued(parts: ModelParts) -> str:
    facts = parts.facts
    if facts.reads != InputKind.TEXT:
        return f"it was wrapped to read {facts.reads.one}; for text alone, use av.wrap(model, processor.tokenizer)"
    if facts.is_encoder_decoder:
        return "it is an encoder–decoder, whose traces hold its whole output"
    if not parts.tracer.anatomy.streams:
        return "it has no softmax attention; pass the ids that model.hf_model.generate returns to model.follow"
    if facts.streams != ("decoder",):
        return f"its attention ({' and '.join(facts.streams)}) looks ahead; use a decoder"
    return parts.tracer.anatomy.no_words
