"""Families whose frames have other placeholders: places and times, weights, generated words, and what is refused."""

import copy
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

import attention_viz as av
from attention_viz.trace.tokens import Region
from tests.models import picture_families
from tests.models.video_families import FRAMES, MARKS, VIDEO, model_of, processor, wrapped
from tests.recording.chunks.test_chunks import Softmaxes

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
# Frames read together, and the rows and columns of each one's placeholders.
STEPS = {"glm4v": (2, 2, 4), "llava_onevision": (1, 2, 2), "llava_next_video": (1, 2, 2)}
FAMILIES = list(STEPS)
SPOKEN = "what is this ?"


def frames(family: str) -> Any:
    return FRAMES[:4] if family == "glm4v" else FRAMES[:3, :, :32]


def text(family: str) -> str:
    place = f"{MARKS[0]}<video>{MARKS[1]}" if family == "glm4v" else "<video>"
    return f"what is {place} this ?"


def traced(family: str) -> av.Trace:
    return wrapped(family).trace(text(family), video=av.Video(frames(family), rate=2))


def tensors(family: str, shown: Any) -> dict[str, Tensor]:
    times = {"fps": 2.0, "total_num_frames": len(shown), "duration": len(shown) / 2,
             "frames_indices": list(range(len(shown)))}  # fmt: skip
    made = processor(family)(
        text=text(family), videos=[shown], video_metadata=[times], do_sample_frames=False, return_tensors="pt"
    )
    return {name: one for name, one in made.items() if isinstance(one, Tensor)}


def eager(family: str) -> Any:
    model = copy.deepcopy(model_of(family))
    model.set_attn_implementation("eager")
    return model


@pytest.mark.parametrize("family", FAMILIES)
def test_each_placeholder_has_its_rectangle_and_its_time(family: str) -> None:
    trace, (together, rows, columns) = traced(family), STEPS[family]
    tokens, count = trace.query_tokens("decoder"), len(frames(family))
    assert [one for one in tokens.regions if one is not None] == [
        Region(
            first, row / rows, column / columns, (row + 1) / rows, (column + 1) / columns,
            start=first / 2, end=(first + together - 1) / 2,
        )
        for first in range(0, count, together) for row in range(rows) for column in range(columns)
    ]  # fmt: skip
    assert trace.seen.times == tuple(at / 2 for at in range(count))
    # The line's end after a video is a placeholder that no pixel moves.
    none = [label for label, one in zip(tokens.labels, tokens.regions, strict=True) if one is None]
    assert none.count("<video>") == (family == "llava_onevision")


@pytest.mark.parametrize("family", FAMILIES)
def test_another_frame_moves_the_placeholders_of_its_time(family: str) -> None:
    """The same asked of transformers alone: whose input changes if the last frame does?"""
    model, shown, found = model_of(family), frames(family), list[Tensor]()
    other = shown.copy()
    other[-1] = 255 - other[-1]

    def hear(_module: object, _given: object, named: dict[str, Any]) -> None:
        found.append(named["inputs_embeds"][0])

    handle = model.get_decoder().register_forward_pre_hook(hear, with_kwargs=True)
    for one in (shown, other):
        with torch.no_grad():
            model(**tensors(family, one))
    handle.remove()
    moved = (found[0] != found[1]).any(dim=1).nonzero()[:, 0].tolist()
    last, regions = (len(shown) - 1) / 2, traced(family).query_tokens("decoder").regions
    assert moved == [at for at, one in enumerate(regions) if one and one.end == last]
    assert len(moved) == STEPS[family][1] * STEPS[family][2]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_weight_is_eagers(family: str) -> None:
    trace = traced(family)
    assert trace.fidelity.ok
    with torch.no_grad(), Softmaxes() as softmaxes:
        output = eager(family)(**tensors(family, frames(family))).logits[0]
    assert torch.allclose(trace.output, output, atol=1e-5 * float(output.abs().max()))
    towers = trace.layers["picture"]
    blocks = len(frames(family)) // STEPS[family][0]
    theirs = [one for one in softmaxes.found if one.shape[-1] != trace.attention(0, "decoder").shape[-1]]
    # Its chunks come one after the other, or as rows of one batch.
    each = [row for one in theirs for row in one]
    assert len(each) == len(towers) * blocks
    for number, layer in enumerate(towers):
        own = [each[number * blocks + at] for at in range(blocks)]
        whole = torch.stack([torch.block_diag(*(one[head] for one in own)) for head in range(own[0].shape[0])])
        assert float((layer.attention.weights - whole).abs().max()) <= 1e-5
        longer = replace(layer.attention, query=layer.attention.query * 1.001)
        assert float((longer.weights - whole).abs().max()) > 1e-5
        swapped = layer.attention.weights[[1, 0, *range(2, len(whole))]]
        assert float((swapped - whole).abs().max()) > 0.05
    words = [one for one in softmaxes.found if one.shape[-1] == trace.attention(0, "decoder").shape[-1]]
    for layer, one in zip(trace.layers["decoder"], words, strict=True):
        assert float((layer.attention.weights - one[0]).abs().max()) <= 1e-5


@pytest.mark.parametrize("family", FAMILIES)
def test_generated_words_rows_are_those_of_transformers_own_generation(family: str) -> None:
    traces = list(wrapped(family).generate(text(family), 2, video=av.Video(frames(family), rate=2)))
    with torch.no_grad():
        theirs = eager(family).generate(
            **tensors(family, frames(family)), max_new_tokens=2, do_sample=False, pad_token_id=0,
            bad_words_ids=[[picture_families.IMAGE], [VIDEO]], output_attentions=True, output_logits=True,
            return_dict_in_generate=True,
        )  # fmt: skip
    typed = len(traces[0].query_tokens("decoder"))
    assert len(traces) >= 2
    for trace, logits in zip(traces, theirs.logits, strict=False):
        assert torch.allclose(trace.output[-1], logits[0], atol=1e-5 * max(1, float(logits.abs().max())))
    for at, step in enumerate(theirs.attentions[1 : len(traces)]):
        for layer, weights in enumerate(step):
            row = traces[-1].attention(layer, "decoder").weights[:, typed + at, : typed + at + 1]
            assert torch.allclose(row, weights[0, :, 0], atol=1e-6)


def test_glm_has_its_marks_put_around_the_videos_place() -> None:
    film = av.Video(frames("glm4v"), rate=2)
    bare, marked = (wrapped("glm4v").trace(one, video=film) for one in ("what is <video> this ?", text("glm4v")))
    assert torch.equal(bare.output, marked.output)
    assert any("were put around the video’s place" in note for note in bare.provenance.notes)
    assert not marked.provenance.notes
    without = wrapped("glm4v").trace(SPOKEN, video=film)
    assert without.query_tokens("decoder").labels[:2] == tuple(MARKS[::2])


def test_a_tower_of_its_own_for_videos_is_refused_by_name() -> None:
    model = wrapped("video_llava")
    with pytest.raises(av.UnusableVideo, match=r"reads videos with a tower of its own.*pictures=\[…\]"):
        model.trace("what is <video> this ?", video=av.Video(frames("video_llava"), rate=2))
    assert model.trace("what is <image> this ?", picture=av.Picture(picture_families.PIXELS)).fidelity.ok
