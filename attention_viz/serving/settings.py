"""Everything an operator may want to change for a room, in one place."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

__all__ = ["SETTINGS", "Settings"]

_PREFIX = "ATTENTION_VIZ_"
# An installed package has app.py inside, a checkout beside it.
_INSTALLED = Path(__file__).parents[1] / "app"
_OWN = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[2]


@dataclass(frozen=True)
class Settings:
    """What holds for a whole server, each set by an environment variable: ATTENTION_VIZ_ and the name in capitals.

    Attributes:
        forwards_at_once: how many texts run through a model at the same time; the others wait their turn, so that
            a room full of people pressing enter doesn't keep a newcomer from seeing the page.
        longest_text: how many tokens are read at most, where the model could read more, on pages that show a head at a
            time.
        longest_study: the same on pages that work out something of all heads, or compare runs.
        longest_input: how many characters the sentence box takes.
        longest_link: how many characters of text a link carries.
        most_weights: how many weights a trace from a file may stand for to be drawn in a browser; of many, the heads on
            the screen alone are computed.
        trace_memory: how many megabytes the traces in memory may take together, for people who go back to a sentence or
            share one; the one unused for longest goes first.
        trace_disk: the same of what lies in temporary files, as most of a long trace does.
        model_memory: how many megabytes the models in memory may take together; the one unused for longest goes first.
            A model that alone takes more is refused, before any download.
        models: the folders that visitors may open models from besides those that ship, and those inside them, as in
            PATH; "off" for none. By default `models` beside app.py.
        scans: the folders whose folders are scans of many texts that visitors may see, as in PATH; "off" for none but
            those that ship. By default `scans` beside app.py.
        hub: "off" keeps visitors from having this machine download models from the hub.
        most_visitors: how many browser tabs are served at once; whoever comes after waits for a place, and is told so.
        frames: other sites that may show the app in a frame of theirs, such as "https://learn.example.org".
        metrics: "on" has `/_stcore/metrics` answer, with Streamlit's counts of sessions and memory.
        log_messages: "on" has the server's log hold the messages of errors, which may quote what somebody typed.
    """

    forwards_at_once: int = 2
    longest_text: int = 8_192
    longest_study: int = 1_024
    longest_input: int = 50_000
    longest_link: int = 1_500
    most_weights: int = 20_000_000_000
    trace_memory: int = 600
    trace_disk: int = 12_000
    model_memory: int = 4_000
    models: tuple[Path, ...] = (_OWN / "models",)
    scans: tuple[Path, ...] = (_OWN / "scans",)
    hub: bool = True
    most_visitors: int = 200
    frames: str = ""
    metrics: bool = False
    log_messages: bool = False

    @classmethod
    def from_environment(cls) -> "Settings":
        """The defaults, and what the operator set instead."""
        content = {field.name: os.environ.get(_PREFIX + field.name.upper()) for field in fields(cls)}
        read = {name: _READERS.get(name, _whole) for name in content}
        return cls(
            **{name: read[name](_PREFIX + name.upper(), text) for name, text in content.items() if text is not None}
        )


def _whole(variable: str, content: str) -> int:
    if not content.isdecimal() or int(content) < 1:
        raise ValueError(f"{variable} was set to {content!r}; it has to be a whole number, 1 or more")
    return int(content)


def _folders(_variable: str, content: str) -> tuple[Path, ...]:
    """Whole paths, whatever folder the server is started in."""
    if content.strip().lower() in ("", "off"):
        return ()
    return tuple(Path(os.path.abspath(Path(part).expanduser())) for part in content.split(os.pathsep) if part.strip())


def _switch(variable: str, content: str) -> bool:
    if content.strip().lower() not in ("on", "off", "1", "0", "true", "false", "yes", "no"):
        raise ValueError(f"{variable} was set to {content!r}; it has to be on or off")
    return content.strip().lower() in ("on", "1", "true", "yes")


def _sites(variable: str, content: str) -> str:
    """Addresses of other sites, with one blank between them."""
    for site in content.split():
        if not re.fullmatch(r"https?://(\*\.)?[\w.-]+(:\d+)?", site, re.ASCII):
            raise ValueError(
                f"{variable} was set to {content!r}; it has to be addresses of sites with blanks between them, such as "
                "https://learn.example.org"
            )
    return " ".join(content.split())


_READERS: dict[str, Callable[[str, str], Any]] = {
    "models": _folders,
    "scans": _folders,
    "hub": _switch,
    "frames": _sites,
    "metrics": _switch,
    "log_messages": _switch,
}

SETTINGS = Settings.from_environment()
