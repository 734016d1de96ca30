"""Measure layers without a softmax: recording them, one head's matrix, and a small picture of every head."""

import statistics
import time

import torch

import attention_viz as av
from attention_viz.operation.token_mixer import TokenMixer
from benchmarks.measuring import Spread, on_one_thread, ratios, take_turns
from benchmarks.report import Benchmark, Result, Table, at_most

__all__ = ["BENCHMARK"]

_CAPTURE, _HEAD, _PICTURES = 1.1, {2048: 0.05, 8192: 0.2}, 1.5
_HEADS, _WIDTH = 32, 128
# Rows of which a small picture of a long text's head is made.
_ROWS = 64


def run(quick: bool) -> Result:
    """Measure a hybrid's pass, and a gated delta layer by itself."""
    with on_one_thread(), torch.no_grad():
        captured, remarks = _captured((64,) if quick else (512, 2048), quick)
        heads, more = _heads((128,) if quick else (512, 2048, 8192), quick)
    return Result([captured, heads], [*remarks, *more])


def _captured(lengths: tuple[int, ...], quick: bool) -> tuple[Table, list[str]]:
    hf_model = _hybrid()
    model = av.wrap(hf_model)
    rows, remarks = list[list[str]](), list[str]()
    for length in lengths:
        ids = torch.randint(3, 1000, (1, length), generator=torch.Generator().manual_seed(0))
        ways = {
            "plain": lambda ids=ids: hf_model(input_ids=ids, use_cache=False),
            "captured": lambda ids=ids: model.trace_ids(ids),
            "plain again": lambda ids=ids: hf_model(input_ids=ids, use_cache=False),
        }
        figures = take_turns(ways, lambda: (time.process_time(),), rounds=2 if quick else 9)
        taken = {name: [reading[0] for reading in readings] for name, readings in figures.items()}
        base = [statistics.mean(pair) for pair in zip(taken["plain"], taken["plain again"], strict=True)]
        captured, noise = ratios(taken["captured"], base), ratios(taken["plain again"], taken["plain"])
        plain = f"{1000 * statistics.median(base):.0f} ms"
        rows.append([f"{length}", captured.write("{:.3f}"), noise.write("{:.3f}"), plain])
        remarks.append(at_most(f"a captured pass at {length} tokens", captured.median, _CAPTURE))
    columns = ("tokens", "captured ÷ plain", "plain ÷ plain (the noise)", "plain")
    caption = "A hybrid with random weights: 3 gated delta layers of 16 heads × 64, 1 attention layer, d_model 1,024"
    return Table(columns, rows, caption), remarks


def _heads(lengths: tuple[int, ...], quick: bool) -> tuple[Table, list[str]]:
    from transformers.models.qwen3_5.modeling_qwen3_5 import torch_chunk_gated_delta_rule

    rows, remarks = list[list[str]](), list[str]()
    for length in lengths:
        mixer = _gated_delta(length)
        query, key, value = (term.transpose(1, 2) for term in (mixer.query, mixer.key, mixer.value))
        decay, write = (term[..., 0].transpose(1, 2) for term in (mixer.decay, mixer.write) if term is not None)
        some = list(range(0, length, max(1, length // _ROWS)))
        ways = {
            "kernel": lambda: torch_chunk_gated_delta_rule(query, key, value, g=decay, beta=write),  # noqa: B023 -- run at once
            "head": lambda: mixer.head(3).weights,  # noqa: B023
            "pictures": lambda: [mixer.head(head).rows(some).weights for head in range(_HEADS)],  # noqa: B023
        }
        figures = take_turns(ways, lambda: (time.process_time(),), rounds=1 if quick else 3)
        taken = {name: [reading[0] for reading in readings] for name, readings in figures.items()}
        head, pictures = (ratios(taken[name], taken["kernel"]) for name in ("head", "pictures"))
        seconds = f"{Spread.of(taken['kernel']).median:.2f} s"
        rows.append([f"{length}", head.write("{:.3f}"), pictures.write(), seconds])
        if length in _HEAD:
            remarks.append(at_most(f"one head at {length} tokens", head.median, _HEAD[length], "{:.3f}"))
        if length == 2048:
            remarks.append(at_most(f"small pictures of {_HEADS} heads at 2048 tokens", pictures.median, _PICTURES))
    columns = ("tokens", "one head's matrix ÷ kernel", f"{_ROWS} exact rows of {_HEADS} heads ÷ kernel", "kernel")
    return Table(columns, rows, f"A gated delta layer of {_HEADS} heads × {_WIDTH}"), remarks


def _gated_delta(length: int) -> TokenMixer:
    drawn = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(1, _HEADS, length, _WIDTH, generator=drawn) for _ in range(3))
    query, key = (torch.nn.functional.normalize(one, dim=-1) for one in (query, key))
    decay, write = (torch.rand(1, _HEADS, length, 1, generator=drawn) for _ in range(2))
    return TokenMixer("gated delta", query, key, value, -0.1 * decay, write, scale=_WIDTH**-0.5)


def _hybrid() -> torch.nn.Module:
    from transformers.models.qwen3_5.configuration_qwen3_5 import Qwen3_5TextConfig
    from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5ForCausalLM

    torch.manual_seed(0)
    config = Qwen3_5TextConfig(
        vocab_size=1000,
        hidden_size=1024,
        intermediate_size=2816,
        num_hidden_layers=4,
        num_attention_heads=16,
        num_key_value_heads=4,
        head_dim=64,
        linear_key_head_dim=64,
        linear_value_head_dim=64,
        linear_num_key_heads=16,
        linear_num_value_heads=16,
        layer_types=[*("linear_attention",) * 3, "full_attention"],
        use_cache=False,
    )
    return Qwen3_5ForCausalLM(config).eval()


BENCHMARK = Benchmark(
    title="Layers without a softmax",
    method=(
        "A layer without a softmax mixes tokens by a kernel: transformers' own, as it runs on a CPU without further "
        "packages. The first table compares `model.trace_ids` of a hybrid with its plain pass. Each round runs plain, "
        "captured, plain; each figure is the median of 9 rounds. The second compares our exact matrix of one head, and "
        "exact rows of all heads, with the kernel's pass over all heads. A kernel never has a matrix: it gives outputs "
        "only. Each figure is the median of 3 rounds. We count the CPU time of the process on one thread."
    ),
    run=run,
)
