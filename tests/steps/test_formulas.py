from typing import Any

import pytest
import torch

import attention_viz as av
from attention_viz.steps.head import OpenHead, open_head
from attention_viz.steps.steps import NOTATIONS, STEPS, formula_of
from attention_viz.trace.trace import Layer
from tests.steps.test_steps import numbers, own, pretrained, shared, trace_of


def made(**terms: Any) -> OpenHead:
    call = av.attend(numbers(2, 5, 4), numbers(2, 5, 4), numbers(2, 5, 4), **terms)
    return open_head(trace_of(Layer(call, "0", None, None)), 0, 0)


def test_the_factor_is_the_one_that_was_used() -> None:
    assert formula_of(own(), "scaled") == r"S' = \tfrac{1}{\sqrt{d_k}}\, S"
    scaled = open_head(own().trace, 0, 2, scale="d_model")
    assert formula_of(scaled, "scaled") == r"S' = \tfrac{1}{\sqrt{d_{\text{model}}}}\, S"
    assert formula_of(made(scale=0.3), "scaled") == r"S' = 0.3\, S"
    assert formula_of(made(scale=1.0), "scaled") == r"S' = \, S"


def test_a_projection_with_a_bias_has_it_in_its_formula() -> None:
    assert formula_of(own(), "query") == r"Q = X W_{Q}"
    assert formula_of(pretrained(), "query") == r"Q = X W_{Q} + b_{Q}"
    assert formula_of(pretrained(), "joined", "columns").endswith("+ b_{O}")


def test_scores_of_rotated_vectors_are_written_with_the_rotated_ones() -> None:
    assert formula_of(shared(), "scores") == r"S = Q' K'^{\top}, \quad S_{ij} = q'_i \cdot k'_j"
    assert formula_of(shared(), "scores", "columns") == r"E = Q'^{\top} K', \quad E_{ij} = {q'_i}^{\top} k'_j"


def test_no_letter_stands_for_two_things_where_a_model_has_steps_of_its_own() -> None:
    assert formula_of(own(), "weights") == STEPS["weights"].rows
    assert formula_of(made(softcap=2.0), "weights").startswith(r"A = \operatorname{softmax}(S'')")
    assert formula_of(made(bias=torch.zeros(5, 5)), "biased") == "S'' = S' + B"
    assert formula_of(shared(), "biased") == "S''' = S'' + B"
    assert formula_of(shared(), "allowed").startswith("S'''_{ij}")


@pytest.mark.parametrize("notation", NOTATIONS)
def test_a_sink_stands_in_the_sum_that_is_divided_by(notation: str) -> None:
    assert r"{e^{\text{sink}} + \sum_{m} e^" in formula_of(shared(), "weights", notation)
    assert "sink" not in formula_of(own(), "weights", notation)
