"""Computes output rows from the body's states, each alone: a language model's head."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from attention_viz.recording.as_written import AsWritten
from attention_viz.recording.copied import copied
from attention_viz.recording.hooks import HOOKS
from attention_viz.recording.outputs.returned import output_of
from attention_viz.recording.weights.unchanged import changed
from attention_viz.sources.huggingface import PreTrainedModel
from attention_viz.trace.memory import LateOutput, RestingFile

# What a model's forward is given so that it makes the output of its last position alone.
ONLY_LAST = {"logits_to_keep": 1}


@dataclass(frozen=True, eq=False)
class Readout:
    """A model without its body, over the same parameters.

    Attributes:
        model: has a stub in the body's place, which returns `given.hidden`.
        last: the body's state at the last position, (1, 1, d_model).
    """

    model: PreTrainedModel
    given: "_BodyStub"
    inputs: Mapping[str, object]
    last: Tensor
    row: Tensor
    _turn: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(
        cls, model: PreTrainedModel, inputs: Mapping[str, object], hidden: Tensor, row: Tensor | None = None
    ) -> "Readout | None":
        """Return a model's readout; None if it has none, or that doesn't reproduce the last row, (1, width)."""
        body, given = body_of(model), _BodyStub()
        memo: dict[int, Any] = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
        try:
            with HOOKS:
                rest = copied(model, memo | {id(body): given})
            for module in rest.modules():
                module.training = False
            found = cls(rest, given, inputs, hidden[:, -1:].clone(), hidden.new_empty(0))
            again = found.rows(found.last)
            same = row is None or (again.shape == row.shape and torch.equal(again, row))
            return replace(found, row=again) if same else None
        except Exception:  # whatever a family's own code raises when it is run in parts
            return None

    def rows(self, hidden: Tensor) -> Tensor:
        """Return output rows, (position, width), from states, (1, position, d_model)."""
        with self._turn, AsWritten(), torch.no_grad():
            self.given.hidden = hidden.to(self.last.device)
            return output_of(self.model(**self.inputs))

    @property
    def unchanged(self) -> bool:
        """Whether the last row still comes out the same."""
        again = self.rows(self.last)
        return again.shape == self.row.shape and torch.equal(again, self.row)

    def late(self, hidden: Tensor, rest: RestingFile | None) -> LateOutput:
        """Return a text's output, computed on demand from states, (1, position, d_model)."""
        rest = rest if hidden.device.type == "cpu" else None
        return LateOutput(
            (hidden.shape[1], self.row.shape[1]),
            self.row.dtype,
            lambda start, stop: self.rows(hidden[:, start:stop]).to(hidden.device),
            check=self._refuse_other,
            held=[hidden],
            rest=rest,
        )

    def _refuse_other(self) -> None:
        if not self.unchanged:
            raise changed(type(self.model).__name__)


def body_of(model: PreTrainedModel) -> nn.Module | None:
    """Return the module below a model's head; None if unknown, or the model has no head."""
    found = getattr(model, model.base_model_prefix, None) if model.base_model_prefix else None
    return found if isinstance(found, nn.Module) and found is not model else None


def hidden_of(returned: object, rows: int) -> Tensor | None:
    """Return a body's states, (1, position, d_model); None if there aren't `rows` positions."""
    hidden = getattr(returned, "last_hidden_state", None)
    return hidden if isinstance(hidden, Tensor) and hidden.shape[:-1] == (1, rows) else None


class _BodyStub(nn.Module):
    """Returns fixed states in the body's place."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = torch.empty(0)

    def forward(self, *_inputs: object, **_named: object) -> object:
        """Return a body's result with only the last hidden state."""
        from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions

        return BaseModelOutputWithPastAndCrossAttentions(last_hidden_state=cast("Any", self.hidden))
