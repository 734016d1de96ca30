"""Hold a pretrained model's parts: its runner, its input checks and its known facts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from attention_viz.edits.edit import Edit
from attention_viz.errors import UnsupportedModel
from attention_viz.inputs.check import Inputs
from attention_viz.inputs.device import device_of
from attention_viz.inputs.media.beside import BesideReader
from attention_viz.inputs.media.readers import Reader
from attention_viz.inputs.text import InputRow, token_limit
from attention_viz.models.continuation import Growing
from attention_viz.models.encoder_decoder import Answering
from attention_viz.protocol.facts import ModelFacts
from attention_viz.recording.layout.beside_laid_out import BesideLaidOut, LaidOut, laid_out_of
from attention_viz.recording.probe import Anatomy, probe
from attention_viz.recording.runner import Runner, versions
from attention_viz.recording.sparse.lengths import full_limit, kept_sparse, whole_blocks
from attention_viz.recording.stepping import Stepping
from attention_viz.recording.tracer import TokenAxes, Tracer
from attention_viz.trace.ahead import Progress
from attention_viz.trace.kept import KeptCells
from attention_viz.trace.kind import SLOT_STREAMS, InputKind
from attention_viz.trace.once import once
from attention_viz.trace.trace import Provenance, Trace

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase


@dataclass(frozen=True, eq=False)
class ModelParts:
    """A model's parts.

    Attributes:
        provenance: the part that holds for every input.
        laid_out: the part of an image or sound at each position; None if unknown.
    """

    tracer: Tracer
    inputs: Inputs
    provenance: Provenance
    facts: ModelFacts
    reader: Reader | None = None
    laid_out: LaidOut | BesideLaidOut | None = None
    beyond: "Beyond | None" = None

    @classmethod
    def probed(
        cls,
        hf_model: "PreTrainedModel",
        tokenizer: "PreTrainedTokenizerBase | None",
        provenance: Provenance,
        reader: Reader | None,
    ) -> "ModelParts":
        """Probe a model with a few tokens, and keep the findings."""
        limit, full = token_limit(hf_model, tokenizer), full_limit(hf_model)
        if full is None or (limit is not None and limit <= full):
            return _probed(hf_model, tokenizer, provenance, reader, limit)
        limit = whole_blocks(hf_model, limit)
        beyond = Beyond(full, kept_sparse(hf_model), tokenizer, provenance, limit)
        short = _probed(hf_model, tokenizer, provenance, reader, full)
        return replace(short, inputs=replace(short.inputs, limit=limit), beyond=beyond)

    def of_length(self, tokens: int) -> "ModelParts":
        """Return the parts for a text with this number of tokens."""
        if self.beyond is None or tokens <= self.beyond.full:
            return self
        found = self.beyond.parts
        runner = replace(found.tracer.runner, door=self.tracer.runner.door)
        return replace(found, tracer=replace(found.tracer, runner=runner))

    @property
    def name(self) -> str:
        """The name it was loaded by."""
        return self.tracer.name

    @property
    def tokenizer(self) -> "PreTrainedTokenizerBase | None":
        """The tokenizer; None if there is none."""
        return self.tracer.tokenizer

    @property
    def answering(self) -> Answering:
        """The tracer for texts of an encoder–decoder."""
        return Answering(self.tracer, self.inputs, self.tokenizer)

    @once
    def growing(self) -> Growing:
        """The continuation of a decoder's traces."""
        if self.facts.adds_tokens:
            raise UnsupportedModel(f"{self.name} adds tokens of its own to a text, which can't be continued here")
        stepping = Stepping(self.tracer.runner, self.tracer.anatomy, self.inputs.limit)
        return Growing(self.tracer, self.inputs, stepping, self.provenance.sha256)

    def trace_row(
        self,
        reading: InputRow,
        edits: Sequence[Edit],
        provenance: Provenance,
        keep: frozenset[int] | None = None,
        progress: Progress | None = None,
        cells: KeptCells | None = None,
    ) -> Trace:
        """Trace one row of tokens through a model with one stream of words."""
        added = max((one.queries.before for one in self.tracer.anatomy.axes.values() if one.queries.rest), default=0)
        provenance = provenance.after(added)
        axes, inputs = (
            TokenAxes.of_text(self.tracer.anatomy, reading.tokens),
            self.tracer.runner.inputs(reading.tensors),
        )
        return self.tracer.trace(inputs, lambda _recorded: axes, edits, provenance, keep, progress, cells=cells)


def _probed(
    hf_model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase | None",
    provenance: Provenance,
    reader: Reader | None,
    limit: int | None,
    least: int = 0,
) -> ModelParts:
    example = None if reader is None else reader.example()
    runner, anatomy = probe(Runner.of(hf_model), limit, None if example is None else example.tensors, least)
    if limit is not None and reader is None:
        limit -= max((one.keys.before for name, one in anatomy.axes.items() if name not in SLOT_STREAMS), default=0)
    laid_out = None if reader is None else laid_out_of(reader, runner, anatomy)
    provenance = replace(
        provenance,
        dtype=str(hf_model.dtype).removeprefix("torch."),
        versions=versions(device_of(hf_model)),
        route="interception" if runner.switch.plan.is_own else "interface",
    )
    return ModelParts(
        Tracer(provenance.model, runner, anatomy, tokenizer),
        Inputs(provenance.model, hf_model, limit),
        anatomy.described(provenance),
        _facts_of(hf_model, anatomy, tokenizer, reader),
        reader,
        laid_out,
    )


@dataclass(frozen=True, eq=False)
class Beyond:
    """A model's parts for texts of more than `full` tokens, read by sparse attention; probed at the first."""

    full: int
    model: "PreTrainedModel"
    tokenizer: "PreTrainedTokenizerBase | None"
    provenance: Provenance
    limit: int | None

    @once
    def parts(self) -> ModelParts:
        """The parts."""
        return _probed(self.model, self.tokenizer, self.provenance, None, self.limit, self.full + 1)


def _numbers(anatomy: Anatomy) -> Mapping[str, tuple[int, ...]]:
    """Return the numbers of mixers, and of attention layers that aren't 0, 1, 2 and so on."""
    numbers = {stream: kept.every for stream, kept in anatomy.layers.items() if not kept.counts}
    return {**numbers, **anatomy.mixers}


def _has_template(tokenizer: "PreTrainedTokenizerBase | None") -> bool:
    return tokenizer is not None and bool(tokenizer.chat_template)


def _facts_of(
    hf_model: "PreTrainedModel",
    anatomy: Anatomy,
    tokenizer: "PreTrainedTokenizerBase | None",
    reader: Reader | None,
) -> ModelFacts:
    return ModelFacts(
        anatomy.heads_by_stream,
        predicts=not anatomy.no_words,
        has_chat_template=reader.has_chat_template if reader is not None else _has_template(tokenizer),
        adds_special_tokens=reader is None and tokenizer is not None and tokenizer.num_special_tokens_to_add() > 0,
        numbers=_numbers(anatomy),
        mixers=anatomy.heads_of_mixers,
        channels=anatomy.layers_of_channels,
        without={stream: numbers for stream, numbers in anatomy.without.items() if numbers},
        left_out=anatomy.left_out,
        reads=InputKind.TEXT if reader is None else reader.kind,
        generates=hf_model.can_generate(),
        adds_tokens=any(stream not in SLOT_STREAMS for stream in anatomy.axes) and reader is None,
        why_no_video=reader.why_no_video if isinstance(reader, BesideReader) and reader.takes_video else None,
        reads_several=isinstance(reader, BesideReader) and reader.reads_several,
    )
