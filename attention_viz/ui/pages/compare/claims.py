"""The Compare page's sentences about one query's row in both heads."""

import math
from dataclasses import dataclass
from functools import cached_property

from attention_viz.analysis.comparison.align import AlignedAxis
from attention_viz.analysis.comparison.compare import Comparison, Side
from attention_viz.analysis.comparison.texts import text_changes
from attention_viz.analysis.slides.slide import begun, named
from attention_viz.analysis.words import words_of
from attention_viz.serving import permissions as allowed
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.tokens import Tokens
from attention_viz.ui.address import State
from attention_viz.ui.pages.compare.choice import CompareChoice, sides

# A change from which a sentence names it.
TELLING = 0.05
# Pieces of a sentence, with their roles: "query", "key", "number" or "".
Phrase = list[tuple[str, str]]


@dataclass(frozen=True)
class RowClaim:
    """A row's sentence, and the keys that it names in the first and the second text; None for none."""

    phrase: tuple[tuple[str, str], ...]
    keys: tuple[int | None, int | None]


@dataclass(frozen=True, eq=False)
class RowClaims:
    """The sentences of all rows; both heads are in shares if one has no softmax."""

    choice: CompareChoice
    state: State
    comparison: Comparison

    @cached_property
    def _rows(self) -> tuple[list[list[float]], list[list[float]]]:
        # The browser has single precision, so both write the same digits.
        both = self.comparison.weights, self.comparison.other_weights
        return both[0].float().tolist(), both[1].float().tolist()

    @cached_property
    def _is_word(self) -> tuple[list[bool], list[bool]]:
        """Mark queries and keys that are words in a text."""
        found = list[list[bool]]()
        for axis, name in ((self.comparison.queries, "query"), (self.comparison.keys, "key")):
            carrying = [words_of(_tokens(side, name)).carrying.tolist() for side in self._sides]
            pairs = zip(axis.one, axis.other, strict=True)
            words = (zip(carrying, pair, strict=True) for pair in pairs)
            found.append([any(at is not None and own[at] for own, at in word) for word in words])
        return found[0], found[1]

    @property
    def _sides(self) -> tuple[Side, Side]:
        return self.comparison.one, self.comparison.other

    @cached_property
    def second_side(self) -> str:
        """Begin the sentence about the second side."""
        second = sides(self.choice, self.state)[1]
        match self.choice.what:
            case "models":
                return f"In {allowed.display_name(second.model)}"
            case "heads":
                _, other = self._sides
                return f"In {other.layer}·{other.head}"
            case "edit":
                return "After the change"
            case "snapshots":
                return f"After {self.choice.other_moment} steps"
            case _:
                pass
        if self.comparison.one.trace.seen.tensors:
            return "In the second image"
        return changed_words(self.state.text, second.text)

    @cached_property
    def _verb(self) -> str:
        return " receives " if self._mixes else " looks at "

    @cached_property
    def _turns(self) -> str:
        if self._mixes:
            return " it receives "
        return " it looks at " if self.choice.what in ("models", "heads") else " it turns to "

    @property
    def _mixes(self) -> bool:
        return any(side.mixes for side in self._sides)

    def opening(self) -> int:
        """Return the query to open on: its row changes most, and it is best a meaningful word of both texts."""
        (queries, keys), axis = self._is_word, self.comparison.queries
        change = self.comparison.difference.nan_to_num().abs()
        most: list[float] = change[:, keys].amax(dim=1).tolist() if any(keys) else [0.0] * len(axis)
        kinds = words_of(_tokens(self._sides[0], "query"))
        words = [at for at in axis.both if queries[at]]
        kept = [at for at in words if at not in axis.substituted]
        content = [at for at in kept if kinds.kinds[kinds.of_position[axis.one[at] or 0]] == "content"]
        least = max(TELLING, max((most[at] for at in words), default=0.0) / 2)
        # A decoder's last word is the one that the next word is read from.
        last = words[-1:] if self.comparison.one.stream == "decoder" else []
        for places in (last, content, kept, words):
            if best := [at for at in places if most[at] >= least]:
                return max(best, key=most.__getitem__)
        return max(words, key=most.__getitem__, default=0)

    def pair(self, query: int, key: int) -> RowClaim:
        """Return the sentence about a pair: the row's own if it names the key."""
        row = self.row(query)
        if key in row.keys or query not in self.comparison.queries.both:
            return row
        first, second = (rows[query][key] for rows in self._rows)
        partner = key if not math.isnan(second) else self.comparison.keys.partner(key)
        phrase = self._start(query, key, first) if not math.isnan(first) else []
        if not phrase:
            return row
        if partner is None:
            phrase += [(". The second text doesn’t have it", "")]
        elif partner != key or key in self.comparison.keys.substituted:
            phrase += self._in_place(query, partner)
        elif query in self.comparison.queries.substituted:
            phrase += self._swapped(query, partner)
        else:
            phrase += [(f". {self.second_side}: ", ""), self._number(second)]
        return RowClaim(begun(phrase), (key, partner))

    def row(self, query: int) -> RowClaim:
        """Return a row's sentence: its strongest key, and the key that it turns to on the second side."""
        queries = self.comparison.queries
        if query not in queries.both:
            return self._alone(query)
        weights = self._rows[0][query], self._rows[1][query]
        changes = [abs(_or_0(b) - _or_0(a)) for a, b in zip(*weights, strict=True)]
        pool = [at for at, is_word in enumerate(self._is_word[1]) if is_word]
        if max((changes[at] for at in pool), default=0.0) < TELLING:
            pool = list(range(len(changes)))
        if not pool:
            return RowClaim((), (None, None))
        first, second = (max(pool, key=lambda at: abs(_or_0(row[at]))) for row in weights)
        # A word is named before a special token, unless that one takes far more.
        top = max(range(len(changes)), key=lambda at: abs(_or_0(weights[0][at])))
        if abs(weights[0][top]) >= 2 * abs(_or_0(weights[0][first])):
            first = top
        phrase, keys = self._told(query, first, second, max(pool, key=lambda at: changes[at]))
        return RowClaim(begun(phrase), keys)

    def _told(self, query: int, first: int, second: int, most: int) -> tuple[Phrase, tuple[int, int]]:
        one, other = self._rows[0][query], self._rows[1][query]
        change = {at: abs(_or_0(other[at])) - abs(_or_0(one[at])) for at in (first, second, most)}
        start = self._start(query, first, one[first])
        if query in self.comparison.queries.substituted:
            return [*start, *self._swapped(query, second)], (first, second)
        if query in self.comparison.shared:
            return [*start, (". It can’t differ: both texts begin alike", "")], (first, first)
        if first != second and change[second] >= TELLING:
            key = self._key(second, 1)
            # A word is named once in a sentence.
            where = "In the second text" if self.second_side == f"With {key[-1][0]}" else self.second_side
            stays = abs(_or_0(other[first])) > abs(other[second])
            turns = " also at " if stays and not self._mixes else self._turns
            if self.choice.what == "sentences" and _words(key) == _words(self._key(first, 0)):
                # Two places with one name: each text counts its own.
                where = "In the second text"
                turns, key = f"{turns}that text’s ", [(text.removeprefix("the "), role) for text, role in key]
            end = [(f". {where}{turns}", ""), *key, (": ", ""), self._number(other[second])]
            return [*start, *end], (first, second)
        if abs(change[first]) < TELLING <= abs(change[most]):
            if math.isnan(one[most]):
                also = " also receives " if self._mixes else " also at "
                end = [(f". {self.second_side}{also}", ""), *self._key(most, 1), (": ", ""), self._number(other[most])]
                return [*start, *end], (first, most)
            first, start = most, self._start(query, most, one[most])
        if first in self.comparison.keys.substituted and first in (second, most):
            return [*start, *self._in_place(query, first)], (first, first)
        if math.isnan(other[first]):
            end = [(". Without it most goes to ", ""), *self._key(second, 1), (": ", ""), self._number(other[second])]
            return [*start, *end], (first, second)
        if abs(change[first]) >= TELLING:
            more = "more" if abs(other[first]) > abs(one[first]) else "less"
            return [*start, (f". {self.second_side} {more}: ", ""), self._number(other[first])], (first, first)
        return self._alike(query, first), (first, first)

    def _alike(self, query: int, key: int) -> Phrase:
        one, other = (self._number(rows[query][key]) for rows in self._rows)
        both = " in both, share of size " if self._mixes else " in both: "
        start = [*self._query(query, 0), (self._verb, ""), *self._key(key, 0), (both, ""), one]
        return start if one == other else [*start, (" and ", ""), other]

    def _alone(self, query: int) -> RowClaim:
        """Describe a row that only one text has."""
        which = int(self.comparison.queries.one[query] is None)
        row = self._rows[which][query]
        key = max(range(len(row)), key=lambda at: abs(_or_0(row[at])), default=None)
        if key is None:
            return RowClaim((), (None, None))
        side = ("Only the first text has ", "Only the second text has ")[which]
        phrase: Phrase = [(side, ""), *self._query(query, which), (f". It{self._verb}", ""), *self._key(key, which)]
        keys = (None, key) if which else (key, None)
        return RowClaim(tuple([*phrase, (": ", ""), self._number(row[key])]), keys)

    def _start(self, query: int, key: int, weight: float) -> Phrase:
        which = int(math.isnan(weight))
        where = f" in {self.comparison.one.layer}·{self.comparison.one.head}" if self.choice.what == "heads" else ""
        number = self._number(self._rows[which][query][key])
        size = ", share of size " if self._mixes else ": "
        return [*self._query(query, 0), (self._verb, ""), *self._key(key, which), (f"{where}{size}", ""), number]

    def _swapped(self, query: int, key: int) -> Phrase:
        """Describe the row of the word in the query's place, so that neither word reads as the other's key."""
        parts = [*self._query(query, 1), (self._verb, ""), *self._key(key, 1)]
        return [(". In its place, ", ""), *parts, (": ", ""), self._number(self._rows[1][query][key])]

    def _in_place(self, query: int, key: int) -> Phrase:
        if query in self.comparison.queries.substituted:
            return self._swapped(query, key)
        number = self._number(self._rows[1][query][key])
        return [(". The word in its place, ", ""), *self._key(key, 1), (", gets ", ""), number]

    def _query(self, place: int, which: int) -> Phrase:
        return self._name(self.comparison.queries, "query", place, which)

    def _key(self, place: int, which: int) -> Phrase:
        return self._name(self.comparison.keys, "key", place, which)

    def _name(self, axis: AlignedAxis, role: str, place: int, which: int) -> Phrase:
        at = (axis.one, axis.other)[which][place]
        if at is None:
            which = 1 - which
            at = (axis.one, axis.other)[which][place] or 0
        tokens = _tokens(self._sides[which], role)
        if tokens.special[at] or tokens.padding[at]:
            return [(tokens.names[at], role)]
        return list(named(tokens, at, role))

    def _number(self, weight: float) -> tuple[str, str]:
        return weight_text(weight), "number"


def changed_words(one: str, other: str) -> str:
    """Begin a sentence about the second text by its one changed word, if there is one."""
    first, second = text_changes(one, other)
    gone, new = ([piece.text for piece in pieces if piece.change] for pieces in (first, second))
    swapped = any(piece.change == "swapped" for piece in second)
    if len(new) == 1 and len(gone) == swapped:
        known = sum(piece.text.casefold() == new[0].casefold() for piece in (*first, *second))
        instead = f" for “{gone[0]}”" if gone and known > 1 else ""
        return f"With “{new[0]}”{instead}"
    if len(gone) == 1 and not new:
        return f"Without “{gone[0]}”"
    return "In the second text"


def _tokens(side: Side, role: str) -> Tokens:
    return side.trace.query_tokens(side.stream) if role == "query" else side.trace.key_tokens(side.stream)


def _words(phrase: Phrase) -> str:
    return "".join(text for text, _ in phrase)


def _or_0(weight: float) -> float:
    return 0.0 if math.isnan(weight) else weight
