"""Run a model with each part's output kept as a leaf, to split its numbers."""

import contextlib
import threading
import weakref
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attention_viz.circuits.functions import scaled
from attention_viz.circuits.ledger import READ, Leaf, Ledger, WrittenModules, origin_of
from attention_viz.errors import ShapeError, TraceError, UnsupportedModel
from attention_viz.operation.attention import Attention
from attention_viz.operation.numerics import REPEATED, close
from attention_viz.operation.token_mixer import TokenMixer
from attention_viz.protocol.needing import need_trained
from attention_viz.recording.gradients import ModelRun
from attention_viz.recording.mixers.kernels import Kernel
from attention_viz.recording.mixers.listening import CONVOLUTION, heard_mixers
from attention_viz.recording.mixers.record import MixerCall, MixerRecorder
from attention_viz.recording.outputs.returned import output_of
from attention_viz.recording.recorder import Call, Recorder
from attention_viz.recording.towers import mixer_labels
from attention_viz.recording.twin import Twin
from attention_viz.recording.weights.unchanged import changed
from attention_viz.trace.kept import LayerNumber
from attention_viz.trace.trace import Trace, TracePart
from attention_viz.trace.trace_data import behind

if TYPE_CHECKING:
    from attention_viz.models.model import AttentionModel


@dataclass(frozen=True, eq=False)
class OpenCall:
    """One attention call; `query`, (head, query, d_k), depends on earlier leaves."""

    query: Tensor
    key: Tensor
    value: Tensor
    scale: float


@dataclass(frozen=True, eq=False)
class OpenMixer:
    """One layer without a softmax; `output`, (1, head, query, d_v), is its weights times its leaf.

    Attributes:
        layer: its number; None if it is in no numbered layer.
    """

    stream: str
    layer: int | None
    mixer: TokenMixer
    output: Tensor


@dataclass(frozen=True, eq=False)
class OpenedRun:
    """A run whose numbers can be split; `lock` is held during backward passes, because threads share it.

    Attributes:
        calls: None for a call in several chunks, whose outputs are leaves of kind "chunk".
    """

    leaves: tuple[Leaf, ...]
    calls: tuple[OpenCall | None, ...]
    mixers: tuple[OpenMixer, ...]
    output: Tensor
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextlib.contextmanager
    def asking(self) -> Generator[None]:
        """Enable gradients in this thread, even if its caller switched them off."""
        with self.lock, torch.inference_mode(False), torch.enable_grad():
            yield

    def call(self, number: int, name: str) -> OpenCall:
        """Return an attention call that can be opened."""
        found = self.calls[number]
        if found is None:
            raise UnsupportedModel(
                f"can't decompose a layer of {name} that attends in chunks; trace one image of one frame, or ask for a "
                "number of the text"
            )
        return found

    def head_leaf(
        self, run: ModelRun, trace: Trace, layer: int, head: int | None, stream: str | None
    ) -> tuple[str, Attention | TokenMixer, Leaf]:
        """Return the stream, the call and the leaf of a head that must exist; None for a whole mixer."""
        if stream is None and trace.mixers and isinstance(trace.attention(layer), TokenMixer):
            stream = next(name for name in trace.mixers if layer in trace.layer_numbers(name))
        if stream is not None and stream in trace.mixers:
            call = trace.attention(layer, stream)
            places: list[tuple[str, int | None]] = [(one.stream, one.layer) for one in self.mixers]
            if (stream, layer) not in places:
                raise UnsupportedModel(
                    f"layer {layer} of the {stream} is linear in earlier parts, so it has no rows of its own"
                )
            leaf = next(one for one in self.leaves if one.mixer == places.index((stream, layer)))
        else:
            stream = trace.stream(stream)
            call = trace.attention(layer, stream)
            number = run.anatomy.call(stream, LayerNumber(layer))
            _ = self.call(number, run.name)
            leaf = next(one for one in self.leaves if one.call == number)
        heads = call.shape[0]
        if not (head is None and isinstance(call, TokenMixer)) and (head is None or not 0 <= head < heads):
            raise ShapeError(f"no head {head}; layer {layer} has heads 0 to {heads - 1}")
        return stream, call, leaf

    def contributions(self, number: Tensor) -> list[Float[Tensor, "*any"] | None]:
        """Return each leaf times its gradient; None if the number ignores it."""
        tensors = [leaf.tensor for leaf in self.leaves]
        # torch says that all are tensors, and gives None for those that the number does not depend on.
        slopes = torch.autograd.grad(number, tensors, retain_graph=True, allow_unused=True)
        found = zip(cast("Sequence[Tensor | None]", slopes), tensors, strict=True)
        return [None if slope is None else (slope * tensor).detach() for slope, tensor in found]


@dataclass(eq=False)
class _Scribe(Recorder):
    ledger: Ledger | None = None
    heard: list[OpenCall | None] = field(default_factory=list["OpenCall | None"])

    def hear(self, call: Call) -> Tensor:
        """Return a leaf, as every recorder's hook does."""
        assert self.ledger is not None
        before = self.count
        with torch._C.DisableTorchFunction(), torch.no_grad():  # pyright: ignore[reportPrivateUsage]
            output = super().hear(call)
        if len(output) > 1 or self.count - 1 in self.windows:
            raise UnsupportedModel(
                f"can't decompose {type(call.module).__name__}, which reads several images, tiles or windows in one "
                "call; trace one image that isn't cut up"
            )
        if self.count == before and self.chunked:
            self.heard[-1] = None
        if self.count > before:
            one = call.attention
            self.heard.append(OpenCall(one.query[0], one.key[0], one.value[0], one.scale))
        return self.ledger.leaf(output, "head", call=self.count - 1)


@dataclass(eq=False)
class _MixerScribe(MixerRecorder):
    ledger: Ledger | None = None
    opened: list[OpenMixer] = field(default_factory=list[OpenMixer])

    def hear_kernel(self, name: str, kernel: Kernel, arguments: Mapping[str, Any], run: Callable[..., Any]) -> Any:
        """Run the kernel unseen by the ledger, except a convolution, which may be linear in earlier parts."""
        if name == CONVOLUTION:
            return super().hear_kernel(name, kernel, arguments, run)
        with torch._C.DisableTorchFunction(), torch.no_grad():  # pyright: ignore[reportPrivateUsage]
            return super().hear_kernel(name, kernel, arguments, run)

    def hear(self, call: MixerCall) -> Tensor:
        """Return an output that depends on a leaf of values; a linear convolution's stays as it is."""
        assert self.ledger is not None
        with torch._C.DisableTorchFunction(), torch.no_grad():  # pyright: ignore[reportPrivateUsage]
            output = super().hear(call)
        if output is call.own_output and call.mixer.taps is not None and output.requires_grad:
            return output
        call = self.calls[-1]
        found, output = self.ledger.mixed(call, output, len(self.opened))
        with torch._C.DisableTorchFunction(), torch.no_grad():  # pyright: ignore[reportPrivateUsage]
            layer = int(call.label) if call.label.isdigit() else None
            self.opened.append(OpenMixer(call.stream, layer, call.of_row(), found))
        return output


def open_run(run: ModelRun) -> OpenedRun:
    """Run a copy over the same weights, and keep each part's output.

    A lone nonlinear step before the output, as in BERT's pooler, needs a second run as head.
    """
    late = frozenset[str]()
    while True:
        # What is made in inference mode, such as a copy's tensors, could have no slopes.
        with torch.inference_mode(False):
            opened = _opened(run, late)
        last = None if opened.output.requires_grad else origin_of(opened.output)
        if last is None or last in late:
            return opened
        late |= {last}


def cut_off(name: str, what: str, number: Tensor, opened: OpenedRun) -> UnsupportedModel:
    """Return the error for a number that depends on no part."""
    path = origin_of(number) or origin_of(opened.output)
    where = f" in {path}" if path else ""
    return UnsupportedModel(
        f"can't decompose {what} in {name}: all of it goes through a step{where} that isn't linear in its input"
    )


def _opened(run: ModelRun, late: frozenset[str]) -> OpenedRun:
    twin = run.runner.twin(frozen=True)
    model, where = twin.model, WrittenModules(late)
    ledger = Ledger(where, _words(model))
    scribe = _Scribe(run.edits, run.anatomy.places, frozenset(), ledger=ledger)
    scribe.windows = run.runner.windows.of(run.runner, run.inputs)
    labels = mixer_labels(model)
    attending = frozenset(number for _, number in run.anatomy.places)
    mixed = _MixerScribe(labels, run.edits, attending, ledger=ledger)
    with (
        _followed(twin, where),
        heard_mixers(labels, mixed),
        ledger,
        # Innermost, so that what it follows is what the model asked for.
        twin.recorded(scribe, run.name, "can't be decomposed", slopes=True),
    ):
        inputs = {name: tensor.clone() for name, tensor in run.inputs.items()}
        for one in inputs.values():
            if one.is_floating_point():
                setattr(one, READ, True)
        output = output_of(model(**inputs, **twin.settings))
    leaves = [_whole(leaf, scribe.heard) for leaf in ledger.leaves]
    return OpenedRun(tuple(leaves), tuple(scribe.heard), tuple(mixed.opened), output)


def _whole(leaf: Leaf, heard: Sequence[OpenCall | None]) -> Leaf:
    """Return a leaf; one of a call in several chunks has no heads' positions."""
    return leaf if leaf.call is None or heard[leaf.call] is not None else replace(leaf, kind="chunk", call=None)


def _words(model: nn.Module) -> set[int]:
    """Return vocabulary sizes: an embedding with as many rows holds tokens."""
    found: set[int] = set()
    for part in model.modules():
        with contextlib.suppress(AttributeError, NotImplementedError):
            found.add(len(cast("Any", part).get_input_embeddings().weight))
    return found


@contextlib.contextmanager
def _followed(twin: Twin, where: WrittenModules) -> Generator[None]:
    """Track the running module of a copy that no other run uses."""
    model = twin.model
    body = getattr(model, model.base_model_prefix, None)
    handles: list[Any] = []
    for name, module in model.named_modules():
        activation = _is_activation(module)
        handles.append(module.register_forward_pre_hook(partial(_enter, where, name, activation)))
        handles.append(module.register_forward_hook(partial(_leave, where, name, activation, module is body)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _enter(where: WrittenModules, name: str, activation: bool, _module: nn.Module, _inputs: object) -> None:
    where.stack.append(name)
    where.activations += activation


def _leave(
    where: WrittenModules,
    name: str,
    activation: bool,
    is_body: bool,
    _module: nn.Module,
    inputs: tuple[Any, ...],
    output: Any,
) -> Any:
    where.stack.pop()
    where.activations -= activation
    where.done |= is_body
    if activation and where.in_head(name) and isinstance(output, Tensor) and inputs and inputs[0].requires_grad:
        return scaled(inputs[0], output)
    return None


def _is_activation(module: nn.Module) -> bool:
    places = ("torch.nn.modules.activation", "transformers.activations")
    return type(module).__module__ in places and not isinstance(module, nn.MultiheadAttention)


_lock = threading.Lock()
# The trace that was opened last, and its run: the second number of a text costs a fraction of the first.
_last: tuple["weakref.ref[Trace]", OpenedRun] | None = None


def open_behind(model: "AttentionModel", trace: Trace) -> tuple[ModelRun, OpenedRun]:
    """Return a trace's run, also opened; kept while the trace lives."""
    check_model(model, trace)
    return open_alone(trace)


def open_alone(trace: Trace) -> tuple[ModelRun, OpenedRun]:
    """Open a trace's run without its model."""
    run = run_of(trace)
    with _lock:
        return run, _reproducible_run(trace, run)


def _reproducible_run(trace: Trace, run: ModelRun) -> OpenedRun:
    global _last
    if _last is not None and _last[0]() is trace:
        return _last[1]
    _last = None
    if bool(trace.output.isnan().any()):
        raise TraceError(f"can't decompose the output of {run.name}, which has NaN; check its weights for NaN")
    opened = open_run(run)
    if not is_output_of(opened.output, trace):
        raise changed(run.name)
    _last = (weakref.ref(trace, _forget), opened)
    return opened


def is_output_of(output: Tensor, trace: Trace) -> bool:
    """Return whether a new output matches the trace's, but for rounding."""
    found, there = (one.detach().cpu().float() for one in (output, trace.output))
    return close(found, there, REPEATED)


def _forget(gone: object) -> None:
    global _last
    if _last is not None and _last[0] is gone:
        _last = None


def run_behind(model: "AttentionModel", trace: Trace) -> ModelRun:
    """Return the run behind a trace."""
    check_model(model, trace)
    return run_of(trace)


def check_model(model: "AttentionModel", trace: Trace) -> None:
    """Refuse a trace of another model."""
    need_trained(model)
    if trace.provenance.model != model.name:
        raise TraceError(f"{model.name} accepts only its own traces; got one of {trace.provenance.model}")


def run_of(trace: Trace) -> ModelRun:
    """Return the run behind a trace, without its model."""
    run = behind(trace).run
    if isinstance(trace, TracePart):
        raise TraceError(
            f"this analysis needs all heads and rows, but this trace keeps only {trace.part}; trace the text without "
            "heads= and queries="
        )
    if not isinstance(run, ModelRun):
        raise TraceError(
            "this analysis needs a trace with its model, but this one comes from a file or another trace; trace the "
            "text again"
        )
    behind(trace).check()
    return run
