"""What makes a model's output of what its body hands over, each row of that position alone: a language model's head."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from attention_viz.recording.as_written import AsWritten
from attention_viz.recording.copied import copied
from attention_viz.recording.outputs.returned import output_of
from attention_viz.recording.weights.unchanged import changed
from attention_viz.recording.wiring import HOOKS
from attention_viz.sources.huggingface import PreTrainedModel
from attention_viz.trace.memory import LateOutput, RestingFile

# What a model's forward is given so that it makes the output of its last position alone.
ONLY_LAST = {"logits_to_keep": 1}


@dataclass(frozen=True, eq=False)
class Readout:
    """The rest of a model, without its body, over the same parameters.

    Attributes:
        model: the rest, in which something stands in the body's place that gives what it is told to.
        inputs: what its forward is always given.
        last: what the body handed over for the last position, (1, 1, d_model).
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
        """The rest of a model; None where it can't be had by itself, or doesn't make the last row as the model did.

        Args:
            row: its output at the last position, (1, width); by default what the rest makes of it.
        """
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
        """The output's rows, (position, width), of what the body handed over for them, (1, position, d_model)."""
        with self._turn, AsWritten(), torch.no_grad():
            self.given.hidden = hidden
            return output_of(self.model(**self.inputs))

    @property
    def unchanged(self) -> bool:
        """Whether the last row comes out as it did when the model ran."""
        again = self.rows(self.last)
        return again.shape == self.row.shape and torch.equal(again, self.row)

    def late(self, hidden: Tensor, rest: RestingFile | None) -> LateOutput:
        """The output of a whole text, of what the body handed over, (1, position, d_model)."""
        rest = rest if hidden.device.type == "cpu" else None
        return LateOutput(
            (hidden.shape[1], self.row.shape[1]),
            self.row.dtype,
            lambda start, stop: self.rows(hidden[:, start:stop]),
            check=self._refuse_other,
            held=[hidden],
            rest=rest,
        )

    def _refuse_other(self) -> None:
        if not self.unchanged:
            raise changed(type(self.model).__name__)


def body_of(model: PreTrainedModel) -> nn.Module | None:
    """The module below a model's head; None where the model is one, or doesn't say."""
    found = getattr(model, model.base_model_prefix, None) if model.base_model_prefix else None
    return found if isinstance(found, nn.Module) and found is not model else None


def hidden_of(returned: object, rows: int) -> Tensor | None:
    """What a body handed over, (1, position, d_model); None where that isn't of so many positions."""
    hidden = getattr(returned, "last_hidden_state", None)
    return hidden if isinstance(hidden, Tensor) and hidden.shape[:-1] == (1, rows) else None


class _BodyStub(nn.Module):
    """Stands where the body of a model stood, and gives some of what that gave."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = torch.empty(0)

    def forward(self, *_inputs: object, **_named: object) -> object:
        """What a body returns, without anything but its last hidden state."""
        from transformers.modeling_outputs import BaseModelOutputWithPast

        return BaseModelOutputWithPast(last_hidden_state=cast("Any", self.hidden))
