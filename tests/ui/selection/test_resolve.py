"""What follows from a run for what nobody chose."""

import pytest

from attention_viz.ui.selection import SHARED, Clicked, Filled, PageOpened, Picked, Ran, Selection, resolve, update
from tests.ui.selection.happenings import Best

STREAMS = {"encoder": (7, 7), "decoder": (3, 3), "cross": (3, 7)}


def begun(**address: str) -> Selection:
    return update(Selection(), PageOpened(address))


def ran(best: Best | None, streams: dict[str, tuple[int, int]] | None = None) -> Ran:
    return Ran(streams or {"encoder": (7, 7)}, lambda: best)


def test_a_head_that_nobody_chose_becomes_the_best_findings_and_stays_free() -> None:
    found = resolve(begun(), ran(Best(3, 7, "encoder")))
    assert (found.shared.layer, found.shared.head, found.shared.stream) == (3, 7, None)
    assert found.head_is_free
    # The next text has its own.
    found = resolve(update(found, Picked(SHARED, {"text": "Another."})), ran(Best(1, 2, "encoder")))
    assert (found.shared.layer, found.shared.head) == (1, 2)
    assert resolve(found, ran(None)) == found


@pytest.mark.parametrize("chosen", [Picked(SHARED, {"head": 5}), Clicked(2, 5), PageOpened({"head": "5"}, again=True)])
def test_a_head_that_a_person_or_a_link_chose_stays(chosen: Picked | Clicked | PageOpened) -> None:
    selection = update(begun(), chosen)
    assert resolve(selection, ran(Best(3, 7, "encoder"))).parts == selection.parts


def test_a_free_head_waits_while_a_pair_of_it_is_chosen() -> None:
    selection = begun()
    pair = update(selection, Clicked(selection.shared.layer, selection.shared.head, None, (6, 6)))
    assert resolve(pair, ran(Best(3, 7, "encoder"))).parts == pair.parts
    # A text without that pair opens on its own finding.
    found = resolve(pair, ran(Best(3, 7, "encoder"), {"encoder": (6, 6)}))
    assert (found.shared.query, found.shared.key) == (None, None)
    assert (found.shared.layer, found.shared.head) == (3, 7)


@pytest.mark.parametrize("half", [{"query": "6"}, {"key": "6"}])
def test_half_a_pair_keeps_the_stream_that_it_is_in(half: dict[str, str]) -> None:
    selection = begun(model="translation", **half)
    found = resolve(selection, ran(Best(0, 3, "decoder"), STREAMS))
    assert found.parts == selection.parts and found == resolve(found, ran(Best(0, 3, "decoder"), STREAMS))


def test_a_stream_that_a_person_chose_stays_and_one_that_nobody_chose_gives_way() -> None:
    best = ran(Best(0, 3, "cross"), STREAMS)
    assert resolve(begun(model="translation"), best).shared.stream == "cross"
    chosen = begun(model="translation", stream="decoder")
    assert resolve(chosen, best).parts == chosen.parts


def test_what_is_heard_of_a_sound_stays_though_its_encoder_shows_more() -> None:
    selection = update(begun(model="whisper-tiny.en"), Filled(SHARED, {"stream": "cross"}))
    assert resolve(selection, ran(Best(0, 3, "encoder"), STREAMS)).parts == selection.parts
    assert resolve(selection, ran(Best(0, 3, "cross"), STREAMS)).shared.head == 3
