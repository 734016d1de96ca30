"""The model that the app opens on loads, and its example runs, when the server starts, with nobody there yet."""

import gc
import logging
from typing import Any

import pytest

from attention_viz.errors import AttentionVizError
from attention_viz.protocol.model import Model
from attention_viz.serving import preload, runs
from attention_viz.serving.cache import SharedCache
from attention_viz.serving.run import Request
from attention_viz.serving.runs import has_run, is_loaded, run_request
from scripts import serve


def test_a_model_is_loaded_and_its_text_runs_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "MODELS", SharedCache[str, Model](10**9, lambda model: model.nbytes))
    monkeypatch.setattr(runs, "TRACES", SharedCache[Any, runs.Run](10**9, lambda _: 1))
    request = Request("lists", "copy c a f :")
    assert not is_loaded("lists")
    warmed = list[runs.Run]()
    preloading = preload.begin(request, warmed.append)
    preloading.join()
    assert preloading.state == "ready"
    assert is_loaded("lists")
    assert has_run(request)
    assert warmed == [run_request(request)]
    assert "fidelity" in vars(run_request(request).trace)  # compared, too


def test_garbage_is_collected_again_once_all_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def broken(_: str) -> None:
        seen.append(gc.isenabled())
        raise AttentionVizError("no more")

    assert gc.isenabled()
    monkeypatch.setattr(preload.importlib, "import_module", broken)
    preload.begin(Request("lists", "copy c a f :")).join()
    assert seen == [False]
    assert gc.isenabled()


def test_one_that_can_t_be_had_is_a_line_in_the_log_and_no_more(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        preloading = preload.begin(Request("../nowhere"))
        preloading.join()
    assert preloading.state == "failed"
    assert "Could not preload ../nowhere" in caplog.text


def test_the_server_begins_as_the_process_that_loads_its_first_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(command: list[str], **_: object) -> None:
        raise InterruptedError(command)

    monkeypatch.setattr("attention_viz.cli.server.subprocess.Popen", start)
    with pytest.raises(InterruptedError, match=r"'-m', 'attention_viz\.ui\.process', 'run', 'app\.py'"):
        serve.start(8501)
