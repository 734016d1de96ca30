"""What makes a model's folder of a file in another format, by the name of that."""

from collections.abc import Callable
from pathlib import Path

from attention_viz.sources.packages import dinov2_onnx, llama_gguf, whisper_ct2
from attention_viz.sources.packages.weights_file import Progress

__all__ = ["CONVERTERS"]

# Each reads the file, and writes configuration, tokenizer and weights into the folder.
CONVERTERS: dict[str, Callable[[Path, Path, Progress], None]] = {
    "dinov2_onnx": dinov2_onnx.convert,
    "llama_gguf": llama_gguf.convert,
    "whisper_ct2": whisper_ct2.convert,
}
