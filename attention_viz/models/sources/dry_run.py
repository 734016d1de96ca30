"""Everything that loading a folder's model does except reading its weights: in a process that may be ended for it.

The model is built, its weights are matched by the shapes in the file's header, and whatever no file holds is computed,
all as in the true load but with weights on torch's "meta" device, where tensors have shapes and no numbers.
"""

import contextlib
import json
from collections.abc import Callable, Generator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from attention_viz.errors import AttentionVizError, UnsupportedModel
from attention_viz.models.bounded.framing import Message
from attention_viz.models.huggingface import GenerationConfig, PreTrainedConfig, PreTrainedModel
from attention_viz.models.inputs.media.beside import takes_both
from attention_viz.models.inputs.media.readers import Reader
from attention_viz.models.sources.building import (
    build,
    in_turn,
    loading_failure,
    named_class,
    quietly,
    read_config,
    refuse_misfits,
    taking_turns,
)
from attention_viz.models.sources.folders import PROCESSOR_FILES, CheckedFolder
from attention_viz.models.sources.reading import own_reader, reader_of_both
from attention_viz.models.sources.size import check_size, counting, refuse_surplus, size_of

__all__ = ["Verdict", "dry_run", "start"]

# Numbers that a processor may make of one picture: a square of 4,000 pixels has 48 million.
_LARGEST_INPUT = 50_000_000


@dataclass(frozen=True)
class Verdict:
    """What a dry run of a folder found.

    Attributes:
        kind: the name of the model's class in transformers.
        size: how many bytes the model takes in float32.
        why_alone: for a model that reads a text beside a picture, what keeps it from that; empty if nothing does.
    """

    kind: str
    size: int
    why_alone: str = ""


def start() -> Callable[[Message], Message]:
    """Return what answers in a bounded process: a dry run per request, which is a folder."""
    torch.set_num_threads(1)

    def answer(request: Message) -> Message:
        found = json.loads(request.content)
        tensors = {key: tuple(shape) for key, shape in found["tensors"].items()}
        folder = CheckedFolder(Path(request.values["path"]), request.values["name"], found["config"], (), tensors)
        return Message(asdict(dry_run(folder)))

    return answer


def dry_run(folder: CheckedFolder, check: Callable[[], None] = lambda: None) -> Verdict:
    """Do what loading a folder's model does, without reading its weights.

    Args:
        folder: the model's.
        check: called again and again while another load has its turn; what it raises ends the run.

    Raises:
        ModelNotFound: the weights don't fit its configuration, or it can't be built.
        UnsupportedModel: its input can't be prepared.
        MemoryError: there isn't enough memory for what the folder asks for.
    """
    config = read_config(folder)
    with quietly():
        kind = named_class(folder.config)
        if kind is None:
            with in_turn(check):
                kind = type(check_size(folder, lambda: build(folder, config)))
        model = _load(folder, kind, config, check)
        _read_generation_config(folder, model)
        return Verdict(kind.__name__, size_of(model), _prepare_input(folder, model))


class _Announced:
    """Stands for a tensor of the file while weights are loaded: has its shape, and no numbers."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape

    def __getitem__(self, _: object) -> "_Announced":
        return self  # all of it, which is when it would be read

    def to(self, *, device: object = None, dtype: torch.dtype | None = None) -> Tensor:
        """Return what would have been read, wherever that is wanted, without its numbers."""
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

    try:
        model, report = taking_turns(kind, check, within_bounds).from_pretrained(
            None,
            config=config,
            state_dict={key: _Announced(shape) for key, shape in folder.tensors.items()},
            local_files_only=True,
            trust_remote_code=False,
            dtype=torch.float32,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
        )
    except (AttentionVizError, MemoryError):
        raise
    except Exception as error:
        if "can't allocate memory" in str(error):  # torch's way of saying it
            raise MemoryError from error
        raise loading_failure(folder, error) from error
    model.__class__ = kind
    refuse_misfits(folder.name, report, model)
    return model


def _read_generation_config(folder: CheckedFolder, model: PreTrainedModel) -> None:
    if not model.can_generate() or not (folder.path / "generation_config.json").is_file():
        return
    try:
        GenerationConfig.from_pretrained(str(folder.path), local_files_only=True)
    except Exception as error:
        raise loading_failure(folder, error) from error


def _prepare_input(folder: CheckedFolder, model: PreTrainedModel) -> str:
    """Prepare an example for a model that reads pictures or sounds; return what keeps it from reading text beside one.

    Raises:
        AttentionVizError: the only input that the model reads can't be prepared.
    """
    reader = own_reader(folder, model)
    if reader is not None:
        _try(folder.name, reader)
        return ""
    if not takes_both(model) or not any((folder.path / name).is_file() for name in PROCESSOR_FILES):
        return ""
    try:
        _try(folder.name, reader_of_both(folder, model))
    except AttentionVizError as error:
        return str(error)
    return ""


def _try(name: str, reader: Reader) -> None:
    made = sum(tensor.numel() for tensor in reader.example().tensors.values())
    if made > _LARGEST_INPUT:
        raise UnsupportedModel(
            f"what prepares the input of {name} makes {made:,} numbers of one {reader.kind}; at most "
            f"{_LARGEST_INPUT:,} are read here"
        )
