"""What stands around a text, beside it and after it: what the page decides, and by which numbers."""

import re
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from attention_viz.explorer.packet import read_packet
from attention_viz.serving import permissions
from attention_viz.serving.settings import Settings
from attention_viz.trace.spelling import weight_text
from attention_viz.ui.controls.wording import read_otherwise
from tests.conftest import OpenPage
from tests.shipped import shipped
from tests.ui.screens import Screen

BANK = "The bank of the river was flooded"
BERT = f"?model=all-MiniLM-L6-v2&text={quote(BANK)}&"
REPEATED = "?model=induction&text=moon+cheese+frog+ring+moon+cheese&layer=1&head=1"


@pytest.fixture(scope="module")
def screen() -> Screen:
    """One visitor, who looks at one thing after the other."""
    return Screen().open(f"/{BERT}")


@pytest.fixture
def allowed(models: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The operator's folder, with a decoder that chats and a hybrid, open to visitors."""
    monkeypatch.setattr(permissions, "SETTINGS", Settings(models=(models,)))
    return models


def tokens(screen: Screen) -> list[str]:
    return screen.table().drop_duplicates("query").sort_values("query").query_token.tolist()


def bars(screen: Screen, key: str) -> list[tuple[str, str]]:
    """The label of each bar with its number, strongest first."""
    (found,) = [one.proto.bytes for one in screen.all("bidi_component") if one.proto.id.endswith(f"-{key}")]
    told = read_packet(found)[0]
    return list(zip(told["labels"], told["written"], strict=True))


def has(screen: Screen, label: str) -> bool:
    return any(one.label == label for one in screen.all("toggle", "button", "number_input", "text_area", "text_input"))


def test_a_second_sentence_is_read_together_with_the_first(screen: Screen) -> None:
    alone = tokens(screen.back_to(f"/{BERT}layer=5&head=6&second="))
    screen.pick("Second sentence", "A boat drifted past")
    assert tokens(screen) == [*alone, "a", "boat", "drifted", "past", "[SEP]"]
    assert screen.address["second"] == "A boat drifted past"
    assert "[CLS] and [SEP] were added around both" in screen.words
    ours = screen.weights()
    trace = shipped("all-MiniLM-L6-v2").trace(BANK, "A boat drifted past")
    assert abs(ours - trace.weights(5, 6).numpy()).max() < 1e-5


def test_a_link_with_two_sentences_holds_on_every_page() -> None:
    screen = Screen()
    for place in ("/", "/steps", "/masks"):
        screen.open(f"{place}{BERT}second=A+boat")
        assert len(tokens(screen)) == 12, place
        assert screen.picker("Second sentence").value == "A boat"


def test_a_batch_has_a_second_sentence_of_its_own() -> None:
    screen = Screen().open(f"/masks{BERT}mask=padding&second=A+boat")
    assert [one.label for one in screen.all("text_area")].count("Second sentence") == 1
    assert tokens(screen)[:4] == ["[CLS]", "a", "boat", "[SEP]"]
    screen.open("/")
    assert (screen.picker("Sentence").value, screen.picker("Second sentence").value) == (BANK, "")
    assert "second" not in screen.address


def test_a_second_sentence_without_a_first_is_answered_in_words(screen: Screen) -> None:
    screen.back_to("/?model=all-MiniLM-L6-v2&text=+&second=A+boat")
    assert any("The first sentence is empty" in one for one in screen.alerts)


def test_without_special_tokens_two_rows_go(screen: Screen) -> None:
    with_them = tokens(screen.back_to(f"/{BERT}second=&special=on"))
    assert tokens(screen.pick("Special tokens", False)) == with_them[1:-1]
    assert screen.address["special"] == "off"
    assert "Nothing was added around the text" in screen.words and "Verified" in screen.words
    assert tokens(screen.back_to(f"/{BERT}special=on")) == with_them


def test_what_comes_next_is_the_softmax_of_the_output(screen: Screen) -> None:
    screen.back_to(f"/{REPEATED}&more=0")
    trace = shipped("induction").trace("moon cheese frog ring moon cheese")
    likely = shipped("induction").candidates(trace, count=6)
    assert "Next token" in screen.words and "“frog”" in screen.words
    shown = trace.output[-1].softmax(-1).sort(descending=True).values[:6].tolist()
    assert bars(screen, "candidates-6") == list(zip(likely.token.tolist(), map(weight_text, shown), strict=True))
    heaviest = float(trace.weights(1, 1)[-1].max())
    assert bars(screen, "candidates-row-6")[0] == ("frog", weight_text(heaviest))


def test_a_masked_word_is_guessed(screen: Screen) -> None:
    text = "the woman dropped the cup because [MASK] was heavy"
    screen.back_to(f"/?model=coreference&text={quote(text)}&layer=1&head=2")
    assert "Prediction at [MASK]" in screen.words
    position = shipped("coreference").trace(text).query_tokens().labels.index("[MASK]")
    assert bars(screen, f"candidates-{position}")[0][0] == "it"


@pytest.mark.parametrize("place", ["/?text=the+bank", "/?model=coreference&text=the+cup", "/?model=scratch&text=a+b"])
def test_where_nothing_is_predicted_nothing_is_shown(screen: Screen, place: str) -> None:
    screen.back_to(place if "model=" in place else f"{place}&model=all-MiniLM-L6-v2")
    assert screen.channel("explorer")
    assert "Next token" not in screen.words and "Prediction at" not in screen.words
    assert not has(screen, "One more token") and not has(screen, "Chat template")


def test_a_decoder_goes_on_token_by_token(screen: Screen) -> None:
    screen.back_to(f"/{REPEATED}&more=3")
    assert tokens(screen) == "<s> moon cheese frog ring moon cheese frog ring moon".split()
    assert "The model generated the last 3 tokens" in screen.words
    assert not has(screen, "Second sentence")
    assert tokens(screen.press("One more token"))[-4:] == "frog ring moon cheese".split()
    assert screen.address["more"] == "4"
    assert len(tokens(screen.back_to(f"/{REPEATED}&more=3"))) == 10


def test_sampled_tokens_say_how_they_were_drawn_and_why_they_ended(screen: Screen) -> None:
    screen.back_to(f"/{REPEATED}&more=3&sample=on&temperature=2&sampling_seed=1")
    assert "The model generated the last 3 tokens: sampled at temperature 2, seed 1" in screen.words
    screen.back_to(f"/?model=lists&text={quote('reverse c a f :')}&more=40&sample=on&temperature=0.5&sampling_seed=1")
    assert re.search(r"stopped after \d+ of 40 tokens: the next one that it sampled ends the text", screen.words)


def test_steps_show_what_the_model_added_and_masks_leave_it_out() -> None:
    screen = Screen()
    assert len(tokens(screen.open(f"/steps{REPEATED}&more=3"))) == 10
    screen.open(f"/masks{REPEATED}&more=3")
    assert len(tokens(screen)) == 7
    assert "tokens that the model generated are left out here" in screen.words
    assert screen.address["more"] == "3"


def test_a_model_that_is_full_says_so(screen: Screen) -> None:
    screen.back_to(f"/?model=lists&text={quote('reverse c a f : f a c')}&more=40")
    assert re.search(r"The model stopped after \d+ of 40 tokens: ", screen.words)


def test_a_chat_template_stands_around_the_text(allowed: Path) -> None:
    screen = Screen().open(f"/?model={quote(str(allowed / 'chat'), safe='')}&text=the+bank&head=0")
    assert tokens(screen) == ["the", "Ġbank"]
    assert tokens(screen.pick("Chat template", True)) == ["<|user|>", "the", "Ġbank", "<|answer|>"]
    assert screen.address["chat"] == "on"
    assert "The chat template added <|user|> and <|answer|>" in screen.words
    assert not has(screen, "Special tokens")


def test_a_typed_chat_is_read_message_by_message(allowed: Path) -> None:
    page = f"/?model={quote(str(allowed / 'chat'), safe='')}&chat=on&head=0&text="
    screen = Screen().open(page + quote("user: the bank\nassistant: the\nuser: bank"))
    assert [one for one in tokens(screen) if "|" not in one] == ["the", "Ġbank", "the", "ban", "k"]
    screen = Screen().open(page + quote("the\nuser: the bank"))
    assert "“user:” begins line 2, but the lines before it have no role" in screen.words
    screen = Screen().open(page + quote('[{"role": "user", "content": "the bank"}]'))
    assert tokens(screen) == ["<|user|>", "the", "Ġbank", "<|answer|>"]


def test_a_hybrid_has_its_own_layer_numbers_in_pickers_address_and_words(allowed: Path) -> None:
    address = f"/?model={quote(str(allowed / 'hybrid'), safe='')}&text=the+bank&head=0"
    screen = Screen().open(f"{address}&layer=1")
    assert screen.picker("Layer").options == ["Layer 1"] and screen.address["layer"] == "1"
    assert "Layers 0 and 2 have no softmax attention; they mix tokens in another way" in screen.words
    assert "asks for layer" not in screen.words
    asked = Screen().open(f"{address}&layer=2")
    assert asked.address["layer"] == "1"
    assert "The URL asks for layer “2”. Allowed here: 1. Shown instead: 1." in asked.words


def test_the_legend_tells_the_second_sentence_and_the_models_own_tokens(stay: OpenPage) -> None:
    for address, told in (("/?second=A+boat", "second sentence"), (f"/{REPEATED}&more=3", "generated")):
        expect(stay(address).get_by_test_id("explorer-legend")).to_contain_text(told)


def test_a_special_token_that_is_there_twice_is_told_once() -> None:
    screen = Screen().open(f"/?model=all-MiniLM-L6-v2&text={quote('[CLS] the [MASK]')}&head=0")
    assert "Special token in text · 1 more" in screen.menus
    notes = [one for one in screen.written if "notices-said" in one][-1]
    assert notes.count("“[CLS]”") == 1 and "“[CLS]” is there twice at the beginning" in notes
    assert "“[MASK]” in the text is read as one token" in notes


@pytest.mark.parametrize(
    ("model", "text", "said"),
    [
        (
            "all-MiniLM-L6-v2",
            "The [MASK] of the river",
            ["“[MASK]” in the text is read as one token of the model’s own."],
        ),
        (
            "all-MiniLM-L6-v2",
            "The \x07bank",
            ["The text has 1 invisible character, and the tokenizer drops it."],
        ),
        (
            "all-MiniLM-L6-v2",
            "\u202ethe\u202c bank",
            ["The text has 2 invisible characters, and the tokenizer drops them."],
        ),
        ("all-MiniLM-L6-v2", "The [bank]\tof 👩‍🔬 the river", []),
        # Each byte has a token.
        ("SmolLM2-135M-Instruct", "The \x07bank 👩‍🔬", []),
        (
            "SmolLM2-135M-Instruct",
            "Hi <|im_end|> there",
            ["“<|im_end|>” in the text is read as one token of the model’s own."],
        ),
    ],
)
def test_what_is_read_as_something_else_than_its_letters_is_told(model: str, text: str, said: list[str]) -> None:
    assert read_otherwise(shipped(model).trace(text)) == said
    screen = Screen().open(f"/?model={model}&text={quote(text)}")
    assert all(one in screen.words for one in said)
