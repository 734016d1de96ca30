"""The Class page in a real browser: opened from the keyboard, with a class's files, on wide and narrow screens."""

import json
from collections.abc import Callable
from typing import Any

from playwright.sync_api import FilePayload, Page, expect

from tests.conftest import TEACHER, OpenPage, Recolour
from tests.ui.test_accessibility import AXE, assert_open_to_all

Idle = Callable[[Page], None]
TEXT = "The bank of the river was flooded"


def file(name: str, student: int, *tries: str) -> FilePayload:
    exercise: dict[str, Any] = {"lesson": "scaling", "text": TEXT, "seed": 0, "tries": tries}
    record = {"version": 1, "id": f"{student:016x}", "exercises": [exercise]}
    return {"name": f"{name}.json", "mimeType": "application/json", "buffer": json.dumps(record).encode()}


def test_a_teacher_opens_a_class_and_everybody_can_read_it(open_page: OpenPage, idle: Idle, recolour: Recolour) -> None:
    page = open_page("/class")
    expect(page.get_by_role("link", name="Class", exact=True)).to_have_count(0)
    key = page.get_by_label("Teacher’s key")
    key.fill("wrong horse")
    key.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("isn’t the teacher’s key")
    key.fill(TEACHER)
    key.press("Enter")
    expect(page.get_by_role("heading", name="Where is the class stuck?")).to_be_visible()
    files = [file("Ann", 1, "1", "2"), file("Bo <b>", 2, "3"), file("Cy", 3)]
    page.locator(".st-key-class-files input[type=file]").set_input_files(files)
    students = page.get_by_test_id("class-students")
    expect(students.get_by_role("row")).to_have_count(4)
    expect(students.get_by_role("rowheader")).to_have_text(["Ann", "Bo <b>", "Cy"])
    expect(page.get_by_role("heading", level=1)).to_have_text("Most stuck: Scaling. 2 of 2 haven’t solved it")
    idle(page)
    page.evaluate(AXE)
    assert_open_to_all(page)
    recolour(page, True)
    assert_open_to_all(page, True)
    page.set_viewport_size({"width": 390, "height": 844})
    expect(students).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
