"""Thirty threads on four models at once: each trace is the one taken alone."""

import time
from concurrent.futures import ThreadPoolExecutor

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

import attention_viz as av
from attention_viz.inputs.text import read, read_target
from attention_viz.models.model import AttentionModel
from tests.models.families import build, ids, run
from tests.shipped import shipped

TEXTS = {
    "all-MiniLM-L6-v2": ("The bank of the river was flooded", "The cat sat because it was tired."),
    "coreference": ("the animal did not cross the street because it was too tired", "the queen painted her house"),
    "induction": ("moon cheese frog ring moon cheese", "frog ring frog"),
    "translation": ("the boy finds the key and he sells it", "the cat sees the dog"),
}
THREADS = 30


class Turning(PreTrainedTokenizerFast):
    """A tokenizer that turns itself to another language while it reads a target, as those of many languages do."""

    def __init__(self) -> None:
        words = WordLevel({"src": 0, "tgt": 1, "a": 2, "b": 3, "?": 4}, unk_token="?")
        tokenizer = Tokenizer(words)
        tokenizer.pre_tokenizer = Whitespace()
        super().__init__(tokenizer_object=tokenizer, unk_token="?")
        self._switch_to_input_mode()

    def _turn(self, language: str) -> None:
        place = {"src": 0, "tgt": 1}[language]
        self.backend_tokenizer.post_processor = TemplateProcessing(f"{language} $A", None, [(language, place)])

    def _switch_to_input_mode(self) -> None:
        self._turn("src")

    def _switch_to_target_mode(self) -> None:
        self._turn("tgt")
        time.sleep(0.001)  # long enough for another thread to come between


def same(one: av.Trace, other: av.Trace) -> bool:
    if one.streams != other.streams or not torch.allclose(one.output, other.output, rtol=1e-4, atol=1e-5):
        return False
    return all(
        one.query_tokens(stream) == other.query_tokens(stream)
        and torch.allclose(a.attention.weights, b.attention.weights, rtol=0, atol=1e-6)
        for stream in one.streams
        for a, b in zip(one.layers[stream], other.layers[stream], strict=True)
    )


def test_thirty_threads_on_four_models_each_get_their_own_trace() -> None:
    models = {name: shipped(name) for name in TEXTS}
    wishes = [(name, texts[number]) for number in (0, 1) for name, texts in TEXTS.items()]
    alone = {wish: models[wish[0]].trace(wish[1]) for wish in wishes}
    before = [
        [module.training for module in model.hf_model.modules()]
        for model in models.values()
        if isinstance(model, AttentionModel)
    ]

    def take(number: int) -> list[bool]:
        # Each begins somewhere else, so that every model meets every other.
        order = wishes[number % len(wishes) :] + wishes[: number % len(wishes)]
        return [same(models[name].trace(text), alone[name, text]) for name, text in order[: len(models)]]

    with ThreadPoolExecutor(THREADS) as threads:
        results = list(threads.map(take, range(THREADS)))
    assert len(results) == THREADS
    assert all(all(one) for one in results)
    after = [
        [module.training for module in model.hf_model.modules()]
        for model in models.values()
        if isinstance(model, AttentionModel)
    ]
    assert after == before
    assert all(one.trace(TEXTS[name][0]).fidelity.ok for name, one in models.items())


def test_a_text_and_a_target_are_read_at_the_same_time_each_in_its_language() -> None:
    tokenizer = Turning()

    def source(_: int) -> bool:
        return read("mine", tokenizer, "a b").tokens.labels[0] == "src"

    def target(_: int) -> bool:
        return read_target("mine", tokenizer, "a b").labels[0] == "tgt"

    with ThreadPoolExecutor(4) as threads:
        found = [threads.submit(source if number % 2 else target, number) for number in range(200)]
    assert all(one.result() for one in found)


def test_somebody_elses_eager_pass_keeps_its_weights_while_a_trace_is_made() -> None:
    plain = build("bert")
    plain.set_attn_implementation("eager")
    expected = run(plain, input_ids=ids(7), output_attentions=True)["attentions"]
    model = av.wrap(plain)
    with model.runner.switch.ours():
        found = run(plain, input_ids=ids(7), output_attentions=True)["attentions"]
    assert len(found) == len(expected)
    assert all(torch.allclose(ours, theirs, atol=1e-5) for ours, theirs in zip(found, expected, strict=True))
