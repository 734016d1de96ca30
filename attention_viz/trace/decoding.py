"""How the tokens at the end of a text were chosen."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal, get_args

from attention_viz.errors import ShapeError
from attention_viz.operation.shapes import is_whole

__all__ = ["Decoding"]

Method = Literal["greedy", "sampled", "given"]
METHODS: tuple[Method, ...] = get_args(Method)
# A file's header is JSON, whose readers in other languages know integers of 64 bits.
_SEEDS = 2**63


@dataclass(frozen=True)
class Decoding:
    """How successive tokens at the end of a text were chosen.

    Attributes:
        method: "greedy" for the likeliest token each time; "sampled" for a random one; "given" for tokens that
            something else generated.
        temperature: divides the logits before sampling; greater than 0. 1 leaves them as they are.
        top_p: samples from the fewest likeliest tokens whose probabilities sum to at least this, in (0, 1].
        seed: the seed of the random numbers, 0 or more; None if nothing was sampled.
        tokens: how many tokens were chosen in this way.

    Raises:
        ShapeError: an argument is out of range, or has no effect with this method.
    """

    method: Method = "greedy"
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int | None = None
    tokens: int = 0

    def __post_init__(self) -> None:
        """Check the arguments."""
        if self.method not in METHODS:
            raise ShapeError(f"unknown method {self.method!r}; choose {', '.join(map(repr, METHODS))}")
        if not _is_number(self.temperature) or not 0 < self.temperature < math.inf:
            raise ShapeError(
                f"temperature must be a number above 0; got {self.temperature!r}. For the likeliest token each time, "
                "leave out sample=True"
            )
        if not _is_number(self.top_p) or not 0 < self.top_p <= 1:
            raise ShapeError(f"top_p must be a number above 0, at most 1; got {self.top_p!r}")
        if self.seed is not None and not (is_whole(self.seed) and 0 <= self.seed < _SEEDS):
            raise ShapeError(f"seed must be a whole number from 0 to 2⁶³ − 1, or None; got {self.seed!r}")
        if not is_whole(self.tokens) or self.tokens < 0:
            raise ShapeError(f"tokens must be a whole number, 0 or more; got {self.tokens!r}")
        if self.method != "sampled":
            for name, neutral in (("temperature", 1), ("top_p", 1), ("seed", None)):
                if (value := getattr(self, name)) != neutral:
                    raise ShapeError(f"{name}={value!r} has no effect without sampling; add sample=True")
        for name in ("temperature", "top_p"):
            object.__setattr__(self, name, float(getattr(self, name)))
        object.__setattr__(self, "seed", None if self.seed is None else int(self.seed))

    @property
    def alone(self) -> "Decoding":
        """The same way of choosing, without a number of tokens."""
        return replace(self, tokens=0)

    def __str__(self) -> str:
        """Describe it as a part of a sentence: "sampled at temperature 0.7, top-p 0.9, seed 3"."""
        if self.method != "sampled":
            return "generated greedily" if self.method == "greedy" else "generated elsewhere"
        nucleus = f", top-p {self.top_p:g}" if self.top_p < 1 else ""
        return f"sampled at temperature {self.temperature:g}{nucleus}, seed {self.seed}"


def one_more(runs: tuple[Decoding, ...], way: Decoding) -> tuple[Decoding, ...]:
    """Add a token that was chosen in this way."""
    if runs and runs[-1].alone == way.alone:
        return (*runs[:-1], replace(runs[-1], tokens=runs[-1].tokens + 1))
    return (*runs, replace(way, tokens=1))


def pick(runs: tuple[Decoding, ...], numbers: Iterable[int]) -> tuple[Decoding, ...]:
    """Return how some of the tokens were chosen, by their numbers from 0, rising."""
    each = [one for one in runs for _ in range(one.tokens)]
    found: tuple[Decoding, ...] = ()
    for number in numbers:
        if number < len(each):
            found = one_more(found, each[number])
    return found


def in_words(runs: tuple[Decoding, ...]) -> str:
    """Return how tokens were chosen, as a part of a sentence; empty for no tokens."""
    return ", then ".join(f"{one.tokens} token{'s' * (one.tokens != 1)} {one}" for one in runs)


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real)
