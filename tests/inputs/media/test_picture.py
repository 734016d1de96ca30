"""Pictures are opened with care: what is wrong with one is said by name, and what is done to it is told."""

import io
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

import attention_viz as av
from attention_viz.inputs.media.shipped import SAMPLES

RED = Image.new("RGB", (20, 10), (200, 10, 30))


def as_bytes(picture: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    held = io.BytesIO()
    picture.save(held, kind, **options)
    return held.getvalue()


def with_byte(content: bytes, place: int, byte: int) -> bytes:
    """A file of which one byte is another: here of a TIFF, in how many entries its head has."""
    return content[:place] + bytes([byte]) + content[place + 1 :]


def png_of(width: int, height: int) -> bytes:
    """A PNG that says it has this size, and holds next to nothing."""

    def piece(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = piece(b"IHDR", head) + piece(b"IDAT", zlib.compress(b"")) + piece(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def test_a_plain_picture_is_what_it_was_and_nothing_is_told() -> None:
    found = av.Picture(as_bytes(RED))
    assert found.pixels.shape == (10, 20, 3)
    assert (found.pixels == (200, 10, 30)).all()
    assert found.notes == ()


def test_path_bytes_array_and_pillow_give_the_same(tmp_path: Path) -> None:
    (tmp_path / "red.png").write_bytes(as_bytes(RED))
    ways = (str(tmp_path / "red.png"), tmp_path / "red.png", as_bytes(RED), RED, np.asarray(RED))
    assert len({av.Picture(way).pixels.tobytes() for way in ways}) == 1
    floating = np.asarray(RED) / 255
    assert (av.Picture(floating).pixels == np.asarray(RED)).all()


@pytest.mark.parametrize(
    ("make", "told", "pixel"),
    [
        (lambda: as_bytes(RED.convert("CMYK"), "TIFF"), "from CMYK", None),
        (lambda: as_bytes(Image.new("RGBA", (20, 10), (0, 0, 0, 0))), "on white", (255, 255, 255)),
        (lambda: as_bytes(Image.new("L", (20, 10), 7)), None, (7, 7, 7)),
        (lambda: as_bytes(Image.fromarray(np.full((10, 20), 65535, np.uint16))), "more than 8 bits", (255, 255, 255)),
        (lambda: as_bytes(Image.new("F", (20, 10), 0.5), "TIFF"), "more than 8 bits", (128, 128, 128)),
        (lambda: as_bytes(Image.new("F", (20, 10), 51.0), "TIFF"), "more than 8 bits", (51, 51, 51)),
        (
            lambda: as_bytes(RED, "GIF", save_all=True, append_images=[Image.new("RGB", (20, 10), "blue")]),
            "first of 2 frames",
            (200, 10, 30),
        ),
    ],
)
def test_other_kinds_are_turned_to_colours_and_told(
    make: Callable[[], bytes], told: str | None, pixel: tuple[int, int, int] | None
) -> None:
    found = av.Picture(make())
    assert found.pixels.shape == (10, 20, 3)
    assert found.notes == () if told is None else told in " ".join(found.notes)
    if pixel is not None:
        assert np.abs(found.pixels[0, 0].astype(int) - pixel).max() <= 1


def test_a_picture_is_turned_as_its_camera_was_held() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # the top of the scene lies to the right
    left_blue = RED.copy()
    left_blue.paste((0, 0, 255), (0, 0, 10, 10))
    found = av.Picture(as_bytes(left_blue, "PNG", exif=exif))
    assert found.pixels.shape == (20, 10, 3)
    assert tuple(found.pixels[0, 5]) == (0, 0, 255)
    assert "rotated as the camera noted" in " ".join(found.notes)


@pytest.mark.parametrize("orientation", [0, 1, 9, 77])
def test_an_image_that_was_not_turned_is_not_said_to_be(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    found = av.Picture(as_bytes(RED, "PNG", exif=exif))
    assert found.notes == ()
    assert np.array_equal(found.pixels, av.Picture(RED).pixels)


def test_true_is_white() -> None:
    mask = np.arange(200).reshape(10, 20) % 3 == 0
    assert np.array_equal(av.Picture(mask).pixels[..., 1], np.where(mask, 255, 0))
    assert np.array_equal(av.Picture(torch.from_numpy(mask)).pixels, av.Picture(Image.fromarray(mask)).pixels)
    assert np.array_equal(av.Video(np.stack([mask, ~mask])).frames[1, ..., 0], np.where(mask, 0, 255))


@pytest.mark.parametrize("how", [Tensor.requires_grad_, Tensor.bfloat16, Tensor.half, Tensor.double])
def test_a_tensor_of_any_kind_is_read(how: Callable[[Tensor], Tensor]) -> None:
    numbers = torch.arange(600).reshape(10, 20, 3) / 1024
    own = how(numbers.clone())
    expected = np.round(own.detach().double().numpy() * 255)
    assert np.abs(av.Picture(own).pixels - expected).max() <= (how is Tensor.half)
    assert np.array_equal(av.Video(own[None]).frames[0], av.Picture(own).pixels)
    samples = how(torch.arange(600) / 1024)
    heard = av.Sound(samples, 8000).samples
    assert np.allclose(heard, samples.detach().double().numpy())


class Broken:
    """An array that can't be read."""

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise RuntimeError("no numbers here")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (torch.zeros(1, 9, 9, 3, device="meta")[0], "meta device, without numbers"),
        (torch.ones(9, 9).to_sparse(), "layout torch.sparse_coo"),
        (Broken(), "from Broken: no numbers here"),
    ],
)
def test_what_has_no_numbers_is_said_by_name(source: Any, says: str) -> None:
    for read, error in ((av.Picture, av.UnusablePicture), (av.Video, av.UnusableVideo)):
        with pytest.raises(error, match=says):
            read(source)
    with pytest.raises(av.UnusableSound, match=says):
        av.Sound(source, 8000)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (as_bytes(Image.new("RGB", (1, 1))), "1 × 1 pixels"),
        (as_bytes(Image.new("RGB", (8, 401))), r"8 × 401 pixels, one side more than 50 times the other"),
        (as_bytes(Image.new("L", (60_000, 800))), r"60,000 × 800 pixels, one side more than 50 times the other"),
        (png_of(20_000, 20_000), "far more pixels"),
        (png_of(9_000, 9_000), "81,000,000 in all"),
        (b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>', "SVG"),
        (b"", "empty"),
        (b"no picture at all", "broken or in an unknown format; use PNG"),
        (as_bytes(Image.effect_noise((64, 64), 50))[:900], "broken"),
        (with_byte(as_bytes(RED, "TIFF"), 8, 8), "broken"),
        ("/nowhere/cat.png", "'/nowhere/cat.png'"),
        (np.zeros((10, 20, 5), np.uint8), "(10, 20, 5)"),
        (np.full((10, 20, 3), 300), "0 to 255; got 300 to 300"),
        (np.full((10, 20, 3), 2.0), "from 0 to 1; got 2 to 2"),
        (np.full((10, 20, 3), np.nan), "from 0 to 1; got nan"),
        (np.full((10, 20, 3), 1j), "got complex128"),
        (np.zeros((0, 20, 3), np.uint8), "no pixels"),
        (7, "got int"),
    ],
)
def test_what_can_not_be_read_is_said_by_name(source: Any, says: str) -> None:
    with pytest.raises(av.UnusablePicture) as told:
        av.Picture(source)
    assert says in str(told.value)


def test_a_bomb_is_refused_before_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image.Image, "convert", lambda *_: pytest.fail("decoded"))
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda *_: pytest.fail("decoded"))
    with pytest.raises(av.UnusablePicture):
        av.Picture(png_of(9_000, 9_000))


@pytest.mark.parametrize("name", [name for name, one in SAMPLES.items() if one.kind == "picture"])
def test_the_samples_are_pictures_that_say_whose_they_are(name: str) -> None:
    sample = SAMPLES[name]
    assert min(av.Picture(sample.path).pixels.shape[:2]) >= 224
    assert f"`{sample.file}`" in sample.path.with_name("README.md").read_text("utf-8")
    assert sample.whose
