"""An image's tiles, and several images, are one layer with a block for each on its diagonal, in their order."""

import copy
import functools
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import attention_viz as av
from attention_viz.errors import UnsupportedModel
from attention_viz.models.model import AttentionModel
from attention_viz.operation.attention import Attention
from attention_viz.recording import fidelity
from attention_viz.recording.differences import Real
from attention_viz.recording.fidelity import compare
from attention_viz.recording.references.eager_rows import BY_ROWS, EagerRows
from attention_viz.recording.runner import Runner
from attention_viz.trace.tokens import Region
from attention_viz.trace.trace_data import behind
from scripts.seen.building import seen_families, tiny_seen
from scripts.seen.reading import example_of
from scripts.tiny import scaled
from tests.models.picture_families import PIXELS, PROCESSORS, tensors_of, text_of, tiny_of
from tests.models.seen_families import tiny
from tests.recording.chunks.test_chunks import Softmaxes
from tests.recording.layout.test_measured import EXPECTED, Places, grid

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
NEAR = 1e-5
# Rows and columns of tiles of 4 × 4 patches, whether the thumbnail comes first, and special positions before patches.
TILED = {
    "idefics3": (2, 2, False, 0),
    "aya_vision": (2, 2, False, 0),
    "internvl": (2, 3, False, 1),
    "llava_next": (2, 2, True, 1),
    "llava_onevision": (2, 2, True, 0),
}
SQUARE = np.ascontiguousarray(PIXELS[:, :64])


def picture(family: str) -> av.Picture:
    return av.Picture(SQUARE if family in ("llava_next", "llava_onevision") else PIXELS)


@functools.cache
def wrapped(family: str) -> AttentionModel:
    return av.wrap(copy.deepcopy(tiny_of(family)), PROCESSORS[family]())


@functools.cache
def traced(family: str) -> av.Trace:
    return wrapped(family).trace(text_of(family), picture=picture(family))


@functools.cache
def inputs_of(family: str) -> dict[str, Tensor]:
    return tensors_of(PROCESSORS[family](), text_of(family), [picture(family).pixels])


def tower(model: Any) -> list[Any]:
    """The tower's modules of attention in order, as the model names them."""
    names = ("self_attn", "attention")
    found = [(name, one) for name, one in model.named_modules() if "vision" in name and name.split(".")[-1] in names]
    return [one for name, one in found if "head" not in name.split(".")]


@pytest.mark.parametrize("family", TILED)
def test_layers_are_modules_and_their_blocks_are_eagers_softmaxes(family: str) -> None:
    trace, (rows, columns, _, before) = traced(family), TILED[family]
    tiles, each = rows * columns + 1, 16 + before
    assert trace.fidelity.ok
    model: Any = copy.deepcopy(tiny_of(family))
    layers = [layer.attention for layer in trace.layers["picture"]]
    assert len(layers) == len(tower(model))
    model.set_attn_implementation("eager")
    with torch.no_grad(), Softmaxes() as softmaxes:
        output = model(**inputs_of(family)).logits[0]
    assert torch.allclose(trace.output, output, atol=NEAR * float(output.abs().max()))
    theirs = [one for one in softmaxes.found if len(one) == tiles]
    assert len(theirs) == len(layers)
    for ours, own in zip(layers, theirs, strict=True):
        assert ours.shape == (4, tiles * each, tiles * each)
        expected = torch.zeros(ours.shape)
        for number in range(tiles):
            block = slice(number * each, (number + 1) * each)
            expected[:, block, block] = own[number]
        assert float((ours.weights - expected).abs().max()) <= NEAR
        assert not bool(ours.weights[expected == 0].any())


def named(family: str) -> tuple[list[str], Places]:
    """A tower's names and rectangles, by hand."""
    rows, columns, first, before = TILED[family]
    whole, wide = grid(4 * rows, 4 * columns), 4 * columns
    labels, places = list[str](), list[Region | None]()
    special = ["[CLS]"][:before]
    count = rows * columns
    thumbnail = [f"thumbnail, {one}" for one in (*special, *(f"patch {at // 4}, {at % 4}" for at in range(16)))]
    for tile in range(count):
        labels += [f"tile {tile + 1} of {count}, {one}" for one in special]
        places += [None] * before
        for at in range(16):
            labels.append(f"tile {tile + 1} of {count}, patch {at // 4}, {at % 4}")
            places.append(whole[(tile // columns * 4 + at // 4) * wide + tile % columns * 4 + at % 4])
    reduced: Places = [*[None] * before, *grid(4, 4, thumbnail=True)]
    return ([*thumbnail, *labels], [*reduced, *places]) if first else ([*labels, *thumbnail], [*places, *reduced])


@pytest.mark.parametrize("family", TILED)
def test_positions_are_named_by_tile_and_have_their_rectangles(family: str) -> None:
    tokens, (labels, places) = traced(family).query_tokens("picture"), named(family)
    assert list(tokens.labels) == labels
    assert [one is None for one in tokens.regions] == [one is None for one in places] == list(tokens.special)
    for at, one in enumerate(places):
        found = tokens.regions[at]
        if one is None or found is None:
            continue
        assert (found.picture, found.thumbnail) == (one.picture, one.thumbnail)
        # Resizing to a thumbnail mixes pixels across the edges of patches.
        near = 1 / 8 + 1e-9 if one.thumbnail else 1e-9
        for edge in ("top", "left", "bottom", "right"):
            assert getattr(found, edge) == pytest.approx(getattr(one, edge), abs=near)
    assert not tokens.placed


@pytest.mark.parametrize("family", TILED)
def test_placeholders_have_their_rectangles_and_newlines_none(family: str) -> None:
    tokens = traced(family).query_tokens("decoder")
    wanted = EXPECTED[family]
    marks = [at for at, word in enumerate(tokens.words) if word is None and tokens.regions[at]]
    assert [tokens.regions[at] for at in marks] == [one for one in wanted if one]
    note = any("8 of 88 placeholders have no place" in one for one in traced(family).provenance.notes)
    assert note == (None in wanted)


@pytest.mark.parametrize("family", ["llava", "vipllava", "gemma3", "paligemma"])
def test_several_whole_images_are_blocks_too(family: str) -> None:
    trace = wrapped(family).trace(text_of(family, 2), pictures=[av.Picture(PIXELS), av.Picture(SQUARE[::-1].copy())])
    assert trace.fidelity.ok
    tokens = trace.query_tokens("picture")
    count = len(tokens) // 2
    assert tokens.labels[count - 1] == "image 1 of 2, patch 3, 3"
    assert tokens.labels[-1] == "image 2 of 2, patch 3, 3"
    assert [one for one in tokens.regions if one] == [*grid(4, 4), *grid(4, 4, picture=1)]
    assert not bool(trace.attention(1, "picture").weights[:, :count, count:].any())


def test_two_cut_images_have_their_own_tiles() -> None:
    pictures = [av.Picture(PIXELS), av.Picture(SQUARE)]
    trace = wrapped("internvl").trace(text_of("internvl", 2), pictures=pictures)
    tokens, each = trace.query_tokens("picture"), 17
    assert [tokens.labels[at * each].rpartition(",")[0] for at in range(12)] == [
        *(f"image 1, tile {number} of 6" for number in range(1, 7)), "image 1, thumbnail",
        *(f"image 2, tile {number} of 4" for number in range(1, 5)), "image 2, thumbnail",
    ]  # fmt: skip
    assert trace.fidelity.ok


def scale_queries(call: Attention) -> Attention:
    return replace(call, query=call.query * 1.001)


def swap_heads(call: Attention) -> Attention:
    return replace(call, query=call.query[[1, 0, 2, 3]])


def swap_patches(call: Attention) -> Attention:
    order = torch.arange(call.shape[-1])
    order[[2, 9]] = order[[9, 2]]
    return replace(call, key=call.key[:, order])


def swap_tiles(call: Attention) -> Attention:
    return replace(call, **{name: getattr(call, name).roll(16, 1) for name in ("query", "key", "value")})


def shift_blocks(call: Attention) -> Attention:
    assert call.allowed is not None
    return replace(call, allowed=call.allowed.roll((4, 4), (-2, -1)))


SPOILT = (scale_queries, swap_heads, swap_patches, swap_tiles, shift_blocks)


def recorded(family: str) -> Any:
    runner = Runner.of(tiny_of(family))
    return runner, runner.record(inputs_of(family))


@pytest.mark.parametrize("spoil", SPOILT)
@pytest.mark.parametrize("family", ["idefics3", "llava_next"])
def test_a_spoilt_record_is_found_out(family: str, spoil: Callable[[Attention], Attention]) -> None:
    runner, found = recorded(family)
    assert compare(found, runner, inputs_of(family)).ok
    first, *others = found.calls
    spoilt = replace(found, calls=(replace(first, attention=spoil(first.attention)), *others))
    assert not compare(spoilt, runner, inputs_of(family)).ok


def test_rows_of_long_inputs_are_compared_tile_by_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fidelity, "MOST_WHOLE", 8)
    runner, found = recorded("idefics3")
    checked = compare(found, runner, inputs_of("idefics3"))
    assert checked.ok and checked.rows == fidelity.FEWEST_ROWS
    twin, (first, *others) = runner.twin(), found.calls
    for spoil in SPOILT:
        spoilt = replace(found, calls=(replace(first, attention=spoil(first.attention)), *others))
        rows = EagerRows.of(spoilt, twin.original, fidelity.FEWEST_ROWS, Real())
        with rows.listening():
            twin.run(inputs_of("idefics3"), BY_ROWS)
        assert rows.complete
        assert max(rows.error, rows.behind.error) > 10 * NEAR


@contextmanager
def by_hand(module: Any, change: Callable[[Tensor, Tensor], Tensor]) -> Generator[None]:
    """Compute a module of the tower in one matrix over all tiles; `change` takes logits and values by head."""

    def forward(hidden_states: Tensor, *_given: Any, **_named: Any) -> tuple[Tensor, None]:
        tiles, each, width = hidden_states.shape
        rows = hidden_states.reshape(tiles * each, width)
        query, key, value = (
            made(rows).reshape(len(rows), 4, -1).transpose(0, 1)
            for made in (module.q_proj, module.k_proj, module.v_proj)
        )
        number = torch.arange(len(rows)) // each
        logits = query @ key.mT * (width // 4) ** -0.5
        output = change(logits.masked_fill(number[:, None] != number, -torch.inf), value)
        return module.out_proj(output.transpose(0, 1).reshape(tiles, each, width)), None

    module.forward = forward
    try:
        yield
    finally:
        del module.forward


def of_head(change: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    def changed(logits: Tensor, value: Tensor) -> Tensor:
        output = logits.softmax(-1) @ value
        output[2] = change(logits[2], value[2])
        return output

    return changed


CROSSING = torch.eye(80).roll(20, dims=1)
PLACE: dict[str, Any] = {"layer": 1, "head": 2, "stream": "picture"}
EDITS: dict[str, tuple[Any, Callable[[Tensor, Tensor], Tensor]]] = {
    "zero": (av.Ablate(1, 2, stream="picture"), lambda _logits, value: torch.zeros_like(value)),
    "the mean over all tiles": (
        av.Ablate(1, 2, "mean", stream="picture"),
        lambda logits, value: (logits.softmax(-1) @ value).mean(0, keepdim=True).expand_as(value),
    ),
    "a temperature": (av.Temperature(3.0, **PLACE), lambda logits, value: (logits / 3.0).softmax(-1) @ value),
    "weights across tiles": (
        av.Replace(1, 2, CROSSING, stream="picture"),
        lambda _logits, value: CROSSING @ value,
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_over_tiles_is_what_plain_code_gives(name: str) -> None:
    edit, change = EDITS[name]
    plain = traced("llava_onevision")
    trace = wrapped("llava_onevision").trace(
        text_of("llava_onevision"), picture=picture("llava_onevision"), edits=[edit]
    )
    model: Any = copy.deepcopy(tiny_of("llava_onevision"))
    with torch.no_grad(), by_hand(tower(model)[1], of_head(change)):
        expected = model(**inputs_of("llava_onevision")).logits[0]
    size = float(expected.abs().max())
    assert float((trace.output - expected).abs().max()) <= NEAR * size
    assert float((trace.output - plain.output).abs().max()) > 1e-4 * size
    assert trace.fidelity.ok


def test_a_blocked_cell_of_a_tile_is_what_plain_code_gives() -> None:
    plain = traced("llava_onevision")
    key = int(plain.attention(1, "picture").weights[2, 20].argmax())
    assert 16 <= key < 32

    def blocked(logits: Tensor, value: Tensor) -> Tensor:
        logits = logits.clone()
        logits[20, key] = -torch.inf
        return logits.softmax(-1) @ value

    trace = wrapped("llava_onevision").trace(
        text_of("llava_onevision"), picture=picture("llava_onevision"), edits=[av.Block(20, key, **PLACE)]
    )
    model: Any = copy.deepcopy(tiny_of("llava_onevision"))
    with torch.no_grad(), by_hand(tower(model)[1], of_head(blocked)):
        expected = model(**inputs_of("llava_onevision")).logits[0]
    size = float(expected.abs().max())
    assert float((trace.output - expected).abs().max()) <= NEAR * size
    assert float((trace.output - plain.output).abs().max()) > 1e-4 * size


def test_gradients_over_tiles_are_those_of_plain_code() -> None:
    differentiate = behind(traced("llava_onevision")).differentiate
    assert differentiate is not None
    found = differentiate(None).layers["picture"]
    kept = list[Tensor]()

    def change(logits: Tensor, value: Tensor) -> Tensor:
        weights = logits.softmax(-1)
        weights.retain_grad()
        kept.append(weights)
        return weights @ value

    model: Any = copy.deepcopy(tiny_of("llava_onevision"))
    with by_hand(tower(model)[1], change):
        logits = model(**inputs_of("llava_onevision")).logits[0]
        logits[-1].max().backward()
    (weights,) = kept
    assert weights.grad is not None
    expected = (weights * weights.grad).clamp_min(0).detach()
    assert float(expected.max()) > 0
    assert float((found[1] - expected).abs().max()) <= 1e-4 * float(expected.max())


def test_what_joins_the_heads_is_found_over_tiles() -> None:
    layer = traced("idefics3").layer(1, "picture")
    assert layer.embeddings is not None and layer.embeddings.shape == (80, 32)
    proj = tower(tiny_of("idefics3"))[1].out_proj
    with torch.no_grad():
        assert layer.joined is not None
        assert torch.allclose(proj(layer.attention.output.transpose(0, 1).flatten(1)), layer.joined, atol=1e-5)


@pytest.mark.parametrize("family", ["idefics3", "internvl", "llava_next"])
def test_generated_words_rows_are_transformers_own(family: str) -> None:
    traces = list(wrapped(family).generate(text_of(family), 2, picture=picture(family)))
    model: Any = copy.deepcopy(tiny_of(family))
    model.set_attn_implementation("eager")
    with torch.no_grad():
        theirs = model.generate(
            **inputs_of(family), max_new_tokens=2, do_sample=False, bad_words_ids=[[model.config.image_token_id]],
            pad_token_id=0, output_attentions=True, return_dict_in_generate=True,
        )  # fmt: skip
    typed = len(traces[0].query_tokens("decoder"))
    assert len(traces) == 3
    for layer, weights in enumerate(theirs.attentions[1]):
        row = traces[-1].attention(layer, "decoder").weights[:, typed, : typed + 1]
        assert torch.allclose(row, weights[0, :, 0], atol=1e-6)
    assert traces[-1].query_tokens("picture") == traces[0].query_tokens("picture")


def test_tiles_in_another_order_are_refused() -> None:
    model: Any = copy.deepcopy(tiny_of("idefics3"))
    own = model.model.vision_model.forward

    def turned(pixel_values: Tensor, patch_attention_mask: Tensor | None = None, **named: Any) -> Any:
        mask = None if patch_attention_mask is None else patch_attention_mask.flip(0)
        found = own(pixel_values.flip(0), patch_attention_mask=mask, **named)
        found.last_hidden_state = found.last_hidden_state.flip(0)
        return found

    model.model.vision_model.forward = turned
    with pytest.raises(UnsupportedModel, match=r"aren't the 5 parts of pixel_values in their order"):
        av.wrap(model, PROCESSORS["idefics3"]())


def test_rows_that_mix_between_layers_are_refused() -> None:
    """Windows that shift from layer to layer mix: a change in one tile moves others."""
    model: Any = copy.deepcopy(tiny_of("idefics3"))
    layer = model.model.vision_model.encoder.layers[0]
    own = layer.forward

    def mixed(hidden_states: Tensor, *given: Any, **named: Any) -> Tensor:
        return own(hidden_states, *given, **named).roll(3, 0) + hidden_states

    layer.forward = mixed
    with pytest.raises(UnsupportedModel, match="in their order, as changing them shows"):
        av.wrap(model, PROCESSORS["idefics3"]())


def test_windows_of_one_image_are_no_tiles() -> None:
    model, inputs = tiny("vit")
    own = model.layers[0].attention.forward if hasattr(model, "layers") else model.encoder.layer[0].attention.forward
    module = model.layers[0].attention if hasattr(model, "layers") else model.encoder.layer[0].attention

    def windowed(hidden_states: Tensor, *given: Any, **named: Any) -> Any:
        found = own(hidden_states.reshape(2, 5, -1), *given, **named)
        first = found[0] if isinstance(found, tuple) else found
        whole = first.reshape(1, 10, -1)
        return (whole, *found[1:]) if isinstance(found, tuple) else whole

    module.forward = windowed
    trace = av.wrap(model, inputs=inputs).trace(inputs)
    weights = trace.attention(0, "picture").weights
    # The class token, which the model adds, comes last.
    first, second = [9, 0, 1, 2, 3], [4, 5, 6, 7, 8]
    assert float(weights[:, first][:, :, second].max()) == float(weights[:, second][:, :, first].max()) == 0


def test_effects_over_tiles_are_those_of_edits_one_by_one() -> None:
    model, trace = wrapped("llava_next"), traced("llava_next")
    token = int(trace.output[-1].argmax())
    effects, means = (av.effects(model, trace, av.Logit(token), to=to) for to in ("zero", "mean"))
    assert {*effects.index.get_level_values("stream")} == {"picture", "decoder"}
    for stream, layer, head in (("picture", 0, 2), ("picture", 0, 1), ("decoder", 0, 3)):
        edited = model.trace(
            text_of("llava_next"), picture=picture("llava_next"), edits=[av.Ablate(layer, head, stream=stream)]
        )
        change = float(edited.output[-1, token] - trace.output[-1, token])
        assert effects.effect[stream, layer, head] == pytest.approx(change, abs=1e-5)
        assert abs(means.effect[stream, layer, head] - change) > 1e-3


@pytest.mark.parametrize("by", ["head", "position"])
def test_patches_over_tiles_are_refused_by_name_with_the_fix(by: Any) -> None:
    model, trace = wrapped("idefics3"), traced("idefics3")
    other = model.trace(text_of("idefics3"), picture=av.Picture(255 - picture("idefics3").pixels))
    with pytest.raises(UnsupportedModel, match=r"attends in 5 tiles or images.*isn't cut up, or av.effects"):
        av.patch(model, trace, other, av.Logit(7), by=by)


def test_a_q_former_over_frames_has_each_frames_weights() -> None:
    family = next(one for one in seen_families() if one.name == "instructblipvideo")
    model: Any = scaled(next(iter(tiny_seen(family))), 8)
    inputs = example_of(model)
    trace = av.wrap(copy.deepcopy(model), inputs=inputs).trace(inputs)
    assert trace.fidelity.ok
    assert trace.streams == ("picture", "decoder", "pooling", "slots")
    names, each = trace.key_tokens("slots").names, model.config.num_query_tokens + 3
    assert trace.query_tokens("slots").names == names
    assert (names[0], names[each - 4], len(names)) == ("tile 1 of 4, latent 0", "tile 1 of 4, latent 31", 4 * each)
    assert [one.replace("␣", " ") for one in names[-3:]] == [f"tile 4 of 4, {word}" for word in (11, 22, 33)]
    assert trace.query_tokens("pooling").names[each - 3] == "tile 2 of 4, latent 0"
    model.set_attn_implementation("eager")
    theirs = list[Tensor]()
    for path, module in model.named_modules():
        if path.startswith("qformer") and path.endswith("attention.attention"):
            module.register_forward_hook(lambda _module, _inputs, output: theirs.append(output[1]))
    with torch.no_grad():
        model(**inputs)
    own = [layer.attention.weights for stream in trace.streams for layer in trace.layers[stream]]
    assert len(theirs) == 3
    for one in theirs:
        frames, _, queries, keys = one.shape
        blocks = [
            torch.stack([all_of.unflatten(1, (frames, queries))[:, at, :, at * keys :][..., :keys] for at in range(4)])
            for all_of in own
            if all_of.shape[1:] == (frames * queries, frames * keys)
        ]
        assert any(torch.allclose(one, other, atol=1e-6) for other in blocks)
        assert not any(torch.allclose(one, other.roll(1, -1), atol=1e-5) for other in blocks)
