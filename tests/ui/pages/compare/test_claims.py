"""The Compare page's sentences: true of the weights, in every row of every kind of text."""

from dataclasses import replace

import pytest
import torch

import attention_viz as av
from attention_viz.analysis.comparison.compare import Comparison
from attention_viz.analysis.comparison.shares import in_shares
from attention_viz.trace.spelling import weight_text
from attention_viz.ui.address import State
from attention_viz.ui.pages.compare.choice import CompareChoice
from attention_viz.ui.pages.compare.claims import TELLING, RowClaim, RowClaims, changed_words
from attention_viz.ui.pages.compare.rows import next_words
from attention_viz.ui.pages.compare.words import rank_words
from tests.shipped import MINILM, SMOLLM2, shipped

RIVER, CITY = "The bank of the river was flooded", "The bank of the city was flooded"


def claims_of(
    model: str, one: str, other: str, layer: int, head: int, align: str = "position"
) -> tuple[RowClaims, Comparison]:
    first, second = (shipped(model).trace(text) for text in (one, other))
    found = av.compare(first, second, layer, head, align=align)  # pyright: ignore[reportArgumentType]
    choice = CompareChoice(other=other)
    return RowClaims(choice, replace(State(), model=model, text=one), found), found


def words(claim: RowClaim) -> str:
    return "".join(text for text, _ in claim.phrase)


def test_a_row_says_what_it_turned_to_by_name_and_number() -> None:
    claims, found = claims_of(MINILM, RIVER, CITY, 0, 4)
    one, other = (shipped(MINILM).trace(text).weights(0, 4)[2] for text in (RIVER, CITY))
    (first, second) = (int(row[1:-1].argmax()) + 1 for row in (one, other))
    assert (first, second) == (5, 7)
    told = f"“bank” looks at “river”: {one[5]:.2f}. With “city” it turns to “flooded”: {other[7]:.2f}"
    assert words(claims.row(2)) == told == words(claims.pair(2, 5))
    assert claims.row(2).keys == (first, second) and claims.opening() == 2
    # Another pair of the same row has a sentence of its own.
    assert words(claims.pair(2, 3)) == f"“bank” looks at “of”: {one[3]:.2f}. With “city”: {other[3]:.2f}"
    assert found.queries.one[2] == 2


@pytest.mark.parametrize(
    ("one", "other", "layer", "head", "query", "told"),
    [
        # The new word itself.
        (RIVER, CITY, 5, 2, 2, "“bank” looks at [CLS]: 0.48. In the second text also at “city”: 0.27"),
        (RIVER, CITY, 5, 2, 3, "“of” looks at [CLS]: 0.28. In the second text it turns to “city”: 0.38"),
        # The word in the key's place; the same; a row of another word; one text's own row.
        (RIVER, CITY, 0, 4, 7, "“flooded” looks at “river”: 0.29. The word in its place, “city”, gets 0.01"),
        (RIVER, CITY, 0, 4, 0, "[CLS] looks at [CLS] in both: 0.61"),
        (RIVER, CITY, 0, 4, 3, "“of” looks at “of” in both: 0.19 and 0.18"),
        (RIVER, CITY, 0, 4, 5, "“river” looks at “bank”: 0.24. In its place, “city” looks at “bank”: 0.28"),
        (RIVER, f"{RIVER} badly", 0, 4, 8, "Only the second text has “badly”. It looks at [SEP]: 0.23"),
        (RIVER, "The bank was flooded", 0, 4, 2, "“bank” looks at “river”: 0.58. In the second text it turns to "),
    ],
)
def test_each_case_has_its_own_form(one: str, other: str, layer: int, head: int, query: int, told: str) -> None:
    claims, _ = claims_of(MINILM, one, other, layer, head)
    assert words(claims.row(query)).startswith(told)


def test_a_decoder_opens_on_its_last_word_and_says_which_rows_cant_differ() -> None:
    one, other = (f"When Mary and John went to the store, {name} gave a drink to" for name in ("John", "Mary"))
    claims, found = claims_of(SMOLLM2, one, other, 24, 4)
    assert claims.opening() == len(found.queries) - 1
    weights = [shipped(SMOLLM2).trace(text).weights(24, 4)[-1] for text in (one, other)]
    assert words(claims.row(claims.opening())) == (
        f"“to₂” looks at “Mary”: {weights[0][1]:.2f}. With “Mary” for “John” it turns to “John”: {weights[1][3]:.2f}"
    )
    assert words(claims.row(1)).endswith("It can’t differ: both texts begin alike")


@pytest.mark.parametrize("align", ["position", "token"])
def test_every_sentence_is_true_of_the_weights(align: str) -> None:
    """In all rows of several heads: the numbers are those of the keys it names, and "turns to" is a rise."""
    for other in (CITY, f"{RIVER} again and again", "A bank was robbed", "Flooded was the river of the bank"):
        for layer, head in ((0, 4), (2, 7), (5, 2)):
            claims, found = claims_of(MINILM, RIVER, other, layer, head, align)
            rows = found.weights.nan_to_num(), found.other_weights.nan_to_num()
            for query in range(len(found.queries)):
                claim = claims.row(query)
                written = {
                    weight_text(float(row[query, at].float())) for row in rows for at in claim.keys if at is not None
                }
                numbers = [text for text, role in claim.phrase if role == "number"]
                assert numbers and set(numbers) <= written
                _, second = claim.keys
                if " turns to " in words(claim):
                    assert second is not None and rows[1][query, second] - rows[0][query, second] >= TELLING
                if " in both" in words(claim):
                    shown = found.difference[query][[at for at, one in enumerate(found.keys.written) if one.isalnum()]]
                    assert float(shown.nan_to_num().abs().max()) < TELLING


def test_no_sentence_reads_as_if_the_word_in_the_querys_place_was_attended_to() -> None:
    claims, found = claims_of(MINILM, "John walks to the river", "Mary walks to the river", 0, 4)
    (row,) = found.queries.substituted
    for claim in (claims.row(row), claims.pair(row, 4), claims.pair(row, row)):
        assert words(claim).startswith("“john” looks at “") and ". In its place, “mary” looks at “" in words(claim)


def test_layers_without_a_softmax_receive_shares_of_size() -> None:
    model = av.load("recall")
    texts = "anna red , ben blue . ben ?", "anna red , ben green . ben ?"
    one, other = (model.trace(text) for text in texts)
    found = in_shares(av.compare(one, other, 0, 0, stream="mixer"))
    claims = RowClaims(CompareChoice(other=texts[1]), replace(State(), model="recall", text=texts[0]), found)
    said = words(claims.row(claims.opening()))
    assert " receives " in said and "attends" not in said


def test_the_changed_word_is_named_if_it_is_the_only_one() -> None:
    assert changed_words(RIVER, CITY) == "With “city”"
    assert changed_words("It rained", "It rained hard") == "With “hard”"
    assert changed_words("It rained hard", "It rained") == "Without “hard”"
    assert changed_words("Mary met John and John", "Mary met John and Mary") == "With “Mary” for “John”"
    assert changed_words(RIVER, "A bank was robbed") == "In the second text"
    assert changed_words("moon ring moon", "ring moon ring") == "In the second text"


def test_the_heads_rank_is_said_with_the_way_to_the_largest() -> None:
    apart = torch.tensor([[0.1, 0.5], [torch.nan, 0.3]], dtype=torch.float64)
    said, largest = rank_words(apart, (3, 1), (1, 3))
    assert said == "layer 3, head 1, the 2nd most different of 3: 0.30 (0 same, 1 nothing in common)"
    assert largest == (1, 1)
    assert rank_words(apart, (1, 1), (1, 3)) == (
        "layer 1, head 1, differs most of 3: 0.50 (0 same, 1 nothing in common)",
        None,
    )
    # From one head, the nearer half is counted from the nearest.
    for head, told in (((1, 1), "farthest from"), ((3, 1), "the 2nd farthest from"), ((1, 0), "nearest to")):
        assert f", {told} 0·4 of 3: " in rank_words(apart, head, (1, 3), "0·4")[0]
    assert "can’t be compared" in rank_words(apart, (3, 0), (1, 3))[0]
    assert rank_words(torch.zeros(2, 2, dtype=torch.float64), (0, 1), (0, 1)) == (
        "layer 0, head 1; no head differs",
        None,
    )


def test_the_next_word_is_written_once_if_it_stays() -> None:
    def said(*sides: tuple[str, float] | None) -> str:
        return "".join(text for text, _ in next_words(*sides))

    assert said(("Mary", 0.917), ("John", 0.749)) == "next word: Mary 0.92 → John 0.75"
    assert said(("Mary", 0.917), ("Mary", 0.5)) == "next word: Mary 0.92 → 0.50"
    assert said(None, ("with", 0.3)) == "next word in 2: with 0.30"
    assert said(("with", 0.3), None) == "next word in 1: with 0.30"
    assert said(None, None) == ""
