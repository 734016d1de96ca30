"""Whatever isn't at its default stands as a chip on each page, and is put back by it."""

from typing import Any

import pytest

from tests.ui.screens import PAGES, Screen

# Of a model each what it has, by the names in the address.
SET = {
    "scratch": {"d_model": "12", "heads": "3", "seed": "4", "positions": "none"},
    "all-MiniLM-L6-v2": {"second": "a boat drifted", "special": "off", "reading": "rollout", "words": "on"},
    "induction": {"more": "2", "evict": "on"},
}
# What a page has no use for, as it looks at weights as weights, at two runs of its own, or at none that goes on.
READ, GOES_ON = {"reading", "words"}, {"more", "evict"}
WITHOUT = {"/masks": READ | GOES_ON, "/steps": READ, "/why": READ | GOES_ON, "/compare": GOES_ON | {"second"}}


@pytest.fixture(scope="module")
def screen() -> Screen:
    return Screen().open("/learn")


def chips(screen: Screen) -> dict[str, Any]:
    """By name, the buttons."""
    found = [one for one in screen.all("button") if str(one.key).startswith("chip-")]
    return {one.key.removeprefix("chip-"): one for one in found}


@pytest.mark.parametrize("path", [one for one in PAGES if one not in ("/learn", "/cross")])
@pytest.mark.parametrize("model", SET)
def test_what_is_not_at_its_default_is_a_chip_that_puts_it_back(screen: Screen, path: str, model: str) -> None:
    asked = "&".join(f"{name}={value}" for name, value in SET[model].items())
    screen.back_to(f"{path}?model={model}&text=the+cat+sat+on+the+cat&{asked}")
    wanted = SET[model].keys() - WITHOUT.get(path, set())
    assert chips(screen).keys() == wanted
    for name in sorted(wanted, key=lambda one: (one == "more", one)):
        chips(screen)[name].click()
        screen.run()
        assert name not in chips(screen) and screen.address.get(name) != SET[model][name]
    assert not chips(screen)


def test_the_notation_of_the_course_is_one_too(screen: Screen) -> None:
    screen.back_to("/learn?lesson=plain&notation=columns")
    chips(screen)["notation"].click()
    screen.run()
    assert not chips(screen) and screen.address["notation"] == "rows"
