"""A story is read exactly, never run; it finds the head that does it on texts that the ranking didn't see, or none."""

import random
from collections.abc import Sequence
from pathlib import Path

import numpy
import pytest
from numpy.typing import NDArray

import attention_viz as av
from attention_viz.corpus.hypotheses.curves import average_precision, best_threshold, counts_of, edge_of, scores_at
from attention_viz.corpus.hypotheses.language import read_hypothesis
from attention_viz.corpus.hypotheses.values import ATTRIBUTES, HypothesisAxis
from attention_viz.corpus.tally import lots
from attention_viz.trace.tokens import Tokens
from recipes.coreference_sentences import POSSESSIVES, PRONOUNS, draw
from recipes.repeated_words import WORDS
from tests.shipped import shipped

SAID = ["The", "cat", "saw", "it", "and", "it", "saw", "9", "cats", "."]
TOKENS = Tokens(tuple(SAID), tuple(range(10)), words=tuple(range(10)), spelling=("text",) * 10)


def holds(said: str, tokens: Tokens = TOKENS) -> set[tuple[int, int]]:
    axis = HypothesisAxis(tokens, looks_back=False)
    rows, columns = numpy.nonzero(read_hypothesis(said).holds(axis, axis))
    return set(zip(rows.tolist(), columns.tolist(), strict=True))


PAIRS = [(i, j) for i in range(10) for j in range(10)]
LOW = [word.lower() for word in SAID]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("query.text == key.text", {(i, j) for i, j in PAIRS if LOW[i] == LOW[j]}),
        ("key.position == query.position - 1", {(i, j) for i, j in PAIRS if j == i - 1}),
        ("key.position + 2 < query.position - 1", {(i, j) for i, j in PAIRS if j + 2 < i - 1}),
        ("query.previous.text == key.text", {(i, j) for i, j in PAIRS if i > 0 and LOW[i - 1] == LOW[j]}),
        ("query.text != key.next.text", {(i, j) for i, j in PAIRS if j < 9 and LOW[i] != LOW[j + 1]}),
        ("key.previous.previous.text == 'the'", {(i, 2) for i in range(10)}),
        ("key.next.previous.text == 'THE'", {(i, 0) for i in range(10)}),
        ("query.is_pronoun", {(i, j) for i, j in PAIRS if LOW[i] == "it"}),
        ("query.is_pronoun and key.text in ('cat', \"cats\")", {(i, j) for i in (3, 5) for j in (1, 8)}),
        ("key.is_number or key.is_punctuation", {(i, j) for i in range(10) for j in (7, 9)}),
        ("not key.is_number and not (key.position < 8)", {(i, j) for i in range(10) for j in (8, 9)}),
        ("key.is_first and query.is_capitalized or query.length >= 4", {(0, 0), *((8, j) for j in range(10))}),
    ],
)
def test_a_story_holds_of_the_pairs_that_it_is_about(said: str, expected: set[tuple[int, int]]) -> None:
    assert holds(said) == expected


def test_pieces_belong_to_words_and_special_tokens_are_known() -> None:
    tokens = shipped("all-MiniLM-L6-v2").trace("tokenization of it").query_tokens()
    assert {j for _, j in holds("key.is_special", tokens)} == {0, len(tokens) - 1}
    pieces = [place for place, word in enumerate(tokens.words) if word == 0]
    assert len(pieces) > 1
    assert {j for _, j in holds("key.word == 'tokenization'", tokens)} == set(pieces)
    assert {j for _, j in holds("key.is_piece", tokens)} == set(pieces[1:])


@pytest.mark.parametrize(
    ("said", "message", "place"),
    [
        ("query.colour == key.text", "found “colour”; expected previous, next, text", 6),
        ("query.text = key.text", "found the unknown sign '='", 11),
        ("query.text == key.position", "can't compare a text with a number", 11),
        ("query.text < key.text", "< compares numbers, and these are texts", 11),
        ("query.text", "expected a comparison (==, !=, <, <=, >, >= or in), as texts are neither true nor false", 10),
        ("query.is_noun key.is_noun", 'found “key”; expected "and", "or", or the end', 14),
        ("(query.is_noun", "found the end; expected “)”", 14),
        ("query.text == 'it", "a text without its closing quote", 14),
        ("query.text in ()", "expected a text in quotes", 15),
        ("query.position in ('1')", "“in” needs a text before it, such as query.text; got a number", 0),
        ("query.text + 1 == key.text", "+ needs a number before it; got a text", 11),
        ("", "found the end; expected query, key", 0),
        ("__import__('os').system('true')", "found “__import__”; expected query, key", 0),
        ("(" * 60 + "query.is_noun" + ")" * 60, "more than 50 nested brackets", 50),
        ("not " * 60 + "query.is_noun", "more than 50 nested brackets", 4 * 50),
        (
            "query.position" + " + 1" * 3_000 + " == 3_000",
            "has 12,023 characters; at most 10,000 are allowed",
            10_000,
        ),
    ],
)
def test_what_is_no_story_is_refused_at_its_place(said: str, message: str, place: int) -> None:
    with pytest.raises(av.HypothesisError) as refused:
        read_hypothesis(said)
    assert message in str(refused.value) and refused.value.place == place


@pytest.mark.parametrize(
    "said",
    [
        "key.position == query.position" + " + 1 - 1" * 1_000 + " - 1",
        " or ".join(["key.position == query.position - 1"] * 250),
        " and ".join(["key.position == query.position - 1"] * 250),
        f"key{'.previous.next' * 600}.position == query.position - 1",
        "key.position == query.position - 1 and not key.text in ('x'" + ", 'x'" * 1_900 + ")",
    ],
    ids=["sums", "or", "and", "steps", "in"],
)
def test_a_story_of_any_length_that_is_read_can_be_tested(said: str) -> None:
    assert holds(said) == {(i, j) for i, j in PAIRS if j == i - 1}


def test_a_refusal_of_a_long_story_shows_what_is_around_the_place() -> None:
    with pytest.raises(av.HypothesisError, match=r" or query.is_noun ▸§"):
        read_hypothesis("query.is_noun or " * 300 + "query.is_noun §")
    with pytest.raises(av.HypothesisError) as refused:
        read_hypothesis("x" * 9_000)
    assert len(str(refused.value)) < 1_000


def test_every_attribute_is_told_in_the_document() -> None:
    told = (Path(__file__).parents[2] / "docs" / "scan.md").read_text("utf-8")
    assert not [name for name in ATTRIBUTES if f"{name}`" not in told]


def test_precision_recall_and_their_mean_are_those_of_sorting_all_pairs() -> None:
    random = numpy.random.default_rng(1)
    # Weights apart from each other by more than a bin is wide.
    weights = random.permutation(numpy.geomspace(1e-4, 1, 300))[None]
    those = random.random(300) < 0.1 + 0.5 * (weights[0] > 0.2)
    counts = counts_of(weights, those)
    order = numpy.argsort(-weights[0])
    ranked = those[order]
    precisions = ranked.cumsum() / numpy.arange(1, 301)
    assert average_precision(counts)[0] == pytest.approx(precisions[ranked].mean())
    recalls = ranked.cumsum() / ranked.sum()
    f1 = 2 * precisions * recalls / (precisions + recalls + 1e-12)
    at = best_threshold(counts)
    found = scores_at(counts, at)
    assert (found.precision[0], found.recall[0]) == pytest.approx((precisions[f1.argmax()], recalls[f1.argmax()]))
    assert edge_of(at)[0] == pytest.approx(weights[0][order][f1.argmax()], rel=1 / 64)


def repeated(count: int) -> list[str]:
    """Words in any order, some of which come again in that order after a few others."""
    chance, found = random.Random(5), list[str]()
    for _ in range(count):
        words = chance.sample(WORDS, 16)
        begin, size = chance.randrange(5), chance.randint(2, 5)
        found.append(" ".join(words[: chance.randint(begin + size, 12)] + words[begin : begin + size]))
    return found


def pronouns(count: int) -> list[str]:
    """Sentences that the model was never trained on, with a pronoun that means the noun behind their first word."""
    chance, found = random.Random(6), list[str]()
    while len(found) < count:
        drawn = draw(chance, ("alone", "owner")[len(found) % 2], unseen=True)
        said_again = drawn.words[drawn.places["reference"]] not in (*PRONOUNS, *POSSESSIVES)
        if not said_again and drawn.places["antecedent"] == 1 and "[SEP]" not in drawn.words:
            found.append(" ".join(drawn.words))
    return found


@pytest.mark.parametrize(
    ("name", "texts", "story", "head"),
    [
        ("induction", repeated(60), "key.position == query.position - 1", (0, 0)),
        ("induction", repeated(60), "query.text == key.previous.text", (1, 1)),
        ("coreference", pronouns(60), "query.is_pronoun and key.previous.text == 'the'", None),
    ],
    ids=["the word before", "induction", "coreference"],
)
def test_the_toys_heads_are_found_by_their_stories(
    name: str, texts: Sequence[str], story: str, head: tuple[int, int] | None, tmp_path: Path
) -> None:
    tested = av.scan(shipped(name), texts, tmp_path).test(story)
    expected = head or (1, coreference_head())
    assert tested.holds and tested.table.index[0] == expected, tested.verdict
    assert f"Head {expected[0]}·{expected[1]} does this" in tested.verdict
    best = tested.table.iloc[0]
    for score in ("precision", "recall", "average_precision"):
        assert best[f"{score}_low"] <= best[score] <= best[f"{score}_high"]
    assert best["average_precision"] > 0.6 and sum(tested.texts) == len(texts)


def coreference_head() -> int:
    import json

    figures = Path(av.__file__).parent / "sources" / "trained" / "coreference" / "figures.json"
    return int(json.loads(figures.read_text("utf-8"))["head"])


def test_a_false_story_is_turned_down_and_one_that_holds_nowhere_is_refused(tmp_path: Path) -> None:
    found = av.scan(shipped("induction"), repeated(40), tmp_path)
    tested = found.test("key.length > query.length")
    assert not tested.holds and tested.verdict.startswith(("No head does this", "Head"))
    assert "No head does this" in found.test("key.position == query.position - 4").verdict
    with pytest.raises(av.ScanError, match="holds for 0 pairs in 20 texts"):
        found.test("query.is_pronoun")
    with pytest.raises(av.ScanError, match="differ from those of the scanned induction"):
        found.test("query.text == key.text", model=shipped("lists"))


def test_what_is_told_is_of_texts_that_the_ranking_did_not_see(tmp_path: Path) -> None:
    texts = repeated(20)
    found = av.scan(shipped("induction"), texts, tmp_path)
    tested = found.test("query.text == key.previous.text")
    own = list[NDArray[numpy.float32]](), list[NDArray[numpy.bool_]]()
    for number in numpy.argsort(lots(range(20)))[1::2]:
        said = texts[number]
        trace = shipped("induction").trace(said)
        ids, weights = trace.query_tokens().ids, trace.weights(1, 1).numpy()
        pairs = [(i, j) for i in range(1, len(ids)) for j in range(1, i + 1)]
        own[0].append(numpy.array([weights[i, j] for i, j in pairs]))
        own[1].append(numpy.array([j > 1 and ids[j - 1] == ids[i] for i, j in pairs]))
    counts = counts_of(numpy.concatenate(own[0])[None], numpy.concatenate(own[1]))
    assert tested.table.loc[(1, 1), "average_precision"] == pytest.approx(average_precision(counts)[0], abs=1e-6)
    assert tested.pairs[1] == numpy.concatenate(own[1]).sum()
