"""What findings say that a head writes for the next word: the model's own numbers, by hooks on its own modules."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import attention_viz as av
from attention_viz.circuits.next_word import LONGEST, next_word_effects, rival_of
from attention_viz.models.model import AttentionModel
from attention_viz.trace.trace import Trace
from tests.shipped import SMOLLM2, shipped

MARY = "When Mary and John went to the store, John gave a drink to"
TEXTS = {
    SMOLLM2: [
        MARY,
        "The capital of France is Paris, and the capital of Italy is",
        "The old keeper of the lighthouse walked along the shore every morning, and when he found a shell he put it in "
        "his",
    ],
    "lists": ["copy c a f :", "reverse c a f :", "reverse c a f : f a"],
    "induction": ["moon cheese frog ring moon"],
}
CASES = [(name, text) for name, texts in TEXTS.items() for text in texts]


def written_by_hand(model: AttentionModel, text: str, layer: int, head: int, token: int, rival: int) -> float:
    """A head's output at the last position, through W_O, the final norm with its scale held, and the unembedding."""
    hf: Any = model.hf_model
    heard: dict[str, Tensor] = {}

    def keep(name: str) -> Any:
        def hear(_module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            heard[name] = inputs[0].detach()[0, -1].double()

        return hear

    llama = hasattr(hf.model if hasattr(hf, "model") else hf, "layers")
    body = hf.model if llama else hf.transformer
    block = body.layers[layer].self_attn.o_proj if llama else body.h[layer].attn.c_proj
    norm: Any = body.norm if llama else body.ln_f
    hooks = [block.register_forward_pre_hook(keep("heads")), norm.register_forward_pre_hook(keep("stream"))]
    with torch.no_grad():
        hf(input_ids=torch.tensor([model.trace(text).query_tokens().ids]))
    for hook in hooks:
        hook.remove()
    width = len(heard["heads"]) // model.trace(text).head_count(layer)
    own = slice(head * width, (head + 1) * width)
    matrix = block.weight.double().T if llama else block.weight.double()
    added = heard["heads"][own] @ matrix[own]
    stream, gain = heard["stream"], norm.weight.detach().double()
    if llama:
        normed = added / (stream.square().mean() + norm.variance_epsilon).sqrt()
    else:
        normed = (added - added.mean()) / (stream.var(unbiased=False) + norm.eps).sqrt()
    table = hf.get_output_embeddings().weight.detach().double()
    return float(((normed * gain) @ (table[token] - table[rival])).detach())


def id_of(trace: Trace, word: str) -> int:
    tokens = trace.query_tokens()
    return next(number for number, text in zip(tokens.numbers, tokens.texts, strict=True) if text == word)


@pytest.mark.parametrize(("name", "text"), CASES)
def test_an_effect_is_the_heads_output_through_the_models_own_matrices(name: str, text: str) -> None:
    model = shipped(name)
    trace = model.trace(text)
    last = len(trace.query_tokens()) - 1
    known = next_word_effects(trace, last)
    assert known is not None
    token = int(trace.output[-1].argmax())
    names = model.labels(range(trace.output_shape[1]))
    likely = trace.output[-1].argsort(descending=True).tolist()
    rival = next(at for at in likely if names[at].strip("Ġ ") == known.rival)
    strongest = sorted(known.heads, key=lambda place: -abs(known.heads[place]))[:3]
    for stream, layer, head in strongest:
        effect = known.heads[stream, layer, head]
        assert abs(effect) > 0.01
        by_hand = written_by_hand(model, text, layer, head, token, rival)
        assert effect == pytest.approx(by_hand, abs=1e-3)
        assert effect != pytest.approx(-by_hand, abs=1e-3)
        sources = known.sources((stream, layer, head))
        assert sum(sources.values()) == pytest.approx(effect, abs=1e-3)


@pytest.mark.parametrize(("name", "text"), CASES)
def test_findings_about_the_next_word_say_that_effect_strongest_first(name: str, text: str) -> None:
    trace = shipped(name).trace(text)
    known = next_word_effects(trace, len(trace.query_tokens()) - 1)
    found = [one for one in av.findings(trace, 20) if one.kind == "next word"]
    assert known is not None
    for one in found:
        assert one.effect is not None
        assert one.effect == known.heads[one.stream, one.layer, one.head]
        assert (one.word, one.rival) == (known.word, known.rival)
        written = "for" if one.effect > 0 else "against"
        assert f"({one.strength:.2f}) and writes {written} " in one.text
        assert one.text.endswith(f"{one.effect:+.2f}".replace("-", "−"))
        assert one.parts[-1][1] == "effect"
    for sign in (1, -1):
        sizes = [abs(one.effect) for one in found if one.effect is not None and one.effect * sign > 0]
        assert sizes == sorted(sizes, reverse=True)


def test_the_head_that_says_mary_comes_first_and_the_one_that_looks_at_her_speaks_against(
    smollm2: AttentionModel,
) -> None:
    trace = smollm2.trace(MARY)
    first, *others = av.findings(trace)
    assert (first.layer, first.head) == (23, 3)
    assert first.text == "“to₂” looks at “John₂” (0.74) and writes for “Mary”: +2.86"
    (against,) = (one for one in others if one.effect is not None)
    assert (against.layer, against.head, against.word, against.rival) == (24, 4, "Mary", "John")
    assert against.text == "“to₂” looks at “Mary” (0.81) and writes against it: −1.07"
    assert [role for _, role in against.parts] == ["query", "", "key", "", "number", "", "effect"]
    # The number of the Why page, which decomposes the same difference.
    rows = av.decompose(smollm2, trace, av.Logit("Mary", against="John")).table
    row = rows[(rows["layer"] == 24) & (rows["head"] == 4)]["contribution"].sum()
    assert against.effect == pytest.approx(row, abs=1e-4)


def test_a_rival_is_a_word_of_the_text_or_else_the_likeliest_of_another_name(smollm2: AttentionModel) -> None:
    trace = smollm2.trace(MARY)
    mary, john = id_of(trace, "Mary"), id_of(trace, "John")
    assert rival_of(trace, 13, mary, smollm2.labels) == john
    assert rival_of(trace, 13, john, smollm2.labels) == mary
    # Of a text with no likely word, the likeliest other one, not the same word in another spelling.
    alone = smollm2.trace("It is")
    best, second, third = alone.output[-1].topk(3).indices.tolist()
    names = {best: "one", second: "one", third: "two"}
    assert rival_of(alone, 1, best, lambda ids: [names.get(one, "more") for one in ids]) == third


def test_nothing_is_said_without_a_model_words_or_room(smollm2: AttentionModel, tmp_path: Any) -> None:
    trace = smollm2.trace(MARY)
    trace.save(tmp_path / "mary.safetensors")
    from_file = av.Trace.load(tmp_path / "mary.safetensors")
    assert next_word_effects(from_file, 13) is None
    found = [one for one in av.findings(from_file) if one.kind == "next word"]
    assert found and all((one.effect, one.word, one.rival) == (None, "", "") for one in found)
    assert "looking isn't writing" in found[0].text
    encoder = shipped("all-MiniLM-L6-v2").trace(MARY)
    assert all(one.effect is None for one in av.findings(encoder))
    assert next_word_effects(smollm2.trace("and so " * LONGEST), 5) is None
    # An edited run is told by what its heads wrote there: an ablated one wrote nothing.
    silent = av.findings(smollm2.trace(MARY, edits=[av.Ablate(23, 3)]), 20)
    assert all((one.layer, one.head) != (23, 3) for one in silent if one.kind == "next word")
