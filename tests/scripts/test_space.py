"""A Space's files: what its Dockerfile names exists, and its port is the same everywhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from attention_viz.cli.program import program
from scripts import space


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("space") / "new"
    space.write(folder)
    return folder


def test_every_file_that_the_dockerfile_copies_or_runs_is_there(folder: Path) -> None:
    text = (folder / "Dockerfile").read_text("utf-8")
    copied = [name for line in re.findall(r"^COPY (.+) \S+$", text, re.MULTILINE) for name in line.split()]
    models = re.findall(r"^ARG MODELS=(\S+)$", text, re.MULTILINE)
    assert models == ["requirements-models-small.txt"]
    for name in (*copied, *models, "requirements.txt", "app.py", "pages", ".streamlit/config.toml"):
        assert (folder / name).exists(), name
    for module in re.findall(r"python -m (attention_viz\S*)|\"-m\", \"(attention_viz\S*)\"", text):
        path = folder.joinpath(*"".join(module).split("."))
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module
    program.commands["models"].make_context("models", ["--convert"])


def test_the_port_is_the_same_everywhere(folder: Path) -> None:
    text, settings = ((folder / name).read_text("utf-8") for name in ("Dockerfile", "README.md"))
    assert f"app_port: {space.PORT}\n" in settings
    assert text.count(str(space.PORT)) == 3  # EXPOSE, the health check and the server
    assert "8501" not in re.sub(r"^#.*$", "", text, flags=re.MULTILINE)


def test_the_readme_begins_with_the_settings(folder: Path) -> None:
    lines = (folder / "README.md").read_text("utf-8").splitlines()
    assert lines[0] == "---"
    settings = dict(line.split(": ", 1) for line in lines[1 : lines.index("---", 1)])
    assert settings["sdk"] == "docker" and settings["license"] == "mit"
    assert len(settings["short_description"]) <= 60  # more is refused


def test_what_is_written_is_the_app_alone_and_runs_from_there(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == [
        ".dockerignore",
        ".streamlit",
        "Dockerfile",
        "README.md",
        "app.py",
        "attention_viz",
        "pages",
        "requirements-models-small.txt",
        "requirements-models.txt",
        "requirements.txt",
    ]
    command = [sys.executable, "-c", "import attention_viz.ui.process as it; print(it.__file__)"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()).is_relative_to(folder)


def test_a_folder_with_files_is_refused(folder: Path) -> None:
    with pytest.raises(FileExistsError, match="isn't empty"):
        space.write(folder)


def test_a_dockerfile_that_says_something_else_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM scratch\n", "utf-8")
    monkeypatch.setattr(space, "ROOT", tmp_path)
    with pytest.raises(ValueError, match="has 0 times"):
        space.dockerfile()
