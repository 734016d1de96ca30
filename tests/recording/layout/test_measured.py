"""Which rectangle of an image each placeholder reads, in sixteen families."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

import attention_viz as av
from attention_viz.errors import UnsupportedModel
from attention_viz.inputs.media.beside import Beside, BesideReader
from attention_viz.inputs.media.readers import InputField
from attention_viz.inputs.media.remade import Remade
from attention_viz.recording.layout import measured as measuring
from attention_viz.recording.layout.measured import measured
from attention_viz.recording.layout.placeholders import MeasuredPlaceholders, Placeholders
from attention_viz.recording.recorder import Call, whole_output
from attention_viz.recording.runner import Runner
from attention_viz.trace.tokens import Region
from tests.models.picture_families import IMAGE, PIXELS, PROCESSORS, tensors_of, text_of, tiny_of

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
SQUARE = PIXELS[:, :64]
Places = list[Region | None]


def grid(rows: int, columns: int, *, thumbnail: bool = False, picture: int = 0) -> Places:
    """Equal rectangles, row by row."""
    cells = [(row, column) for row in range(rows) for column in range(columns)]
    return [
        Region(picture, row / rows, column / columns, (row + 1) / rows, (column + 1) / columns, thumbnail)
        for row, column in cells
    ]


def tiled(rows: int, columns: int) -> Places:
    """Tiles row by row, each of 2 × 2 tokens row by row, and the thumbnail last."""
    own, wide = grid(2 * rows, 2 * columns), 2 * columns
    order = [
        (2 * row + down) * wide + 2 * column + across
        for row in range(rows)
        for column in range(columns)
        for down in (0, 1)
        for across in (0, 1)
    ]
    return [*(own[at] for at in order), *grid(2, 2, thumbnail=True)]


def with_newlines() -> Places:
    """The thumbnail first, then rows over all tiles, each ended by a placeholder that nothing moves."""
    own = grid(8, 8)
    rows: list[Places] = [[*own[8 * row : 8 * row + 8], None] for row in range(8)]
    return [*grid(4, 4, thumbnail=True), *(one for row in rows for one in row)]


def of_hunyuan() -> Places:
    """A begin, a newline after each row, and an end."""
    own = grid(4, 6)
    rows: list[Places] = [[*own[6 * row : 6 * row + 6], None] for row in range(4)]
    return [None, *(one for row in rows for one in row), None]


WHOLE = dict.fromkeys(("llava", "vipllava", "paligemma", "gemma3"), grid(4, 4))
PACKED = dict.fromkeys(("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5", "glm4v", "paddleocr_vl"), grid(4, 6))
EXPECTED: dict[str, Places] = {
    **WHOLE,
    **PACKED,
    "hunyuan_vl": of_hunyuan(),
    "idefics3": tiled(2, 2),
    "aya_vision": tiled(2, 2),
    "internvl": tiled(2, 3),
    "llava_next": with_newlines(),
    "llava_onevision": with_newlines(),
}


def read(family: str, pictures: int = 1) -> InputField:
    pixels = SQUARE if family in ("llava_next", "llava_onevision") else PIXELS
    reader = BesideReader(family, tiny_of(family), PROCESSORS[family]())
    return reader.read(Beside(text_of(family, pictures), (av.Picture(pixels),) * pictures))


def places(family: str) -> Places:
    given = read(family)
    assert isinstance(given.remade, Remade)
    marks = (given.tensors["input_ids"][0] == IMAGE).nonzero()[:, 0].tolist()
    found, _ = measured(Runner.of(tiny_of(family)), given.remade, marks)
    return list(found)


def test_all_families_are_tried() -> None:
    assert EXPECTED.keys() == PROCESSORS.keys()
    assert len(EXPECTED) >= 14


@pytest.mark.parametrize("family", EXPECTED)
def test_each_placeholder_has_the_rectangle_that_moves_it_or_none(family: str) -> None:
    found = places(family)
    wanted = EXPECTED[family]
    assert [one is None for one in found] == [one is None for one in wanted]
    for one, other in zip(found, wanted, strict=True):
        if one is not None and other is not None:
            assert (one.picture, one.thumbnail) == (other.picture, other.thumbnail)
            assert (one.top, one.left) == pytest.approx((other.top, other.left), abs=1e-9)
            assert (one.bottom, one.right) == pytest.approx((other.bottom, other.right), abs=1e-9)


@pytest.mark.parametrize("family", ["llava", "paligemma", "gemma3"])
def test_with_the_towers_attention_left_on_the_places_would_be_wrong(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hear(_recorder: object, call: Call) -> Tensor:
        return whole_output(call.attention)

    monkeypatch.setattr(measuring.Apart, "hear", hear)
    assert places(family) != EXPECTED[family]


def test_runs_are_few() -> None:
    runs, own = list[object](), measuring.embedded

    def counted(runner: Runner, inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor | None]:
        runs.append(inputs)
        return own(runner, inputs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measuring, "embedded", counted)
        places("qwen2_5_vl")
    # Two for 3 bits of 8 rows and 4 bits of 12 columns each, the unchanged picture, and one that is changed throughout.
    assert len(runs) == 2 * (3 + 4) + 2


def test_a_shape_is_measured_once_whatever_the_text() -> None:
    known, runner = MeasuredPlaceholders(), Runner.of(tiny_of("llava"))
    given = read("llava")
    first = known.of(runner, given.remade, range(2, 18))
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(measuring, "embedded")
        second = known.of(runner, given.remade, range(5, 21))
    assert first.regions == second.regions
    assert second.marks == tuple(range(5, 21))


def test_two_images_have_their_own_rectangles() -> None:
    given = read("qwen2_vl", 2)
    assert isinstance(given.remade, Remade)
    marks = (given.tensors["input_ids"][0] == IMAGE).nonzero()[:, 0].tolist()
    found, _ = measured(Runner.of(tiny_of("qwen2_vl")), given.remade, marks)
    assert list(found) == [*grid(4, 6), *grid(4, 6, picture=1)]


def test_a_picture_that_isnt_resized_evenly_still_has_places_around_the_right_ones() -> None:
    """64 × 96 pixels are fitted into 64 × 64 and filled up, so that bands and patches don't align."""
    model, reader = tiny_of("llava_next"), BesideReader("llava_next", tiny_of("llava_next"), PROCESSORS["llava_next"]())
    given = reader.read(Beside(text_of("llava_next"), (av.Picture(PIXELS),)))
    assert isinstance(given.remade, Remade)
    marks = (given.tensors["input_ids"][0] == IMAGE).nonzero()[:, 0].tolist()
    found, _ = measured(Runner.of(model), given.remade, marks)
    rows = len([one for one in found if one is None])
    placed = [one for one in found if one is not None and not one.thumbnail]
    assert len(placed) == rows * 8
    for at, one in enumerate(placed):
        row, column = divmod(at, 8)
        assert one.top - 0.01 <= (row + 0.5) / rows <= one.bottom + 0.01
        assert one.left - 0.01 <= (column + 0.5) / 8 <= one.right + 0.01


def test_a_model_without_a_language_model_says_so() -> None:
    class Alone(torch.nn.Module):
        pass

    with pytest.raises(UnsupportedModel, match="Alone has no language model"):
        measuring.language_of(Alone())


def test_what_has_no_place_is_told() -> None:
    notes = Placeholders((1, 2), (None, Region(0, 0, 0, 1, 0.5))).notes
    assert notes == (
        "1 of 2 placeholders have no place in the image: no pixel moves them, as ends of lines, or all pixels do.",
    )
    assert Placeholders((1,), (Region(0, 0, 0, 1, 0.5),)).notes == ()


def test_a_region_outside_its_picture_is_refused() -> None:
    with pytest.raises(av.TraceError, match="edges in order"):
        Region(0, 0.5, 0, 0.5, 1)
    with pytest.raises(av.TraceError, match="edges in order"):
        Region(0, 0, 0, 1, float(np.float64(1.5)))


def rows_and_columns(family: str, pixels: "NDArray[np.uint8]", *, thumbnail: bool = False) -> tuple[int, int]:
    """Return the numbers of rows and columns of the tokens' rectangles, which are a whole grid."""
    given = BesideReader(family, tiny_of(family), PROCESSORS[family]()).read(
        Beside(text_of(family), (av.Picture(pixels),))
    )
    assert isinstance(given.remade, Remade)
    marks = (given.tensors["input_ids"][0] == IMAGE).nonzero()[:, 0].tolist()
    found, _ = measured(Runner.of(tiny_of(family)), given.remade, marks)
    own = [one for one in found if one is not None and one.thumbnail == thumbnail]
    rows, columns = {(one.top, one.bottom) for one in own}, {(one.left, one.right) for one in own}
    for sides in (sorted(rows), sorted(columns)):
        assert (sides[0][0], sides[-1][1]) == (0, 1)
        assert all(one[1] == pytest.approx(other[0]) for one, other in pairwise(sides))
    assert len(own) == len(rows) * len(columns)
    return len(rows), len(columns)


@pytest.mark.parametrize("family", ["internvl", "aya_vision"])
@pytest.mark.parametrize("colour", [(255, 255, 255), (9, 60, 200)])
def test_a_picture_of_one_colour_has_its_tiles_in_rows(family: str, colour: tuple[int, int, int]) -> None:
    plain = np.full((200, 200, 3), colour, np.uint8)
    assert rows_and_columns(family, plain) == (4, 4)


@pytest.mark.parametrize(
    ("family", "size", "grid"),
    [
        ("llava_next", (100, 100), (8, 8)),
        ("llava_onevision", (100, 100), (8, 8)),
        ("aya_vision", (96, 64), (4, 2)),
        ("aya_vision", (300, 90), (6, 2)),
        ("idefics3", (90, 210), (2, 4)),
    ],
)
def test_a_resized_picture_has_a_grid_without_overlaps(
    family: str, size: tuple[int, int], grid: tuple[int, int]
) -> None:
    pixels = np.random.default_rng(5).integers(0, 256, (*size, 3), dtype=np.uint8)
    assert rows_and_columns(family, pixels) == grid
    side = 4 if family.startswith("llava") else 2
    assert rows_and_columns(family, pixels, thumbnail=True) == (side, side)


def test_a_padded_picture_has_patches_that_begin_in_the_padding() -> None:
    """64 × 96 pixels are read as 43 × 64, 10 below the upper edge of tiles in patches of 8."""
    model, reader = tiny_of("llava_next"), BesideReader("llava_next", tiny_of("llava_next"), PROCESSORS["llava_next"]())
    given = reader.read(Beside(text_of("llava_next"), (av.Picture(PIXELS),)))
    assert isinstance(given.remade, Remade)
    assert (given.remade.sizes, given.remade.corners) == (((43, 64),), ((10, 0),))
    marks = (given.tensors["input_ids"][0] == IMAGE).nonzero()[:, 0].tolist()
    found, _ = measured(Runner.of(model), given.remade, marks)
    tops = sorted({one.top * 43 for one in found if one is not None and not one.thumbnail})
    assert tops == pytest.approx([0, 6, 14, 22, 30, 38])


@pytest.mark.parametrize("family", ["internvl", "aya_vision"])
def test_tensors_that_fit_several_orders_of_tiles_have_no_places(family: str) -> None:
    tensors = tensors_of(PROCESSORS[family](), text_of(family), [SQUARE])
    given = BesideReader(family, tiny_of(family), PROCESSORS[family]()).of_tensors(tensors)
    assert given.remade is None
    notes = MeasuredPlaceholders().of(Runner.of(tiny_of(family)), given.remade, [3]).notes
    assert "the size that the model reads can't be found" in notes[0]


def test_a_size_that_the_processor_never_reads_has_no_places() -> None:
    """8 × 400 pixels give 2 × 80 patches, but 16 × 640 pixels give 2 × 70."""
    pixels = np.random.default_rng(5).integers(0, 256, (8, 400, 3), dtype=np.uint8)
    reader = BesideReader("glm4v", tiny_of("glm4v"), PROCESSORS["glm4v"]())
    assert reader.read(Beside(text_of("glm4v"), (av.Picture(pixels),))).remade is None


def test_rectangles_that_overlap_are_refused() -> None:
    with pytest.raises(UnsupportedModel, match="overlap"):
        measuring.check_apart([Region(0, 0, 0, 0.375, 1), None, Region(0, 0, 0, 0.5, 1)])
    measuring.check_apart([Region(0, 0, 0, 0.5, 1), Region(0, 0.5, 0, 1, 1), Region(1, 0.2, 0, 0.7, 1)])
