"""The likeliest tokens: probabilities are the model's own, and nobody is told a guess of what can be read."""

import pytest
import torch

import attention_viz as av
from tests.models.test_continuation import REPEATED
from tests.shipped import shipped


def test_the_induction_decoder_says_what_followed_and_its_head_looks_there() -> None:
    model = shipped("induction")
    trace = model.trace(REPEATED)
    likely = model.candidates(trace)
    assert likely.token[0] == "frog"
    row = trace.weights(1, 1)[-1]
    assert trace.key_tokens().labels[int(row.argmax())] == "frog"
    assert float(row.max()) > 0.8


@pytest.mark.parametrize("position", [0, 3, -1])
def test_probabilities_are_the_softmax_of_the_output(position: int) -> None:
    model = shipped("induction")
    trace = model.trace(REPEATED)
    likely = model.candidates(trace, position, count=7)
    assert list(likely.columns) == ["token", "id", "probability", "written"]
    expected = trace.output[position].double().softmax(-1).sort(descending=True)
    assert likely.id.tolist() == expected.indices[:7].tolist()
    assert likely.probability.tolist() == pytest.approx(expected.values[:7].tolist(), abs=1e-6)
    assert likely.probability.is_monotonic_decreasing


def test_all_tokens_together_are_certain_and_no_more_are_told_than_there_are() -> None:
    model = shipped("induction")
    trace = model.trace(REPEATED)
    likely = model.candidates(trace, count=10_000)
    assert len(likely) == trace.output.shape[1]
    assert likely.probability.sum() == pytest.approx(1, abs=1e-5)


def test_a_masked_pronoun_is_told_by_the_noun() -> None:
    model = shipped("coreference")
    trace = model.trace("the woman dropped the cup because [MASK] was heavy")
    place = trace.query_tokens().labels.index("[MASK]")
    assert model.candidates(trace, place).token[0] == "it"
    with pytest.raises(av.UnusableText, match=r"\[MASK\].*'woman'"):
        model.candidates(trace, trace.query_tokens().labels.index("woman"))


def test_a_position_that_is_not_there_is_refused() -> None:
    model = shipped("induction")
    with pytest.raises(av.ShapeError, match="no position 99; the text has positions -7 to 6"):
        model.candidates(model.trace(REPEATED), 99)


def test_a_model_that_predicts_nothing_says_so() -> None:
    model = shipped("all-MiniLM-L6-v2")
    trace = model.trace("the river")
    with pytest.raises(av.UnsupportedModel, match="predicts no tokens"):
        model.candidates(trace)
    assert torch.isfinite(trace.output).all()


def test_another_models_trace_is_refused() -> None:
    trace = shipped("lists").trace("copy c a f :")
    with pytest.raises(av.UnsupportedModel, match=r"lists.*induction|induction.*lists"):
        shipped("induction").candidates(trace)
