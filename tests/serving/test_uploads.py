"""What a visitor brings is held by that visitor alone: no name of it can be guessed, and it goes with its runs."""

import gc
import io
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from PIL import Image

from attention_viz.errors import UnusablePicture, UnusableSound
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.serving.cache import SharedCache
from attention_viz.serving.run import Request
from attention_viz.serving.runs import Run, _forget, has_run, run_request  # pyright: ignore[reportPrivateUsage]
from attention_viz.serving.settings import SETTINGS
from attention_viz.serving.uploads import Upload, beside, is_upload, runs_of, thing_of, title_of, upload_of
from attention_viz.trace.kind import InputKind


def picture() -> bytes:
    content = io.BytesIO()
    Image.linear_gradient("L").resize((40, 30)).save(content, "PNG")
    return content.getvalue()


def test_an_upload_is_there_as_long_as_somebody_holds_it() -> None:
    upload = Upload(InputKind.PICTURE, picture(), "mine.png")
    name, held = upload.name, weakref.ref(upload)
    assert is_upload(name) and upload_of(name) is upload
    assert (title_of(name), thing_of(InputKind.PICTURE, name).size) == ("mine.png", "40 × 30")  # pyright: ignore[reportAttributeAccessIssue] -- it is a picture
    del upload
    gc.collect()
    assert held() is None and upload_of(name) is None and title_of(name) == "gone"
    with pytest.raises(UnusablePicture, match="kept only while its page is open"):
        thing_of(InputKind.PICTURE, name)


def test_two_uploads_of_the_same_bytes_have_names_that_differ_and_are_long() -> None:
    one, other = (Upload(InputKind.PICTURE, picture(), "mine.png") for _ in range(2))
    assert one.name != other.name and len(one.name) > 20


def test_an_upload_is_of_its_own_kind_alone() -> None:
    upload = Upload(InputKind.PICTURE, picture(), "mine.png")
    with pytest.raises(UnusableSound):
        thing_of(InputKind.SOUND, upload.name)
    with pytest.raises(UnusablePicture):
        thing_of(InputKind.PICTURE, "window")


def test_a_sample_is_opened_by_its_name() -> None:
    assert title_of("chelsea") == SAMPLES["chelsea"].file
    assert thing_of(InputKind.SOUND, "window").name == "window.flac"


def test_what_begins_later_is_an_upload_of_its_own() -> None:
    whole = Upload(InputKind.SOUND, SAMPLES["window"].path.read_bytes(), "mine.flac")
    later = whole.beginning_at(1.5)
    assert later.name != whole.name and later.thing.name == "mine.flac"
    assert later.thing.start == 1.5 and whole.thing.start == 0  # pyright: ignore[reportAttributeAccessIssue] -- they are sounds


def run_of(megabytes: int) -> Run:
    return cast("Run", SimpleNamespace(trace=SimpleNamespace(nbytes=megabytes * 1_000_000, resting_bytes=0)))


def test_the_runs_of_all_uploads_have_room_together_and_those_unasked_for_longest_go() -> None:
    everybodys = SharedCache[Any, Run](1, lambda _: 1)
    uploads = [Upload(InputKind.PICTURE, picture(), f"{one}.png") for one in range(4)]
    for one in (*uploads[:3], uploads[0], uploads[3]):
        _ = runs_of(one.name, everybodys).get("run", lambda: run_of(SETTINGS.trace_memory // 3))
    assert ["run" in one.runs for one in uploads] == [True, True, True, True], "looked at when somebody asks again"
    _ = runs_of(uploads[3].name, everybodys)
    assert ["run" in one.runs for one in uploads] == [True, False, True, True]


def test_a_model_that_has_to_go_takes_the_runs_of_uploads_with_it() -> None:
    upload = Upload(InputKind.PICTURE, picture(), "mine.png")
    request = Request("dinov2-small", shown=upload.name)
    run = weakref.ref(run_request(request))
    other = Request("other", shown=upload.name), None
    _ = upload.runs.get(other, lambda: run_of(1))
    _forget("dinov2-small")
    assert run() is None, "it would keep the model in memory"
    assert other in upload.runs


def test_a_run_of_an_upload_is_kept_with_it_and_for_nobody_else(tmp_path: Path) -> None:
    upload = Upload(InputKind.PICTURE, picture(), "mine.png")
    request = Request("dinov2-small", shown=upload.name)
    run = weakref.ref(run_request(request))
    assert has_run(request) and run() is not None
    assert run() is run_request(request)
    del upload
    gc.collect()
    assert run() is None
    assert not has_run(request)


def test_nothing_that_comes_late_of_an_upload_is_kept_with_what_everybody_has() -> None:
    everybodys: SharedCache[str, str] = SharedCache(10, lambda _: 1)
    upload = Upload(InputKind.PICTURE, picture(), "mine.png")
    name = upload.name
    assert beside(name, everybodys).get("asked", lambda: "before") == "before"
    assert beside(name, everybodys).get("asked", lambda: "after") == "before"
    del upload
    gc.collect()
    assert beside(name, everybodys).get("asked", lambda: "late") == "late"
    assert beside("chelsea", everybodys) is everybodys
    assert everybodys.get("asked", lambda: "nothing was kept") == "nothing was kept"


@pytest.mark.parametrize(
    ("kind", "content", "words"),
    [
        (InputKind.PICTURE, b"<svg xmlns='http://www.w3.org/2000/svg'/>", "SVG"),
        (InputKind.PICTURE, b"", "empty"),
        (InputKind.PICTURE, picture()[:60], "broken"),
        (InputKind.SOUND, b"RIFF", r"can't be read as audio \([^<>]+\); use"),
        (InputKind.SOUND, b"\x00\x00\x00\x20ftypisom" + bytes(60), "is a video"),
    ],
)
def test_what_can_not_be_read_is_refused_with_the_reason(kind: InputKind, content: bytes, words: str) -> None:
    with pytest.raises((UnusablePicture, UnusableSound), match=words):
        Upload(kind, content, "theirs")
