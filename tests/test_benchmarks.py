"""The benchmarks run, on little input and without a look at any time, and the page about them names each of them."""

import importlib
import itertools
from pathlib import Path

import pytest

from benchmarks import capture, size, walk
from benchmarks.clocked import POINTS
from benchmarks.measuring import Spread, ratios, take_turns
from benchmarks.passages import PASSAGES, cut
from benchmarks.registry import BENCHMARKS
from benchmarks.report import PAGE, Benchmark, Result, Table, sections, to_markdown, to_text, write
from tests.shipped import shipped


def test_the_page_has_a_part_for_every_benchmark_and_no_other():
    assert sections(PAGE.read_text(encoding="utf-8")) == list(BENCHMARKS)


def test_every_part_of_the_page_tells_how_it_was_measured_as_the_benchmark_does():
    page = PAGE.read_text(encoding="utf-8")
    for name, benchmark in BENCHMARKS.items():
        part = page.partition(f"<!-- {name}: begin")[2].partition(f"<!-- {name}: end -->")[0]
        assert f"## {benchmark.title}\n" in part
        assert benchmark.method in part


def test_the_page_names_no_folder_and_no_host_of_the_machine_it_was_measured_on():
    page = PAGE.read_text(encoding="utf-8")
    assert not [word for word in ("/home/", "/root/", "/work/", "/tmp/", "http://", "localhost") if word in page]


def test_ways_are_timed_in_turns_after_one_run_each_that_does_not_count():
    ran: list[str] = []
    ticks = itertools.count()
    ways = {name: (lambda name=name: ran.append(name)) for name in ("a", "b")}
    figures = take_turns(ways, lambda: (float(next(ticks)), 7.0), rounds=2, repeats=2)
    assert "".join(ran) == "ab" + "aabb" * 2
    assert figures == {"a": [(0.5, 0.0)] * 2, "b": [(0.5, 0.0)] * 2}


def test_a_ratio_is_taken_within_a_round_and_told_with_its_range():
    assert ratios([2, 9, 8], [1, 3, 2]) == Spread(3, 2, 4)
    assert ratios([2, 9, 8], [1, 3, 2]).write("{:.1f}") == "3.0 (2.0–4.0)"
    assert Spread.of([1, 1]).write() == "1.00"


def test_a_passage_is_cut_to_exactly_so_many_tokens():
    import attention_viz as av

    model = shipped("all-MiniLM-L6-v2")
    assert isinstance(model, av.AttentionModel) and model.tokenizer is not None
    for passage, tokens in zip(PASSAGES, (3, 16, 24, 64, 65, 128, 256, 511, 512, 512), strict=True):
        assert len(model.tokenizer(cut(model.tokenizer, passage, tokens))["input_ids"]) == tokens
    with pytest.raises(ValueError, match="9999 tokens were asked for"):
        cut(model.tokenizer, PASSAGES[0], 9999)


@pytest.mark.parametrize("benchmark", [capture.BENCHMARK, size.BENCHMARK], ids=lambda one: one.title)
def test_a_quick_run_gives_tables_whose_rows_fit_their_columns(benchmark: Benchmark):
    result = benchmark.run(True)
    assert result.tables
    for table in result.tables:
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.columns)}


def test_what_was_measured_replaces_what_the_page_said_before(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n<!-- x: begin, written by make bench -->\nold\n<!-- x: end -->\n\nmore\n")
    table = Table(("what", "ratio"), [("ours", "1.02"), ("another", "1.4")], "A table")
    text = to_markdown(Benchmark("X", "How.", lambda quick: Result([])), Result([table], ["A remark."]))
    for _ in range(2):
        write("x", text, page)
    written = page.read_text()
    assert written.startswith("# Page\n") and written.endswith("\nmore\n") and "old" not in written
    assert "## X\n\nHow.\n\nA table:\n\n| what | ratio |\n| --- | --: |\n| ours | 1.02 |" in written
    assert sections(written) == ["x"]
    assert to_text(table).splitlines()[-1] == "another  1.4"
    with pytest.raises(ValueError, match="no place for y"):
        write("y", text, page)


def test_the_points_at_which_a_start_is_clocked_are_in_the_code():
    for module, function in POINTS.items():
        assert function is None or callable(getattr(importlib.import_module(module), function))


def test_what_heads_are_compared_with_gives_the_same():
    import torch

    import attention_viz as av
    from attention_viz.analysis.metrics import metrics_for
    from attention_viz.trace.kind import Unit
    from benchmarks.heads import naive_flow, naive_links, naive_metrics, naive_norms

    model = shipped("all-MiniLM-L6-v2")
    trace = model.trace("The cat sat because the cat was tired.")
    tokens, weights = trace.query_tokens(), trace.attention(3).weights
    ids, special = torch.tensor(tokens.ids), torch.tensor(tokens.special)
    naive = [naive_metrics(head, ids, special) for head in weights]
    assert all(
        weight == pytest.approx(float(trace.weights(layer, head)[query, key]))
        for weight, layer, head, query, key in naive_links(trace, 5)
    )
    of_texts = [*metrics_for(Unit.WORD)]
    assert naive == [pytest.approx(list(row), abs=1e-5) for row in av.head_table(trace).loc[3, of_texts].to_numpy()]
    assert naive_flow(trace, 4, 2) == pytest.approx(float(av.flow(trace, layers=[5], queries=[4])[0, 0, 2]), abs=1e-6)
    joining = model.projections(3)["output"].weight.detach().unflatten(0, (12, -1))
    expected = naive_norms(weights, trace.attention(3).value, joining)
    torch.testing.assert_close(av.norm_weighted(model, trace, 3), expected, atol=1e-5, rtol=1e-4)


def test_a_sentence_is_followed_to_the_explorer_and_a_click_to_the_downloads():
    typed, clicked = ([file.removeprefix("attention_viz/") for file, _ in way.visits] for way in walk.follow())
    assert typed[-1].startswith("explorer/")
    assert {"serving/runs.py", "models/model.py", "trace/trace_data.py", "explorer/payload.py"} < set(typed)
    assert "ui/parts/downloads.py" not in typed
    assert {"ui/parts/explorer.py", "ui/parts/selection.py", "ui/parts/downloads.py"} < set(clicked)
    assert "models/model.py" not in clicked
