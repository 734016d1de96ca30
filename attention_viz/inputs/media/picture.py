"""Open an image with care, convert it to RGB, and note all changes."""

import io
import warnings
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from attention_viz.errors import UnusablePicture
from attention_viz.inputs.media.arrays import array_of
from attention_viz.trace.provenance import renamed

__all__ = ["MOST_PIXELS", "Picture"]

# Raster formats that Pillow itself reads.
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
# The most pixels decoded, by the file's header: 50 million take 0.15 GB.
MOST_PIXELS = 50_000_000
# The smallest side of an image, in pixels.
_SMALLEST = 8
# A strip of 8 × 6,000,000 pixels, of which a processor makes 256 × 192,000,000, would take all memory there is.
_LONGEST_FOR_WIDTH = 50
_LARGEST_FILE = 200_000_000
# The camera's orientation in EXIF, and its values that turn or mirror an image.
_ORIENTATION, _TURNED = 0x0112, range(2, 9)


class Picture:
    """An image in red, green and blue.

    Attributes:
        pixels: (row, column, 3), integers from 0 to 255.
        name: file name, or "picture" if there is none.
        notes: changes made while opening it, as sentences.
    """

    def __init__(self, source: "str | PathLike[str] | bytes | Image.Image | NDArray[Any] | Any") -> None:
        """Open an image.

        The camera's orientation is applied. An animation gives its first frame, transparency becomes white, and other
        colour modes become RGB; `notes` lists these changes.

        Args:
            source: the path of a PNG, JPEG, WebP, GIF, BMP or TIFF file, its bytes, a Pillow image, or an array: (row,
                column) or (row, column, 3 or 4), integers from 0 to 255, floats from 0 to 1, or booleans, whose True is
                white.
        """
        notes = list[str]()
        self.name = "picture"
        if isinstance(source, str | PathLike):
            self.name = Path(source).name
            source = _content(fspath(source))
        if isinstance(source, bytes):
            opened = _opened(source, self.name)
        elif isinstance(source, Image.Image):
            opened = source
        else:
            opened = _of_array(source)
        _check_size(opened, self.name)
        try:
            self.pixels = _in_colours(opened, notes)
        except MemoryError:
            raise
        except Exception as error:  # readers raise all kinds of errors on broken files
            raise UnusablePicture(f"{self.name} is broken: {error}") from error
        self.pixels.flags.writeable = False
        self.notes = tuple(notes)

    told = renamed("told", "notes")

    @property
    def size(self) -> str:
        """Width and height."""
        height, width, _ = self.pixels.shape
        return f"{width} × {height}"

    def __repr__(self) -> str:
        """Return its name and size."""
        return f"Picture({self.name!r}, {self.size})"


def _content(path: str) -> bytes:
    try:
        size = Path(path).stat().st_size
        if size > _LARGEST_FILE:
            raise UnusablePicture(f"{Path(path).name} has {size:,} bytes; use at most {_LARGEST_FILE:,}")
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, UnusablePicture):
            raise
        raise UnusablePicture(f"can't read an image at {path[:200]!r}: {error}") from None


def _opened(content: bytes, name: str) -> Image.Image:
    """Open the file's image; only its header is read yet."""
    if b"<svg" in content[:2000].lower():
        raise UnusablePicture(f"{name} is an SVG file, which has no pixels; save it as PNG first")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our own limit is lower
            return Image.open(io.BytesIO(content), formats=FORMATS)
    except Image.DecompressionBombError:
        raise UnusablePicture(f"{name} has far more pixels than the {MOST_PIXELS:,} allowed; make it smaller") from None
    except UnidentifiedImageError:
        what = "empty" if not content else "broken or in an unknown format"
        raise UnusablePicture(f"{name} is {what}; use {', '.join(FORMATS)}") from None
    except MemoryError:
        raise
    except Exception as error:  # likewise of its head
        raise UnusablePicture(f"{name} is broken: {error}") from error


def _of_array(source: Any) -> Image.Image:
    if not hasattr(source, "__array__"):
        raise UnusablePicture(
            f"an image must be a path, a file's bytes, a Pillow image or an array; got {type(source).__name__}"
        )
    numbers = array_of(source, "an image", UnusablePicture)
    if numbers.ndim not in (2, 3) or (numbers.ndim == 3 and numbers.shape[2] not in (3, 4)):
        raise UnusablePicture(f"an image array must be (row, column) or (row, column, 3 or 4); got {numbers.shape}")
    if numbers.size and numbers.dtype.kind == "f":
        if not (np.isfinite(numbers).all() and numbers.min() >= 0 and numbers.max() <= 1):
            found = f"{numbers.min():g} to {numbers.max():g}"
            raise UnusablePicture(f"a floating-point image array must be from 0 to 1; got {found}")
        numbers = np.round(numbers * 255)
    elif numbers.dtype.kind == "b":
        numbers = numbers * np.uint8(255)
    elif numbers.dtype.kind not in "iu":
        raise UnusablePicture(f"an image array must hold floats or whole numbers; got {numbers.dtype}")
    elif numbers.size and (numbers.min() < 0 or numbers.max() > 255):
        found = f"{numbers.min()} to {numbers.max()} in {numbers.dtype}"
        raise UnusablePicture(f"a whole-number image array must be from 0 to 255; got {found}")
    if not numbers.size:
        raise UnusablePicture(f"the image has no pixels; its array is {numbers.shape}")
    return Image.fromarray(np.ascontiguousarray(numbers, np.uint8))


def _check_size(picture: Image.Image, name: str) -> None:
    width, height = picture.size
    if width * height > MOST_PIXELS:
        raise UnusablePicture(
            f"{name} is {width:,} × {height:,} pixels, {width * height:,} in all; use at most {MOST_PIXELS:,}"
        )
    if min(width, height) < _SMALLEST:
        raise UnusablePicture(f"{name} is only {width} × {height} pixels; use at least {_SMALLEST} × {_SMALLEST}")
    if max(width, height) > _LONGEST_FOR_WIDTH * min(width, height):
        raise UnusablePicture(
            f"{name} is {width:,} × {height:,} pixels, one side more than {_LONGEST_FOR_WIDTH} times the other; crop it"
        )


def _in_colours(picture: Image.Image, notes: list[str]) -> NDArray[np.uint8]:
    """Return RGB values, and note all changes."""
    frames = int(getattr(picture, "n_frames", 1))
    if frames > 1:
        notes.append(f"The first of {frames} frames was read.")
        picture.seek(0)
    turned = ImageOps.exif_transpose(picture)
    if picture.getexif().get(_ORIENTATION) in _TURNED:
        notes.append("It was rotated as the camera noted.")
    if turned.mode.startswith(("I", "F")):
        turned = _from_deep(turned, notes)
    if turned.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in turned.info:
        notes.append("Transparent parts were put on white.")
        above = turned.convert("RGBA")
        turned = Image.alpha_composite(Image.new("RGBA", above.size, "white"), above)
    elif turned.mode not in ("RGB", "L", "P", "1"):
        notes.append(f"Its colours were converted from {turned.mode} to red, green and blue, without a profile.")
    return np.array(turned.convert("RGB"))


def _from_deep(picture: Image.Image, notes: list[str]) -> Image.Image:
    """Reduce 16- or 32-bit grey to 8 bits.

    White is 65535; for 32 bits it is 255 if no value is larger, or 1 for floats up to 1.
    """
    numbers = np.nan_to_num(np.asarray(picture, np.float64))
    largest = numbers.max(initial=0)
    if picture.mode.startswith("I;16") or largest > 255:
        most = 65535.0
    else:
        most = 1.0 if picture.mode == "F" and largest <= 1 else 255.0
    notes.append(f"Its grey of more than 8 bits ({picture.mode}) was rounded to 8.")
    return Image.fromarray(np.round(np.clip(numbers / most, 0, 1) * 255).astype(np.uint8))
