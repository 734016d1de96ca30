"""A video beside a text: its frames with their times, and each patch where its placeholder reads."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from playwright.sync_api import expect

import attention_viz as av
from attention_viz.explorer import pack
from attention_viz.explorer.packet import read_packet
from attention_viz.explorer.seen import on_sheet, sheet_of
from tests.conftest import OpenPage
from tests.models.video_families import FRAMES, wrapped

TEXT = "what is <video> this ?"


def traced() -> av.Trace:
    return wrapped("qwen2_vl").trace(TEXT, video=av.Video(FRAMES, rate=2))


def test_each_placeholder_stands_on_its_frame_where_it_reads() -> None:
    trace = traced()
    film, tokens = sheet_of(trace), trace.query_tokens("decoder")
    assert film is not None and film.video and film.together
    assert [(one.picture, one.name) for one in film.panels] == [(0, "0.00 s"), (2, "1.00 s"), (4, "2.00 s")]
    pixels = film.pixels([one.numpy() for one in trace.seen.pictures])
    # 2 × 4 patches of 16 × 16 pixels for each frame, and one between two.
    placed = on_sheet(trace, tokens)
    seen = set[tuple[int, int]]()
    for place, region in zip(placed.place, tokens.regions, strict=True):
        assert (place is None) == (region is None)
        if place is None or region is None:
            continue
        (row, column), frame = map(int, place), FRAMES[region.picture]
        top, left = round(region.top * 32), round(region.left * 64)
        found = pixels[16 * row : 16 * row + 16, 16 * column : 16 * column + 16]
        assert np.array_equal(found, frame[top : top + 16, left : left + 16])
        assert not np.array_equal(
            found, FRAMES[region.picture + (1 if region.picture < 4 else -1)][top : top + 16, left : left + 16]
        )
        seen.add((row, column))
    assert len(seen) == 24
    rest = [
        pixels[16 * row : 16 * row + 16, 16 * column : 16 * column + 16]
        for row in range(pixels.shape[0] // 16)
        for column in range(pixels.shape[1] // 16)
        if (row, column) not in seen
    ]
    assert rest and not any(one.any() for one in rest)


def test_regions_that_are_no_grid_are_no_film() -> None:
    trace = traced()
    header, _ = read_packet(pack(trace))
    panels = header["seen"]["picture"]["sheet"]["panels"]
    assert [one["name"] for one in panels] == ["0.00 s", "1.00 s", "2.00 s"]
    # Without one of its regions there is no saying what that place reads.
    tokens = trace.query_tokens("decoder")
    gone = next(at for at, one in enumerate(tokens.regions) if one is not None)
    fewer = replace(tokens, regions=tuple(None if at == gone else one for at, one in enumerate(tokens.regions)))
    broken = replace(trace, queries={**trace.queries, "decoder": fewer}, keys={**trace.keys, "decoder": fewer})
    assert sheet_of(broken) is None and on_sheet(broken, fewer) is fewer


def test_a_word_lights_the_patches_of_every_frame(open_page: OpenPage, tmp_path: Path) -> None:
    trace, file = traced(), tmp_path / "film.html"
    av.explore(trace).save_html(file)
    page = open_page(file.as_uri())
    picture = page.get_by_test_id("picture")
    picture.wait_for()
    expect(page.locator(".av-panel-name")).to_have_text(["0.00 s", "1.00 s", "2.00 s"])
    line = page.get_by_test_id("explorer-arcs")
    last = len(trace.query_tokens("decoder")) - 1
    row = trace.weights(0, 0, "decoder")[last]
    on = torch.tensor([one is not None for one in trace.query_tokens("decoder").regions])
    line.locator(f'[data-place="{last}"]').hover()
    chip = line.locator(".av-picture-chip")
    expect(chip).to_have_text("video, all patches")
    expect(chip).to_have_attribute("data-weight", f"{float(row[on].sum()):.2f}")
    # A patch of the last frame, at its middle; then the black between two frames, which is no patch.
    film = sheet_of(trace)
    assert film is not None
    down, across = 2 * 3 - 1, 2 * 5 - 1
    assert [(one.row, one.column, one.down, one.across) for one in film.panels] == [
        (0, 0, 2, 4),
        (0, 5, 2, 4),
        (3, 0, 2, 4),
    ]
    box = picture.bounding_box()
    assert box is not None
    at = {"x": box["width"] * 2.5 / across, "y": box["height"] * 4.5 / down}
    picture.hover(position=at)
    expect(page.get_by_test_id("explorer-sentence")).to_contain_text(re.compile("this part of the video"))
    shown = line.locator(f'[data-place="{last}"]')
    place = on_sheet(trace, trace.query_tokens("decoder")).place.index((4, 2))
    expect(shown).to_have_attribute("data-weight", re.compile(f"{float(row[place]):.2f}|<0.01"))
    page.keyboard.press("Escape")
    picture.hover(position={"x": at["x"], "y": box["height"] * 2.5 / down})
    expect(page.get_by_test_id("explorer-sentence")).not_to_contain_text("this part of the video")
