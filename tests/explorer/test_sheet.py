"""Several images beside a text, and tiles beside a reduced copy: each patch where its placeholder reads."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

import attention_viz as av
from attention_viz.explorer import pack
from attention_viz.explorer.packet import read_packet
from attention_viz.explorer.seen import on_sheet, sheet_of
from tests.conftest import OpenPage
from tests.models.picture_families import PIXELS, PROCESSORS, text_of, tiny_of

TALL = np.random.default_rng(3).integers(0, 256, (64, 40, 3), dtype=np.uint8)


def traced(family: str, *pixels: "np.ndarray[tuple[int, int, int], np.dtype[np.uint8]]") -> av.Trace:
    model = av.wrap(tiny_of(family), PROCESSORS[family]())
    return model.trace(text_of(family, len(pixels)), pictures=[av.Picture(one) for one in pixels])


def test_two_images_of_two_sizes_have_each_patch_where_it_reads() -> None:
    trace = traced("qwen2_5_vl", PIXELS, TALL)
    sheet, tokens = sheet_of(trace), trace.query_tokens("decoder")
    assert sheet is not None and not sheet.video
    assert [(one.name, one.row, one.column, one.down, one.across) for one in sheet.panels] == [
        ("image 1", 0, 0, 4, 6),
        ("image 2", 0, 7, 4, 2),
    ]
    pictures = [one.numpy() for one in trace.seen.pictures]
    pixels, seen = sheet.pixels(pictures), set[tuple[int, ...]]()
    for place, region in zip(on_sheet(trace, tokens).place, tokens.regions, strict=True):
        assert (place is None) == (region is None)
        if place is None or region is None:
            continue
        high, wide = pictures[region.picture].shape[:2]
        top, left = round(region.top * high), round(region.left * wide)
        row, column = (16 * int(one) for one in place)
        found = pixels[row : row + 16, column : column + 16]
        assert np.array_equal(found, pictures[region.picture][top : top + 16, left : left + 16])
        seen.add((row, column))
    assert len(seen) == 32
    assert not pixels[:, 96:112].any() and pixels[:, 80:96].any() and pixels[:, 112:128].any()


@pytest.mark.parametrize(("family", "tiles", "small"), [("idefics3", (4, 4), (2, 2)), ("llava_next", (6, 8), (4, 4))])
def test_tiles_stand_beside_the_reduced_copy(family: str, tiles: tuple[int, int], small: tuple[int, int]) -> None:
    trace = traced(family, PIXELS)
    sheet, tokens = sheet_of(trace), trace.query_tokens("decoder")
    assert sheet is not None
    assert [(one.name, one.down, one.across) for one in sheet.panels] == [("image", *tiles), ("image, reduced", *small)]
    places = on_sheet(trace, tokens).place
    for place, region in zip(places, tokens.regions, strict=True):
        assert (place is None) == (region is None)
        if place is None or region is None:
            continue
        panel = sheet.panels[region.thumbnail]
        # The middle of the cell lies in what was measured.
        down, across = (place[0] - panel.row + 0.5) / panel.down, (place[1] - panel.column + 0.5) / panel.across
        assert region.top <= down <= region.bottom and region.left <= across <= region.right
    assert len({*places} - {None}) == tiles[0] * tiles[1] + small[0] * small[1]
    # A control: without one of its regions an image has no grid.
    gone = next(at for at, one in enumerate(tokens.regions) if one is not None)
    fewer = replace(tokens, regions=tuple(None if at == gone else one for at, one in enumerate(tokens.regions)))
    broken = replace(trace, queries={**trace.queries, "decoder": fewer}, keys={**trace.keys, "decoder": fewer})
    assert sheet_of(broken) is None


def test_one_image_in_one_grid_has_no_sheet() -> None:
    trace = traced("qwen2_5_vl", PIXELS)
    header, _ = read_packet(pack(trace))
    assert sheet_of(trace) is None and "sheet" not in header["seen"]["picture"]
    assert all("named" not in one for one in header["axes"])


def test_a_word_lights_both_images(open_page: OpenPage, tmp_path: Path) -> None:
    trace, file = traced("qwen2_5_vl", PIXELS, TALL), tmp_path / "two.html"
    av.explore(trace).save_html(file)
    page = open_page(file.as_uri())
    picture = page.get_by_test_id("picture")
    picture.wait_for()
    expect(page.locator(".av-panel-name")).to_have_text(["image 1", "image 2"])
    tokens = trace.query_tokens("decoder")
    last = len(tokens) - 1
    row = trace.weights(0, 0, "decoder")[last]
    line = page.get_by_test_id("explorer-arcs")
    line.locator(f'[data-place="{last}"]').hover()
    chips = line.locator(".av-picture-chip")
    expect(chips).to_have_text(["image 1", "image 2"])
    for number in (0, 1):
        on = torch.tensor([one is not None and one.picture == number for one in tokens.regions])
        expect(chips.nth(number)).to_have_attribute("data-weight", f"{float(row[on].sum()):.2f}")
    # The lower right patch of the second image: what the last word gives to it.
    box = picture.bounding_box()
    assert box is not None
    picture.hover(position={"x": box["width"] * 8.5 / 9, "y": box["height"] * 3.5 / 4})
    expect(page.get_by_test_id("explorer-sentence")).to_contain_text("this part of the images")
    at = next(
        at
        for at, one in enumerate(tokens.regions)
        if one is not None and one.picture == 1 and one.bottom == one.right == 1
    )
    expect(line.locator(f'[data-place="{last}"]')).to_have_attribute(
        "data-weight", re.compile(f"{float(row[at]):.2f}|<0.01|^0$")
    )
