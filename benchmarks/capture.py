"""Measure the cost of recording: a captured pass against a plain one, and eager attention with all weights."""

import copy
import gc
import resource
import statistics
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import torch

import attention_viz as av
from attention_viz.trace.ahead import unsaid
from benchmarks.measuring import Spread, on_one_thread, ratios, take_turns
from benchmarks.passages import PASSAGES, cut
from benchmarks.report import Benchmark, Result, Table

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["BENCHMARK", "MARK"]

MARK = 1.05
MARK_FROM = 64
_ENCODER = (16, 64, 128, 256, 512)
_DECODER = (64, 256, 1024)
# Eager attention would hold gigabytes of weights of these, so they are measured without it, in few rounds.
_LONG = ((4096, 3), (32_768, 1))
_ROUNDS = 9

Ways = dict[str, Callable[[], object]]


def run(quick: bool) -> Result:
    """Measure both models at every length."""
    with on_one_thread():
        tables = [_measure("all-MiniLM-L6-v2", _encoder(_ENCODER[:2] if quick else _ENCODER), quick)]
        tables += [_measure(_DECODER_NAME, _decoder((32,) if quick else _DECODER), quick)]
        tables += [_measure_long(((96, 2),) if quick else _LONG)]
    return Result([table for table, _ in tables], [remark for _, remarks in tables for remark in remarks])


def _measure(model: str, cases: Mapping[int, Ways], quick: bool) -> tuple[Table, list[str]]:
    """Measure every length; the ways take turns within each round."""
    gc.collect()
    gc.freeze()  # a collection of the models' own objects would fall on one way or the other by chance
    rows: list[list[str]] = []
    captured: dict[int, Spread] = {}
    for tokens, ways in cases.items():
        repeats = 1 if quick else max(1, 1024 // tokens)
        figures = take_turns(ways, _processor_time, rounds=2 if quick else _ROUNDS, repeats=repeats)
        whole = _with_base({name: [sum(reading) for reading in readings] for name, readings in figures.items()})
        own = _with_base({name: [user for user, _ in readings] for name, readings in figures.items()})
        captured[tokens] = ratios(whole["captured"], whole["base"])
        without_kernel, eager = ratios(own["captured"], own["base"]), ratios(whole["eager"], whole["base"])
        shown = (captured[tokens], without_kernel, eager, ratios(whole["plain again"], whole["plain"]))
        milliseconds = 1000 * Spread.of(whole["base"]).median
        rows.append([f"{tokens}", *(spread.write("{:.3f}") for spread in shown), f"{milliseconds:.1f} ms"])
    gc.unfreeze()
    return Table(_COLUMNS, rows, model), _remarks(model, captured)


def _measure_long(cases: tuple[tuple[int, int], ...]) -> tuple[Table, list[str]]:
    """Measure long texts, without eager attention."""
    rows: list[list[str]] = []
    captured: dict[int, Spread] = {}
    for tokens, rounds in cases:
        (ways,) = _decoder((tokens,), layers=2, width=64).values()
        some = {name: way for name, way in ways.items() if name != "eager"}
        with unsaid():
            figures = take_turns(some, _processor_time, rounds=rounds)
        whole = _with_base({name: [sum(reading) for reading in readings] for name, readings in figures.items()})
        captured[tokens] = ratios(whole["captured"], whole["base"])
        shown = (captured[tokens], ratios(whole["plain again"], whole["plain"]))
        seconds = Spread.of(whole["base"]).median
        rows.append([f"{tokens:,}", *(spread.write("{:.3f}") for spread in shown), f"{seconds:.2f} s"])
    name = "a Llama with random weights, 2 layers × 2 heads, d_model 64, 1 key and value head"
    columns = ("tokens", "captured ÷ plain", "plain ÷ plain (the noise)", "plain")
    return Table(columns, rows, name), _remarks(name, captured)


def _with_base(figures: dict[str, list[float]]) -> dict[str, list[float]]:
    """Compare with the middle of the two plain turns of each round, since the turn before affects each."""
    base = [statistics.mean(pair) for pair in zip(figures["plain"], figures["plain again"], strict=True)]
    return {**figures, "base": base}


def _processor_time() -> tuple[float, float]:
    """Return this process's seconds of computing, and the kernel's for it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime, used.ru_stime


_COLUMNS = (
    "tokens",
    "captured ÷ plain",
    "the same without the kernel's part",
    "eager with all weights ÷ plain",
    "plain ÷ plain (the noise)",
    "plain",
)


def _remarks(model: str, captured: Mapping[int, Spread]) -> list[str]:
    counted = {tokens: spread for tokens, spread in captured.items() if tokens >= MARK_FROM}
    missed = [f"{spread.median:.3f} at {tokens} tokens" for tokens, spread in counted.items() if spread.median > MARK]
    if not counted:
        return []
    mark = f"{model}: the target, at most {MARK} from {MARK_FROM} tokens up, is"
    return [f"{mark} missed with {', '.join(missed)}." if missed else f"{mark} reached."]


def _encoder(lengths: tuple[int, ...]) -> dict[int, Ways]:
    """Measure the shipped model, from text to last hidden state; every way tokenizes for itself."""
    model = av.load("all-MiniLM-L6-v2")
    assert isinstance(model, av.AttentionModel) and model.tokenizer is not None
    hf_model, tokenizer, eager = model.hf_model, model.tokenizer, _eager(model.hf_model)

    def ways(text: str) -> Ways:
        def plain() -> object:
            with torch.no_grad():
                return hf_model(**tokenizer(text, return_tensors="pt"))

        def all_weights() -> object:
            with torch.no_grad():
                return eager(**tokenizer(text, return_tensors="pt"), output_attentions=True)

        return {"plain": plain, "captured": lambda: model.trace(text), "plain again": plain, "eager": all_weights}

    return {length: ways(cut(tokenizer, PASSAGES[0], length)) for length in lengths}


_DECODER_NAME = "a Llama with random weights, 4 layers × 8 heads, d_model 256, 4 key and value heads"


def _decoder(lengths: tuple[int, ...], layers: int = 4, width: int = 256) -> dict[int, Ways]:
    """Measure a causal decoder with shared key and value heads, from ids to logits."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=2000,
        hidden_size=width,
        intermediate_size=688 * width // 256,
        num_hidden_layers=layers,
        num_attention_heads=width // 32,
        num_key_value_heads=width // 64,
        max_position_embeddings=max(2048, *lengths),
        use_cache=False,
    )
    hf_model = LlamaForCausalLM(config).eval()
    model, eager = av.wrap(hf_model), _eager(hf_model)

    def ways(ids: torch.Tensor) -> Ways:
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

        def plain() -> object:
            with torch.no_grad():
                return hf_model(**inputs)

        def all_weights() -> object:
            with torch.no_grad():
                return eager(**inputs, output_attentions=True)

        return {"plain": plain, "captured": lambda: model.trace_ids(ids), "plain again": plain, "eager": all_weights}

    return {length: ways(torch.randint(3, 2000, (1, length))) for length in lengths}


def _eager(hf_model: "PreTrainedModel") -> "PreTrainedModel":
    """Load the same model to return its weights without us."""
    eager = copy.deepcopy(hf_model)
    eager.set_attn_implementation("eager")
    return eager


BENCHMARK = Benchmark(
    title="A captured pass against a plain one",
    method=(
        "`model.trace` runs our attention and records it; the comparison behind `fidelity` is left out. It is "
        "measured against two others. The *plain* pass is the unchanged model, with torch's fused attention (`sdpa`). "
        "The other is a copy with `eager` attention and `output_attentions=True`, the usual way to get the weights. "
        "We count the CPU time of the whole process on one thread, from text to result, tokenizing included; the "
        "decoder starts from ids. Each round runs plain, captured, plain, eager. Ratios are taken to the middle of "
        "its two plain turns, and the second plain turn over the first shows the noise. Each figure is the median of "
        f"{_ROUNDS} rounds, with the smallest and the largest in brackets. Of long texts, there are 3 rounds of 4,096 "
        "tokens and one of 32,768, without eager attention, which would hold all their weights. The kernel's part is "
        "the time in which the system provides memory. A trace needs more of it, because the next layer can't reuse "
        "memory that the trace keeps. As in the app, the process keeps freed memory."
    ),
    run=run,
)
