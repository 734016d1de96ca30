"""Scan and study the shipped corpus with each model whose scan ships, or with the named ones: `make scans`."""

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import attention_viz as av
from attention_viz.corpus.shipped import CORPUS, SHIPPED

# The number of texts to run with each head ablated; each takes SmolLM2 a minute.
_STUDIED = {"all-MiniLM-L6-v2": 5, "SmolLM2-135M-Instruct": 4}


def main(names: Sequence[str]) -> None:
    """Scan with the named models, or with all."""
    for name in names or SHIPPED:
        _scan(name, CORPUS.parent / name)


def _scan(name: str, out: Path) -> None:
    """Scan from scratch: an old folder would refuse a change of version."""
    model = av.load(name)
    assert isinstance(model, av.AttentionModel)
    with tempfile.TemporaryDirectory() as folder:
        found = av.scan(model, CORPUS, folder, progress=lambda state: print(f"{name}: {state.texts} texts", flush=True))
        found.study(_STUDIED[name], progress=lambda done, of: print(f"{name}: {done} of {of} steps", flush=True))
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        for path in found.path.iterdir():
            if not path.name.startswith("."):
                shutil.copyfile(path, out / path.name)
    print(f"{name}: {sum(path.stat().st_size for path in out.iterdir()):,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
