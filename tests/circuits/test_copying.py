"""Which heads copy in a text: against the logits of all words, by hooks on a model, and in real weights."""

import pytest
import torch

import attention_viz as av
from tests.models.families import build
from tests.shipped import MINILM, SMOLLM2, circuits, shipped

TEXTS = (
    "When Mary and John went to the store, John gave a drink to Mary and then Mary thanked John.",
    "The quick brown fox jumps over the lazy dog because the lazy dog was asleep.",
    "Scientists discovered a new species of frog in the rain forest; the frog changes its colour at night.",
    "The bank of the river was flooded, so the bank on Main Street closed and the river kept rising.",
)
INDUCTION = ((18, 6), (17, 4), (17, 3))


def by_hand(model: av.AttentionModel, text: str, places: tuple[tuple[int, int], ...]) -> list[torch.Tensor]:
    """By how many standard deviations each token's own logit lies above those of all words, but the first one's."""
    hf, ids = model.hf_model, torch.tensor(model.trace(text).query_tokens().ids)
    heard = dict[object, torch.Tensor]()
    projections = [layer.self_attn.v_proj for layer in hf.model.layers]
    handles = [
        one.register_forward_hook(lambda module, _inputs, output: heard.update({module: output[0]}))
        for one in projections
    ]
    found = list[torch.Tensor]()
    with torch.no_grad():
        hf.model(ids[None])
        for handle in handles:
            handle.remove()
        width = hf.config.hidden_size // hf.config.num_attention_heads
        for layer, head in places:
            shared = head * hf.config.num_key_value_heads // hf.config.num_attention_heads
            value = heard[projections[layer]][1:, shared * width : (shared + 1) * width]
            written = value @ hf.model.layers[layer].self_attn.o_proj.weight[:, head * width : (head + 1) * width].T
            logits = (written * hf.model.norm.weight) @ hf.lm_head.weight.T
            own = logits.gather(1, ids[1:, None])[:, 0]
            found.append((own - logits.mean(dim=1)) / logits.std(dim=1, correction=0))
    return found


@pytest.mark.parametrize(
    ("name", "texts", "places"),
    [
        ("induction", ("red cat blue dog red", "moon cheese frog"), ((0, 0), (1, 1), (1, 3))),
        (SMOLLM2, TEXTS, ((18, 6), (0, 2))),
    ],
)
def test_z_is_that_of_the_logits_of_all_words(
    name: str, texts: tuple[str, ...], places: tuple[tuple[int, int], ...]
) -> None:
    model = shipped(name)
    table = av.copying(model, iter(texts))
    found = [by_hand(model, text, places) for text in texts]
    for number, place in enumerate(places):
        expected = torch.cat([of_text[number] for of_text in found])
        assert table.loc[place].tolist() == pytest.approx([float(expected.mean()), len(expected)], abs=2e-3)
    if name == "induction":
        assert table["z"].idxmax() == (1, 1)
        return
    rest = table["z"].drop(list(INDUCTION))
    assert table["z"][list(INDUCTION)].median() > 2 and rest.median() == pytest.approx(0.4, abs=0.1)
    # From weights alone they aren't found: an OV circuit between words and words says next to nothing of it.
    weights = circuits(name)["ov"]
    assert weights.corr(table["z"]) == pytest.approx(0.15, abs=0.02)  # as the pages and docs/why.md say
    assert (weights > weights[list(INDUCTION)].median()).sum() == 144
    assert table["z"].nlargest(2).index.tolist() == [(20, 6), (20, 7)] and (weights[20][[6, 7]] < -0.6).all()


def test_models_whose_heads_do_not_write_to_words_are_refused_by_name() -> None:
    with pytest.raises(av.UnsupportedModel, match=r"copying in all-MiniLM-L6-v2: .* no unembedding"):
        av.copying(shipped(MINILM), TEXTS)
    with pytest.raises(av.UnsupportedModel, match=r"W_O of LagunaForCausalLM is not one matrix"):
        av.copying(av.wrap(build("laguna")), TEXTS)
    toy = shipped("induction")
    with pytest.raises(av.UnusableText, match="texts is a single str; pass a list"):
        av.copying(toy, "red cat")
    with pytest.raises(av.UnusableText, match="no token of the texts counts"):
        av.copying(toy, [])
