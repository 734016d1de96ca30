"""Read a GGUF file's metadata and build its model without numbers, in a process that may be killed for it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import torch
from transformers.models.auto import modeling_auto

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
        return Message(try_gguf(Path(request.values["path"]), request.values["name"]))

    return answer


def try_gguf(file: Path, name: str) -> dict[str, object]:
    """Return the name of the model's class as "kind", and whether the file has "words", a vocabulary."""
    try:
        config: Any = read_gguf_config(file)
        shapes, words = _contents(file)
    except Exception as error:
        why = first_line(error).replace(str(file), file.name)
        raise ModelNotFound(f"can't read the GGUF file {name}: {why}") from None
    folder = CheckedFolder(file.parent, name, json.loads(config.to_json_string(use_diff=False)), (), shapes, {})
    check_config(folder)
    kind = named_class(folder.config) or _causal(config)
    try:
        with quietly():
            model: Any = check_size(folder, lambda: build(folder, config) if kind is None else kind(config))
    except AttentionVizError:
        raise
    except Exception as error:
        raise ModelNotFound(f"can't build the model of the GGUF file {name}: {first_line(error)}") from None
    return {"kind": type(model).__name__, "words": words}


def read_gguf_config(file: Path) -> Any:
    """Return the configuration in a GGUF file's metadata."""
    return AutoConfig.from_pretrained(
        str(file.parent), gguf_file=file.name, local_files_only=True, trust_remote_code=False
    )


def _causal(config: Any) -> Any:
    """Return the class that predicts words, since GGUF files name none."""
    mapping = cast(Any, modeling_auto).MODEL_FOR_CAUSAL_LM_MAPPING
    return mapping[type(config)] if type(config) in mapping else None


def _contents(file: Path) -> tuple[dict[str, tuple[int, ...]], bool]:
    """Return the tensors' shapes, and whether there is a vocabulary."""
    from gguf import GGUFReader

    reader = GGUFReader(file)
    found = {tensor.name: tuple(int(size) for size in tensor.shape) for tensor in reader.tensors}
    if not found:
        raise ValueError("it holds no tensors")
    return found, "tokenizer.ggml.tokens" in reader.fields
