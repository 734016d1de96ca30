"""Several images, messages and a processor's own tensors beside a text, and what can be asked of their traces."""

import copy
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch

import attention_viz as av
from attention_viz.models.model import AttentionModel
from attention_viz.trace.tokens import Region
from tests.models.picture_families import IMAGE, PIXELS, TEMPLATE, WHOLE, WORDS, tensors_of, text_of, tiny_of

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
PICTURE, OTHER = av.Picture(PIXELS), av.Picture(np.ascontiguousarray(PIXELS[::-1, :64]))


@functools.cache
def wrapped(family: str) -> AttentionModel:
    return av.wrap(copy.deepcopy(tiny_of(family)), WHOLE[family]())


@functools.cache
def traced() -> av.Trace:
    return wrapped("llava").trace("<image> a red cat", picture=PICTURE)


def test_two_images_have_their_places_by_number(tmp_path: Path) -> None:
    trace = wrapped("qwen2_vl").trace(text_of("qwen2_vl", 2), pictures=[PICTURE, OTHER])
    tokens = trace.query_tokens("decoder")
    # 64 × 96 and 64 × 64 pixels, in tokens of 16 × 16.
    first = [Region(0, row / 4, column / 6, (row + 1) / 4, (column + 1) / 6) for row in range(4) for column in range(6)]
    second = [
        Region(1, row / 4, column / 4, (row + 1) / 4, (column + 1) / 4) for row in range(4) for column in range(4)
    ]
    assert [one for one in tokens.regions if one] == [*first, *second]
    assert tokens.labels[2:4] == ("1:0,0", "1:0,1")
    assert tokens.labels[27] == "2:0,0"
    assert not tokens.placed
    assert [tuple(one.shape) for one in trace.seen.pictures] == [(64, 96, 3), (64, 64, 3)]
    assert trace.fidelity.ok
    named = " ".join(one.text for one in av.findings(trace, 20) if one.stream == "decoder")
    assert "1:" not in named and "2:" not in named
    trace.save(tmp_path / "two.safetensors")
    again = av.Trace.load(tmp_path / "two.safetensors")
    assert again.query_tokens("decoder") == tokens
    assert all(map(torch.equal, again.seen.pictures, trace.seen.pictures))


def test_messages_are_written_by_the_processors_template() -> None:
    model = wrapped("llava")
    messages = [
        {"role": "user", "content": [{"type": "image", "image": PICTURE}, {"type": "text", "text": "what is this ?"}]}
    ]
    trace = model.trace(messages)
    written = "user : <image> what is this ? assistant :"
    assert torch.equal(trace.output, model.trace(written, picture=PICTURE).output)
    assert trace.provenance.text == "what is this ?"
    chat = model.trace("what is this ?", picture=PICTURE, chat=True)
    assert torch.equal(chat.output, trace.output)
    assert "image" in TEMPLATE


@pytest.mark.parametrize("family", ["llava", "qwen2_5_vl"])
def test_a_processors_own_tensors_give_the_same_trace(family: str) -> None:
    model = wrapped(family)
    trace = model.trace(text_of(family), picture=PICTURE)
    again = model.trace_ids(**cast("Any", tensors_of(WHOLE[family](), text_of(family), [PIXELS])))
    assert torch.equal(again.output, trace.output)
    assert again.query_tokens("decoder") == trace.query_tokens("decoder")
    assert again.fidelity.ok


def broken(folder: Path) -> av.Picture:
    (folder / "cat.png").write_bytes(b"\x89PNG\r\n\x1a\n broken")
    return av.Picture(folder / "cat.png")


Asked = Callable[[AttentionModel, Path], object]
WRONG: list[tuple[Asked, type[Exception], str]] = [
    (lambda model, _: model.trace("<image> a", pictures=[PICTURE, OTHER]), av.UnusableText, "1 places .* got 2 images"),
    (lambda model, _: model.trace("<image> <image>", picture=PICTURE), av.UnusableText, "2 places .* but got 1 image"),
    (lambda model, _: model.trace("a cat", pictures=[]), av.UnusableText, "got a text alone"),
    (lambda model, _: model.trace("a", picture=PICTURE, pictures=[OTHER]), av.UnusablePicture, "not both"),
    (lambda model, _: model.trace("a", pictures=cast("Any", PICTURE)), av.UnusablePicture, "takes a list"),
    (lambda model, _: model.trace("a", pictures=cast("Any", ["cat.png"])), av.UnusablePicture, "pictures= takes av"),
    (lambda model, _: model.trace("a", pictures=[PICTURE] * 17), av.UnusablePicture, "17 images; pass at most 16"),
    (lambda model, folder: model.trace("a", picture=broken(folder)), av.UnusablePicture, "cat.png is broken"),
    (
        lambda model, _: model.trace("a", picture=av.Picture(np.zeros((8000, 8000), np.uint8))),
        av.UnusablePicture,
        "64,000,000 in all; use at most 50,000,000",
    ),
    (
        lambda model, _: model.trace([{"role": "user", "content": [{"type": "image"}]}]),
        av.UnusablePicture,
        "an image without a picture",
    ),
    (lambda model, _: model.trace([{"role": "user", "content": "a cat"}]), av.UnusableText, "got a text alone"),
    (lambda model, _: model.trace([cast("Any", "a cat")]), av.UnusableText, "messages must be dicts"),
    (lambda model, _: model.trace([]), av.UnusableText, "the chat is empty"),
    (
        lambda model, _: model.trace([{"role": "user", "content": [{"type": "video"}]}]),
        av.UnusableText,
        'the type "text" or "image"; got \'video\'',
    ),
    (
        lambda model, _: model.trace([{"role": "user", "content": "a"}], picture=PICTURE),
        av.UnusablePicture,
        "places for 0 images, but got 1",
    ),
    (
        lambda model, _: model.trace_ids([IMAGE, 40], pixel_values=cast("Any", "cat.png")),
        av.ShapeError,
        "pixel_values must be a tensor; got str",
    ),
    (
        lambda model, _: model.trace_ids([IMAGE, 40], image_sizes=torch.tensor([[3, 3]])),
        av.UnusablePicture,
        "pass pixel_values with the ids",
    ),
    (lambda model, folder: av.scan(model, ["a cat"], folder / "scan"), av.UnusableText, "texts has a text alone"),
    (lambda model, _: av.patch(model, traced(), "a cat", av.Logit(40)), av.UnusableText, "got a text alone"),
]


@pytest.mark.parametrize(("ask", "error", "message"), WRONG)
def test_what_is_wrong_is_named(ask: Asked, error: type[Exception], message: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=message):
        ask(wrapped("llava"), tmp_path)


def test_more_tokens_than_the_model_reads_are_refused() -> None:
    words = " ".join(["cat"] * 60)
    with pytest.raises(av.TextTooLong, match="text with its images"):
        wrapped("llava").trace(f"<image> {words}", picture=PICTURE)


def test_effects_are_those_of_runs_with_the_heads_ablated() -> None:
    model, trace, of = wrapped("llava"), traced(), av.Logit(40, against=41)
    table: Any = av.effects(model, trace, of)
    assert set(table.index.get_level_values("stream")) == {"picture", "decoder"}
    before = float(trace.output[-1, 40] - trace.output[-1, 41])
    for stream in ("picture", "decoder"):
        edited = model.trace("<image> a red cat", picture=PICTURE, edits=[av.Ablate(1, 2, "mean", stream=stream)])
        after = float(edited.output[-1, 40] - edited.output[-1, 41])
        assert float(table.loc[(stream, 1, 2), "effect"]) == pytest.approx(after - before, abs=1e-5)
    assert table["effect"].abs().max() > 1e-3


def test_a_logit_is_the_sum_of_its_parts() -> None:
    found: Any = av.decompose(wrapped("llava"), traced(), av.Logit(40, against=41))
    assert found.total == pytest.approx(float(traced().output[-1, 40] - traced().output[-1, 41]), abs=1e-5)
    assert float(found.table["contribution"].sum()) == pytest.approx(found.total, abs=1e-4)


def test_a_blocked_region_gets_nothing() -> None:
    model = wrapped("llava")
    tokens = traced().query_tokens("decoder")
    corner = [at for at, one in enumerate(tokens.regions) if one is not None and one.bottom <= 0.5 and one.right <= 0.5]
    assert len(corner) == 4
    last = len(tokens) - 1
    edits = [av.Block(last, at, stream="decoder") for at in corner]
    edited = model.trace("<image> a red cat", picture=PICTURE, edits=edits)
    assert not bool(edited.attention(1, "decoder").weights[:, last, corner].any())
    assert not torch.allclose(edited.output[-1], traced().output[-1], atol=1e-4)
    assert WORDS[IMAGE] == "<image>"


@pytest.mark.parametrize("family", ["llava", "qwen2_5_vl"])
def test_a_chat_with_an_image_has_their_segments(family: str) -> None:
    model = wrapped(family)
    parts = [{"type": "image", "image": PICTURE}, {"type": "text", "text": "what is this ?"}]
    trace = model.trace([{"role": "user", "content": parts}])
    picture, user = sorted(trace.segments, key=lambda one: one.role)
    tokens = trace.query_tokens(trace.text_stream)
    assert (picture.role, user.role) == ("picture", "user")
    assert all(tokens.regions[picture.start : picture.end])
    assert not any(tokens.regions[: picture.start]) and not any(tokens.regions[picture.end :])
    assert [one.strip("·▁ĠĊ ") for one in tokens.labels[user.start : user.end]] == ["what", "is", "this", "?"]
    table = av.segment_table(trace)
    assert set(table.to_segment) == {"sink", "picture", "user", "other"}
    assert (table.groupby(["layer", "head", "from_segment"]).weight.sum() - 1).abs().max() < 1e-6
