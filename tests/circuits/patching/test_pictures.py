"""Heads and MLPs put from a text beside an image into another, compared with hooks on plain transformers."""

import copy
import functools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import attention_viz as av
from attention_viz.circuits.patching.patching import Patching, Put
from attention_viz.inputs.media.shapes import Shape, draw_shapes
from attention_viz.models.model import AttentionModel
from tests.models.picture_families import PIXELS, WHOLE, tensors_of, text_of, tiny_of
from tests.shipped import shipped

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
OTHER = np.random.default_rng(1).integers(0, 256, PIXELS.shape, dtype=np.uint8)
NUMBER = av.Logit(11, against=23)


@functools.cache
def plain(family: str) -> Any:
    """A tiny model under eager attention; Qwen2.5-VL attends to windows in its first layer."""
    model = copy.deepcopy(tiny_of(family))
    if family == "qwen2_5_vl":
        tower = next(one for one in model.modules() if hasattr(one, "fullatt_block_indexes"))
        tower.window_size, tower.fullatt_block_indexes = 32, [1]
    model.set_attn_implementation("eager")
    return model


@functools.cache
def wrapped(family: str) -> AttentionModel:
    return av.wrap(copy.deepcopy(plain(family)), WHOLE[family]())


def joining(model: Any, stream: str, layer: int) -> nn.Module:
    """The module that takes the joined heads of one layer: found by its name, not by our record."""
    tower = [(name, one) for name, one in model.named_modules() if re.search(r"(vision|visual)", name)]
    words = [(name, one) for name, one in model.named_modules() if "language_model" in name]
    found = [
        one
        for name, one in (tower if stream == "picture" else words)
        if re.fullmatch(r"(out_proj|o_proj|proj)", name.rpartition(".")[2]) and "attn" in name.rpartition(".")[0]
    ]
    return found[layer]


def by_hand(
    family: str, given: Sequence[dict[str, Tensor]], stream: str, put: tuple[int, int, int | None], heads: int
) -> float:
    """What a head does to the number when its output comes from the second run."""
    model, (layer, head, position), heard = plain(family), put, list[Tensor]()
    module = joining(model, stream, layer)

    def keep(_module: nn.Module, args: tuple[Tensor, ...]) -> None:
        heard.append(args[0].detach().clone())

    def change(_module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        mine = args[0].clone()
        rows, source = (one.view(-1, one.shape[-1]) for one in (mine, heard[0]))
        width = rows.shape[-1] // heads
        at = slice(None) if position is None else position
        rows[at, head * width : (head + 1) * width] = source[at, head * width : (head + 1) * width]
        return (mine, *args[1:])

    def number(tensors: dict[str, Tensor]) -> float:
        logits = model(**tensors).logits[0, -1].double()
        return float(logits[NUMBER.token] - logits[NUMBER.against])

    with torch.no_grad():
        before = number(given[0])
        handle = module.register_forward_pre_hook(keep)
        number(given[1])
        handle.remove()
        handle = module.register_forward_pre_hook(change)
        after = number(given[0])
        handle.remove()
    return after - before


CASES = [("llava", 1), ("gemma3", 1), ("qwen2_5_vl", 1), ("qwen2_vl", 2), ("glm4v", 1)]


@pytest.mark.parametrize(("family", "pictures"), CASES)
def test_a_head_put_from_another_image_does_what_hooks_do(family: str, pictures: int) -> None:
    model, text, several = wrapped(family), text_of(family, pictures), ([PIXELS] * pictures, [OTHER] * pictures)
    given = [tensors_of(WHOLE[family](), text, some) for some in several]
    traces = [model.trace(text, pictures=[av.Picture(one) for one in some]) for some in several]
    found = av.patch(model, *traces, NUMBER)
    streams = traces[0].streams
    assert tuple(dict.fromkeys(found.index.get_level_values("stream"))) == streams and streams[0] == "picture"
    made = Patching.begin(model, *traces, NUMBER, by="position")
    size = float(found["effect"].abs().max())
    assert size > 1e-3
    for stream in streams:
        for layer in traces[0].layer_numbers(stream):
            heads = traces[0].head_count(layer, stream)
            expected = by_hand(family, given, stream, (layer, 1, None), heads)
            assert found["effect"][stream, layer, 1] == pytest.approx(expected, abs=1e-4 * size), (stream, layer)
            # Another head does something else; LLaVA doesn't read its tower's last layer.
            unread = family == "llava" and (stream, layer) == ("picture", 1)
            assert unread or abs(found["effect"][stream, layer, 0] - expected) > 1e-4 * size
            # One position alone: in a tower of chunks, one of the last chunk, too.
            for position in (3, len(traces[0].query_tokens(stream)) - 1):
                put = Put(layer, 1, position, stream)
                (effects,) = made.batches([put])
                expected = by_hand(family, given, stream, (layer, 1, position), heads)
                assert effects[put] == pytest.approx(expected, abs=1e-4 * size), put


def test_towers_that_attend_in_chunks_are_among_them() -> None:
    model, text = wrapped("qwen2_5_vl"), text_of("qwen2_5_vl")
    blocks = model.trace(text, picture=av.Picture(PIXELS)).attention(0, "picture").allowed
    assert blocks is not None and not bool(blocks.all())


QUESTION = "<image>what colour is the circle ?"
RED, BLUE = (
    draw_shapes([Shape(colour, "circle", "top", "left", 9), Shape("green", "square", "bottom", "right", 9)])
    for colour in ("red", "blue")
)


def test_effects_by_position_are_named_by_words_and_places() -> None:
    model = shipped("shapes")
    traces = [model.trace(QUESTION, picture=one) for one in (RED, BLUE)]
    found = av.patch(model, *traces, av.Logit("red", against="blue"), by="position", confirm=12)
    assert found.index.names == ["stream", "layer", "head", "position"]
    first = [found.xs((stream, 0, 0), level=("stream", "layer", "head")) for stream in ("picture", "decoder")]
    picture, words = (one["token"].tolist() for one in first)
    assert picture[0] == "patch 0, 0" and picture[63] == "patch 7, 7"
    assert words[1] == "patch 0, 0" and words[65:] == ["what", "colour", "is", "the", "circle", "?"]
    assert found.attrs["number"] > 0 > found.attrs["other_number"]
    # What tells red from blue is on the circle: the strongest patches of the tower are its own.
    changed = (RED.pixels != BLUE.pixels).any(-1).reshape(8, 8, 8, 8).any((1, 3))
    strongest = found.loc["picture"].sort_values("estimate", key=abs)["token"].tail(5)
    places = [tuple(map(int, one.removeprefix("patch ").split(", "))) for one in strongest]
    assert sum(bool(changed[place]) for place in places) >= 4
    assert float(changed.mean()) < 0.2
    assert int(found["effect"].notna().sum()) == 12


def test_other_words_beside_the_same_image_leave_its_tower_as_it_is() -> None:
    model = shipped("shapes")
    traces = [model.trace(f"<image>what colour is the {one} ?", picture=RED) for one in ("circle", "square")]
    for parts in ("heads", "mlps"):
        found = av.patch(model, *traces, av.Logit("red", against="green"), parts=parts)
        assert float(found.loc["picture"]["effect"].abs().max()) < 1e-4
        assert float(found.loc["decoder"]["effect"].abs().max()) > 1
        assert found.attrs["number"] > 0 > found.attrs["other_number"]


def test_an_mlp_put_from_another_image_does_what_hooks_do() -> None:
    model, text, several = wrapped("llava"), text_of("llava"), ([PIXELS], [OTHER])
    traces = [model.trace(text, picture=av.Picture(*some)) for some in several]
    found = av.patch(model, *traces, NUMBER, parts="mlps")
    given = [tensors_of(WHOLE["llava"](), text, some) for some in several]
    for stream, pattern in (("picture", r"vision.*\.mlp"), ("decoder", r"language.*\.mlp")):
        modules = [one for name, one in plain("llava").named_modules() if re.search(f"{pattern}$", name)]
        for layer, module in enumerate(modules):
            expected = with_output_of(plain("llava"), module, given)
            assert found["effect"][stream, layer] == pytest.approx(expected, rel=1e-3, abs=1e-4)
    assert list(found.index) == [("picture", 0), ("picture", 1), ("decoder", 0), ("decoder", 1)]


def with_output_of(model: Any, module: nn.Module, given: Sequence[dict[str, Tensor]]) -> float:
    """What a module does to the number when its output comes from the second run."""
    heard = list[Tensor]()

    def number(hook: Any, tensors: dict[str, Tensor]) -> float:
        handle = module.register_forward_hook(hook)
        with torch.no_grad():
            logits = model(**tensors).logits[0, -1].double()
        handle.remove()
        return float(logits[NUMBER.token] - logits[NUMBER.against])

    number(lambda _module, _args, output: heard.append(output), given[1])
    before = number(lambda *_: None, given[0])
    return number(lambda *_: heard[0], given[0]) - before


def test_inputs_whose_positions_dont_correspond_are_refused_by_name() -> None:
    model, text = wrapped("qwen2_vl"), text_of("qwen2_vl")
    shown = [av.Picture(PIXELS), av.Picture(np.ascontiguousarray(PIXELS.transpose(1, 0, 2))), av.Picture(PIXELS[:32])]
    wide, tall, flat = (model.trace(text, picture=one) for one in shown)
    assert len(wide.query_tokens("picture")) == len(tall.query_tokens("picture"))
    with pytest.raises(av.ShapeError, match="images of other shapes"):
        av.patch(model, wide, tall, NUMBER)
    for aligned in (False, True):
        with pytest.raises(av.ShapeError, match="the images have 96 and 48 patches"):
            av.patch(model, wide, flat, NUMBER, aligned=aligned)
    moved = model.trace("what <image> is this ?", picture=shown[0])
    with pytest.raises(av.ShapeError, match="their image at other positions"):
        av.patch(model, wide, moved, NUMBER)
    longer = model.trace(f"{text} a cat", picture=shown[0])
    with pytest.raises(av.ShapeError, match=r"make them equally long$"):
        av.patch(model, wide, longer, NUMBER, aligned=True)
    with pytest.raises(av.UnusableText, match="got a text alone"):
        av.patch(model, wide, "what is this ?", NUMBER)
