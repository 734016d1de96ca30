"""What takes long says so before it begins, and how far it is; what doesn't says nothing."""

import pytest
import torch

import attention_viz as av
from attention_viz.errors import AttentionVizWarning
from attention_viz.inputs.cost import cost_of
from attention_viz.inputs.module_tree import ModuleTree
from attention_viz.trace import export
from attention_viz.trace.ahead import ahead, unsaid
from attention_viz.trace.files import write


def test_short_work_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    told = ahead("work", 5, 9.9, None)
    told(0.5)
    assert capsys.readouterr() == ("", "")
    heard: list[float] = []
    ahead("work", 5, 9.9, heard.append)(0.5)
    assert heard == [0.5]


def test_long_work_says_its_size_and_time_and_then_each_tenth(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 0.1, 3.0, 10.0])
    monkeypatch.setattr("attention_viz.trace.ahead.perf_counter", lambda: next(clock))
    with pytest.warns(AttentionVizWarning, match=r"^work: 2.5 GB, which takes about 40 seconds on two cores"):
        told = ahead("work", 2.5e9, 40, None, "bytes")
    for share in (0.01, 0.1, 0.15, 0.3, 1.0):
        told(share)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["work: 10 % done", "work: 30 % done, about 7 seconds to go", "work: 100 % done"]
    heard: list[float] = []
    with pytest.warns(AttentionVizWarning, match="12,000 rows, which takes about 3 minutes"):
        ahead("work", 12_000, 180, heard.append)(0.5)
    assert (heard, capsys.readouterr().err) == ([0.5], "")


def test_table_save_and_explorer_warn_by_size_before_they_begin(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    # As if this were a machine on which a row takes a second, and a byte.
    monkeypatch.setattr(export, "ROWS_A_SECOND", 1)
    monkeypatch.setattr(write, "BYTES_A_SECOND", 1)
    monkeypatch.setattr("attention_viz.explorer.page.WEIGHTS_A_SECOND", 1)
    trace, said = av.scratch("the moon is made of cheese"), []
    with pytest.warns(AttentionVizWarning, match=r"^Trace.table: 72 rows, which takes about 72 seconds"):
        trace.table(progress=said.append)
    with pytest.warns(AttentionVizWarning, match=r"^Trace.save: .* kB"):
        trace.save(f"{tmp_path}/x.safetensors", progress=said.append)
    with pytest.warns(AttentionVizWarning, match=r"^explore: 144 bytes, which takes about 72 seconds"):
        _ = av.explore(trace, progress=said.append).payload
    assert said[:2] == [0.5, 1.0] and said[-1] == 1.0
    assert sorted(said[2:-1]) == said[2:-1]


def test_a_run_and_its_metrics_say_so_too_and_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attention_viz.inputs.cost.OPERATIONS_A_SECOND", 1e4)
    monkeypatch.setattr("attention_viz.analysis.head_table.WEIGHTS_A_SECOND", 1)
    model, said = av.load("induction"), list[float]()
    assert isinstance(model, av.AttentionModel)
    with pytest.warns(AttentionVizWarning, match=r"^model.trace: .* kB, .* layers=\[…\] keeps some") as found:
        trace = model.trace("moon cheese frog ring moon cheese", progress=said.append)
    # The line that asked, not one of the package's own.
    assert found[0].filename == __file__
    assert said == [0.5, 1.0]
    with pytest.warns(AttentionVizWarning, match=r"^head_table: 336 weights, which takes about 6 minutes .* rows=…"):
        whole = av.head_table([trace], progress=said.append)
    assert said[-1] == 1.0 and len(whole) == 8

    def stop(share: float) -> None:
        raise InterruptedError(share)

    with pytest.warns(AttentionVizWarning), pytest.raises(InterruptedError, match=r"0\.5"):
        model.trace("moon cheese", progress=stop)
    with unsaid():
        model.trace("moon cheese")
        av.head_table(trace)


def test_what_a_run_takes_is_told_from_the_sizes_of_model_and_text() -> None:
    model = av.load("induction")
    assert isinstance(model, av.AttentionModel)
    hf_model, runner = model.hf_model, model.runner
    config = hf_model.config
    assert config.tie_word_embeddings in (True, False)
    for length in (10, 40):
        inputs = runner.inputs({"input_ids": torch.zeros(1, length, dtype=torch.long)})
        tree = ModuleTree(hf_model)
        size, seconds = cost_of(tree, inputs, 2)
        trace = model.trace_ids(torch.full((1, length), 5))
        assert size == pytest.approx(trace.nbytes, rel=0.2)
        least = 2 * length * config.num_hidden_layers * config.hidden_size**2 * 4 / 7.5e10
        assert least < seconds < 10 * least
    assert cost_of(tree, {}, 2) == (0, 0)
    assert cost_of(tree, inputs, 2, 1)[0] < size
    # Of a long text the logits are made when they are asked for.
    later = cost_of(tree, inputs, 2, words_later=True)
    assert size - later[0] == 40 * (config.vocab_size - config.hidden_size) * 4
    assert seconds - later[1] == pytest.approx(2 * 40 * config.vocab_size * config.hidden_size / 7.5e10)


def test_a_saved_file_is_about_as_large_as_is_said(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "BYTES_A_SECOND", 1)
    query = torch.randn(4, 60, 16)
    trace = av.Trace.from_qkv(query, query, query)
    for how, size in (({}, 4 * 4 * 60 * 16 * 4), ({"dtype": "float16"}, 2 * 4 * 4 * 60 * 16)):
        with pytest.warns(AttentionVizWarning, match=f"{size / 1000:.1f} kB"):
            trace.save(f"{tmp_path}/x.safetensors", **how)  # pyright: ignore[reportArgumentType]
