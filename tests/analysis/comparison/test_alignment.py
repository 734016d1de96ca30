"""Words that replace each other, and rows that can't differ: what is compared with what in two texts that differ."""

from collections.abc import Sequence

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import attention_viz as av
from attention_viz.analysis.comparison.align import AlignedAxis, align
from attention_viz.analysis.comparison.head_divergences import divergences
from attention_viz.models.model import AttentionModel
from attention_viz.trace.trace import Trace
from tests.analysis.comparison.test_compare import tokens, with_weights

RIVER, CITY = ("the", "bank", "of", "the", "river", "was"), ("the", "bank", "of", "the", "city", "was")


def looking(at: Sequence[int]) -> list[list[float]]:
    """Weights of which each row looks at one key."""
    return [[float(key == one) for key in range(len(at))] for one in at]


def decoder(seed: int) -> AttentionModel:
    torch.manual_seed(seed)
    sizes = {"vocab_size": 50, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2}
    return av.wrap(LlamaForCausalLM(LlamaConfig(**sizes, num_attention_heads=2, initializer_range=0.5)).eval())


@pytest.fixture(scope="module")
def tiny() -> AttentionModel:
    return decoder(0)


def ids(model: AttentionModel, *numbers: int) -> Trace:
    return model.trace_ids(torch.tensor([numbers]))


def test_a_head_that_looks_one_back_is_the_same_in_texts_of_one_differing_word() -> None:
    back = looking([0, 0, 1, 2, 3, 4])
    one, other = with_weights(back, RIVER), with_weights(back, CITY)
    assert av.compare(one, other, 0, 0).mean == 0
    # By the same tokens alone "was" looks at one that the other text lacks.
    assert av.compare(one, other, 0, 0, align="token").divergence.nan_to_num().tolist() == [0, 0, 0, 0, 0, 0, 1]


def test_a_head_that_looks_at_the_changed_word_in_one_text_only_is_found() -> None:
    one = with_weights(looking([0, 0, 1, 2, 3, 4]), RIVER)
    other = with_weights(looking([0, 0, 1, 2, 3, 1]), CITY)
    found = av.compare(one, other, 0, 0)
    assert found.divergence.tolist() == [0, 0, 0, 0, 0, 1]
    assert found.queries.names[4] == "river→city" and found.queries.substituted == (4,)
    assert found.difference[5].tolist() == [0, 1, 0, 0, -1, 0]
    row = found.table().query("query == 5 and key == 4").iloc[0]
    assert (row["key_token"], row["other_key_token"], row["key_written"]) == ("river", "city", "river→city")


def test_a_table_writes_each_axis_once_whatever_the_number_of_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    names, asked = AlignedAxis.names, list[AlignedAxis]()

    def counted(axis: AlignedAxis) -> tuple[str, ...]:
        asked.append(axis)
        assert names.fget is not None
        return names.fget(axis)

    monkeypatch.setattr(AlignedAxis, "names", property(counted))
    back = looking([0, 0, 1, 2, 3, 4])
    found = av.compare(with_weights(back, RIVER), with_weights(back, (*CITY[:5], "now")), 0, 0)
    asked.clear()
    table = found.table()
    assert asked == [found.queries, found.keys]
    cells = [(query, key) for query in range(6) for key in range(6)]
    assert list(zip(table["query"], table["key"], strict=True)) == cells
    for column, axis, written in (
        *(("query_token", 0, found.queries.labels), ("key_token", 1, found.keys.labels)),
        *(("other_query_token", 0, found.queries.other_labels), ("other_key_token", 1, found.keys.other_labels)),
        *(("query_written", 0, found.queries.names), ("key_written", 1, found.keys.names)),
    ):
        assert list(table[column]) == [written[cell[axis]] for cell in cells]


def test_special_tokens_and_padding_replace_no_words() -> None:
    words = tokens("a", "b"), tokens("a", "[SEP]", special=(False, True))
    assert align(*words).substituted == () and len(align(*words)) == 3
    filled = tokens("a", "b"), tokens("a", "c", padding=(False, True))
    assert align(*filled).substituted == ()
    assert align(tokens("[CLS]", special=(True,)), tokens("<s>", special=(True,))).substituted == (0,)


def test_another_way_to_align_is_refused_by_name() -> None:
    with pytest.raises(av.ShapeError, match="'words'; choose position, token"):
        align(tokens("a"), tokens("b"), "words")  # pyright: ignore[reportArgumentType] -- what is refused


def test_rows_of_a_decoder_that_can_not_differ_are_left_out_and_counted(tiny: AttentionModel) -> None:
    one, other = ids(tiny, 1, 2, 3, 4, 5), ids(tiny, 1, 2, 9, 4, 5)
    found = av.compare(one, other, 1, 0)
    assert found.shared == (0, 1) and found.rows == 3
    assert found.compared == (False, False, True, True, True)
    assert found.mean == pytest.approx(float(found.divergence[2:].mean()))
    table = av.head_divergences(one, other)
    assert set(table["rows"]) == {3} and table.attrs == {"align": "position", "shared": 2}
    assert table["divergence"].is_monotonic_decreasing and len(table) == 4
    for layer, head in table.index:
        assert table.loc[(layer, head), "divergence"] == pytest.approx(av.compare(one, other, layer, head).mean)
    # With one head of the first run, only the same head of the second can't differ there.
    fixed = av.head_divergences(one, other, head=(1, 0))
    assert fixed.loc[(1, 0), "rows"] == 3 and set(fixed.drop((1, 0))["rows"]) == {5}
    for layer, head in fixed.index:
        pair = av.compare(one, other, 1, 0, other_layer=layer, other_head=head)
        assert fixed.loc[(layer, head), "divergence"] == pytest.approx(pair.mean, abs=1e-6)
        assert fixed.loc[(layer, head), "rows"] == pair.rows


def test_rows_that_may_differ_are_all_counted(tiny: AttentionModel) -> None:
    one, other = ids(tiny, 1, 2, 3), ids(tiny, 1, 2, 9)
    assert av.compare(one, other, 0, 0).shared == (0, 1)
    # The same text: nothing differs, and that is what is told.
    assert av.compare(one, ids(tiny, 1, 2, 3), 0, 0).rows == 3
    # Another head, edits, another model of the same name.
    assert av.compare(one, other, 0, 0, other_head=1).shared == ()
    edited = tiny.trace_ids(torch.tensor([[1, 2, 9]]), edits=[av.Temperature(2.0, layer=0)])
    assert av.compare(one, edited, 0, 0).shared == av.compare(edited, edited, 0, 0).shared == ()
    stranger = decoder(1)
    assert stranger.name == tiny.name
    assert av.compare(one, ids(stranger, 1, 2, 9), 0, 0).shared == ()
    pair = [tiny.trace_ids(torch.tensor([numbers]), edits=[av.Ablate(0, 1)]) for numbers in ([1, 2, 3], [1, 2, 9])]
    assert av.compare(pair[0], pair[1], 0, 0).shared == ()


def test_a_beginning_that_is_aligned_with_something_else_may_differ(tiny: AttentionModel) -> None:
    one, other = ids(tiny, 1, 2, 3), ids(tiny, 1, 7, 1, 2, 3)
    found = av.compare(one, other, 0, 0)
    same = [place for place in found.queries.both if found.queries.one[place] == found.queries.other[place] == 0]
    assert found.shared == tuple(same)


def test_heads_of_an_encoder_are_compared_in_all_their_rows(minilm: AttentionModel) -> None:
    one, other = minilm.trace("The bank of the river"), minilm.trace("The bank of the city")
    assert set(av.head_divergences(one, other)["rows"]) == {7}
    first = av.head_divergences(one, other).iloc[0]
    assert float(first["divergence"]) == pytest.approx(float(divergences(one, other).max()))
