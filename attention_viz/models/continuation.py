"""Continue a text with a decoder, token by token."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import torch

from attention_viz.edits.eviction import Evict
from attention_viz.errors import UnsupportedModel
from attention_viz.inputs.chats import continued_segments
from attention_viz.inputs.check import Inputs
from attention_viz.inputs.labelling import label_ids, with_words
from attention_viz.models.next_token import NextToken
from attention_viz.recording.stepping import Stepping
from attention_viz.recording.tracer import TokenAxes, Tracer
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Provenance, Trace
from attention_viz.trace.trace_data import behind

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase


@dataclass(frozen=True, eq=False)
class Growing:
    """A decoder that continues texts; `sha256` is of its weights file, if it has one."""

    tracer: Tracer
    inputs: Inputs
    stepping: Stepping
    sha256: str | None

    def check(self, evict: Evict | None) -> None:
        """Refuse an eviction that this model can't run faithfully."""
        if evict is not None and not self.stepping.evicts:
            raise UnsupportedModel(
                f"{self.tracer.name} can't evict keys, since its layers don't cache all keys at their own positions; "
                "use a decoder where evicting keys equals blocking them"
            )

    def check_start(self, trace: Trace, evict: Evict | None) -> None:
        """Refuse a trace that isn't this model's own run, or has another eviction."""
        origin, name = trace.provenance, self.tracer.name
        if (origin.model, origin.sha256) != (name, self.sha256):
            raise UnsupportedModel(f"{name} continues only its own traces; got one of {origin.model}")
        asked = () if evict is None else (str(evict),)
        untouched = not origin.edits and (evict is None or not origin.generated)
        if not untouched and origin.edits != asked:
            had = ", ".join(origin.edits) or "all its keys"
            raise UnsupportedModel(f"{name} continues a run only with the changes it was made with; this one had {had}")
        if origin.reading != "raw" or any(trace.query_tokens().padding):
            raise UnsupportedModel(
                f"{name} continues only a run of its own without padding; pass that, not a trace made from it"
            )
        if stored := origin.stored_in_words:
            raise UnsupportedModel(
                f"{name} needs the keys and values of a run to continue it, but of this trace {stored}"
            )
        if any(not kept.whole for kept in trace.kept.values()):
            kept = trace.kept[trace.attention_stream()]
            raise UnsupportedModel(
                f"{name} needs every layer to continue, but the trace keeps {kept}; trace without layers=…"
            )
        behind(trace).check()

    def traces(self, trace: Trace, tokens: int, evict: Evict | None, following: NextToken) -> Iterator[Trace]:
        """Yield traces, one token longer each, until the model or a stop ends the text, or the model is full."""
        read, tokenizer = trace.query_tokens(), self.tracer.tokenizer
        steps = None
        for _ in range(tokens):
            # Between two tokens whoever asks for them may do anything.
            checked = behind(trace).check()
            chosen = following.choose(trace.output_at(-1), trace.provenance.generated)
            limit = self.inputs.limit
            if chosen in end_ids(self.inputs.model) or (limit is not None and len(read) >= limit):
                return
            read = _longer(tokenizer, read, label_ids(tokenizer, [chosen]))
            edits = () if evict is None else (str(evict),)
            provenance = replace(trace.provenance.with_token(following.decoding), edits=edits)
            provenance = continued_segments(provenance, read)
            if self.stepping.exact:
                if steps is None:
                    steps = self.stepping.begin(self.tracer.record_of(trace), tokens, evict)
                steps.read(chosen)
                trace = self.tracer.trace_steps(steps.grown, read, evict, provenance, checked)
            else:
                trace = self._whole(read, provenance)
            yield trace
            if following.ends(tokenizer, read.numbers, provenance.generated):
                return

    def _whole(self, tokens: Tokens, provenance: Provenance) -> Trace:
        """Run the whole text, for a model that can't run in steps."""
        axes = TokenAxes.of_one(next(iter(self.tracer.anatomy.layers)), tokens)
        ids = torch.tensor([tokens.numbers])
        inputs = self.tracer.runner.inputs({"input_ids": ids, "attention_mask": torch.ones_like(ids)})
        return self.tracer.trace(inputs, lambda _output: axes, (), provenance)


def _longer(tokenizer: "PreTrainedTokenizerBase | None", old: Tokens, more: Tokens) -> Tokens:
    """Append tokens, which may continue a word: "un" and then "happy"."""
    found = Tokens(
        (*old.labels, *more.labels),
        (*old.numbers, *more.numbers),
        special=(*old.special, *more.special),
        padding=(*old.padding, *more.padding),
        sentence=(*old.sentence, *more.sentence),
        spelling=(*old.spelling, *more.spelling),
    )
    return with_words(tokenizer, found)


def end_ids(model: "PreTrainedModel") -> frozenset[int]:
    """Return the model's end-of-text tokens."""
    settings: Any = getattr(model, "generation_config", None)
    end_ids = getattr(settings, "eos_token_id", None)
    found = cast("list[object]", end_ids) if isinstance(end_ids, list) else [end_ids]
    return frozenset(number for number in found if isinstance(number, int))
