"""Families of pictures and sound are recorded exactly: every weight and the output are those of eager attention."""

from pathlib import Path

import pytest
import torch

import attention_viz as av
from attention_viz.trace.kind import SLOT_STREAMS
from tests.models.seen_families import FAMILIES, tiny

NO_GRID = {"videomae", "vivit"}
# The rows of docs/families.md whose attention modules return no weights; t5gemma2 has another row among texts.
SILENT = frozenset(
    """
    cohere_compass colqwen2 cosmos3_edge cosmos3_edge_vision cosmos3_omni dots3_note dots3_note_vision_encoder
    ernie4_5_vl_moe exaone4_5 glm46v glm4v glm4v_moe glm5_next glm_image_vision glm_ocr glmga granite_speech5_ctc
    granite_speech5_encoder hunyuan_vl hunyuan_vl_vision hyperclovax_vision_v2 inkling2_vision kimi_k25 kimi_k25_vision
    lfm3_vl lfm3_vl_vision minicpm_ocr minicpm_ocr_vision minicpmv4_6 minicpmv4_7 minicpmv4_7_vision minimax_m3_vl
    minimax_m3_vl_vision muse_glimmer muse_glimmer_vision muse_spark muse_spark_vision paddleocr_vl paddleocr_vl_vision
    qwen2_5_omni_thinker qwen2_5_vl qwen2_vl qwen3_5 qwen3_5_moe qwen3_asr qwen3_asr_encoder qwen3_omni_moe_thinker
    qwen3_vl qwen3_vl_moe qwen4_exp t5gemma2
    """.split()
)
TABLE = (Path(av.__file__).parents[1] / "docs" / "families.md").read_text("utf-8").split("# Pictures and sound")[1]


def test_fifty_rows_whose_modules_return_no_weights_are_exact_and_none_is_wrong() -> None:
    parts = {part.splitlines()[0]: part for part in TABLE.split("\n## ")[1:]}
    exact, refused = (
        {line.split("|")[1].strip() for line in parts[f"{name}, of images and audio"].splitlines() if line[:2] == "| "}
        for name in ("Exact", "Refused")
    )
    assert len(SILENT) == 51
    assert len(SILENT & exact) >= 50 and SILENT <= exact | refused
    # The others that were exact before those are so still.
    assert len(exact - SILENT - {"family", "---"}) >= 146
    assert ", 0 wrong, " in TABLE


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_equal_to_its_eager_attention(name: str) -> None:
    model, inputs = tiny(name)
    trace = av.wrap(model, inputs=inputs).trace(inputs)
    assert trace.fidelity.ok
    assert max(trace.fidelity.output_error, trace.fidelity.weight_error) <= 1e-5
    weights = eager_weights(model, inputs)
    # Pooling heads give out no weights; tests/recording/layout/test_slot_families.py has theirs.
    streams = [stream for stream in trace.streams if stream not in SLOT_STREAMS]
    own = [layer.attention.weights for stream in streams for layer in trace.layers[stream]]
    assert len(weights) == len(own)
    # The streams are in one order, the model's own lists in another: each of theirs is one of ours.
    assert all(any(a.shape == b.shape and torch.allclose(a, b, atol=1e-5) for b in own) for a in weights)


def eager_weights(model: "torch.nn.Module", inputs: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    model.set_attn_implementation("eager")  # type: ignore[operator]
    with torch.no_grad():
        told = model(**inputs, output_attentions=True)
    names = ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")
    return [one[0] for name in names for one in (getattr(told, name, None) or ())]


@pytest.mark.parametrize("name", [name for name, (_, _, make) in FAMILIES.items() if "pixel_values" in make()])
def test_patches_have_places_where_those_can_be_proved(name: str) -> None:
    model, inputs = tiny(name)
    trace = av.wrap(model, inputs=inputs).trace(inputs)
    tokens = trace.query_tokens(trace.streams[0])
    assert tokens.ids is None
    if name in NO_GRID:
        assert not tokens.placed
        return
    rows, columns = (side // 8 for side in inputs["pixel_values"].shape[-2:])
    places = [place for place in tokens.place if place is not None]
    assert places == [(row, column) for row in range(rows) for column in range(columns)]
    assert [special for special in tokens.special] == [place is None for place in tokens.place]


def test_registers_and_class_token_are_named() -> None:
    model, inputs = tiny("dinov2_with_registers")
    labels = av.wrap(model, inputs=inputs).trace(inputs).query_tokens().labels
    assert labels[:6] == ("[CLS]", "[REG1]", "[REG2]", "[REG3]", "[REG4]", "0,0")
