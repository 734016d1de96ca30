"""The environment: made once, left alone while nothing changes, mended when it is damaged.

The packages are tiny wheels made here, so nothing is downloaded; the environments are real.
"""

import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from attention_viz.sources import CATALOGUE
from scripts import setup


def make_wheel(folder: Path, name: str, version: str, code: str = "", asks_for: str = "") -> Path:
    """A package of one module that knows its version."""
    info, path = f"{name}-{version}.dist-info", folder / f"{name}-{version}-py3-none-any.whl"
    needs = f"Requires-Dist: {asks_for}\n" if asks_for else ""
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}/__init__.py", f"version = '{version}'\n{code}")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", f"{name}/__init__.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return path


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What stands for a package index: a folder with one package in two versions."""
    folder = tmp_path_factory.mktemp("index")
    make_wheel(folder, "tiny_one", "1.0")
    make_wheel(folder, "tiny_one", "2.0")
    return folder


def settle(place: Path, index: Path, patch: pytest.MonkeyPatch) -> Path:
    """Work in a folder, without a package index but that one, and with a requirement file with one pin."""
    patch.setenv("PIP_NO_INDEX", "1")
    patch.setenv("PIP_FIND_LINKS", str(index))
    patch.delenv("PYTHON", raising=False)
    patch.chdir(place)
    file = Path("requirements.txt")
    file.write_text("# one package\ntiny-one==1.0  # and no more\n")
    return file


@pytest.fixture(scope="module")
def made(index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete environment, completed from one as left by somebody who lost patience."""
    place = tmp_path_factory.mktemp("made")
    (place / "env" / "bin").mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        setup.main(Path("env"), [settle(place, index, patch)])
    return place / "env"


@pytest.fixture
def requirements(made: Path, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The requirement file, and beside it a copy of its environment."""
    shutil.copytree(made, tmp_path / "env", symlinks=True)
    return settle(tmp_path, index, monkeypatch)


def version_in(folder: Path) -> str:
    return setup.run(setup.interpreter(folder), "-c", "import tiny_one; print(tiny_one.version)").stdout.strip()


def nothing_is_installed(*_: object) -> None:
    pytest.fail("there was nothing to install")


def test_pins_are_read_without_comments_and_extras(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("# torch==1.0\ntorch==2.13.0  # exactly\nuvicorn[standard]==0.54.0\n-r other.txt\n")
    assert setup.pins_in(file) == ["torch==2.13.0", "uvicorn==0.54.0"]


def test_included_files_count_once_wherever_they_are(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    base, extra = tmp_path / "base.txt", tmp_path / "inner" / "extra.txt"
    base.write_text("a==1\n")
    extra.write_text("-r ../base.txt\nb==2\n")
    assert setup.with_included([base, extra]) == [base, extra]
    assert setup.with_included([extra]) == [extra, base]


def test_packages_are_looked_for_where_pip_looks_for_them() -> None:
    told = """:env:.extra-index-url='https://a/simple https://b/simple'
:env:.timeout='180'
global.cert='/etc/certs.crt'
global.extra-index-url='https://c/simple'
user.index-url='https://d/simple'
global.no-index='false'
"""
    assert setup.places_of(told) == [
        *["--cert", "/etc/certs.crt"],
        *["--index", "https://a/simple", "--index", "https://b/simple"],
        *["--default-index", "https://d/simple"],
    ]
    assert setup.places_of("global.no-index='1'\n") == ["--no-index"]


def test_the_quick_way_installs_what_pip_would_and_says_where_it_can_not(
    requirements: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = Path(sys.executable).with_name("uv")
    if not quick.is_file():
        pytest.skip("this environment was made by pip alone")
    shutil.copy(quick, setup.interpreter(Path("env")).with_name("uv"))
    monkeypatch.setattr(setup, "install_by_pip", nothing_is_installed)
    assert setup.install_quickly(Path("env"), ["tiny-one==2.0"])
    assert version_in(Path("env")) == "2.0"
    assert not setup.install_quickly(Path("env"), ["tiny-one==3.0"])


def test_an_environment_begun_is_completed_then_left_alone_until_the_requirements_change(
    requirements: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path("env")
    assert version_in(folder) == "1.0"
    assert list(folder.glob("lib/*/site-packages/tiny_one/__pycache__/*.pyc")), "what can be used is kept compiled"

    with monkeypatch.context() as patch:
        patch.setattr(setup, "install", nothing_is_installed)
        setup.main(folder, [requirements])

    requirements.write_text("tiny-one==2.0\n")
    setup.main(folder, [requirements])
    assert version_in(folder) == "2.0"


def test_a_damaged_environment_is_mended(requirements: Path) -> None:
    folder = Path("env")
    shutil.rmtree(next(folder.glob("lib/*/site-packages/tiny_one")))
    setup.main(folder, [requirements])
    assert version_in(folder) == "1.0"

    # Which is then made afresh, as the one that was begun and never had any.
    setup.interpreter(folder).unlink()
    setup.interpreter(folder).symlink_to("/nowhere/python3")
    assert not setup.fits(folder)


def test_packages_with_models_come_alone_are_not_imported_and_are_converted(
    requirements: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: Path
) -> None:
    wheel = make_wheel(
        tmp_path, "tiny_model", "1.0", "import a_library_that_is_not_there", "a-library-that-is-not-there"
    )
    monkeypatch.setenv("PIP_FIND_LINKS", f"{index} {tmp_path}")
    monkeypatch.setattr(setup, "CONVERT", ["-c", "open('converted', 'a').write('once ')"])
    models = Path(setup.MODELS)
    models.write_text(f"tiny-model==1.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(setup.SetupError, match="HASHES"):
        setup.main(Path("env"), [requirements, models])

    models.write_text(f"tiny-model==1.0 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n")
    setup.main(Path("env"), [requirements, models])
    setup.main(Path("env"), [requirements, models])
    assert setup.problems(Path("env"), [requirements, models], "import") == []
    assert Path("converted").read_text() == "once "

    models.write_text("tiny-model==2.0\n")
    assert setup.problems(Path("env"), [models], "import") == ["tiny-model==2.0: another version is there"]


def test_the_models_that_the_set_up_installs_are_those_that_the_library_would() -> None:
    lines = (Path(setup.__file__).parents[1] / setup.MODELS).read_text().splitlines()
    pins = {entry.wheel.requirement for entry in CATALOGUE.values() if entry.wheel is not None}
    assert {line for line in lines if not line.startswith("#")} == pins


def test_without_the_packages_the_environment_that_was_there_stays(requirements: Path) -> None:
    folder = Path("env")
    requirements.write_text("tiny-one==3.0\n")
    with pytest.raises(setup.SetupError, match=r"tiny-one==3\.0"):
        setup.main(folder, [requirements])
    assert version_in(folder) == "1.0"


def test_a_python_that_is_too_old_is_refused_by_its_version(tmp_path: Path) -> None:
    old = tmp_path / "python3.9"
    old.write_text('#!/bin/sh\ncase "$2" in *print*) echo 3.9.2;; *) exit 1;; esac\n')
    old.chmod(0o755)
    script = Path(setup.__file__).with_name("python.sh")
    told = subprocess.run(["sh", script, "-V"], env={"PYTHON": str(old)}, capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert "is Python 3.9.2, which is too old" in told.stderr
