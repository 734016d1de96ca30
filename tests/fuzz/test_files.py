"""Traces, models' folders, pictures and sounds that somebody hands over: read as they are, or refused by name."""

import contextlib
import io
import json
import wave
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import attention_viz as av
from attention_viz.trace.trace import Trace
from tests.fuzz.settings import JSON, bounded_memory, examples
from tests.models.families import build
from tests.models.loading.test_load_folder import word_tokenizer
from tests.trace.files.taken_apart import put_together, taken_apart

pytestmark = pytest.mark.usefixtures("unchecked_module")

TEXT = "the bank of the river"
# As much as any of these files may have a process take: each holds far less than a megabyte.
MOST = 1_000_000_000


@pytest.fixture(scope="module", params=["words", "patches", "frames"])
def trace_file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved run, whose tokens are words, or stand in a picture or in a sound."""
    path, trace = tmp_path_factory.mktemp("fuzz") / "trace.safetensors", av.scratch(TEXT)
    (stream,) = trace.streams
    tokens = trace.query_tokens()
    places = {
        "words": [None for _ in range(len(tokens))],
        "patches": [(float(at // 3), float(at % 3)) for at in range(len(tokens))],
        "frames": [(at / 50,) for at in range(len(tokens))],
    }
    axis = {stream: replace(tokens, place=tuple(places[request.param]))}
    Trace(trace.layers, axis, axis, trace.output, trace.provenance, trace.fidelity).save(path)
    return path


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz") / "model"
    build("bert with a head").save_pretrained(folder)
    word_tokenizer().save_pretrained(folder)
    return folder


def lied(draw: st.DrawFn, content: Any) -> Any:
    """The same with one place, however deep, that holds something else, is gone, or is there under another name."""
    if not isinstance(content, dict | list) or not content or draw(st.integers(0, 9)) == 0:
        return draw(JSON)
    places: list[Any] = sorted(content) if isinstance(content, dict) else list(range(len(content)))
    place = draw(st.sampled_from(places))
    how = draw(st.integers(0, 9))
    if how == 0:
        rest = dict(content) if isinstance(content, dict) else list(content)
        del rest[place]
        return rest
    changed = lied(draw, content[place])
    if isinstance(content, dict):
        return {**content, (draw(st.text(max_size=9)) if how == 1 else place): changed}
    return [*content[:place], changed, *content[place + 1 :]]


def looked_at(path: Path) -> None:
    """All that a page asks of an opened trace."""
    with contextlib.suppress(av.AttentionVizError):
        trace = av.Trace.load(path)
        av.head_table(trace)
        av.findings(trace)
        av.roles(trace)
        av.explore(trace).html()
        for stream in trace.streams:
            assert trace.weights(0, 0, stream).shape == (len(trace.query_tokens(stream)), len(trace.key_tokens(stream)))


@examples(20)
@given(data=st.data())
def test_a_trace_with_flipped_bits_or_another_length_is_read_or_refused(data: st.DataObject, trace_file: Path) -> None:
    beside = trace_file.with_name("flipped")
    # Without a checksum as well, as older files: else nothing behind it would ever be reached.
    whole = data.draw(st.booleans())
    content = bytearray((trace_file if whole else put_together(beside, *taken_apart(trace_file)[::2])).read_bytes())
    for _ in range(data.draw(st.integers(0, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content))) :]
    beside.write_bytes(content)
    with bounded_memory(MOST):
        looked_at(beside)


@examples(20)
@given(data=st.data())
def test_a_trace_whose_header_lies_is_read_or_refused(data: st.DataObject, trace_file: Path) -> None:
    header, ours, body = taken_apart(trace_file)
    draw: Any = data.draw
    if draw(st.booleans()):
        beside = put_together(trace_file.with_name("lied"), header, body, json.dumps(lied(draw, ours)))
    else:
        beside = put_together(trace_file.with_name("lied"), lied(draw, header), body)
    with bounded_memory(MOST):
        looked_at(beside)


@examples(15)
@given(
    data=st.data(),
    name=st.sampled_from(["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"]),
)
def test_a_folder_that_lies_is_exact_or_refused(data: st.DataObject, name: str, model_folder: Path) -> None:
    file = model_folder / name
    before, draw = file.read_bytes(), data.draw
    try:
        if name.endswith(".json"):
            file.write_text(json.dumps(lied(draw, json.loads(before))))
        else:
            content = bytearray(before)
            content[draw(st.integers(0, 3000))] ^= 1 << draw(st.integers(0, 7))
            file.write_bytes(content)
        with bounded_memory(MOST), contextlib.suppress(av.AttentionVizError):
            trace = av.load(str(model_folder)).trace(TEXT)
            assert trace.fidelity.ok or not torch.isfinite(trace.output).all()
    finally:
        file.write_bytes(before)


def _picture(kind: str) -> bytes:
    content = io.BytesIO()
    Image.fromarray(numpy.arange(16 * 16 * 3, dtype=numpy.uint8).reshape(16, 16, 3)).save(content, kind)
    return content.getvalue()


def _sound() -> bytes:
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes(numpy.arange(800, dtype="<i2").tobytes())
    return content.getvalue()


_FILES = [*map(_picture, ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP")), _sound(), b"", b"<svg/>"]
_ARRAYS = st.builds(
    lambda shape, kind, value: numpy.full(shape, value).astype(kind),
    st.lists(st.integers(0, 20), max_size=4),
    st.sampled_from(["uint8", "int16", "int32", "float32", "float64", "bool", "complex64", "object", "U3"]),
    st.sampled_from([0, 1, 255]),
)


@pytest.mark.filterwarnings("ignore")
@examples(80)
@given(st.data(), st.sampled_from(_FILES))
def test_a_picture_or_a_sound_that_is_broken_is_read_or_refused(data: st.DataObject, content: bytes) -> None:
    broken = bytearray(content)
    for _ in range(data.draw(st.integers(0, 4)) if broken else 0):
        broken[data.draw(st.integers(0, min(len(broken) - 1, 80)))] = data.draw(st.integers(0, 255))
    with bounded_memory(MOST):
        for read in (av.Picture, av.Sound):
            with contextlib.suppress(av.AttentionVizError):
                read(bytes(broken))


@pytest.mark.filterwarnings("ignore")
@examples(80)
@given(_ARRAYS, st.none() | st.integers(-1, 100_000) | st.floats() | st.sampled_from([2**70, "16000"]))
def test_an_array_is_a_picture_or_a_sound_or_is_refused(array: Any, rate: Any) -> None:
    with bounded_memory(MOST):
        with contextlib.suppress(av.AttentionVizError):
            av.Picture(array)
        with contextlib.suppress(av.AttentionVizError):
            av.Sound(array, rate)
