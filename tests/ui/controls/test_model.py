"""Models from a folder and from the hub, as a visitor chooses them in a real browser; what is closed stays closed."""

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.conftest import OpenPage, Server
from tests.hub import Hub
from tests.ui.served import LARGE, NAME

Idle = Callable[[Page], None]
TEXT = "the bank of the river"


@pytest.fixture(scope="module")
def app_server(operated: Server) -> Server:
    """The app with both ways open."""
    return operated


def choose(page: Page, label: str, option: str, idle: Idle) -> None:
    page.get_by_role("combobox", name=re.compile(rf"(^|\W){label}$")).click()
    page.get_by_role("option", name=option, exact=True).click()
    idle(page)


def parameters(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def verified(page: Page) -> None:
    expect(page.get_by_text(re.compile("^Verified"))).to_be_visible(timeout=60_000)


def link(model: str, path: str = "/", **more: object) -> str:
    told = "".join(f"&{name}={value}" for name, value in more.items())
    return f"{path}?model={quote(model, safe='')}&text={quote(TEXT)}{told}"


def test_a_path_typed_into_the_picker_is_refused_as_well(open_page: OpenPage, models: Path, idle: Idle) -> None:
    page = open_page("/")
    choose(page, "Model", "Local folder", idle)
    box = page.get_by_role("combobox", name=re.compile("Folder"))
    box.click()
    box.fill(str(models.parent / "outside" / "secret-bert"))
    box.press("Enter")
    idle(page)
    expect(page.get_by_text(re.compile("This model can't be opened: there is no folder"))).to_be_visible()
    expect(page.get_by_text(re.compile("folders named in ATTENTION_VIZ_MODELS"))).to_be_visible()
    # What to do about it is told with the path that was typed.
    expect(page.get_by_text(re.compile(f"ATTENTION_VIZ_MODELS={models.parent}/outside/secret-bert "))).to_be_visible()
    assert parameters(page)["model"] == "all-MiniLM-L6-v2"


def test_a_model_on_the_hub_tells_its_size_and_comes_at_a_word(open_page: OpenPage, hub: Hub, idle: Idle) -> None:
    page = open_page("/?text=" + quote(TEXT))
    choose(page, "Model", "Hub id", idle)
    page.get_by_label("Hub id").fill(NAME)
    page.get_by_label("Hub id").press("Enter")
    idle(page)
    expect(
        page.get_by_text(re.compile(rf"{NAME} at main \([0-9a-f]{{7}}\) is on the hub: \d files, 0\.1 MB"))
    ).to_be_visible()
    assert "model.safetensors" not in hub.fetched()
    page.get_by_role("button", name="Download 0.1 MB").click()
    verified(page)
    assert "model.safetensors" in hub.fetched()
    assert parameters(page)["model"] == NAME


def test_a_download_shows_how_far_it_is_and_is_cancelled(open_page: OpenPage, hub: Hub) -> None:
    hub.bytes_a_second = 4e6
    page = open_page(link(LARGE))
    page.get_by_role("button", name=re.compile("^Download 3")).click()
    expect(
        page.get_by_text(re.compile(f"Downloading {LARGE}: 10\\.5 of|Downloading {LARGE}: 10\\.5 MB of"))
    ).to_be_visible(timeout=20_000)
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text(re.compile("download of somebody/large-bert was cancelled"))).to_be_visible(timeout=20_000)
    expect(page.get_by_role("button", name=re.compile("^Download 3"))).to_be_visible()
    hub.bytes_a_second = None
    page.get_by_role("button", name=re.compile("^Download 3")).click()
    verified(page)


def test_an_id_that_is_not_there_is_told_and_another_can_be_typed(open_page: OpenPage, hub: Hub) -> None:
    page = open_page(link("nobody/nothing@v9"))
    expect(page.get_by_text("There is no model nobody/nothing on the hub, or it is private")).to_be_visible()
    expect(page.get_by_label("Hub id")).to_have_value("nobody/nothing")
    expect(page.get_by_label("Revision")).to_have_value("v9")
    assert parameters(page)["model"] == "nobody/nothing@v9"
