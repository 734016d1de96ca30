"""Every kind of change has what pages need of it, is written as it is read, told in words, and runs."""

import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest
import torch

import attention_viz as av
from attention_viz.edits import kinds
from attention_viz.edits.changes import EDITS, describe, misfit, read_changes, to_edits, write_changes
from attention_viz.scratch.model import Scratch
from attention_viz.trace.trace import Trace
from tests.controls import asked_of
from tests.recording.mixers.hybrids import build

TEXT = "the bank of the river was flooded"

every_kind = pytest.mark.parametrize("name", EDITS)


def test_kinds_stand_in_the_order_of_what_they_ask_for() -> None:
    assert [name for name in EDITS if name in ("zero", "mean", "temp", "block", "draw")] == [
        *("zero", "mean", "temp", "block", "draw")
    ]
    assert av.EDITS is EDITS


def test_no_kind_takes_the_name_of_another() -> None:
    modules = [import_module(f"{kinds.__name__}.{found.name}") for found in iter_modules(kinds.__path__)]
    assert sorted(EDITS) == sorted(entry.name for module in modules for entry in module.KINDS)
    assert len({entry.label for entry in EDITS.values()}) == len(EDITS)


@every_kind
def test_the_example_of_a_kind_is_one_of_it(name: str) -> None:
    entry = EDITS[name]
    assert re.fullmatch("[a-z]+", name) and re.split("[:@]", entry.example)[0] == name
    changes, notices = read_changes(entry.example)
    assert not notices and write_changes(changes) == entry.example and changes[0].what == name


@every_kind
def test_a_change_of_a_kind_fits_is_told_and_is_what_ran(name: str) -> None:
    def run(*edits: Any) -> Trace:
        if "softmax" in EDITS[name].fits:
            return Scratch(heads=2).trace(TEXT, edits=edits)
        return av.wrap(build("qwen3_next")).trace_ids((torch.arange(8)[None] * 7) % 97, edits=edits)

    before = run()
    ((change,), _) = read_changes(f"{EDITS[name].example}@{'mixer.' * ('softmax' not in EDITS[name].fits)}0.1")
    assert not misfit(change, before)
    assert describe(change, before).strip() and EDITS[name].short(change).strip()
    edits = to_edits(change, before)
    after = run(*edits)
    if before.mixers:
        assert not after.output.allclose(before.output)
        assert after.weights(0, 0, "mixer").allclose(before.weights(0, 0, "mixer"))
        assert not after.weights(0, 1, "mixer").allclose(before.weights(0, 1, "mixer"))
        assert misfit(read_changes(f"{EDITS[name].example}@decoder.1.1")[0][0], before)
        return
    assert not after.output.allclose(before.output)
    assert after.provenance.edits == tuple(str(edit) for edit in edits)
    assert after.attention(0).head(0).output.allclose(before.attention(0).head(0).output)
    assert all(isinstance(edit, av.Edit) and edit.kind and "head 1" in str(edit) for edit in edits)


def test_the_document_lists_every_kind() -> None:
    text = (Path(av.__file__).parents[1] / "docs" / "pages" / "heads.md").read_text("utf-8")
    section = text.split("\n## Changes\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", section, re.MULTILINE)
    assert rows == [(entry.example, entry.label) for entry in EDITS.values()]
    assert not [label for entry in EDITS.values() for label in asked_of(entry) if f"*{label}*" not in text]


def test_tokens_are_written_as_whoever_tells_it_writes_them() -> None:
    before = Scratch().trace(TEXT)
    ((change,), _) = read_changes("block:1>4@0")
    assert describe(change, before, str.upper) == "“BANK” may not attend to “RIVER” in layer 0"
