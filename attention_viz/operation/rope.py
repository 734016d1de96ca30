"""Rotate queries and keys to their positions.

Sources: Su et al. 2021, "RoFormer", eq. 34; YaRN: Peng et al. 2023, section 3; dynamic NTK: the same paper, appendix B.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.errors import ShapeError, UnsupportedModel
from attention_viz.operation.shapes import is_whole

__all__ = ["Rope"]

# Each kind's numbers in a configuration: those that it needs, and those that it may have.
_KINDS: Mapping[str, tuple[set[str], set[str]]] = {
    "default": (set(), set()),
    "linear": ({"factor"}, set()),
    "dynamic": ({"factor", "max_position_embeddings"}, {"original_max_position_embeddings"}),
    "llama3": ({"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}, set()),
    "yarn": (
        {"factor", "original_max_position_embeddings"},
        {"attention_factor", "mscale", "mscale_all_dim", "beta_fast", "beta_slow", "truncate"},
    ),
}
# What every kind may have in a configuration.
_EVERY = {"rope_type", "type", "rope_theta", "partial_rotary_factor"}
_THETA = 10_000.0


@dataclass(frozen=True, eq=False)
class Rope:
    """Rotary positions that weren't applied yet, for `Trace.from_qkv(…, rope=…)`.

    Attributes:
        theta: the base of the frequencies; by default `scaling`'s `rope_theta`, else 10,000.
        dim: how many of a head's numbers turn, from its first; by default all, or `scaling`'s `partial_rotary_factor`.
        interleaved: whether neighbours (0, 1), (2, 3) … turn together, as in GPT-J and Cohere; else number i and
            i + dim/2, as in Llama.
        scaling: `rope_parameters` or `rope_scaling` of the model's config.json: "default", "linear", "dynamic",
            "llama3" or "yarn". "dynamic" also needs the config's own `max_position_embeddings`, which is what
            transformers scales by, and holds for one pass over the whole text.

    Raises:
        ShapeError: a number is missing or impossible, or the scaling has one that its kind doesn't know.
        UnsupportedModel: another kind of scaling.
    """

    theta: float | None = None
    dim: int | None = None
    interleaved: bool = False
    scaling: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Refuse what would turn by wrong angles."""
        if not isinstance(self.scaling, Mapping | None):  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
            raise ShapeError(f"scaling must be a mapping, as rope_parameters in config.json; got {self.scaling!r}")
        if not isinstance(self.interleaved, bool):  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
            raise ShapeError(f"interleaved must be True or False; got {self.interleaved!r}")
        scaling = {name: value for name, value in (self.scaling or {}).items() if value is not None}
        object.__setattr__(self, "scaling", MappingProxyType(scaling) if scaling else None)
        if self.theta is not None and not _is_number(self.theta):
            raise ShapeError(f"theta must be a number above 0; got {self.theta!r}")
        if self.theta is not None and self.theta != scaling.get("rope_theta", self.theta):
            raise ShapeError(f"theta is {self.theta:g}, but scaling has rope_theta {scaling['rope_theta']}; pass one")
        _check_scaling(self.kind, scaling)
        numbers = {"theta": self.base, **{name: scaling.get(name) for name in _numbers(self.kind)}}
        for name, number in numbers.items():
            if number is not None and not (_is_number(number) and number > 0):
                raise ShapeError(f"{name} must be a number above 0; got {number!r}")
        if not isinstance(scaling.get("truncate", True), bool):
            raise ShapeError(f"truncate must be True or False; got {scaling['truncate']!r}")
        if self.kind == "llama3" and scaling["low_freq_factor"] >= scaling["high_freq_factor"]:
            raise ShapeError(
                f"low_freq_factor must be below high_freq_factor; got {scaling['low_freq_factor']} and "
                f"{scaling['high_freq_factor']}"
            )
        if self.dim is not None and "partial_rotary_factor" in scaling:
            raise ShapeError("dim and scaling's partial_rotary_factor both say how many numbers turn; pass one")
        if self.dim is not None and not (is_whole(self.dim) and self.dim > 0 and self.dim % 2 == 0):
            raise ShapeError(f"dim must be an even whole number above 0; got {self.dim!r}")

    @property
    def kind(self) -> str:
        """The kind of scaling."""
        scaling = self.scaling or {}
        return str(scaling.get("rope_type") or scaling.get("type") or "default")

    @property
    def base(self) -> float:
        """The base of the frequencies, before scaling."""
        return self.theta if self.theta is not None else (self.scaling or {}).get("rope_theta", _THETA)

    def tables(
        self, positions: Sequence[int] | Tensor, d_k: int, device: torch.device | str = "cpu"
    ) -> tuple[Float[Tensor, "position dim"], Float[Tensor, "position dim"]]:
        """Return cosines and sines of a head's turning numbers, each twice: by halves, or by neighbours if interleaved.

        Raises:
            ShapeError: more numbers would turn than a head has, or an odd number of them.
        """
        places = torch.as_tensor(positions, device=device)
        frequencies, factor = self._frequencies(self._turning(d_k), int(places.max()) + 1 if len(places) else 0)
        angles = places.float()[:, None] * frequencies.to(device)[None]
        angles = angles.repeat_interleave(2, dim=-1) if self.interleaved else torch.cat([angles, angles], dim=-1)
        return angles.cos() * factor, angles.sin() * factor

    def _turning(self, d_k: int) -> int:
        dim = self.dim or int(d_k * (self.scaling or {}).get("partial_rotary_factor", 1.0))
        if not 0 < dim <= d_k or dim % 2 or (self.kind == "dynamic" and dim == 2):
            raise ShapeError(f"{dim} numbers of a head can't turn in pairs; a head has {d_k}")
        return dim

    def _frequencies(self, dim: int, length: int) -> tuple[Tensor, float]:
        """Return a frequency per pair, in radians per position, and the factor of cosines and sines."""
        known: dict[str, Any] = dict(self.scaling or {})
        base = self.base
        if self.kind == "dynamic":
            trained = known["max_position_embeddings"]
            longer = known["factor"] * max(length, trained) / trained - (known["factor"] - 1)
            base *= longer ** (dim / (dim - 2))
        plain = 1.0 / base ** (torch.arange(0, dim, 2).float() / dim)
        if self.kind == "linear":
            return plain / known["factor"], 1.0
        if self.kind == "llama3":
            return _by_wavelength(plain, known), 1.0
        return _yarn(plain, self.base, dim, known) if self.kind == "yarn" else (plain, 1.0)

    def __repr__(self) -> str:
        """Name what differs from a plain rotation."""
        named = [f"theta={self.base:g}"] + ([f"dim={self.dim}"] if self.dim is not None else [])
        named += ["interleaved=True"] if self.interleaved else []
        named += [f"scaling={dict(self.scaling)}"] if self.scaling else []
        return f"Rope({', '.join(named)})"


# Positions that weren't applied: a rule, or cosines and sines; None if they were, or if there are none.
Positions = Rope | tuple[Tensor, Tensor] | None


def rotated(
    query: Float[Tensor, "head query d_k"],
    key: Float[Tensor, "_key_head key d_k"],
    rope: Any,
    positions: Any,
) -> tuple[Float[Tensor, "head query d_k"], Float[Tensor, "_key_head key d_k"]]:
    """Turn keys by their positions, and queries by those of the last keys, in their precision as transformers does.

    Raises:
        ShapeError: there are more queries than keys, or positions, cosines or sines don't fit.
    """
    queries, keys = query.shape[-2], key.shape[-2]
    if queries > keys:
        raise ShapeError(f"rope needs a key for each query; got {queries} queries and {keys} keys")
    cos, sin, interleaved = _tables(rope, positions, keys, key)
    return _turn(query, cos[keys - queries :], sin[keys - queries :], interleaved), _turn(key, cos, sin, interleaved)


def _tables(rope: Any, positions: Any, keys: int, key: Tensor) -> tuple[Tensor, Tensor, bool]:
    if isinstance(rope, Rope):
        places = torch.arange(keys) if positions is None else _checked(positions, keys)
        return *rope.tables(places, key.shape[-1], key.device), rope.interleaved
    if positions is not None:
        raise ShapeError("positions belong to a Rope; cosines and sines have them already")
    pair = cast("tuple[Any, ...]", rope) if isinstance(rope, tuple) else ()
    if len(pair) != 2 or not all(isinstance(one, Tensor) for one in pair):
        raise ShapeError(
            "rope must be an av.Rope or a pair of tensors (cos, sin), or a list with one per layer; got "
            f"{type(rope).__name__}"
        )
    cos, sin = (one.detach().squeeze(0) if one.ndim == 3 and len(one) == 1 else one.detach() for one in pair)
    for name, table in (("cos", cos), ("sin", sin)):
        if table.ndim != 2 or len(table) != keys or table.shape[-1] % 2 or not 0 < table.shape[-1] <= key.shape[-1]:
            raise ShapeError(
                f"{name} must be (key, dim) with {keys} keys and an even dim of at most {key.shape[-1]}; got "
                f"{tuple(table.shape)}"
            )
    return cos.to(key.device), sin.to(key.device), _is_interleaved(cos, sin)


def _checked(positions: Any, keys: int) -> Tensor:
    try:
        places = torch.as_tensor(positions).detach().cpu()
    except (TypeError, ValueError, RuntimeError):
        raise ShapeError(f"positions must be {keys} whole numbers, one per key; got {positions!r:.80}") from None
    places = places.squeeze(0) if places.ndim == 2 and len(places) == 1 else places
    whole = not (places.is_floating_point() or places.is_complex() or places.dtype == torch.bool)
    if places.shape != (keys,) or not whole or (keys and int(places.min()) < 0):
        raise ShapeError(
            f"positions must be {keys} whole numbers of at least 0, one per key; got {tuple(places.shape)} of "
            f"{places.dtype}"
        )
    return places


def _is_interleaved(cos: Tensor, sin: Tensor) -> bool:
    """Return whether neighbours turn together, as equal columns show."""
    if cos.shape != sin.shape:
        raise ShapeError(f"cos and sin must have one shape; got {tuple(cos.shape)} and {tuple(sin.shape)}")
    tables = torch.stack([cos, sin])
    halves, neighbours = tables.chunk(2, dim=-1), (tables[..., 0::2], tables[..., 1::2])
    by_halves, by_neighbours = torch.equal(*halves), torch.equal(*neighbours)
    if by_halves == by_neighbours and not (by_halves and (cos.shape[-1] == 2 or not bool(sin.any()))):
        raise ShapeError(
            "cos and sin must have each column twice, in halves as in Llama or side by side as in Cohere, and show "
            "which; for tables of half the columns, join them with torch.cat([cos, cos], -1)"
        )
    return by_neighbours and not by_halves


def _turn(vectors: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    dim = cos.shape[-1]
    turning, rest = vectors[..., :dim], vectors[..., dim:]
    first, second = (
        (turning[..., 0::2], turning[..., 1::2])
        if interleaved
        else (turning[..., : dim // 2], turning[..., dim // 2 :])
    )
    aside = torch.stack([-second, first], dim=-1).flatten(-2) if interleaved else torch.cat([-second, first], dim=-1)
    turned = turning * cos.to(vectors.dtype) + aside * sin.to(vectors.dtype)
    return torch.cat([turned, rest], dim=-1) if rest.shape[-1] else turned


def _by_wavelength(plain: Tensor, known: Mapping[str, Any]) -> Tensor:
    """Slow down long waves by the factor, keep short ones, and mix between, as in Llama 3.1."""
    waves = known["original_max_position_embeddings"] * plain / (2 * math.pi)  # how many fit into the trained length
    low, high = known["low_freq_factor"], known["high_freq_factor"]
    kept = ((waves - low) / (high - low)).clamp(0, 1)
    return plain * kept + plain / known["factor"] * (1 - kept)


def _yarn(plain: Tensor, base: float, dim: int, known: Mapping[str, Any]) -> tuple[Tensor, float]:
    """Mix by the number of turns in the trained length, and make scores larger."""
    factor, trained = known["factor"], known["original_max_position_embeddings"]
    # The pair that turns so many times.
    first, last = (
        dim * math.log(trained / (turns * 2 * math.pi)) / (2 * math.log(base))
        for turns in (known.get("beta_fast") or 32, known.get("beta_slow") or 1)
    )
    if known.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, dim - 1)
    slowed = ((torch.arange(dim // 2).float() - first) / ((last - first) or 1e-3)).clamp(0, 1)
    mixed = plain / factor * slowed + plain * (1 - slowed)
    return mixed, _yarn_factor(factor, known)


def _yarn_factor(factor: float, known: Mapping[str, Any]) -> float:
    if known.get("attention_factor") is not None:
        return float(known["attention_factor"])

    def larger(weight: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1

    if known.get("mscale") and known.get("mscale_all_dim"):
        return larger(known["mscale"]) / larger(known["mscale_all_dim"])
    return larger(1.0)


def _check_scaling(kind: str, scaling: Mapping[str, Any]) -> None:
    if kind not in _KINDS:
        raise UnsupportedModel(
            f"rotary positions of the kind {kind!r} aren't known here; choose {', '.join(_KINDS)}, or pass the model's "
            "own tables, rope=(cos, sin)"
        )
    needed, others = _KINDS[kind]
    if missing := sorted(name for name in needed if scaling.get(name) is None):
        raise ShapeError(f"scaling of the kind {kind!r} needs {', '.join(missing)}")
    if strange := sorted(str(name) for name in set(scaling) - needed - others - _EVERY):
        raise ShapeError(
            f"scaling of the kind {kind!r} doesn't know {', '.join(strange)}; pass the model's own tables, "
            "rope=(cos, sin)"
        )


def _numbers(kind: str) -> set[str]:
    needed, others = _KINDS[kind]
    return (needed | others | {"partial_rotary_factor"}) - {"truncate"}


def _is_number(number: object) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(cast("float", number))
