"""Slides of one head's steps: their numbers are the run's, and what changes nothing has none."""

import math

import pytest
import torch

import attention_viz as av
from attention_viz.analysis.slides import Slide
from attention_viz.steps.head import OpenHead, open_head
from attention_viz.steps.mixing import open_mixer
from attention_viz.steps.pair import open_pair
from attention_viz.steps.slides import mixer_slides, step_slides
from tests.explorer.opened_heads import every_term, long_text
from tests.shipped import shipped

BANK = "The bank of the river was flooded"


def said(parts: tuple[tuple[str, str], ...]) -> str:
    return "".join(text for text, _ in parts)


def told(slides: tuple[Slide, ...]) -> list[str]:
    return [said(one.tell) for one in slides]


@pytest.fixture(scope="module")
def opened() -> OpenHead:
    model = shipped("all-MiniLM-L6-v2")
    return open_head(model.trace(BANK), 0, 4, projections=model.projections(0))


def test_the_way_of_a_score_is_told_step_by_step_with_the_runs_numbers(opened: OpenHead) -> None:
    slides = step_slides(opened, 2, 5)
    call = opened.attention
    score, scaled, weight = (float(one[2, 5]) for one in (call.scores, call.scaled, opened.weights))
    terms, scale, shares, values, joined = told(slides)
    largest = int((call.query[2] * call.key[5]).abs().argmax())
    assert terms.startswith(f"The score is {score:.2f}: dimension {largest} gives ")
    assert scale == f"{score:.2f} ÷ √32 is {scaled:.2f}"
    assert shares == f"“bank” looks at “river”: {weight:.2f}"
    assert values.startswith(f"“river” counts most: weight {weight:.2f} × a value of length ")
    assert joined.startswith("Head 4 adds most: ")
    assert all(said(one.ask).endswith("?") for one in slides)
    picture = slides[0].picture
    assert picture is not None and not any("others" in name for name in picture.tokens), "a sum is no choice"
    assert picture.cuts == (6,) and picture.neutral
    # What is asked can be worked out from what is shown.
    (factors,) = slides[0].given
    products = [math.prod(float(one.replace("−", "-")) for one in row) for row in factors.cells]
    assert factors.rows == picture.tokens
    assert products == pytest.approx([one or 0 for one in picture.values], abs=0.05)
    assert max(range(6), key=lambda at: abs(products[at])) == picture.key
    rest = score - sum(one or 0 for one in picture.values)
    assert terms.endswith(f"together the 26 that aren’t shown {rest:.2f}".replace("-", "−"))
    heads = slides[-1].picture
    assert heads is not None and heads.cuts == (9,) and len(set(heads.written or heads.values)) == 9


def test_each_heads_part_is_what_it_alone_adds_along_the_joined_vector(opened: OpenHead) -> None:
    picture = step_slides(opened, 2, 5)[-1].picture
    assert picture is not None and opened.adds is not None and opened.entry.joined is not None
    whole = opened.entry.joined[2]
    part = float(opened.adds[2] @ whole / (whole @ whole))
    assert picture.values[picture.tokens.index("head 4")] == pytest.approx(part, abs=1e-5)
    trace = opened.trace
    assert len(step_slides(open_head(trace, 0, 4), 2, 5)) == len(step_slides(opened, 2, 5)) - 1


def test_a_bound_a_bias_and_a_mask_have_slides_of_their_own_where_a_model_has_them() -> None:
    opened = every_term()
    slides = step_slides(opened, 3, 1)
    asked = [said(one.ask) for one in slides]
    assert any("bounds large scores" in one for one in asked) and any("adds a number" in one for one in asked)
    (mask,) = [one for one in slides if "may not attend" in said(one.tell)]
    assert "may not attend to 1 of 5 words" in said(mask.tell)
    assert mask.picture is not None and mask.picture.values[4] is None
    assert f"becomes {float(opened.biased[3, 1]):.2f}".replace("-", "−") in " ".join(told(slides))


def test_of_a_long_text_a_slide_has_room_for_the_pair() -> None:
    opened = long_text()
    for one in step_slides(opened, 3, 1):
        assert one.picture is not None and len(one.picture.tokens) <= 20
    (shares,) = [one for one in step_slides(opened, 3, 1) if "softmax" in said(one.ask)]
    assert f"{float(opened.weights[3, 1]):.2f}" in said(shares.tell)


def test_a_lone_token_has_slides(opened: OpenHead) -> None:
    trace = av.scratch("cat")
    assert told(step_slides(open_head(trace, 0, 0), 0, 0))[-1].startswith("“cat” counts most: weight 1.00")
    assert torch.equal(trace.weights(0, 0), torch.ones(1, 1))


def test_a_pair_without_a_softmax_is_told_from_reading_to_what_arrives() -> None:
    trace = shipped("recall").trace("anna red , ben blue , emma green , ben orange . ben ?")
    opened = open_mixer(trace, 0, 0)
    call, pair = opened.exact, open_pair(opened, 14, 5)
    read, decayed, erased, weight, arrives = mixer_slides(pair)
    reading = float(call.query[14] @ call.key[5]) * call.scale
    assert said(read.tell).startswith(f"The query reads this key with {reading:.2f}: ".replace("-", "−"))
    assert call.decay is not None
    left = call.decay.expand(15, 1)[6:, 0].exp()
    assert said(decayed.tell).endswith(f"all 9 together {float(left.prod()):.2f}")
    # The second value of one name overwrites the first.
    assert said(erased.tell).startswith("“orange”: ")
    cell = float(trace.weights(0, 0, "mixer")[14, 5])
    assert said(weight.tell).endswith(f": {cell:.2g}".replace("-", "−"))
    assert weight.given[0].columns == ("still read", "write")
    arriving = (trace.weights(0, 0, "mixer")[14].double().abs() * call.value.norm(dim=-1)).argmax()
    assert said(arrives.tell).startswith(f"“{trace.key_tokens('mixer').written[int(arriving)]}” counts most")
    # A later key reaches no query, and a token has nothing after it that could erase.
    assert "doesn’t reach" in said(mixer_slides(open_pair(opened, 3, 9))[0].tell)
    assert len(mixer_slides(open_pair(opened, 5, 5))) == 3
