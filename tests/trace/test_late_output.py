"""Outputs whose rows are made when somebody asks for them."""

import gc
import weakref

import torch
from torch import Tensor

from attention_viz.trace.memory import LateOutput


def test_of_many_outputs_only_the_last_that_were_looked_at_keep_rows() -> None:
    made = list["weakref.ref[Tensor]"]()

    def make(start: int, stop: int) -> Tensor:
        rows = torch.arange(start, stop)[:, None] * torch.ones(1, 3)
        made.append(weakref.ref(rows))
        return rows

    outputs = [LateOutput((200, 3), torch.float32, make) for _ in range(9)]
    for one in [*outputs, outputs[5], outputs[0]]:
        assert one[70].tolist() == [70] * 3
    gc.collect()
    assert len(made) == 10  # the sixth was among the last
    assert sum(rows() is not None for rows in made) == 4
