"""Slides: what they ask and answer, which words they show, and that their numbers are the run's."""

from dataclasses import replace
from typing import Literal

import pytest
import torch

import attention_viz as av
from attention_viz.analysis.comparison.compare import compare
from attention_viz.analysis.findings.finding import Finding
from attention_viz.analysis.places import patch_words, without_patches
from attention_viz.analysis.slides import (
    PutIn,
    Slide,
    changed_slides,
    compared_slides,
    found_slides,
    put_slides,
    role_slides,
    written_slides,
)
from attention_viz.analysis.slides.found import link_slide
from attention_viz.analysis.slides.heads import Wrote
from attention_viz.analysis.slides.slide import named, picture_of
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.trace.trace import Trace
from tests.analysis.planted import tokens_of
from tests.shipped import shipped

LONG = " ".join(f"word{number} and" for number in range(60))


def said(parts: tuple[tuple[str, str], ...]) -> str:
    return "".join(text for text, _ in parts)


def shown(trace: Trace, one: Slide) -> list[str]:
    assert one.picture is not None
    return list(one.picture.tokens)


@pytest.fixture(scope="module")
def trace() -> Trace:
    return av.scratch("the cat sat since it was tired", seed=3)


def test_a_head_that_writes_most_against_a_number_is_not_said_to_write_most_of_it(trace: Trace) -> None:
    wrote = Wrote("encoder", 0, 1, 3, 2.25, 3.57, "“it” over “she”")
    (of,) = written_slides(trace, wrote)
    assert said(of.ask) == "“it” over “she” is 3.57: which head contributes most to it, and where does it look?"
    assert said(of.tell).startswith("Layer 0, head 1 contributes +2.25: from “")
    (against,) = written_slides(trace, replace(wrote, contribution=-2.79))
    assert "which head contributes most, for it or against it, and where" in said(against.ask)
    assert said(against.tell).startswith("Layer 0, head 1 contributes −2.79, against it: from “")


def test_a_findings_slide_asks_without_the_answer_and_then_gives_it_with_the_runs_numbers() -> None:
    trace = shipped("coreference").trace("the girl saw the ball and she took it")
    found = av.findings(trace)
    slides = found_slides(trace, found)
    assert len(slides) == len(found) > 1
    for slide, one in zip(slides, found, strict=True):
        assert slide.tell == one.parts
        assert said(slide.ask).endswith("?")
        assert not any(role in ("key", "number") for _, role in slide.ask)
        picture = slide.picture
        assert picture is not None and picture.key is not None
        row = trace.weights(one.layer, one.head, one.stream)[one.query]
        assert picture.values[picture.key] == pytest.approx(float(row[one.key]), abs=1e-6)
        assert slide.source.startswith(f"coreference · layer {one.layer}, head {one.head}")
    asked = [said(slide.ask) for slide in slides]
    assert len(asked) == len(set(asked)), "the same question is told apart by its head"
    last = found[-1]
    place = (last.stream, last.layer, last.head, last.query, last.key)
    chosen = found_slides(trace, found, place)
    assert chosen[0].tell == last.parts and len(chosen) == len(found)


def test_a_sentence_about_every_word_says_which_row_is_shown() -> None:
    run = shipped("all-MiniLM-L6-v2").trace("The cat sat on the mat because it was tired")
    one = next(one for one in av.findings(run, 9) if one.kind == "previous")
    (slide,) = found_slides(run, [one])
    assert slide.picture is not None and slide.picture.query is not None
    assert slide.tell[:-1] == one.parts
    assert slide.tell[-1] == (f"shown: the row of “{slide.picture.tokens[slide.picture.query]}”", "small")


def test_of_words_in_pieces_a_finding_is_shown_between_words_and_a_link_between_pieces(
    minilm: av.AttentionModel,
) -> None:
    trace = minilm.trace("Tokenization, an unbelievably long word, and tokenization again")
    merged, pieces = av.merge_words(trace), trace.query_tokens().names
    found = next(one for one in av.findings(trace) if one.kind == "repeat")
    (slide,) = found_slides(trace, (found,))
    picture = slide.picture
    assert picture is not None and picture.query is not None and picture.key is not None
    assert (picture.tokens[picture.query], picture.tokens[picture.key]) == ("tokenization₂", "tokenization₁")
    assert picture.values[picture.key] == pytest.approx(found.strength, abs=1e-6)
    words = merged.query_tokens().names
    row = merged.weights(found.layer, found.head)[words.index("tokenization₂")]
    # Whatever stands in the text once, in the picture in its place.
    once = [word for word in picture.tokens if words.count(word) == 1 and "tokenization" not in word]
    assert len(once) >= 3
    shares = [picture.values[picture.tokens.index(word)] for word in once]
    assert shares == pytest.approx([float(row[words.index(word)]) for word in once], abs=1e-6)
    # Of two pieces of one word: which looks at which.
    piece = pieces.index("token₁")
    tell = said(link_slide(trace, "encoder", 0, 0, piece, piece + 1).tell)
    assert tell.startswith(f"“token₁” looks at “{pieces[piece + 1]}”: ")


def test_repeated_words_have_their_numbers_and_long_ones_keep_them() -> None:
    tokens = av.scratch("the cat saw the unbelievabilityless unbelievabilityless").query_tokens()
    picture = picture_of("line", tokens, torch.arange(6.0), 1, 3)
    assert picture.tokens[:4] == ("the₁", "cat", "saw", "the₂")
    assert [one[-2:] for one in picture.tokens[4:]] == ["…₁", "…₂"]
    assert all(len(one) <= 16 for one in picture.tokens)


def test_a_row_of_another_text_is_told_by_the_word_that_comes_next() -> None:
    trace = shipped("translation").trace("the tired girl finds the red key")
    weight = trace.weights(0, 2, "cross")[0, 0]
    slide = link_slide(trace, "cross", 0, 2, 0, 0)
    assert said(slide.ask) == "Before “la₁”, how much does the model attend to “the₁”?"
    assert said(slide.tell) == f"Before “la₁” it attends to “the₁”: {weight:.2f}"


def test_a_question_that_comes_again_says_of_which_head() -> None:
    trace = shipped("coreference").trace("the ball hit the window and it broke")
    first = next(one for one in av.findings(trace) if said(found_slides(trace, [one])[0].ask).startswith("Which word"))
    again = replace(first, head=(first.head + 1) % 4)
    one, other = found_slides(trace, [first, again])
    assert said(other.ask) == f"And head {again.head} of layer {again.layer}: w{said(one.ask)[1:]}"


def test_a_link_that_is_no_finding_comes_first_and_is_told_whatever_it_weighs(trace: Trace) -> None:
    (slide,) = found_slides(trace, (), ("encoder", 0, 1, 1, 6))
    weight = float(trace.weights(0, 1)[1, 6])
    assert said(slide.ask) == "How much does “cat” look at “tired”?"
    assert said(slide.tell) == f"“cat” looks at “tired”: {weight:.2f}"
    assert slide.picture is not None
    assert slide.picture.values == pytest.approx(trace.weights(0, 1)[1].tolist(), abs=1e-6)
    assert not slide.picture.cuts


def test_of_a_long_text_the_words_around_the_link_are_shown_and_where_some_are_left_out() -> None:
    trace = av.scratch(LONG)
    (slide,) = found_slides(trace, (), ("encoder", 0, 0, 40, 100))
    picture = slide.picture
    assert picture is not None and picture.query is not None and picture.key is not None
    labels = trace.query_tokens().written
    assert picture.tokens[picture.query] == labels[40] and picture.tokens[picture.key] == labels[100]
    assert len(picture.tokens) < 20
    assert picture.cuts[0] == 0 and picture.cuts[-1] == len(picture.tokens) and len(picture.cuts) == 3
    assert "“word0 and word1" in slide.source and slide.source.endswith("…”")


def test_the_word_that_a_sentence_says_is_written_is_on_the_line_however_far() -> None:
    trace = av.scratch(LONG)
    (link,) = found_slides(trace, (Finding("next word", "encoder", 0, 0, 100, 96, 0.5, (("“and”", "query"),)),))
    said = (("“and”", "query"), (" looks at ", ""), ("“word48”", "key"))
    one = Finding("next word", "encoder", 0, 0, 100, 96, 0.5, said, 1.0, "word3", "word5")
    (slide,) = found_slides(trace, (one,))
    assert link.picture is not None and slide.picture is not None
    assert "word3" in slide.picture.tokens and "word3" not in link.picture.tokens
    assert {"word48", "word50"} <= set(slide.picture.tokens)


def test_a_lone_word_has_one_slide_that_says_so() -> None:
    trace = av.scratch("cat")
    (slide,) = found_slides(trace, av.findings(trace), ("encoder", 0, 0, 0, 0))
    assert said(slide.ask) == "Where can “cat” look, alone?"
    assert said(slide.tell) == "“cat” looks at itself: 1.00"


def test_a_mask_is_told_by_the_row_before_and_after_it() -> None:
    model = shipped("coreference")
    text = "the ball hit the window and it broke"
    before = model.trace(text)
    stream = before.streams[0]
    count = len(before.query_tokens())
    query, key = count - 2, 1
    allowed = torch.ones(count, count, dtype=torch.bool).tril()
    allowed[:, key] = False
    after = model.trace(text, edits=[av.Allow(allowed)])
    (blocked,) = changed_slides(before, after, stream, 0, 0, query, key)
    assert "can no longer look at" in said(blocked.tell)
    assert said(blocked.ask).endswith(" And now?")
    picture = blocked.picture
    assert picture is not None and picture.key is not None
    assert picture.values[picture.key] is None
    assert picture.before[picture.key] == pytest.approx(float(before.weights(0, 0)[query, key]), abs=1e-6)
    (other,) = changed_slides(before, after, stream, 0, 0, query, 2, change="Nobody looks ahead.")
    assert other.ask[-1] == ("Nobody looks ahead.", "small")
    assert "now looks at" in said(other.tell)
    assert said(other.tell).endswith(f": {float(after.weights(0, 0)[query, 2]):.2f}")


def test_what_may_not_be_looked_at_has_no_number_on_a_slide_so_that_no_link_has_run_to_it() -> None:
    trace = shipped("induction").trace("moon cheese frog ring moon cheese")
    slide = link_slide(trace, "decoder", 1, 0, 3, 1)
    assert slide.picture is not None and slide.picture.query == 3
    assert [value is None for value in slide.picture.values] == [
        place > 3 for place in range(len(trace.query_tokens()))
    ]


def test_two_heads_are_told_by_their_largest_difference(trace: Trace) -> None:
    comparison = compare(trace, trace, 0, 0, other_head=1)
    (slide,) = compared_slides(comparison)
    apart = (trace.weights(0, 1) - trace.weights(0, 0)).abs()
    query, key = divmod(int(apart.argmax()), apart.shape[1])
    first, second = (f"{float(trace.weights(0, head)[query, key]):.2f}" for head in (0, 1))
    numbers = [[text for text, role in parts if role == "number"] for parts in (slide.ask, slide.tell)]
    assert numbers == [[first], [second]]
    assert slide.source.startswith("scratch · layer 0, head 0 → layer 0, head 1 · “the cat")
    assert said(slide.ask).endswith(". And in the second?") and said(slide.tell).startswith("In the second, ")


def test_two_texts_are_compared_with_the_second_one_on_the_slide(trace: Trace) -> None:
    other = av.scratch("the dog sat since it was tired", seed=3)
    (slide,) = compared_slides(compare(trace, other, 0, 0))
    assert slide.ask[-1] == ("“the dog sat since it was tired”", "small")
    (same,) = compared_slides(compare(trace, trace, 0, 0, other_head=1))
    assert all(role != "small" for _, role in same.ask)


def test_the_chosen_pair_of_two_heads_comes_first_and_the_second_side_by_its_name(trace: Trace) -> None:
    comparison = compare(trace, trace, 0, 0, other_head=1)
    first, largest = compared_slides(comparison, (2, 1), called="in layer 0, head 1")
    assert largest == compared_slides(comparison, called="in layer 0, head 1")[0]
    weight = f"{float(trace.weights(0, 1)[2, 1]):.2f}"
    assert said(first.tell) == f"In layer 0, head 1, “sat” looks at “cat”: {weight}"
    assert said(first.ask).endswith(". And in layer 0, head 1?")


def test_two_texts_are_told_by_words_and_both_named(minilm: av.AttentionModel) -> None:
    one, other = (minilm.trace(f"The bank of the {place} was flooded") for place in ("river", "city"))
    special = 0
    for layer, head in [(layer, head) for layer in range(6) for head in range(12)]:
        found = compare(one, other, layer, head)
        (slide,) = compared_slides(found)
        shared = found.queries.both[1:-1]
        apart = found.difference[:, found.keys.both].abs().nan_to_num()
        special += int(apart.argmax()) % apart.shape[1] in (0, apart.shape[1] - 1)
        words = found.difference[shared, :][:, shared].abs()
        query, key = (found.queries.other_labels[shared[at]] for at in divmod(int(words.argmax()), len(shared)))
        assert [text.strip("“”₁₂₃") for text, role in slide.tell if role in ("query", "key")] == [query, key]
        asked = [text.strip("“”₁₂₃") for text, role in slide.ask if role in ("query", "key")]
        assert asked == [one.replace("city", "river") for one in (query, key)]
        for text in ("“The bank of the river was flooded” →", "“The bank of the city was flooded”"):
            assert text in slide.source
    assert special > 10, "heads that differ most in what they give to [CLS] or [SEP]"


def test_while_the_first_of_two_texts_is_asked_about_its_own_words_stand_beside_the_bars() -> None:
    traces = (av.scratch("the cat was big"), av.scratch("the cat was small"))
    key = 3
    (slide, *_) = compared_slides(compare(*traces, 0, 0), (2, key))
    picture = slide.picture
    assert picture is not None and picture.key == key
    assert (picture.asked[key], picture.tokens[key]) == ("big", "small")
    assert picture.asked[:key] == picture.tokens[:key]
    assert said(slide.ask).count("big") == 1 and said(slide.tell).count("small") == 1


@pytest.mark.parametrize("align", ["position", "token"])
def test_words_that_only_one_text_has_move_none_of_the_bars_words(align: Literal["position", "token"]) -> None:
    traces = (av.scratch("so the old cat was very big"), av.scratch("the cat was big then and tired"))
    (slide, *_) = compared_slides(compare(*traces, 0, 0, align=align))
    picture = slide.picture
    assert picture is not None and len(picture.asked) == len(picture.tokens)
    pairs = dict(zip(picture.tokens, picture.asked, strict=True))
    assert {"the": "the", "cat": "cat", "was": "was", "big": "big"}.items() <= pairs.items()
    assert [pairs[word] for word in ("then", "and", "tired")] == ["then", "and", "tired"]


def test_heads_without_a_word_in_common_have_no_slide() -> None:
    assert compared_slides(compare(av.scratch("a b"), av.scratch("c d"), 0, 0, align="token")) == ()


def test_a_role_has_a_slide_where_a_head_has_it_with_the_head_that_has_it_most() -> None:
    trace = shipped("induction").trace("moon cheese frog ring moon cheese frog")
    jobs = av.roles(trace)
    slides = role_slides(trace, jobs)
    had = {name for name in jobs["role"] if name != "mixed"}
    assert len(slides) == len(had)
    (induction,) = [one for one in slides if "followed a word last time" in said(one.ask)]
    scores = jobs.loc[jobs["role"] == "induction", "score"]
    layer, head = scores.idxmax()
    assert said(induction.tell).startswith(f"Layer {layer}, head {head}: {scores.max():.2f}. ")
    picture = induction.picture
    assert picture is not None and picture.key is not None
    assert picture.tokens[picture.key] == f"layer {layer}, head {head}"
    assert picture.values[picture.key] == pytest.approx(scores.max(), abs=1e-6)
    assert not any(role == "number" for _, role in induction.ask)
    assert picture.cuts == ()
    assert role_slides(av.scratch("cat"), av.roles(av.scratch("cat"))) == ()
    # Of more heads than are named some are left out, which is seen.
    trace = shipped("all-MiniLM-L6-v2").trace("The bank of the river was flooded")
    resting = next(one for one in role_slides(trace, av.roles(trace)) if "attention sink" in said(one.ask))
    assert resting.picture is not None and resting.picture.cuts == (5,) and len(resting.picture.tokens) == 5


def test_the_head_of_another_text_that_changes_a_number_most_is_asked_for_among_five(trace: Trace) -> None:
    changes = {(layer, head): (-1) ** head * (layer + head / 10) for layer in range(3) for head in range(4)}
    put = PutIn("“a” over “b”", -0.5, " ".join(["long"] * 40), changes, run=False)
    (slide,) = put_slides(trace, put)
    assert said(slide.ask).startswith("“a” over “b” is −0.50. Which head changes it most with its output from “long")
    assert said(slide.ask).endswith("…”?") and "2.3" not in said(slide.ask)
    assert said(slide.tell) == "Layer 2, head 3: −2.30, estimated by a gradient"
    # In the model's order, with their signs.
    assert slide.picture is not None and slide.picture.key == 4
    assert shown(trace, slide) == ["layer 1, head 3", *(f"layer 2, head {head}" for head in range(4))]
    assert slide.picture.values == pytest.approx([-1.3, 2, -2.1, 2.2, -2.3])
    assert "estimates of 12 heads" in slide.source
    assert put_slides(trace, replace(put, changes={})) == ()
    (ran,) = put_slides(trace, replace(put, run=True))
    assert said(ran.tell) == "Layer 2, head 3: −2.30" and "total effects" in ran.source


def test_equal_words_and_pieces_are_counted_in_any_case_as_on_the_page() -> None:
    tokens = tokens_of(("The", "cat", "the", "THE", "##a", "the"), words=(0, 1, 2, 3, 3, 4))
    assert named(tokens, 2, "query") == (("“the₂”", "query"),)
    # A piece and a word of one piece are counted among all tokens.
    assert named(tokens, 3, "key") == (("“THE₃”", "key"),)
    assert named(tokens, 5, "key") == (("“the₄”", "key"),)


def test_a_patch_beside_words_is_named_by_where_it_is_and_its_row_summed() -> None:
    trace = shipped("shapes").trace("what colour is the circle ?", picture=av.Picture(SAMPLES["shapes-two"].path))
    one = link_slide(trace, "decoder", 1, 0, 70, 1)
    assert said(one.ask) == "How much does “?” look at a patch at the upper left?"
    row = trace.weights(1, 0, "decoder")[70]
    assert said(one.tell) == f"“?” looks at a patch at the upper left: {float(row[1]):.2f}"
    assert one.picture is not None and one.shown is not None
    assert one.picture.tokens == ("the patch at the upper left", "other patches", "other words")
    wanted = [float(row[1]), float(row[2:65].sum()), float(row[0] + row[65:].sum())]
    assert one.picture.values == pytest.approx(wanted, abs=1e-5)
    # It is framed in the image, whose weights are the row's.
    assert one.shown.key == 0 and one.shown.weights[2] == pytest.approx(float(row[3]), abs=1e-4)
    words = link_slide(trace, "decoder", 1, 1, 70, 69)
    assert words.picture is not None and words.picture.tokens[:2] == ("circle", "patches")


def test_bars_leave_room_for_the_signs_between_them() -> None:
    """Nine bars with a sign between most would lie over each other."""
    tokens = av.scratch(" ".join(f"word{at}" for at in range(30))).key_tokens()
    values = torch.full((30,), 0.001)
    values[torch.arange(0, 27, 3)] = torch.linspace(0.02, 0.3, 9)
    picture = picture_of("bars", tokens, values, None, 12)
    assert len(picture.tokens) + len(picture.cuts) <= 11 and picture.tokens[picture.key or 0] == "word12"
    kept = [int(token.removeprefix("word")) for token in picture.tokens]
    left_out = [float(values[at]) for at in range(30) if at not in kept]
    assert min(float(values[at]) for at in kept if at != 12) >= max(left_out) and len(kept) >= 4


def test_a_number_beside_an_image_shows_where_in_it_the_head_attends() -> None:
    trace = shipped("shapes").trace("what colour is the circle ?", picture=av.Picture(SAMPLES["shapes-two"].path))
    (one,) = written_slides(trace, Wrote("decoder", 2, 3, 70, 3.5, 14.7, "“red” over “blue”"))
    row = trace.weights(2, 3, "decoder")[70]
    assert said(one.tell) == "Layer 2, head 3 contributes +3.50: from “?” it looks at a patch at the upper left"
    assert one.shown is not None and one.shown.key == int(row.argmax()) - 1
    assert one.picture is not None and one.picture.values[0] == pytest.approx(float(row.max()), abs=1e-5)


def test_bars_of_a_row_over_patches_are_named_by_place_before_and_after() -> None:
    model = shipped("shapes")
    text, picture = "what color is the circle ?", av.Picture(SAMPLES["shapes-one"].path)
    before = model.trace(text, picture=picture)
    tokens = before.key_tokens("decoder")
    query = len(tokens) - 1
    key = max(tokens.patches, key=lambda at: float(before.weights(1, 0, "decoder")[query, at]))
    after = model.trace(text, picture=picture, edits=[without_patches(tokens, [key], "decoder")])
    (slide,) = changed_slides(before, after, "decoder", 1, 0, query, key)
    bars = slide.picture
    assert bars is not None and slide.shown is not None
    assert bars.tokens[:2] == (f"the patch {patch_words(tokens, key)}"[: len(bars.tokens[0])], "other patches")
    assert not any("patch " in one and any(sign.isdigit() for sign in one) for one in bars.tokens)
    was, now = (trace.weights(1, 0, "decoder")[query].double() for trace in (before, after))
    rest = [at for at in tokens.patches if at != key]
    assert bars.before[:2] == pytest.approx((float(was[key]), float(was[rest].sum())), abs=1e-5)
    assert bars.values[0] is None and bars.values[1] == pytest.approx(float(now[rest].sum()), abs=1e-5)
    assert sum(one or 0 for one in bars.values) == pytest.approx(1, abs=1e-4)
    (compared, *_) = compared_slides(compare(before, before, 1, 1, stream="decoder", other_head=0), (query, key))
    assert compared.picture is not None and compared.picture.tokens[1] == "other patches"
    other = before.weights(1, 1, "decoder")[query].double()
    assert compared.picture.before[1] == pytest.approx(float(other[rest].sum()), abs=1e-5)
