"""The training loop that all recipes share."""

import math
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor
from transformers.modeling_utils import PreTrainedModel

__all__ = ["UNASKED", "Batch", "Plan", "learn", "pad", "say", "seeded"]

Batch: TypeAlias = dict[str, Tensor]

# What `labels` hold where a prediction is not asked for; transformers leaves these out of the loss.
UNASKED = -100


@dataclass(frozen=True)
class Plan:
    """How long and how fast to learn.

    Attributes:
        warmup: in how many steps it is reached; from there it falls along a cosine to 5 %.
    """

    steps: int
    rows: int
    rate: float
    warmup: int

    def factor(self, step: int) -> float:
        """What share of the highest learning rate a step has."""
        if step < self.warmup:
            return (step + 1) / self.warmup
        done = (step - self.warmup) / max(1, self.steps - self.warmup)
        return 0.05 + 0.95 * (1 + math.cos(math.pi * min(1.0, done))) / 2


def seeded(seed: int) -> random.Random:
    """Let one seed decide all chance of a training run: torch's makes the weights, the one returned the batches."""
    torch.manual_seed(seed)
    return random.Random(seed)


def own_loss(model: PreTrainedModel, batch: Batch) -> Tensor:
    """How wrong a model's predictions are, as it computes that by itself from `labels`."""
    return model(**batch).loss


def learn(
    model: PreTrainedModel,
    batches: Iterator[Batch],
    plan: Plan,
    *,
    stop: int | None = None,
    loss: Callable[[PreTrainedModel, Batch], Tensor] = own_loss,
    penalty: Callable[[], Tensor] | None = None,
    after_step: Callable[[int], None] | None = None,
) -> None:
    """Train a model in place.

    Args:
        stop: after how many steps to stop, with the schedule unchanged; the plan's by default.
    """
    optimiser = torch.optim.AdamW(model.parameters(), lr=plan.rate, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, plan.factor)
    model.train()
    for step in range(1, (stop or plan.steps) + 1):
        wrong = loss(model, next(batches))
        (wrong if penalty is None else wrong + penalty()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad()
        if after_step is not None:
            after_step(step)
        if step % max(1, plan.steps // 8) == 0:
            say(f"  step {step} of {plan.steps}: loss {float(wrong.detach()):.3f}")
    model.eval()


def pad(rows: list[list[int]], filler: int) -> Tensor:
    """Rows of different lengths as one tensor (row, position), filled up on the right."""
    width = max(map(len, rows))
    return torch.tensor([row + [filler] * (width - len(row)) for row in rows])


def say(text: str) -> None:
    """Tell whoever is waiting what is going on."""
    print(text, file=sys.stderr, flush=True)
