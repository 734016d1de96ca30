"""Pictures and sounds: the picker brings a sample, a visitor brings others, and pages say what they can't show."""

import io
from pathlib import Path

import pytest
from PIL import Image
from streamlit.runtime.uploaded_file_manager import DeletedFile

import attention_viz as av
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.serving.uploads import upload_of
from attention_viz.sources import CATALOGUE
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State, opened_on
from attention_viz.ui.controls import thing
from attention_viz.ui.controls.thing import KEPT, SHOWN_ON, STAYS
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.menu import PAGES
from attention_viz.ui.visit import Visit
from tests.shipped import shown
from tests.ui.screens import Screen

PICTURES, SOUNDS, BESIDE = "dinov2-small", "whisper-tiny.en", "shapes"


@pytest.fixture(scope="module")
def cat() -> Screen:
    return Screen().open(f"/?model={PICTURES}")


@pytest.fixture(scope="module")
def river() -> Screen:
    return Screen().open(f"/?model={SOUNDS}")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.png"
    Image.radial_gradient("L").save(path)
    return path


def test_a_model_that_reads_pictures_brings_its_sample_in_place_of_the_sentence(cat: Screen) -> None:
    assert cat.address["picture"] == "chelsea" and not {"text", "sound"} & set(cat.address)
    assert "chelsea.jpg · a cat" in cat.words and KEPT in cat.words
    assert "Its middle was read, at 224 × 224 pixels." in cat.words
    assert not [one for one in cat.all("text_area") if one.label == "Sentence"]


def test_the_explorer_gets_the_picture_with_the_places_of_its_patches(cat: Screen) -> None:
    packed = cat.packed()
    assert (packed["seen"]["picture"]["rows"], packed["seen"]["picture"]["columns"]) == (224, 224)
    (stream,) = packed["streams"]
    places = packed["axes"][stream["keys"]]["place"]
    assert places[0] is None and places[1] == [0, 0] and places[-1] == [15, 15]
    assert packed["findings"]


def test_a_picture_and_its_overlay_can_be_taken_away(cat: Screen) -> None:
    document = cat.download("Picture with overlay (SVG)").decode()
    assert document.startswith("<svg") and "data:image/png;base64," in document and "chelsea.jpg" in document


def test_a_model_that_hears_brings_words_with_times(river: Screen) -> None:
    assert (river.address["sound"], river.address["stream"]) == ("window", "cross")
    sound = river.packed()["seen"]["sound"]
    assert [one["text"] for one in sound["words"]][:4] == ["She", "opened", "the", "window"]
    assert sound["aligning"] and (sound["rate"], sound["bands"]) == (16_000, 80)
    starts = [one["start"] for one in sound["words"]]
    assert starts == sorted(starts)


def test_word_times_can_be_taken_away_as_a_table_and_as_subtitles(river: Screen) -> None:
    assert river.download("Word times (CSV)").decode("utf-8-sig").splitlines()[0] == "word,start,end"
    subtitles = river.download("Word times (WebVTT)").decode()
    assert subtitles.startswith("WEBVTT\n") and "\nwindow\n" in subtitles


def test_the_encoder_hears_itself(river: Screen) -> None:
    screen = Screen().open(f"/?model={SOUNDS}&stream=encoder")
    (stream,) = screen.packed()["streams"]
    assert stream["name"] == "encoder" and screen.packed()["seen"]["sound"]["words"] == []


def test_words_of_the_visitors_can_be_the_target() -> None:
    screen = Screen().open(f"/?model={SOUNDS}&target=She+closed+the+door")
    assert [one["text"] for one in screen.packed()["seen"]["sound"]["words"]] == ["She", "closed", "the", "door"]


def test_what_a_visitor_brings_is_shown_and_stands_in_no_link(mine: Path) -> None:
    screen = Screen().open(f"/?model={PICTURES}")
    screen.upload("Upload image", mine)
    assert "mine.png" in screen.words and "picture" not in screen.address
    # Where it is brought, and among the notes, which say all at once and one by one.
    assert screen.words.count(KEPT) == 3
    screen.press("Sample – an astronaut")
    assert screen.address["picture"] == "astronaut" and screen.words.count(KEPT) == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "an SVG file"),
        (b"no picture", "broken or in an unknown format"),
    ],
)
def test_what_can_not_be_read_is_refused_and_what_was_shown_stays(tmp_path: Path, content: bytes, words: str) -> None:
    screen, path = Screen().open(f"/?model={PICTURES}"), tmp_path / "theirs.png"
    path.write_bytes(content)
    screen.upload("Upload image", path)
    assert any(words in one for one in screen.alerts) and screen.address["picture"] == "chelsea"


def test_a_picture_that_says_it_is_huge_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    content, path = io.BytesIO(), tmp_path / "bomb.png"
    Image.new("1", (20_000, 20_000)).save(content, "PNG")
    path.write_bytes(content.getvalue())
    screen = Screen().open(f"/?model={PICTURES}").upload("Upload image", path)
    assert any("use at most 50,000,000" in one or "far more pixels" in one for one in screen.alerts)


def test_a_file_that_was_taken_and_let_go_is_not_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    # What Streamlit hands over where the field is sent once more before it is drawn anew.
    here = Visit()
    monkeypatch.setattr(visit, "here", lambda: here)
    monkeypatch.setattr(widgets, "content", lambda key: DeletedFile("gone"))
    thing._take("sound", "thing-upload-0")
    assert here == Visit()


def test_an_address_that_names_no_sample_is_told_which_there_are() -> None:
    screen = Screen().open(f"/?model={PICTURES}&picture=own-secret")
    assert any("chelsea, astronaut" in one for one in screen.warnings) and screen.address["picture"] == "chelsea"


@pytest.mark.parametrize("model", [PICTURES, SOUNDS, BESIDE])
@pytest.mark.parametrize("label", [label for label in PAGES if label not in ("Learn", "Explore")])
def test_a_page_that_shows_no_such_thing_says_so_by_name(label: str, model: str) -> None:
    kind = CATALOGUE[model].reads
    if label in SHOWN_ON[kind]:
        pytest.skip("it shows it")
    screen = Screen().open(f"/{Path(PAGES[label]).stem}?model={model}")
    assert any(f"{label} can’t show {kind.plural}" in one for one in screen.written)
    # The pages that show it are linked with the model, and a press shows this page with one that reads text.
    linked = [one.proto for one in screen.all("page_link")][len(PAGES) :]
    assert [one.label for one in linked] == [one for one in PAGES if one in SHOWN_ON[kind]]
    assert all(f"model={model}" in one.query_string for one in linked)
    # Nothing is offered that would change nothing.
    assert "Two sentences" not in screen.menus and "causal" not in screen.menus
    assert screen.address["model"] == model
    stays = STAYS.get(label, State.model)
    screen.press(f"Stay on {label} with {stays}")
    assert screen.address.get("model", State.model) == stays and not screen.alerts


@pytest.mark.parametrize(
    ("kind", "label"), [(kind, label) for kind, labels in SHOWN_ON.items() for label in labels if label != "Explore"]
)
def test_a_page_that_shows_it_has_nothing_amiss(kind: str, label: str) -> None:
    model = {"picture": PICTURES, "sound": SOUNDS}.get(kind, BESIDE)
    screen = Screen().open(f"/{Path(PAGES[label]).stem}?model={model}")
    assert not screen.alerts
    assert screen.address["model"] == model and any("[Verified" in one for one in screen.menus)
    # Times are written as people write them: the space in "0.74 s" is none that a tokenizer left.
    assert not any("␣" in one for one in screen.written)


def test_two_pictures_are_compared_patch_by_patch() -> None:
    screen = Screen().open(f"/compare?model={PICTURES}")
    assert screen.address["other_picture"] == "astronaut" and "other" not in screen.address
    assert "Two images" in screen.menus


def test_a_picture_of_a_visitors_is_the_second_one_and_goes_when_a_sample_is_chosen(mine: Path) -> None:
    screen = Screen().open(f"/compare?model={PICTURES}").upload("Upload second image", mine)
    assert not screen.alerts and screen.address["picture"] == "chelsea" and "other_picture" not in screen.address
    second = screen.picker("Second image")
    assert second.options == ["a cat", "an astronaut", "mine.png"]
    (name,) = [one for one in (second.value,) if one.startswith("own-")]
    assert upload_of(name) is not None
    second.select("chelsea")
    assert screen.run().address["other_picture"] == "chelsea"
    assert screen.picker("Second image").options == ["a cat", "an astronaut"]
    assert name not in [one.name for one in screen.app.session_state["visit"].brought.values()]


def test_a_mask_has_run_on_the_picture() -> None:
    screen = Screen().open(f"/masks?model={PICTURES}&mask=prefix&prefix=1&query=1&key=0")
    assert "Before: patch 0, 0 may attend to every patch" in screen.words
    assert "With the mask: patch 0, 0 may not attend to 255 of the 256 patches" in screen.words
    screen.press(plain("From [CLS]"))
    assert screen.address["query"] == "0"
    assert "With the mask: [CLS] may not attend to 256 of the 256 patches" in screen.words


@pytest.mark.parametrize("named", ["", "&stream=cross"])
def test_of_an_hour_of_sound_a_window_is_heard_that_can_be_chosen(named: str, tmp_path: Path) -> None:
    import numpy as np
    import soundfile

    spoken, rate = soundfile.read(SAMPLES["window"].path, dtype="int16")
    hour, path = np.zeros(3_600 * rate, np.int16), tmp_path / "hour.flac"
    hour[1_800 * rate : 1_800 * rate + len(spoken)] = spoken
    soundfile.write(path, hour, rate)
    screen = Screen().open(f"/?model={SOUNDS}{named}").upload("Upload audio", path)
    start = screen.picker("Start at second")
    assert (start.value, start.max) == (0.0, 3_599.0)
    assert "reads 30 s at once" in screen.words and any("probability of no speech" in one for one in screen.alerts)
    # Silence is told as such, and no word has a time.
    assert all(one["start"] is None for one in screen.packed().get("seen", {}).get("sound", {}).get("words", []))
    start.set_value(1_800.0)
    screen.run()
    assert "Seconds 1,800.00 to" in screen.words and not screen.alerts
    words = screen.packed()["seen"]["sound"]["words"]
    assert [one["text"] for one in words][:4] == ["She", "opened", "the", "window"]
    assert words[3]["start"] < 3


@pytest.mark.parametrize("name", [PICTURES, SOUNDS])
def test_the_pickers_say_from_the_first_moment_on_which_head_a_sample_is_opened_with(name: str) -> None:
    trace = shown(name, CATALOGUE[name].samples[0])
    best = av.findings(trace)[0]
    known = opened_on(name)
    assert (known["layer"], known["head"]) == (trace.layer_numbers(best.stream).index(best.layer), best.head)
    assert known.get("stream", best.stream) == best.stream
    # Masks looks for no head of its own, so what it opens on is what was known before the run.
    for screen in (Screen().open(f"/masks?model={name}"), Screen().open("/masks").pick("Model", name)):
        assert (screen.address["layer"], screen.address["head"]) == (str(best.layer), str(best.head))
