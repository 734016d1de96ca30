"""Finding a browser for the tests: one that really starts, and the one that was asked for."""

from pathlib import Path

import pytest

from scripts import browser


def test_a_program_that_draws_nothing_is_no_browser() -> None:
    assert not browser.starts("true")
    assert not browser.starts("/nowhere/chromium")


def test_a_chosen_browser_that_does_not_start_is_named_and_not_replaced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chosen = str(tmp_path / "chromium")
    monkeypatch.setenv(browser.CHOICE, chosen)
    assert list(browser.candidates()) == [chosen]
    with pytest.raises(SystemExit, match="not a browser that starts"):
        browser.main()


def test_browsers_on_the_path_come_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("google-chrome", "chromium"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.delenv(browser.CHOICE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = browser.candidates()
    assert [next(found), next(found)] == [str(tmp_path / "chromium"), str(tmp_path / "google-chrome")]
