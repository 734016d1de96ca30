"""Measure the cost of generating with one trace per token, against transformers' own greedy generation."""

import time
from typing import Any

import torch

import attention_viz as av
from benchmarks.measuring import Spread, on_one_thread, ratios, take_turns
from benchmarks.passages import PASSAGES, cut
from benchmarks.report import Benchmark, Result, Table

__all__ = ["BENCHMARK", "MARK"]

MARK = 1.5
_TYPED, _MORE = 100, 40


def run(quick: bool) -> Result:
    """Measure both, on one thread."""
    with on_one_thread():
        ratio, row = _measure(8 if quick else _MORE, 1 if quick else 5)
    reached = "reached" if ratio.median <= MARK else "missed"
    table = Table(("tokens and new tokens", "ours ÷ transformers' greedy", "with evicted keys ÷ greedy", "ours"), [row])
    return Result([table], [f"The target, at most {MARK}, is {reached}: {ratio.median:.2f}."])


def _measure(more: int, rounds: int) -> tuple[Spread, list[str]]:
    model = av.load("SmolLM2-135M-Instruct")
    assert isinstance(model, av.AttentionModel) and model.tokenizer is not None
    text = cut(model.tokenizer, PASSAGES[0], _TYPED)
    ids = model.tokenizer(text, return_tensors="pt")["input_ids"]
    # Both go on by just so many tokens, wherever the model would end.
    hf_model: Any = model.hf_model
    settings = hf_model.generation_config
    end, settings.eos_token_id = settings.eos_token_id, None

    def greedy() -> object:
        mask = torch.ones_like(ids)
        return hf_model.generate(
            ids, attention_mask=mask, max_new_tokens=more, do_sample=False, use_cache=True, pad_token_id=0
        )

    def ours(evict: av.Evict | None = None) -> None:
        made = sum(1 for _ in model.generate(text, more, evict=evict))
        assert made == more + 1

    try:
        ways = {"greedy": greedy, "ours": ours, "evicting": lambda: ours(av.Evict())}
        figures = take_turns(ways, lambda: (time.process_time(),), rounds=rounds)
    finally:
        settings.eos_token_id = end
    spent = {name: [reading[0] for reading in readings] for name, readings in figures.items()}
    ratio, evicting = (ratios(spent[name], spent["greedy"]) for name in ("ours", "evicting"))
    seconds = Spread.of(spent["ours"]).median
    return ratio, [f"{_TYPED} and {more}", ratio.write(), evicting.write(), f"{seconds:.2f} s"]


BENCHMARK = Benchmark(
    title="Generating text",
    method=(
        "`model.generate`, which yields one trace per token, is measured against transformers' `generate` with its KV "
        "cache. Both always take the likeliest token, run SmolLM2-135M-Instruct, and are timed from text to the last "
        "token; the comparison behind `fidelity` is left out. We count processor time on one thread and take the ways "
        "in turns. Each figure is the median of five rounds, with the smallest and the largest in brackets; ratios "
        "are taken within a round."
    ),
    run=run,
)
