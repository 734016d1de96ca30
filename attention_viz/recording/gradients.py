"""Computes how far each weight raised one number of the output: weight times gradient.

A weight acts only through O = A · V, so dy/dA = dy/dO · Vᵀ: no matrix of weights is kept.

Source: Chefer, Gur & Wolf 2021, "Generic Attention-model Explainability for Interpreting Bi-Modal and Encoder-Decoder
Transformers", section 3.2, eq. 5, before the mean over heads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, cast

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.edits.edit import Edit
from attention_viz.errors import AttentionVizError, ShapeError, UnsupportedModel, first_line
from attention_viz.inputs.labelling import label_ids
from attention_viz.operation.attention import Attention, without_autocast
from attention_viz.operation.shapes import shared_heads, widened
from attention_viz.operation.terms import map_terms
from attention_viz.recording.call_rows import WindowOrder, in_one_row
from attention_viz.recording.probe import Anatomy
from attention_viz.recording.recorder import Call, Recorder
from attention_viz.recording.runner import Runner, alike
from attention_viz.recording.weights.unchanged import changed
from attention_viz.trace.rerun import Along
from attention_viz.trace.slots import has_target, target_stream
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Layer, Relevance

if TYPE_CHECKING:
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase


class ModelRun(NamedTuple):
    """One repeatable run of a model."""

    name: str
    runner: Runner
    anatomy: Anatomy
    tokenizer: "PreTrainedTokenizerBase | None"
    inputs: Mapping[str, Tensor]
    edits: tuple[Edit, ...]
    layers: tuple[Layer, ...]
    numbers: tuple[int, ...]
    queries: Mapping[str, Tokens]

    @property
    def tokens(self) -> Tokens:
        """The output rows' tokens."""
        return self.queries["decoder" if "decoder" in self.queries else list(self.queries)[-1]]


@dataclass(eq=False)
class _Tap(Recorder):
    """Recorder that keeps calls' outputs for gradients."""

    outputs: list[list[Tensor]] = field(default_factory=list[list[Tensor]])

    def hear(self, call: Call) -> Tensor:
        """Record a call; further pieces are the rest of its values' width, or its other chunks."""
        before = self.count
        if self.again == 0:
            self.outputs[-1] = []
        output = super().hear(call)
        if self.keep is not None and self.count - 1 not in self.keep:
            return output
        if not output.requires_grad:  # nothing before it does, as where a model's parameters are frozen
            output = output.detach().requires_grad_()
        if self.count > before:
            self.outputs.append([])
        self.outputs[-1].append(output)
        return output


@without_autocast()
def relevance(run: ModelRun, of: tuple[int, int] | Along | None) -> Relevance:
    """Rerun and return how far each weight raised y; see `attention_viz.gradient`."""
    tap = _Tap(run.edits, run.anatomy.places, frozenset(run.numbers))
    try:
        with run.runner.door, torch.inference_mode(False), torch.enable_grad():
            output = run.runner.run_open(tap, {name: tensor.clone() for name, tensor in run.inputs.items()})
            y, words = _asked(run, output, of)
            flat = [one for pieces in tap.outputs for one in pieces]
            slopes = slopes_of(run.name, y, flat)
    except AttentionVizError:
        raise
    except Exception as error:
        raise UnsupportedModel(
            f"can't compute gradients of {run.name}: {type(error).__name__}: {first_line(error)}"
        ) from error
    with torch.no_grad():
        _check_same(run, tap)
        remaining, orders = iter(slopes), [call.order for call in tap.calls()]
        layers = [
            _raised(layer.attention, _whole([next(remaining) for _ in pieces], layer.attention.shape[-2], order))
            for layer, pieces, order in zip(run.layers, tap.outputs, orders, strict=True)
        ]
    return Relevance(run.anatomy.by_stream(layers, run.numbers), words)


def _whole(slopes: Sequence[Tensor], queries: int, order: WindowOrder | None) -> Float[Tensor, "head query d_v"]:
    """Join the slopes of an output's pieces, each (row, head, query, d_v), along rows, values or queries."""
    slopes = [in_one_row(one, order) for one in slopes]
    return torch.cat(slopes, dim=-1 if slopes[0].shape[-2] == queries else -2)[0]


def slopes_of(name: str, y: Tensor, outputs: Sequence[Tensor]) -> list[Tensor]:
    """Return dy/dO at each output; zeros if y doesn't depend on it."""
    if not y.requires_grad:
        raise UnsupportedModel(f"can't compute gradients of {name}: its output is detached from its attention")
    if _without_derivative(y):
        raise UnsupportedModel(
            f"can't compute gradients of {name}: torch has no derivative of some function in it, such as a quantized "
            "matrix's, and would give zeros"
        )
    # torch says that all are tensors, and gives None for those that y does not depend on.
    found = cast("Sequence[Tensor | None]", torch.autograd.grad(y, list(outputs), allow_unused=True))
    return [torch.zeros_like(one) if slope is None else slope for one, slope in zip(outputs, found, strict=True)]


def _without_derivative(y: Tensor) -> bool:
    """Return whether torch would give zeros for a missing derivative."""
    known, open_nodes = set[object](), [y.grad_fn]
    while open_nodes:
        node = open_nodes.pop()
        if node is None or node in known:
            continue
        if "NotImplemented" in node.name():
            return True
        known.add(node)
        open_nodes += [before for before, _ in node.next_functions]
    return False


def _check_same(run: ModelRun, tap: _Tap) -> None:
    calls = [_detached(call.attention) for call in tap.calls()]
    if len(calls) != len(run.layers) or not all(
        alike(layer.attention, call) for layer, call in zip(run.layers, calls, strict=True)
    ):
        raise changed(run.name)


def _detached(call: Attention) -> Attention:
    return map_terms(call, lambda term, value: value if term.is_number else value.detach())


def _raised(call: Attention, slope: Float[Tensor, "head query d_v"]) -> Float[Tensor, "head query key"]:
    """Return the positive part of weights times gradients."""
    slope = slope.to(call.query.device)
    value = widened(shared_heads(_detached(call).value, call.query))
    slopes = widened(slope) @ value.mT
    return (slopes * widened(_detached(call).weights)).clamp_min(0).float().cpu()


def _asked(run: ModelRun, output: Tensor, of: tuple[int, int] | Along | None) -> tuple[Tensor, str]:
    """Return y and its description."""
    output = widened(output)
    if isinstance(of, Along):
        where = "at the mean over all positions" if of.position is None else f"at position {of.position}"
        return along(run, output, of), f"of the output {where} in a given direction"
    if of is not None:
        return _logit(run, output, *of)
    real = [at for at, padded in enumerate(run.tokens.padding) if not padded]
    if len(output) != len(run.tokens):
        return output.max(), "of the largest number of the output"
    if run.anatomy.no_words:
        return 0.5 * output[real].mean(dim=0).square().sum(), "of half the squared length of the mean output vector"
    if has_target(run.queries):
        written = run.queries[target_stream(run.queries)].numbers
        # Rows of a decoder that attends to both texts at once have the tokens that they read, not those they write.
        written = written if "cross" in run.queries else (*written[1:], int(output[-1].argmax()))
        target = torch.tensor(written, device=output.device)
        return output.gather(1, target[:, None]).sum(), "of the sum of the logits of the target tokens"
    if "encoder" not in run.queries:
        return _logit(run, output, real[-1], int(output[real[-1]].argmax()))
    mask = getattr(run.tokenizer, "mask_token_id", None)
    masks = [at for at in real if run.tokens.numbers[at] == mask]
    if masks:
        return _logit(run, output, masks[0], int(output[masks[0]].argmax()))
    return output[real].amax(dim=1).sum(), "of the sum of the largest logit at every position"


def along(run: ModelRun, output: Float[Tensor, "row width"], of: Along) -> Float[Tensor, ""]:
    """Return the output's projection on a direction."""
    rows, width = output.shape
    if of.position is not None and not -rows <= of.position < rows:
        raise ShapeError(f"the output has no position {of.position}; choose {-rows} to {rows - 1}")
    if of.vector.shape != (width,):
        raise ShapeError(f"a direction must be ({width},), as wide as the output; got {tuple(of.vector.shape)}")
    # A vector that was made in inference mode has no part in slopes; its copy has.
    vector = of.vector.clone().to(output)
    if of.position is not None:
        return output[of.position] @ vector
    real = [at for at, padded in enumerate(run.tokens.padding) if not padded]
    chosen = output[real] if rows == len(run.tokens) else output
    return chosen.mean(dim=0) @ vector


def _logit(run: ModelRun, output: Tensor, position: int, token: int) -> tuple[Tensor, str]:
    rows, width = output.shape
    if run.anatomy.no_words:
        raise UnsupportedModel(f"{run.name} has no unembedding for token {token}: {run.anatomy.no_words}")
    if not -rows <= position < rows:
        raise ShapeError(f"the text has no position {position}; choose {-rows} to {rows - 1}")
    if not 0 <= token < width:
        raise ShapeError(f"{run.name} has no token {token}; choose 0 to {width - 1}")
    (label,) = label_ids(run.tokenizer, [token]).written
    where = f"at position {position % rows}" if "decoder" not in run.queries else f"after position {position % rows}"
    return output[position, token], f"of the logit of “{label}” {where}"
