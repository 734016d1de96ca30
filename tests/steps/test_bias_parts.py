"""What a bias is made of, against DeBERTa's own arithmetic, ALiBi's slopes and T5's table; parts have to sum to it."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import attention_viz as av
from attention_viz.recording import tracer
from attention_viz.steps.arithmetic import open_cell
from attention_viz.steps.head import open_head
from attention_viz.steps.steps import STEPS, explanation_of, step_tensors
from tests.models.families import ids, wrapped
from tests.models.own_code import build_own, wrapped_own

TWO = ("content to position", "position to content")


def by_hand(layer: int) -> tuple[Tensor, Tensor]:
    """DeBERTa-v2's two terms as its paper has them: what a query says of a distance, what a key does of the same."""
    model = build_own("deberta-v2, relative")
    body, kept = model.deberta, list[Tensor]()
    attend = body.encoder.layer[layer].attention.self
    attend.register_forward_pre_hook(lambda _module, args: kept.append(args[0]))
    with torch.no_grad():
        body(input_ids=ids(11))
        table = body.encoder.get_rel_embedding()
        split = [attend.transpose_for_scores(part(kept[0]), 5) for part in (attend.query_proj, attend.key_proj)]
        of_place = [attend.transpose_for_scores(part(table[None]), 5) for part in (attend.query_proj, attend.key_proj)]
        scale = (4 * 3) ** 0.5
        span = table.shape[0] // 2
        from transformers.models.deberta_v2.modeling_deberta_v2 import build_relative_position

        distance = build_relative_position(torch.zeros(1, 11, 1), torch.zeros(1, 11, 1), 8, 53)[0]
        places = (distance + span).clamp(0, 2 * span - 1).long()
        query, key = split
        content = torch.stack([(query[:, i, None] * of_place[1][:, places[i]]).sum(-1) for i in range(11)], dim=1)
        position = torch.stack([(key[:, j, None] * of_place[0][:, places[:, j]]).sum(-1) for j in range(11)], dim=2)
    return content / scale, position / scale


@pytest.mark.parametrize("layer", [0, 2])
def test_debertas_parts_are_those_of_its_paper(layer: int) -> None:
    parts = wrapped_own("deberta-v2, relative").trace_ids(ids(11)).layer(layer).bias_parts
    assert tuple(parts) == TWO
    for found, expected in zip(parts.values(), by_hand(layer), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("padded", [0, 3])
@pytest.mark.parametrize(
    ("family", "names"),
    [
        ("deberta, relative", TWO),
        ("deberta-v2, relative", TWO),
        ("xlnet", TWO[:1]),
        ("bloom", ("ALiBi",)),
        ("falcon, alibi", ("ALiBi",)),
        ("mpt", ("ALiBi",)),
        ("mpnet", ("relative positions",)),
        ("gptj", ()),
    ],
)
def test_the_parts_sum_to_the_bias_that_ran(family: str, names: tuple[str, ...], padded: int) -> None:
    mask = torch.ones(1, 11, dtype=torch.long)
    mask[:, :padded] = 0
    trace = wrapped_own(family).trace_ids(ids(11), mask)
    for layer in trace.layer_numbers():
        found = trace.layer(layer)
        assert tuple(found.bias_parts) == names
        opened = open_head(trace, layer, 2)
        assert tuple(opened.bias_parts) == names
        if names:
            bias = found.attention.bias
            assert bias is not None
            live = torch.ones(bias.shape, dtype=torch.bool)
            if found.attention.allowed is not None:
                live = found.attention.allowed.expand(found.attention.shape)
            total = sum(part.expand(found.attention.shape) for part in found.bias_parts.values())
            torch.testing.assert_close(total[live], bias.expand(found.attention.shape)[live], rtol=1e-4, atol=1e-5)


def test_t5s_table_by_distance_is_named_where_the_interface_hands_it_over() -> None:
    layer = wrapped("t5 encoder").trace_ids(ids(11)).layer(1)
    assert tuple(layer.bias_parts) == ("relative positions",)


def test_a_cell_is_the_score_and_each_part() -> None:
    trace = wrapped_own("deberta-v2, relative").trace_ids(ids(11))
    opened = open_head(trace, 1, 2)
    cell = open_cell(opened, "biased", 5, 3)
    assert [term.label for term in cell.terms] == ["before", *TWO]
    assert cell.computed == pytest.approx(cell.total, abs=1e-5)
    assert "(content to position), and" in explanation_of(opened, "biased")
    assert "content to position from" in STEPS["biased"].change(opened)
    assert {"bias_content_to_position", "bias_position_to_content"} <= set(step_tensors(opened))


def test_an_edited_run_s_parts_are_of_that_run() -> None:
    """What comes before a layer is another, so its contents are; a head whose weights are given has no parts."""
    model, edit = wrapped_own("deberta-v2, relative"), av.Ablate(0, 2)
    plain, edited = (model.trace_ids(ids(11), edits=edits).layer(1) for edits in ((), (edit,)))
    name = TWO[0]
    assert not torch.allclose(plain.bias_parts[name], edited.bias_parts[name], atol=1e-3)
    torch.testing.assert_close(sum(edited.bias_parts.values()), edited.attention.bias, rtol=1e-4, atol=1e-5)


def test_parts_that_do_not_sum_to_the_bias_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tracer.bias_parts

    def half(*run: Any) -> dict[int, dict[str, Tensor]]:
        return {call: {name: part / 2 for name, part in parts.items()} for call, parts in whole(*run).items()}

    monkeypatch.setattr(tracer, "bias_parts", half)
    trace = wrapped_own("deberta-v2, relative").trace_ids(ids(11))
    opened = open_head(trace, 1, 2)
    assert opened.entry.bias_parts
    assert opened.bias_parts == {}
    assert [term.label for term in open_cell(opened, "biased", 5, 3).terms] == ["before", "bias"]


def test_a_file_keeps_the_parts(tmp_path: Path) -> None:
    trace = wrapped_own("deberta-v2, relative").trace_ids(ids(11))
    file = tmp_path / "a.safetensors"
    trace.save(file)
    loaded = av.Trace.load(file).layer(1)
    for name, part in trace.layer(1).bias_parts.items():
        torch.testing.assert_close(loaded.bias_parts[name], part, rtol=0, atol=0)
