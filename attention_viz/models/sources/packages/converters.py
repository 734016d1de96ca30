"""What makes a model's folder of a file in another format, by the name of that."""

from collections.abc import Callable
from pathlib import Path

from attention_viz.models.sources.packages import llama_gguf
from attention_viz.models.sources.packages.weights_file import Progress

__all__ = ["CONVERTERS"]

# Each reads the file, and writes configuration, tokenizer and weights into the folder.
CONVERTERS: dict[str, Callable[[Path, Path, Progress], None]] = {"llama_gguf": llama_gguf.convert}
