"""A long text on the server: which pages read how much of it, and what the browser is handed of it."""

import gc
import weakref

import pytest

from attention_viz.serving import runs
from attention_viz.serving.cache import SharedCache
from attention_viz.serving.run import Request
from attention_viz.serving.runs import has_run, lent, run_request
from attention_viz.serving.settings import Settings

TEXT = "rain falls on the old stone bridge while the river runs below it " * 3


@pytest.fixture
def request_() -> Request:
    return Request(model="induction", text=TEXT)


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "SETTINGS", Settings(longest_text=24, longest_study=9))
    monkeypatch.setattr(runs, "TRACES", SharedCache(10**9, lambda run: run.trace.nbytes))


def test_a_page_that_shows_a_head_at_a_time_reads_more_than_one_that_takes_all(request_: Request) -> None:
    study, long = run_request(request_, longest=9), run_request(request_, longest=24)
    assert (len(study.trace.query_tokens()), len(long.trace.query_tokens())) == (9, 24)
    assert study.fit is not None and study.fit.cut and study.fit.limit == 9


def test_a_text_that_both_read_whole_runs_once() -> None:
    request = Request(model="induction", text="rain falls")
    assert not has_run(request, longest=9)
    assert run_request(request, longest=9) is run_request(request, longest=24)
    assert has_run(request) and has_run(request, longest=9)


def test_a_text_cut_for_one_page_is_not_taken_for_the_run_of_another(request_: Request) -> None:
    run_request(request_, longest=9)
    assert not has_run(request_)
    assert has_run(request_, longest=9)


def test_a_text_read_whole_is_not_taken_for_the_run_of_a_page_that_cuts_it(request_: Request) -> None:
    run_request(request_, longest=24)
    assert has_run(request_) and not has_run(request_, longest=9)


def test_a_file_that_is_offered_keeps_no_run_that_had_to_go(request_: Request) -> None:
    found = run_request(request_, longest=24)
    before, weights, later = weakref.ref(found.trace), found.trace.weights(0, 0).clone(), lent(found, request_, 24)
    assert later() is found.trace
    del found
    runs.TRACES.discard(lambda _: True)
    gc.collect()
    assert before() is None
    again = later()
    assert len(again.query_tokens()) == 24 and again.weights(0, 0).equal(weights)
