"""Cross-attention step by step: queries are made of the decoder's vectors, keys and values of the encoder's."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close

import attention_viz as av
from attention_viz.models.model import AttentionModel
from attention_viz.steps.arithmetic import open_cell
from attention_viz.steps.head import OpenHead, open_head
from attention_viz.steps.steps import STEPS, explanation_of, formula_of, step_tensors
from tests.shipped import shipped

# As many tokens in as out, which must not mix them up, and two that differ.
TEXTS = [
    ("the boy finds the key and he sells it", None),
    ("the boy finds the key", "la fille vend le petit chat noir"),
]


def translation() -> AttentionModel:
    return shipped("translation")


def opened(text: str, target: str | None, stream: str = "cross") -> OpenHead:
    trace = translation().trace(text, target=target)
    return open_head(trace, 0, 1, stream, projections=translation().projections(0, stream))


@pytest.mark.parametrize(("text", "target"), TEXTS, ids=["as many out", "more out"])
def test_what_enters_is_the_decoders_and_the_source_what_the_encoder_hands_over(text: str, target: str | None) -> None:
    model, trace = translation(), translation().trace(text, target=target)
    layer = trace.layer(0, "cross")
    assert layer.embeddings is not None and layer.source is not None
    ids = torch.tensor([trace.key_tokens("cross").ids])
    with torch.no_grad():
        hidden: Any = model.hf_model.get_encoder()(ids)  # pyright: ignore[reportAttributeAccessIssue]
    assert_close(layer.source, hidden.last_hidden_state[0], atol=1e-5, rtol=1e-5)
    assert len(layer.embeddings) == len(trace.query_tokens("cross"))
    assert trace.layer(0, "encoder").source is None


@pytest.mark.parametrize(("text", "target"), TEXTS, ids=["as many out", "more out"])
@pytest.mark.parametrize("name", list(STEPS))
def test_the_arithmetic_of_each_cell_gives_the_cell(text: str, target: str | None, name: str) -> None:
    one = opened(text, target)
    if not STEPS[name].applies(one):
        pytest.skip("this model has no such step")
    matrix = STEPS[name].function(one)
    assert matrix is not None
    for row, column in ((0, 0), (len(matrix) - 1, matrix.shape[1] - 1)):
        found = open_cell(one, name, row, column)
        assert found.total == pytest.approx(float(matrix[row, column]), abs=1e-4) or not torch.isfinite(
            matrix[row, column]
        )
        if name in ("query", "key", "value"):
            assert found.rule == "sum"
            assert found.sum == pytest.approx(found.total, abs=1e-4)


def test_formulas_and_words_tell_the_two_texts_apart() -> None:
    one = opened(*TEXTS[0])
    assert formula_of(one, "query").startswith("Q = X W_{Q}")
    assert formula_of(one, "key").startswith("K = M W_{K}")
    assert r"m_j" in formula_of(one, "value", "columns")
    assert "encoder" in explanation_of(one, "key")
    own = opened(*TEXTS[0], "encoder")
    assert formula_of(own, "key").startswith("K = X W_{K}")
    assert explanation_of(own, "key") == STEPS["key"].explanation


def test_the_source_is_in_the_tensors_and_survives_a_file(tmp_path: Path) -> None:
    one = opened(*TEXTS[1])
    tensors = step_tensors(one)
    made = tensors["source"] @ tensors["key_weight"] + tensors["key_bias"]
    assert_close(made, tensors["key"], atol=1e-4, rtol=1e-4)
    one.trace.save(tmp_path / "cross")
    again = av.Trace.load(tmp_path / "cross").layer(0, "cross").source
    assert again is not None and torch.equal(again, tensors["source"])


def test_a_source_of_another_length_is_refused() -> None:
    layer = av.Layer(
        av.attend(torch.ones(1, 2, 3), torch.ones(1, 4, 3), torch.ones(1, 4, 3)), "0", source=torch.ones(2, 3)
    )
    two, four = (av.Tokens(tuple("abcd"[:count]), tuple(range(count))) for count in (2, 4))
    with pytest.raises(av.TraceError, match="needs a source of"):
        av.Trace(
            layers={"cross": (layer,)},
            queries={"cross": two},
            keys={"cross": four},
            output=torch.zeros(2, 2),
            provenance=av.Provenance(model="m"),
            fidelity=av.Fidelity(0.0, 0.0, 1e-5, "nothing"),
        )
