"""What wrote a number of a model that hears, or of one that sees: the parts are those of the model's own modules."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import attention_viz as av
from attention_viz.inputs.media.shipped import SAMPLES
from tests.shipped import shipped


@pytest.fixture(scope="module")
def words() -> av.Trace:
    return shipped("whisper-tiny.en").trace(av.Sound(SAMPLES["window"].path))


def test_what_whisper_says_is_the_sum_of_what_its_decoder_and_its_heads_wrote(words: av.Trace) -> None:
    position = 3
    token = int(words.output[position].argmax())
    found = av.decompose(shipped("whisper-tiny.en"), words, av.Logit(token, position))
    assert found.total == pytest.approx(float(words.output[position, token]), rel=1e-4)
    assert found.table.contribution.sum() == pytest.approx(found.total, abs=1e-3)
    heads = found.table[found.table.kind == "head"]
    assert {*heads.stream} == {"decoder", "cross"}
    assert len(heads) == 2 * 4 * 6


@pytest.mark.parametrize(
    ("stream", "layer", "query", "key"), [("encoder", 3, 30, 20), ("decoder", 2, 5, 2), ("cross", 2, 4, 60)]
)
def test_a_score_of_each_stream_is_the_sum_of_each_side(
    words: av.Trace, stream: str, layer: int, query: int, key: int
) -> None:
    found = av.decompose(shipped("whisper-tiny.en"), words, av.Score(layer, 2, query, key, stream))
    by_hand = float(words.attention(layer, stream).scaled[2, query, key])
    assert found.total == pytest.approx(by_hand, rel=1e-4, abs=1e-4)
    for _, side in found.table.groupby("side"):
        assert side.contribution.sum() == pytest.approx(by_hand, rel=1e-3, abs=1e-3)


def test_what_is_heard_is_an_embedding_apart_from_its_place(words: av.Trace) -> None:
    model, (head, query, key) = shipped("whisper-tiny.en"), (1, 30, 20)
    encoder: Any = model.hf_model.get_encoder()
    assert model.reader is not None
    features = model.reader.read(av.Sound(SAMPLES["window"].path)).tensors["input_features"]
    with torch.no_grad():
        heard = functional.gelu(encoder.conv2(functional.gelu(encoder.conv1(features))))[0].T
        placed, norm = encoder.embed_positions.weight, encoder.layers[0].self_attn_layer_norm
        spread = float(((heard + placed)[query].var(unbiased=False) + norm.eps).sqrt())
        attention = words.attention(0, "encoder")
        size = attention.query.shape[-1]

        def asked(part: Tensor) -> float:
            turned = norm.weight * (part - part.mean()) / spread
            # Whisper scales its queries, and its scores no more.
            asks = encoder.layers[0].self_attn.scaling * encoder.layers[0].self_attn.q_proj.weight @ turned
            return float(asks[head * size : (head + 1) * size] @ attention.key[head, key] * attention.scale)

        expected = {"embedding": asked(heard[query]), "position": asked(placed[query])}
    table = av.decompose(model, words, av.Score(0, head, query, key, "encoder")).table
    rows = table[(table.side == "query") & (table.kind != "bias")].set_index("kind").contribution
    assert {*rows.index} == {*expected}
    for kind, number in expected.items():
        assert rows[kind] == pytest.approx(number, rel=1e-3, abs=1e-4), kind


def test_what_is_seen_is_an_embedding_apart_from_its_place() -> None:
    model = shipped("dinov2-small")
    cat = model.trace(av.Picture(SAMPLES["chelsea"].path))
    table = av.decompose(model, cat, av.Score(0, 1, 217, 220)).table
    assert {*table.kind} == {"embedding", "position", "bias"}
    for _, side in table.groupby("side"):
        assert side.contribution.sum() == pytest.approx(float(cat.attention(0).scaled[1, 217, 220]), rel=1e-3)
