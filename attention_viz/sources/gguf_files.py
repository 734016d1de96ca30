"""Find GGUF files. Needs no torch."""

from pathlib import Path

from attention_viz.errors import ModelNotFound

__all__ = ["gguf_in"]


def gguf_in(path: Path) -> Path | None:
    """Return the GGUF file that a path is, or that is the only weights of a folder; else None."""
    if path.is_file():
        return path if path.suffix.lower() == ".gguf" else None
    if not path.is_dir() or any(path.glob("*.safetensors")):
        return None
    found = sorted(file for file in path.iterdir() if file.suffix.lower() == ".gguf")
    if len(found) > 1:
        raise ModelNotFound(f"{path} holds {len(found)} GGUF files; give one of them, such as {found[0].name}")
    return found[0] if found else None
