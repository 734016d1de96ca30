import pytest
import torch
from torch.testing import assert_close

import attention_viz as av
from attention_viz.scratch.model import Scratch
from attention_viz.scratch.variants import VARIANTS, run_variant
from attention_viz.steps.head import open_head

TEXT = "The cat sat on mat"


@pytest.mark.parametrize("variant", VARIANTS)
def test_each_variant_agrees_with_torch_and_its_matrices_make_its_numbers(variant: str) -> None:
    trace, known = run_variant(Scratch(12, 3, 1), TEXT, variant)
    assert trace.fidelity.ok
    assert set(open_head(trace, 0, 0, projections=known).projections) == {"query", "key", "value", "output"}


def test_plain_attention_is_the_softmax_of_x_xt_times_x() -> None:
    trace, _ = run_variant(Scratch(12, 3, 1), TEXT, "plain")
    x = trace.layer(0).embeddings
    assert x is not None
    weights = (x @ x.T).softmax(-1)
    assert_close(trace.weights(0, 0), weights)
    assert_close(trace.output, weights @ x)


def test_a_single_head_is_as_wide_as_the_model() -> None:
    module = Scratch(12, 3, 1)
    trace, _ = run_variant(module, TEXT, "single")
    x, known = trace.layer(0).embeddings, module.projections()
    assert x is not None
    query, key, value = (x @ known[name].weight for name in ("query", "key", "value"))
    weights = (query @ key.T / 12**0.5).softmax(-1)
    assert_close(trace.weights(0, 0), weights)
    assert_close(trace.output, weights @ value)


def test_several_heads_are_the_module_itself() -> None:
    assert torch.equal(run_variant(Scratch(12, 3, 1), TEXT, "multi")[0].output, Scratch(12, 3, 1).trace(TEXT).output)


def test_a_variant_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(av.ShapeError, match="unknown variant 'double'"):
        run_variant(Scratch(), TEXT, "double")
