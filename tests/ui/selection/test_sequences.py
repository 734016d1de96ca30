"""Whatever a person does, and in whatever order: what holds for the selection after each event."""

from collections.abc import Mapping
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from attention_viz.analysis.readings import READINGS
from attention_viz.protocol.facts import ModelFacts
from attention_viz.serving.models import forget_facts, remember
from attention_viz.serving.settings import SETTINGS
from attention_viz.sources import CATALOGUE
from attention_viz.ui.address import State, own_example, write_address
from attention_viz.ui.address.kinds import fits_link
from attention_viz.ui.selection import (
    SHARED,
    Clicked,
    Event,
    FileClosed,
    FileOpened,
    Filled,
    PageOpened,
    Picked,
    Ran,
    Selection,
    resolve,
    update,
)
from tests.ui.selection.happenings import (
    BOXES,
    EXAMPLE,
    MINE,
    SEEN,
    SHAPES,
    Best,
    addresses,
    heads,
    models,
    positions,
    settled,
    streams,
    texts,
)


class Session(RuleBasedStateMachine):
    """One person's session; each rule checks what its own event changes, and that nothing else did."""

    def __init__(self) -> None:
        super().__init__()
        self.now = Selection()
        # What the boxes hold, and what they held before a file was opened.
        self.boxes: dict[str, str] = {}
        self.boxes_under: dict[str, str] | None = None

    def teardown(self) -> None:
        forget_facts(MINE)

    def send(self, event: Event) -> State:
        """Apply an event; return the shared values before it."""
        before = self.now.shared
        self.now = update(self.now, event)
        return before

    def hold_boxes(self) -> None:
        """Take what the boxes hold for what they should: a URL said so."""
        self.boxes, self.boxes_under = {name: getattr(self.now.shared, name) for name in BOXES}, None

    @property
    def head(self) -> tuple[int, int]:
        return self.now.shared.layer, self.now.shared.head

    @property
    def pair(self) -> tuple[int | None, int | None]:
        return self.now.shared.query, self.now.shared.key

    @initialize(address=addresses, example=st.sampled_from([None, EXAMPLE]))
    def begins(self, address: Mapping[str, str], example: State | None) -> None:
        self.send(PageOpened(address, example=example))
        self.hold_boxes()
        self.check_opened(address, example)

    def check_opened(self, address: Mapping[str, str], example: State | None) -> None:
        shared = self.now.shared
        assert self.now.file == 0 and self.now.under is None
        assert self.now.head_is_free == ({"layer", "head"}.isdisjoint(address))
        if address.get("model") in CATALOGUE:
            assert shared.model == address["model"]
        elif "model" not in address and example is not None:
            assert shared.model == example.model
        if "text" in address:
            assert shared.text == address["text"][: SETTINGS.longest_input]
        if (reading := address.get("reading")) in READINGS:
            assert shared.reading == reading

    @rule(address=addresses, example=st.sampled_from([None, EXAMPLE]))
    def goes_back(self, address: Mapping[str, str], example: State | None) -> None:
        text = self.boxes_under["text"] if self.boxes_under is not None else self.boxes["text"]
        self.send(PageOpened(address, example=example, again=True))
        if "text" not in address and not fits_link(text):
            assert self.now.shared.text == text
        self.hold_boxes()
        self.check_opened(address, example)

    @rule(address=addresses, example=st.sampled_from([None, EXAMPLE]))
    def turns_to_another_page(self, address: Mapping[str, str], example: State | None) -> None:
        before = self.now
        self.send(PageOpened(address, example=example))
        assert self.now == before

    @rule(name=st.sampled_from(BOXES), text=texts)
    def types(self, name: str, text: str) -> None:
        under, head, free = self.now.under, self.head, self.now.head_is_free
        if under is not None:
            head, free = (under.shared.layer, under.shared.head), under.head_is_free
        before = self.send(Picked(SHARED, {name: text}))
        self.boxes = (self.boxes_under or self.boxes) | {name: text}
        self.boxes_under = None
        assert self.now.file == 0
        # A head that somebody chose is shown of every text; one that nobody chose may still give way.
        assert (self.head, self.now.head_is_free) == (head, free)
        if under is not None or getattr(before, name) != text:
            assert self.pair == (None, None)

    @rule(model=models)
    def picks_a_model(self, model: str) -> None:
        under, free = self.now.under, self.now.head_is_free
        start = self.now.shared if under is None else under.shared
        self.boxes, self.boxes_under = self.boxes_under or self.boxes, None
        self.send(Picked(SHARED, {"model": model}))
        assert self.now.shared.model == model and self.now.file == 0
        if model != start.model:
            assert self.pair == (None, None)
            if self.boxes["text"] == own_example(start.model):
                self.boxes = self.boxes | {"text": own_example(model)}
        if under is None:
            assert self.now.head_is_free == free
        if not self.now.head_is_free:
            assert self.head == (start.layer, start.head)

    @rule(data=st.data(), stream=st.booleans(), pair=st.none() | st.tuples(positions, positions))
    def clicks(self, data: st.DataObject, stream: bool, pair: tuple[int | None, int | None] | None) -> None:
        before, chosen = self.now.shared, self.now.chosen
        named = data.draw(st.sampled_from(before.facts.streams or ("decoder",))) if stream else None
        layer, head = data.draw(st.sampled_from(heads(before, named or before.stream)))
        alone = data.draw(st.booleans())
        self.send(Clicked(layer, head if alone else None, named, pair))
        moved = (layer, head if alone else before.head)
        assert self.head == moved
        assert self.now.shared.stream == (named or before.stream)
        assert self.pair == (pair or (before.query, before.key))
        was_free = chosen.isdisjoint(("layer", "head"))
        assert self.now.head_is_free == (was_free and moved == (before.layer, before.head))
        assert ("stream" in self.now.chosen) == ("stream" in chosen or named not in (None, before.stream))

    @rule(at=st.none() | st.tuples(st.integers(0, 40), st.integers(0, 12)))
    def picks_a_head(self, at: tuple[int, int] | None) -> None:
        free, before = self.now.head_is_free, self.head
        layer, head = at or before
        self.send(Picked(SHARED, {"layer": layer, "head": head}))
        assert self.head == (layer, head)
        assert self.now.head_is_free == (free and before == (layer, head))

    @rule(reading=st.sampled_from([*READINGS]), stream=streams)
    def picks_how_to_look(self, reading: str, stream: str) -> None:
        self.send(Picked(SHARED, {"reading": reading, "stream": stream}))
        assert (self.now.shared.reading, self.now.shared.stream) == (reading, stream)

    @rule(text=texts)
    def comes_back_with_a_text_of_the_tab(self, text: str) -> None:
        pair = self.pair
        self.send(Filled(SHARED, {"text": text}, stays=True))
        self.boxes = self.boxes | {"text": text}
        assert self.pair == pair and "text" in self.now.chosen

    @rule(number=st.integers(1, 9), text=st.sampled_from(["A file.", ""]))
    def opens_a_file(self, number: int, text: str) -> None:
        before = self.now
        held: dict[str, str] = dict(zip(BOXES, (text, "", ""), strict=True))
        self.send(FileOpened(number, held))
        if self.boxes_under is None:
            self.boxes_under = self.boxes
        self.boxes = held
        assert self.now.file == number and self.now.under == (before.under or before)
        assert self.head == (0, 0) and self.pair == (None, None) and self.now.head_is_free

    @precondition(lambda self: self.now.file)
    @rule()
    def closes_the_file(self) -> None:
        under = self.now.under
        assert under is not None
        self.send(FileClosed())
        assert self.boxes_under is not None
        self.boxes, self.boxes_under = self.boxes_under, None
        assert self.now.file == 0 and self.now.under is None
        assert self.pair == (under.shared.query, under.shared.key)
        assert self.head == (under.shared.layer, under.shared.head) and self.now.shared.stream == under.shared.stream
        assert self.now.head_is_free == under.head_is_free

    @rule(facts=st.sampled_from(SHAPES))
    def loads_the_other_model(self, facts: ModelFacts) -> None:
        remember(MINE, facts)

    @rule()
    def loses_the_other_model(self) -> None:
        forget_facts(MINE)

    @precondition(lambda self: not self.now.file)
    @rule(only=st.sampled_from([None, None, "cross"]))
    def sees_a_page(self, only: str | None) -> None:
        self.now = settled(self.now, only)

    @rule(data=st.data(), counts=st.tuples(*[st.tuples(st.integers(1, 9), st.integers(1, 9))] * 3), found=st.booleans())
    def sees_a_run(self, data: st.DataObject, counts: tuple[tuple[int, int], ...], found: bool) -> None:
        before, after_pair = self.now.shared, self.now.chosen
        there = before.facts.streams or ("decoder",)
        if self.now.file:
            there = data.draw(st.sampled_from([("encoder",), ("encoder", "decoder", "cross")]))
        of = dict(zip(there, counts, strict=False))
        stream = data.draw(st.sampled_from(there))
        best = Best(*data.draw(st.sampled_from(heads(before, stream))), stream) if found else None
        ran = Ran(of, lambda: best)
        free, chosen = self.now.head_is_free, "stream" in after_pair
        self.now = resolve(self.now, ran)
        assert resolve(self.now, ran) == self.now
        shown = of[self.now.shared.stream if self.now.shared.stream in of else there[0]]
        assert all(at is None or at < count for at, count in zip(self.pair, shown, strict=True))
        self.check_head(before, best, shown=before.stream if before.stream in of else there[0], several=len(of) > 1)
        assert self.now.head_is_free == free and ("stream" in self.now.chosen) <= chosen

    def check_head(self, before: State, best: Best | None, *, shown: str, several: bool) -> None:
        """Check that a free head is the run's best, and that any other stays."""
        turns = several and best is not None and best.stream != shown
        stays = turns and ("stream" in self.now.chosen or (before.facts.reads == "sound" and shown == "cross"))
        if best is None or not self.now.head_is_free or self.pair != (None, None) or stays:
            assert self.head == (before.layer, before.head) and self.now.shared.stream == before.stream
        else:
            assert self.head == (best.layer, best.head)
            assert self.now.shared.stream == (best.stream if turns else before.stream)

    @invariant()
    def what_was_typed_is_in_the_boxes(self) -> None:
        held = {name: getattr(self.now.shared, name) for name in self.boxes}
        assert held == self.boxes

    @precondition(lambda self: self.boxes and not self.now.file)
    @invariant()
    def the_model_has_what_is_shown(self) -> None:
        found = settled(self.now)
        shared, there = found.shared, found.shared.facts.streams
        assert shared.layer in shared.layers and 0 <= shared.head < shared.head_count
        assert len(there) < 2 or shared.stream in there
        assert settled(found) == found

    @precondition(lambda self: self.boxes and not self.now.file and self.now.shared.model in CATALOGUE)
    @invariant()
    def a_link_shows_the_same(self) -> None:
        now = settled(self.now)
        address, shared = write_address(now.shared), now.shared
        for again in (
            settled(update(Selection(), PageOpened(address))),
            settled(update(now, PageOpened(address, again=True))),
        ):
            opened = again.shared
            assert [getattr(opened, name) for name in SEEN] == [getattr(shared, name) for name in SEEN]
            assert len(shared.facts.streams) < 2 or opened.stream == shared.stream
            assert "text" not in address or opened.text == shared.text
            assert address.items() <= write_address(opened).items()
            assert not again.part(SHARED).notices


Session.TestCase.settings = settings(max_examples=60, stateful_step_count=20, deadline=None, report_multiple_bugs=False)
TestSession: Any = Session.TestCase
