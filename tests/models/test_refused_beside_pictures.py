"""Wrong input beside an image, in messages and in a processor's own tensors, is refused by name; nothing is dropped."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor

import attention_viz as av
from attention_viz.models.model import AttentionModel
from tests.models.picture_families import IMAGE, PIXELS, WHOLE, WORDS, tensors_of, text_of
from tests.models.test_pictures_beside_text import wrapped

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
PICTURE = av.Picture(PIXELS)
FRAMES = av.Video(np.stack([PIXELS, PIXELS]), rate=1)


def of_family(family: str) -> dict[str, Any]:
    return dict(tensors_of(WHOLE[family](), text_of(family), [PIXELS]))


def llava(**others: Any) -> dict[str, Any]:
    return {**of_family("llava"), **others}


def pixels() -> Tensor:
    return llava()["pixel_values"]


def asked(content: object, **beside: Any) -> Callable[[AttentionModel], object]:
    return lambda model: model.trace(cast("Any", [{"role": "user", "content": content}]), **beside)


@pytest.mark.parametrize("content", [5, 3.4, None, True, b"a cat", {"type": "text", "text": "a"}, {1}, PICTURE])
@pytest.mark.parametrize("beside", [{"picture": PICTURE}, {"video": FRAMES}, {}])
def test_a_message_without_a_text_or_parts_is_refused(content: object, beside: dict[str, Any]) -> None:
    message = f"content must be a text or a list of parts; got {type(content).__name__}"
    with pytest.raises(av.UnusableText, match=message):
        asked(content, **beside)(wrapped("llava"))


TEXTS: list[tuple[Callable[[AttentionModel], object], type[Exception], str]] = [
    (lambda model: model.trace("a", pictures=cast("Any", [None])), av.UnusablePicture, "pictures= takes .* NoneType"),
    (lambda model: model.trace("a", pictures=cast("Any", [PICTURE, None])), av.UnusablePicture, "got NoneType"),
    (asked([5], picture=PICTURE), av.UnusableText, "parts must be dicts.* got int"),
    (asked([{"type": "image", "image": None}]), av.UnusablePicture, "a message's image must be av.Picture.* NoneType"),
    (asked([{"type": "video"}] * 2, video=FRAMES), av.UnusableVideo, "places for 2 videos, but got 1"),
    (lambda model: model.trace("a \ud83d cat", picture=PICTURE), av.UnusableText, "half a character .* index 2"),
    (lambda model: model.trace("\udc00", video=FRAMES), av.UnusableText, "half a character"),
    (asked([{"type": "text", "text": "red\udfff"}], picture=PICTURE), av.UnusableText, "half a character .* index 3"),
    (lambda model: model.trace("a", picture=PICTURE, special_tokens=False), av.UnusableText, "special_tokens=False"),
    (lambda model: model.generate("a", 1, picture=PICTURE, special_tokens=False), av.UnusableText, "special_tokens="),
    (lambda model: model.repeated_random(3), av.UnusableText, "reads a text with an image"),
    (lambda model: model.trace_together(["a cat"]), av.UnusableText, "reads a text with an image"),
]


@pytest.mark.parametrize(("ask", "error", "message"), TEXTS)
def test_a_text_that_does_not_fit_is_refused(
    ask: Callable[[AttentionModel], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ask(wrapped("llava"))


TENSORS: list[tuple[Callable[[], dict[str, Any]], type[Exception], str]] = [
    (lambda: llava(pixel_values=pixels().repeat(3, 1, 1, 1)), av.ShapeError, r"pixel_values \(3, .* 16 placeholders"),
    (lambda: llava(pixel_values=torch.rand(1, 3, 48, 48)), av.ShapeError, r"can't read .* pixel_values \(1, 3, 48, 48"),
    (lambda: llava(pixel_values=pixels()[:, :1]), av.ShapeError, r"pixel_values \(1, 1, 32, 32\)"),
    (lambda: llava(pixel_values=pixels()[:, :2]), av.UnsupportedModel, "doesn't run on .*pixel_values"),
    (lambda: llava(pixel_values=pixels()[:0]), av.ShapeError, "pixel_values must have at least one number"),
    (lambda: llava(pixel_values=pixels() * torch.nan), av.ShapeError, "pixel_values must be finite; got nan"),
    (lambda: llava(pixel_values=pixels() - torch.inf), av.ShapeError, "pixel_values must be finite; got -inf"),
    (lambda: llava(pixel_values=pixels() * 1j), av.ShapeError, "pixel_values must be real; got torch.complex64"),
    (lambda: llava(pixel_values=pixels().to_sparse()), av.ShapeError, "pixel_values must be a dense tensor"),
    (lambda: llava(pixel_values=pixels().to("meta")), av.ShapeError, "meta device, without numbers"),
    (lambda: llava(inputs_embeds=torch.rand(1, 20, 32)), av.ShapeError, r"can't read .* inputs_embeds \(1, 20, 32\)"),
    (lambda: llava(pixel_value=pixels()), av.ShapeError, "takes no pixel_value; its processor makes input_ids, "),
    (lambda: llava(cats=None), av.ShapeError, "takes no cats"),
    (lambda: llava(attention_mask=torch.ones(1, 5)), av.ShapeError, "attention_mask must have the ids' shape"),
    (lambda: llava(attention_mask=torch.full((1, 20), 0.5)), av.ShapeError, "attention_mask must be 1 .* got 0.5"),
    (lambda: llava(attention_mask=torch.zeros(1, 20)), av.UnusableText, "every position is padding"),
]


@pytest.mark.parametrize(("tensors", "error", "message"), TENSORS)
def test_tensors_that_do_not_fit_are_refused(
    tensors: Callable[[], dict[str, Any]], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        wrapped("llava").trace_ids(**tensors())


def test_fewer_placeholders_than_the_images_fill_are_refused() -> None:
    fewer = llava()
    fewer |= {name: fewer[name][:, 3:] for name in ("input_ids", "attention_mask")}
    places = int((fewer["input_ids"] == IMAGE).sum())
    assert places < 16
    with pytest.raises(av.ShapeError, match=f"with {places} placeholders in the ids"):
        wrapped("llava").trace_ids(**fewer)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ([[1, 8, 8]], "has 64 patches, but pixel_values has 96"),
        ([[1, 8, 12]] * 2, "has 192 patches"),
        ([[10**6] * 3], "has 1,000,000,000,000,000,000 patches"),
        ([[1, -8, -12]], "three whole numbers above 0"),
        ([1, 8, 12], "three whole numbers above 0"),
        ([[1.0, 8.0, 12.0]], "three whole numbers above 0"),
    ],
)
def test_a_grid_that_its_patches_do_not_fill_is_refused(grid: list[Any], message: str) -> None:
    tensors = of_family("qwen2_vl")
    assert len(tensors["pixel_values"]) == 96
    tensors["image_grid_thw"] = torch.tensor(grid)
    with pytest.raises(av.ShapeError, match=f"image_grid_thw .*{message}"):
        wrapped("qwen2_vl").trace_ids(**tensors)


def test_labels_and_missing_tensors_are_left_out() -> None:
    model, own = wrapped("llava"), llava()
    plain = model.trace_ids(**own)
    other = model.trace_ids(**own, labels=own["input_ids"], image_sizes=cast("Any", None))
    assert torch.equal(plain.output, other.output)


def test_progress_is_called_beside_an_image_and_its_error_stops_the_run() -> None:
    shares = list[float]()
    wrapped("llava").trace("<image> a cat", picture=PICTURE, progress=shares.append)
    assert shares == [0.25, 0.5, 0.75, 1]

    def stop(share: float) -> None:
        raise KeyError(share)

    with pytest.raises(KeyError, match=r"0\.25"):
        wrapped("llava").trace("<image> a cat", picture=PICTURE, progress=stop)


def test_three_tokens_beside_one_image_are_continued() -> None:
    model, chance = wrapped("qwen2_vl"), torch.Generator().manual_seed(0)
    ids = torch.tensor([[IMAGE, WORDS.index("cat"), WORDS.index("a")]])
    patches: dict[str, Any] = {
        "pixel_values": torch.randn(4, 384, generator=chance),
        "image_grid_thw": torch.tensor([[1, 2, 2]]),
    }

    def run(row: Tensor) -> av.Trace:
        kinds = (row == IMAGE).long()
        return model.trace_ids(row, torch.ones_like(row), mm_token_type_ids=kinds, **patches)

    grown = list(model.extend(run(ids), 2))
    assert len(grown) == 2
    row = ids
    for trace in grown:
        logits = run(row).output[-1].clone()
        logits[[IMAGE, WORDS.index("<video>")]] = -torch.inf
        row = torch.cat([row, logits.argmax()[None, None]], dim=1)
        assert torch.allclose(trace.output, run(row).output, atol=1e-5)


def test_an_image_alone_has_no_chat() -> None:
    with pytest.raises(av.UnusableText, match="without a text; leave out chat=True"):
        wrapped("llava").trace(cast("Any", PICTURE), chat=True)


def test_texts_of_many_families_still_run_from_their_processors_tensors() -> None:
    for family in ("paligemma", "gemma3", "idefics3"):
        tensors = of_family(family)
        trace = wrapped(family).trace_ids(**tensors)
        assert len(trace.query_tokens(trace.streams[-1])) == tensors["input_ids"].shape[1]
