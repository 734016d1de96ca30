"""An operator's settings."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from attention_viz.sources.load_options import LoadOptions
from attention_viz.sources.load_table import read_load_table

_PREFIX = "ATTENTION_VIZ_"
# An installed package has app.py inside, a checkout beside it.
_INSTALLED = Path(__file__).parents[1] / "app"
_OWN = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[2]
# Characters of the sentence box at least, and per token of the longest text: an English word has five and a blank.
_SHORTEST_INPUT, _CHARACTERS = 50_000, 6
# Shorter keys can be guessed.
_SHORTEST_KEY = 8


@dataclass(frozen=True)
class Settings:
    """A server's settings, by environment variables: ATTENTION_VIZ_ and the name in capitals.

    Attributes:
        forwards_at_once: texts that run at one time; others wait, so that newcomers see the page.
        longest_text: tokens at most, on pages with one head at a time.
        longest_study: tokens, on pages with all heads or several runs.
        longest_input: characters in the sentence box; six per token of `longest_text` by default, and 50,000 at least.
        longest_link: characters of text in a link.
        most_weights: weights of a trace file that pages open; larger files are refused.
        trace_memory: megabytes of traces in memory; least recently used go first.
        trace_disk: megabytes in temporary files, most of a long trace.
        model_memory: megabytes of models; least recently used go first. One larger alone is refused before download.
        load_options: a TOML file with device, dtype, quantization and max_memory per model. Default: `models.toml`
            beside app.py, if there is one.
        models: further model folders, as in PATH, subfolders too; "off" for none. Default: `models` beside app.py.
        scans: further scan folders, as in PATH; "off" for none. Default: `scans` beside app.py.
        hub: "off" stops visitors' downloads.
        most_visitors: browser tabs at once; later ones wait.
        frames: sites that may frame the app, such as "https://learn.example.org".
        metrics: "on" opens `/_stcore/metrics`, Streamlit's session and memory counts.
        log_messages: "on" logs error messages, which may quote visitors' text.
        panels: "off" hides other packages' panels on Explore.
        teacher: the key of the Class page and, made from it, of the answer sheet; without one both stay closed.
    """

    forwards_at_once: int = 2
    longest_text: int = 8_192
    longest_study: int = 1_024
    longest_input: int = 0
    longest_link: int = 1_500
    most_weights: int = 20_000_000_000
    trace_memory: int = 600
    trace_disk: int = 12_000
    model_memory: int = 4_000
    load_options: Mapping[str, LoadOptions] = field(default_factory=lambda: _load_options("", ""))
    models: tuple[Path, ...] = (_OWN / "models",)
    scans: tuple[Path, ...] = (_OWN / "scans",)
    hub: bool = True
    most_visitors: int = 200
    frames: str = ""
    metrics: bool = False
    log_messages: bool = False
    panels: bool = True
    teacher: str = ""

    def __post_init__(self) -> None:
        """Let the sentence box hold the longest text."""
        if not self.longest_input:
            object.__setattr__(self, "longest_input", max(_SHORTEST_INPUT, _CHARACTERS * self.longest_text))

    @classmethod
    def from_environment(cls) -> "Settings":
        """Read the operator's settings; defaults for the rest."""
        content = {field.name: os.environ.get(_PREFIX + field.name.upper()) for field in fields(cls)}
        read = {name: _READERS.get(name, _whole) for name in content}
        return cls(
            **{name: read[name](_PREFIX + name.upper(), text) for name, text in content.items() if text is not None}
        )


def _whole(variable: str, content: str) -> int:
    if not content.isdecimal() or int(content) < 1:
        raise ValueError(f"{variable} must be a whole number, 1 or more; got {content!r}")
    return int(content)


def _load_options(_variable: str, content: str) -> Mapping[str, LoadOptions]:
    file = Path(content).expanduser() if content.strip() else _OWN / "models.toml"
    return read_load_table(file) if content.strip() or file.is_file() else {}


def _folders(_variable: str, content: str) -> tuple[Path, ...]:
    if content.strip().lower() in ("", "off"):
        return ()
    return tuple(Path(os.path.abspath(Path(part).expanduser())) for part in content.split(os.pathsep) if part.strip())


def _switch(variable: str, content: str) -> bool:
    if content.strip().lower() not in ("on", "off", "1", "0", "true", "false", "yes", "no"):
        raise ValueError(f"{variable} must be on or off; got {content!r}")
    return content.strip().lower() in ("on", "1", "true", "yes")


def _sites(variable: str, content: str) -> str:
    for site in content.split():
        if not re.fullmatch(r"https?://(\*\.)?[\w.-]+(:\d+)?", site, re.ASCII):
            raise ValueError(
                f"{variable} must be URLs of sites, separated by blanks, such as https://learn.example.org; got "
                f"{content!r}"
            )
    return " ".join(content.split())


def _key(variable: str, content: str) -> str:
    if content and len(content) < _SHORTEST_KEY:
        raise ValueError(f"{variable} must have {_SHORTEST_KEY} characters or more; got {len(content)}")
    return content


_READERS: dict[str, Callable[[str, str], Any]] = {
    "load_options": _load_options,
    "models": _folders,
    "scans": _folders,
    "hub": _switch,
    "frames": _sites,
    "metrics": _switch,
    "log_messages": _switch,
    "panels": _switch,
    "teacher": _key,
}

SETTINGS = Settings.from_environment()
