"""The measurement for a GPU runs every step with a small model on the CPU."""

import time

import pytest
import torch

from scripts import on_gpu


def test_every_step_is_measured_at_every_length() -> None:
    rows = on_gpu.measure(torch.device("cpu"), (8, 24), 600, small=True)
    steps = [row[1] for row in rows if row[0] == "8"]
    for word in ("plain", "capture", "rows of one head", "verify", "page", "transformers", "with their traces"):
        assert any(word in step for step in steps), word
    assert all(float(row[2]) >= 0 for row in rows)
    assert all(row[6].startswith("ok: ") for row in rows if row[1] == "verify")
    text = on_gpu.table(rows)
    assert text.count("\n") == len(rows) + 1
    assert {line.count("|") for line in text.split("\n")} == {8}


def test_what_there_is_no_time_for_is_named() -> None:
    meter = on_gpu.Meter(torch.device("cpu"), time.monotonic() - 1)
    assert meter.time(8, "capture", lambda: 1 / 0) == (None, None)
    assert meter.rows == [["8", "capture", "–", "–", "–", meter.rows[0][5], "not run: no time was left"]]


def test_a_step_that_fails_is_named_and_the_others_go_on() -> None:
    meter = on_gpu.Meter(torch.device("cpu"), time.monotonic() + 60)

    def fail() -> None:
        raise RuntimeError("out of memory\nand more")

    assert meter.time(8, "capture", fail) == (None, None)
    assert meter.rows[0][-1] == "RuntimeError: out of memory"
    assert meter.time(8, "verify", lambda: "ok")[0] == "ok"


def test_without_a_gpu_it_says_what_to_pass(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit):
        on_gpu.main([])
    assert "pass --small" in capsys.readouterr().err


def test_it_prints_a_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_gpu, "SMALL", (8,))
    on_gpu.main(["--small"])
    assert "On a small model on the CPU" in (printed := capsys.readouterr().out)
    assert "| 8 | capture |" in printed
