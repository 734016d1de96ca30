"""One door before every forward, and who waits there."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.modules.module import register_module_forward_hook

import attention_viz as av
from attention_viz.models.model import AttentionModel
from attention_viz.recording import fidelity
from attention_viz.recording.as_written import AsWritten
from attention_viz.serving import door, runs
from attention_viz.serving.cache import SharedCache
from attention_viz.serving.door import Door
from attention_viz.serving.models import ModelFiles, open_source
from attention_viz.serving.run import Request
from attention_viz.serving.verifying import verify
from attention_viz.trace.trace import Fidelity
from tests.models.families import build, ids
from tests.models.loading.test_load_folder import word_tokenizer
from tests.serving.test_verifying import drawn_with

TEXT = "the bank of the river"


class Counting(Door):
    """A door that notes how many were inside at once, and how often it was entered from outside."""

    def __init__(self, places: int) -> None:
        super().__init__(places)
        self.inside, self.most, self.entries = 0, 0, 0
        self._counting = threading.Lock()

    def __enter__(self) -> None:
        super().__enter__()
        with self._counting:
            self.inside += 1
            self.most, self.entries = max(self.most, self.inside), self.entries + 1

    def __exit__(self, *error: Any) -> None:
        with self._counting:
            self.inside -= 1
        super().__exit__(*error)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Counting, AttentionModel, list[bool]]]:
    """A model behind a door with one place, which notes of each of its forwards whether that place was taken."""
    counting, forwards = Counting(1), list[bool]()
    hf_model = build("bert with a head")
    model = av.wrap(hf_model, word_tokenizer()).behind(counting)

    def note(module: torch.nn.Module, *_: object) -> None:
        if isinstance(module, type(hf_model.bert.encoder)):  # the model's own, and that of a twin
            forwards.append(counting.inside > 0)

    heard = register_module_forward_hook(note)
    monkeypatch.setattr(runs, "FORWARDS", counting)
    models: SharedCache[str, Any] = SharedCache(10**9, lambda found: found.nbytes)
    models.get("watched", lambda: model)
    monkeypatch.setattr(runs, "MODELS", models)
    traces: SharedCache[Any, runs.Run] = SharedCache(10**9, lambda run: run.trace.nbytes)
    monkeypatch.setattr(runs, "TRACES", traces)
    yield counting, model, forwards
    heard.remove()


def test_a_long_text_takes_all_cores_while_it_is_alone_and_every_other_its_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(door, "cores", lambda: 4)
    shared, found = Door(2, door.share_cores), dict[str, int]()
    monkeypatch.setattr(door, "FORWARDS", shared)

    def enter(name: str, tokens: int, then: Callable[[], None] = lambda: None) -> None:
        with door.long_text(tokens), shared:
            found[name] = torch.get_num_threads()
            then()
            found[f"{name}, still"] = torch.get_num_threads()
        found[f"{name}, after"] = torch.get_num_threads()

    def in_a_thread(*what: Any) -> None:
        thread = threading.Thread(target=enter, args=what)
        thread.start()
        thread.join()

    before = torch.get_num_threads()
    in_a_thread("short", 14)
    in_a_thread("long", 8_000, lambda: in_a_thread("beside", 8_000))
    # torch keeps the number for each thread; those that begin later take what was set last.
    assert torch.get_num_threads() == before
    torch.set_num_threads(before)
    assert found == {
        **{"short": 2, "short, still": 2, "short, after": 2},
        **{"long": 4, "long, still": 4, "long, after": 2},
        **{"beside": 2, "beside, still": 2, "beside, after": 2},
    }


def test_whoever_is_inside_enters_again_and_the_place_comes_back_once() -> None:
    one = Door(1)
    with one, one:
        pass
    entered = threading.Event()

    def enter() -> None:
        with one:
            entered.set()

    with one:
        other = threading.Thread(target=enter)
        other.start()
        assert not entered.wait(0.2)
    other.join(10)
    assert entered.is_set()


def test_a_place_comes_back_after_an_error() -> None:
    one = Door(1)
    for _ in range(3):
        with pytest.raises(ValueError, match="no"), one:
            raise ValueError("no")


@pytest.mark.parametrize(
    "use",
    [
        lambda drawn, _model: verify(drawn),
        lambda drawn, _model: drawn.trace.whole_layers,
        lambda drawn, model: av.gradient(model, drawn.trace),
        lambda drawn, model: runs.ask(Request("watched"), lambda asked: asked.verify(TEXT)),
        lambda drawn, model: model.trace_ids(model.tokenizer(TEXT, return_tensors="pt")["input_ids"]),
    ],
    ids=["fidelity", "whole layers", "gradients", "whatever is asked", "ids"],
)
def test_every_forward_goes_through_the_door(
    use: Callable[[runs.Run, AttentionModel], object], watched: tuple[Counting, AttentionModel, list[bool]]
) -> None:
    counting, model, forwards = watched
    run = runs.run_request(Request("watched", TEXT))
    assert forwards == [True]
    use(run, model)
    assert len(forwards) > 1
    assert all(forwards)
    assert counting.most >= 1
    assert counting.inside == 0


@pytest.mark.parametrize("family", ["bert with a head", "llama"])
def test_so_do_those_that_compare_a_long_text_part_by_part(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fidelity, "MOST_WHOLE", 4)
    monkeypatch.setattr(fidelity, "FEWEST_ROWS", 2)
    counting, forwards = Counting(1), list[bool]()
    model = av.wrap(build(family)).behind(counting)

    def note(module: torch.nn.Module, *_: object) -> None:
        if isinstance(module, type(model.hf_model)):
            forwards.append(counting.inside > 0)

    heard = register_module_forward_hook(note)
    try:
        assert model.trace_ids(ids(12)).fidelity.rows == 2
    finally:
        heard.remove()
    assert len(forwards) > 1 and all(forwards)


def test_a_batch_of_what_ifs_goes_through_the_door(watched: tuple[Counting, AttentionModel, list[bool]]) -> None:
    from attention_viz.recording.batches.batched_edits import try_each

    _, model, forwards = watched
    before = runs.run_request(Request("watched", TEXT)).trace
    tries = [[av.Ablate(0, head)] for head in range(2)]
    assert len(runs.ask(Request("watched"), lambda asked: try_each(model, before, tries))) == 2
    assert len(forwards) > 1 and all(forwards)


def test_two_who_read_one_trace_while_a_third_completes_it_do_not_block_each_other(
    watched: tuple[Counting, AttentionModel, list[bool]],
) -> None:
    run = runs.run_request(Request("watched", TEXT))
    start = threading.Barrier(4)

    def read() -> object:
        start.wait(10)
        return runs.ask(Request("watched"), lambda _model: (run.trace.whole_layers, run.trace.fidelity))

    def complete() -> object:
        start.wait(10)
        return run.trace.whole_layers

    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(work) for work in (read, read, complete, complete)]
        assert all(future.result(60) for future in futures)


def test_only_so_many_run_at_once(
    watched: tuple[Counting, AttentionModel, list[bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once, most = 0, 0
    lock = threading.Lock()
    _, model, _ = watched
    own = model.hf_model.forward

    def counted(*given: Any, **named: Any) -> Any:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        try:
            time.sleep(0.05)
            return own(*given, **named)
        finally:
            with lock:
                at_once -= 1

    monkeypatch.setattr(model.hf_model, "forward", counted)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda number: runs.run_request(Request("watched", f"{TEXT} {'bank ' * number}")), range(6)))
    assert most == 1


def test_a_batch_of_two_heeds_special_tokens(watched: tuple[Counting, AttentionModel, list[bool]]) -> None:
    with_them = runs.run_request(Request("watched", "the bank"), beside=TEXT).trace
    without = runs.run_request(Request("watched", "the bank", special_tokens=False), beside=TEXT).trace
    if not watched[1].facts.adds_special_tokens:
        pytest.skip("this tokenizer adds none")
    assert len(with_them.query_tokens()) == len(without.query_tokens()) + 2
    assert not without.provenance.special_tokens


def test_every_model_that_the_server_opens_stands_behind_its_one_door(tmp_path: Path) -> None:
    assert runs.FORWARDS is door.FORWARDS
    build("bert with a head").save_pretrained(tmp_path)
    word_tokenizer().save_pretrained(tmp_path)
    for source in (ModelFiles("lists", None, 0), ModelFiles("own", tmp_path, 0)):
        model = open_source(source)
        assert isinstance(model, AttentionModel) and isinstance(model.runner.door, AsWritten)
        assert model.runner.door.door is door.FORWARDS


def test_whoever_comes_hears_how_many_are_first_and_of_nobody_where_a_place_is_free() -> None:
    door, inside, leave = Door(2), threading.Semaphore(0), threading.Event()

    def visit() -> None:
        with door, door:  # entered again without another place
            inside.release()
            leave.wait(timeout=60)

    visitors = [threading.Thread(target=visit) for _ in range(3)]
    visitors[0].start()
    assert inside.acquire(timeout=60) and door.ahead == 0
    visitors[1].start()
    assert inside.acquire(timeout=60) and door.ahead == 2
    visitors[2].start()
    until = time.monotonic() + 60
    while door.ahead < 3 and time.monotonic() < until:
        time.sleep(0.01)
    assert door.ahead == 3
    leave.set()
    for visitor in visitors:
        visitor.join()
    assert door.ahead == 0


def test_whoever_waits_hears_again_how_many_are_first_and_goes_in_when_it_is_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(door, "PAUSE", 0.01)
    one, told, order = Door(1), list[list[int]]([[], []]), list[int]()

    def visit(number: int) -> None:
        with one.telling(told[number].append), one:
            order.append(number)

    visitors = [threading.Thread(target=visit, args=(number,)) for number in range(2)]
    with one:
        for count, visitor in enumerate(visitors, start=2):
            visitor.start()
            until = time.monotonic() + 60
            while (one.ahead < count or len(told[count - 2]) < 2) and time.monotonic() < until:
                time.sleep(0.01)
    for visitor in visitors:
        visitor.join(60)
    assert order == [0, 1]
    assert set(told[0]) == {1} and told[1][0] == 2 and len(told[1]) >= 2


def test_whoever_came_first_goes_first_through_all_stages() -> None:
    one, order = Door(1), list[tuple[int, str]]()
    turns = [door.new_turn() for _ in range(3)]

    def wait_for(ahead: int) -> None:
        until = time.monotonic() + 60
        while one.ahead < ahead and time.monotonic() < until:
            time.sleep(0.01)

    def visit(kept: int, *stages: str) -> None:
        door.keep_turn(kept)
        for stage in stages:
            with one:
                order.append((kept, stage))
                if (kept, stage) == (turns[1], "run") and (turns[0], "comparison") not in order:
                    wait_for(3)  # this one, the first one again, and the third

    with one:  # as a fourth, who came before them
        visitors = [threading.Thread(target=visit, args=(kept, "run", "comparison")) for kept in reversed(turns)]
        for waiting, visitor in enumerate(visitors, start=1):
            visitor.start()
            wait_for(waiting + 1)
    for visitor in visitors:
        visitor.join(60)
    # Whoever has an earlier turn is let in first, and stands before the later ones when it comes again at once.
    assert [kept for kept, stage in order if stage == "run"] == turns
    assert order.index((turns[0], "comparison")) < order.index((turns[2], "run"))


def test_a_turn_is_the_threads_own_and_a_comparison_takes_that_of_whoever_asked_for_it() -> None:
    heard = list[int | None]()

    def measure() -> Fidelity:
        heard.append(door.turn())
        return Fidelity(0.0, 0.0, 1e-5, "nothing")

    def visit() -> None:
        door.keep_turn(7)
        verify(drawn_with(measure))

    visitor = threading.Thread(target=visit)
    visitor.start()
    visitor.join(60)
    assert heard == [7]
    assert door.turn() is None


def test_whoever_left_while_waiting_is_before_nobody() -> None:
    one = Door(1)

    def leave(_ahead: int) -> None:
        raise ConnectionError("the visitor has left")

    def visit() -> None:
        with pytest.raises(ConnectionError), one.telling(leave), one:
            pass

    with one:
        visitor = threading.Thread(target=visit)
        visitor.start()
        visitor.join(60)
        assert one.ahead == 1
    assert one.ahead == 0
    with one:
        pass
