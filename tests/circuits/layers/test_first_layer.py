"""A first layer's scores, split by word and place, against the model's own weights."""

from typing import Any, cast

import pytest
import torch
from torch import Tensor

import attention_viz as av
from attention_viz.circuits.layers.first_layer import exchanged, split_scores
from tests.shipped import SMOLLM2, shipped

TEXT = "The bank of the river was flooded"
BANK, RIVER = 2, 5


def _by_hand(model: Any, ids: Tensor, at: int, head: int, name: str, *, held: bool = True) -> dict[str, Tensor]:
    """Return a MiniLM query's or key's parts by position; `held` takes the norm's scale from the whole input."""
    bert, n = model.hf_model, len(ids)
    inside = bert.embeddings
    parts = {
        "word": inside.word_embeddings.weight[ids],
        "place": inside.position_embeddings.weight[:n],
        "bias": inside.token_type_embeddings.weight[0].expand(n, -1),
    }
    whole = sum(parts.values(), torch.zeros(1)).double()
    projection = getattr(bert.encoder.layer[0].attention.self, name)
    rows = slice(head * 32, (head + 1) * 32)
    matrix, gain = projection.weight[rows].double(), inside.LayerNorm.weight.double()
    found: dict[str, Tensor] = {}
    for part, numbers in parts.items():
        numbers = numbers.double()
        spread = (whole if held else numbers).var(dim=-1, unbiased=False, keepdim=True) + inside.LayerNorm.eps
        found[part] = ((numbers - numbers.mean(-1, keepdim=True)) / spread.sqrt() * gain) @ matrix.T
    found["bias"] = found["bias"] + inside.LayerNorm.bias.double() @ matrix.T + projection.bias[rows].double()
    return found


@torch.no_grad()
def test_each_part_of_every_key_is_what_the_weights_say_and_they_add_up_to_the_score() -> None:
    model = shipped("all-MiniLM-L6-v2")
    trace = model.trace(TEXT)
    found = split_scores(model, trace, av.Score(0, 4, BANK, RIVER))
    ids = torch.tensor(trace.query_tokens().numbers)
    assert found.parts == ("word", "place", "bias") and found.keys == tuple(range(len(ids)))
    for held in (True, False):
        query, key = (_by_hand(model, ids, BANK, 4, name, held=held) for name in ("query", "key"))
        mine = torch.stack([query[part][BANK] for part in found.parts])
        theirs = torch.stack([key[part] for part in found.parts])
        expected = torch.einsum("qd,pkd->qpk", mine, theirs) / 32**0.5
        # A norm computed for each part alone gives other numbers, which miss the score.
        assert torch.allclose(found.pairs, expected, atol=1e-4) == held
        call = trace.attention(0)
        score = call.query[4, BANK].double() @ call.key[4].double().T / 32**0.5
        assert torch.allclose(expected.sum(dim=(0, 1)), score, atol=1e-4) == held
    by_key = found.pairs.sum(dim=0)[:, RIVER].tolist()
    assert by_key == pytest.approx([3.885, 2.046, -0.882], abs=1e-3)
    # What the decomposition calls a position is the place and the sentence embedding.
    table = av.decompose(model, trace, av.Score(0, 4, BANK, RIVER)).table
    rows = table[(table.side == "key") & (table.kind == "position")]
    assert rows.contribution.sum() == pytest.approx(by_key[1] + float(found.shared[RIVER]), abs=1e-4)


def test_two_sentences_have_a_part_of_their_own() -> None:
    model = shipped("all-MiniLM-L6-v2")
    found = split_scores(model, model.trace(TEXT, "it was raining"), av.Score(0, 4, BANK, RIVER))
    assert found.parts == ("word", "place", "sentence", "bias")
    assert float(found.shared.abs().max()) == 0
    alone = split_scores(model, model.trace(TEXT), av.Score(0, 4, BANK, RIVER))
    both = found.pairs.sum(dim=0)[:, RIVER]
    assert float(both[2] + both[3]) == pytest.approx(float(alone.pairs.sum(dim=0)[2, RIVER]), abs=1e-4)


@torch.no_grad()
def test_rotated_positions_are_compared_with_the_score_at_one_place() -> None:
    model = shipped(SMOLLM2)
    trace = model.trace("When Mary and John went to the store")
    of = av.Score(0, 3, 7, 3)
    found = split_scores(model, trace, of)
    assert (found.parts, found.places, found.keys) == (("word",), "turned", tuple(range(8)))
    assert found.together is not None
    layer = cast("Any", model.hf_model).model.layers[0]
    embedded = cast("Any", model.hf_model).model.embed_tokens.weight[torch.tensor(trace.query_tokens().numbers)]
    normed = layer.input_layernorm(embedded)
    query = layer.self_attn.q_proj(normed)[7].unflatten(-1, (-1, 64))[3]
    keys = layer.self_attn.k_proj(normed).unflatten(-1, (-1, 64))[:, 1]  # three heads share a key
    assert torch.allclose(found.together.float(), keys @ query / 8, atol=1e-4)
    call = trace.attention(0)
    assert torch.allclose(found.scores.float(), call.key[1] @ call.query[3, 7] / 8, atol=1e-4)
    assert not torch.allclose(found.together, found.scores, atol=0.1)
    # At its own place nothing turns.
    assert float(found.together[7]) == pytest.approx(float(found.scores[7]), abs=1e-4)


def test_biases_for_the_distance_stay_beside_the_score() -> None:
    from transformers import BloomConfig, BloomForCausalLM

    torch.manual_seed(0)
    config = BloomConfig(vocab_size=40, hidden_size=16, n_layer=2, n_head=2)
    model = av.wrap(BloomForCausalLM(config).eval())
    trace = model.trace_ids(torch.arange(6)[None] + 3)
    found = split_scores(model, trace, av.Score(0, 1, 5, 2))
    assert found.places == "added" and found.beside is not None and "place" not in found.parts
    weights = (found.scores + found.beside).softmax(dim=0)
    assert torch.allclose(weights.float(), trace.weights(0, 1)[5], atol=1e-5)
    assert not torch.allclose(found.scores.softmax(dim=0).float(), trace.weights(0, 1)[5], atol=1e-3)


@pytest.mark.parametrize(
    ("name", "text", "other", "of"),
    [
        ("all-MiniLM-L6-v2", TEXT, "The bank of the {} was flooded", av.Score(0, 4, BANK, RIVER)),
        (SMOLLM2, "When Mary and John went", "When Mary and {} went", av.Score(0, 3, 4, 3)),
    ],
)
def test_another_word_at_the_key_has_the_score_and_weight_of_the_changed_text(
    name: str, text: str, other: str, of: av.Score
) -> None:
    model = shipped(name)
    trace, words = model.trace(text), ("money", "lake")
    space = "" if name != SMOLLM2 else " "
    tokens = [cast("Any", model.tokenizer).encode(space + word, add_special_tokens=False)[0] for word in words]
    for word, (score, weight) in zip(words, exchanged(model, trace, of, tokens), strict=True):
        changed = model.trace(other.format(word))
        call = changed.attention(0)
        key = call.key[of.head // (call.query.shape[0] // call.key.shape[0]), of.key]
        assert score == pytest.approx(float(call.query[of.head, of.query] @ key) * call.scale, abs=1e-4)
        assert weight == pytest.approx(float(changed.weights(0, of.head)[of.query, of.key]), abs=1e-5)
    assert len(exchanged(model, trace, of, tokens * 5)) == 10


def test_what_has_no_split_is_refused_by_name() -> None:
    model = shipped("all-MiniLM-L6-v2")
    trace = model.trace(TEXT)
    with pytest.raises(av.UnsupportedModel, match="heads of earlier layers wrote"):
        split_scores(model, trace, av.Score(1, 4, BANK, RIVER))
