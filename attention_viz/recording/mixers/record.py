"""A pass's token mixers as they are heard: each call of a kernel, and the recorder of a thread."""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from attention_viz.edits.edit import Edit, edited_mixer
from attention_viz.errors import UnsupportedModel
from attention_viz.operation.terms import map_terms
from attention_viz.operation.token_mixer import TokenMixer
from attention_viz.recording.call_rows import in_a_batch, of_row
from attention_viz.recording.mixers.kernels import Kernel, first_of
from attention_viz.trace.kind import MIXER
from attention_viz.trace.memory import RestingFile

__all__ = ["HEARING", "Entered", "MixerCall", "MixerRecorder", "with_first", "without_first"]


@dataclass(frozen=True, eq=False)
class MixerCall:
    """One call of a kernel: its layer, its terms, and both outputs in the kernel's layout."""

    module: nn.Module
    mixer: TokenMixer
    own_output: Tensor
    shape_as: Callable[[Tensor], Tensor]
    stream: str = ""
    label: str = ""
    matrix_error: float | None = None

    @property
    def output(self) -> Tensor:
        """Our output, in the layout and precision of the kernel's."""
        return self.shape_as(self.mixer.output).to(self.own_output.dtype)

    @property
    def error(self) -> float:
        """The largest difference from the kernel: of the output, and of the matrix if it was compared."""
        with torch.no_grad():
            largest, apart = float(self.own_output.abs().max()), float((self.output - self.own_output).abs().max())
        return max(apart / largest if largest else apart, self.matrix_error or 0.0)

    def of_row(self, row: int = 0) -> TokenMixer:
        """Return a row's mixer, head first; parameters are copied, since training changes them."""
        return map_terms(self.mixer, lambda term, value: of_row(term, value, row))


@dataclass(frozen=True, eq=False)
class Entered:
    """A layer whose forward is running: its inputs, and how many calls were heard before."""

    module: nn.Module
    inputs: tuple[Any, ...]
    named: Mapping[str, Any]
    heard: int

    @property
    def first(self) -> Any:
        """Its first input."""
        return next(iter((*self.inputs, *self.named.values())), None)

    @property
    def rows(self) -> int:
        """How many rows its states have; YOSO's kernel has them among its heads."""
        return self.first.shape[0] if isinstance(self.first, Tensor) and self.first.ndim == 3 else 1

    def input(self, name: str) -> Any:
        """Return an input by name; None without one."""
        signature = without_first(inspect.unwrap(type(self.module).forward))
        return signature.bind_partial(*self.inputs, **self.named).arguments.get(name)


@dataclass(eq=False)
class MixerRecorder:
    """Records one pass's token mixers in order, and applies its edits.

    Attributes:
        labels: each layer's number, as text.
        attending: the layers with softmax attention, which edits without a stream mean.
        proves: whether each kernel also runs on values of one token at a time, which shows its own matrix.
        computes: whether our operation's output goes on into the model in place of the kernel's.
        keep: the calls to keep, counted from 0; None for all.
        rest: the file for a long text's tensors; None for memory.
        heard: each call's layer so far.
        entered: the layers whose forward is running.
        held: what a layer made before its mixer, by layer.
    """

    labels: Mapping[nn.Module, str] = field(default_factory=dict[nn.Module, str])
    edits: Sequence[Edit] = ()
    attending: Collection[int] = ()
    proves: bool = False
    computes: bool = False
    keep: Collection[int] | None = None
    rest: RestingFile | None = None
    calls: list[MixerCall] = field(default_factory=list[MixerCall])
    heard: list[nn.Module] = field(default_factory=list[nn.Module])
    entered: list["Entered"] = field(default_factory=list["Entered"])
    held: dict[nn.Module, Tensor] = field(default_factory=dict[nn.Module, Tensor])

    def placed(self, call: MixerCall) -> MixerCall:
        """Return the call with its layer's number, and its stream by the calls of that layer so far."""
        label = self.labels.get(call.module, "")
        before = sum(self.labels.get(one, "") == label for one in self.heard)
        self.heard.append(call.module)
        return replace(call, label=label, stream=MIXER if not before else f"{MIXER} {before + 1}")

    def hear(self, call: MixerCall) -> Tensor:
        """Record a call; return the output that the model continues with."""
        if (rows := max(call.mixer.value.shape[0], self.entered[-1].rows)) != 1:
            raise UnsupportedModel(
                f"{type(call.module).__name__} mixed {rows} rows in one call; run one text at a time"
            )
        call = self.placed(call)
        label = call.label
        own, computes = call.of_row() if self.edits and label.isdigit() else None, self.computes
        if own is not None:
            mixer = edited_mixer(self.edits, (call.stream, int(label)), own, self.attending)
            computes |= mixer is not own
            call = replace(call, mixer=map_terms(mixer, in_a_batch)) if mixer is not own else call
        output = call.output if computes else call.own_output
        if self.keep is None or len(self.heard) - 1 in self.keep:
            self.calls.append(call if self.rest is None else replace(call, mixer=self.rest.take(call.mixer)))
        return output

    def hear_kernel(self, name: str, kernel: Kernel, arguments: Mapping[str, Any], run: Callable[..., Any]) -> Any:
        """Record a kernel's call; return its result, with our output in it if `computes`."""
        kernel.check(name, arguments)
        if not self.entered:
            raise UnsupportedModel(f"{name} was called outside of a layer's forward, so its layer is unknown")
        module = self.entered[-1].module
        terms = {"activations": self.entered[-1].first, **arguments}
        # The kernel may write into its arguments.
        mixer, result = kernel.call(terms), run()
        call = MixerCall(module, mixer, first_of(result), lambda output: kernel.shape_as(output, terms))
        if self.proves:
            call = replace(call, matrix_error=kernel.matrix_error(mixer, terms, run))
        return with_first(result, self.hear(call))


def with_first(result: Any, output: Tensor) -> Any:
    """Return a kernel's result with another output in it."""
    return (output, *result[1:]) if isinstance(result, tuple) else output


HEARING: ContextVar[MixerRecorder | None] = ContextVar("hearing_mixers", default=None)


def without_first(function: Callable[..., Any]) -> inspect.Signature:
    """Return a signature without its first parameter, which the caller doesn't pass."""
    signature = inspect.signature(function)
    return signature.replace(parameters=[*signature.parameters.values()][1:])
