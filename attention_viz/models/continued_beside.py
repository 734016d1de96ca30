"""Continue a text beside images, token by token, each with a run of the whole."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from attention_viz.edits.eviction import Evict
from attention_viz.errors import ShapeError, UnsupportedModel, UnusablePicture, UnusableText
from attention_viz.inputs.chats import continued_segments
from attention_viz.inputs.check import placeholders
from attention_viz.inputs.media.beside import IDS, Messages, marks_in
from attention_viz.inputs.media.readers import InputField
from attention_viz.inputs.media.video import Video
from attention_viz.inputs.text import Wording
from attention_viz.models.continuation import end_ids
from attention_viz.models.media import (
    BesideText,
    MediaRun,
    check_reads_video,
    check_special_tokens,
    trace_media,
    trace_tensors,
)
from attention_viz.models.next_token import NextToken
from attention_viz.models.parts import ModelParts
from attention_viz.recording.layout.placeholders import Placeholders
from attention_viz.trace.decoding import Decoding
from attention_viz.trace.kind import InputKind
from attention_viz.trace.trace import Trace
from attention_viz.trace.trace_data import attach, behind

if TYPE_CHECKING:
    from attention_viz.recording.gradients import ModelRun

# Kinds of token by which models decide what attends ahead; one of them leaves a new token to later rows alone.
_KINDS = "token_type_ids"
# Sizes of images, which have as many entries as some short texts.
_OF_IMAGES = ("_thw", "_hws", "_hw", "_sizes", "_shapes", "aspect_ratio_ids")


def continue_beside(
    parts: ModelParts,
    text: str | Messages,
    pictures: BesideText,
    tokens: int,
    evict: Evict | None,
    following: NextToken,
    wording: Wording,
) -> Iterator[Trace]:
    """Check the arguments at once; then trace the text with its images, and one token more each time."""
    check_special_tokens(wording)
    if isinstance(pictures, Video):
        check_reads_video(parts)
    continued = _Continued(parts, following.seeded())
    continued.check(tokens, evict)

    def traces() -> Iterator[Trace]:
        first = trace_media(parts, text, pictures, None, None, (), None, wording)
        yield first
        yield from continued.traces(first, tokens)

    return traces()


def extend_beside(
    parts: ModelParts, trace: Trace, tokens: int, evict: Evict | None, following: NextToken
) -> Iterator[Trace]:
    """Continue a trace of a text with images; see `AttentionModel.extend`."""
    continued = _Continued(parts, following.seeded(trace.provenance))
    continued.check(tokens, evict)
    continued.check_start(trace)
    return continued.traces(trace, tokens)


def follow_beside(
    parts: ModelParts, ids: Tensor, prompt: int, attention_mask: Tensor | None, tensors: Mapping[str, Tensor]
) -> Trace:
    """Trace a prompt with its images, then it and the ids after it in one run; see `AttentionModel.follow`."""
    others = placeholders(parts.inputs.model)
    if wrong := [one for one in ids[0, prompt:].tolist() if one in others]:
        raise UnusableText(
            f"token {wrong[0]} after the prompt is a placeholder for {others[wrong[0]]}; set prompt= to end after it"
        )
    named = {IDS: ids[:, :prompt], "attention_mask": attention_mask, **tensors}
    first = trace_tensors(parts, {name: one for name, one in named.items() if one is not None}, ())
    return _Continued(parts, NextToken(Decoding("given"))).follow(first, ids[0, prompt:].tolist())


@dataclass(frozen=True, eq=False)
class _Continued:
    """A model that continues a text beside images."""

    parts: ModelParts
    following: NextToken

    def check(self, tokens: int, evict: Evict | None) -> None:
        """Refuse a model that writes no words, a wrong count, or an eviction."""
        if self.parts.facts.reads is not InputKind.BESIDE:
            raise UnusablePicture(f"{self.parts.name} reads no text with an image; leave out picture")
        if evict is not None:
            raise UnsupportedModel(f"{self.parts.name} can't evict keys of a text with an image; leave out evict")
        if why := self.parts.tracer.anatomy.no_words:
            raise UnsupportedModel(f"{self.parts.name} can't continue a text, because {why}")
        if type(tokens) is not int or tokens < 0:
            raise ShapeError(f"can't generate {tokens} tokens; give a whole number of at least 0")
        self.following.check(self.parts.name, self.parts.inputs.model, self.parts.tokenizer)

    def check_start(self, trace: Trace) -> None:
        """Refuse a trace that isn't this model's own whole run without edits."""
        origin, name = trace.provenance, self.parts.name
        if (origin.model, origin.sha256) != (name, self.parts.provenance.sha256):
            raise UnsupportedModel(f"{name} continues only its own traces; got one of {origin.model}")
        if origin.edits or origin.reading != "raw" or any(not kept.whole for kept in trace.kept.values()):
            raise UnsupportedModel(f"{name} continues a text with an image only from a whole run without edits")
        behind(trace).check()

    def traces(self, trace: Trace, tokens: int) -> Iterator[Trace]:
        """Yield traces, one token longer each, until the model ends the text or is full."""
        kind: int | None = None
        for _ in range(tokens):
            behind(trace).check()
            inputs = cast("ModelRun", behind(trace).run).inputs
            chosen, limit = self._chosen(trace), self.parts.inputs.limit
            if chosen in end_ids(self.parts.inputs.model) or (limit is not None and inputs[IDS].shape[1] >= limit):
                return
            kind, trace = self._grown(trace, inputs, [chosen], kind)
            yield trace
            ids = [*inputs[IDS][0].tolist(), chosen]
            if self.following.ends(self.parts.tokenizer, ids, trace.provenance.generated):
                return

    def follow(self, trace: Trace, ids: Sequence[int]) -> Trace:
        """Return the trace of one run with these ids after the prompt's."""
        return self._grown(trace, cast("ModelRun", behind(trace).run).inputs, ids, None)[1] if ids else trace

    def _grown(
        self, trace: Trace, inputs: Mapping[str, Tensor], ids: Sequence[int], kind: int | None
    ) -> tuple[int, Trace]:
        """Run the text with more tokens, of a kind that only later rows attend to; None tries both."""
        for one in (0, 1) if kind is None else (kind,):
            found = self._longer(trace, inputs, ids, one)
            if kind is not None or _is_alone(found, len(ids)):
                return one, found
        raise UnsupportedModel(
            f"{self.parts.name} can't continue a text with an image: earlier positions attend to a new token"
        )

    def _chosen(self, trace: Trace) -> int:
        """Return the next token, never a placeholder, since these need another image."""
        never = placeholders(self.parts.inputs.model)
        return self.following.choose(trace.output_at(-1), trace.provenance.generated, never)

    def _longer(self, trace: Trace, inputs: Mapping[str, Tensor], ids: Sequence[int], kind: int) -> Trace:
        """Run the text with more tokens."""
        tensors = {name: _lengthened(name, one, inputs[IDS].shape, ids, kind) for name, one in inputs.items()}
        run = MediaRun(self.parts, InputField(tensors), tensors, self._placeholders(trace, inputs))
        provenance = trace.provenance
        for _ in ids:
            provenance = provenance.with_token(self.following.decoding)
        longer = self.parts.tracer.trace(tensors, run.axes, (), provenance, seen=trace.seen)
        if provenance.answer is None:
            return longer
        segments = continued_segments(provenance, longer.query_tokens(longer.text_stream))
        return attach(longer.derived(provenance=segments), behind(longer))

    def _placeholders(self, trace: Trace, inputs: Mapping[str, Tensor]) -> Placeholders:
        """Return the trace's placeholders with their measured rectangles."""
        regions = trace.query_tokens(trace.streams[-1]).regions
        marks = tuple(marks_in(self.parts.inputs.model, inputs[IDS]))
        images, heard = 1 + len(trace.seen.others), trace.seen.sound is not None
        tower = trace.query_tokens("picture").regions if "picture" in trace.streams else ()
        return Placeholders(marks, tuple(regions[at] for at in marks), "", tower, images, heard)


def _lengthened(name: str, tensor: Tensor, like: torch.Size, ids: Sequence[int], kind: int) -> Tensor:
    """Return a tensor with entries for more tokens; others than rows of tokens stay."""
    if tensor.shape != like or name.startswith("pixel") or name.endswith(_OF_IMAGES):
        return tensor
    if name == IDS:
        return torch.cat([tensor, tensor.new_tensor([list(ids)])], dim=1)
    last = tensor[:, -1:].expand(-1, len(ids))
    more = {"attention_mask": 1}.get(name, kind if name.endswith(_KINDS) else None)
    return torch.cat([tensor, last if more is None else torch.full_like(last, more)], dim=1)


def _is_alone(trace: Trace, more: int) -> bool:
    """Return whether no position attends to a later one among the last ones."""
    stream = trace.streams[-1]
    calls = (trace.attention(layer, stream) for layer in trace.layer_numbers(stream))
    return not any(bool(call.weights[:, :-1, -more:].triu(more - call.shape[-1] + 1).any()) for call in calls)
