"""Load a folder's model without reading its weights, in a process that may be killed for it.

The model is built, its weights are matched by the shapes in the file's header, and whatever no file holds is computed,
as in the true load but on torch's "meta" device, where tensors have no numbers. Then the model runs once, because the
true load's probe will do that in the shared process.
"""

import contextlib
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.func import functional_call

from attention_viz.errors import AttentionVizError, UnsupportedModel
from attention_viz.inputs.media.readers import Reader
from attention_viz.inputs.text import token_limit
from attention_viz.models.loading.reading import may_read_both, own_reader, reader_of_both
from attention_viz.recording.implementation import IMPLEMENTATION
from attention_viz.recording.layout.probed_inputs import probe_inputs
from attention_viz.recording.runner import Runner
from attention_viz.sources.bounded.counting import Bounds, Counting, TooMuch
from attention_viz.sources.bounded.framing import Message
from attention_viz.sources.building import (
    build,
    in_turn,
    loading_failure,
    named_class,
    quietly,
    read_config,
    refuse_misfits,
    taking_turns,
)
from attention_viz.sources.folders import CheckedFolder
from attention_viz.sources.huggingface import GenerationConfig, PreTrainedConfig, PreTrainedModel
from attention_viz.sources.size import check_size, counting, refuse_surplus, size_of

BOUNDS = Bounds()
Example = Mapping[str, Tensor] | None
"""An example to run: tensors by name, or None for a few tokens."""

# Bytes of a model that gets numbers by chance: beside it the process has room for what they make.
_LARGEST_WITH_NUMBERS = 300_000_000
# Numbers that a processor may make of one picture: a square of 4,000 pixels has 48 million.
_LARGEST_INPUT = 50_000_000
# What weights may be stored as, in the words of safetensors; torch would make numbers of anything else, too.
_FLOATING = ("F64", "F32", "F16", "BF16")


def out_of_memory(error: BaseException) -> bool:
    """Return whether an error reports a lack of memory, from Python or torch."""
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error)


def try_forward(name: str, model: PreTrainedModel, examples: Sequence[Example], bounds: Bounds = BOUNDS) -> None:
    """Run a model once per example and count the memory; ignore other errors, which the probe reports.

    Args:
        model: on any device; unusable afterwards.
    """
    size = size_of(model)
    bounds = bounds.with_weights(size)
    runner = Runner.of(model.eval())
    for config in runner.switch.configs:
        # As the probe compares with it; others may keep quiet about what they make.
        setattr(config, IMPLEMENTATION, "eager")
    for example in examples:
        # Some models look into their mask, which they can't without numbers; others do that where they get none.
        ran = any(_ran(name, runner, example, bounds, _without_numbers, masked=masked) for masked in (True, False))
        if not ran and size <= _LARGEST_WITH_NUMBERS:
            _ = _ran(name, runner, example, bounds, _with_numbers, masked=True)


def _ran(
    name: str,
    runner: Runner,
    example: Example,
    bounds: Bounds,
    placed: Callable[[Tensor], Tensor],
    *,
    masked: bool,
) -> bool:
    """Run an example with or without its masks of ones; return whether it finished."""
    model, reads = runner.model, "its smallest example"
    try:
        inputs = probe_inputs(runner, token_limit(model, None), example)
        if example is None:
            reads = f"{inputs['input_ids'].shape[1]} tokens"
        device = placed(torch.empty(0)).device
        named = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        tensors = {key: placed(tensor) for key, tensor in named.items()}
        given = {key: tensor.to(device) for key, tensor in inputs.items() if masked or not _is_mask(key, tensor)}
        with torch.no_grad(), Counting(bounds):
            functional_call(model, tensors, (), given | runner.settings)
    except TooMuch as error:
        raise UnsupportedModel(f"can't load {name}: for {reads}, its config.json needs {error}") from None
    except Exception as error:
        if out_of_memory(error):
            raise MemoryError from error
        return False
    return True


def _is_mask(key: str, tensor: Tensor) -> bool:
    """Return whether a tensor is a mask that hides nothing, so that the model computes the same without it."""
    return key.endswith("attention_mask") and bool((tensor == 1).all())


def _without_numbers(tensor: Tensor) -> Tensor:
    return tensor.detach().to("meta")


def _with_numbers(tensor: Tensor) -> Tensor:
    """Return computed tables as they are, and random numbers for weights, which weren't read."""
    if not tensor.is_meta:
        return tensor.detach()
    if not tensor.is_floating_point():
        return torch.zeros(tensor.shape, dtype=tensor.dtype)
    return torch.randn(tensor.shape, dtype=tensor.dtype).mul_(0.02)


@dataclass(frozen=True)
class Verdict:
    """The result of a folder's dry run.

    Attributes:
        size: bytes in float32.
        why_alone: why a model for text beside an image or audio can't read both; empty if it can.
    """

    kind: str
    size: int
    why_alone: str = ""


def start() -> Callable[[Message], Message]:
    """Return the request handler of a bounded process: one dry run per folder."""
    torch.set_num_threads(1)

    def answer(request: Message) -> Message:
        found = json.loads(request.content)
        tensors = {key: tuple(shape) for key, shape in found["tensors"].items()}
        path, name = Path(request.values["path"]), request.values["name"]
        folder = CheckedFolder(path, name, found["config"], (), tensors, found["dtypes"])
        return Message(asdict(dry_run(folder)))

    return answer


def dry_run(folder: CheckedFolder, check: Callable[[], None] = lambda: None, bounds: Bounds = BOUNDS) -> Verdict:
    """Load a folder's model without its weights and run it once; an exception in `check` ends the run."""
    config = read_config(folder)
    with quietly():
        kind = named_class(folder.config)
        if kind is None:
            with in_turn(check):
                kind = type(check_size(folder, lambda: build(folder, config)))
        model = _load(folder, kind, config, check)
        _read_generation_config(folder, model)
        size, (examples, why_alone) = size_of(model), _prepare_input(folder, model)
        try_forward(folder.name, model, examples, bounds)
        return Verdict(kind.__name__, size, why_alone)


class _Announced:
    """Stands for a file's tensor while weights are loaded: a shape without numbers."""

    def __init__(self, shape: tuple[int, ...], stored: str, misread: Callable[[], None]) -> None:
        self._shape, self._stored, self._misread = shape, stored, misread

    def __getitem__(self, _: object) -> "_Announced":
        return self  # all of it, which is when it would be read

    def to(self, *, device: object = None, dtype: torch.dtype | None = None) -> Tensor:
        """Return an empty tensor on the wanted device, with the wanted dtype."""
        if dtype is not None and dtype.is_floating_point and self._stored not in _FLOATING:
            self._misread()
        return torch.empty(self._shape, dtype=dtype, device="meta")


def _load(
    folder: CheckedFolder,
    kind: type[PreTrainedModel],
    config: PreTrainedConfig,
    check: Callable[[], None],
) -> PreTrainedModel:
    @contextlib.contextmanager
    def within_bounds(model: nn.Module) -> Generator[None]:
        with counting(folder):
            yield
        refuse_surplus(folder, model)

    misread = list[str]()

    def announced(key: str, shape: tuple[int, ...]) -> _Announced:
        return _Announced(shape, folder.dtypes[key], lambda: misread.append(key))

    try:
        model, report = taking_turns(kind, check, within_bounds).from_pretrained(
            None,
            config=config,
            state_dict={key: announced(key, shape) for key, shape in folder.tensors.items()},
            local_files_only=True,
            trust_remote_code=False,
            dtype=torch.float32,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
        )
    except AttentionVizError:
        raise
    except Exception as error:
        if out_of_memory(error):
            raise MemoryError from error
        raise loading_failure(folder, error) from error
    model.__class__ = kind
    refuse_misfits(folder.name, report, model)
    if misread:
        key = min(misread)
        raise UnsupportedModel(
            f"{key[:200]} of {folder.name} is stored as {folder.dtypes[key]}, not as one of {', '.join(_FLOATING)}; "
            "save it again with model.float().save_pretrained"
        )
    return model


def _read_generation_config(folder: CheckedFolder, model: PreTrainedModel) -> None:
    if not model.can_generate() or not (folder.path / "generation_config.json").is_file():
        return
    try:
        GenerationConfig.from_pretrained(str(folder.path), local_files_only=True)
    except Exception as error:
        raise loading_failure(folder, error) from error


def _prepare_input(folder: CheckedFolder, model: PreTrainedModel) -> tuple[list[Example], str]:
    """Return the dry run's inputs, and why the model can't read text beside an image or audio."""
    reader = own_reader(folder, model)
    if reader is not None:
        return [_example(folder.name, reader)], ""
    if not may_read_both(folder, model):
        return [None], ""
    try:
        return [_example(folder.name, reader_of_both(folder, model)), None], ""
    except AttentionVizError as error:
        return [None], str(error)


def _example(name: str, reader: Reader) -> Example:
    tensors = reader.example().tensors
    made = sum(tensor.numel() for tensor in tensors.values())
    if made > _LARGEST_INPUT:
        raise UnsupportedModel(
            f"the processor of {name} makes {made:,} numbers of one {reader.kind}; the limit is {_LARGEST_INPUT:,}"
        )
    return tensors
