"""Measure the cost of patching every head from one text into another, in batches, against single runs."""

import time
from collections.abc import Callable

import attention_viz as av
from attention_viz.circuits.patching.patching import Patching
from benchmarks.measuring import Spread, on_one_thread, ratios, take_turns
from benchmarks.report import Benchmark, Result, Table

__all__ = ["BENCHMARK"]

_MODEL = "SmolLM2-135M-Instruct"
_TEXT = "When Mary and John went to the store, John gave a drink to"
_OTHER = "When Mary and John went to the store, Mary gave a drink to"
_MARK = 10.0
# So many heads, spread over all layers, are run one after the other; all would take minutes.
_SAMPLE = 18


def run(quick: bool) -> Result:
    """Measure it, on one thread."""
    with on_one_thread():
        return _measured(quick)


def _measured(quick: bool) -> Result:
    model = av.load(_MODEL)
    assert isinstance(model, av.AttentionModel)
    text, other, asked = model.trace(_TEXT), model.trace(_OTHER), av.Logit("Mary", against="John")
    made = Patching.begin(model, text, other, asked)
    heads = made.puts[:6] if quick else made.puts
    sample = heads[:: max(1, len(heads) // _SAMPLE)]

    def together() -> None:
        for _ in made.batches(heads):
            pass

    def apart() -> None:
        for put in sample:
            for _ in made.batches([put]):
                pass

    ways: dict[str, Callable[[], object]] = {
        "estimate": lambda: Patching.begin(model, text, other, asked),
        "batches": together,
        "apart": apart,
    }
    figures = take_turns(ways, lambda: (time.process_time(),), rounds=1 if quick else 3)
    spent = {name: [max(1e-9, one[0]) for one in readings] for name, readings in figures.items()}
    alone = [one * len(heads) / len(sample) for one in spent["apart"]]
    ratio, guessed = ratios(alone, spent["batches"]), ratios(alone, spent["estimate"])
    rows = [
        ["one run after the other", Spread.of(alone).write("{:.1f} s"), "1"],
        ["in batches", Spread.of(spent["batches"]).write("{:.1f} s"), ratio.write("{:.1f}")],
        ["estimated by a gradient", Spread.of(spent["estimate"]).write("{:.2f} s"), guessed.write("{:.0f}")],
    ]
    reached = "reached" if ratio.median >= _MARK else "missed"
    remark = f"The target for batches, at least {_MARK:.0f} times as fast, is {reached}: {ratio.median:.1f}."
    return Result([Table((f"{len(heads)} heads", "seconds", "times as fast"), rows)], [remark])


BENCHMARK = Benchmark(
    title="Activation patching",
    method=(
        f"Each head of {_MODEL} is patched from one text of 14 tokens into another, and the change in one word's logit "
        "less another word's is measured. There are three ways: one run per head with the logits of all positions; "
        "`av.patch`, which runs heads in batches; and an estimate by one gradient. The runs of the two texts and the "
        f"copy of the model are made anew each time. One by one, only {_SAMPLE} of the heads are run, spread over the "
        "layers, and their time is multiplied up. The texts share their first nine tokens, which the batches don't "
        "run again. We count processor time on one thread and take the ways in turns. Each figure is the median of "
        "three rounds, with the smallest and the largest in brackets; ratios are taken within a round."
    ),
    run=run,
)
