"""What can be taken away of a head is bounded before any of its numbers are computed."""

import pytest
import torch

import attention_viz as av
from attention_viz.trace.trace import Fidelity, Layer, Provenance, Trace
from attention_viz.ui.parts.downloads import too_large


@pytest.mark.parametrize(("count", "refused"), [(512, False), (2_000, False), (7_700, True)])
def test_tables_and_tensors_of_very_long_texts_are_refused_by_their_cells(count: int, refused: bool) -> None:
    nothing = torch.zeros(1, count, 0)
    tokens = av.Tokens(("a",) * count, tuple(range(count)))
    trace = Trace(
        {"encoder": (Layer(av.attend(nothing, nothing, nothing), "0"),)},
        {"encoder": tokens},
        {"encoder": tokens},
        torch.zeros(count, 2),
        Provenance(model="a model"),
        Fidelity(0.0, 0.0, 1e-5, "nothing"),
    )
    said = too_large(trace, "encoder", 0)
    assert bool(said) == refused
    assert not refused or "59,290,000 weights" in said
