"""Why with a text beside an image: numbers of the model, and the image lit by a head."""

from typing import Any

import pytest

import attention_viz as av
from attention_viz.explorer.packet import read_packet
from attention_viz.inputs.media.shipped import SAMPLES
from tests.shipped import shipped
from tests.ui.screens import Screen

QUESTION = "what colour is the circle ?"
ADDRESS = "/why?model=shapes&picture=shapes-two&stream=decoder&layer=1&head=0&text=what+colour+is+the+circle+?"


@pytest.fixture(scope="module")
def trace() -> av.Trace:
    return shipped("shapes").trace(QUESTION, picture=av.Picture(SAMPLES["shapes-two"].path))


def board(screen: Screen) -> dict[str, Any]:
    (found,) = [one.proto.bytes for one in screen.all("bidi_component") if one.proto.id.endswith("-why-board")]
    return read_packet(found)[0]


def test_the_next_word_is_explained_with_the_image(trace: av.Trace) -> None:
    screen = Screen().open(f"{ADDRESS}&why=word&token=red&against=blue")
    assert not screen.alerts
    told = board(screen)
    ids = {word: shipped("shapes").tokenizer.convert_tokens_to_ids(word) for word in ("red", "blue")}
    gap = float(trace.output[-1, ids["red"]] - trace.output[-1, ids["blue"]])
    assert told["total"] == pytest.approx(gap, abs=1e-4)
    rows = sum(one["sum"] for one in told["groups"])
    assert rows + told["remainder"] == pytest.approx(gap, abs=1e-3)
    # A patch is no word, and a word beside it is no patch.
    assert told["unit"] == "word" and told["units"] == {"query": "word", "key": "word"}
    assert 1 in told["specials"]["key"] and 70 not in told["specials"]["key"]


def test_the_image_has_each_patch_at_its_place_with_the_heads_weight(trace: av.Trace) -> None:
    told = board(Screen().open(f"{ADDRESS}&why=word&token=red&against=blue"))
    boxes = told["seen"]["boxes"]
    assert len(boxes) == 64 and len(told["seen"]["images"]) == 1
    # Position 12 is the fourth patch of the second row.
    assert boxes["12"] == pytest.approx([0, 1 / 8, 3 / 8, 2 / 8, 4 / 8])
    row = trace.weights(1, 0, "decoder")[70]
    weights = {at: weight for at, weight, _ in told["sources"]["1 0"]}
    assert weights[1] == pytest.approx(float(row[1]), abs=1e-4)
    assert told["seen"]["over"]["1 0"][0] == pytest.approx(float(row[1:65].sum()), abs=1e-4)
    # A control: another head doesn't attend to the image.
    assert told["seen"]["over"]["1 1"][0] < 0.1 < told["seen"]["over"]["1 0"][0]


def test_a_score_of_a_word_and_a_patch_is_explained(trace: av.Trace) -> None:
    screen = Screen().open(f"{ADDRESS}&why=pair&query=70&key=1")
    assert not screen.alerts
    call = trace.attention(1, "decoder")
    assert board(screen)["total"] == pytest.approx(float(call.scaled[0, 70, 1]), abs=1e-3)


def test_patching_which_takes_no_image_is_not_offered() -> None:
    offered = [one.options for one in Screen().open(f"{ADDRESS}&why=word").all("button_group")]
    assert ["Direct attribution", "Ablation"] in offered
    text = [one.options for one in Screen().open("/why?model=lists&why=word").all("button_group")]
    assert ["Direct attribution", "Ablation", "Activation patching"] in text
