"""A scan of texts with images: its numbers are those of single traces, and its words' regions are found again here."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import attention_viz as av
from attention_viz.analysis.metrics import metrics_in
from attention_viz.cli import main
from attention_viz.cli.exits import REFUSED
from attention_viz.corpus import scanning
from attention_viz.inputs.media.shapes import DRAWN, draw_shapes
from attention_viz.trace.trace import Trace
from tests.corpus.test_scan import StoppedError, files_of, stop_after
from tests.models.picture_families import PIXELS, WHOLE, text_of, tiny_of
from tests.shipped import shipped

QUESTIONS = ("what colour is the circle ?", "what is top left ?", "what is red ?")
MUTE = {"what", "is", "the", "?"}
METRICS = list(metrics_in("softmax"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images of shapes, and tables that name them."""
    found = tmp_path_factory.mktemp("images")
    for name, shapes in DRAWN.items():
        Image.fromarray(draw_shapes(shapes).pixels).save(found / f"{name}.png")
    rows = [{"text": text, "picture": f"{name}.png"} for name in DRAWN for text in QUESTIONS]
    (found / "asked.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (found / "asked.csv").write_text("text,picture\n" + "\n".join(f"{one['text']},{one['picture']}" for one in rows))
    return found


def pairs(folder: Path) -> list[tuple[str, Path]]:
    return [(text, folder / f"{name}.png") for name in DRAWN for text in QUESTIONS]


@cache
def traces(folder: Path) -> list[Trace]:
    model = shipped("shapes")
    return [model.trace(text, picture=av.Picture(path)) for text, path in pairs(folder)]


@pytest.fixture(scope="module")
def found(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> av.Scan:
    return av.scan(shipped("shapes"), folder / "asked.jsonl", tmp_path_factory.mktemp("scan"), workers=2)


@pytest.mark.parametrize("stream", ["picture", "decoder"])
def test_the_numbers_of_a_scan_are_those_of_single_traces(found: av.Scan, folder: Path, stream: str) -> None:
    several = traces(folder)
    own, scanned = av.head_table(several, stream=stream), found.of(stream)
    assert found.streams == ("picture", "decoder") and found.manifest["done"]["texts"] == len(several)
    for ending in ("", "_spread", "_n"):
        known = [name + ending for name in METRICS if name in own]
        assert scanned.table[known].to_numpy() == pytest.approx(own[known].to_numpy(), abs=1e-6, nan_ok=True)
    roles = av.roles(several, stream)
    assert scanned.roles["role"].tolist() == roles["role"].tolist()
    assert scanned.roles["score"].tolist() == pytest.approx(roles["score"].tolist(), abs=1e-6)
    assert scanned.roles["label"].tolist() == roles["label"].tolist()
    best = scanned.examples(2, 1, "confidence").iloc[0]
    trace = several[int(best["text"])]
    row = trace.weights(2, 1, stream)[int(best["query"])]
    assert int(row.argmax()) == best["key"] and float(row.max()) == pytest.approx(best["weight"], abs=1e-6)
    assert best["said"] == trace.provenance.text and Path(best["picture"]) == pairs(folder)[int(best["text"])][1]


def region_of(row: np.ndarray, others: Sequence[np.ndarray]) -> tuple[float, float] | None:
    """The weight of the region that a word attends to, and how many times its area that is; None if none stands out."""
    image = row[1:65].reshape(8, 8)
    start = tuple(map(int, np.unravel_index(int(image.argmax()), image.shape)))
    waiting, region = [start], {start}
    while waiting:
        down, across = waiting.pop()
        for place in ((down - 1, across), (down + 1, across), (down, across - 1), (down, across + 1)):
            if min(place) >= 0 and max(place) < 8 and place not in region and image[place] >= image.max() / 2:
                region.add(place)
                waiting.append(place)
    share, area = float(sum(image[place] for place in region)), len(region) / 64
    times = share / float(image.sum()) / area
    moved = [
        [(down + rows, across + columns) for down, across in region]
        for rows in range(-7, 8)
        for columns in range(-7, 8)
    ]
    free = [some for some in moved if all(0 <= min(at) and max(at) < 8 and at not in region for at in some)]
    elsewhere = max((float(sum(image[place] for place in some)) for some in free), default=share)
    given = [float(sum(one[1:65].reshape(8, 8)[place] for place in region)) for one in others]
    outstanding = share >= 0.4 and times >= 3 and area <= 0.25
    return (share, times) if outstanding and max(elsewhere, np.mean(given)) <= share / 2 else None


def test_words_that_attend_to_one_region_are_counted_by_head(found: av.Scan, folder: Path) -> None:
    for layer, head in ((1, 0), (0, 1), (2, 1), (2, 2)):
        words, regions = 0, list[tuple[float, float]]()
        for trace in traces(folder):
            said = trace.query_tokens("decoder").labels
            rows = {at: trace.weights(layer, head, "decoder")[at].numpy() for at in range(65, len(said))}
            rows.pop(len(said) - 1)  # the question mark
            for at, row in rows.items():
                if said[at] not in MUTE:
                    words += 1
                    one = region_of(row, [other for place, other in rows.items() if place != at])
                    regions += [] if one is None else [one]
        table = found.regions.loc[(layer, head)]
        assert (int(table["words"]), int(table["regions"])) == (words, len(regions))
        assert table["share"] == pytest.approx(len(regions) / words)
        assert table["label"] == ("attends to one region" if len(regions) >= words / 2 else "")
        if regions:
            weight, times = np.mean(regions, axis=0)
            assert table["weight"] == pytest.approx(weight, abs=1e-5)
            assert table["times"] == pytest.approx(times, rel=1e-4)
            assert str(table["said"]) in QUESTIONS
    # Control: the toy's head that names shapes finds them; another one doesn't.
    assert int(found.regions.loc[(1, 0)]["regions"]) >= 10 > int(found.regions.loc[(2, 2)]["regions"])
    assert set(found.of("decoder").kinds["key_kind"]) >= {"patch", "word", "function word"}
    assert set(found.of("picture").kinds["key_kind"]) == {"patch"}


def test_a_stopped_scan_goes_on_and_files_and_pairs_give_the_same(
    folder: Path, found: av.Scan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = shipped("shapes")
    monkeypatch.setattr(scanning, "CHUNK", 4)
    whole = av.scan(model, folder / "asked.csv", tmp_path / "whole", workers=1)
    with pytest.raises(StoppedError):
        av.scan(model, folder / "asked.csv", tmp_path / "parts", workers=2, progress=stop_after(8))
    partial = av.Scan.load(tmp_path / "parts", model)
    assert not partial.complete and partial.regions["words"].max() < whole.regions["words"].max()
    again = av.scan(model, folder / "asked.csv", tmp_path / "parts", workers=2)
    assert again.complete and files_of(tmp_path / "parts") == files_of(tmp_path / "whole")
    assert sum(map(len, files_of(tmp_path / "whole").values())) < 400_000
    handed = av.scan(model, pairs(folder), tmp_path / "handed")
    for one in (handed, whole):
        assert one.regions["regions"].tolist() == found.regions["regions"].tolist()
    assert av.Scan.load(tmp_path / "whole", model).test('key.text == "circle"', stream="decoder").verdict


def test_a_packed_family_without_places_in_its_tower_is_scanned_too(tmp_path: Path) -> None:
    model = av.wrap(tiny_of("qwen2_vl"), WHOLE["qwen2_vl"]())
    Image.fromarray(PIXELS).save(tmp_path / "one.png")
    texts = [text_of("qwen2_vl"), f"{text_of('qwen2_vl')} a red cat"]
    found = av.scan(model, [(text, tmp_path / "one.png") for text in texts], tmp_path / "scan")
    own = [model.trace(text, picture=av.Picture(PIXELS)) for text in texts]
    for stream in found.streams:
        table = av.head_table(own, stream=stream)
        known = [name for name in METRICS if name in table]
        assert found.of(stream).table[known].to_numpy() == pytest.approx(table[known].to_numpy(), abs=1e-6, nan_ok=True)
    assert set(found.of("picture").kinds["key_kind"]) == {"patch"}


def test_what_cant_be_scanned_is_refused_by_name(folder: Path, found: av.Scan, tmp_path: Path) -> None:
    model = shipped("shapes")
    (tmp_path / "texts.txt").write_text("what is red ?\n")
    (tmp_path / "texts.csv").write_text("text\nwhat is red ?\n")
    image = folder / "shapes-one.png"
    for texts, error, message in (
        (["what is red ?"], av.UnusableText, "texts has a text alone where a text with an image is needed"),
        (tmp_path / "texts.txt", av.UnusableText, "texts.txt has a text alone"),
        (tmp_path / "texts.csv", av.UnusableText, "no column 'picture'"),
        ([("what is red ?", tmp_path / "no.png")], av.UnusablePicture, "no image file at"),
        ([("what is red ?", av.Picture(PIXELS))], av.UnusablePicture, "must be a file's path"),
        ([("what is red ?", "")], av.UnusablePicture, "must be a file's path"),
    ):
        with pytest.raises(error, match=message):
            av.scan(model, texts, tmp_path / "out")
    with pytest.raises(av.ScanError, match="reads texts alone; leave out stream='mixer'"):
        av.scan(model, [("what is red ?", image)], tmp_path / "out", stream="mixer")
    with pytest.raises(av.UnsupportedModel, match="reads no text with an image; leave out picture='picture'"):
        av.scan(shipped("induction"), av.Corpus(folder / "asked.csv", picture="picture"), tmp_path / "out")
    with pytest.raises(av.UnusableText, match="has a text with an image; choose a model that reads both"):
        av.scan(shipped("induction"), [("moon", image)], tmp_path / "out")
    for refused in (found.study, lambda: found.site(tmp_path / "site")):
        with pytest.raises(av.ScanError, match="a scan of texts with images: use its tables"):
            refused()
    with pytest.raises(av.ScanError, match="texts have no images"):
        _ = av.scan(shipped("induction"), ["moon cheese frog moon"], tmp_path / "words").regions


def test_a_broken_image_is_counted_and_a_changed_one_is_noticed(folder: Path, tmp_path: Path) -> None:
    model = shipped("shapes")
    good, broken = tmp_path / "good.png", tmp_path / "broken.png"
    good.write_bytes((folder / "shapes-one.png").read_bytes())
    broken.write_bytes(good.read_bytes()[:60])
    found = av.scan(model, [("what is red ?", good), ("what is red ?", broken)], tmp_path / "scan")
    assert (found.manifest["done"]["texts"], found.manifest["done"]["skipped"]) == (2, 1)
    good.write_bytes((folder / "shapes-two.png").read_bytes())
    with pytest.raises(av.ScanError, match=r"good\.png has changed since the scan read it"):
        found.test('key.text == "red"', stream="decoder")
    with pytest.raises(av.ScanError, match="another corpus"):
        av.scan(model, [("what is red ?", good), ("what is red ?", broken)], tmp_path / "scan")


def test_an_image_with_an_empty_text_is_counted_as_skipped(folder: Path, tmp_path: Path) -> None:
    image = folder / "shapes-one.png"
    texts = [("", image), ("what is red ?", image), (" \n", image)]
    found = av.scan(shipped("shapes"), texts, tmp_path / "scan")
    assert (found.manifest["done"]["texts"], found.manifest["done"]["skipped"]) == (3, 2)
    assert set(found.of("decoder").examples(2, 1, "confidence")["text"]) == {1}


def test_the_command_scans_texts_with_images(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ("--out", str(tmp_path / "scan"), "--format", "csv")
    assert main(("scan", "shapes", str(folder / "asked.csv"), "--picture", "picture", *out)) == 0
    printed = capsys.readouterr().out
    assert '"picture",0,0,' in printed and '"decoder",2,3,' in printed
    assert main(("scan", "shapes", str(folder / "asked.csv"), "--picture", "file", *out)) == REFUSED
    assert "no column 'file'" in capsys.readouterr().err
