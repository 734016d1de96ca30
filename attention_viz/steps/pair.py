"""The steps from one key to one query in a layer without a softmax, each with its arithmetic.

Each kind takes the steps whose terms it has, in one order. A new step is an entry in `PAIR_STEPS`.

Source: the rules in `operation.token_mixer`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from attention_viz.errors import ShapeError
from attention_viz.operation.token_mixer import TokenMixer
from attention_viz.steps.arithmetic import Arithmetic, ProductTerm
from attention_viz.steps.mixing import MixerHead, Walk, logs_of, lone, walk, writes_of
from attention_viz.trace.once import once

# What the papers call the terms of a kind; others have query, key, write and gate.
LETTERS: dict[str, dict[str, str]] = {
    "gated delta": {"query": "q", "key": "k", "write": "β"},
    "Kimi delta": {"query": "q", "key": "k", "write": "β"},
    "SSD": {"query": "C", "key": "B", "write": "Δ"},
    "selective scan": {"query": "C", "key": "B", "write": "Δ", "gate": "silu(z)"},
    "lightning": {"query": "q", "key": "k"},
    "RG-LRU": {"write": "i·√(1 − a²)"},
    "mLSTM": {"query": "q", "key": "k", "write": "input gate"},
    "YOSO": {"query": "q", "key": "k"},
}


@dataclass(frozen=True, eq=False)
class MixerPair:
    """One pair of an open mixer; made by `open_pair`."""

    opened: MixerHead
    query: int
    key: int

    @once
    def walk(self) -> Walk:
        """The state's way from the key to the query; only of kinds with a state, if the query isn't before the key."""
        return walk(self.opened, self.query, self.key)

    @property
    def call(self) -> TokenMixer:
        """The head's call in float64."""
        return self.opened.exact

    @property
    def reached(self) -> bool:
        """Whether the key can reach the query at all."""
        allowed = self.call.allowed
        open_cell = allowed is None or bool(allowed.expand(self.call.shape)[self.query, self.key])
        return open_cell and (self.query >= self.key or not self.call.is_causal)

    @once
    def write(self) -> float:
        """The key's write strength."""
        return float(writes_of(self.call)[self.key])

    @once
    def reading(self) -> float:
        """The number that the write strength multiplies."""
        call = self.call
        if self.opened.mixer.keeps_state:
            return self.walk.reading
        product = float(call.query[self.query] @ call.key[self.key]) * call.scale
        if call.exponent is not None:
            return _probability(product) ** call.exponent
        if call.factor is not None:
            return product * float(call.factor.expand(call.shape)[self.query, self.key])
        return product * _tap(self)

    @once
    def divisor(self) -> float:
        """The row's divisor, for mLSTM; otherwise 1."""
        if self.call.floor is None:
            return 1.0
        return max(abs(self.row_sum), lone(self.call.floor, self.query) or 0.0) + self.call.epsilon

    @once
    def row_sum(self) -> float:
        """The sum of the row before its divisor."""
        return math.fsum(term.product for term in _row_terms(self))

    @property
    def gate(self) -> float:
        """The query's gate; 1 without one."""
        found = lone(self.call.gate, self.query)
        return 1.0 if found is None else found

    @property
    def skip(self) -> float:
        """The skip, on the diagonal; otherwise 0."""
        own = self.call.skip is not None and self.query == self.key
        return float(self.call.skip) if own and self.call.skip is not None else 0.0

    @once
    def weight(self) -> float:
        """The cell: everything together."""
        if not self.reached:
            return 0.0
        return (self.reading * self.write / self.divisor + self.skip) * self.gate

    def letter(self, name: str) -> str:
        """Return a term's name in this kind's paper."""
        return LETTERS.get(self.call.kind, {}).get(name, name)


@dataclass(frozen=True)
class PairStep:
    """One step from a key to a query.

    Attributes:
        applies: whether a pair takes this step.
        opens: its arithmetic.
    """

    applies: Callable[[MixerPair], bool]
    opens: Callable[[MixerPair], Arithmetic]


@dataclass(frozen=True)
class Eraser:
    """A later token that erased part of what a key wrote.

    Attributes:
        position: its position.
        erased: its part of the erased reading; all parts sum to it.
        without: the pair's weight if this token erased nothing and all others did.
        change: that weight less the real one.
    """

    position: int
    erased: float
    without: float
    change: float


def open_pair(opened: MixerHead, query: int, key: int) -> MixerPair:
    """Open a pair of positions.

    Raises:
        ShapeError: a position outside the text.
    """
    queries, keys = opened.mixer.shape
    if not (0 <= query < queries and 0 <= key < keys):
        raise ShapeError(f"no cell ({query}, {key}); the matrix is {queries} × {keys}, counted from 0")
    return MixerPair(opened, query, key)


def pair_steps(pair: MixerPair) -> dict[str, Arithmetic]:
    """Return the arithmetic of each step that a pair takes, in order; only the weight if the key can't reach it."""
    if not pair.reached:
        return {"weight": _weight(pair)}
    return {name: step.opens(pair) for name, step in PAIR_STEPS.items() if step.applies(pair)}


def erasers(pair: MixerPair) -> list[Eraser]:
    """Return the later tokens that erased, the one that changed the weight most first; empty without a delta rule."""
    if not pair.reached or not pair.call.erases:
        return []
    found, factor = pair.walk, pair.write * pair.gate
    parts, changes = (found.weights * found.overlaps).tolist(), (found.restored * factor).tolist()
    lines = zip(found.later, parts, changes, strict=True)
    return sorted((Eraser(j, part, pair.weight + by, by) for j, part, by in lines), key=lambda one: -abs(one.change))


def _read(pair: MixerPair) -> Arithmetic:
    call, names = pair.call, (pair.letter("query"), pair.letter("key"))
    left, right, scale = call.query[pair.query].tolist(), call.key[pair.key].tolist(), call.scale
    scaled = (("scale", scale),) if scale != 1 else ()
    terms = tuple(
        ProductTerm(f"dimension {d}", ((names[0], a), (names[1], b), *scaled), a * b * scale)
        for d, (a, b) in enumerate(zip(left, right, strict=True))
    )
    times = " × the scale" if scaled else ""
    said = f"The sum over {len(terms)} dimensions of {names[0]} × {names[1]}{times}, with nothing between the tokens."
    return Arithmetic("sum", said, math.fsum(term.product for term in terms), terms)


def _decay(pair: MixerPair) -> Arithmetic:
    logs, labels = logs_of(pair.call)[:, 0], _written(pair)
    found = [(labels[j], float(logs[j].exp())) for j in pair.walk.later]
    total = float(pair.walk.between.exp())
    if not found:
        return Arithmetic("given", "The query is the key's own token: nothing has decayed.", total)
    terms = tuple(ProductTerm(label, (), factor) for label, factor in found)
    return Arithmetic("product", "The product of the decays of all tokens after the key.", total, terms)


def _decayed(pair: MixerPair) -> Arithmetic:
    call, between = pair.call, pair.walk.between
    if len(between) == 1:
        before, factor = _read(pair).total, float(between.exp())
        term = ProductTerm("read × decay", (("read", before), ("decay", factor)), before * factor)
        return Arithmetic("sum", "The query's reading of this key if nothing were erased.", term.product, (term,))
    names = (pair.letter("query"), pair.letter("key"))
    columns = (call.query[pair.query] * call.scale, call.key[pair.key], between.exp())
    terms = tuple(
        ProductTerm(f"dimension {d}", ((names[0], a), (names[1], b), ("decay", c)), a * b * c)
        for d, (a, b, c) in enumerate(zip(*(one.tolist() for one in columns), strict=True))
    )
    return Arithmetic(
        "sum",
        "Each dimension decays by itself: the product of its decays over all tokens after the key.",
        pair.walk.decayed,
        terms,
    )


def _erased(pair: MixerPair) -> Arithmetic:
    found, labels = pair.walk, _written(pair)
    lines = zip(found.later, found.weights.tolist(), found.overlaps.tolist(), strict=True)
    terms = tuple(
        ProductTerm(labels[j], (("its weight", -weight), ("overlap", overlap)), -weight * overlap)
        for j, weight, overlap in lines
    )
    if not terms:
        return Arithmetic("given", "No later token has come, so nothing is erased.", 0.0)
    said = "Each later token erases the overlap of its key with this one, decayed, times its own weight for the query."
    return Arithmetic("sum", said, -found.erased, terms)


def _kept(pair: MixerPair) -> Arithmetic:
    found = pair.walk
    terms = (ProductTerm("after decay", (), found.decayed), ProductTerm("erased", (), -found.erased))
    return Arithmetic("sum", "The query's reading of this key after decays and erasing.", found.reading, terms)


def _write(pair: MixerPair) -> Arithmetic:
    name = pair.letter("write")
    named = f", {name}" if name != "write" else ""
    said = f"How strongly the key's token writes its value{named}. The layer computes it."
    return Arithmetic("given", said, pair.write)


def _distance_factor(pair: MixerPair) -> Arithmetic:
    distance = pair.query - pair.key
    count = pair.call.taps.shape[-1] if pair.call.taps is not None else 0
    if distance >= count:
        return Arithmetic("given", f"{distance} tokens back, beyond the {count} learned numbers.", 0.0)
    return Arithmetic("given", f"The learned number for {distance} tokens back, of {count}.", _tap(pair))


def _fourier(pair: MixerPair) -> Arithmetic:
    count = pair.call.shape[-1]
    wave = ("cos", "−sin")[pair.opened.head] if pair.opened.head < 2 else "a factor"
    said = f"{wave} of 2π × {pair.query} × {pair.key} ÷ {count}: fixed by the two positions, not by the text."
    return Arithmetic("given", said, pair.reading)


def _angle(pair: MixerPair) -> Arithmetic:
    cosine = _read(pair).total
    angle = math.acos(max(-1.0, min(1.0, cosine)))
    return Arithmetic("given", f"The arccosine of {cosine:.6g}, in radians.", angle)


def _collision(pair: MixerPair) -> Arithmetic:
    one, power = _probability(_read(pair).total), pair.call.exponent or 1.0
    if not power.is_integer():
        return Arithmetic("given", f"(1 − angle ÷ π) to the power {power:g}.", pair.reading)
    terms = tuple(ProductTerm(f"hash {n + 1}", (), one) for n in range(int(power)))
    said = f"1 − angle ÷ π is the chance that one hash agrees; all {power:g} do by this number."
    return Arithmetic("product", said, pair.reading, terms)


def _divisor(pair: MixerPair) -> Arithmetic:
    floor, total = lone(pair.call.floor, pair.query) or 0.0, pair.row_sum
    which = "the size of the row's sum" if abs(total) >= floor else "the floor"
    said = f"The larger of the size of the row's sum and the floor {floor:.6g}; here {which}."
    if abs(total) < floor:
        return Arithmetic("given", said, pair.divisor)
    flipped = 1 if total >= 0 else -1
    terms = tuple(ProductTerm(one.label, one.factors, flipped * one.product) for one in _row_terms(pair))
    more = (ProductTerm("ε", (), pair.call.epsilon),) if pair.call.epsilon else ()
    return Arithmetic("sum", said, pair.divisor, (*terms, *more))


def _gate(pair: MixerPair) -> Arithmetic:
    return Arithmetic("given", "The query's gate multiplies its whole row.", pair.gate)


def _skip(pair: MixerPair) -> Arithmetic:
    said = "The token's way to itself beside the state. It isn't memory."
    return Arithmetic("given", said, pair.skip)


def _weight(pair: MixerPair) -> Arithmetic:
    call = pair.call
    if not pair.reached:
        later = pair.key > pair.query and call.is_causal
        why = "The key comes after the query, so it isn't in the state yet." if later else "An edit blocks this cell."
        return Arithmetic("given", why, 0.0)
    factors = [(_reading_name(pair), pair.reading)]
    factors += [("write", pair.write)] if call.write is not None else []
    factors += [("1 ÷ divisor", 1 / pair.divisor)] if call.floor is not None else []
    gate = [("gate", pair.gate)] if call.gate is not None else []
    factors += gate
    terms = [ProductTerm("memory", tuple(factors), math.prod(number for _, number in factors))]
    if pair.skip:
        # Each column has one meaning; what a term lacks is 1.
        others = [(name, 1.0) for name, _ in factors[1 : len(factors) - len(gate)]]
        terms.append(ProductTerm("skip", (("skip", pair.skip), *others, *gate), pair.skip * pair.gate))
    said = " × ".join(name for name, _ in factors) + (", plus the skip" if pair.skip else "")
    return Arithmetic("sum", f"{said[0].upper()}{said[1:]}.", pair.weight, tuple(terms))


def _row_terms(pair: MixerPair) -> list[ProductTerm]:
    """Return the numbers of the row before its divisor, of a kind that erases nothing."""
    call, labels = pair.call, _written(pair)
    sums = logs_of(call)[: pair.query + 1].flip(0).cumsum(dim=0).flip(0)
    after = torch.cat([sums[1:], sums.new_zeros(1, sums.shape[-1])])
    readings = (call.key[: pair.query + 1] * after.exp()) @ (call.query[pair.query] * call.scale)
    written = (readings * writes_of(call)[: pair.query + 1]).tolist()
    return [ProductTerm(labels[j], (), number) for j, number in enumerate(written)]


def _tap(pair: MixerPair) -> float:
    taps, distance = pair.call.taps, pair.query - pair.key
    return float(taps[0, distance]) if taps is not None and 0 <= distance < taps.shape[-1] else 0.0


def _probability(cosine: float) -> float:
    return 1 - math.acos(max(-1.0, min(1.0, cosine))) / math.pi


def _written(pair: MixerPair) -> list[str]:
    return [f"{at} · {one}" for at, one in enumerate(pair.opened.trace.key_tokens(pair.opened.stream).numbered)]


def _one_decay(pair: MixerPair) -> bool:
    return _decays(pair) and pair.call.decay is not None and pair.call.decay.shape[-1] == 1


def _decays(pair: MixerPair) -> bool:
    return pair.opened.mixer.keeps_state and pair.call.decay is not None


def _reading_name(pair: MixerPair) -> str:
    """Return the label of the last step before the write strength, in small letters."""
    before = {"kept": "still read", "decayed": "after decay"}
    names = ("kept", "decayed", "decay", "wave", "tap", "collision", "read")
    found = next((name for name in names if PAIR_STEPS[name].applies(pair)), "read")
    return before.get(found, found)


PAIR_STEPS: dict[str, PairStep] = {
    "read": PairStep(
        lambda pair: pair.opened.has_vectors,
        _read,
    ),
    "angle": PairStep(lambda pair: pair.call.exponent is not None, _angle),
    "collision": PairStep(lambda pair: pair.call.exponent is not None, _collision),
    "tap": PairStep(lambda pair: pair.call.taps is not None, _distance_factor),
    "wave": PairStep(lambda pair: pair.call.factor is not None, _fourier),
    "decay": PairStep(_one_decay, _decay),
    "decayed": PairStep(
        lambda pair: _decays(pair) and pair.opened.has_vectors,
        _decayed,
    ),
    "erased": PairStep(lambda pair: pair.call.erases, _erased),
    "kept": PairStep(lambda pair: pair.call.erases, _kept),
    "write": PairStep(lambda pair: pair.call.write is not None, _write),
    "divisor": PairStep(lambda pair: pair.call.floor is not None, _divisor),
    "gate": PairStep(lambda pair: pair.call.gate is not None, _gate),
    "skip": PairStep(
        lambda pair: pair.call.skip is not None and pair.query == pair.key,
        _skip,
    ),
    "weight": PairStep(lambda pair: True, _weight),
}
