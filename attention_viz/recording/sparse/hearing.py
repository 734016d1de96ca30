"""Hears the turns of modules with sparse attention, and lets our function compute them."""

import contextlib
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.recording.hooks import hooked
from attention_viz.recording.interception.following import memory_of
from attention_viz.recording.recorder import Call, recording
from attention_viz.recording.sparse.draws import Draw, DrawMode
from attention_viz.recording.sparse.reading import read
from attention_viz.recording.sparse.turn import SparseSite, Turn, rerunning

# Whether this thread is inside a module with sparse attention.
_inside: ContextVar[bool] = ContextVar("inside", default=False)

_TARGET = "decoder_input_ids"
# So often a turn is run to see whether it seeds its draws: another thread may draw between its seed and its draw.
_TRIES = 8

# Gets a turn and how many positions the text has; returns the turn's new output, or None.
Take = Callable[[Turn, int], object]


def in_sparse_turn() -> bool:
    """Return whether this thread is inside a module with sparse attention."""
    return _inside.get()


@contextlib.contextmanager
def sparse_turns(model: nn.Module, sites: Sequence[SparseSite], take: Take) -> Generator[None]:
    """Take each turn of a model's modules with sparse attention in this thread."""
    thread, counts, drawing = threading.get_ident(), dict[str, int](), DrawMode()
    parameters = frozenset(memory_of(one) for one in model.parameters())
    of_module = {module: (site, number) for site in sites for number, module in enumerate(site.of(model))}

    def begin(_model: nn.Module, _inputs: object, named: Mapping[str, Any]) -> None:
        texts = {"input_ids": named.get("input_ids", named.get("inputs_embeds"))}
        for name, ids in (texts | {_TARGET: named.get(_TARGET)}).items():
            if threading.get_ident() == thread and isinstance(ids, Tensor):
                if len(ids) > 1:
                    raise UnsupportedModel("sparse attention is read one text at a time; pass one")
                counts[name] = ids.shape[1]

    def enter(_module: nn.Module, _inputs: object) -> None:
        if threading.get_ident() == thread:
            _inside.set(True)
            drawing.found.clear()

    def end(module: nn.Module, inputs: tuple[Any, ...], named: Mapping[str, Any], _output: object) -> object:
        if threading.get_ident() != thread or rerunning.get():
            return None
        try:
            site, number = of_module[module]
            turn = Turn(module, inputs, named, site, parameters, number, tuple(drawing.found))
            return take(turn, counts.get(site.reads, 0))
        finally:
            _inside.set(False)

    token = _inside.set(False)
    try:
        with hooked([model], lambda *_: None, begin, named=True), hooked(of_module, end, enter, first=True), drawing:
            yield
    finally:
        _inside.reset(token)


def recorded_turn(turn: Turn, count: int) -> object:
    """Let the recorder compute a turn's attention, and put the output back into the module."""
    recorder = recording.get()
    if recorder is None:
        return None
    turn = _with_settled_draws(turn)
    reading = read(turn, count)
    ours = recorder.compute(Call(turn.module, reading.attention).in_a_batch())
    return turn.run(context=reading.context_of(ours[0])).output


def _with_settled_draws(turn: Turn) -> Turn:
    """Return a turn with the draws that it repeats by its own seed; refuse one that draws other numbers each time."""
    runs, name = [turn.draws], turn.name
    if any(one.by_numbers for one in turn.draws):
        raise UnsupportedModel(f"{name} draws random numbers that depend on its states, as dropout's; switch it off")
    while turn.draws and len(runs) <= _TRIES:
        with DrawMode() as drawing:
            _ = replace(turn, draws=()).run()
        latest = tuple(drawing.found)
        if any(_repeat(latest, one) for one in runs):
            return replace(turn, draws=latest)
        runs.append(latest)
    if not turn.draws:
        return turn
    seeds = [name for name, one in vars(turn.module).items() if name.endswith("seed") and one is None]
    fix = f"set its {seeds[0]}, such as by loading it with {seeds[0]}=0, or " if seeds else ""
    raise UnsupportedModel(
        f"{name} draws other random numbers each time that it reads a text this long, and with them other keys; {fix}"
        "use a shorter text"
    )


def _repeat(draws: Sequence[Draw], others: Sequence[Draw]) -> bool:
    return len(draws) == len(others) and all(one.repeats(other) for one, other in zip(draws, others, strict=True))
