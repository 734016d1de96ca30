"""The Why page: which number it opens, and what it says where it can't."""

import pytest

import attention_viz as av
from attention_viz.serving.request import Request
from attention_viz.serving.runs import draw
from attention_viz.serving.why import without_heads
from tests.shipped import SMOLLM2, shipped
from tests.ui.screens import Screen

GIVEN = "When+Mary+and+John+went+to+the+store,+John+gave+a+drink+to"
STORY = f"/why?model={SMOLLM2}&text={GIVEN}"


def test_it_opens_on_the_next_word_against_one_of_the_text_and_on_the_head_that_wrote_most() -> None:
    screen = Screen().open(STORY)
    assert not screen.app.exception
    assert (screen.picker("Why").value, screen.picker("and not").value) == ("Mary", "John")
    assert (screen.picker("Layer").value, screen.picker("Head").value) == (23, 3)


def test_without_a_head_that_writes_it_the_number_is_what_the_edited_model_says() -> None:
    request = Request(SMOLLM2, GIVEN.replace("+", " "))
    drawn, model = draw(request), shipped(SMOLLM2)
    last = len(drawn.trace.query_tokens()) - 1
    mary, john = (model.tokenizer.encode(word)[0] for word in (" Mary", " John"))  # pyright: ignore
    of = av.Logit(mary, last, john)
    found = without_heads(drawn, request, of, [(23, 3), (23, 0)], None)
    for (layer, head), number in found.items():
        edited = model.trace(request.text, edits=[av.Ablate(layer, head)])
        assert number == pytest.approx(float(edited.output[last, mary] - edited.output[last, john]), abs=1e-3)
    # The first is confirmed: as much is missing as it wrote. Later layers make up for the second.
    assert 6.12 - found[23, 3] == pytest.approx(3.04, abs=0.05)
    assert abs(6.12 - found[23, 0]) <= 0.1
    score = av.Score(18, 6, 9, 4)
    edited = model.trace(request.text, edits=[av.Ablate(16, 1)])
    (there,) = without_heads(drawn, request, score, [(16, 1)], None).values()
    call = edited.attention(18)
    key = call.key[6 // (call.query.shape[0] // call.key.shape[0]), 4]
    assert there == pytest.approx(float(call.query[6, 9] @ key) * call.scale, abs=1e-3)


def test_a_word_of_several_tokens_is_refused_with_its_tokens_and_the_page_stays() -> None:
    screen = Screen().open(f"{STORY}&token=Mississippi+mud")
    assert not screen.app.exception
    assert " tokens to SmolLM2" in " ".join(screen.alerts)
    assert screen.picker("Why").value == "Mississippi mud"
    screen.pick("Why", "Mary")
    assert not screen.alerts and screen.picker("and not").value == "John"


@pytest.mark.parametrize("model", ["all-MiniLM-L6-v2", "translation"])
def test_a_model_without_a_next_word_of_its_own_opens_the_score_of_the_pair(model: str) -> None:
    screen = Screen().open(f"/why?model={model}&text=the+boy+finds+the+key&layer=1&head=0&why=word")
    assert not screen.app.exception
    assert not screen.app.error
    assert screen.picker("Written into").value == "key"


def test_our_own_module_is_refused_by_name() -> None:
    screen = Screen().open("/why?model=scratch&text=the+cat+sat")
    assert not screen.app.exception
    assert any(
        "nobody trained" in one.value for kind in ("error", "info", "warning") for one in getattr(screen.app, kind)
    )
