"""The camera and the microphone, pressed in a real browser with made-up devices; and the picture under the pointer."""

import re
from contextlib import suppress

from playwright.sync_api import Locator, Page, expect

from tests.conftest import OpenPage

VERIFIED = re.compile("^Verified")


def ready(page: Page) -> None:
    expect(page.get_by_text(VERIFIED)).to_be_visible(timeout=90_000)


def pointed_at(place: Locator, claim: Locator, words: str) -> None:
    """Point as a hand does, which trembles: one that rests tells a page that is still drawing nothing more."""
    for _ in range(40):
        place.hover(position={"x": 42, "y": 12})
        place.hover(position={"x": 40, "y": 10})
        if re.search(words, claim.inner_text()):
            break
        place.page.wait_for_timeout(250)
    expect(claim).to_contain_text(re.compile(words))


def pressed_until_taken(page: Page) -> None:
    """Press again as a person does: while the camera gives no frame, a press takes nothing."""
    press = page.get_by_role("button", name="Take Photo")
    taken = page.get_by_role("button", name=re.compile("Clear photo|your photo"))
    expect(press).to_be_enabled(timeout=30_000)
    for _ in range(20):
        page.wait_for_function("document.querySelector('video')?.readyState >= 2", timeout=30_000)
        press.click()
        with suppress(AssertionError):
            expect(taken.first).to_be_visible(timeout=3_000)
            break
    expect(page.get_by_role("button", name="your photo")).to_be_visible(timeout=60_000)


def test_a_photo_is_taken_and_shown_and_a_patch_under_the_pointer_tells_what_it_looks_at(open_page: OpenPage) -> None:
    page = open_page("/?model=dinov2-small")
    ready(page)
    claim, picture = page.get_by_test_id("explorer-sentence"), page.get_by_test_id("picture")
    picture.hover(position={"x": 40, "y": 40})
    expect(claim).to_contain_text(re.compile("^The patch at the upper left"))
    page.get_by_role("radio", name="attended by").check()
    pointed_at(picture, claim, "patch at the upper left is looked at|Nothing looks at")
    page.get_by_role("button", name="chelsea.jpg").click()
    camera = page.get_by_text("Camera", exact=True)
    camera.click()
    # Nobody has allowed the camera yet.
    expect(page.get_by_text("your browser blocks the camera. Allow it next to the URL")).to_be_visible()
    expect(page.get_by_text("would like to use your camera")).to_be_visible(timeout=30_000)
    page.context.grant_permissions(["camera"])
    camera.click()
    expect(page.get_by_text("would like to use your camera")).to_have_count(0)
    camera.click()
    pressed_until_taken(page)
    ready(page)
    expect(page).not_to_have_url(re.compile("picture="))


def test_what_the_microphone_records_is_written_down_and_words_light_up_as_it_plays(open_page: OpenPage) -> None:
    page = open_page("/?model=whisper-tiny.en")
    page.context.grant_permissions(["microphone"])
    ready(page)
    word = page.get_by_test_id("sound").get_by_role("button", name="window")
    pointed_at(word, page.get_by_test_id("explorer-sentence"), "“window”")
    page.get_by_test_id("play").click()
    expect(page.get_by_test_id("play")).to_have_text(re.compile("Pause"))
    expect(page.get_by_test_id("sound").locator(".av-cursor")).to_have_attribute("visibility", "visible")
    page.get_by_role("button", name="window.flac").click()
    page.get_by_role("button", name="Record", exact=True).click()
    stop = page.get_by_role("button", name="Stop recording")
    expect(stop).to_be_visible(timeout=30_000)
    expect(page.get_by_text(re.compile("00:0[1-9]"))).to_be_visible(timeout=30_000)
    stop.click()
    expect(page.get_by_role("button", name="your recording")).to_be_visible(timeout=60_000)
    expect(page).not_to_have_url(re.compile("sound="))
