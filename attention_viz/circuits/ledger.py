"""Keep a run linear in each part's output, so that a number can be split.

With norm statistics, attention patterns and MLPs' nonlinear steps fixed, a transformer is linear between attention
calls. Each Torch function is judged by itself, never by module names:

- outputs of embeddings, biases, attention calls or nonlinear steps become leaves when added;
- a layer without a softmax is its weights, fixed, times its values, which become a leaf;
- statistics (1 / √variance, softmax, a gate's sigmoid) and a head output's factor before W_O are fixed;
- in the head behind the body an activation f is x · (f(x) / x), the ratio fixed; so is any clip.

Unknown functions count as nonlinear steps: a row of their own, never a wrong number.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import BackwardCFunction
from torch.overrides import TorchFunctionMode

from attention_viz.circuits.functions import (
    ADDS,
    CLIPS,
    JOINS,
    LINEAR,
    MIXING,
    PRODUCTS,
    PROJECTS,
    QUOTIENTS,
    STEPS,
    clipped,
    held,
    is_frozen,
    is_learned,
    marked,
    scaled,
    tensors_in,
    without_gradient,
)
from attention_viz.operation.shapes import with_heads
from attention_viz.operation.terms import map_terms
from attention_viz.recording.mixers.record import MixerCall

# On what is made of a picture or a sound that is read: it is embedded, as words are, from where it is first added to.
READ = "_attention_viz_read"

_ORIGIN = "_attention_viz_origin"
_FETCHED = "_attention_viz_fetched"
_PLACED = "_attention_viz_placed"


@dataclass(frozen=True)
class Leaf:
    """One part's output; of a mixer, the values that it mixes. Heads have their attention `call`, mixers theirs.

    Attributes:
        kind: "embedding", "position", "head", "mixer", "mlp", "other", "bias", "constant" or "chunk".
    """

    tensor: Tensor
    kind: str
    path: str
    call: int | None = None
    mixer: int | None = None


@dataclass(eq=False)
class _Origin:
    path: str
    mixes: bool = False


@dataclass(eq=False)
class WrittenModules:
    """The modules of a run.

    Attributes:
        late: body modules that count as head, such as BERT's pooler.
        activations: running modules that are a nonlinear step alone.
    """

    late: frozenset[str] = frozenset()
    stack: list[str] = field(default_factory=lambda: [""])
    activations: int = 0
    done: bool = False

    @property
    def path(self) -> str:
        """The name of the running module."""
        return self.stack[-1]

    def in_head(self, path: str) -> bool:
        """Return whether a module is in the head behind the body."""
        return self.done or path in self.late


class Ledger(TorchFunctionMode):
    """Torch functions of a run, kept linear in its leaves."""

    def __init__(self, where: WrittenModules, words: Collection[int]) -> None:
        """Start without leaves."""
        super().__init__()
        self.leaves: list[Leaf] = []
        self._where, self._words = where, words
        self._counts = set[int]()

    def leaf(
        self,
        tensor: Tensor,
        kind: str,
        path: str | None = None,
        call: int | None = None,
        mixer: int | None = None,
    ) -> Tensor:
        """Make a computed tensor a leaf; return the tensor to use."""
        with torch._C.DisableTorchFunction(), torch.enable_grad():  # pyright: ignore[reportPrivateUsage]
            own = tensor.detach().requires_grad_()
            self.leaves.append(Leaf(own, kind, self._where.path if path is None else path, call, mixer))
            # What a model adds to in place mustn't be the leaf itself.
            found = own.clone()
            setattr(found, _FETCHED, kind == "head")
            setattr(found, _PLACED, kind == "position")
            return found

    def mixed(self, call: MixerCall, output: Tensor, number: int) -> tuple[Tensor, Tensor]:
        """Make a mixer's values a leaf; return the mixed values, (1, head, query, d_v), and the tensor to use.

        The model continues with `output`, its own numbers; their gradients go through the weights to the values.
        """
        with torch._C.DisableTorchFunction(), torch.enable_grad():  # pyright: ignore[reportPrivateUsage]
            mixer = map_terms(call.mixer, lambda term, value: value.detach() if isinstance(value, Tensor) else value)
            value = with_heads(mixer.value, mixer.shape[-3])
            found = replace(mixer, value=self.leaf(value, "mixer", mixer=number)).output
            constant = call.shape_as(torch.zeros_like(found)).detach()
            shaped = call.shape_as(found) - constant
            if bool(constant.any()):  # a convolution's bias
                shaped = shaped + self.leaf(constant.flatten(), "bias").view_as(constant)
            continued = output.detach() + (shaped - shaped.detach())
            setattr(continued, _FETCHED, True)
            return found, continued

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run the function, kept linear."""
        named = dict(kwargs or {})
        name: str = getattr(func, "__name__", "")
        if name == "embedding":
            return self._embedded(func(*args, **named), args)
        tensors = list(tensors_in((args, named)))
        for one in tensors:
            self._close(one)
        live, read = [one for one in tensors if one.requires_grad], any(getattr(one, READ, False) for one in tensors)
        if not (live or (read and name in ADDS)) or name in ("__get__", "__set__", "backward"):
            return self._marked(func(*args, **named), args, tensors, name)
        # Some models turn gradients off on their way.
        with torch.enable_grad():
            if self._where.activations:
                return self._cut(func, args, named, name)
            found = self._apply(func, name, args, named, live)
        if not live:
            return found
        if name not in PROJECTS and (all if name in ADDS else any)(getattr(one, _FETCHED, False) for one in live):
            marked(found, _FETCHED)
        if all(getattr(one, _PLACED, False) for one in live) and not any(_origin(one) for one in tensors):
            marked(found, _PLACED)
        return found

    def _close(self, one: Tensor) -> None:
        """Cut a model's own `torch.autograd.Function`, whose gradient isn't usable."""
        if isinstance(one.grad_fn, BackwardCFunction):
            # What happened inside was seen function by function, and is remembered unless nothing of it was unknown.
            origin = _origin(one) or _Origin(self._where.path)
            one.detach_()
            setattr(one, _ORIGIN, origin)

    def _apply(
        self, func: Callable[..., Any], name: str, args: Sequence[Any], named: dict[str, Any], live: Sequence[Tensor]
    ) -> Any:
        if name in STEPS:
            return STEPS[name](self.leaf, func, *args, **named)
        if name in ADDS:
            return func(*(self._added(one) for one in args), **named)
        if name in PRODUCTS:
            return self._product(func, name, args, named, live)
        if name in QUOTIENTS:
            return self._divided(func, name, args, named)
        in_head = self._where.in_head(self._where.path)
        if is_frozen(name, args) or (in_head and name == "erf"):  # erf: of a GELU written out
            return without_gradient(func, args, named)
        if name in JOINS:
            # What is changed in place has to stay the same tensor.
            kept = args[:1] if name.endswith("_") else []
            return func(*kept, *self._joined(args[len(kept) :]), **named)
        if name in LINEAR:
            return func(*args, **named)
        if name in CLIPS and len(args) + len(named) == 3 and len(live) == 1:
            return clipped(live[0], name.endswith("_"), *args[1:], **named)
        if in_head and len(live) == 1:
            after = without_gradient(func, args, named)
            return scaled(live[0], after) if isinstance(after, Tensor) else after
        return self._cut(func, args, named, name)

    def _product(
        self, func: Callable[..., Any], name: str, args: Sequence[Any], named: dict[str, Any], live: Sequence[Tensor]
    ) -> Any:
        """Keep a head's output linear but not its gate, nor positions that rotate it, as in RoPE."""
        bound = [one for one in tensors_in((args, named)) if not one.requires_grad and _origin(one) is not None]
        if len(live) == 1 and all(self._is_gate(name, one, live[0]) for one in bound):
            return func(*args, **named)
        fetched = [one for one in live if getattr(one, _FETCHED, False)]
        turned = [one for one in live if not getattr(one, _PLACED, False)]
        if len(turned) == 1 < len(live) and not bound:
            fetched = turned
        if len(fetched) == 1:
            return func(*held(args, fetched[0]), **named)
        return self._cut(func, args, named, name)

    def _is_gate(self, name: str, factor: Tensor, passes: Tensor) -> bool:
        if "mul" in name and "matmul" not in name:
            return factor.shape[-1:] == (1,) != passes.shape[-1:]
        lead = factor.shape[:-2]
        return lead == passes.shape[:-2] and any(size in self._counts for size in lead)

    def _embedded(self, found: Tensor, args: Sequence[Any]) -> Tensor:
        table = args[1] if len(args) > 1 else None
        words = isinstance(table, Tensor) and len(table) in self._words
        if words:
            self._counts.add(found.shape[-2])
        return self.leaf(found, "embedding" if words else "position")

    def _added(self, one: Any) -> Any:
        if not isinstance(one, Tensor) or one.requires_grad or not one.is_floating_point():
            return one
        return self.fixed(one)

    def _joined(self, args: Sequence[Any]) -> list[Any]:
        return [
            self._joined(one)
            if isinstance(one, list | tuple)
            else self._added(one)
            if isinstance(one, Tensor) and one.any()
            else one
            for one in args
        ]

    def fixed(self, one: Tensor) -> Tensor:
        """Make a leaf of a nonlinear step's result, a learned bias or a constant."""
        origin = _origin(one)
        if origin is not None:
            return self.leaf(one, "other" if origin.mixes else "mlp", origin.path)
        learned = isinstance(one, nn.Parameter)
        # What nothing was computed for and has a row for each token, such as waves that count them.
        if one.ndim > 1 and (learned or one.shape[-2] > 1):
            return self.leaf(one, "embedding" if getattr(one, READ, False) else "position")
        return self.leaf(one, "bias" if learned else "constant")

    def _divided(self, func: Callable[..., Any], name: str, args: Sequence[Any], named: dict[str, Any]) -> Any:
        backwards = name == "__rtruediv__"
        place = 0 if backwards else 1
        parts = [one.detach() if at == place and isinstance(one, Tensor) else one for at, one in enumerate(args)]
        return func(*parts, **named)

    def _cut(self, func: Callable[..., Any], args: Sequence[Any], named: dict[str, Any], name: str) -> Any:
        found = without_gradient(func, args, named)
        before = [origin for one in tensors_in((args, named)) if (origin := _origin(one)) is not None]
        mixed = any(getattr(one, _FETCHED, False) for one in tensors_in((args, named)))
        mixes = mixed or any(one.mixes for one in before) or name in MIXING
        path = before[0].path if before else self._where.path
        for one in tensors_in((found,)):
            if one.is_floating_point():
                if one.requires_grad:  # done in place
                    one.detach_()
                setattr(one, _ORIGIN, _Origin(path, mixes))
        return found

    def _marked(self, found: Any, args: Sequence[Any], tensors: Sequence[Tensor], name: str) -> Any:
        if any(getattr(one, READ, False) for one in tensors):
            marked(found, READ)
        if is_frozen(name, args):
            return found
        origins = [origin for one in tensors if (origin := _origin(one)) is not None]
        if not origins:
            return found
        computed = sum(not is_learned(one) for one in tensors)
        mixes = any(one.mixes for one in origins) or (
            name in MIXING or (computed > 1 and name in ("matmul", "__matmul__", "bmm", "einsum"))
        )
        for one in tensors_in((found,)):
            if one.is_floating_point() and _origin(one) is None:
                setattr(one, _ORIGIN, _Origin(origins[0].path, mixes))
        return found


def origin_of(tensor: Tensor) -> str | None:
    """Return a fixed number's nonlinear module; None if it has none."""
    found = _origin(tensor)
    return None if found is None else found.path


def _origin(tensor: Tensor) -> _Origin | None:
    return getattr(tensor, _ORIGIN, None)
