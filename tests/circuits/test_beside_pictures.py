"""Numbers of a text beside an image whose tower attends in chunks."""

import numpy as np
import pytest

import attention_viz as av
from tests.models.picture_families import PROCESSORS, tiny_of

TEXT = "what is on this picture ?"


@pytest.fixture(scope="module")
def opened() -> tuple[av.AttentionModel, av.Trace]:
    model = av.wrap(tiny_of("qwen2_5_vl"), PROCESSORS["qwen2_5_vl"]())
    pixels = np.random.default_rng(0).integers(0, 256, (96, 136, 3), dtype=np.uint8)
    return model, model.trace(TEXT, picture=av.Picture(pixels))


def test_a_next_word_is_the_sum_of_parts_of_the_text_stream(opened: tuple[av.AttentionModel, av.Trace]) -> None:
    model, trace = opened
    # An image wider than a window is read in chunks, which attend to nothing outside.
    assert (trace.weights(0, 0, "picture") == 0).any()
    row = trace.output[-1]
    found = av.decompose(model, trace, av.Logit(40, -1, 41))
    assert found.total == pytest.approx(float(row[40] - row[41]), abs=1e-5)
    assert found.table["contribution"].sum() == pytest.approx(found.total, abs=1e-5)
    heads = found.table[found.table["kind"] == "head"]
    assert set(heads["stream"]) == {"decoder"} and heads["contribution"].abs().sum() > 1e-3


def test_a_score_of_the_text_is_opened_and_one_in_chunks_is_refused_by_name(
    opened: tuple[av.AttentionModel, av.Trace],
) -> None:
    model, trace = opened
    score = trace.attention(1, "decoder").scaled[2, -1, 3]
    last = len(trace.query_tokens("decoder")) - 1
    assert av.decompose(model, trace, av.Score(1, 2, last, 3, "decoder")).total == pytest.approx(float(score), abs=1e-4)
    with pytest.raises(av.UnsupportedModel, match="attends in chunks"):
        av.decompose(model, trace, av.Score(1, 0, 1, 0, "picture"))
