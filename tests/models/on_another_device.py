"""Models that lie on another device than this machine's memory, as on a GPU: all that they are asked for comes out.

`test_another_device.py` runs these tests in a process of their own.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pandas
import pytest
import torch
from torch import Tensor

import attention_viz as av
from attention_viz.inputs import cost
from attention_viz.models.model import AttentionModel
from attention_viz.trace.memory import is_resting
from tests.another_device import ELSEWHERE, elsewhere
from tests.models.families import build, ids

TOY, TEXT, OTHER = "induction", "moon cheese frog ring moon cheese", "frog ring moon cheese frog ring"
LOGIT = av.Logit("frog", against="ring")


@pytest.fixture(scope="module", autouse=True)
def device() -> Iterator[None]:
    """The other device, for this file."""
    with elsewhere():
        yield


@pytest.fixture(scope="module")
def here() -> AttentionModel:
    return av.load(TOY)


@pytest.fixture(scope="module")
def there(device: None) -> AttentionModel:
    return av.load(TOY, device=ELSEWHERE, dtype="float32")


def same(found: object, expected: object) -> None:
    """The same numbers, wherever they lie."""
    if isinstance(expected, pandas.DataFrame):
        pandas.testing.assert_frame_equal(found, expected, rtol=1e-4, atol=1e-5)
    elif isinstance(expected, Tensor):
        assert isinstance(found, Tensor)
        torch.testing.assert_close(found.detach().cpu(), expected.detach(), rtol=1e-4, atol=1e-5)
    else:
        assert found == expected


def test_the_device_refuses_what_a_gpu_refuses() -> None:
    away = torch.ones(2, 3).to(ELSEWHERE)
    assert away.device.type == ELSEWHERE and (away + away).sum().item() == 12 and away.tolist() == [[1] * 3] * 2
    with pytest.raises(RuntimeError, match="same device"):
        away + torch.ones(2, 3)
    with pytest.raises(TypeError, match="numpy"):
        away.numpy()


def test_a_trace_lies_where_its_model_does_and_is_exact(here: AttentionModel, there: AttentionModel) -> None:
    trace, plain = there.trace(TEXT), here.trace(TEXT)
    assert trace.attention(0).query.device.type == trace.output.device.type == ELSEWHERE
    assert trace.provenance.versions["device"] == ELSEWHERE
    assert max(trace.fidelity.output_error, trace.fidelity.weight_error) <= 1e-5
    same(trace.weights(1, 2), plain.weights(1, 2))
    same(trace.output, plain.output)


ASKED: dict[str, Callable[[AttentionModel], object]] = {
    "a logit taken apart": lambda model: av.decompose(model, model.trace(TEXT), LOGIT).table,
    "a score taken apart": lambda model: av.decompose(model, model.trace(TEXT), av.Score(1, 0, 4, 1)).table,
    "what each layer would say": lambda model: av.logit_lens(model, model.trace(TEXT)),
    "what a head writes": lambda model: av.writes(model, model.trace(TEXT), 1, 0),
    "copying": lambda model: av.copying(model, [TEXT]),
    "effects": lambda model: av.effects(model, TEXT, LOGIT),
    "patching": lambda model: av.patch(model, TEXT, OTHER, LOGIT, confirm=2),
    "patching each position": lambda model: av.patch(model, TEXT, OTHER, LOGIT, by="position", confirm=0),
    "gradients": lambda model: av.gradient(model, TEXT),
    "relevance": lambda model: torch.stack(
        [part for one in model.trace(TEXT).relevance().layers.values() for part in one]
    ),
    "value zeroing": lambda model: torch.stack(model.trace(TEXT).value_zeroing()),
    "circuits": av.circuits,
    "compositions": av.compositions,
    "metrics": lambda model: av.head_table(model.trace(TEXT)),
    "sinks": lambda model: av.attention_sinks(model, model.trace(TEXT)),
    "norms": lambda model: av.norm_weighted(model, model.trace(TEXT), 1),
    "rollout": lambda model: av.rollout(model.trace(TEXT)),
    "findings": lambda model: [one.text for one in av.findings(model.trace(TEXT))],
    "roles": lambda model: av.roles(model.trace(TEXT)),
    "two traces": lambda model: av.head_divergences(model.trace(TEXT), model.trace(OTHER)),
    "the likeliest tokens": lambda model: model.candidates(model.trace(TEXT), 6, 3),
    "a text that goes on": lambda model: [*model.generate(TEXT, 3)][-1].output,
    "a text whose keys are thrown away": lambda model: [*model.generate(TEXT, 3, evict=av.Evict(1, 2))][-1].output,
    "a trace that goes on": lambda model: [*model.extend(model.trace(TEXT), 2)][-1].output,
    "a text with sampled tokens": lambda model: [*model.generate(TEXT, 3, sample=True, top_p=0.9, seed=1)][-1].output,
    "tokens from elsewhere": lambda model: model.follow(ids(9), prompt=5).output,
    "their chances": lambda model: model.chances(model.follow(ids(9), prompt=5)),
    "several at once": lambda model: torch.stack([one.output for one in model.trace_together([TEXT, OTHER])]),
}


@pytest.mark.parametrize("asked", ASKED)
def test_what_is_asked_of_a_model_is_what_it_is_here(asked: str, here: AttentionModel, there: AttentionModel) -> None:
    same(ASKED[asked](there), ASKED[asked](here))


@pytest.mark.parametrize("asked", ASKED)
def test_a_long_text_leaves_the_device_and_answers_as_here(
    asked: str, here: AttentionModel, there: AttentionModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = ASKED[asked](here)
    monkeypatch.setattr(cost, "LONG", 2)
    same(ASKED[asked](there), expected)


def test_a_long_text_is_in_a_file_and_exact(there: AttentionModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "LONG", 2)
    trace = there.trace(TEXT)
    call = trace.attention(1)
    assert all(is_resting(one) for one in (call.query, call.key, call.value))
    assert call.allowed is not None
    assert call.allowed.device.type == trace.output.device.type == "cpu"
    assert max(trace.fidelity.output_error, trace.fidelity.weight_error) <= 1e-5
    part = there.trace(TEXT, heads=[1], queries=2)
    same(part.weights(1, 1), trace.weights(1, 1)[-2:])
    assert part.fidelity.ok


EDITS: dict[str, Callable[[av.Trace], av.Edit]] = {
    "ablate": lambda trace: av.Ablate(0, 1),
    "ablate to the mean": lambda trace: av.Ablate(0, 1, to="mean"),
    "temperature": lambda trace: av.Temperature(2.0),
    "block": lambda trace: av.Block(3, 1),
    "replace": lambda trace: av.Replace(0, 1, torch.eye(7)),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_run_is_what_it_is_here(edit: str, here: AttentionModel, there: AttentionModel) -> None:
    runs = [model.trace(TEXT, edits=[EDITS[edit](model.trace(TEXT))]) for model in (there, here)]
    assert max(runs[0].fidelity.output_error, runs[0].fidelity.weight_error) <= 1e-5
    same(runs[0].output, runs[1].output)


def test_files_and_pictures_are_made_of_its_traces(there: AttentionModel, tmp_path: Path) -> None:
    trace = there.trace(TEXT)
    trace.save(tmp_path / "trace.safetensors")
    same(av.Trace.load(tmp_path / "trace.safetensors").weights(1, 0), trace.weights(1, 0).cpu())
    av.explore(trace).save_html(tmp_path / "trace.html")
    figures = [av.views.heatmap(trace, 1, 0), av.views.head_grid(trace)]
    assert all(figure.data for figure in figures)


@pytest.mark.parametrize("family", ["gpt2", "llama", "opt", "qwen3", "bert with a head"])
def test_other_families_are_exact_there_and_open(family: str) -> None:
    model = av.wrap(torch.nn.Module.to(build(family), ELSEWHERE))
    trace = model.trace_ids(ids(9))
    assert max(trace.fidelity.output_error, trace.fidelity.weight_error) <= 1e-5
    found = av.decompose(model, trace, av.Logit(7, 4)).table["contribution"].sum()
    assert found == pytest.approx(float(trace.output[4, 7]), abs=1e-4)
