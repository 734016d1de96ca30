"""Runs one turn of a module with sparse attention again, with some of its numbers replaced."""

import contextlib
import functools
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.recording.hooks import hooked
from attention_viz.recording.interception.following import (
    Following,
    Product,
    Soften,
    entering_softmax,
    mark_written,
)
from attention_viz.recording.layout.axes import Axes
from attention_viz.recording.sparse.draws import Draw, DrawMode

_LOGSUMEXP = {torch.logsumexp, Tensor.logsumexp, torch.special.logsumexp}
_EXP = {torch.exp, Tensor.exp}
# What chooses positions by their numbers, as hashing to buckets does.
_CHOOSE = {torch.argmax, Tensor.argmax, torch.argsort, Tensor.argsort, torch.sort, Tensor.sort, torch.topk, Tensor.topk}

# Whether this thread runs a turn again, which nobody else is to hear.
rerunning: ContextVar[bool] = ContextVar("rerunning", default=False)


@dataclass(frozen=True)
class SparseSite:
    """How a class of modules attends sparsely.

    Attributes:
        values: the paths of the modules inside whose outputs are the values. With several, as of Longformer's global
            tokens, each has heads of its own.
        output: the path of the module inside that takes the heads' outputs; "" if the module returns them.
        reads: the name of the ids of its text.
        starts: the input row of the text's first token, per module.
        rest: whether the input rows beside the text's tokens are slots, not padding.
        axes: the kinds of rows and columns, with slots; None for tokens alone.
        known: see `attention_viz.recording.sparse.positions`.
    """

    kind: type[nn.Module]
    values: tuple[str, ...]
    output: str
    reads: str = "input_ids"
    starts: tuple[int, ...] = ()
    rest: bool = False
    axes: Axes | None = None
    known: dict[tuple[int, ...], Any] = field(default_factory=dict[tuple[int, ...], Any], init=False, compare=False)

    def of(self, model: nn.Module) -> list[nn.Module]:
        """Return a model's modules of this class."""
        return [module for module in model.modules() if type(module) is self.kind]


@dataclass(eq=False)
class TurnRun:
    """One run of a turn.

    Attributes:
        logits: each softmax's input, by number.
        behind: the products behind each softmax, by number.
        chosen: the positions that it chose by their numbers.
        parts: the values by path, as the module made them.
        rounds: whether it weighs several softmaxes by another.
        contexts: the heads' joined outputs, as the module took them.
    """

    products: dict[int, Product] = field(default_factory=dict[int, Product])
    logits: dict[int, Tensor] = field(default_factory=dict[int, Tensor])
    weights: dict[int, Tensor] = field(default_factory=dict[int, Tensor])
    behind: dict[int, tuple[int, ...]] = field(default_factory=dict[int, "tuple[int, ...]"])
    chosen: list[Any] = field(default_factory=list[Any])
    output: object = None
    parts: dict[str, list[Tensor]] = field(default_factory=dict[str, list[Tensor]])
    rounds: bool = False
    contexts: list[Tensor] = field(default_factory=list[Tensor])

    @property
    def values(self) -> dict[str, Tensor]:
        """All rows of values by path, (position, width)."""
        return {path: torch.cat([one.flatten(0, -2) for one in several]) for path, several in self.parts.items()}

    @property
    def context(self) -> Tensor:
        """The heads' joined outputs, (position, width)."""
        return torch.cat([one.reshape(-1, one.shape[-1]) for one in self.contexts])


class TurnMode(Following):
    """Follows products to softmaxes, also to those that are written out, as exp(x − logsumexp(x))."""

    def __init__(
        self,
        parameters: frozenset[int],
        found: TurnRun,
        product: Callable[[Product], Tensor | None],
        soften: Soften,
        like: TurnRun | None = None,
    ) -> None:
        """Note a run's products and softmaxes in `found`; choose the positions that were chosen in `like`."""
        super().__init__(parameters, lambda _heard: None, product=product, softmax=soften)
        self._found, self._like = found, like
        self._summed: Tensor | None = None

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Handle one torch call."""
        if func in _EXP and self._summed is not None and args[0].shape == self._summed.shape:
            summed, self._summed = self._summed, None
            return self.soften(summed, lambda logits: torch.exp(logits - torch.logsumexp(logits, -1, keepdim=True)))
        if func in _CHOOSE:
            return self._choose(func, args, kwargs or {})
        if func in _EXP and entering_softmax(args[0]):
            self._found.rounds = True
        result = super().__torch_function__(func, types, args, kwargs)
        if func in _LOGSUMEXP and entering_softmax(args[0]) and isinstance(result, Tensor):
            last = args[0].shape[:-1]
            self._summed = args[0] if result.shape in (last, (*last, 1)) else None
        if func is Tensor.__setitem__:
            mark_written(args[0], args[2])
        return result

    def _choose(self, func: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        chosen, like = self._found.chosen, self._like
        again = like is not None and len(chosen) < len(like.chosen)
        chosen.append(like.chosen[len(chosen)] if like is not None and again else func(*args, **named))
        return chosen[-1]

    def _take(self, weights: Any, product: Product, func: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """Let the model multiply weights with values as often as it likes."""
        return func(*args, **named)


@dataclass(frozen=True, eq=False)
class Turn:
    """One turn of a module.

    Attributes:
        parameters: their addresses; see `parameters_of`.
        draws: the random numbers that it drew, which its runs repeat.
    """

    module: nn.Module
    inputs: tuple[Any, ...]
    named: Mapping[str, Any]
    site: SparseSite
    parameters: frozenset[int]
    number: int = 0
    draws: Sequence[Draw] = ()

    @property
    def name(self) -> str:
        """The module's class."""
        return type(self.module).__name__

    @property
    def start(self) -> int:
        """The input row of the text's first token."""
        return self.site.starts[self.number] if self.site.starts else 0

    @property
    def rows(self) -> list[Tensor]:
        """The states that it reads, (1, position, width)."""
        found = {
            id(one): one
            for one in (*self.inputs, *self.named.values())
            if isinstance(one, Tensor) and one.is_floating_point() and one.ndim == 3 and len(one) == 1
        }
        width = next((one.shape[-1] for one in found.values()), 0)
        return [one for one in found.values() if one.shape[-1] == width]

    def moved(self, which: Bool[Tensor, " position"]) -> "Turn":
        """Return the turn with other numbers in some of its input rows."""
        chance, others, start = torch.Generator().manual_seed(0), dict[int, Tensor](), 0
        for one in self.rows:
            noise = torch.randn(one.shape, generator=chance).to(one) * (1 + one.abs())
            some = which[start : start + one.shape[1], None].to(one.device)
            others[id(one)] = torch.where(some, one + noise, one)
            start += one.shape[1]
        inputs = tuple(others.get(id(one), one) for one in self.inputs)
        return replace(self, inputs=inputs, named={name: others.get(id(one), one) for name, one in self.named.items()})

    def run(
        self,
        *,
        values: Mapping[str, Tensor] | None = None,
        product: Callable[[Product], Tensor | None] = lambda _product: None,
        soften: Soften | None = None,
        context: Tensor | None = None,
        noisy: Mapping[nn.Module, torch.Generator] | None = None,
        like: TurnRun | None = None,
    ) -> TurnRun:
        """Run the turn.

        Args:
            values: in place of all values, by path, (position, width).
            product: returns what replaces a product, or None.
            soften: returns what leaves a softmax.
            context: in place of the heads' joined outputs.
            noisy: modules whose output gets random numbers added.
            like: a run whose choices of positions hold here.
        """
        found = TurnRun()

        def multiply(made: Product) -> Tensor | None:
            found.products[made.number] = made
            return product(made)

        def weigh(place: int, logits: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
            found.logits[place] = logits
            found.behind[place] = tuple(one.number for one in entering_softmax(logits))
            weights = compute(logits) if soften is None else soften(place, logits, compute)
            found.weights[place] = weights.clone()
            return weights

        token = rerunning.set(True)
        try:
            again = DrawMode(self.draws) if self.draws else contextlib.nullcontext()
            with again, self._listening(found, values, context, noisy or {}):
                with TurnMode(self.parameters, found, multiply, weigh, like):
                    found.output = self.module.forward(*self.inputs, **self.named)
        finally:
            rerunning.reset(token)
        if not self.site.output:
            found.contexts.append(returned(found.output))
            if context is not None:
                found.output = with_returned(found.output, context.reshape(found.contexts[0].shape))
        return found

    @contextlib.contextmanager
    def _listening(
        self,
        found: TurnRun,
        values: Mapping[str, Tensor] | None,
        context: Tensor | None,
        noisy: Mapping[nn.Module, torch.Generator],
    ) -> Generator[None]:
        thread = threading.get_ident()
        taken = dict[str, int]()

        def cut(rows: Tensor, like: Tensor, which: str) -> Tensor:
            start, count = taken.get(which, 0), like.shape[:-1].numel()
            taken[which] = start + count
            return rows[start : start + count].reshape(like.shape).to(like.dtype)

        def made(path: str, _module: nn.Module, _inputs: object, _named: object, output: Any) -> object:
            if threading.get_ident() != thread:
                return None
            # Some modules divide their projections in place.
            found.parts.setdefault(path, []).append(output.clone())
            return None if values is None else cut(values[path], output, path)

        def disturb(module: nn.Module, _inputs: object, _named: object, output: Any) -> object:
            if threading.get_ident() != thread or not isinstance(output, Tensor):
                return None
            noise = torch.randn(output.shape, generator=noisy[module], dtype=output.dtype).to(output.device)
            return output + noise

        def take(_module: nn.Module, inputs: tuple[Any, ...]) -> object:
            if threading.get_ident() != thread:
                return None
            found.contexts.append(inputs[0])
            return None if context is None else (cut(context, inputs[0], ""), *inputs[1:])

        with contextlib.ExitStack() as stack:
            _ = stack.enter_context(hooked(noisy, disturb))
            for path in self.site.values:
                hear = functools.partial(made, path)
                _ = stack.enter_context(hooked([self.module.get_submodule(path)], hear))
            if self.site.output:
                behind = [self.module.get_submodule(self.site.output)]
                _ = stack.enter_context(hooked(behind, lambda *_: None, take))
            yield


def returned(output: object) -> Tensor:
    """Return a module's first tensor."""
    several: Sequence[object] = (output,) if isinstance(output, Tensor) else cast("Sequence[object]", output)
    found = next((one for one in several if isinstance(one, Tensor)), None)
    if found is None:
        raise UnsupportedModel("its attention returns no tensor")
    return found


def with_returned(output: Any, first: Tensor) -> Any:
    """Return a module's output with another first tensor."""
    if isinstance(output, Tensor):
        return first
    old = returned(output)
    items = [first if one is old else one for one in output]
    return type(output)(*items) if hasattr(output, "_fields") else type(output)(items)


def held(first: TurnRun) -> Soften:
    """Return a softmax that repeats its result of a run."""
    return lambda place, _logits, _compute: first.weights[place].clone()
