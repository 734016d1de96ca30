"""Everything an operator may want to change for a room, in one place."""

import os
from dataclasses import dataclass, fields

__all__ = ["SETTINGS", "Settings"]

_PREFIX = "ATTENTION_VIZ_"


@dataclass(frozen=True)
class Settings:
    """The app's limits, each set by an environment variable: ATTENTION_VIZ_ and the name in capitals.

    Attributes:
        forwards_at_once: how many texts run through a model at the same time; the others wait their turn, so that
            a room full of people pressing enter doesn't keep a newcomer from seeing the page.
        longest_text: how many tokens are read at most, where the model could read more.
        longest_input: how many characters the sentence box takes.
        longest_link: how many characters of text a link carries.
        most_weights: how many weights a trace may have to be drawn in a browser.
        models_kept: how many models stay in memory; the one unused for longest goes first.
        traces_kept: how many traces stay in memory, for people who go back to a sentence or share one.
    """

    forwards_at_once: int = 2
    longest_text: int = 512
    longest_input: int = 50_000
    longest_link: int = 1_500
    most_weights: int = 60_000_000
    models_kept: int = 3
    traces_kept: int = 48

    @classmethod
    def from_environment(cls) -> "Settings":
        """The defaults, and what the operator set instead.

        Raises:
            ValueError: a setting that is not a whole number above 0.
        """
        return cls(**{field.name: _whole(field.name, getattr(cls, field.name)) for field in fields(cls)})


def _whole(name: str, default: int) -> int:
    variable = _PREFIX + name.upper()
    given = os.environ.get(variable, str(default))
    if not given.isdecimal() or int(given) < 1:
        raise ValueError(f"{variable} was set to {given!r}; it has to be a whole number, 1 or more")
    return int(given)


SETTINGS = Settings.from_environment()
