"""The Why page: which number it opens, and its message if it can't."""

import csv
import io
import json
from pathlib import Path

import pytest

import attention_viz as av
from attention_viz.explorer.packet import read_packet
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.serving.run import Request
from attention_viz.serving.runs import run_request
from attention_viz.serving.why import named_token, without_heads
from attention_viz.ui.pages.why import beneath
from tests.shipped import SMOLLM2, shipped
from tests.ui.screens import Screen

GIVEN = "When+Mary+and+John+went+to+the+store,+John+gave+a+drink+to"
BOTH = ("Why", "and not")
STORY = f"/why?model={SMOLLM2}&text={GIVEN}"


@pytest.fixture(autouse=True)
def in_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scroll to everything at once."""

    def seen(*_: object) -> bool:
        return True

    monkeypatch.setattr(beneath, "in_sight", seen)


def test_it_opens_on_the_next_word_against_one_of_the_text_and_on_the_head_that_wrote_most() -> None:
    screen = Screen().open(STORY)
    assert not screen.app.exception
    assert (screen.picker("Why").value, screen.picker("and not").value) == ("Mary", "John")
    assert (screen.picker("Layer").value, screen.picker("Head").value) == (23, 3)


@pytest.mark.parametrize(
    ("name", "text"), [(SMOLLM2, GIVEN), (SMOLLM2, "Paris+is+the+capital+of"), ("lists", "copy+c+a+f+:")]
)
def test_it_shows_the_number_that_a_finding_says_of_a_head(name: str, text: str) -> None:
    screen = Screen().open(f"/why?model={name}&text={text}&why=word")
    (board,) = [one.proto.bytes for one in screen.all("bidi_component") if one.proto.id.endswith("-why-board")]
    wrote = read_packet(board)[0]
    found = [one for one in av.findings(shipped(name).trace(text.replace("+", " "))) if one.effect is not None]
    assert found
    for one in found:
        assert [screen.picker(label).value for label in BOTH] == [one.word, one.rival]
        assert wrote["map"][one.layer][one.head] == pytest.approx(one.effect, abs=1e-3)


def test_explore_shows_its_finding_again_after_why_has_opened_on_another_head() -> None:
    place = f"?model={SMOLLM2}&text=The+cat+sat+on+the+mat,+and+then+the+cat+saw+the+mat+and+the"
    screen = Screen().open(f"/{place}")
    head = [screen.picker(name).value for name in ("Layer", "Head")]
    screen.open(f"/why{place}")
    assert [screen.picker(name).value for name in ("Layer", "Head")] != head
    screen.open(f"/{place}")
    assert [screen.picker(name).value for name in ("Layer", "Head")] == head
    # A head that somebody chose goes along.
    screen.picker("Head").set_value(1)
    screen.run().open(f"/why{place}").open(f"/{place}")
    assert screen.picker("Head").value == 1


def test_a_line_break_that_is_likeliest_is_asked_about_by_its_sign() -> None:
    screen = Screen().open(f"/why?model={SMOLLM2}&text=The+cat+sat+because+it+was+so+tired.")
    assert not screen.app.exception and not screen.app.info
    assert screen.picker("Why").value == "↵"


def test_a_file_that_is_in_the_way_can_be_closed_where_that_is_said(tmp_path: Path) -> None:
    av.scratch("the bank").save(tmp_path / "a.safetensors")
    screen = Screen().open("/why?text=The+cat+sat").open_trace(tmp_path / "a.safetensors")
    assert [one.value for one in screen.app.info] == [
        "This page needs to run the model, and a trace from a file has none. Close the file to continue."
    ]
    # On a phone the row is one line.
    assert screen.line["place"] == "scratch (a file) · 0·0"
    screen.app.button(key="why-close").click()
    screen.run()
    assert not screen.app.info and not screen.app.exception
    assert screen.line["place"].startswith("all-MiniLM-L6-v2 · ")
    assert screen.picker("Sentence").value == "The cat sat"


def test_without_a_head_that_writes_it_the_number_is_what_the_edited_model_says() -> None:
    request = Request(SMOLLM2, GIVEN.replace("+", " "))
    run, model = run_request(request), shipped(SMOLLM2)
    last = len(run.trace.query_tokens()) - 1
    mary, john = (model.tokenizer.encode(word)[0] for word in (" Mary", " John"))  # pyright: ignore
    of = av.Logit(mary, last, john)
    found = without_heads(run, request, of, [(23, 3), (23, 0)], None)
    for (layer, head), number in found.items():
        edited = model.trace(request.text, edits=[av.Ablate(layer, head)])
        assert number == pytest.approx(float(edited.output[last, mary] - edited.output[last, john]), abs=1e-3)
    # The first is confirmed: as much is missing as it wrote. Later layers make up for the second.
    assert 6.12 - found[23, 3] == pytest.approx(3.04, abs=0.05)
    assert abs(6.12 - found[23, 0]) <= 0.1
    score = av.Score(18, 6, 9, 4)
    edited = model.trace(request.text, edits=[av.Ablate(16, 1)])
    (there,) = without_heads(run, request, score, [(16, 1)], None).values()
    call = edited.attention(18)
    key = call.key[6 // (call.query.shape[0] // call.key.shape[0]), 4]
    assert there == pytest.approx(float(call.query[6, 9] @ key) * call.scale, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "text", "of", "stream", "heads"),
    [
        (SMOLLM2, "The quick brown fox saw the quick", av.Score(18, 6, 6, 2), None, [(0, 3), (16, 0), (17, 8), (3, 1)]),
        ("all-MiniLM-L6-v2", "the cat sat on the mat", av.Score(3, 2, 4, 1), None, [(0, 0), (1, 7), (2, 11)]),
        ("translation", "the boy finds the key", av.Score(0, 1, 2, 2, "cross"), "cross", [(0, 0), (0, 1)]),
    ],
)
def test_a_score_without_each_of_several_heads_is_what_each_edited_run_says_and_takes_one_batch(
    name: str,
    text: str,
    of: av.Score,
    stream: str | None,
    heads: list[tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request = Request(name, text)
    run = run_request(request)
    expected: list[float] = []
    for layer, head in heads:
        call = run_request(request, edits=[av.Ablate(layer, head, stream=stream)]).trace.attention(of.layer, of.stream)
        key = call.key[of.head // (call.query.shape[0] // call.key.shape[0]), of.key]
        expected.append(float(call.query[of.head, of.query] @ key) * call.scale)

    def one_by_one(*_given: object, **_named: object) -> None:
        raise AssertionError("it ran by itself")

    monkeypatch.setattr("attention_viz.serving.why.run_request", one_by_one)
    found = without_heads(run, request, of, heads, stream)
    assert list(found.values()) == pytest.approx(expected, abs=1e-3, rel=1e-4)


def test_a_word_of_several_tokens_is_refused_with_its_tokens_and_the_page_stays() -> None:
    screen = Screen().open(f"{STORY}&token=Mississippi+mud")
    assert not screen.app.exception
    assert " tokens for SmolLM2" in " ".join(screen.alerts)
    assert screen.picker("Why").value == "Mississippi mud"
    screen.pick("Why", "Mary")
    assert not screen.alerts and screen.picker("and not").value == "John"


def test_a_model_without_a_next_word_of_its_own_opens_the_score_of_the_pair() -> None:
    screen = Screen().open("/why?model=all-MiniLM-L6-v2&text=the+boy+finds+the+key&layer=1&head=0&why=word")
    assert not screen.app.exception
    assert not screen.app.error
    assert screen.picker("Written to").value == "key"


def test_of_an_encoder_decoder_a_word_that_it_says_is_opened_by_the_heads_that_look_at_the_source() -> None:
    screen = Screen().open("/why?model=translation&text=the+boy+finds+the+key&query=2&key=2")
    assert not screen.app.exception
    assert screen.address["stream"] == "cross"
    said, word = screen.picker("Generated word"), screen.picker("Why").value
    model = shipped("translation")
    trace = model.trace("the boy finds the key")
    at = said.value
    best = model.candidates(trace, at, 2).token
    assert word == best[0] and screen.picker("and not").value != word
    screen.pick("Generated word", 3)
    assert not screen.app.exception
    assert screen.picker("Why").value == model.candidates(trace, 3, 1).token[0]
    assert screen.address["query"] == "3"


def test_our_own_module_is_refused_by_name() -> None:
    screen = Screen().open("/why?model=scratch&text=the+cat+sat")
    assert not screen.app.exception
    assert any(
        "never trained" in one.value for kind in ("error", "info", "warning") for one in getattr(screen.app, kind)
    )


def test_all_heads_are_silenced_where_they_are_ordered_by_it_and_each_is_what_the_edited_model_says() -> None:
    screen = Screen().open(f"/why?model={SMOLLM2}&text=Once+upon+a&token=time&against=day&ranked=silenced")
    assert not screen.app.exception
    told, model = screen.channel("why-board", "silenced-all"), shipped(SMOLLM2)
    heads = {(layer, head): number for layer, head, number in told["silenced"]}
    assert len(heads) == 270
    time, day = (model.tokenizer.encode(word)[0] for word in (" time", " day"))  # pyright: ignore
    for layer, head in ((0, 0), (1, 5), (29, 8)):
        edited = model.trace("Once upon a", edits=[av.Ablate(layer, head)])
        assert heads[layer, head] == pytest.approx(float(edited.output[-1, time] - edited.output[-1, day]), abs=1e-3)
    # They are known now: the next who asks is told of them with the largest.
    screen.pick("Head", 2)
    assert len(screen.channel("why-board", "silenced-largest")["silenced"]) == 270


def test_a_story_opens_its_text_its_head_and_its_pair() -> None:
    screen = Screen().open("/why?model=all-MiniLM-L6-v2&text=the+cat+sat")
    screen.press("Induction head")
    assert not screen.app.exception
    assert (screen.picker("Layer").value, screen.picker("Head").value) == (1, 1)
    assert screen.address == {**screen.address, "model": "induction", "why": "pair", "query": "6", "key": "3"}
    screen.press("Mary, not John")
    assert (screen.picker("Why").value, screen.picker("and not").value) == ("Mary", "John")
    assert (screen.picker("Layer").value, screen.picker("Head").value) == (23, 3)


def test_the_head_that_is_told_of_a_score_is_the_addresss_and_is_let_go_with_the_pair() -> None:
    toy = "/why?model=induction&text=moon+cheese+frog+ring+moon+cheese&why=pair&layer=1&head=1"
    screen = Screen().open(f"{toy}&query=6&key=3&writer_layer=0&writer_head=2")
    assert not screen.app.exception
    told = screen.channel("why-board")
    assert (told["layer"], told["head"]) == (0, 2)
    screen.pick("Head", 2)
    assert "writer_layer" not in screen.address


def test_the_rows_are_taken_away_with_what_they_are_of_and_the_slide_tells_of_the_largest_head() -> None:
    screen = Screen().open(STORY)
    model = shipped(SMOLLM2)
    trace = model.trace(GIVEN.replace("+", " "))
    found = av.decompose(model, trace, av.Logit("Mary", against="John"))
    rows = list(csv.DictReader(io.StringIO(screen.download("Attribution (CSV)").decode("utf-8-sig"))))
    assert len(rows) == len(found.table)
    assert sum(float(row["contribution"]) for row in rows) == pytest.approx(found.total, abs=1e-4)
    assert {row["model"] for row in rows} == {trace.provenance.model}
    told = json.loads(screen.download("Attribution (JSON)"))
    assert told["text"] == trace.provenance.text and told["total"] == pytest.approx(found.total, abs=1e-5)
    assert told["rows"][0]["layer"] == 23 and told["rows"][0]["head"] == 3
    slide = screen.slides[0]
    assert "".join(text for text, _ in slide["ask"]).startswith("The logit difference of “Mary” over “John” is 6.12")
    assert {"Mary", "John₂"} <= {*slide["picture"]["tokens"]}, "the words that are asked about"
    assert "".join(text for text, _ in slide["tell"]).startswith("Layer 23, head 3 contributes +2.86: from “to₂” it")


def test_heads_of_another_text_are_put_into_this_one_and_each_is_what_the_library_says() -> None:
    given, other = "moon cheese frog ring moon", "moon lamp frog ring moon"
    address = f"/why?model=induction&text={given.replace(' ', '+')}&token=cheese&against=lamp&ranked=put"
    screen = Screen().open(address)
    # A changed sentence stands there from the beginning, and another one for another text.
    first = screen.picker("Patch from").value
    assert first != given and sorted(str(first).split()) == sorted(given.split())
    assert screen.channel("why-board", "put-estimated")["other"] == first
    screen.picker("Patch from").set_value(other)
    screen.run()
    model = shipped("induction")
    table = av.patch(model, given, other, av.Logit("cheese", against="lamp"))
    number = table.attrs["number"]
    for name, column in (("put-estimated", "estimate"), ("put-run", "effect")):
        told = screen.channel("why-board", name)
        assert told["other"] == other
        put = {(layer, head): after for layer, head, after in told["put"]}
        assert len(put) == len(table)
        for place, change in table[column].items():
            assert put[place] == pytest.approx(number + change, abs=1e-3)
    assert f"a run for each of {len(table)} heads" in screen.words
    rows = list(csv.DictReader(io.StringIO(screen.download("Head effects (CSV)").decode("utf-8-sig"))))
    assert len(rows) == len(table) and {(row["text"], row["other_text"]) for row in rows} == {(given, other)}
    for row in rows:
        place = int(row["layer"]), int(row["head"])
        for column in ("estimate", "effect"):
            assert float(row[column]) == pytest.approx(table[column][place], abs=1e-3)
    effects = [abs(float(row["effect"])) for row in rows]
    assert effects == sorted(effects, reverse=True) and effects[0] > effects[-1]
    assert {row["held"] for row in rows} == {table.attrs["held"]}
    slide = screen.slides[1]
    best = table["effect"].abs().idxmax()
    asked, answer = ("".join(text for text, _ in slide[name]) for name in ("ask", "tell"))
    assert f"“cheese” over “lamp” is {number:.2f}".replace("-", "−") in asked and f"from “{other}”?" in asked
    assert answer == f"Layer {best[0]}, head {best[1]}: {table['effect'][best]:+.2f}".replace("-", "−")
    picture = slide["picture"]
    assert picture["tokens"][picture["key"]] == f"layer {best[0]}, head {best[1]}"
    assert picture["values"][picture["key"]] == pytest.approx(table["effect"][best], abs=1e-3)
    assert screen.address["put_from"] == other
    # Texts of another length are aligned; a score can't be patched.
    screen.picker("Patch from").set_value("moon lamp frog")
    screen.run()
    assert "The tokens are aligned" in screen.words
    screen = Screen().open(f"{address}&put_from={other.replace(' ', '+')}&why=pair&layer=1&head=1&query=5&key=2")
    assert "Patching explains a next word, not a score" in screen.words


def test_where_no_head_can_be_put_it_is_said_and_what_was_typed_stays() -> None:
    screen = Screen().open("/why?model=translation&text=the+red+house&ranked=put&put_from=the+blue+house")
    assert not screen.app.exception
    assert screen.picker("Patch from").value == "the blue house"
    (told,) = screen.alerts
    assert "encoder–decoder translation" in told


def test_what_weights_alone_tell_of_the_chosen_head_opens_beneath_and_is_the_library_s() -> None:
    toy = "/why?model=induction&text=moon+cheese+frog+ring+moon+cheese&why=pair&layer=1&head=1&query=6&key=3"
    screen = Screen().open(toy)
    assert "open" not in screen.address and "weights only" not in screen.words
    screen.pick("Also show", "weights")
    assert screen.address["open"] == "weights"
    model = shipped("induction")
    circuits, into = av.circuits(model), av.compositions(model, into=[(1, 1)])
    told = {one.label: one.value for one in screen.app.metric}
    assert told == {
        "OV circuit, W_V·W_O": f"{circuits['ov'][1, 1]:.2f}",
        "QK circuit, W_Q·W_K": f"{circuits['qk'][1, 1]:.2f}".replace("-", "−"),
    }
    best = into.nlargest(4, "k")
    keys = screen.app.dataframe[1].value  # of query, key and value
    assert keys["head"].tolist() == best["from_head"].tolist()
    assert keys["composition"].tolist() == pytest.approx(best["k"].tolist(), abs=6e-4)
    assert f"here {into.attrs['random']:.3f}" in screen.words and into.attrs["random"] == 64**-0.5
    assert "In SmolLM2 the OV number and copying in texts have a correlation of only 0.15" in screen.words
    rows = list(csv.DictReader(io.StringIO(screen.download("Circuits (CSV)").decode("utf-8-sig"))))
    assert [float(row["ov"]) for row in rows] == pytest.approx(circuits["ov"].tolist(), abs=1e-6)
    rows = list(csv.DictReader(io.StringIO(screen.download("Compositions (CSV)").decode("utf-8-sig"))))
    assert [float(row["k"]) for row in rows] == pytest.approx(into["k"].tolist(), abs=1e-6)
    screen.pick("Layer", 0)
    assert "No head comes before this layer" in screen.words


def test_what_weights_do_not_tell_is_refused_in_words() -> None:
    screen = Screen().open("/why?model=all-MiniLM-L6-v2&text=the+cat+sat&layer=1&head=0&open=weights")
    assert not screen.app.metric and "no unembedding that is one matrix after its last layer" in screen.words
    assert "t compute compositions of" in screen.words
    assert "Weights alone don't find" not in screen.words


def test_what_each_layer_would_say_opens_beneath_as_a_picture_with_its_numbers() -> None:
    screen = Screen().open("/why?model=induction&text=moon+cheese+frog+ring+moon+cheese&why=pair")
    assert not screen.all("plotly_chart")
    screen.pick("Also show", "layers")
    model = shipped("induction")
    found = av.logit_lens(model, model.trace("moon cheese frog ring moon cheese"), count=3)
    best = found.groupby(["layer", "position"]).first()["probability"].unstack().to_numpy()
    assert screen.matrix("why-layers") == pytest.approx(best, abs=1e-5)
    # The induction head, which is in the last layer, makes the answer.
    assert "At the last position “frog” is the likeliest from layer 1 on" in screen.words
    rows = list(csv.DictReader(io.StringIO(screen.download("Table (CSV)").decode("utf-8-sig"))))
    assert [float(row["probability"]) for row in rows] == pytest.approx(found["probability"].tolist(), abs=1e-6)
    refused = Screen().open("/why?model=all-MiniLM-L6-v2&text=the+cat+sat&open=layers")
    assert "needs an unembedding" in refused.words and not refused.all("plotly_chart")


def test_of_a_sound_a_word_is_asked_about_and_its_heads_are_silenced_on_the_same_words() -> None:
    screen = Screen().open("/why?model=whisper-tiny.en&stream=cross&query=3&key=100")
    assert not screen.app.exception and not screen.alerts and "token ids" not in screen.words
    told = screen.channel("why-board", "silenced-largest")["silenced"]
    # A word of the transcript is quoted, a time isn't.
    (board,) = [one.proto.bytes for one in screen.all("bidi_component") if one.proto.id.endswith("-why-board")]
    assert read_packet(board)[0]["units"] == {"query": "word", "key": "frame"}
    model, before = shipped("whisper-tiny.en"), run_request(Request("whisper-tiny.en", shown="window")).trace
    at = screen.picker("Generated word").value
    chosen, other = (named_token(Request("whisper-tiny.en"), before, at, screen.picker(one).value) for one in BOTH)
    layer, head, number = told[0]
    sound, edits = av.Sound(SAMPLES["window"].path), [av.Ablate(layer, head, stream="cross")]
    after = model.trace(sound, target=before.provenance.target, edits=edits).output
    assert number == pytest.approx(float(after[at, chosen] - after[at, other]), abs=1e-3)


def test_a_pair_from_right_to_left_is_asked_about_with_who_looks_first() -> None:
    text = "نامت القطة المتعبة في الشارع"
    screen = Screen().open(
        f"/why?model=all-MiniLM-L6-v2&text={text.replace(' ', '+')}&why=pair&layer=0&head=4&query=4&key=2"
    )
    names = shipped("all-MiniLM-L6-v2").trace(text).query_tokens().names
    # Each set apart: else a browser would put the one that is looked at first.
    looking, seen = (f"“\u2068{names[at]}\u2069”" for at in (4, 2))
    (board,) = [one.proto.bytes for one in screen.all("bidi_component") if one.proto.id.endswith("-why-board")]
    assert read_packet(board)[0]["more"] == f"{looking} → {seen}"


@pytest.mark.parametrize("name", ["recall", "recall-mamba"])
def test_heads_without_a_softmax_are_ablated_as_the_model_says_and_their_pair_leads_to_its_steps(name: str) -> None:
    screen = Screen().open(f"/why?model={name}&stream=mixer&layer=0&head=1&query=14&key=11&why=pair")
    assert not screen.app.exception and not screen.alerts
    assert "A layer without a softmax has no scores" in screen.words
    assert screen.app.button(key="why-steps").label == "Show the pair step by step"
    model = shipped(name)
    text = str(screen.picker("Sentence").value)
    first, second = (model.tokenizer.convert_tokens_to_ids(screen.picker(one).value) for one in BOTH)  # pyright: ignore
    for layer, head, number in screen.channel("why-board", "silenced-largest")["silenced"]:
        after = model.trace(text, edits=[av.Ablate(layer, head)]).output[-1]
        assert number == pytest.approx(float(after[first] - after[second]), abs=1e-3)
    screen.pick("Also show", "weights")
    assert not screen.app.exception and "no circuits from the weights alone" in screen.words


def test_without_a_chosen_pair_it_opens_on_the_pair_that_explore_opens_on() -> None:
    text = "The bank of the river was flooded"
    screen = Screen().open(f"/why?text={text.replace(' ', '+')}")
    assert not screen.app.exception
    best = av.findings(shipped("all-MiniLM-L6-v2").trace(text))[0]
    assert (screen.picker("Layer").value, screen.picker("Head").value) == (best.layer, best.head) == (0, 4)
    (board,) = [one.proto.bytes for one in screen.all("bidi_component") if one.proto.id.endswith("-why-board")]
    assert read_packet(board)[0]["pair"] == [best.layer, best.query, best.key]
    # A chosen head stays.
    screen = Screen().open("/why?text=The+bank+of+the+river+was+flooded&layer=5&head=6")
    assert (screen.picker("Layer").value, screen.picker("Head").value) == (5, 6)


def test_a_first_layers_score_has_its_split_other_words_and_no_controls_for_heads() -> None:
    screen = Screen().open("/why?text=The+bank+of+the+river+was+flooded&layer=0&head=4&query=2&key=5")
    assert not screen.app.exception
    with pytest.raises(AssertionError, match="there is no Rank heads by"):
        screen.picker("Rank heads by")
    told, model = screen.channel("why-board", "exchanged"), shipped("all-MiniLM-L6-v2")
    words = {word: (score, weight) for word, score, weight in told["words"]}
    assert {"lake", "flooded", "city"} <= words.keys() and "river" not in words
    changed = model.trace("The bank of the city was flooded")
    score = float(changed.attention(0).query[4, 2] @ changed.attention(0).key[4, 5]) * 32**-0.5
    assert words["city"] == pytest.approx((score, float(changed.weights(0, 4)[2, 5])), abs=1e-4)
    assert [score for score, _ in words.values()] == sorted((one for one, _ in words.values()), reverse=True)
    (pair,) = screen.channel("why-board", "prepared")["prepared"]
    assert (pair["words"], pair["pair"]) == ("“bank” → “flooded”", [5, 6, 2, 7])
    # As that pair's own page says.
    opened = Screen().open("/why?text=The+bank+of+the+river+was+flooded&layer=5&head=6&query=2&key=7")
    (board,) = [one.proto.bytes for one in opened.all("bidi_component") if one.proto.id.endswith("-why-board")]
    number = read_packet(board)[0]
    assert pair["score"] == pytest.approx(number["total"], abs=1e-5)
    assert pair["wrote"] == pytest.approx(sum(map(sum, number["map"])), abs=1e-3)
    assert number["pair"] == [5, 2, 7]
