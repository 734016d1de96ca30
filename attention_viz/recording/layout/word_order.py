"""Proves that rows and columns are at their words' positions, in a model with foreign code.

A hook, a replaced `forward` or a subclass may move tokens between layers, even by the text's length or words. So each
text of such a model is proven once: its words are replaced by the digits of their numbers while each position keeps to
itself, and each query and key must show its own word. A text of 11 tokens takes 6 runs, one of 4,096 takes 10. They
compute neither attention nor the output. If layers mix neighbours, as convolutions do, each text of digits runs again
with its digits shifted by 1, 2 and 3: 12 runs for 11 tokens, 28 for 4,096.
Rows that no word moves prove nothing, nor does a text prove a run with edits, if the code goes by what layers compute.
"""

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.inputs.media.beside import marks_in
from attention_viz.inputs.text import words_known
from attention_viz.operation.attention import Attention
from attention_viz.recording.hooks import hooked
from attention_viz.recording.layout.axes import TEXT, Axes, Axis
from attention_viz.recording.layout.digits import digits_shown, mixed
from attention_viz.recording.layout.foreign import ForeignCode, content_of, foreign_code
from attention_viz.recording.layout.origins import KeepApart
from attention_viz.recording.layout.slots import UnmatchedWordsError
from attention_viz.recording.outputs.breaking import SEEN, naming_trial
from attention_viz.recording.recorder import Call, RunEnded, recording
from attention_viz.trace.kind import stream_kind

if TYPE_CHECKING:
    from attention_viz.recording.runner import Runner

# A word has so many ids, its own among them: one for each digit of its number.
_BASE = 4
# So many numbers stand for a query or key.
_WIDTH = 8
# A row shows one word alone if it is nearer to a digit than this share of the distance between two.
_CLEAN = 1e-2
# So many texts are remembered as proven.
_KEPT = 64
# A refusal names so many hooks or classes.
_NAMED = 3
_TEXTS = {"input_ids": "attention_mask", "decoder_input_ids": "decoder_attention_mask"}


@runtime_checkable
class Layout(Protocol):
    """A model's layout; see `Anatomy`."""

    @property
    def streams(self) -> Sequence[str]:
        """Each call's stream."""
        ...

    @property
    def modules(self) -> Sequence[nn.Module]:
        """Each call's module."""
        ...

    @property
    def axes(self) -> Mapping[str, Axes]:
        """The axes of streams with slots."""
        ...

    @property
    def merged(self) -> bool:
        """Whether a decoder's keys are its own tokens, and the encoder's."""
        ...

    @property
    def has_spans(self) -> bool:
        """Whether keys are the text's tokens, and spans of them."""
        ...

    @property
    def has_canvas(self) -> bool:
        """Whether its rows refine a text beside the one it reads."""
        ...


@dataclass(eq=False)
class WordOrder:
    """Remembers the texts whose words are proven to be in order."""

    _proven: dict[object, None] = field(default_factory=dict[object, None])

    def check(self, runner: "Runner", inputs: Mapping[str, Tensor], layout: Layout) -> None:
        """Refuse a text whose words a model with foreign code moves; without such code, do nothing.

        Raises:
            UnsupportedModel: a row or column doesn't show its word, or this can't be found.
        """
        foreign = [*foreign_code(runner.tree.modules, images=False)]
        if not foreign or not layout.streams or not _texts_of(inputs):
            return
        key = content_of(inputs), *foreign
        if key in self._proven:
            return
        _Proof(runner, inputs, layout, foreign).check()
        while len(self._proven) >= _KEPT:
            self._proven.pop(next(iter(self._proven)), None)
        self._proven[key] = None

    def refusal(self, runner: "Runner", inputs: Mapping[str, Tensor], layout: Layout) -> UnsupportedModel | None:
        """Return why `check` refuses a text, to be raised after its run.

        The run's own errors come first, and hooks hear it last.
        """
        try:
            self.check(runner, inputs, layout)
        except UnsupportedModel as error:
            return error
        return None


@dataclass(eq=False)
class _Shown(KeepApart):
    """Keeps a few numbers of each query and key, which any of its own change."""

    def _some(self, call: Call) -> Call:
        query, key = (_few(one) for one in (call.attention.query, call.attention.key))
        return replace(call, attention=Attention(query, key, key[..., :1], None, 1.0))


def _few(terms: Float[Tensor, "... position width"]) -> Float[Tensor, "1 1 position number"]:
    return mixed(terms.reshape(1, -1, *terms.shape[-2:]), _WIDTH)[None, None]


@dataclass(eq=False)
class _Proof:
    """Finds the word of each row and column of one text, or of two.

    Attributes:
        numbers: by text, each position's number among the words that can be changed; −1 for the others.
    """

    runner: "Runner"
    inputs: Mapping[str, Tensor]
    layout: Layout
    foreign: Sequence[ForeignCode]
    numbers: dict[str, Tensor] = field(init=False)
    _ids: list[dict[str, Tensor]] = field(init=False)

    def __post_init__(self) -> None:
        """Number the words, and choose other ids for each."""
        model, self.numbers, first = self.runner.model, {}, 0
        ids, special = _texts_of(self.inputs), _special_ids(model.config)
        others = dict[str, list[Tensor]]()
        for name, own in ids.items():
            mask, there = self.inputs.get(_TEXTS[name]), torch.ones(own.shape[1], dtype=torch.bool)
            if mask is not None and mask.shape == own.shape:
                there &= (mask[0] != 0).cpu()
            # Padding may move positions, and an image's placeholders need their number.
            still = special if SEEN & {*self.inputs} else _special_ids(model.config, ("pad_token_id",))
            there &= torch.tensor([one not in still for one in own[0].tolist()], dtype=torch.bool)
            if name == "input_ids":
                there[marks_in(model, own)] = False
            count = int(there.sum())
            self.numbers[name] = torch.full((own.shape[1],), -1).masked_scatter(there, first + torch.arange(count))
            others[name] = _other_ids(own, there, special, words_known(model))
            first += count
        self._ids = [dict(zip(others, some, strict=True)) for some in zip(*others.values(), strict=False)]

    def check(self) -> None:
        """Refuse if a query or key shows another word than its own."""
        count = max(int(one.max()) for one in self.numbers.values()) + 1
        if count < 1 or len(self._ids) < 2:
            return
        known = [self._run([self._ids[digit]] * len(self._ids), 1) for digit in range(len(self._ids))]
        wrong, is_clean = self._read(known, count, 0)
        if not is_clean and wrong is None:
            # Layers mix neighbours, or the order goes by the words: each word shows each digit.
            turns = (self._read(known, count, turn)[0] for turn in range(1, len(self._ids)))
            wrong = next((one for one in turns if one is not None), None)
        if wrong is not None:
            raise self._refusal(*wrong)

    def _read(
        self, known: Sequence[list[Tensor]], count: int, turn: int
    ) -> tuple[tuple[int, str, int, int] | None, bool]:
        """Return the first wrong row with its word, and whether each row shows one word alone."""
        base, power, is_clean = len(self._ids), 1, True
        found = [torch.zeros(len(one), dtype=torch.long) for one in known[0]]
        still = list[Tensor]()
        while power == 1 or power < count:
            ids = [self._ids[(digit + turn) % base] for digit in range(base)]
            still = list[Tensor]()
            for at, (shown, *every) in enumerate(zip(self._run(ids, power), *known, strict=True)):
                if any(one.shape != shown.shape for one in every):
                    raise self._differs("over other positions")
                digits, clean = digits_shown(every, shown, _CLEAN)
                still.append(digits.cpu() < 0)
                found[at] += (digits.cpu() - turn) % base * power
                is_clean &= clean
            power *= base
        rows = [one.masked_fill(none, -1) for one, none in zip(found, still, strict=True)]
        return self._first_wrong(rows, alone=is_clean and not SEEN & {*self.inputs}), is_clean

    def _run(self, ids: Sequence[Mapping[str, Tensor]], power: int) -> list[Tensor]:
        """Return numbers of each call's queries and keys, by turns, with the ids of each word's digit."""
        count, texts = len(self.layout.streams), dict[str, Tensor]()
        for name, numbers in self.numbers.items():
            digits = numbers.clamp_min(0) // power % len(ids)
            some = torch.stack([one[name][0] for one in ids])
            texts[name] = some.gather(0, digits.to(some.device)[None])
        recorder = _Shown(last=count - 1)
        runner = self.runner

        def still(_module: nn.Module, _inputs: object, _named: object, output: object) -> object:
            return _zeros(output) if recording.get() is recorder else None

        is_own = all(torch.equal(one, self.inputs[name]) for name, one in texts.items())
        trial = "with its positions kept apart" if is_own else "with other words"
        problem = f"can't prove the order of {type(runner.model).__name__}'s words: {trial}"
        with (
            naming_trial(runner, problem, f"remove {self._code}"),
            hooked(runner.mixing, still),
            contextlib.suppress(RunEnded),
            runner.hearing(recorder),
        ):
            runner.model(**(runner.settings | {**self.inputs, **texts}))
        calls = recorder.calls()
        if len(calls) != count:
            raise self._differs("in other calls")
        return [side[0] for call in calls for side in (call.attention.query, call.attention.key)]

    def _differs(self, how: str) -> UnsupportedModel:
        name = type(self.runner.model).__name__
        return UnsupportedModel(f"{name} attends {how} for other words; remove {self._code}")

    def _first_wrong(self, found: Sequence[Tensor], *, alone: bool) -> tuple[int, str, int, int] | None:
        """Return the first call, side and row that shows another word, and that word's number.

        Args:
            alone: whether a row that no word should move, such as padding, may show none.
        """
        for at, rows in enumerate(found):
            call, side = at // 2, ("query", "key")[at % 2]
            for row, own, word in self._expected(self.layout.streams[call], side, rows):
                if word not in (-1, own) and (alone or own != -1):
                    return call, side, row, word
        return None

    def _expected(self, stream: str, side: str, rows: Tensor) -> Iterator[tuple[int, int, int]]:
        """Yield rows that are laid out by words, with the numbers of their own words and those that they show."""
        axes, own = self.layout.axes.get(stream), self._text(stream, side, len(rows))
        axis = Axis(rest=TEXT) if axes is None else axes.queries if side == "query" else axes.keys
        if not own or (axis.rest != TEXT and not (axis.per or axis.each)):
            return
        found, first = rows.tolist(), axis.before
        if len(rows) == len(own) + axis.slots_of(len(own)) or self._has_spans(len(rows), len(own)):
            yield from ((first + at, number, found[first + at]) for at, number in enumerate(own))
        else:
            # Positions of an image among the words: these come one after the other.
            seen = [(row, word) for row, word in enumerate(found) if word >= 0]
            yield from ((row, max(before + 1, word), word) for (_, before), (row, word) in pairwise(seen))

    def _has_spans(self, count: int, words: int) -> bool:
        return self.layout.has_spans and count > words

    def _text(self, stream: str, side: str, count: int) -> list[int]:
        """Return the numbers of the words along a stream's rows or columns; none for other positions."""
        kind, texts = stream_kind(stream), {name: one.tolist() for name, one in self.numbers.items()}
        source, target = texts.get("input_ids", []), texts.get("decoder_input_ids", [])
        if kind not in ("encoder", "decoder", "cross"):
            return source if stream in self.layout.axes else []
        if not self.runner.answers or kind == "encoder":
            return source
        if side == "query" or (kind == "decoder" and not self.layout.merged):
            return target
        if self.layout.has_canvas:
            return [*source, *target][-count:]
        return [*target, *source] if kind == "decoder" else source

    def _refusal(self, call: int, side: str, row: int, word: int) -> UnmatchedWordsError:
        """Return the error for a row that shows another word."""
        model, module = self.runner.model, self.layout.modules[call]
        path = next((name for name, one in model.named_modules() if one is module), "")
        positions = [one.tolist().index(word) for one in self.numbers.values() if word in one]
        shown = f"word {positions[0]} of its text" if positions else "another word"
        return UnmatchedWordsError(
            f"can't match positions to words: the {side} at position {row} of {path} ({type(module).__name__}) has "
            f"{shown}, not its own; keep the tokens' order in {self._code}, or remove it"
        )

    @property
    def _code(self) -> str:
        names = [one.named_in(self.runner.model) for one in self.foreign[:_NAMED]]
        more = len(self.foreign) - len(names)
        return " or ".join(names) + (f" or {more} others" if more else "")


def _texts_of(inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the ids of texts, (1, word)."""
    return {name: inputs[name] for name in _TEXTS if name in inputs and inputs[name].ndim == 2}


def _other_ids(ids: Tensor, there: Tensor, special: Collection[int], vocabulary: int) -> list[Tensor]:
    """Return the ids, and others at all positions that are `there`."""
    own: list[int] = ids[0].tolist()
    pool = {one: None for one, real in zip(own, there, strict=True) if real and one not in special}
    step = max(1, vocabulary // (2 * _BASE))
    for one in (*range(step // 2, vocabulary, step), *range(min(vocabulary, len(special) + 2 * _BASE))):
        if len(pool) < 2 * _BASE and one not in special:
            pool[one] = None
    pool = [*pool]
    place = {one: at for at, one in enumerate(pool)}
    found, changed = [ids], there.tolist()
    for number in range(1, min(_BASE, len(pool))):
        row = [pool[(place.get(one, at) + number) % len(pool)] if changed[at] else one for at, one in enumerate(own)]
        found.append(torch.tensor([row], dtype=ids.dtype, device=ids.device))
    return found


def _special_ids(config: Any, ends: tuple[str, ...] = ("_token_id", "_token_index")) -> frozenset[int]:
    """Return the ids that a configuration names, such as padding, ends and placeholders."""
    found, parts = set[int](), [config.to_dict()]
    while parts:
        part = parts.pop()
        parts += [one for one in part.values() if isinstance(one, dict)]
        for name, one in part.items():
            if str(name).endswith(ends):
                found.update(number for number in (one if isinstance(one, list) else [one]) if isinstance(number, int))
    return frozenset(found)


def _zeros(output: Any) -> Any:
    """Return a layer's output with zeros for its first tensor."""
    if isinstance(output, Tensor):
        return torch.zeros_like(output)
    if isinstance(output, tuple) and output and isinstance(output[0], Tensor):
        return torch.zeros_like(output[0]), *output[1:]
    return None
