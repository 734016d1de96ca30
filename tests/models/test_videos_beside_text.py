"""A text beside a video: places and times, layers, generated words, and what is refused."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import attention_viz as av
from attention_viz.recording.layout import measured as measuring
from attention_viz.recording.recorder import Call, whole_output
from attention_viz.trace.tokens import Region
from tests.models import picture_families
from tests.models.video_families import FAMILIES, FRAMES, VIDEO, model_of, processor, wrapped

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
TEXT = "what is <video> this ?"
FILM = av.Video(FRAMES, rate=2)


def expected(steps: int, rows: int = 2, columns: int = 4, rate: float = 2) -> list[Region]:
    """Two frames at a time; in each step, rectangles row by row."""
    return [
        Region(
            2 * step, row / rows, column / columns, (row + 1) / rows, (column + 1) / columns,
            start=2 * step / rate, end=min(2 * step + 1, len(FRAMES) - 1) / rate,
        )
        for step in range(steps) for row in range(rows) for column in range(columns)
    ]  # fmt: skip


def regions(trace: av.Trace) -> list[Region]:
    return [one for one in trace.query_tokens("decoder").regions if one is not None]


def tensors(family: str) -> dict[str, Tensor]:
    times = {"fps": 2.0, "total_num_frames": 5, "duration": 2.5, "frames_indices": list(range(5))}
    made = processor(family)(text=TEXT, videos=[FRAMES], video_metadata=[times], return_tensors="pt")
    return {name: one for name, one in made.items() if isinstance(one, Tensor)}


@pytest.mark.parametrize("family", FAMILIES)
def test_each_placeholder_has_its_rectangle_and_its_time(family: str) -> None:
    trace = wrapped(family).trace(TEXT, video=FILM)
    tokens = trace.query_tokens("decoder")
    assert regions(trace) == expected(3)
    assert [one for one in tokens.labels if "s:" in one][:5] == [f"0.00 s:{at // 4},{at % 4}" for at in range(5)]
    assert trace.fidelity.ok
    assert trace.seen.times == FILM.times == (0, 0.5, 1, 1.5, 2)
    assert all(torch.equal(one, torch.from_numpy(own)) for one, own in zip(trace.seen.pictures, FRAMES, strict=True))


@pytest.mark.parametrize("family", ["qwen2_vl", "qwen3_vl"])
def test_a_change_of_one_frame_moves_the_placeholders_of_its_time(family: str) -> None:
    """The same question asked of transformers alone: whose embedding changes if frame 2 does?"""
    model, changed = model_of(family), FRAMES.copy()
    changed[2] = 255 - changed[2]
    found = list[Tensor]()

    def hear(_module: object, _given: object, named: Mapping[str, Any]) -> None:
        found.append(named["inputs_embeds"][0])

    for frames in (FRAMES, changed):
        with torch.no_grad():
            made = tensors(family) | {"pixel_values_videos": pixels(family, frames)}
            handle = model.get_decoder().register_forward_pre_hook(hear, with_kwargs=True)
            model(**made)
            handle.remove()
    moved = (found[0] != found[1]).any(dim=1).nonzero()[:, 0].tolist()
    tokens = wrapped(family).trace(TEXT, video=FILM).query_tokens("decoder")
    assert moved == [at for at, one in enumerate(tokens.regions) if one and one.start == 1.0]
    assert len(moved) == 8


def pixels(family: str, frames: Any) -> Tensor:
    made = processor(family).video_processor([frames], [{"fps": 2.0, "total_num_frames": 5}])
    return made["pixel_values_videos"]


def test_with_the_towers_attention_left_on_the_places_would_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def hear(_recorder: object, call: Call) -> Tensor:
        return whole_output(call.attention)

    monkeypatch.setattr(measuring.Apart, "hear", hear)
    fresh = av.wrap(model_of("qwen2_vl"), processor("qwen2_vl"))
    assert regions(fresh.trace(TEXT, video=FILM)) != expected(3)


def test_frames_are_measured_by_the_bits_of_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    runs, own = list[object](), measuring.embedded

    def counted(runner: Any, inputs: Mapping[str, Tensor]) -> Tensor:
        runs.append(inputs)
        return own(runner, inputs)

    monkeypatch.setattr(measuring, "embedded", counted)
    model = av.wrap(model_of("qwen2_vl"), processor("qwen2_vl"))
    model.trace(TEXT, video=FILM)
    # Two for each of 3 bits of 5 frames, 2 of 4 rows and 3 of 8 columns; one unchanged, and one changed throughout.
    assert len(runs) == 2 * (3 + 2 + 3) + 2
    model.trace(TEXT, video=av.Video(255 - FRAMES, rate=2))
    assert len(runs) == 18
    slow = regions(model.trace(TEXT, video=av.Video(FRAMES, rate=1)))
    assert [one.start for one in slow[::8]] == [0, 2, 4]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_towers_layer_is_its_module_with_a_block_per_step(family: str) -> None:
    trace = wrapped(family).trace(TEXT, video=FILM)
    modules = [name for name, _ in model_of(family).named_modules() if "visual" in name and name.endswith(".attn")]
    assert trace.layer_count("picture") == len(modules)
    steps = torch.arange(96) // 32
    for layer in trace.layer_numbers("picture"):
        weights = trace.attention(layer, "picture").weights
        assert weights.shape == (4, 96, 96)
        assert not bool(weights[:, steps[:, None] != steps].any())
        assert torch.allclose(weights.sum(dim=-1), torch.ones(4, 96), atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_generated_words_rows_are_those_of_transformers_own_generation(family: str) -> None:
    traces = list(wrapped(family).generate(TEXT, 3, video=FILM))
    model = copy.deepcopy(model_of(family))
    model.set_attn_implementation("eager")
    with torch.no_grad():
        theirs = model.generate(
            **tensors(family), max_new_tokens=3, do_sample=False, pad_token_id=0, output_attentions=True,
            bad_words_ids=[[picture_families.IMAGE], [VIDEO]], output_logits=True, return_dict_in_generate=True,
        )  # fmt: skip
    whole, typed, made = traces[-1], len(traces[0].query_tokens("decoder")), len(traces) - 1
    assert made >= 1
    for trace, logits in zip(traces, theirs.logits, strict=False):
        assert torch.allclose(trace.output[-1], logits[0], atol=1e-5 * max(1, float(logits.abs().max())))
    for at, step in enumerate(theirs.attentions[1 : made + 1]):
        found = [one for one in step if one is not None]
        for layer, weights in zip(whole.layer_numbers("decoder"), found, strict=True):
            row = whole.attention(layer, "decoder").weights[:, typed + at, : typed + at + 1]
            assert torch.allclose(row, weights[0, :, 0], atol=1e-6)
    assert regions(whole) == expected(3)


def test_a_file_keeps_frames_times_and_regions(tmp_path: Path) -> None:
    trace = wrapped("qwen2_vl").trace(TEXT, video=FILM)
    trace.save(tmp_path / "video.safetensors")
    again = av.Trace.load(tmp_path / "video.safetensors")
    assert again.query_tokens("decoder") == trace.query_tokens("decoder")
    assert (again.seen.times, again.provenance) == (trace.seen.times, trace.provenance)
    assert all(torch.equal(*pair) for pair in zip(again.seen.pictures, trace.seen.pictures, strict=True))
    assert trace.provenance.video == "video, 5 frames of 64 × 32 pixels"


def test_notes_say_what_was_changed() -> None:
    model = wrapped("qwen2_vl")
    notes = model.trace("what is this ?", video=FILM).provenance.notes
    assert "The model reads 2 frames at a time, so its last frame was repeated." in notes
    assert "The text has no place for the video, so <video> was put before it." in notes
    even = model.trace(TEXT, video=av.Video(np.repeat(FRAMES[:4], 2, axis=1)[:, :40], rate=2))
    assert any("were read at" in note for note in even.provenance.notes)
    assert not any("repeated" in note for note in even.provenance.notes)


def test_a_chats_messages_take_a_video() -> None:
    model = wrapped("qwen2_vl")
    content = [{"type": "video"}, {"type": "text", "text": "what is this ?"}]
    trace = model.trace([{"role": "user", "content": content}], video=FILM)
    alone = model.trace("what is this ?", video=FILM, chat=True)
    assert trace.query_tokens("decoder").labels == alone.query_tokens("decoder").labels
    assert regions(trace) == expected(3)


def test_a_processors_own_tensors_give_the_same_weights() -> None:
    model: Any = wrapped("qwen2_vl")
    trace: av.Trace = model.trace(TEXT, video=FILM)
    found: av.Trace = model.trace_ids(**tensors("qwen2_vl"))
    assert all(
        torch.equal(found.attention(layer, stream).weights, trace.attention(layer, stream).weights)
        for stream in trace.streams
        for layer in trace.layer_numbers(stream)
    )
    assert not regions(found)
    assert any("pass the thing itself" in note for note in found.provenance.notes)


def test_what_cant_be_read_is_refused_by_name() -> None:
    model: Any = wrapped("qwen2_vl")
    small = av.Video(FRAMES[:2], rate=2)
    with pytest.raises(av.UnusableVideo, match="pass images or video= beside a text, not both"):
        model.trace(TEXT, video=small, picture=av.Picture(FRAMES[0]))
    with pytest.raises(av.UnusableVideo, match=r"video= takes av.Video\(path\); got Picture"):
        model.trace(TEXT, video=av.Picture(FRAMES[0]))
    with pytest.raises(av.UnusableText, match="2 places for a video"):
        model.trace("<video> or <video> ?", video=small)
    with pytest.raises(av.UnusableVideo, match="reads no video alone"):
        model.trace(small)
    with pytest.raises(av.TextTooLong, match="this text with its video has"):
        model.trace(TEXT, video=av.Video(np.tile(FRAMES, (4, 1, 1, 1)), rate=2))


def test_models_that_read_no_video_say_so() -> None:
    small = av.Video(FRAMES[:2], rate=2)
    llava = av.wrap(picture_families.tiny_of("llava"), picture_families.PROCESSORS["llava"]())
    with pytest.raises(av.UnusableVideo, match="reads images, not video; pass some of its frames with pictures="):
        llava.trace("what is this ?", video=small)
    without = av.wrap(model_of("qwen2_vl"), picture_families.PROCESSORS["qwen2_vl"]())
    with pytest.raises(av.UnusableVideo, match="prepares no video; install torchvision"):
        without.trace(TEXT, video=small)
    words: Any = av.load("induction")
    with pytest.raises(av.UnusableVideo, match="reads text, not a text with a video; leave out video="):
        words.trace("a b", video=small)
    with pytest.raises(av.UnusableVideo, match="leave out video="):
        next(words.generate("a b", 1, video=small))


def test_our_frames_are_those_of_transformers_own_video_processor() -> None:
    pytest.importorskip("torchvision")
    import transformers

    size = {"shortest_edge": 32 * 32, "longest_edge": 128 * 128}
    own = transformers.Qwen2VLVideoProcessor(patch_size=8, merge_size=2, temporal_patch_size=2, size=size)
    made = own(videos=[FRAMES], do_sample_frames=False, return_tensors="pt")
    assert torch.allclose(made["pixel_values_videos"], pixels("qwen2_vl", FRAMES), atol=1e-5)
