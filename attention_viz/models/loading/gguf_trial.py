"""Read a GGUF file's metadata and build its model without numbers, in a process that may be killed for it."""

from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import torch

from attention_viz.errors import AttentionVizError, ModelNotFound, first_line
from attention_viz.sources.bounded.framing import Message
from attention_viz.sources.building import build, named_class, quietly
from attention_viz.sources.folders import CheckedFolder
from attention_viz.sources.huggingface import AutoConfig
from attention_viz.sources.size import check_config, check_size


def start() -> Callable[[Message], Message]:
    """Return the request handler of a bounded process: one trial per file."""
    torch.set_num_threads(1)

    def answer(request: Message) -> Message:
        return Message({"kind": try_gguf(Path(request.values["path"]), request.values["name"])})

    return answer


def try_gguf(file: Path, name: str) -> str:
    """Return the name of the class of a GGUF file's model; refuse a file that doesn't hold its numbers."""
    try:
        config: Any = read_gguf_config(file)
        shapes = _shapes(file)
    except Exception as error:
        raise ModelNotFound(f"can't read the GGUF file {name}: {first_line(error)}") from None
    folder = CheckedFolder(file.parent, name, config.to_dict(), (), shapes, {})
    check_config(folder)
    kind = named_class(folder.config) or _causal(config)
    try:
        with quietly():
            model: Any = check_size(folder, lambda: build(folder, config) if kind is None else kind(config))
    except AttentionVizError:
        raise
    except Exception as error:
        raise ModelNotFound(f"can't build the model of the GGUF file {name}: {first_line(error)}") from None
    return type(model).__name__


def read_gguf_config(file: Path) -> Any:
    """Return the configuration in a GGUF file's metadata."""
    return AutoConfig.from_pretrained(
        str(file.parent), gguf_file=file.name, local_files_only=True, trust_remote_code=False
    )


def _causal(config: Any) -> Any:
    """Return the class that predicts words, since GGUF files name none."""
    from transformers.models.auto.modeling_auto import AutoModelForCausalLM

    mapping: Any = AutoModelForCausalLM._model_mapping
    return mapping[type(config)] if type(config) in mapping else None


def _shapes(file: Path) -> dict[str, tuple[int, ...]]:
    """Return the tensors' shapes, and refuse a file that is shorter than they are."""
    from gguf import GGUFReader

    found = {tensor.name: tuple(int(size) for size in tensor.shape) for tensor in GGUFReader(file).tensors}
    if not sum(map(prod, found.values())):
        raise ValueError("it holds no tensors")
    return found
