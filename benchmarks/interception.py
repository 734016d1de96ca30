"""Measure the cost of recording models with their own attention code: a captured pass against a plain one."""

import resource
import statistics
from typing import Any

import torch
import transformers

import attention_viz as av
from benchmarks.measuring import Spread, ratios, take_turns
from benchmarks.report import Benchmark, Result, Table

__all__ = ["BENCHMARK", "MARK"]

# At most so many times a plain pass at so many tokens.
MARK, MARK_AT = 2.0, 512
_LENGTHS = (64, 512)
_WORDS = 2000
_SIZES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "GPT-J": (
        "GPTJForCausalLM",
        "GPTJConfig",
        {"n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 600, "rotary_dim": 64, "use_cache": False},
    ),
    "MPNet": ("MPNetModel", "MPNetConfig", {"max_position_embeddings": 600}),
    "DeBERTa-v2 with relative positions": (
        "DebertaV2Model",
        "DebertaV2Config",
        {
            "num_hidden_layers": 12,
            "hidden_size": 768,
            "num_attention_heads": 12,
            "intermediate_size": 3072,
            "max_position_embeddings": 600,
            "relative_attention": True,
            "pos_att_type": ["c2p", "p2c"],
            "position_buckets": 256,
            "type_vocab_size": 0,
        },
    ),
}


def run(quick: bool) -> Result:
    """Measure each model at each length."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # several spin while they wait for each other, which counts as work
    rows: list[list[str]] = []
    missed: list[str] = []
    try:
        for name in _SIZES:
            for tokens in (16,) if quick else _LENGTHS:
                captured, noise, plain = _measure(name, tokens, rounds=2 if quick else 9)
                rows.append(
                    [name, f"{tokens}", captured.write(), noise.write(), f"{1000 * plain:.0f} ms"],
                )
                if tokens >= MARK_AT and captured.median > MARK:
                    missed.append(f"{captured.median:.2f} with {name}")
    finally:
        torch.set_num_threads(threads)
    if quick:
        return Result([Table(_COLUMNS, rows)], [])
    mark = f"The target, at most {MARK:g} at {MARK_AT} tokens, is"
    return Result([Table(_COLUMNS, rows)], [f"{mark} missed: {', '.join(missed)}." if missed else f"{mark} reached."])


def _measure(name: str, tokens: int, *, rounds: int) -> tuple[Spread, Spread, float]:
    """Return the ratios captured to plain and plain to plain, and the plain time."""
    model_class, config_class, sizes = _SIZES[name]
    torch.manual_seed(0)
    config = getattr(transformers, config_class)(vocab_size=_WORDS, **sizes)
    hf_model = getattr(transformers, model_class)(config).eval()
    model = av.wrap(hf_model)
    ids = torch.randint(3, _WORDS, (1, tokens))
    if model.trace_ids(ids).provenance.route != "interception":
        raise RuntimeError(f"{name} calls transformers' attention interface; measure another model here")

    def plain() -> object:
        with torch.no_grad():
            return hf_model(input_ids=ids, attention_mask=torch.ones_like(ids))

    ways = {"plain": plain, "captured": lambda: model.trace_ids(ids), "plain again": plain}
    figures = take_turns(ways, _processor_time, rounds=rounds)
    seconds = {way: [sum(reading) for reading in readings] for way, readings in figures.items()}
    base = [statistics.mean(pair) for pair in zip(seconds["plain"], seconds["plain again"], strict=True)]
    noise = ratios(seconds["plain again"], seconds["plain"])
    return ratios(seconds["captured"], base), noise, statistics.median(base)


def _processor_time() -> tuple[float, float]:
    """Return this process's seconds of computing, and the kernel's for it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime, used.ru_stime


_COLUMNS = ("model, 12 layers × 768", "tokens", "captured ÷ plain", "plain ÷ plain (the noise)", "plain")

BENCHMARK = Benchmark(
    title="Attention in a model's own code",
    method=(
        "Some models don't call transformers' attention interface. `model.trace_ids` follows their code while it "
        "runs, proves that the recorded operations give the same numbers, and computes attention with our function. "
        "It is measured against the same model's plain pass. The models have 12 layers, 768 numbers per token, and "
        "random weights in float32. We count the CPU time of the whole process on one thread. Each round runs plain, "
        "captured, plain; its ratio is taken to the middle of its two plain turns. Each figure is the median of 9 "
        "rounds, with the smallest and the largest in brackets."
    ),
    run=run,
)
