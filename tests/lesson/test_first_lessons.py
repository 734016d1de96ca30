"""The lessons from words as vectors to the weighted sum: their numbers equal what plain torch makes of the words."""

import math
import re
from collections.abc import Mapping
from dataclasses import replace

import numpy
import pytest
import torch
from scipy.spatial import Delaunay

from attention_viz.lesson import LESSONS, Scene, lesson_text
from attention_viz.lesson.lesson import short
from attention_viz.lesson.own_head import own_head
from attention_viz.lesson.scene import RunText
from attention_viz.lesson.words import offered, signed, telling
from attention_viz.operation.attention import Attention
from attention_viz.scratch.model import Scratch
from attention_viz.scratch.vectors import word_vectors
from attention_viz.trace.splitting import split_words
from tests.views.printed import drawn

TEXT = "The bank of the river was flooded"
BANK, D_MODEL, D_K = 1, 8, 4


@pytest.fixture
def scene(run: RunText) -> Scene:
    return Scene(TEXT, run, seed=3)


def numbers(seed: int = 3, d_v: int = D_K) -> tuple[torch.Tensor, ...]:
    """The query, key and value of each word, multiplied out."""
    x = word_vectors(split_words(TEXT), D_MODEL, seed)
    known = Scratch(D_MODEL, 1, seed, "none").projections()
    matrices = (known[name].weight[:, :width] for name, width in (("query", D_K), ("key", D_K), ("value", d_v)))
    return tuple(x @ matrix for matrix in matrices)


def minus(text: str) -> float:
    return float(text.replace("−", "-"))


def pairs(text: str) -> tuple[float, ...]:
    return tuple(minus(number) for number in text.strip("()").split(", "))


def test_the_table_compares_the_vectors_that_enter_the_model(scene: Scene) -> None:
    x = scene.run("all-MiniLM-L6-v2", TEXT).layer(0).embeddings
    assert x is not None
    words = x[1:8].double()
    products = words @ words.T
    cosines = products / words.norm(dim=1).outer(words.norm(dim=1))
    for choice, expected in (("cosine", cosines), ("dot", products)):
        shown = LESSONS["vectors"].show(replace(scene, choice=choice))
        assert numpy.allclose(numpy.array(shown.figure.data[0].z), expected, atol=1e-6)
        assert "“the₁” and “the₂” are most alike" in shown.facts["closest"]
        assert (shown.facts["word"], shown.facts["other"], shown.facts["cosine"]) == ("bank", "river", "0.25")
    # Another word is outlined in the table, and has its own nearest.
    other = LESSONS["vectors"].show(replace(scene, word=4))
    assert other.facts["word"] == "river" and other.figure.layout.shapes[0].y0 == 3.5


def test_without_parameters_each_word_finds_itself_as_the_real_vectors_are_long(scene: Scene) -> None:
    x = scene.run("all-MiniLM-L6-v2", TEXT).layer(0).embeddings
    assert x is not None
    for choice, vectors in (("learned", x), ("unit", x / x.norm(dim=-1, keepdim=True))):
        one = replace(scene, choice=choice)
        ask, shown = LESSONS["plain"].ask(one), LESSONS["plain"].show(one)
        weights = (vectors @ vectors.T).softmax(-1)
        assert ask.right == {2} and ask.values == pytest.approx(weights[2].tolist(), abs=1e-5)
        products, shares = (numpy.array(part.z, dtype=float) for part in drawn(shown.figure))
        assert numpy.allclose(products, vectors @ vectors.T, atol=1e-3)
        assert numpy.allclose(shares, weights, atol=1e-5)
        assert (shown.facts["itself"], shown.facts["among"], shown.facts["total"]) == ("7", "7", "1.00")
    assert "“river”" in ask.premise and "itself" in ask.finding
    upright = LESSONS["plain"].show(replace(scene, notation="columns")).facts
    assert r"^{\top}" in lesson_text("plain", upright, "columns")


@pytest.mark.parametrize(("choice", "role"), [("query", 0), ("key", 1), ("value", 2), ("wide", 2)])
@pytest.mark.parametrize("notation", ["rows", "columns"])
def test_a_role_is_drawn_as_the_product_of_all_vectors_and_its_matrix(
    scene: Scene, choice: str, role: int, notation: str
) -> None:
    shown = LESSONS["roles"].show(replace(scene, choice=choice, notation=notation))
    width = {"value": 3, "wide": 6}.get(choice, D_K)
    drawn_x, matrix, made = (numpy.array(part.z, dtype=float) for part in drawn(shown.figure))
    if notation == "columns":
        drawn_x, matrix, made = drawn_x.T, matrix.T, made.T
    assert numpy.allclose(drawn_x, word_vectors(split_words(TEXT), D_MODEL, 3), atol=1e-6)
    assert matrix.shape == (D_MODEL, width) and numpy.allclose(drawn_x @ matrix, made, atol=1e-5)
    assert numpy.allclose(made, numbers(d_v=width)[role], atol=1e-5)
    assert shown.facts["width"] == str(width)


def test_a_pressed_word_is_outlined_in_the_figure_and_keeps_the_head(scene: Scene) -> None:
    for word, here in ((1, "bank"), (4, "river")):
        shown = LESSONS["roles"].show(replace(scene, word=word))
        outlined, _ = shown.figure.layout.shapes
        assert (outlined.y0, outlined.y1) == (word - 0.5, word + 0.5)
        assert (shown.facts["here"], shown.facts["layer"], shown.facts["head"]) == (here, "0", "4")


def test_words_of_the_matrix_are_not_pressed_where_it_has_as_many_rows_as_the_text(run: RunText) -> None:
    shown = LESSONS["roles"].show(Scene("one two three four five six seven eight", run))
    assert {spot.axis for spot in shown.spots} == {"", "3"}


@pytest.mark.parametrize("word", range(7))
def test_the_reverse_of_a_link_is_asked_for_and_is_another_number(scene: Scene, word: int) -> None:
    one = replace(scene, word=word)
    ask, facts = LESSONS["roles"].ask(one), LESSONS["roles"].show(one).facts
    assert ask.right == {1} and facts["forth"] in ask.premise and facts["back"] in ask.finding
    assert facts["forth"] != facts["back"]


def trained_head(scene: Scene, facts: Mapping[str, str]) -> Attention:
    return scene.run("all-MiniLM-L6-v2", TEXT).attention(int(facts["layer"])).head(int(facts["head"]))


def test_a_score_is_the_sum_that_is_written_out(scene: Scene) -> None:
    written = scene.run("all-MiniLM-L6-v2", TEXT).query_tokens().names
    for at in map(int, LESSONS["scores"].control.options(scene)):
        facts = LESSONS["scores"].show(replace(scene, choice=str(at))).facts
        call = trained_head(scene, facts)
        row = call.key @ call.query[at]
        key = int(row.argmax())
        assert (facts["word"], facts["other"], facts["cells"]) == (written[at], written[key], "81")
        assert [minus(facts["score"]), minus(facts["lowest"])] == pytest.approx(
            [float(row.max()), float(row.min())], abs=0.006
        )
        order = (call.query[at] * call.key[key]).abs().argsort(descending=True).tolist()
        *terms, others = facts["sum"].split(" + ")
        assert [[minus(part.strip("()")) for part in term.split(" · ")] for term in terms] == [
            pytest.approx([float(call.query[at, c]), float(call.key[key, c])], abs=0.006) for c in order[:4]
        ]
        number, rest = others.split(" from ")
        assert rest == "28 more"
        rest_sum = float((call.query[at, order[4:]] * call.key[key, order[4:]]).sum())
        assert minus(number.strip("()")) == pytest.approx(rest_sum, abs=0.006)


# Ten sets of matrices for each seed, and the scene's is 3.
SETS = range(30, 40)


@pytest.mark.parametrize("d_k", [4, 64])
def test_the_scale_brings_the_spread_back_and_the_gradient_with_it(scene: Scene, d_k: int) -> None:
    facts = LESSONS["scaling"].show(replace(scene, choice=str(d_k))).facts
    words = split_words(TEXT)

    def scores(seed: int) -> torch.Tensor:
        known, x = Scratch(d_k, 1, seed, "none").projections(), word_vectors(words, d_k, seed)
        return (x @ known["query"].weight[:, :d_k]) @ (x @ known["key"].weight[:, :d_k]).T

    def measured(factor: float) -> tuple[float, float]:
        rows = torch.cat([(scores(seed) * factor).softmax(-1) for seed in SETS]).double()
        slopes = [torch.linalg.matrix_norm(row.diag() - row.outer(row)) for row in rows]
        return float(rows.amax(-1).mean()), float(torch.stack(slopes).mean())

    pooled = numpy.concatenate([scores(s).numpy().ravel() for s in SETS])
    assert float(facts["spread"]) == pytest.approx(pooled.std(), abs=0.006)
    assert float(facts["spread"]) == pytest.approx(d_k**0.5, rel=0.3) and facts["root"] == f"{d_k**0.5:.0f}"
    told_numbers = [float(facts[name]) for name in ("bare", "bare_gradient", "scaled", "scaled_gradient")]
    known = [*measured(1), *measured(d_k**-0.5)]
    assert told_numbers[::2] == pytest.approx(known[::2], abs=6e-3)
    assert told_numbers[1::2] == pytest.approx(known[1::2], abs=6e-4)
    if d_k == 64:
        assert float(facts["bare"]) > 2 * float(facts["scaled"])
        assert float(facts["bare_gradient"]) < 0.7 * float(facts["scaled_gradient"])


@pytest.mark.parametrize("temperature", ["0.25", "1", "4"])
def test_a_weight_is_its_exponential_in_the_sum_of_all(scene: Scene, temperature: str) -> None:
    shown = LESSONS["softmax"].show(replace(scene, choice=temperature))
    # “bank” in the head of a real model in which it looks most at a word further off.
    trace = scene.run("all-MiniLM-L6-v2", TEXT)
    call = trace.attention(0).head(4)
    entries = (call.key @ call.query[2]).double() / math.sqrt(call.query.shape[-1]) / float(temperature)
    exponentials = (entries - entries.max()).exp()
    weights, second = exponentials / exponentials.sum(), int(entries.argsort(descending=True)[1])
    facts = shown.facts
    assert facts["other"] == trace.query_tokens().written[second]
    expected = [
        entries[second],
        entries[second] - entries.max(),
        exponentials[second],
        exponentials.sum(),
        weights[second],
    ]
    assert [minus(facts[name]) for name in ("entry", "less", "exponential", "sum", "weight")] == pytest.approx(
        [float(one) for one in expected], abs=0.006
    )
    assert numpy.allclose(shown.figure.data[2].x, weights, atol=1e-6)
    assert float(facts["entropy"]) == pytest.approx(float(-(weights * weights.log()).sum()), abs=0.006)
    assert float(facts["most_entropy"]) == pytest.approx(math.log(9), abs=0.006)
    assert facts["total"] == "1.00"


def test_hotter_is_evener(scene: Scene) -> None:
    options = LESSONS["softmax"].control.options(scene)
    entropies = [float(LESSONS["softmax"].show(replace(scene, choice=one)).facts["entropy"]) for one in options]
    assert entropies == sorted(entropies) and entropies[0] < entropies[-1]


def test_an_output_is_the_weighted_sum_and_lies_among_the_values(scene: Scene) -> None:
    for at in map(int, LESSONS["mixture"].control.options(scene)):
        facts = LESSONS["mixture"].show(replace(scene, choice=str(at))).facts
        call = trained_head(scene, facts)
        value, row = call.value.double().numpy(), call.weights[at].double().numpy()
        centred = value - value.mean(axis=0)
        _, sizes, directions = numpy.linalg.svd(centred)
        points = centred @ directions[:2].T
        output = row @ points
        # Which way a direction points is nobody's to say.
        assert numpy.abs(pairs(facts["output"])) == pytest.approx(numpy.abs(output), abs=0.006)
        assert facts["where"] == "inside" and Delaunay(points).find_simplex(output) >= 0
        assert facts["share"] == f"{(sizes[:2] ** 2).sum() / (sizes**2).sum():.0%}".replace("%", " %")
        order = numpy.argsort(-row, kind="stable")[:3]
        terms = [term.split(" · ") for term in facts["sum"].removesuffix(" + …").split(" + ")]
        assert [float(weight) for weight, _ in terms] == pytest.approx(row[order].tolist(), abs=6e-3)
        assert [numpy.abs(pairs(point)) for _, point in terms] == [
            pytest.approx(numpy.abs(points[key]), abs=0.006) for key in order
        ]
        ask = LESSONS["mixture"].ask(replace(scene, choice=str(at)))
        (right,) = ask.right
        assert ask.options[right] == facts["output"].strip("()").split(", ")[0]
        places = [minus(option) for option in ask.options]
        assert places == sorted(places) and len(places) >= 3


def test_the_one_head_is_as_far_from_torchs_as_rounding(scene: Scene) -> None:
    trace = own_head(scene, 3, 5)
    assert trace.fidelity.ok and trace.fidelity.output_error < 1e-6
    assert trace.attention(0).query.shape[-1] == 3 and trace.output.shape == (7, 5)


def test_repeated_words_are_told_apart_where_one_is_chosen() -> None:
    assert offered(("a", "b", "a")) == {"0": "a₁", "1": "b", "2": "a₂"}
    assert (telling(("The", "bank")), telling(("a", "!")), telling(("::::", "word"))) == ("1", "0", "1")
    assert (signed(-0.0004), signed(-1.5, 1)) == ("0.000", "−1.5")


def test_a_cosine_stands_on_a_track_from_0_to_1(scene: Scene) -> None:
    ask = LESSONS["vectors"].ask(scene)
    assert max(ask.values) < 0.999
    assert ask.lengths == tuple(map(abs, ask.values))


def test_a_word_alone_is_not_compared_with_itself(run: RunText) -> None:
    ask = LESSONS["vectors"].ask(Scene("bank", run))
    assert ask.finding == "“bank” is the only word: there is nothing to compare it to"
    assert (ask.opening, ask.options, ask.written) == (None, ("none: it is the only word",), ("",))
    assert LESSONS["vectors"].ask(Scene("river bank", run)).options == ("bank",)


def test_a_title_calls_equal_words_as_the_bars_do(run: RunText) -> None:
    for name in ("why", "vectors", "plain"):
        ask = LESSONS[name].ask(Scene("the bank of the river was by the old bank", run, seed=3))
        for text in (ask.question, ask.finding):
            quoted = re.findall("“(.+?)”", text)
            assert quoted and all(one in (*ask.options, *quoted[:1]) for one in quoted)
            assert name == "vectors" or all(one in ask.options for one in quoted)
    assert (
        LESSONS["why"]
        .ask(Scene("the bank by the bank", run, choice="2"))
        .question.startswith("Which word does “bank₁” ")
    )


def test_another_word_keeps_the_head_of_the_first_lesson(scene: Scene) -> None:
    first, second = (LESSONS["why"].ask(replace(scene, choice=choice)).source for choice in ("2", "5"))
    assert first == second and first.endswith("layer 0, head 4: the head chosen for “bank”")


@pytest.mark.parametrize("head", [None, (0, 3), (3, 7), (4, 0), (5, 11)])
@pytest.mark.parametrize(
    ("text", "word"), [(TEXT, 2), (TEXT, 7), ("The bank flooded", 2), ("Banks lend", 1), ("Go", 1)]
)
def test_the_first_lesson_names_the_largest_weight_of_the_words_that_it_says(
    run: RunText, head: tuple[int, int] | None, text: str, word: int
) -> None:
    scene = Scene(text, run, choice=str(word), head=head)
    shown, trace = LESSONS["why"].show(scene), scene.trained()
    facts = shown.facts
    row = trace.weights(int(facts["layer"]), int(facts["head"]))[word]
    words = range(1, len(row) - 1)  # between [CLS] and [SEP]
    pools = {
        "the words that aren’t next to it": [key for key in words if abs(key - word) > 1],
        "the other words": [key for key in words if key != word],
        "the words": [word],
    }
    name, pool = next(one for one in pools.items() if one[1])
    most = max(row[key] for key in pool)
    # Of which words it is the largest is needless if it is the largest of all.
    assert facts["among"] == ("" if most == row.max() else f"of {name} ")
    assert facts["weight"] == f"{float(most):.2f}"
    assert f", {facts['among']}“{facts['word']}” looks most at “{facts['other']}”: {facts['weight']}" in shown.says
    assert head in (None, (int(facts["layer"]), int(facts["head"])))


def test_no_word_is_marked_as_asking_where_none_asks(scene: Scene) -> None:
    assert LESSONS["masks"].ask(scene).query is None


def test_an_option_from_right_to_left_is_quoted_as_it_stands() -> None:
    (option,) = offered(["גדול"]).values()
    assert short(option) == "“\u2068גדול\u2069”"
