"""Finds a model's modules with sparse attention, and what in them makes the values and takes the outputs."""

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.recording.hooks import hooked
from attention_viz.recording.interception.following import Softmaxes
from attention_viz.recording.sparse.turn import SparseSite, Turn, TurnMode, TurnRun, held


def sparse_kinds(run: Callable[[], object], lengths: Sequence[int]) -> dict[type[nn.Module], int]:
    """Return the classes of modules that attend to other numbers of keys than the text has tokens, with that number."""
    softmaxes = Softmaxes()
    with contextlib.suppress(Exception), softmaxes:  # whatever a family's own code is like
        run()
    written = {type(one) for one in softmaxes.written}
    found = dict[type[nn.Module], int]()
    for module, keys in zip(softmaxes.modules, softmaxes.keys, strict=True):
        if keys not in lengths or type(module) in written:
            found.setdefault(type(module), keys)
    return found


def site_of(turn: Turn) -> SparseSite:
    """Return a module's site; with all softmaxes held, only its values can change its output."""
    module = turn.module
    paths = {one: path for path, one in module.named_modules() if path and _has_parameters(one)}
    calls, total = _calls(turn, paths)
    behind = [one for one, softmaxes in calls if softmaxes == total]
    output = paths[behind[-1]] if behind else ""
    leaves = [one for one in dict.fromkeys(one for one, _ in calls) if paths[one] != output]
    every = SparseSite(type(module), tuple(paths[one] for one in leaves), output)
    turn = replace(turn, site=every)
    first = turn.run()
    if first.rounds:
        raise UnsupportedModel(
            f"{type(module).__name__} attends in several rounds and weighs them; use a model with one round, such as "
            "one loaded with num_hashes=1"
        )
    found = list[str]()
    for leaf in leaves:
        noise = {leaf: torch.Generator().manual_seed(0)}
        other = turn.run(soften=held(first), noisy=noise, like=first)
        if not torch.equal(other.context, first.context):
            found.append(paths[leaf])
    found = [path for path in found if not _leads_to(turn, first, path, found)]
    if not found:
        raise UnsupportedModel(f"{type(module).__name__} has no module inside that makes its values")
    return SparseSite(type(module), tuple(found), output)


def _leads_to(turn: Turn, first: TurnRun, path: str, others: Sequence[str]) -> bool:
    """Return whether another module's output is made of a module's: then that one's are the values."""
    noise = {turn.module.get_submodule(path): torch.Generator().manual_seed(0)}
    made = turn.run(soften=held(first), noisy=noise, like=first).values
    return any(not torch.equal(made[one], first.values[one]) for one in others if one != path)


def _has_parameters(module: nn.Module) -> bool:
    return next(module.parameters(recurse=False), None) is not None


def _calls(turn: Turn, paths: Mapping[nn.Module, str]) -> tuple[list[tuple[nn.Module, int]], int]:
    """Return the modules called inside with the number of softmaxes before each, and the number of all."""
    found, thread = list[tuple[nn.Module, int]](), threading.get_ident()

    def hear(leaf: nn.Module, _inputs: object, _named: object, output: object) -> None:
        if threading.get_ident() == thread and isinstance(output, Tensor) and output.is_floating_point():
            found.append((leaf, mode.softmaxes))

    mode = TurnMode(turn.parameters, TurnRun(), lambda _product: None, lambda _place, logits, compute: compute(logits))
    with hooked(paths, hear), mode:
        turn.module.forward(*turn.inputs, **turn.named)
    return found, mode.softmaxes
