"""Slides of one opened head: a question with numbers per step."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.slides.slide import (
    GivenTable,
    Part,
    Slide,
    SlidePicture,
    begun,
    named,
    picture_of,
    source_of,
    with_picture,
)
from attention_viz.steps.arithmetic import ProductTerm
from attention_viz.steps.head import OpenHead
from attention_viz.steps.mixer_steps import exact_row
from attention_viz.steps.mixing import logs_of
from attention_viz.steps.pair import MixerPair, pair_steps
from attention_viz.trace.kind import CROSSING_STREAMS, Unit

# So many terms of a score are named, and so many heads at most.
_TERMS, _HEADS = 6, 9
# Some models' changes of the scaled scores, in this order.
_CHANGES = ("This model bounds large scores", "This model adds a number that depends on the two positions")


def step_slides(opened: OpenHead, query: int, key: int) -> tuple[Slide, ...]:
    """Follow one score to its weight and output; skip steps without effect."""
    row = _SlideRow(replace(opened, queries=slice(query, query + 1)), query, key)
    slides = (row.terms(), row.scaled(), *row.changed(), row.blocked(), row.weights(), row.values(), row.joined())
    return tuple(one for one in slides if one is not None)


class _SlideRow:
    """A head's query and a key."""

    def __init__(self, opened: OpenHead, query: int, key: int) -> None:
        self.opened, self.place, self.key = opened, query, key
        self.keys = opened.trace.key_tokens(opened.stream)
        queries = opened.trace.query_tokens(opened.stream)
        self.query = query if opened.stream not in CROSSING_STREAMS and queries == self.keys else None
        self.looking, self.seen = named(queries, query, "query"), named(self.keys, key, "key")
        self.pair: tuple[Part, ...] = (*self.looking, (" · ", ""), *self.seen)
        self.scores = _first(opened.attention.scores)

    def slide(self, ask: tuple[Part, ...], tell: tuple[Part, ...], picture: SlidePicture) -> Slide:
        """Make a slide with its source."""
        where = f"layer {self.opened.layer}, head {self.opened.head}"
        slide = Slide(begun(ask), begun(tell), picture, source_of(self.opened.trace, where, picture))
        weights = _first(self.opened.weights)
        return with_picture(slide, self.opened.trace, self.opened.stream, weights, self.place, self.key)

    def bars(self, values: Tensor, unit: str, before: Tensor | None = None, key: int | None = None) -> SlidePicture:
        """Draw numbers over the keys as bars."""
        return picture_of("bars", self.keys, values, None, self.key if key is None else key, before=before, unit=unit)

    def terms(self) -> Slide:
        """Show the score's largest terms by dimension, and the rest's sum."""
        call = self.opened.attention
        query, key = _first(call.query), call.key[self.key].detach().double().cpu()
        terms = query * key
        order = terms.abs().argsort(descending=True, stable=True).tolist()
        shown, others = sorted(order[:_TERMS]), order[_TERMS:]
        names = [f"dimension {one}" for one in shown]
        values = [float(terms[one]) for one in shown]
        # The factors are shown, so that a class can work the products out.
        cells = tuple((_written(query[one]), _written(key[one])) for one in shown)
        factors = GivenTable("query × key", tuple(names), ("query", "key"), cells)
        of_all = f"{len(terms)} products" if others else "products"
        ask: tuple[Part, ...] = (*self.pair, (f" is a sum of {of_all}. Which is furthest from 0?", ""))
        tell: tuple[Part, ...] = (
            ("The score is ", ""),
            _number(self.scores[self.key]),
            (f": dimension {order[0]} gives ", ""),
            _number(terms[order[0]]),
        )
        if others:
            tell = (*tell, (f", together the {len(others)} that aren’t shown ", ""), _number(terms[others].sum()))
        picture = _listed(names, values, shown.index(order[0]), "part of the score", more=bool(others))
        return replace(self.slide(ask, tell, picture), given=(factors,))

    def scaled(self) -> Slide | None:
        """Show the scores' scale; None if it is 1."""
        scale, width = self.opened.attention.scale, self.opened.d_k
        if scale == 1:
            return None
        how = f"÷ √{width}" if math.isclose(scale * math.sqrt(width), 1, rel_tol=1e-6) else f"× {scale:.3g}"
        after = _first(self.opened.attention.scaled)
        ask = (*self.pair, (" is ", ""), _number(self.scores[self.key]), (f". What is it {how}?", ""))
        tell = (_number(self.scores[self.key]), (f" {how} is ", ""), _number(after[self.key]))
        return self.slide(ask, tell, self.bars(after, "score", self.scores))

    def changed(self) -> list[Slide]:
        """Show the model's changes to scaled scores."""
        rows = [_first(one) for one in (self.opened.attention.scaled, self.opened.capped, self.opened.biased)]
        found: list[Slide] = []
        for what, (before, after) in zip(_CHANGES, pairwise(rows), strict=True):
            if not torch.equal(before, after):
                ask = ((f"{what}. ", ""), *self.pair, (" is ", ""), _number(before[self.key]), (". And then?", ""))
                tell = (_number(before[self.key]), (" becomes ", ""), _number(after[self.key]))
                found.append(self.slide(ask, tell, self.bars(after, "score", before)))
        return found

    def blocked(self) -> Slide | None:
        """Show the query's blocked keys."""
        before, after = _first(self.opened.biased), _first(self.opened.attention.masked)
        count = int(torch.isneginf(after).sum())
        if not count:
            return None
        ask = (("Which keys may ", ""), *self.looking, (" not attend to?", ""))
        tell = (*self.looking, (" may not attend to ", ""), (f"{count}", "number"), (f" of {len(after)} words", ""))
        return self.slide(ask, tell, self.bars(after, "score", before))

    def weights(self) -> Slide:
        """Show the row's weights."""
        row = _first(self.opened.weights)
        ask = (("The softmax turns scores into weights. How much does ", ""), *self.looking, (" look at ", ""))
        tell = (*self.looking, (" looks at ", ""), *self.seen, (": ", ""), _number(row[self.key]))
        form = "bars" if self.query is None or self.keys.unit is Unit.PATCH else "line"
        return self.slide((*ask, *self.seen, ("?", "")), tell, picture_of(form, self.keys, row, self.query, self.key))

    def values(self) -> Slide:
        """Show the value with the largest weight times length."""
        row = _first(self.opened.weights)
        lengths = self.opened.attention.value.detach().double().cpu().norm(dim=-1)
        brought = row * lengths
        best = int(brought.argmax())
        ask = (("Whose value counts most in the output of ", ""), *self.looking, ("?", ""))
        tell = (
            *named(self.keys, best, "key"),
            (" counts most: weight ", ""),
            _number(row[best]),
            (" × a value of length ", ""),
            _number(lengths[best]),
        )
        return self.slide(ask, tell, self.bars(brought, "weight × length of the value", key=best))

    def joined(self) -> Slide | None:
        """Show each head's part of the joined vector; nothing without W_O."""
        parts = _parts(self.opened)
        if parts is None or len(parts) == 1:
            return None
        own, best = self.opened.head, int(parts.argmax())
        ranked = parts.abs().argsort(descending=True, stable=True).tolist()
        shown = sorted(list(dict.fromkeys([own, best, *ranked]))[:_HEADS])
        ask: tuple[Part, ...] = (
            (f"Which of {len(parts)} heads adds most to the attention's output at ", ""),
            *self.looking,
            ("?", ""),
        )
        tell: tuple[Part, ...] = ((f"Head {best} adds most: ", ""), _number(parts[best]), (" of it", ""))
        if best != own:
            tell = (*tell, (f"; head {own} adds ", ""), _number(parts[own]))
        names, values = [f"head {one}" for one in shown], [float(parts[one]) for one in shown]
        return self.slide(
            ask,
            tell,
            _listed(names, values, shown.index(best), "part of the joined vector", more=len(shown) < len(parts)),
        )


def mixer_slides(pair: MixerPair) -> tuple[Slide, ...]:
    """Follow one pair of a layer without a softmax to its weight and what arrives; skip steps that it lacks."""
    row = _MixedRow(pair)
    slides = (row.read(), row.decayed(), row.erased(), row.weight(), row.arrives())
    return tuple(one for one in slides if one is not None)


class _MixedRow:
    """A mixer's query and a key."""

    def __init__(self, pair: MixerPair) -> None:
        self.pair, self.steps, self.row = pair, pair_steps(pair), exact_row(pair.opened, pair.query)
        trace, stream = pair.opened.trace, pair.opened.stream
        self.keys = trace.key_tokens(stream)
        self.to, self.source = named(trace.query_tokens(stream), pair.query, "query"), named(self.keys, pair.key, "key")
        self.names: tuple[Part, ...] = (*self.to, (" · ", ""), *self.source)

    def slide(self, ask: tuple[Part, ...], tell: tuple[Part, ...], picture: SlidePicture) -> Slide:
        """Make a slide with its source."""
        opened, at = self.pair.opened, (self.pair.query, self.pair.key)
        where = f"layer {opened.layer}, {opened.mixer.kind}, {opened.mixer.per} {opened.head}"
        slide = Slide(begun(ask), begun(tell), picture, source_of(opened.trace, where, picture))
        return with_picture(slide, opened.trace, opened.stream, self.row, *at)

    def read(self) -> Slide | None:
        """Show the largest products of query and key; nothing for a single one."""
        found = self.steps.get("read")
        if found is None or len(found.terms) < 2:
            return None
        shown, names, values, best = _largest_terms(found.terms)
        columns = tuple(name for name, _ in found.terms[0].factors)
        cells = tuple(tuple(_written(number) for _, number in found.terms[one].factors) for one in shown)
        ask = (*self.names, (f" is a sum of {len(found.terms)} products. Which is furthest from 0?", ""))
        tell = (("The query reads this key with ", ""), _number(found.total), (f": {names[best]} gives ", ""))
        picture = _listed(names, values, best, "part of the reading", more=len(shown) < len(found.terms))
        slide = self.slide(ask, (*tell, _number(values[best])), picture)
        return replace(slide, given=(GivenTable(" × ".join(columns), tuple(names), columns, cells),))

    def decayed(self) -> Slide | None:
        """Show the part that each later token leaves; nothing without decay or later tokens."""
        later = range(self.pair.key + 1, self.pair.query + 1)
        if self.pair.call.decay is None or not later or not self.pair.reached:
            return None
        if "decay" not in self.steps:
            before, after = self.steps["read"].total, self.steps["decayed"].total
            shown, names, values, best = _largest_terms(self.steps["decayed"].terms)
            ask = (*self.names, (" is ", ""), _number(before), (". Each dimension decays. What is left?", ""))
            tell = (_number(before), (" becomes ", ""), _number(after))
            more = len(shown) < len(self.steps["decayed"].terms)
            return self.slide(ask, tell, _listed(names, values, best, "part of the reading", more=more))
        left = logs_of(self.pair.call)[:, 0].exp()
        # Tokens outside the way count for nothing here.
        way = torch.full_like(left, float("nan")).index_copy(0, torch.tensor(later), left[later.start : later.stop])
        least = later[int(left[later.start : later.stop].argmin())]
        ask = (("The write of ", ""), *self.source, (" decays at each later token. Which leaves least of it?", ""))
        tell = (*named(self.keys, least, "key"), (" leaves ", ""), _number(left[least]), (" of it", ""))
        if len(later) > 1:
            tell = (*tell, (f", all {len(later)} together ", ""), _number(self.steps["decay"].total))
        picture = picture_of("bars", self.keys, way, None, least, unit="part that is left")
        return self.slide(ask, tell, picture)

    def erased(self) -> Slide | None:
        """Show which later token erased most; nothing without a delta rule."""
        found = self.steps.get("erased")
        if found is None or not found.terms:
            return None
        parts = torch.full_like(self.row, float("nan"))
        parts[self.pair.key + 1 : self.pair.query + 1] = torch.tensor([one.product for one in found.terms]).double()
        best = int(parts.abs().nan_to_num(-1).argmax())
        ask = (
            ("Later keys overwrite what ", ""),
            *self.source,
            (" wrote. Which changes the reading of ", ""),
            _number(self.steps["decayed"].total if "decayed" in self.steps else self.steps["read"].total),
            (" most?", ""),
        )
        tell = (*named(self.keys, best, "key"), (": ", ""), _number(parts[best]), ("; still read: ", ""))
        picture = picture_of("bars", self.keys, parts, None, best, unit="erased")
        return self.slide(ask, (*tell, _number(self.steps["kept"].total)), picture)

    def weight(self) -> Slide:
        """Show the weight as the product of its factors, in its row."""
        found, weight = self.steps["weight"], self.pair.weight
        ask = (("How much of the value of ", ""), *self.source, (" arrives at ", ""), *self.to, ("?", ""))
        how = " is taken away from " if weight < 0 else " is carried to " if weight else " doesn’t reach "
        tell = (*self.source, (how, ""), *self.to, (": ", ""), (_short(weight), "number"))
        picture = picture_of("bars", self.keys, self._reached(), None, self.pair.key, unit="signed weight")
        slide = self.slide(ask, tell, picture)
        if not found.terms:
            return slide
        columns = tuple(name for name, _ in found.terms[0].factors)
        if len(found.terms) > 1:
            columns = (f"{columns[0]} or skip", *columns[1:])
        cells = tuple(tuple(_short(number) for _, number in term.factors) for term in found.terms)
        names = tuple(term.label for term in found.terms)
        return replace(slide, given=(GivenTable(" × ".join(columns), names, columns, cells),))

    def arrives(self) -> Slide:
        """Show the value with the largest weight times length."""
        lengths = self.pair.call.value.norm(dim=-1)
        arriving = self._reached().abs() * lengths
        best = int(arriving.nan_to_num(-1).argmax())
        ask = (("Whose value counts most in what arrives at ", ""), *self.to, ("?", ""))
        tell = (
            *named(self.keys, best, "key"),
            (" counts most: weight ", ""),
            (_short(float(self.row[best])), "number"),
            (" × a value of length ", ""),
            _number(lengths[best]),
        )
        unit = "size of weight × length of the value"
        return self.slide(ask, tell, picture_of("bars", self.keys, arriving, None, best, unit=unit))

    def _reached(self) -> Float[Tensor, " key"]:
        """Return the row, NaN after the query if the layer reads no later token."""
        if not self.pair.call.is_causal:
            return self.row
        return self.row.masked_fill(torch.arange(len(self.row)) > self.pair.query, float("nan"))


def _largest_terms(terms: Sequence[ProductTerm]) -> tuple[list[int], list[str], list[float], int]:
    """Return the largest terms' places in order, names and products, and which of them is the largest."""
    order = sorted(range(len(terms)), key=lambda one: -abs(terms[one].product))
    shown = sorted(order[:_TERMS])
    return shown, [terms[one].label for one in shown], [terms[one].product for one in shown], shown.index(order[0])


def _short(number: float) -> str:
    """Write a number with two digits behind the point, or with two that count if it is small."""
    return (f"{number:.2f}" if abs(number) >= 0.1 or not number else f"{number:.2g}").replace("-", "−")


def _parts(opened: OpenHead) -> Float[Tensor, " head"] | None:
    """Return each head's share of the joined vector's squared length; with W_O's bias they sum to 1."""
    matrix, joined, rows = opened.projections.get("output"), opened.entry.joined, opened.queries
    if matrix is None or joined is None or rows is None:
        return None
    outputs = opened.entry.attention.rows([rows.start]).output[:, 0].detach().double().cpu()
    weight = matrix.weight.detach().double().cpu().unflatten(0, (len(outputs), -1))
    whole = joined[rows.start].detach().double().cpu()
    length = float(whole.square().sum())
    return torch.einsum("hv,hvm,m->h", outputs, weight, whole) / length if length else None


def _listed(names: list[str], values: list[float], key: int, unit: str, *, more: bool) -> SlidePicture:
    alike = len({_written(one) for one in values}) < len(values)
    written = tuple(_written(one, 3) for one in values) if alike else ()
    rounded = tuple(round(one, 6) for one in values)
    return SlidePicture(
        "bars",
        tuple(names),
        (False,) * len(names),
        rounded,
        None,
        key,
        (len(names),) if more else (),
        unit=unit,
        written=written,
        neutral=True,
    )


def _first(rows: Tensor) -> Tensor:
    return rows[0].detach().double().cpu()


def _number(value: float | Tensor) -> Part:
    return _written(value), "number"


def _written(value: float | Tensor, digits: int = 2) -> str:
    return f"{float(value):.{digits}f}".replace("-", "−")
