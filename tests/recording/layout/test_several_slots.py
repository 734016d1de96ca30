"""Several sets of added positions in one model, and the proofs of their names."""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import attention_viz as av
from attention_viz.errors import AttentionVizError, UnsupportedModel
from attention_viz.recording.layout import slots as layout
from attention_viz.recording.layout.axes import SEEN, TEXT, Axes, Axis
from attention_viz.trace.kind import Unit
from attention_viz.trace.tokens import Tokens
from scripts.seen.building import tiny_seen
from scripts.seen.reading import example_of
from scripts.tiny import Family, scaled
from tests.recording.layout.test_slot_families import IDS, handed_out, perceiver
from tests.recording.layout.test_slots import NEAR, PIXELS, sharp

POINTS = torch.tensor([[[[9.0, 20.0], [3.0, 4.0]]]])
WORDS = torch.tensor([[11, 22, 33, 44, 55, 66, 77]])


def tiny(name: str, model_class: str) -> Any:
    model: Any = next(iter(tiny_seen(Family(name, model_class))))
    model.set_attn_implementation("eager")
    return model


@cache
def sam3() -> tuple[Any, dict[str, Tensor], av.Trace]:
    """A detector whose queries read a text, and then an image."""
    model = tiny("sam3", "Sam3Model")
    inputs = {"pixel_values": PIXELS, "input_ids": WORDS, "attention_mask": torch.ones_like(WORDS)}
    return model, inputs, av.wrap(model, inputs=inputs).trace(inputs)


@cache
def sam() -> tuple[Any, dict[str, Tensor]]:
    """A model whose latents and points read an image, which reads them, too."""
    return sharp(tiny("sam", "SamModel")), {"pixel_values": PIXELS, "input_points": POINTS}


def test_streams_of_one_kind_are_numbered() -> None:
    model, inputs, trace = sam3()
    assert trace.streams == (
        "picture", "picture 2", "decoder", "cross", "cross 2", "pooling", "pooling 2", "slots",
    )  # fmt: skip
    assert trace.key_tokens("pooling").labels == tuple(map(str, WORDS[0].tolist()))
    assert len(trace.key_tokens("pooling 2")) == 16
    latents = tuple(f"latent {number}" for number in range(6))
    for stream in ("pooling", "pooling 2", "slots"):
        assert trace.query_tokens(stream).labels == latents
    for number, layer in enumerate(model.detr_decoder.layers):
        for stream, module in (
            ("pooling", layer.text_cross_attn), ("pooling 2", layer.vision_cross_attn), ("slots", layer.self_attn),
        ):  # fmt: skip
            theirs = handed_out(module, lambda: model(**inputs))
            torch.testing.assert_close(trace.attention(number, stream).weights, theirs, **NEAR)


def test_an_image_that_reads_a_text_has_its_words_for_keys() -> None:
    _, _, trace = sam3()
    for stream in ("cross", "cross 2"):
        assert trace.key_tokens(stream).labels == tuple(map(str, WORDS[0].tolist()))
        assert len(trace.query_tokens(stream)) == 16


def test_numbered_streams_are_kept_and_tabled(tmp_path: Path) -> None:
    _, _, trace = sam3()
    trace.save(tmp_path / "one.safetensors")
    found = av.Trace.load(tmp_path / "one.safetensors")
    assert found.streams == trace.streams
    assert found.query_tokens("pooling 2") == trace.query_tokens("pooling 2")
    torch.testing.assert_close(found.weights(1, 0, "pooling 2"), trace.weights(1, 0, "pooling 2"))
    assert set(trace.table(1, 0)["stream"]) >= {"pooling", "pooling 2"}


def test_points_are_prompts_beside_latents() -> None:
    model, inputs = sam()
    wrapped = av.wrap(model, inputs=inputs)
    trace = wrapped.trace(inputs)
    assert trace.streams == ("picture", "pooling", "slots", "readout")
    names = (*(f"latent {number}" for number in range(5)), *(f"prompt {number}" for number in range(3)))
    assert trace.query_tokens("slots").labels == trace.key_tokens("readout").labels == names
    for number, layer in enumerate(model.mask_decoder.transformer.layers):
        for stream, module in (
            ("slots", layer.self_attn), ("pooling", layer.cross_attn_token_to_image),
            ("readout", layer.cross_attn_image_to_token),
        ):  # fmt: skip
            theirs = handed_out(module, lambda: model(**inputs))
            torch.testing.assert_close(trace.attention(number, stream).weights, theirs, **NEAR)
    fewer = wrapped.trace({**inputs, "input_points": POINTS[..., :1, :]})
    assert fewer.query_tokens("slots").labels == names[:-1]
    other = wrapped.trace({**inputs, "input_points": POINTS + torch.tensor([[0.0, 0.0], [5.0, 5.0]])})
    far = (other.attention(0, "slots").query - trace.attention(0, "slots").query).abs().amax(dim=(0, 2))
    assert [trace.query_tokens("slots").labels[at] for at in (far > 0).nonzero()[:, 0].tolist()] == ["prompt 1"]


def moved_names(before: av.Trace, after: av.Trace, stream: str, side: str, names: Tokens) -> list[str]:
    """The names of the rows or columns of a stream's first layer that differ."""
    number = before.layer_numbers(stream)[0]
    one, other = (getattr(trace.attention(number, stream), side) for trace in (before, after))
    return [names.labels[at] for at in ((other - one).abs().amax(dim=(0, 2)) > 1e-5).nonzero()[:, 0].tolist()]


def swapped(tokens: Tokens, one: int, other: int) -> Tokens:
    labels = list(tokens.labels)
    labels[one], labels[other] = labels[other], labels[one]
    return Tokens(tuple(labels), tokens.ids, spelling=tokens.spelling, slots=tokens.slots)


@pytest.mark.parametrize("at", [0, 2, 5])
def test_a_latent_has_the_number_of_its_row_in_the_model(at: int) -> None:
    model = perceiver()
    before = av.wrap(model).trace_ids(IDS)
    with torch.no_grad():
        model.perceiver.embeddings.latents[at, ::2] += 2  # not by one number, which its norm takes out
    after = av.wrap(model).trace_ids(IDS)
    names = before.query_tokens("pooling")
    assert moved_names(before, after, "pooling", "query", names) == [f"latent {at}"]
    assert moved_names(before, after, "pooling", "query", swapped(names, at, at - 1)) != [f"latent {at}"]


def trades(one: int, other: int) -> Any:
    """A hook that swaps two rows of a module's first output."""

    def swap(_module: nn.Module, _args: object, output: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        rows = list(range(output[0].shape[1]))
        rows[one], rows[other] = rows[other], rows[one]
        return (output[0][:, rows], *output[1:])

    return swap


@pytest.mark.parametrize("pair", [(0, 1), (3, 4), (2, 8)])
def test_swapped_words_are_refused(pair: tuple[int, int]) -> None:
    """Changing the first and the last word alone would miss the second pair."""
    model = perceiver()
    model.perceiver.input_preprocessor.register_forward_hook(trades(*pair))
    with pytest.raises(UnsupportedModel, match="can't match positions to words"):
        av.wrap(model)


def test_a_word_has_the_name_of_the_key_that_it_moves() -> None:
    wrapped = av.wrap(perceiver())
    before, other = wrapped.trace_ids(IDS), IDS.clone()
    other[0, 3] = 50
    after, names = wrapped.trace_ids(other), wrapped.trace_ids(other).key_tokens("pooling")
    assert moved_names(before, after, "pooling", "key", names) == ["50"]
    assert moved_names(before, after, "pooling", "key", swapped(names, 3, 4)) != ["50"]


ONE_OFF: Sequence[tuple[str, Axes]] = [
    ("pooling", Axes(Axis(before=5), Axis(rest=TEXT))),
    ("pooling", Axes(Axis(before=6), Axis(before=1, rest=TEXT))),
    ("slots", Axes(Axis(before=7), Axis(before=7))),
    ("readout", Axes(Axis(Unit.OUTPUT, before=16), Axis(before=5))),
]


@pytest.mark.parametrize(("stream", "axes"), ONE_OFF)
def test_slots_counted_one_off_are_refused(stream: str, axes: Axes, monkeypatch: pytest.MonkeyPatch) -> None:
    found = layout.slot_streams

    def miscounted(*given: Any) -> layout.SlotStreams:
        right = found(*given)
        return layout.SlotStreams(right.names, {**right.axes, stream: axes})

    monkeypatch.setattr("attention_viz.recording.layout.streams.slot_streams", miscounted)
    with pytest.raises(AttentionVizError):
        av.wrap(perceiver()).trace_ids(IDS)


def test_an_images_slots_counted_one_off_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model, inputs = sam()
    found = layout.slot_streams

    def miscounted(*given: Any) -> layout.SlotStreams:
        right = found(*given)
        return layout.SlotStreams(right.names, {**right.axes, "pooling": Axes(Axis(before=9), Axis(rest=SEEN))})

    monkeypatch.setattr("attention_viz.recording.layout.streams.slot_streams", miscounted)
    with pytest.raises(UnsupportedModel, match="9 latents when probed"):
        av.wrap(model, inputs=inputs).trace(inputs)


def parts() -> Iterator[tuple[tuple[str, int, int, bool], tuple[str, Axes]]]:
    own = Axes(Axis(before=4), Axis(rest=SEEN))
    for path in ("first.layers.*.attn", "first.last.attn", "second.layers.*.attn"):
        yield (path, 4, 9, False), ("pooling", own)


def test_sets_in_other_parts_of_a_model_have_streams_of_their_own() -> None:
    names, axes = layout.numbered("Model", dict(parts()))
    assert list(names.values()) == ["pooling", "pooling", "pooling 2"]
    assert set(axes) == {"pooling", "pooling 2"}
    pooling = ("pooling", Axes(Axis(before=4), Axis(rest=SEEN)))
    many = {(f"part{number}.attn", 4, 9, False): pooling for number in range(10)}
    with pytest.raises(UnsupportedModel, match="more sets of positions than can be named"):
        layout.numbered("Model", many)


def test_a_text_and_an_image_that_read_each_other_are_named_by_what_they_read() -> None:
    model = scaled(tiny("bridgetower", "BridgeTowerModel"), 2)
    inputs = {"pixel_values": PIXELS, "input_ids": WORDS, "attention_mask": torch.ones_like(WORDS)}
    trace = av.wrap(model, inputs=inputs).trace(inputs)
    words = tuple(map(str, WORDS[0].tolist()))
    assert trace.query_tokens("cross").labels == trace.key_tokens("cross 2").labels == words
    assert trace.key_tokens("cross").labels[:3] == ("[CLS]", "0,0", "0,1")
    assert len(trace.query_tokens("cross 2")) == 17
    for number, (text, image) in enumerate(
        zip(model.cross_modal_text_layers, model.cross_modal_image_layers, strict=True)
    ):
        for stream, layer in (("cross", text), ("cross 2", image)):
            theirs = handed_out(layer.crossattention.self, lambda: model(**inputs))
            torch.testing.assert_close(trace.attention(number, stream).weights, theirs, **NEAR)


def test_a_q_formers_own_text_is_beside_its_latents() -> None:
    """InstructBLIP's Q-Former reads a text of another length than the language model's."""
    model = scaled(tiny("instructblip", "InstructBlipForConditionalGeneration"), 4)
    inputs = example_of(model)
    words = tuple(map(str, inputs["qformer_input_ids"][0].tolist()))
    assert len(words) != inputs["input_ids"].shape[1]
    trace = av.wrap(model, inputs=inputs).trace(inputs)
    assert trace.streams == ("picture", "decoder", "pooling", "slots")
    latents = tuple(f"latent {number}" for number in range(model.config.num_query_tokens))
    assert trace.query_tokens("slots").labels == trace.key_tokens("slots").labels == (*latents, *words)
    assert trace.query_tokens("pooling").labels == latents
    assert trace.key_tokens("pooling").labels[:3] == ("[CLS]", "0,0", "0,1")
    for number, layer in enumerate(model.qformer.encoder.layer):
        theirs = handed_out(layer.attention.attention, lambda: model(**inputs))
        torch.testing.assert_close(trace.attention(number, "slots").weights, theirs, **NEAR)


def test_a_model_that_takes_no_batch_opens() -> None:
    """TVP's own code fails on two rows, so its attention is proven on one."""
    model = tiny("tvp", "TvpModel")
    inputs = {"pixel_values": torch.rand(1, 4, 3, 64, 64), "input_ids": WORDS, "attention_mask": torch.ones_like(WORDS)}
    trace = av.wrap(model, inputs=inputs).trace(inputs)
    assert trace.fidelity.ok
    with torch.no_grad():
        theirs = model(**inputs, output_attentions=True).attentions
    for number, one in enumerate(theirs):
        torch.testing.assert_close(trace.attention(number).weights, one[0], **NEAR)


def test_a_model_whose_runs_differ_is_refused_by_name() -> None:
    inputs = {"pixel_values": PIXELS, "input_ids": WORDS, "attention_mask": torch.ones_like(WORDS)}
    with pytest.raises(UnsupportedModel, match=r"vilt .* gives another output each time"):
        av.wrap(tiny("vilt", "ViltModel"), inputs=inputs)
