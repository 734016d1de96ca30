import math
from collections.abc import Sequence

import numpy
import pandas
import pytest
import torch
from scipy.spatial.distance import jensenshannon

import attention_viz as av
from attention_viz.analysis.head_table import head_table
from attention_viz.analysis.likeness import divergence, head_distances, similarity
from attention_viz.analysis.metrics import metrics_in
from attention_viz.analysis.search import find_heads
from attention_viz.errors import ShapeError, TraceError
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Fidelity, Layer, Provenance, Trace
from tests.shipped import plain_weights, shipped

SOFTMAX = metrics_in("softmax")
TEXT = "The cat sat on the mat because the cat was tired of the mat."


def naive(weights: numpy.ndarray, tokens: Tokens, counted: Sequence[int] | None = None) -> dict[str, float]:
    """Every metric written once more, cell by cell, from its definition; of all words, or of the queries that count."""
    n = len(tokens)
    rows = [i for i in range(n) if not tokens.special[i] and not tokens.padding[i]] if counted is None else counted
    real = [j for j in range(n) if not tokens.padding[j]]

    def mean(values: list[float]) -> float:
        return sum(values) / len(values) if values else math.nan

    def earlier(i: int) -> list[int]:
        return [j for j in range(i) if tokens.ids[j] == tokens.ids[i] and j in real]

    a = weights.astype(numpy.float64)
    return {
        "entropy": mean([-sum(a[i, j] * math.log(a[i, j]) for j in range(n) if a[i, j] > 0) for i in rows]),
        "previous": mean([a[i, i - 1] for i in rows if i - 1 in real]),
        "next": mean([a[i, i + 1] for i in rows if i + 1 in real]),
        "above": math.nan,  # a text has no rows of patches
        "self": mean([a[i, i] for i in rows]),
        "first": mean([a[i, real[0]] for i in rows]),
        "distance": mean([sum(a[i, j] * abs(i - j) for j in range(n)) for i in rows]),
        "duplicate": mean([sum(a[i, j] for j in earlier(i)) for i in rows if earlier(i)]),
        "induction": mean([a[i, max(earlier(i)) + 1] for i in rows if earlier(i)]),
        "special": mean([sum(a[i, j] for j in range(n) if tokens.special[j]) for i in rows if any(tokens.special)]),
        "confidence": mean([max(a[i]) for i in rows]),
        "variance": mean([float(numpy.var([a[i, j] for j in real])) for i in rows]),
    }


def eager_weights(name: str, ids: tuple[int, ...]) -> list[numpy.ndarray]:
    """What plain transformers computes, with nothing of ours involved."""
    return [layer.numpy() for layer in plain_weights(name, ids)]


@pytest.mark.parametrize(
    ("name", "text"),
    [("all-MiniLM-L6-v2", TEXT), ("induction", "moon cheese frog moon cheese frog ring moon"), ("lists", "a b a b")],
)
def test_every_metric_of_every_head_equals_its_definition_on_eager_weights(name: str, text: str) -> None:
    trace = shipped(name).trace(text)
    tokens, table = trace.query_tokens(), head_table(trace)
    assert list(table.columns) == [*SOFTMAX, *(f"{name}_n" for name in SOFTMAX)]
    for layer, heads in enumerate(eager_weights(name, tokens.ids)):
        for head, weights in enumerate(heads):
            row = table.loc[(layer, head), [*SOFTMAX]]
            assert row.to_dict() == pytest.approx(naive(weights, tokens), abs=2e-5, nan_ok=True)
    assert not table.drop(columns="above").isna().all().any()


def made(weights: list[list[float]], tokens: Tokens) -> Trace:
    """A trace whose one head has just these weights."""
    n = len(tokens)
    rows = torch.tensor(weights).clamp_min(1e-30).log()[None]
    allowed = torch.tensor(weights) > 0
    layer = Layer(av.attend(rows, torch.eye(n)[None], torch.eye(n)[None], allowed[None], scale=1.0), "0")
    return Trace(
        layers={"encoder": (layer,)},
        queries={"encoder": tokens},
        keys={"encoder": tokens},
        output=torch.zeros(n, 1),
        provenance=Provenance("made", "by hand"),
        fidelity=Fidelity(0.0, 0.0, 1e-5, "itself"),
    )


def test_a_matrix_worked_out_by_hand() -> None:
    tokens = Tokens(("a", "b", "a", "c"), (1, 2, 1, 3))
    weights = [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.25, 0.5, 0.25, 0], [0, 0.25, 0.25, 0.5]]
    found = head_table(made(weights, tokens)).loc[(0, 0), [*SOFTMAX]]
    half = math.log(2)
    assert found.to_dict() == pytest.approx(
        {
            "entropy": (0 + half + 1.5 * half + 1.5 * half) / 4,
            "previous": (0.5 + 0.5 + 0.25) / 3,
            "next": 0.0,
            "above": math.nan,
            "self": (1 + 0.5 + 0.25 + 0.5) / 4,
            "first": (1 + 0.5 + 0.25 + 0) / 4,
            "distance": (0 + 0.5 + 1 + 0.75) / 4,
            "duplicate": 0.25,
            "induction": 0.5,
            "special": math.nan,  # no token is
            "confidence": (1 + 0.5 + 0.5 + 0.5) / 4,
            "variance": (3 / 16 + 1 / 16 + 1 / 32 + 1 / 32) / 4,
        },
        abs=1e-6,
        nan_ok=True,
    )


def test_of_a_picture_neighbours_are_those_beside_and_above_and_what_has_no_ids_is_left_out_and_said() -> None:
    places = (None, (0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0))
    tokens = Tokens(("[CLS]", "0,0", "0,1", "1,0", "1,1"), None, special=(True, *[False] * 4), place=places)
    weights = [
        [0.2] * 5,
        [0.1, 0.2, 0.3, 0.4, 0],
        [0, 0.5, 0.1, 0.2, 0.2],
        [0, 0.7, 0.1, 0.1, 0.1],
        [0, 0, 0.3, 0.5, 0.2],
    ]
    table = head_table(made(weights, tokens))
    found = table.loc[(0, 0)]
    assert (found["above"], found["above_n"]) == (pytest.approx((0.7 + 0.3) / 2), 2)
    assert found["previous"] == pytest.approx((0.5 + 0.5) / 2)
    assert found["next"] == pytest.approx((0.3 + 0.1) / 2)
    assert table.attrs["missing"].keys() == {"duplicate", "induction"}
    assert "have no ids" in table.attrs["missing"]["induction"]
    text = made(weights, Tokens(tuple("abcde"), (1, 2, 3, 4, 5)))
    assert head_table([text, text]).attrs["missing"].keys() == {"above"}


def test_special_tokens_padding_and_blind_rows_are_left_out_of_the_means() -> None:
    yes, no = (True,), (False,) * 3
    tokens = Tokens(("[CLS]", "a", "b", "[PAD]"), (9, 1, 2, 0), special=yes + no, padding=no + yes)
    weights = [[1.0, 0, 0, 0], [0.25, 0.75, 0, 0], [0, 0, 0, 0], [0, 1.0, 0, 0]]
    found = head_table(made(weights, tokens)).loc[(0, 0)]
    assert (found["self"], found["special"], found["first"]) == pytest.approx((0.75, 0.25, 0.25))
    assert found["variance"] == pytest.approx(float(numpy.var([0.25, 0.75, 0])))
    assert math.isnan(found["duplicate"])


def test_without_a_special_token_there_is_no_number_and_padding_is_none() -> None:
    weights = [[1.0, 0, 0], [0.5, 0.5, 0], [0, 1.0, 0]]
    flags = {"special": (False, False, True), "padding": (False, False, True)}
    for tokens in (Tokens(("a", "b", "c"), (1, 2, 3)), Tokens(("a", "b", "[PAD]"), (1, 2, 0), **flags)):
        table = head_table(made(weights, tokens))
        assert table["special"].isna().all() and (table["special_n"] == 0).all()
        assert table["first_n"].item() == len(tokens.counted)


def test_over_several_texts_the_mean_and_its_spread() -> None:
    model = shipped("all-MiniLM-L6-v2")
    traces = [model.trace(text) for text in (TEXT, "A boat drifted by", "Snow fell on the snow")]
    table, single = head_table(traces), [head_table(trace) for trace in traces]
    entropies = numpy.stack([one["entropy"].to_numpy() for one in single])
    assert table["entropy"].to_numpy() == pytest.approx(entropies.mean(0))
    assert table["entropy_spread"].to_numpy() == pytest.approx(entropies.std(0))
    # "A boat drifted by" has no word twice, and doesn't count where one is asked for.
    two = numpy.stack([single[0]["induction"], single[2]["induction"]])
    assert table["induction"].to_numpy() == pytest.approx(two.mean(0))
    with pytest.raises(TraceError, match="one or more traces"):
        head_table([])
    with pytest.raises(TraceError, match="one model; got all-MiniLM-L6-v2 and lists"):
        head_table([traces[0], shipped("lists").trace("a b")])


def test_of_cross_attention_what_compares_positions_is_not_a_number() -> None:
    trace = shipped("translation").trace("the boy finds the key")
    with pytest.raises(TraceError, match="cross"):
        head_table(trace)
    table = head_table(trace, "cross")
    unknown = {name for name in SOFTMAX if table[name].isna().all()}
    assert unknown == {"previous", "next", "above", "self", "distance", "duplicate", "induction"}


def test_divergence_is_that_of_scipy_and_rows_that_lack_weight_look_nowhere() -> None:
    generator = numpy.random.default_rng(3)
    one, other = (generator.dirichlet(numpy.ones(6), 20) for _ in range(2))
    expected = [jensenshannon(a, b, base=2) ** 2 for a, b in zip(one, other, strict=True)]
    assert divergence(torch.tensor(one), torch.tensor(other)).numpy() == pytest.approx(numpy.array(expected), abs=1e-9)
    assert float(divergence(torch.tensor([0.0, 0.0]), torch.tensor([0.5, 0.5]))) == pytest.approx(1)


def test_a_head_is_most_like_its_own_pattern() -> None:
    trace = shipped("all-MiniLM-L6-v2").trace(TEXT)
    found = similarity(trace, 3 * trace.weights(2, 5))
    assert found[2, 5] == pytest.approx(1, abs=1e-6)
    assert found.argmax() == 2 * 12 + 5
    diagonal = torch.eye(len(trace.query_tokens())).roll(-1, 1)
    diagonal[-1] = 0
    assert similarity(trace, diagonal)[0].argmax() == similarity(trace, diagonal)[0].nan_to_num().argmax()
    for wrong in (torch.zeros(2, 2), torch.zeros_like(diagonal), -diagonal, diagonal * torch.nan):
        with pytest.raises(ShapeError):
            similarity(trace, wrong)


def test_distances_between_heads_are_those_between_their_rows() -> None:
    trace = shipped("induction").trace("moon cheese moon cheese")
    found = head_distances(trace)
    heads = [(layer, head) for layer in range(2) for head in range(4)]
    rows = [i for i, special in enumerate(trace.query_tokens().special) if not special]
    for i, one in enumerate(heads):
        for j, other in enumerate(heads):
            pairs = zip(trace.weights(*one)[rows].double(), trace.weights(*other)[rows].double(), strict=True)
            apart = numpy.mean([jensenshannon(a / a.sum(), b / b.sum(), base=2) ** 2 for a, b in pairs])
            assert found[i, j] ** 2 == pytest.approx(apart, abs=1e-6)


def test_the_heads_that_link_it_to_cat_in_the_real_encoder() -> None:
    trace = shipped("all-MiniLM-L6-v2").trace("The cat sat because it was tired.")
    found = find_heads(trace, query="it", key="Cat")
    assert list(found.columns) == ["layer", "head", "weight", "query", "key", "rank"]
    top = found.head(2)
    assert list(zip(top["layer"], top["head"], strict=True)) == [(5, 11), (3, 1)]
    assert top["weight"].tolist() == pytest.approx([0.688, 0.670], abs=5e-4)
    assert (found["query"] == 5).all() and (found["key"] == 2).all()
    assert found["rank"].tolist() == list(range(1, 73))


def test_of_a_repeated_word_the_heaviest_pair_and_of_pieces_the_word() -> None:
    trace = shipped("all-MiniLM-L6-v2").trace("The cat saw a tokenizer, and the cat ran.")
    labels = trace.query_tokens().labels
    cats = [i for i, label in enumerate(labels) if label == "cat"]
    pieces = [i for i, label in enumerate(labels) if label in ("token", "##izer")]
    assert len(cats) == len(pieces) == 2
    for row in find_heads(trace, "tokenizer", "cat").itertuples():
        weights = trace.weights(row.layer, row.head).double()
        expected = {key: float(weights[pieces, key].mean()) for key in cats}
        assert row.key == max(expected, key=lambda key: expected[key])
        assert (row.weight, row.query) == (pytest.approx(expected[row.key], abs=1e-6), pieces[0])
    back = find_heads(trace, "ran", "tokenizer").set_index(["layer", "head"])
    ran = labels.index("ran")
    assert back.loc[(3, 1), "weight"] == pytest.approx(float(trace.weights(3, 1)[ran, pieces].sum()), abs=1e-6)


@pytest.mark.parametrize("word", ["dog", "", "  "])
def test_a_word_that_is_not_there_is_refused_with_those_that_are(word: str) -> None:
    trace = av.scratch("the cat sat")
    with pytest.raises(TraceError, match="its tokens are the, cat, sat"):
        find_heads(trace, word, "cat")


def test_in_the_induction_model_the_table_finds_the_two_heads_that_its_card_names() -> None:
    words = "moon cheese frog ring boat tree star lamp".split()
    table = head_table(shipped("induction").trace(" ".join(words * 3)))
    assert table["previous"].idxmax() == (0, 0)
    assert table["induction"].idxmax() == (1, 1)
    assert isinstance(table.index, pandas.MultiIndex) and table.index.names == ["layer", "head"]
