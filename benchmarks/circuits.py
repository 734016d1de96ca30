"""Measure circuits from parameters alone: through d_k × d_k, against through d_model × d_model."""

import time
from dataclasses import replace

import torch
from torch import Tensor

import attention_viz as av
from attention_viz.circuits.weights import ov_fractions, proven
from benchmarks.measuring import Spread, on_one_thread, ratios, take_turns
from benchmarks.report import Benchmark, Result, Table

__all__ = ["BENCHMARK"]

_MODEL = "SmolLM2-135M-Instruct"
_MARK = 100
# Of how many layers the whole matrices are made: those of all take half a minute.
_LAYERS = (4, 14, 24)


def run(quick: bool) -> Result:
    """Measure it, on one thread."""
    with on_one_thread():
        model = av.load(_MODEL)
        assert isinstance(model, av.AttentionModel)
        known = proven(model)
        layers = _LAYERS[:1] if quick else _LAYERS
        heads = sum(one.heads for one in known.layers)
        tried = sum(known.layers[layer].heads for layer in layers)
        between = known.words.from_last_to_first

        def whole() -> Tensor:
            parts = [known.layers[layer] for layer in layers]
            matrices = [one.each("value") @ one.each("output") @ between for one in parts]
            values = torch.cat([torch.linalg.eigvals(one.double()) for one in matrices])
            return values.real.sum(dim=-1) / values.abs().sum(dim=-1)

        ways = {
            "d_k": lambda: ov_fractions(known),
            "both": lambda: ov_fractions(replace(known, words=replace(known.words))),
            "d_model": whole,
        }
        figures = take_turns(ways, lambda: (time.process_time(),), rounds=1 if quick else 7)
        ours = ov_fractions(known).unflatten(0, (len(known.layers), -1))[list(layers)].flatten()
        off = float((ours - whole()).abs().max())
    spent = {name: [max(1e-9, reading[0]) for reading in readings] for name, readings in figures.items()}
    spent["d_model"] = [seconds * heads / tried for seconds in spent["d_model"]]
    faster, with_words = ratios(spent["d_model"], spent["d_k"]), ratios(spent["d_model"], spent["both"])
    columns = ("way", "seconds", "times faster")
    rows = [
        [f"through d_model × d_model, of {tried} heads, times {heads / tried:.0f}", _seconds(spent["d_model"]), ""],
        ["through d_k × d_k", _seconds(spent["d_k"]), faster.write("{:.0f}")],
        ["through d_k × d_k, and W_U W_E once", _seconds(spent["both"]), with_words.write("{:.0f}")],
    ]
    reached = "reached" if faster.median >= _MARK else "missed"
    remarks = [
        f"The target, at least {_MARK} times faster with W_U W_E given to both, is {reached}: {faster.median:.0f}.",
        f"The two ways differ by {off:.0e} at most.",
    ]
    return Result([Table(columns, rows)], remarks)


def _seconds(figures: list[float]) -> str:
    return Spread.of(figures).write()


BENCHMARK = Benchmark(
    title="Circuits from parameters alone",
    method=(
        f"`av.circuits` computes the eigenvalue fractions of the OV circuits of all heads of {_MODEL}, from token to "
        "token. It is measured against the eigenvalues of each head's d_model × d_model matrix, both in float64. Both "
        "ways need W_U W_E, the product of the unembedding and the embedding. It is computed once and given to both; "
        "only the last row counts it. We count processor time on one thread and take the ways in turns. Each figure "
        "is the median of seven rounds, with the smallest and the largest in brackets; ratios are taken within a "
        "round."
    ),
    run=run,
)
