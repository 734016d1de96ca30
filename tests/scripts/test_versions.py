"""What is said of versions agrees: what the wheel allows, what was tried, what requirements.txt pins."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from scripts.setup import pins_in
from scripts.versions import DEPENDENCIES, PYTHONS, TABLE, in_order, table

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
TEXT = TABLE.read_text("utf-8")
ROWS = re.findall(r"^\| ([\w.-]+) \| ([^|]+) \| ([\d.]+) \| ([\d.]+) \|$", TEXT, re.MULTILINE)


def test_of_each_package_the_oldest_and_a_newest_that_the_wheel_allows_were_tried() -> None:
    assert {name: allowed.replace(" ", "") for name, allowed, _, _ in ROWS} == DEPENDENCIES
    assert [Requirement(one).name for one in PROJECT["dependencies"]] == list(DEPENDENCIES)
    for name, allowed, oldest, newest in ROWS:
        bounds = {one.operator: one.version for one in SpecifierSet(allowed)}
        assert set(bounds) == {">=", "<"}, name
        assert f"{oldest}.".startswith(f"{bounds['>=']}."), f"{name}: {oldest} is not the oldest of {allowed}"
        assert Version(oldest) <= Version(newest) < Version(bounds["<"]), name


def test_what_requirements_pin_is_what_the_wheel_asks_for_between_the_oldest_and_the_newest_tried() -> None:
    pinned = dict(pin.split("==") for pin in pins_in(ROOT / "requirements.txt"))
    assert set(pinned) == set(DEPENDENCIES)
    for name, _, oldest, newest in ROWS:
        assert Version(oldest) <= Version(pinned[name]) <= Version(newest), name


def test_the_pythons_that_are_named_were_tried() -> None:
    (tried,) = re.findall(r"^\*\*Python (.*)\*\*$", TEXT, re.MULTILINE)
    assert [one.rpartition(".")[0] for one in tried.split(", ")] == PYTHONS
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    assert f"You need Python {', '.join(PYTHONS[:-1])} or {PYTHONS[-1]}" in (ROOT / "README.md").read_text("utf-8")


def test_versions_are_told_from_the_oldest_to_the_newest_whatever_the_build() -> None:
    assert in_order(["2.13.0+cpu", "2.9.1", "2.13.0"]) == ["2.9.1", "2.13.0"]
    there = {name: "1.0" for name in ("Python", *DEPENDENCIES)}
    told = table({"one": there, "other": there | {"numpy": "2.10.0"}, "third": there | {"numpy": "2.9.0"}}, tested=True)
    assert "| 1.0 | 2.10.0 |" in told and "runs the most sensitive tests" in told
