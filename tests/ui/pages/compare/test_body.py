"""What the Compare page decides: its numbers are the library's, for every kind of comparison."""

import base64
import re
from pathlib import Path
from urllib.parse import quote, urlencode

import numpy
import pytest

import attention_viz as av
from attention_viz.analysis.comparison.compare import Comparison
from attention_viz.analysis.comparison.head_divergences import divergences
from attention_viz.serving import permissions
from attention_viz.serving.settings import Settings
from attention_viz.trace.spelling import weight_text
from tests.ui.screens import Screen

RIVER, CITY = "The bank of the river was flooded", "The bank of the city was flooded"
BANK = "model=all-MiniLM-L6-v2&text=The+bank+of+the+river+was+flooded"


@pytest.fixture(scope="module")
def screen() -> Screen:
    """One visitor, who compares one thing after the other."""
    return Screen().open("/compare")


def expect_numbers(screen: Screen, found: Comparison) -> None:
    """Every weight in the rows is the comparison's."""
    header, _ = screen.compared()
    assert header["rows"] == list(range(len(found.queries)))
    for drawn, matrix, side, axes in zip(
        screen.compared_rows(),
        (found.weights, found.other_weights),
        (found.one, found.other),
        ((found.queries.one, found.keys.one), (found.queries.other, found.keys.other)),
        strict=True,
    ):
        wanted = matrix.float().numpy().copy()
        for row, query in enumerate(axes[0]):
            for column, key in enumerate(axes[1]):
                if query is not None and key is not None and side.blocked[query, key]:
                    wanted[row, column] = numpy.inf
        assert drawn == pytest.approx(wanted, abs=1e-6, nan_ok=True)


def claim_of(screen: Screen) -> str:
    return "".join(text for text, _ in screen.channel("compare-rows")["phrase"])


def test_two_models_are_compared_and_an_address_edited_by_hand_is_answered(screen: Screen) -> None:
    address = "/compare?what=models&model=induction&text=moon+ring+moon&layer=1&head=1&other_model=lists"
    screen.back_to(f"{address}&other_layer=1&other_head=99&metric=%3Cb%3E")
    for part in ("other_head “99”", "metric “<b>”"):
        assert any(part in one for one in screen.warnings)
    assert "On the second side: lists doesn't know" in screen.words
    one, other = (av.load(name).trace("moon ring moon") for name in ("induction", "lists"))
    assert screen.address["other_head"] == "3"
    expect_numbers(screen, av.compare(one, other, 1, 1, other_layer=1, other_head=3))
    apart = divergences(one, other, head=(1, 1))
    bits = [[numpy.nan if one is None else one for one in row] for row in screen.compared()[0]["map"]["bits"]]
    assert numpy.array(bits) == pytest.approx(apart.numpy(), abs=1e-6)


def test_of_a_second_model_it_is_said_which_layers_do_not_attend(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permissions, "SETTINGS", Settings(models=(models,)))
    hybrid = str(models / "hybrid")
    alone = "ayers 0 and 2 have no softmax attention"
    parts = {"what": "models", "text": "the bank", "other_layer": 1, "other_head": 0}
    second = Screen().open(f"/compare?{urlencode({**parts, 'model': 'scratch', 'other_model': hybrid})}")
    assert f"On the second side: l{alone}; they mix tokens in another way" in second.words
    assert second.compared()[0]["sides"][1]["name"] == "hybrid: layer 1, head 0"
    # One model on both sides says it once, and is named as the folder's picker names it.
    texts = {"model": hybrid, "text": "the bank", "other": "the river", "layer": 1, "head": 0}
    both = Screen().open(f"/compare?{urlencode(texts)}")
    assert both.words.count(f"L{alone}") == 2 and "second side" not in both.words
    assert both.line["place"] == "hybrid · 1·0"


def test_two_heads_of_one_run_have_one_badge_and_the_pickers_choose_the_second(screen: Screen) -> None:
    screen.back_to(f"/compare?{BANK}&what=heads&layer=0&head=4&other_layer=0&other_head=10")
    trace = av.load("all-MiniLM-L6-v2").trace(RIVER)
    expect_numbers(screen, av.compare(trace, trace, 0, 4, other_head=10))
    assert len(re.findall(r"\[Verified", screen.words)) == 1
    screen.pick("Second layer", 5)
    assert screen.address["other_layer"] == "5"
    expect_numbers(screen, av.compare(trace, trace, 0, 4, other_layer=5, other_head=10))


def test_a_change_runs_in_the_model_and_stands_beside_the_run_without(screen: Screen) -> None:
    screen.back_to(f"/compare?{BANK}&what=edit&layer=0&head=4&edits=temp:0.5@0.4")
    model = av.load("all-MiniLM-L6-v2")
    before, after = model.trace(RIVER), model.trace(RIVER, edits=[av.Temperature(0.5, 0, 4)])
    expect_numbers(screen, av.compare(before, after, 0, 4))
    assert "Verified before change: " in screen.words
    assert screen.address["edits"] == "temp:0.5@0.4"


def test_a_change_to_begin_with_cuts_the_chosen_pair_and_goes_for_good_when_it_is_undone(screen: Screen) -> None:
    screen.back_to(f"/compare?{BANK}&what=edit&layer=0&head=4&query=2&key=5")
    model = av.load("all-MiniLM-L6-v2")
    before, after = model.trace(RIVER), model.trace(RIVER, edits=[av.Block(2, 5)])
    expect_numbers(screen, av.compare(before, after, 0, 4))
    assert screen.address["edits"] == "block:2>5"
    screen.press("Start over")
    assert screen.address["edits"] == ""
    expect_numbers(screen, av.compare(before, before, 0, 4))


def test_a_link_can_say_that_there_is_no_change(screen: Screen) -> None:
    address = "/compare?model=scratch&text=the+cat+sat&what=edit"
    for answered in (Screen().open(f"{address}&edits="), screen.back_to(f"{address}&edits=")):
        assert answered.address["edits"] == ""
        assert not [one for one in answered.all("button") if one.label == "Remove"]
    assert Screen().open(address).address["edits"].startswith("block:")


def test_a_model_without_checkpoints_is_offered_the_one_with_them(screen: Screen) -> None:
    screen.back_to("/compare?what=snapshots&model=scratch&text=a+b")
    assert "scratch has none" in screen.words
    (button,) = [one for one in screen.all("button") if one.label == "Show induction"]
    screen.press(button.label)
    assert screen.address["model"] == "induction"
    assert screen.compared()[0]["rows"]


def test_a_pair_of_pieces_is_told_as_the_pair_of_their_words_in_both_texts(screen: Screen) -> None:
    one, other = "Zoologists saw the river", "Zoologists saw the city"
    model = av.load("all-MiniLM-L6-v2")
    traces = [av.merge_words(model.trace(text)) for text in (one, other)]
    pieces = model.trace(one).query_tokens("encoder").pieces
    assert len(pieces[1]) > 1
    query, key = pieces[1][-1], pieces[4][0]
    address = f"/compare?model=all-MiniLM-L6-v2&text={one.replace(' ', '+')}&other={other.replace(' ', '+')}&words=on"
    screen.back_to(f"{address}&layer=0&head=4&query={query}&key={key}")
    first, second = (float(trace.weights(0, 4)[1, 4]) for trace in traces)
    assert claim_of(screen).startswith(f"“zoologists” looks at “river”: {first:.2f}. The word in its place, “city”, ")
    assert claim_of(screen).endswith(f"gets {second:.2f}")


def test_two_new_sentences_open_on_the_head_that_differs_most_unless_somebody_chose_one() -> None:
    text, other = "The cat sat on the mat", "The mat sat on the cat"
    model = av.load("coreference")
    farthest = av.head_divergences(model.trace(text), model.trace(other)).index[0]
    asked = "model=coreference&text=The+cat+sat+on+the+mat"
    screen = Screen().open(f"/compare?{asked}")
    assert screen.picker("Second sentence").value == other
    assert (screen.address["layer"], screen.address["head"]) == tuple(map(str, farthest))
    chosen = (str(1 - farthest[0]), "1")
    link = f"/compare?{asked}&layer={chosen[0]}&head={chosen[1]}"
    assert (Screen().open(link).address["layer"], Screen().open(link).address["head"]) == chosen
    # Nobody chose the head that another page opened the text on, so it doesn't hold here.
    walked = Screen().open(f"/?{asked}").open(f"/compare?{asked}")
    assert (walked.address["layer"], walked.address["head"]) == tuple(map(str, farthest))
    assert walked.channel("compare-rows")["largest"] is None


def test_a_models_example_opens_on_the_head_that_differs_most_and_a_chosen_one_knows_the_way_there() -> None:
    model = av.load("all-MiniLM-L6-v2")
    apart = av.head_divergences(model.trace(RIVER), model.trace("The bank of the city was flooded"))
    opened = Screen().open("/compare")
    assert (int(opened.address["layer"]), int(opened.address["head"])) == apart.index[0]
    assert opened.channel("compare-rows")["aside"].startswith("layer 5, head 2, differs most of 72: 0.14 (")
    chosen = Screen().open(f"/compare?{BANK}&layer=0&head=4").channel("compare-rows")
    rank = list(apart.index).index((0, 4)) + 1
    assert f", the {rank}th most different of 72: " in chosen["aside"] and chosen["largest"] == [5, 2]


def test_the_matrices_wait_folded_and_no_chart_of_plotly_is_on_the_first_screen(screen: Screen) -> None:
    screen.back_to(f"/compare?{BANK}")
    assert not screen.all("plotly_chart")
    assert not [one for one in screen.all("bidi_component") if one.proto.id.endswith("-compare-left")]
    (fold,) = [one for one in screen.all("expander") if one.label == "All rows"]
    assert not fold.proto.expanded


def test_the_same_sentence_twice_says_so(screen: Screen) -> None:
    screen.back_to(f"/compare?{BANK}&other={RIVER.replace(' ', '+')}")
    assert claim_of(screen) == "Both sentences are the same: type another one, or change a word."


def test_a_decoders_next_words_are_its_likeliest() -> None:
    screen = Screen().open("/compare?model=induction&text=moon+ring+moon&other=ring+moon+ring")
    model = av.load("induction")
    likely = [model.candidates(model.trace(text), count=1).iloc[0] for text in ("moon ring moon", "ring moon ring")]
    said = "".join(text for text, _ in screen.channel("compare-rows", "next")["phrase"])
    one, other = (f"{one.written} {one.probability:.2f}" for one in likely)
    assert said == f"next word: {one} → {other}"


def test_the_first_slide_is_about_the_headlines_words(screen: Screen) -> None:
    screen.back_to(f"/compare?{BANK}&other={RIVER.replace(' ', '+').replace('river', 'city')}&layer=5&head=2")
    query, *_ = re.findall("“(.+?)”", claim_of(screen))
    asked = "".join(text for text, _ in screen.slides[0]["ask"])
    assert asked.startswith(f"“{query}” looks at ")
    screen.back_to(
        f"/compare?{BANK}&other={RIVER.replace(' ', '+').replace('river', 'city')}&layer=5&head=2&query=8&key=3"
    )
    assert "".join(text for text, _ in screen.slides[0]["ask"]) != asked


def test_slides_of_layers_without_a_softmax_speak_of_shares_of_size() -> None:
    text = "anna red , ben blue . ben ?"
    row = av.load("recall").trace(text).weights(0, 1, "mixer")[7].double()
    share = weight_text(float(row[4] / row.abs().sum()))
    address = f"/compare?model=recall&stream=mixer&layer=0&head=1&query=7&key=4&text={quote(text)}"
    slide = Screen().open(f"{address}&other=anna+red+,+ben+green+.+ben+%3F").slides[0]
    told = "".join(part for part, _ in slide["ask"])
    assert f"“ben₂” receives “ben₁”, share of size {share}. And in the second sentence?" in told
    assert slide["picture"]["unit"] == "share of size"


def test_a_preview_has_every_heads_row_of_the_chosen_query(screen: Screen) -> None:
    texts = urlencode({"text": RIVER, "other": CITY})
    screen.back_to(f"/compare?model=all-MiniLM-L6-v2&{texts}&layer=0&head=4&query=2&key=6&what=sentences")
    peek = screen.channel("compare-rows", "peek")
    model = av.load("all-MiniLM-L6-v2")
    one, other = model.trace(RIVER), model.trace(CITY)
    rows = numpy.frombuffer(base64.b64decode(peek["bytes"]), "<f4").reshape(2, 72, -1)
    assert peek["query"] == 2
    for at, (layer, head) in enumerate((layer, head) for layer in range(6) for head in range(12)):
        found = av.compare(one, other, layer, head)
        for side, matrix in enumerate((found.weights, found.other_weights)):
            assert rows[side, at] == pytest.approx(matrix[2].float().numpy(), abs=1e-6, nan_ok=True)
