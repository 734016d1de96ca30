"""Visitors' files, each with its visitor's own word in it, and their upload to the server."""

import io
import random
import tempfile
import urllib.request
from dataclasses import dataclass
from functools import cache
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import urlsplit

import soundfile
from PIL import Image

import attention_viz as av
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.protocol.model import Model
from attention_viz.ui.address.state import DEFAULT

__all__ = ["KINDS", "Brought", "bring", "put", "uploaded_bytes"]

# The pages' own fields, by what is brought.
_FIELDS = {
    "trace": "File from trace.save",
    "picture": "Upload image",
    "sound": "Upload audio",
}
KINDS = tuple(_FIELDS)
# Pixels a side at least, and seconds, of what is cut out of a sample.
_SMALLEST, _SHORTEST = 64, 0.5
# Parts of an upload are told from each other by a line that is in no file.
_BOUNDARY = "----attention-viz-visitor"
# Streamlit's own: the token of a browser, and the header in which it hands it back.
_COOKIE, _HEADER, _ASK = "_streamlit_xsrf", "X-Xsrftoken", "/_stcore/health"


@dataclass(frozen=True)
class Brought:
    """A visitor's file."""

    kind: str
    name: str
    content: bytes

    @property
    def label(self) -> str:
        """Return the label of the upload field."""
        return _FIELDS[self.kind]


def bring(kind: str, draw: random.Random, word: str) -> Brought:
    """Return a file that no other visitor has.

    Args:
        word: a word of its visitor's; a trace is of a text with it, a picture or a sound is called so.
    """
    if kind == "trace":
        return Brought(kind, f"{word}.safetensors", _trace(word))
    make, ending = (_picture, "png") if kind == "picture" else (_sound, "wav")
    return Brought(kind, f"{word}.{ending}", make(draw))


def _trace(word: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.safetensors"
        _traced_with().trace(f"The {word} of the river was brought").save(path)
        return path.read_bytes()


@cache
def _traced_with() -> Model:
    return av.load(DEFAULT.model)


def _picture(draw: random.Random) -> bytes:
    """A part of a sample, wherever and however large."""
    with Image.open(_sample("picture", draw)) as whole:
        wide, high = (draw.randint(_SMALLEST, side) for side in whole.size)
        left, top = draw.randint(0, whole.width - wide), draw.randint(0, whole.height - high)
        file = io.BytesIO()
        whole.crop((left, top, left + wide, top + high)).save(file, "PNG")
    return file.getvalue()


def _sound(draw: random.Random) -> bytes:
    """Return a part of a sample, from one second to another."""
    samples, rate = soundfile.read(_sample("sound", draw))
    length = draw.randint(int(_SHORTEST * rate), len(samples))
    begin, file = draw.randint(0, len(samples) - length), io.BytesIO()
    soundfile.write(file, samples[begin : begin + length], rate, format="WAV")
    return file.getvalue()


def _sample(kind: str, draw: random.Random) -> Path:
    return draw.choice([one.path for one in SAMPLES.values() if one.kind == kind])


def put(address: str, name: str, content: bytes) -> None:
    """Upload a file to the server's URL, with the token from its first answer."""
    whose = urlsplit(address)._replace(path=_ASK).geturl()
    with urllib.request.urlopen(whose, timeout=60) as answer:
        token = SimpleCookie(answer.headers.get("Set-Cookie", ""))[_COOKIE].value
    head = f'Content-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: application/octet-stream'
    body = b"".join((f"--{_BOUNDARY}\r\n{head}\r\n\r\n".encode(), content, f"\r\n--{_BOUNDARY}--\r\n".encode()))
    headers = {
        "Content-Type": f"multipart/form-data; boundary={_BOUNDARY}",
        "Cookie": f"{_COOKIE}={token}",
        _HEADER: token,
    }
    request = urllib.request.Request(address, body, headers, method="PUT")
    with urllib.request.urlopen(request, timeout=60):
        pass


def uploaded_bytes(address: str) -> int:
    """Return the bytes of uploaded files that a server reports to hold."""
    with urllib.request.urlopen(f"{address}/_stcore/metrics?families=cache_memory_bytes", timeout=60) as answer:
        content = answer.read().decode()
    return sum(int(line.split()[-1]) for line in content.splitlines() if "UploadedFileManager" in line)
