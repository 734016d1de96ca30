"""Measure a language model and long texts: loading, recording, comparing, and the numbers of all heads."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import attention_viz as av
from attention_viz.sources import CATALOGUE
from benchmarks.measuring import Spread, ratios, take_turns
from benchmarks.passages import PASSAGES, cut
from benchmarks.report import Benchmark, Result, Table, at_most

__all__ = ["BENCHMARK"]

_MODEL = "SmolLM2-135M-Instruct"
# By tokens: how many rounds. One of the longest takes three minutes.
_ROUNDS = {512: 5, 2_048: 3, 8_000: 1}
_TRACE = 1.05
# By tokens: how many plain passes a comparison may take.
_COMPARED = {512: 1.6, 8_000: 2.0}
_LOADED, _TABLE = 3.0, 8.0  # seconds
_TABLE_AT = 2_048


def run(quick: bool) -> Result:
    """Measure it, on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        loading, loaded = _loading(1 if quick else 5)
        lengths, remarks = _lengths({24: 1, 48: 1} if quick else _ROUNDS)
    finally:
        torch.set_num_threads(threads)
    return Result([loading, lengths], [at_most("loading", loaded, _LOADED, "{:.2f} s"), *remarks])


def _loading(rounds: int) -> tuple[Table, float]:
    from transformers.models.auto.modeling_auto import AutoModelForCausalLM
    from transformers.models.auto.tokenization_auto import AutoTokenizer

    folder = CATALOGUE[_MODEL].path
    assert isinstance(folder, Path), f"{_MODEL} is not on this machine"

    def plain() -> object:
        given: dict[str, Any] = {"local_files_only": True}
        return AutoModelForCausalLM.from_pretrained(folder, **given), AutoTokenizer.from_pretrained(folder, **given)

    ways: dict[str, Callable[[], object]] = {"transformers": plain, "ours": lambda: av.load(_MODEL)}
    figures = take_turns(ways, lambda: (time.process_time(),), rounds=rounds)
    spent = {name: [reading[0] for reading in readings] for name, readings in figures.items()}
    ours, others = Spread.of(spent["ours"]), Spread.of(spent["transformers"])
    row = [
        ratios(spent["ours"], spent["transformers"]).write(),
        f"{ours.write('{:.2f}')} s",
        f"{others.write('{:.2f}')} s",
    ]
    return Table(("ours ÷ transformers'", "ours", "transformers'"), [row], "Loading, from the cache"), ours.median


def _lengths(rounds: dict[int, int]) -> tuple[Table, list[str]]:
    model = av.load(_MODEL)
    assert isinstance(model, av.AttentionModel) and model.tokenizer is not None
    longest, passages = max(rounds), " ".join(PASSAGES)
    words = passages
    while len(model.tokenizer(words, verbose=False)["input_ids"]) < longest:
        words += " " + passages
    rows, remarks = list[list[str]](), list[str]()
    for tokens, times in rounds.items():
        row, said = _of_one_length(model, cut(model.tokenizer, words, tokens), tokens, times)
        rows.append(row)
        remarks += said
    columns = ("tokens", "trace ÷ plain", "comparing ÷ plain", "metrics of all heads ÷ plain", "metrics", "plain")
    return Table(columns, rows, "Texts, from ids to logits"), remarks


def _of_one_length(model: "av.AttentionModel", text: str, tokens: int, times: int) -> tuple[list[str], list[str]]:
    hf_model: Any = model.hf_model
    tokenizer: Any = model.tokenizer
    inputs = tokenizer(text, return_tensors="pt")
    spent: dict[str, list[float]] = {"plain": [], "trace": [], "comparing": [], "metrics": []}

    def timed(name: str, way: Callable[[], object]) -> None:
        began = time.process_time()
        way()
        spent[name].append(time.process_time() - began)

    def plain() -> object:
        with torch.no_grad():
            return hf_model(**inputs, use_cache=False)

    # Each round compares the trace that it has just made: a trace is compared once.
    for _ in range(times):
        timed("plain", plain)
        kept: list[av.Trace] = []
        timed("trace", lambda kept=kept: kept.append(model.trace(text)))
        timed("comparing", lambda kept=kept: kept[0].fidelity)
        timed("metrics", lambda kept=kept: av.head_table(kept[0]))
    over = {name: ratios(figures, spent["plain"]) for name, figures in spent.items()}
    metrics, base = Spread.of(spent["metrics"]), Spread.of(spent["plain"])
    shown = [over[name].write() for name in ("trace", "comparing", "metrics")]
    said = [at_most(f"a trace of {tokens:,} tokens", over["trace"].median, _TRACE)] if tokens in _ROUNDS else []
    if tokens in _COMPARED:
        said.append(at_most(f"comparing at {tokens:,} tokens", over["comparing"].median, _COMPARED[tokens]))
    if tokens == _TABLE_AT:
        said.append(at_most(f"the metrics of all heads at {tokens:,} tokens", metrics.median, _TABLE, "{:.1f} s"))
    return [f"{tokens:,}", *shown, f"{metrics.median:.2f} s", f"{base.median:.2f} s"], said


BENCHMARK = Benchmark(
    title="A language model and long texts",
    method=(
        f"{_MODEL}, 30 layers × 9 heads, reads passages of prose one after the other. Loading: `av.load`, which also "
        "checks the files and the model's wiring, is measured against loading transformers' model and tokenizer from "
        "the same folder. Texts: *plain* is the unchanged model, with torch's fused attention; *trace* is "
        "`model.trace`. *Comparing* is the extra time of `trace.fidelity`: the model's own attention on the whole "
        "text for the output, and eager attention for the weights, on the beginning of a long text. *Metrics* is "
        "`av.head_table` of all 270 heads, from a sample of rows in long texts. We count processor time on one thread "
        "and take the ways in turns. Each figure is the median of five rounds for loading and at 512 tokens, of three "
        "at 2,048 and of one at 8,000, with the smallest and the largest in brackets; ratios are taken within a round."
    ),
    run=run,
)
