"""The recall models that ship, seen through the library: which layers do what, and what an erased pair weighs."""

import functools
import json
from pathlib import Path
from typing import Any

import pytest
import torch

import attention_viz as av
from recipes import pairs, recall, recall_mamba
from tests.shipped import shipped

FOLDER = Path(av.__file__).parent / "sources" / "trained"
TWICE = "anna red , ben blue , emma green , ben orange . ben"
COUNT = 40
# The gated delta head that answers.
WORKING = 0


@functools.cache
def figures(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / name / "figures.json").read_text("utf-8"))


def predicted(name: str, text: str, *edits: Any) -> str:
    """The likeliest next word."""
    model = shipped(name)
    trace = model.trace(text, edits=list(edits))
    assert trace.fidelity.ok and model.tokenizer is not None
    return model.tokenizer.convert_ids_to_tokens(int(trace.output[-1].argmax()))


def right(name: str, kind: str, *edits: Any) -> float:
    """How many of the first questions of a kind are answered correctly, in traces with edits."""
    texts = pairs.held_out(4 * COUNT, first=name == "recall")
    asked = [(text.words, one) for text in texts for one in text.questions if one.kind == kind][:COUNT]
    assert len(asked) == COUNT
    said = [predicted(name, " ".join(words[1 : one.at + 1]), *edits) for words, one in asked]
    return sum(word == words[one.answer] for word, (words, one) in zip(said, asked, strict=True)) / COUNT


def test_the_hybrid_answers_with_the_last_and_with_the_first_colour() -> None:
    said = [predicted("recall", TWICE + question) for question in (" ?", " first", " ? orange . anna ?")]
    assert said == ["orange", "blue", "red"]
    told = figures("recall")
    assert min(told["once"], told["last"], told["first"]) > 0.95


def test_the_gated_delta_layer_answers_alone_and_only_softmax_finds_what_it_erased() -> None:
    told = figures("recall")
    delta, softmax = (
        [av.Ablate(layer, head, stream=stream) for head in range(2)]
        for layer, stream in enumerate(("mixer", "decoder"))
    )
    assert right("recall", "last") > 0.95
    assert right("recall", "last", *delta) < 0.4
    assert right("recall", "last", *softmax) > 0.95 and told["without_softmax_last"] > 0.95
    assert right("recall", "first", *softmax) < 0.7 and told["without_softmax_first"] < 0.7


def test_the_gated_delta_heads_erase_a_name_s_earlier_colour() -> None:
    told = figures("recall")
    for head in range(2):
        assert told[f"erased_{head}"] < 0.25 * told[f"last_{head}"]
        assert told[f"keeping_erased_{head}"] > 0.8 * told[f"keeping_last_{head}"] > 0
    assert told["keeping_last"] < 0.8
    row = shipped("recall").trace(TWICE + " ?").weights(0, WORKING, stream="mixer")[-1].abs()
    assert int(row.argmax()) == 12 and float(row[12]) > 4 * float(row[6])


@pytest.mark.parametrize(("name", "kernel"), [("recall", recall.DELTA), ("recall-mamba", recall_mamba.SSD)])
def test_a_trace_has_the_matrices_that_the_card_s_numbers_come_from(name: str, kernel: recall.WholeKernel) -> None:
    model, trace = shipped(name), shipped(name).trace(TWICE + " ?")
    with torch.no_grad(), kernel.used() as heard:
        pairs.predictions(model.hf_model, torch.tensor([trace.query_tokens("mixer").ids]))
    for layer, matrix in enumerate(heard):
        for head in range(matrix.shape[1]):
            assert torch.allclose(trace.weights(layer, head, stream="mixer"), matrix[0, head], atol=1e-5)


def test_mamba_keeps_both_colours_and_answers_with_the_larger() -> None:
    told = figures("recall-mamba")
    assert min(told["once"], told["last"]) > 0.95
    assert right("recall-mamba", "last") > 0.9
    silent = {layer: [av.Ablate(layer, head, stream="mixer") for head in range(2)] for layer in range(2)}
    assert right("recall-mamba", "once", *silent[0]) < 0.3 and told["without_0_all_once"] < 0.3
    assert right("recall-mamba", "last", *silent[1]) > 0.9 and told["without_1_all_last"] > 0.9
    for head in range(2):
        assert 0.4 * told[f"last_0_{head}"] < told[f"earlier_0_{head}"] < 0.8 * told[f"last_0_{head}"]
