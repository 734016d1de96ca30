"""What a person should look at: what is planted is found, what means nothing isn't, and real heads are known again."""

from collections.abc import Sequence

import pytest
import torch

import attention_viz as av
from attention_viz.analysis.findings.finding import FINDING_KINDS
from attention_viz.analysis.findings.link import link_of
from attention_viz.analysis.readings import read
from attention_viz.errors import ShapeError
from attention_viz.models.model import AttentionModel
from attention_viz.trace.derived import merge_words
from tests.analysis.planted import planted, tokens_of, trace_of
from tests.shipped import shipped

CAT = "The cat sat on the mat because it was tired."
MARY = "When Mary and John went to the store, John gave a drink to"
# [CLS] the bank by the wide river was high , and steep . [SEP]
BANK = ("[CLS]", "the", "bank", "by", "the", "wide", "river", "was", "high", ",", "and", "steep", ".", "[SEP]")


def test_a_link_that_was_put_in_is_the_first_finding() -> None:
    (first, *_) = av.findings(planted(tokens_of(BANK), {(1, 2, 2, 6): 0.58}))
    assert (first.stream, first.layer, first.head, first.query, first.key) == ("encoder", 1, 2, 2, 6)
    assert first.kind == "link"
    assert first.strength == pytest.approx(0.58)
    assert first.text == "“bank” looks at “river”: 0.58"
    assert first.parts == (("“bank”", "query"), (" looks at ", ""), ("“river”", "key"), (": ", ""), ("0.58", "number"))


@pytest.mark.parametrize("key", [0, 1, 9, 12, 13], ids=["[CLS]", "the", "comma", "full stop", "[SEP]"])
def test_special_tokens_and_signs_and_words_that_say_little_are_never_looked_at(key: int) -> None:
    stronger = {(0, head, query, key): 0.95 for head in range(3) for query in (2, 5, 6, 11) if query != key}
    found = av.findings(planted(tokens_of(BANK), {**stronger, (1, 0, 6, 11): 0.4}), 20)
    assert (found[0].layer, found[0].head, found[0].query, found[0].key) == (1, 0, 6, 11)
    assert all(one.key != key for one in found if not FINDING_KINDS[one.kind].of_a_head)


def test_a_word_at_which_a_whole_head_rests_is_no_news() -> None:
    resting = {(0, 0, query, 6): 0.9 for query in range(len(BANK)) if query != 6}
    found = av.findings(planted(tokens_of(BANK), {**resting, (1, 1, 11, 2): 0.3}))
    assert [(one.layer, one.head, one.query, one.key) for one in found] == [(1, 1, 11, 2)]


def test_the_first_word_of_a_decoder_is_never_looked_at() -> None:
    words = ("Ann", "saw", "the", "cold", "river", "near", "town", "today")
    cells = {(0, head, query, 0): 0.97 for head in range(3) for query in (3, 6, 7)} | {(1, 0, 6, 3): 0.5}
    found = av.findings(planted(tokens_of(words), cells, "decoder"), 20)
    assert (found[0].query, found[0].key) == (6, 3)
    assert all(one.key != 0 for one in found)
    # Where every word sees all, the first is one like the others.
    assert av.findings(planted(tokens_of(words), {(0, 0, 6, 0): 0.9}))[0].key == 0


def test_a_neighbour_counts_less_than_a_word_far_away() -> None:
    (first, *_) = av.findings(planted(tokens_of(BANK), {(0, 0, 6, 5): 0.9, (0, 1, 6, 11): 0.6}))
    assert first.text == "“river” looks at “steep”: 0.60"


def test_a_pronoun_looks_back_at_what_it_may_stand_for() -> None:
    words = ("the", "dog", "ate", "the", "big", "bone", "as", "it", "was", "hungry")
    (first, second, *_) = av.findings(planted(tokens_of(words), {(1, 1, 7, 1): 0.6, (0, 0, 7, 9): 0.6}))
    assert (first.kind, first.text) == ("pronoun", "“it” looks back at “dog”: 0.60")
    assert (second.kind, second.text) == ("link", "“it” looks at “hungry”: 0.60")


def test_repeated_words_are_told_apart() -> None:
    words = ("so", "Ann", "met", "Bob", "here", "and", "Ann", "told", "Bob", "nothing")
    cells = {(0, 0, 6, 1): 0.8, (1, 1, 9, 3): 0.7}
    texts = {one.kind: one.text for one in av.findings(planted(tokens_of(words), cells))}
    assert texts["repeat"] == "“Ann₂” looks back at “Ann₁”: 0.80"
    assert texts["link"] == "“nothing” looks at “Bob₁”: 0.70"


def test_what_a_head_does_all_over_is_told_once_with_its_mean_and_a_row_to_see_it_in() -> None:
    count = len(BANK)
    before = {(0, 1, query, query - 1): 0.9 for query in range(1, count)}
    also = {(1, 2, query, query - 1): 0.8 for query in range(1, count)}
    found = [one for one in av.findings(planted(tokens_of(BANK), {**before, **also}), 20) if one.kind == "previous"]
    (told,) = found
    assert (told.layer, told.head) == (0, 1)
    assert told.text == "Each word looks at the one before it: 0.90 on average"
    assert told.strength == pytest.approx(0.9)
    assert told.query == told.key + 1
    assert not {BANK[told.query], BANK[told.key]} & {"[CLS]", ",", ".", "[SEP]"}


def test_heads_that_look_for_words_that_come_again_are_told_by_their_job() -> None:
    words = ("go", "moon", "ring", "cheese", "frog", "moon", "ring", "cheese", "frog")
    same = {(0, 0, query, query - 4): 0.7 for query in range(5, 9)}
    following = {(1, 1, query, query - 3): 0.8 for query in range(5, 9)}
    found = {one.kind: one for one in av.findings(planted(tokens_of(words), {**same, **following}, "decoder"), 8)}
    assert (found["induction"].layer, found["induction"].head) == (1, 1)
    assert found["induction"].text == "Repeated words look at the word that followed last time: 0.80 on average"
    assert (found["same token"].layer, found["same token"].head) == (0, 0)
    assert found["same token"].text == "Repeated words look back at their earlier occurrences: 0.70 on average"


def test_one_word_that_comes_again_is_told_by_its_name() -> None:
    words = ("go", "frog", "ring", "cheese", "frog", "moon")
    (first, *_) = av.findings(planted(tokens_of(words), {(0, 0, 4, 2): 0.9}, "decoder"))
    assert first.text == "“frog₂” looks at “ring”, which followed “frog₁”: 0.90"
    assert (first.kind, first.query, first.key) == ("induction", 4, 2)


def test_letters_that_come_again_are_no_words_that_do() -> None:
    # "mama" and "mole", letter by letter: the first letter comes again, and what followed it then is another's.
    tokens = tokens_of(("m", "##a", "##m", "##a", "m", "##o", "##l", "##m", "##a"), words=(0, 0, 0, 0, 1, 1, 1, 1, 1))
    looking = {(0, 0, 4, 1): 0.9, (0, 0, 7, 3): 0.9, (0, 0, 8, 4): 0.9, (0, 1, 4, 0): 0.9, (0, 1, 7, 2): 0.9}
    kinds = {one.kind for one in av.findings(planted(tokens, looking), 20)}
    assert not kinds & {"induction", "same token"}


def test_of_words_in_pieces_a_row_is_marked_that_counts() -> None:
    # "dursley", "owl" and later "dursley" again. Its last piece is to look at "owl"; its first does so more, uncounted.
    between = ("owl", "potter", "frog", "ring", "moon", "cheese")
    labels, words = ("go", "durs", "##ley", *between, "durs", "##ley"), (0, 1, 1, *range(2, 8), 8, 8)
    elsewhere = {(0, 0, query, key): 0.01 for query in range(3, 9) for key in (2, 3)}
    looking = {(0, 0, 9, 3): 0.95, (0, 0, 9, 2): 0.4, (0, 0, 10, 3): 0.55}
    trace = planted(tokens_of(labels, words=words), {**elsewhere, **looking}, "decoder")
    (told,) = (one for one in av.findings(trace, 20) if one.kind == "induction")
    assert (told.query, told.key) == (10, 3)
    weights = trace.attention(0).weights[0]
    assert weights[9, 3] > weights[10, 3] > weights[9, 2]
    assert told.strength == pytest.approx(float(weights[9, 2] + weights[10, 3]) / 2)
    assert told.text.startswith("“dursley₂” looks at “owl”, which followed “dursley₁”: 0.4")


def test_a_head_that_looks_at_the_word_before_is_no_induction_where_that_followed_last_time_too() -> None:
    words = ("go", "moon", "ring", "moon", "ring", "moon", "ring")
    before = {(0, 1, query, query - 1): 0.95 for query in range(1, len(words))}
    found = av.findings(planted(tokens_of(words), before, "decoder"), 20)
    assert all(one.kind != "induction" or (one.layer, one.head) != (0, 1) for one in found)
    assert "previous" in {one.kind for one in found}


def test_a_far_link_of_a_head_that_looks_one_back_ranks_below_a_fainter_one() -> None:
    before = {(0, 1, query, query - 1): 0.95 for query in range(1, len(BANK)) if query != 11}
    accident, link = {(0, 1, 11, 2): 0.95}, {(1, 2, 2, 6): 0.4}
    kinds = {one.kind: one for one in av.findings(planted(tokens_of(BANK), {**before, **accident, **link}))}
    assert (kinds["link"].layer, kinds["link"].head, kinds["link"].query) == (1, 2, 2)
    assert (kinds["previous"].layer, kinds["previous"].head) == (0, 1)
    # The same link in a head without a job is the first finding.
    (first, *_) = av.findings(planted(tokens_of(BANK), {**accident, **link}))
    assert (first.layer, first.head, first.query, first.key) == (0, 1, 11, 2)


# Two texts of 30 and 300 tokens: one about pillars, which come again and again.
HALL = (
    "The old town hall stands on twelve stone pillars, and every visitor who walks between the pillars notices how worn"
    " they are. "
)
LONG = HALL + (
    "It was built by a merchant who feared floods, so it rests above the square like a table. When the river rose in "
    "spring, the water ran between the pillars and the market moved upstairs. The merchant's daughter wrote that it "
    "smelled of wet wool and bread. Later a fire burned the roof, and it was rebuilt with slate from the north. The "
    "pillars turned black, and the children said that a dragon had slept there. A mason who knew the stone explained "
    "that it holds iron, which darkens in heat. The council asked whether the pillars could be cleaned, and the mason "
    "answered that it would take two summers. So the pillars stayed as they were, and the town grew proud of them. "
    "Today a painter sits under the arches and sells small pictures of the hall. She says that the light is best in "
    "the evening, when it falls along the pillars and the stone looks warm. Tourists ask about the dragon, and she "
    "tells them about the fire instead, because it is true and because it is the better story. In winter the square is "
    "empty, but the bell still rings, and it can be heard beyond the river."
)


@pytest.mark.parametrize("text", [HALL, LONG, CAT, MARY], ids=["30 tokens", "250 tokens", "cat", "Mary"])
@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "SmolLM2-135M-Instruct"])
def test_no_link_comes_from_a_head_whose_job_is_another(name: str, text: str) -> None:
    trace = shipped(name).trace(text)
    table = av.head_table(trace)
    for one in av.findings(trace, 5):
        if not FINDING_KINDS[one.kind].of_a_head:
            assert table.loc[(one.layer, one.head), "previous"] < 0.6, one.text


def test_a_look_that_all_rows_share_is_no_induction() -> None:
    words = ("go", "frog", "ring", "moon", "frog", "cheese", "moon", "house")
    everywhere = {(0, 0, query, 2): 0.9 for query in range(3, len(words))}
    found = av.findings(planted(tokens_of(words), everywhere, "decoder"), 20)
    assert all((one.layer, one.head) != (0, 0) for one in found)


def test_the_next_word_is_named_where_the_trace_alone_can_say_it() -> None:
    words = ("go", "Mary", "met", "John", "near", "home", "gave", "milk", "to")
    cells = {(1, 0, 8, 1): 0.7, (0, 1, 8, 3): 0.6}
    tokens = tokens_of(words)
    logits = torch.zeros(len(words), 40)
    logits[-1, tokens.ids[1]] = 9
    said, other = (one for one in av.findings(planted(tokens, cells, "decoder", output=logits)) if "next" in one.kind)
    assert said.text == "The last word looks at “Mary”, also the likeliest next word (looking isn't writing): 0.70"
    # SmolLM2's head 24·4 looks at "Mary" so, and lowers its logit by 1.07.
    assert said.parts[-3:-1] == (("the likeliest next word", "next"), (" (looking isn't writing): ", ""))
    assert other.text == "Before predicting “Mary”, the last word looks at “John”: 0.60"
    assert [role for _, role in other.parts] == ["", "next", "", "query", "", "key", "", "number"]
    # A token that isn't in the text has no name here, and a hidden state tells no word at all.
    logits[-1, 30] = 10
    for output in (logits, torch.zeros(len(words), 3)):
        (first, *_) = av.findings(planted(tokens, cells, "decoder", output=output))
        assert first.text == "The last word looks at “Mary”: 0.70"


def test_different_kinds_come_before_the_same_kind_twice_and_no_head_or_pair_twice() -> None:
    found = av.findings(shipped("all-MiniLM-L6-v2").trace(CAT), 8)
    kinds = [one.kind for one in found]
    first_time = {kind: kinds.index(kind) for kind in kinds}
    assert sorted(first_time.values()) == list(range(len(first_time)))
    for count in range(1, 8):
        assert av.findings(shipped("all-MiniLM-L6-v2").trace(CAT), count) == found[:count]
    texts = [one.text.rpartition(":")[0] for one in found]
    assert len(set(texts)) == len(texts)


def test_a_number_is_the_weight_at_query_and_key(smollm2: AttentionModel) -> None:
    for trace in (shipped("all-MiniLM-L6-v2").trace(CAT), smollm2.trace(MARY)):
        for one in av.findings(trace, 9):
            if not FINDING_KINDS[one.kind].of_a_head or ", which followed “" in one.text:
                weight = float(trace.weights(one.layer, one.head, one.stream)[one.query, one.key])
                assert one.strength == pytest.approx(weight, abs=1e-6)
            assert one.text.count(f"{one.strength:.2f}") == 1


def test_words_of_several_pieces_are_named_whole_with_the_number_of_find_heads() -> None:
    trace = shipped("all-MiniLM-L6-v2").trace("Tokenization, an unbelievably long word, and tokenization again")
    found = next(one for one in av.findings(trace) if one.kind == "repeat")
    assert found.text.startswith("“tokenization₂” looks back at “tokenization₁”")
    labels = trace.query_tokens().labels
    assert labels[found.query] in ("token", "##ization") and labels[found.key] in ("token", "##ization")
    merged = merge_words(trace)
    words = [at for at, label in enumerate(merged.query_tokens().labels) if label == "tokenization"]
    weight = float(merged.weights(found.layer, found.head)[words[1], words[0]])
    assert found.strength == pytest.approx(weight, abs=1e-6)
    assert any(one.text == found.text for one in av.findings(merged))


@pytest.mark.parametrize(
    ("text", "noun"),
    [
        (CAT, "cat"),
        ("The boy lost his key and he looked for it.", "key"),
        ("The cat sat because it was tired.", "cat"),
    ],
)
def test_the_real_encoder_finds_the_noun_of_its_pronoun(text: str, noun: str) -> None:
    trace = shipped("all-MiniLM-L6-v2").trace(text)
    (first, *_) = av.findings(trace)
    labels = trace.query_tokens().labels
    assert (labels[first.query], labels[first.key], first.kind) == ("it", noun, "pronoun")


def test_the_bank_of_the_river_opens_on_the_river() -> None:
    (first, *_) = av.findings(shipped("all-MiniLM-L6-v2").trace("The bank of the river was flooded"))
    assert first.text == "“bank” looks at “river”: 0.58"
    assert (first.layer, first.head) == (0, 4)


def test_the_heads_of_the_toys_are_found() -> None:
    found = {one.kind: one for one in av.findings(shipped("induction").trace("moon cheese frog ring moon cheese"))}
    assert (found["induction"].layer, found["induction"].head) == (1, 1)
    assert (found["previous"].layer, found["previous"].head) == (0, 0)
    for end, noun in (("tired", "animal"), ("wide", "street")):
        text = f"the animal did not cross the street because it was too {end}"
        (first, *_) = av.findings(shipped("coreference").trace(text))
        assert (first.layer, first.head, first.text) == (1, 2, f"“it” looks back at “{noun}”: 1.00")


def test_cross_attention_is_told_by_the_words_it_aligns() -> None:
    found = av.findings(shipped("translation").trace("the boy finds the key and he sells it"))
    told = {one.text for one in found if one.kind == "alignment"}
    assert found[0].text.startswith("Before “vend” it attends to “sells”: 0.9")
    assert "Before “clé” it attends to “key”: 1.00" in told
    assert {one.stream for one in found if one.kind == "alignment"} == {"cross"}


def test_every_kind_of_trace_has_findings_or_none() -> None:
    toy, minilm = shipped("induction"), shipped("all-MiniLM-L6-v2")
    for text in ("Hello", ". , !", "\U0001f389"):
        assert av.findings(minilm.trace(text)) == ()
    assert av.findings(toy.trace("moon")) == ()
    kept = minilm.trace(CAT, layers=[3])
    assert {one.layer for one in av.findings(kept)} == {3}
    assert av.findings(kept)[0].text == "“it” looks back at “cat”: 0.49"
    without_names = av.wrap(minilm.hf_model).trace_ids(torch.tensor([minilm.trace(CAT).query_tokens().ids]))
    assert {one.query for one in av.findings(without_names)} <= set(range(13))
    assert av.findings(without_names)[0].text.startswith("“")
    edited = minilm.trace(CAT, edits=[av.Ablate(3, 1)])
    assert all(one.strength <= 1 for one in av.findings(edited))
    assert av.findings(av.scratch("the cat sat on the mat"))


def test_a_reading_is_named() -> None:
    trace = shipped("all-MiniLM-L6-v2").trace(CAT)
    assert av.findings(read("gradient", trace))[0].text.startswith("By gradients, “")


def test_words_from_right_to_left_are_set_apart() -> None:
    words = ("ראה", "הכלב", "את", "החתול", "הקטן")
    (first, *_) = av.findings(planted(tokens_of(words), {(0, 0, 4, 1): 0.8}))
    assert first.text == "“\u2068הקטן\u2069” looks at “\u2068הכלב\u2069”: 0.80"


def test_pieces_of_a_script_without_spaces_are_words_of_their_own() -> None:
    labels = ("猫", "坐在", "垫子", "上", "因为", "它")
    tokens = tokens_of(labels, words=(0,) * len(labels), sentence=(0,) * len(labels))
    (first, *_) = av.findings(planted(tokens, {(0, 0, 5, 0): 0.8}))
    assert first.text == "“它” looks at “猫”: 0.80"
    # Elsewhere the pieces of a word are one.
    tokens = tokens_of(("un", "like", "ly", "river"), words=(0, 0, 0, 1), sentence=(0,) * 4)
    assert av.findings(planted(tokens, {(0, 0, 3, 1): 0.9})) == ()


def test_half_a_character_is_no_next_word() -> None:
    tokens = tokens_of(("go", "ðŁ", "here", "party", "now"), spelling=("byte-level",) * 5)
    logits = torch.zeros(5, 40)
    logits[-1, tokens.ids[1]] = 9
    (first, *_) = av.findings(planted(tokens, {(0, 0, 4, 2): 0.9, (1, 0, 4, 3): 0.9}, "decoder", output=logits))
    assert first.text.startswith("The last word looks at “")


def test_padding_is_never_told_of() -> None:
    tokens = tokens_of(("cold", "river", "near", "town", "stream", "today")).padded_after(4)
    found = av.findings(planted(tokens, {(0, 0, 1, 5): 0.9, (0, 1, 5, 1): 0.9, (1, 0, 3, 0): 0.4}))
    assert [(one.query, one.key) for one in found] == [(3, 0)]


def test_numbers_that_are_none_win_nothing() -> None:
    trace = planted(tokens_of(BANK), {(1, 2, 2, 6): 0.58})
    broken = trace.layers["encoder"][0].attention
    assert broken.bias is not None
    broken.bias[0, 3] = torch.nan
    assert av.findings(trace)[0].text == "“bank” looks at “river”: 0.58"


def test_a_long_text_is_looked_through_by_a_sample_of_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    words = (*("filler", "word", "stone", "cloud") * 20, "bank", "x", "y", "river")
    cells = {(1, 1, query, 80): 0.8 for query in range(len(words))}
    trace = planted(tokens_of(words), {(1, 1, 83, 80): 0.8})
    assert av.findings(trace)[0].text == "“river” looks at “bank”: 0.80"
    monkeypatch.setattr("attention_viz.analysis.findings.scene.MOST_WEIGHTS", 6 * len(words) * 84 // 2)
    trace = planted(tokens_of(words), cells)
    asked, rows = list[int](), av.Attention.rows

    def counted(call: av.Attention, some: Sequence[int]) -> av.Attention:
        asked.append(len(some))
        return rows(call, some)

    monkeypatch.setattr(av.Attention, "rows", counted)
    some = av.findings(trace)
    assert asked == [42, 42]
    assert some == av.findings(trace)


def test_other_counts_than_whole_ones_from_1_on_are_refused() -> None:
    trace = planted(tokens_of(BANK), {})
    for count in (0, -1, 1.5, True, "5"):
        with pytest.raises(ShapeError, match=f"whole number of findings, 1 or more; got {count!r}"):
            av.findings(trace, count)  # type: ignore[arg-type]


def test_a_head_of_a_text_of_one_word_is_told_by_that_word_and_not_by_what_the_tokenizer_added() -> None:
    trace = planted(tokens_of(["[CLS]", "cat", "[SEP]"]), {(0, 1, 0, 0): 0.9, (0, 1, 1, 2): 0.8})
    assert link_of(trace, "encoder", 0, 1, av.findings(trace)) == (1, 1)
    assert link_of(planted(tokens_of(["[CLS]", "[SEP]"]), {}), "encoder", 0, 0) == (0, 1)


@pytest.mark.parametrize("stream", ["encoder", "decoder"])
def test_the_pair_of_a_head_of_a_long_text_is_that_of_its_whole_matrix(
    stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["[CLS]", *(f"word{number}" for number in range(600)), ",", "[SEP]"]
    generator = torch.Generator().manual_seed(5)
    for scale in (0.0, 1.0, 6.0):  # 0: all weights of a row are alike, so many blocks hold the largest
        scores = scale * torch.randn(1, 2, len(words), len(words), generator=generator)
        weights = scores.softmax(dim=-1)
        weights[:, 1, 300] = torch.nan  # of the second head, a row that holds no numbers
        trace = trace_of(weights, tokens_of(words), stream)
        pairs = [link_of(trace, stream, 0, head) for head in range(2)]
        with monkeypatch.context() as patch:
            patch.setattr("attention_viz.analysis.findings.link.MANY_WEIGHTS", 1000)
            assert [link_of(trace, stream, 0, head) for head in range(2)] == pairs
