"""List the converters of other formats by the format's name."""

from collections.abc import Callable
from pathlib import Path

from attention_viz.sources.packages import dinov2_onnx, llama_gguf, whisper_ct2
from attention_viz.sources.packages.weights_file import Progress

# The files are read by code of our own, since a model has to convert wherever it installs, so a library that reads one
# would be a dependency of everybody. Measured in November 2026: `onnx` 1.23 takes 27 MB, and `ml_dtypes` beside it.
# `ctranslate2` 4.8 takes 145 MB. `gguf` 0.19, by which transformers reads GGUF too, takes 1 MB and has the same numbers
# and metadata of SmolLM2-135M-Instruct, in 2.1 s instead of 0.14 s to open; it could take the place of ours.
# Each reads the file, and writes configuration, tokenizer and weights into the folder.
CONVERTERS: dict[str, Callable[[Path, Path, Progress], None]] = {
    "dinov2_onnx": dinov2_onnx.convert,
    "llama_gguf": llama_gguf.convert,
    "whisper_ct2": whisper_ct2.convert,
}
