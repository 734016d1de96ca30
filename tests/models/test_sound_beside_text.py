"""A text beside audio: its layers are exact, and each placeholder has the stretch of time that moves it."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import attention_viz as av
from attention_viz.inputs.media.beside import Beside
from attention_viz.inputs.media.beside_sound import BesideSoundReader
from attention_viz.models.model import AttentionModel
from attention_viz.recording.layout import measured as measuring
from attention_viz.recording.layout.measured_times import measured_times
from attention_viz.recording.layout.placeholders import Placeholders
from attention_viz.recording.recorder import Call, whole_output
from attention_viz.recording.runner import Runner
from attention_viz.trace.tokens import Region
from tests.models import picture_families
from tests.models.sound_families import FAMILIES, RATE, SAMPLES, SOUND, model_of, tensors_of, wrapped
from tests.recording.chunks.test_chunks import Softmaxes

TEXT = "what is <sound> this ?"
HEARD = av.Sound(SAMPLES, RATE)
# Seconds per placeholder: spectra of 10 ms, halved by a convolution, then joined in pairs or fours.
STEPS = {"qwen2_audio": 0.04, "audioflamingo3": 0.04, "musicflamingo": 0.04, "glmasr": 0.08}


def traced(family: str) -> av.Trace:
    return wrapped(family).trace(TEXT, sound=HEARD)


def tower(model: Any) -> list[Any]:
    return [one for name, one in model.named_modules() if "audio_tower" in name and name.endswith("self_attn")]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_weight_is_eagers(family: str) -> None:
    trace = traced(family)
    assert trace.streams == ("sound", "decoder")
    assert trace.fidelity.ok
    model = copy.deepcopy(model_of(family))
    model.set_attn_implementation("eager")
    with torch.no_grad(), Softmaxes() as softmaxes:
        output = model(**tensors_of(family, TEXT)).logits[0]
    assert torch.allclose(trace.output, output, atol=1e-5 * float(output.abs().max()))
    ours = [layer.attention for stream in trace.streams for layer in trace.layers[stream]]
    assert len(ours) == len(softmaxes.found)
    assert len(trace.layers["sound"]) == len(tower(model))
    for one, theirs in zip(ours, softmaxes.found, strict=True):
        assert float((one.weights - theirs[0]).abs().max()) <= 1e-5
    # More than uniform, so that something is proved.
    assert float(ours[0].weights.max()) > 2 / ours[0].shape[-1]


@pytest.mark.parametrize("family", FAMILIES)
def test_placeholders_have_their_stretches_in_order(family: str) -> None:
    trace, step = traced(family), STEPS[family]
    tokens = trace.query_tokens("decoder")
    ids = tensors_of(family, TEXT)["input_ids"][0].tolist()
    marks = [at for at, one in enumerate(ids) if one == SOUND]
    assert [at for at, one in enumerate(tokens.regions) if one is not None] == marks
    stretches = [
        (one.start, one.end) for one in tokens.regions if one and one.start is not None and one.end is not None
    ]
    assert len(stretches) == len(marks) == int(1 / step)
    for number, (start, end) in enumerate(stretches):
        middle = (number + 0.5) * step
        # It holds the middle of the nominal step, and ends within one step of it: spectra and convolutions overlap.
        assert start - step / 2 <= middle <= end + step / 2
        assert start >= middle - 1.6 * step and end <= middle + 1.6 * step
    assert list(tokens.place) == [
        None if one is None or one.start is None else (round(one.start, 6),) for one in tokens.regions
    ]
    assert tokens.labels[marks[0]] == "0.00 s"
    assert tokens.labels[:2] == ("what", "is")
    sounds = trace.query_tokens("sound")
    assert [one[0] for one in sounds.place if one] == pytest.approx([0.02 * at for at in range(64)])


class _Own(nn.Module):
    """Attention that gives each position its own value."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, hidden_states: Tensor, *_given: Any, **_named: Any) -> tuple[Tensor, None]:
        join = getattr(self.module, "out_proj", None) or self.module.o_proj
        value = self.module.v_proj(hidden_states)
        groups = join.in_features // value.shape[-1]
        return join(value.repeat_interleave(groups, dim=-1) if groups > 1 else value), None


def moves(family: str, changed: "np.ndarray[Any, Any]") -> Tensor:
    """How far each placeholder's input moves by changed samples, in plain code with the tower's attention taken out."""
    model = copy.deepcopy(model_of(family))
    for module in tower(model):
        parent = model.get_submodule(
            next(name for name, one in model.named_modules() if one is module)[: -len(".self_attn")]
        )
        parent.self_attn = _Own(module)
    read = list[Tensor]()

    def enter(_module: object, _given: object, named: dict[str, Any]) -> None:
        read.append(named["inputs_embeds"][0].detach())

    model.get_decoder().register_forward_pre_hook(enter, with_kwargs=True)
    inputs = [tensors_of(family, TEXT, one) for one in (SAMPLES, np.where(changed, SAMPLES[::-1], SAMPLES))]
    with torch.no_grad():
        for one in inputs:
            model(**one)
    marks = inputs[0]["input_ids"][0] == SOUND
    return (read[1] - read[0])[marks].norm(dim=1)


@pytest.mark.parametrize("family", ["qwen2_audio", "glmasr"])
def test_a_change_moves_the_placeholders_whose_stretch_it_is(family: str) -> None:
    regions = [one for one in traced(family).query_tokens("decoder").regions if one]
    time, step = np.arange(len(SAMPLES)) / RATE, STEPS[family]
    for number in (1, len(regions) // 2, len(regions) - 2):
        region = regions[number]
        assert region.start is not None and region.end is not None
        inside = moves(family, (time >= region.start) & (time < region.end))
        beyond = moves(family, (time < region.start - step) | (time >= region.end + step))
        assert float(inside[number]) > 10 * float(beyond[number])
        assert int(inside.argmax()) in (number - 1, number, number + 1)


def test_with_the_towers_attention_left_on_the_stretches_would_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = BesideSoundReader("qwen2_audio", model_of("qwen2_audio"), FAMILIES["qwen2_audio"][1]())
    given = reader.read(Beside(TEXT, (), sound=HEARD))
    marks = (given.tensors["input_ids"][0] == SOUND).nonzero()[:, 0].tolist()
    runner, remade = Runner.of(model_of("qwen2_audio")), cast("Any", given.remade)
    known = measured_times(runner, remade, marks)

    def hear(_recorder: object, call: Call) -> Tensor:
        return whole_output(call.attention)

    monkeypatch.setattr(measuring.Apart, "hear", hear)
    assert measured_times(runner, remade, marks) != known


def test_a_placeholder_that_no_sound_moves_has_no_time_and_says_so() -> None:
    model = copy.deepcopy(model_of("qwen2_audio"))
    project = model.get_submodule("model.multi_modal_projector")
    own = project.forward

    def forward(states: Tensor) -> Tensor:
        found = own(states).clone()
        found[:, 3] = 0.5
        return found

    project.forward = forward
    trace = av.wrap(model, FAMILIES["qwen2_audio"][1]()).trace(TEXT, sound=HEARD)
    tokens = trace.query_tokens("decoder")
    assert tokens.regions[2 + 3] is None and tokens.place[2 + 3] is None
    assert tokens.labels[2 + 3] == "<sound>"
    assert sum(one is not None for one in tokens.regions) == 24
    note = "1 of 25 placeholders have no time in the audio: no sound moves them, or all do."
    assert note in trace.provenance.notes
    assert Placeholders((1,), (Region(0, 0, 0, 1, 1, start=0.0, end=0.1),), heard=True).notes == ()


@pytest.mark.parametrize("family", ["qwen2_audio", "audioflamingo3", "glmasr"])
def test_generated_words_rows_are_transformers_own(family: str) -> None:
    traces = list(wrapped(family).generate(TEXT, 2, sound=HEARD))
    model = copy.deepcopy(model_of(family))
    model.set_attn_implementation("eager")
    with torch.no_grad():
        theirs = model.generate(
            **tensors_of(family, TEXT), max_new_tokens=2, do_sample=False, bad_words_ids=[[SOUND]], pad_token_id=0,
            output_attentions=True, return_dict_in_generate=True,
        )  # fmt: skip
    typed = len(traces[0].query_tokens("decoder"))
    assert len(traces) == 3
    for layer, weights in enumerate(theirs.attentions[1]):
        row = traces[-1].attention(layer, "decoder").weights[:, typed, : typed + 1]
        assert torch.allclose(row, weights[0, :, 0], atol=1e-6)
    assert traces[-1].query_tokens("decoder").regions[:typed] == traces[0].query_tokens("decoder").regions


def test_an_edit_of_the_tower_reaches_the_words() -> None:
    model = wrapped("qwen2_audio")
    plain = traced("qwen2_audio")
    edited = model.trace(TEXT, sound=HEARD, edits=[av.Ablate(1, 2, stream="sound")])
    assert float((edited.output - plain.output).abs().max()) > 1e-4
    assert edited.fidelity.ok


def test_a_trace_keeps_its_sound_and_stretches_in_a_file(tmp_path: Path) -> None:
    trace = traced("qwen2_audio")
    trace.save(tmp_path / "heard.safetensors")
    again = av.Trace.load(tmp_path / "heard.safetensors")
    assert again.query_tokens("decoder") == trace.query_tokens("decoder")
    assert again.seen.sound is not None and trace.seen.sound is not None
    assert torch.equal(again.seen.sound, trace.seen.sound)
    assert trace.provenance.sound == "sound, 1.00 s"
    assert av.findings(again, 5)


def test_a_processors_own_tensors_give_the_same_numbers() -> None:
    model = wrapped("qwen2_audio")
    again = model.trace_ids(**cast("Any", tensors_of("qwen2_audio", TEXT)))
    assert torch.equal(again.output, traced("qwen2_audio").output)
    assert not any(again.query_tokens("decoder").regions)
    assert any("placeholders have no places" in one for one in again.provenance.notes)


def test_a_text_without_a_place_gets_one_and_a_chat_its_template() -> None:
    model = wrapped("qwen2_audio")
    trace = model.trace("what is this ?", sound=HEARD)
    assert any("The text has no place for the audio" in one for one in trace.provenance.notes)
    chat = model.trace("what is this ?", sound=HEARD, chat=True)
    written = model.trace("user : <sound> what is this ? assistant :", sound=HEARD)
    assert torch.equal(chat.output, written.output)


PICTURE = av.Picture(picture_families.PIXELS)
Asked = Callable[[AttentionModel], object]
WRONG: list[tuple[Asked, type[Exception], str]] = [
    (lambda model: model.trace("a cat"), av.UnusableText, "reads a text with audio, but got a text alone"),
    (lambda model: model.trace("a cat", picture=PICTURE), av.UnusableText, "reads a text with audio, but got images"),
    (lambda model: model.trace("a", sound=HEARD, picture=PICTURE), av.UnusableSound, "only one of them"),
    (lambda model: model.trace("a", sound=cast("Any", "a.wav")), av.UnusableSound, "takes av.Sound.*got str"),
    (lambda model: model.trace("", sound=HEARD), av.UnusableText, "empty"),
    (lambda model: model.trace("<sound> <sound>", sound=HEARD), av.UnusableText, "2 places for some audio"),
    (lambda model: model.trace("a " * 60, sound=HEARD), av.TextTooLong, "text with its audio"),
    (lambda model: model.trace_ids([SOUND, 30]), av.UnusableText, "but got a text alone"),
    (
        lambda _model: av.wrap(
            copy.deepcopy(picture_families.tiny_of("llava")), picture_families.PROCESSORS["llava"]()
        ).trace("a", sound=HEARD),
        av.UnusableSound,
        "reads a text with an image here, not audio",
    ),
]


@pytest.mark.parametrize(("ask", "error", "message"), WRONG)
def test_what_is_wrong_is_named(ask: Asked, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ask(wrapped("qwen2_audio"))


def test_a_model_of_text_alone_names_what_it_needs(minilm: AttentionModel) -> None:
    with pytest.raises(av.UnusableSound, match="wrap a model that reads both with its processor"):
        minilm.trace("a cat", sound=HEARD)
