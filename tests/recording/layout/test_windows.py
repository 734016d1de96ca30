"""Windows of an image, put back in their places."""

import copy
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn
from transformers import (
    LwDetrViTBackbone,
    LwDetrViTConfig,
    SwinConfig,
    SwinModel,
    Swinv2Config,
    Swinv2Model,
    TimesformerConfig,
    TimesformerModel,
)
from transformers.models.swin.modeling_swin import SwinLayer

import attention_viz as av
from attention_viz.errors import UnsupportedModel
from attention_viz.models.model import AttentionModel
from attention_viz.recording.layout.windows import WindowFinder
from attention_viz.recording.layout.windows import _Search as Search  # pyright: ignore[reportPrivateUsage]

# Padded to 9 × 9 positions, then to 6 × 6; and an image that isn't square, padded otherwise.
SIZES = ((32, 32), (20, 44))
SHAPE: dict[str, Any] = {
    "image_size": 32,
    "patch_size": 4,
    "embed_dim": 16,
    "depths": [2, 2],
    "num_heads": [2, 4],
    "window_size": 3,
}


def random_model(model: Any) -> Any:
    chance = torch.Generator().manual_seed(0)
    for name, one in model.named_parameters():
        if one.ndim > 1:
            one.data = 0.1 * torch.randn(one.shape, generator=chance)
        if "logit_scale" in name:
            one.data = torch.linspace(1, 2, one.numel()).reshape(one.shape)
    return model.eval()


def picture(size: tuple[int, int]) -> dict[str, Tensor]:
    return {"pixel_values": torch.randn(1, 3, *size, generator=torch.Generator().manual_seed(1))}


@pytest.fixture(scope="module")
def swin() -> Any:
    return random_model(SwinModel(SwinConfig(**SHAPE)))


@pytest.fixture(scope="module")
def wrapped(swin: Any) -> AttentionModel:
    return av.wrap(swin, inputs=picture(SIZES[0]))


def eager(model: Any) -> Any:
    other = copy.deepcopy(model)
    other.set_attn_implementation("eager")
    return other


def heard(modules: Iterable[nn.Module], take: Callable[[Any], Tensor] = lambda output: output[1]) -> list[Tensor]:
    """Return a list that fills with the modules' weights."""
    found = list[Tensor]()

    def hear(_module: object, _inputs: object, output: object) -> None:
        found.append(take(output))

    for one in modules:
        one.register_forward_hook(hear)
    return found


def weights_in_windows(model: Any, inputs: dict[str, Tensor]) -> list[tuple[Any, Tensor, Tensor]]:
    """Run a Swin model plainly; return each layer, its input and its windows' weights."""
    model, entered = eager(model), list[Tensor]()

    def enter(_module: object, inputs: tuple[Tensor, ...]) -> None:
        entered.append(inputs[0])

    blocks = [block for stage in model.encoder.layers for block in stage.blocks]
    weights = heard(block.attention for block in blocks)
    for block in blocks:
        block.register_forward_pre_hook(enter)
    with torch.no_grad():
        model(**inputs)
    return list(zip(blocks, entered, weights, strict=True))


def sides(size: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Yield each layer's rows and columns of positions; a merge pads an odd side."""
    rows, columns = size[0] // 4, size[1] // 4
    yield from [(rows, columns)] * 2
    yield from [(-(-rows // 2), -(-columns // 2))] * 2


def placed(windows: Tensor, size: tuple[int, int], side: int, shift: int) -> Tensor:
    """Put windows, (window, head, slot, slot), into a matrix cell by cell; padding comes last."""
    rows, columns = size
    high, wide = (-(-one // side) * side for one in size)
    numbers, padding = dict[tuple[int, int], int](), rows * columns
    for window in range(len(windows)):
        for slot in range(side * side):
            row = (window // (wide // side) * side + slot // side + shift) % high
            column = (window % (wide // side) * side + slot % side + shift) % wide
            inside = row < rows and column < columns
            numbers[window, slot] = row * columns + column if inside else padding
            padding += not inside
    found = torch.zeros(windows.shape[1], high * wide, high * wide)
    for window in range(len(windows)):
        for asking in range(side * side):
            for slot in range(side * side):
                cell = numbers[window, asking], numbers[window, slot]
                found[:, cell[0], cell[1]] = windows[window, :, asking, slot]
    return found


def matrices(trace: av.Trace) -> list[Tensor]:
    return [layer.attention.weights for stream in trace.streams for layer in trace.layers[stream]]


@pytest.mark.parametrize("size", SIZES)
def test_windows_are_in_place(swin: Any, wrapped: AttentionModel, size: tuple[int, int]) -> None:
    inputs = picture(size)
    trace, theirs = wrapped.trace(inputs), weights_in_windows(swin, inputs)
    expected = [
        placed(weights, own, block.window_size, block.shift_size)
        for own, (block, _, weights) in zip(sides(size), theirs, strict=True)
    ]
    assert {block.shift_size for block, _, _ in theirs} == {0, 1}
    assert all(torch.allclose(ours, one, atol=1e-6) for ours, one in zip(matrices(trace), expected, strict=True))
    assert trace.fidelity.ok
    # Outside its window, a position is blocked.
    allowed = trace.attention(0, "picture").allowed
    assert allowed is not None
    assert torch.equal(~allowed.expand(expected[0].shape), expected[0] == 0)


def test_an_image_of_one_window_stops_the_shift_of_later_ones() -> None:
    model = random_model(SwinModel(cast("Any", SwinConfig)(**SHAPE | {"depths": [2], "num_heads": [2]})))
    wrapped, shifts = av.wrap(model, inputs=picture(SIZES[0])), list[int]()
    for size in (SIZES[0], (12, 12), SIZES[0]):
        inputs = picture(size)
        trace, theirs = wrapped.trace(inputs), weights_in_windows(model, inputs)
        for ours, (block, _, weights) in zip(matrices(trace), theirs, strict=True):
            places = size[0] // 4, size[1] // 4
            assert torch.allclose(ours, placed(weights, places, block.window_size, block.shift_size), atol=1e-6)
        shifts.append(theirs[1][0].shift_size)
    assert shifts == [1, 0, 0]


def test_threads_refuse_windows_of_a_model_that_was_wrapped_without_any(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(SwinModel(cast("Any", SwinConfig)(**SHAPE | {"depths": [1], "num_heads": [2]})))
    one, several, found = picture((12, 12)), picture(SIZES[0]), list[object]()
    wrapped = av.wrap(model, inputs=one)
    expected, searched = matrices(wrapped.trace(one)), Search.orders

    def trace() -> None:
        found.append(matrices(wrapped.trace(one)))
        with pytest.raises(UnsupportedModel, match="in windows only here") as error:
            _ = wrapped.trace(several)
        found.append(str(error.value))

    def orders(self: Any) -> Any:
        monkeypatch.setattr(Search, "orders", searched)
        other = threading.Thread(target=trace)
        other.start()
        other.join()
        return searched(self)

    monkeypatch.setattr(Search, "orders", orders)
    for _ in range(2):
        with pytest.raises(UnsupportedModel, match="in windows only here"):
            _ = wrapped.trace(several)
    own, refusal = found
    assert all(torch.equal(ours, one) for ours, one in zip(cast("Any", own), expected, strict=True))
    assert "in windows only here" in str(refusal)


def test_an_order_that_another_thread_drops_is_still_returned(monkeypatch: pytest.MonkeyPatch, swin: Any) -> None:
    class Dropping(dict[object, Any]):
        def __setitem__(self, key: object, value: object) -> None:
            super().__setitem__(key, value)
            self.clear()

    def orders(_search: object) -> object:
        return {3: "order"}

    monkeypatch.setattr(Search, "orders", orders)
    runner = cast("Any", SimpleNamespace(model=swin))
    assert WindowFinder(True, Dropping()).of(runner, picture(SIZES[0])) == {3: "order"}


def test_one_hot_values_come_back_at_their_positions(swin: Any, wrapped: AttentionModel) -> None:
    inputs = picture(SIZES[1])
    ours = matrices(wrapped.trace(inputs))
    for (block, entered, weights), own, size in zip(
        weights_in_windows(swin, inputs), ours, sides(SIZES[1]), strict=True
    ):
        count, found = entered.shape[1], list[Tensor]()
        for head in range(weights.shape[1]):
            found.append(through_layer(block, weights[:, head], count, size))
        assert torch.allclose(own[:, :count, :count], torch.stack(found), atol=1e-6)


def through_layer(block: Any, weights: Tensor, count: int, size: tuple[int, int]) -> Tensor:
    """Send one-hot values through a Swin layer's own windows, weighted by one head."""
    layer, taken = copy.deepcopy(block), list[Tensor]()

    class Weighted(nn.Module):
        def forward(self, windows: Tensor, *_: object) -> tuple[Tensor, None]:
            return weights @ windows, None

    class Ended(nn.Module):
        def forward(self, states: Tensor) -> Tensor:
            taken.append(states)
            return states

    layer.attention, layer.layernorm_before = Weighted(), nn.Identity()
    layer.layernorm_after, layer.mlp = Ended(), nn.Identity()
    layer(torch.eye(count)[None], size)
    return taken[0][0] - torch.eye(count)


def test_a_window_shifted_by_one_is_noticed(
    swin: Any, wrapped: AttentionModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = picture(SIZES[0])
    (block, _, weights), *_ = weights_in_windows(swin, inputs)
    expected = placed(weights, (8, 8), block.window_size, block.shift_size)
    assert torch.allclose(wrapped.trace(inputs).attention(0, "picture").weights, expected, atol=1e-6)
    right = WindowFinder.of

    def shifted(self: WindowFinder, runner: Any, given: Any) -> Any:
        return {
            number: replace(one, places=one.places.roll(1, dims=0))
            for number, one in right(self, runner, given).items()
        }

    monkeypatch.setattr(WindowFinder, "of", shifted)
    assert not torch.allclose(wrapped.trace(inputs).attention(0, "picture").weights, expected, atol=1e-2)


def shift_back_elsewhere(states: Tensor, reverse: bool = False) -> Tensor:
    return torch.roll(states, (2, 1) if reverse else (-1, -1), (1, 2))


@pytest.mark.parametrize("share", [1, 1e-2, 1e-4, 1e-6])
def test_outputs_at_other_positions_are_refused_however_small(swin: Any, share: float) -> None:
    model = copy.deepcopy(swin)
    layer = model.encoder.layers[0].blocks[1]
    for one in layer.attention.o_proj.parameters():
        one.data *= share
    assert av.wrap(model, inputs=picture(SIZES[0])).trace(picture(SIZES[0])).fidelity.ok
    layer.cyclic_shift = shift_back_elsewhere
    with pytest.raises(UnsupportedModel, match="each written back to its own"):
        av.wrap(model, inputs=picture(SIZES[0]))


@pytest.mark.parametrize("share", [1, 1e-2, 1e-4])
def test_small_outputs_behind_a_norm_are_read_too(share: float) -> None:
    model = random_model(Swinv2Model(cast("Any", Swinv2Config)(**SHAPE | {"window_size": 4})))
    layer = model.encoder.layers[0].blocks[1]
    for one in layer.layernorm_before.parameters():
        one.data *= share
    assert av.wrap(model, inputs=picture(SIZES[0])).trace(picture(SIZES[0])).fidelity.ok
    layer.layernorm_before = nn.Sequential(Rolled(), layer.layernorm_before)
    with pytest.raises(UnsupportedModel, match="each written back to its own"):
        av.wrap(model, inputs=picture(SIZES[0]))


class Rolled(nn.Module):
    def forward(self, states: Tensor) -> Tensor:
        return states.roll(1, dims=1)


def test_a_layer_that_adds_nothing_is_shown(swin: Any) -> None:
    model = copy.deepcopy(swin)
    for one in model.encoder.layers[0].blocks[1].attention.o_proj.parameters():
        one.data.zero_()
    assert av.wrap(model, inputs=picture(SIZES[0])).trace(picture(SIZES[0])).fidelity.ok


def test_patches_and_padding_have_names(wrapped: AttentionModel) -> None:
    tokens = wrapped.trace(picture(SIZES[0])).query_tokens("picture")
    assert (tokens.labels[0], tokens.labels[9], tokens.labels[63]) == ("0,0", "1,1", "7,7")
    assert tokens.labels[64:] == tuple(f"[EXTRA{number}]" for number in range(1, 18))
    assert tokens.place[9] == (1.0, 1.0)
    assert tokens.special == (False,) * 64 + (True,) * 17


def test_an_edit_blocks_a_patch(wrapped: AttentionModel) -> None:
    inputs = picture(SIZES[0])
    edited = wrapped.trace(inputs, edits=[av.Block(9, 10, layer=0, stream="picture")])
    whole = wrapped.trace(inputs).attention(0, "picture").weights
    ours = edited.attention(0, "picture").weights
    assert float(whole[0, 9, 10]) > 0 == float(ours[0, 9, 10])
    assert not torch.equal(edited.output, wrapped.trace(inputs).output)


def test_gradients_are_in_place(swin: Any, wrapped: AttentionModel) -> None:
    inputs, model = picture(SIZES[0]), eager(swin)

    def keep(output: tuple[Tensor, Tensor]) -> Tensor:
        output[1].retain_grad()
        return output[1]

    found = heard((block.attention for stage in model.encoder.layers for block in stage.blocks), keep)
    model(**inputs).last_hidden_state.max().backward()
    ours = wrapped.trace(inputs).relevance().layers["picture"]
    assert found[1].grad is not None
    expected = placed((found[1] * found[1].grad).clamp_min(0).detach(), (8, 8), 3, 1)
    assert float(expected.max()) > 0
    assert torch.allclose(ours[1], expected, atol=1e-5 * float(expected.max()))


def test_what_needs_a_batch_is_refused(wrapped: AttentionModel) -> None:
    trace = wrapped.trace(picture(SIZES[0]))
    with pytest.raises(UnsupportedModel, match="windows"):
        trace.value_zeroing("picture")
    with pytest.raises(UnsupportedModel, match="windows"):
        av.decompose(wrapped, trace, av.Score(1, 0, 1, 0, "picture"))


def test_heads_with_factors_of_their_own_are_exact() -> None:
    inputs = picture((32, 32))
    model = random_model(Swinv2Model(cast("Any", Swinv2Config)(**SHAPE | {"window_size": 4})))
    trace = av.wrap(model, inputs=inputs).trace(inputs)
    assert trace.fidelity.ok
    kept = heard(block.attention.self for stage in model.encoder.layers for block in stage.blocks)
    with torch.no_grad():
        model(**inputs, output_attentions=True)
    first, second = matrices(trace)[:2]
    assert torch.allclose(first, placed(kept[0], (8, 8), 4, 0), atol=1e-5)
    assert torch.allclose(second, placed(kept[1], (8, 8), 4, 2), atol=1e-5)


def test_global_layers_have_the_windows_positions() -> None:
    config = cast("Any", LwDetrViTConfig)(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, image_size=32, pretrain_image_size=32, patch_size=4,
        window_block_indices=[0], num_windows=4, out_indices=[2],
    )  # fmt: skip
    model, inputs = random_model(LwDetrViTBackbone(config)), picture((32, 32))
    trace, plain = av.wrap(model, inputs=inputs).trace(inputs), eager(model)
    kept = heard(layer.attention for layer in plain.encoder.layer)
    with torch.no_grad():
        plain(**inputs)
    # Four windows of 4 × 4 positions, one after the other.
    order = [(top + slot // 4) * 8 + left + slot % 4 for top in (0, 4) for left in (0, 4) for slot in range(16)]
    windows, whole = matrices(trace)
    assert trace.streams == ("picture",)
    assert torch.allclose(windows, placed(kept[0], (8, 8), 4, 0), atol=1e-5)
    assert torch.allclose(whole[:, order][:, :, order], kept[1][0], atol=1e-5)


class _ShiftedByPixels(SwinModel):
    """Shifts windows of a layer by what the whole image has."""

    def forward(self, pixel_values: Any = None, **named: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        cast("Any", self).encoder.layers[0].blocks[1].shift_size = 1 + int(pixel_values.mean() > 0)
        return super().forward(pixel_values=pixel_values, **named)


class _ShiftedByStates(SwinLayer):
    """Shifts windows by what enters the layer."""

    threshold = 0.0

    def forward(self, hidden_states: Any, *given: Any, **named: Any) -> Any:
        self.step = torch.tensor(1 + int(hidden_states[..., 0].mean() > self.threshold))
        return super().forward(hidden_states, *given, **named)

    def cyclic_shift(self, hidden_states: Tensor, reverse: bool = False) -> Tensor:
        step = int(self.step) if reverse else -int(self.step)
        return torch.roll(hidden_states, (step, step), (1, 2))


def _no_code(_modules: object) -> tuple[object, ...]:
    return ()


def test_windows_that_go_by_the_image_are_found_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    images = [{"pixel_values": picture(SIZES[0])["pixel_values"] + sign} for sign in (1, -1, 1)]
    by_pixels, by_states = (random_model(one(SwinConfig(**SHAPE))) for one in (_ShiftedByPixels, SwinModel))
    changed = by_states.encoder.layers[0].blocks[1]
    entered = [weights_in_windows(by_states, one)[1][1][..., 0].mean() for one in images]
    changed.__class__ = _ShiftedByStates
    monkeypatch.setattr(_ShiftedByStates, "threshold", float(entered[0] + entered[1]) / 2)
    for model in (by_pixels, by_states):
        wrapped, shifts = av.wrap(model, inputs=images[0]), list[int]()
        for inputs in images:
            trace, (_, (_, _, weights), *_) = wrapped.trace(inputs), weights_in_windows(model, inputs)
            close = [
                shift
                for shift in (1, 2)
                if torch.allclose(matrices(trace)[1], placed(weights, (8, 8), 3, shift), atol=1e-6)
            ]
            shifts += close
            assert trace.fidelity.ok
        assert shifts in ([2, 1, 2], [1, 2, 1])
    # Without the rule, the second image is laid out as the first.
    monkeypatch.setattr("attention_viz.recording.layout.windows.foreign_code", _no_code)
    wrapped = av.wrap(by_pixels, inputs=images[0])
    _, second = (matrices(wrapped.trace(one))[1] for one in images[:2])
    (_, (_, _, weights), *_) = weights_in_windows(by_pixels, images[1])
    assert not torch.allclose(second, placed(weights, (8, 8), 3, 1), atol=1e-2)


def test_time_and_space_are_rows_of_a_video() -> None:
    config = TimesformerConfig(
        image_size=8, patch_size=4, num_frames=3, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16,
    )  # fmt: skip
    model = random_model(TimesformerModel(config))
    inputs = {"pixel_values": torch.randn(1, 3, 3, 8, 8, generator=torch.Generator().manual_seed(1))}
    trace, (layer,) = av.wrap(model, inputs=inputs).trace(inputs), model.encoder.layer
    both = layer.temporal_attention.attention, layer.attention.attention
    kept = heard((one.attn_drop for one in both), lambda weights: weights)
    with torch.no_grad():
        model(**inputs)
    time, space = matrices(trace)
    # Frames follow each other; each frame has its own copy of the class token.
    patches = tuple(map(str, range(12)))
    assert trace.query_tokens("picture").labels == patches
    assert trace.query_tokens("picture 2").labels == (*patches, "[EXTRA1]", "[EXTRA2]", "[EXTRA3]")
    for patch in range(4):
        own = [4 * frame + patch for frame in range(3)]
        assert torch.allclose(time[:, own][:, :, own], kept[0][patch], atol=1e-5)
    for frame in range(3):
        own = [12 + frame, *range(4 * frame, 4 * frame + 4)]
        assert torch.allclose(space[:, own][:, :, own], kept[1][frame], atol=1e-5)


def test_matrices_that_memory_should_not_hold_are_refused(
    wrapped: AttentionModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attention_viz.recording.call_rows.MOST_BYTES", 10_000)
    with pytest.raises(UnsupportedModel, match="use a smaller image"):
        wrapped.trace(picture(SIZES[0]))
