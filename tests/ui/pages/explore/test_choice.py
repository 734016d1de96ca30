"""What the Explore page decides: which head it shows, its numbers, what is said, and what the address keeps."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import attention_viz as av
from tests.ui.screens import Screen

BANK = "The bank of the river was flooded"
LINK = "/?model=all-MiniLM-L6-v2&text=The+bank+of+the+river+was+flooded&layer=0&head=4"


@pytest.fixture(scope="module")
def screen() -> Screen:
    """One visitor, who looks at one thing after the other."""
    return Screen().open(LINK)


def shown(screen: Screen) -> tuple[int, int]:
    """Layer and head that the page has the explorer show; an empty place is a failure."""
    told = screen.channel("explorer")
    return told["layer"], told["head"]


def test_a_link_reproduces_the_screen_and_its_numbers(eager_weights: Callable[..., Any]) -> None:
    screen = Screen().open(LINK)
    weights = screen.weights()
    assert weights[2, 5] == pytest.approx(0.580, abs=5e-4)
    assert weights[2, 7] == pytest.approx(0.164, abs=5e-4)
    assert abs(weights - eager_weights(BANK)[0][0, 4].numpy()).max() <= 1e-5
    assert screen.address == {"model": "all-MiniLM-L6-v2", "text": BANK, "layer": "0", "head": "4"}


def test_back_and_forward_show_the_head_and_the_text_of_their_address(screen: Screen) -> None:
    screen.back_to(LINK)
    screen.pick("Layer", 3).pick("Head", 1)
    screen.pick("Sentence", "A boat drifted past")
    for text, layer, head in ((BANK, 0, 4), ("A boat drifted past", 3, 1), (BANK, 3, 1)):
        screen.back_to(f"/?model=all-MiniLM-L6-v2&text={text.replace(' ', '+')}&layer={layer}&head={head}")
        assert shown(screen) == (layer, head)
        assert screen.picker("Sentence").value == text
        assert (screen.address["layer"], screen.address["head"], screen.address["text"]) == (
            str(layer),
            str(head),
            text,
        )


def test_the_pickers_reach_the_explorer_and_the_numbers(screen: Screen, eager_weights: Callable[..., Any]) -> None:
    screen.back_to(LINK)
    screen.pick("Layer", 5).pick("Head", 6)
    assert shown(screen) == (5, 6)
    assert (screen.address["layer"], screen.address["head"]) == ("5", "6")
    assert abs(screen.weights() - eager_weights(BANK)[5][0, 6].numpy()).max() <= 1e-5


def test_a_new_sentence_keeps_layer_and_head(screen: Screen, eager_weights: Callable[..., Any]) -> None:
    text = "A boat drifted past the old mill"
    screen.back_to("/?model=all-MiniLM-L6-v2&text=A+boat&layer=2&head=7").pick("Sentence", text)
    assert shown(screen) == (2, 7)
    assert screen.address["text"] == text
    assert abs(screen.weights() - eager_weights(text)[2][0, 7].numpy()).max() <= 1e-5


def test_our_own_module_stands_beside_the_pretrained_one(screen: Screen) -> None:
    screen.back_to("/?model=all-MiniLM-L6-v2&text=The+cat+sat+on+mat").pick("Model", "scratch")
    assert "Verified" in screen.words
    before = screen.weights()
    assert before.shape == (5, 5)
    assert (screen.pick("Seed", 3).weights() != before).any()
    assert screen.address["seed"] == "3"


def test_a_width_that_the_heads_cannot_share_is_refused_in_words(screen: Screen) -> None:
    screen.back_to("/?model=scratch&d_model=7&heads=2&text=The+cat")
    (refusal,) = screen.alerts
    assert "7" in refusal and "2" in refusal
    assert screen.picker("Sentence").value == "The cat"


@pytest.mark.parametrize(
    ("text", "why"),
    [("", "text is empty"), ("   \n ", "text is empty"), ("\u200b\u0007", "drops every character of this text")],
)
def test_a_text_with_nothing_to_read_gets_a_message_in_its_place(screen: Screen, text: str, why: str) -> None:
    screen.back_to(LINK).pick("Sentence", text)
    assert why in screen.words.lower()
    assert not screen.channel("explorer")
    assert screen.pick("Sentence", "now a word").channel("explorer")


def test_one_token_has_run(screen: Screen) -> None:
    screen.back_to("/?model=scratch&text=bank&head=0")
    assert screen.channel("explorer")
    assert screen.weights().tolist() == [[1.0]]


def test_three_thousand_words_name_the_limit_and_stay_in_the_box(screen: Screen) -> None:
    text = " ".join(f"word{number}" for number in range(3000))
    screen.back_to("/?model=coreference&text=the+cup").pick("Sentence", text)
    assert "This text has 3,002 tokens, and coreference reads at most 32 here" in screen.words
    assert "The figure ends before: “word30 word31 " in screen.words
    assert screen.picker("Sentence").value == text
    assert screen.channel("explorer") and screen.weights().shape == (32, 32)
    assert "text" not in screen.address
    assert "A link leaves this text out: it is too long." in screen.words


def test_what_an_address_says_wrong_goes_away_with_the_next_choice(screen: Screen) -> None:
    screen.back_to("/?layer=99&head=-3&model=../../etc/passwd&text=kept")
    for part in ("layer “99”", "head “-3”", "model “../../etc/passwd”"):
        assert sum(part in one for one in screen.warnings) == 1
    assert screen.picker("Sentence").value == "kept"
    assert screen.channel("explorer")
    assert not screen.pick("Sentence", "and it goes away").warnings


def two_streams(path: Path) -> av.Trace:
    """A trace with two streams, of which the second has layers with more heads."""

    def layer(heads: int, queries: int, keys: int) -> av.Layer:
        query, key = torch.randn(heads, queries, 4), torch.randn(heads, keys, 4)
        return av.Layer(av.attend(query, key, torch.randn(heads, keys, 4)), "0")

    source, target = (av.Tokens(tuple(text.split()), tuple(range(len(text.split())))) for text in ("a b c", "d e"))
    trace = av.Trace(
        layers={"encoder": (layer(2, 3, 3),), "cross": (layer(2, 2, 3), layer(5, 2, 3))},
        queries={"encoder": source, "cross": target},
        keys={"encoder": source, "cross": source},
        output=torch.zeros(2, 4),
        provenance=av.Provenance(model="two streams", text="a b c"),
        fidelity=av.Fidelity(0.0, 0.0, 1e-5, "nothing"),
    )
    trace.save(path)
    return trace


def test_every_stream_and_head_of_an_opened_trace_can_be_looked_at(screen: Screen, tmp_path: Path) -> None:
    trace = two_streams(tmp_path / "streams.safetensors")
    screen.back_to("/?model=all-MiniLM-L6-v2&text=The+bank&layer=3&head=7")
    screen.open_trace(tmp_path / "streams.safetensors")
    assert "Shown from a file, which links leave out: two streams" in screen.words
    cross = next(one for one in screen.picker("Stream").options if one.startswith("cross"))
    screen.pick("Stream", cross).pick("Layer", 1).pick("Head", 4)
    assert shown(screen) == (1, 4) and screen.channel("explorer")["stream"] == "cross"
    assert screen.weights() == pytest.approx(trace.weights(1, 4, "cross").numpy())
    screen.press("Close it")
    assert (screen.address["layer"], screen.address["head"]) == ("3", "7")
    assert shown(screen) == (3, 7)


def test_a_model_with_several_kinds_of_attention_opens_on_that_of_its_best_finding() -> None:
    screen = Screen().open("/?model=translation")
    packed = screen.packed()
    best = packed["findings"][0]
    assert best["stream"] != packed["streams"][0]["name"]
    told = screen.channel("explorer")
    assert [told[name] for name in ("stream", "layer", "head")] == [best[name] for name in ("stream", "layer", "head")]
    assert screen.address["stream"] == best["stream"]
    # What somebody chooses by hand stays, also with the next text.
    screen.pick("Stream", packed["streams"][0]["name"])
    screen.pick("Sentence", "the boy sees the red house")
    assert screen.channel("explorer")["stream"] == packed["streams"][0]["name"]


def test_a_link_that_names_a_kind_of_attention_opens_on_it() -> None:
    screen = Screen().open("/?model=translation&stream=encoder")
    assert screen.channel("explorer")["stream"] == "encoder" == screen.address["stream"]
