"""Tries every text family that the installed transformers knows, and writes what came out into docs/families.md.

Each is built tiny, with random weights; wrapped; and run unpadded, padded on the left and padded on the right. A family
is exact where every weight of every head and the output are those of eager attention to 1e-5 in all three. Of one that
is exact an output and scores are opened into what wrote them, too.
"""

import argparse
import contextlib
import logging
import multiprocessing
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import torch
from torch import Tensor
from transformers.utils import logging as transformers_logging

import attention_viz as av
from attention_viz.errors import AttentionVizError
from attention_viz.models.model import AttentionModel
from scripts.closure import CLOSED, Closure, closure
from scripts.tiny import VOCABULARY, Family, families, tiny

__all__ = ["TABLE", "Result", "try_family"]

_ROOT = Path(__file__).parents[1]
TABLE = _ROOT / "docs" / "families.md"
_TOKENS, _TARGET, _PADDED = 11, 7, 3
_SECONDS = 90
# Families that one process tries before the next: what they leave in memory goes with it.
_EACH = 60
# From large to small: the first at which attention is neither uniform nor on one token only, so that a mistake shows.
_SCALES = (8.0, 4.0, 2.0, 1.0)
_PEAKED = 0.97
# How much more than its even share the heaviest key has to get.
_UNIFORM = 1.4
_LARGEST_SCORE = 30


@dataclass(frozen=True)
class Result:
    """What came out for one family.

    Attributes:
        family: which.
        outcome: "exact", "refused", "not built" or "wrong".
        streams: the kinds of attention it has.
        without: which of its layers have none.
        reason: why it is not exact, or what is to be said of it.
        closure: of an exact one, what came of opening its numbers.
        route: of an exact one, how our attention came into it; see `Provenance.route`.
        seconds: of the processor, that trying it took.
    """

    family: Family
    outcome: str
    streams: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    reason: str = ""
    closure: Closure | None = None
    route: str = ""
    seconds: float = 0.0


def try_family(family: Family) -> Result:
    """Build one family, wrap it, compare it with eager, unpadded and padded, and open its numbers."""
    begun = time.process_time()
    try:
        with _at_most(_SECONDS):
            return replace(_tried(family), seconds=time.process_time() - begun)
    except _TooLong:
        return Result(family, "not built", reason=f"took more than {_SECONDS} seconds")


def _tried(family: Family) -> Result:
    wrapped, reason, tells = None, "", False
    for scale in _SCALES:
        try:
            model = tiny(family, scale=scale)
        except (Exception, SystemExit) as error:
            return Result(family, "not built", reason=_first_line(error))
        try:
            wrapped = av.wrap(model)
            tells = _tells(_trace(wrapped, None))
        except AttentionVizError as error:
            reason = reason or str(error.__cause__ or error)  # without what can be done instead, the same for all
            if "can't be run on text alone" in reason:  # at no scale
                break
            continue
        if tells:
            break
    if wrapped is None:
        return Result(family, "refused", reason=reason)
    try:
        errors = [_error(wrapped, mask) for mask in _masks()]
    except AttentionVizError as error:
        return Result(family, "refused", reason=str(error))
    outcome = "exact" if max(errors) <= 1e-5 else "wrong"
    opened = closure(wrapped, _trace(wrapped, None)) if outcome == "exact" else None
    reason = "" if tells else "attention stayed uniform or on one token, so less is proven"
    reason = reason if outcome == "exact" else f"off by {max(errors):.1e}"
    route = _trace(wrapped, None).provenance.route
    return Result(family, outcome, wrapped.streams, wrapped.layers_without_attention, reason, opened, route)


def _tells(trace: av.Trace) -> bool:
    """Whether a mistake would show: attention neither uniform nor all on one token, no score drowned in rounding."""
    last = trace.attention(trace.layer_count(trace.streams[-1]) - 1, trace.streams[-1])
    heaviest = float(last.head(0).weights[-3:].amax(dim=-1).mean())
    calls = [layer.attention for stream in trace.streams for layer in trace.layers[stream]]
    largest = max(float(call.scaled.abs().max()) for call in calls)
    return _UNIFORM / last.shape[-1] < heaviest < _PEAKED and largest < _LARGEST_SCORE


def _error(wrapped: AttentionModel, mask: Tensor | None) -> float:
    fidelity = _trace(wrapped, mask).fidelity
    return max(fidelity.output_error, fidelity.weight_error)


def _trace(wrapped: AttentionModel, mask: Tensor | None) -> av.Trace:
    target = _ids(_TARGET, 31) if wrapped.answers else None
    return wrapped.trace_ids(_ids(_TOKENS, 5), mask, decoder_input_ids=target)


def _ids(count: int, start: int) -> Tensor:
    """One row of ids, different from each other and none of them special."""
    return ((start + 11 * torch.arange(count)) % (VOCABULARY - 7) + 5)[None]


def _masks() -> tuple[Tensor | None, ...]:
    left, right = torch.ones(1, _TOKENS, dtype=torch.long), torch.ones(1, _TOKENS, dtype=torch.long)
    left[0, :_PADDED], right[0, -_PADDED:] = 0, 0
    return None, left, right


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines)[:160]}"


class _TooLong(BaseException):
    """No `Exception`, which a model's code or ours would take for a fault of the model."""


@contextlib.contextmanager
def _at_most(seconds: int) -> Generator[None]:
    def stop(*_: object) -> None:
        raise _TooLong

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def _quiet() -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    transformers_logging.set_verbosity_error()
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _text(results: Sequence[Result]) -> str:
    counts = Counter(result.outcome for result in results)
    opened = [result.closure for result in results if result.closure is not None and result.closure.opened]
    others = "" if len(opened) == counts["exact"] else "; the others say why not"
    lines = [
        "# Which families can be shown",
        "",
        f"Made by `make families` with transformers {version('transformers')} and torch {version('torch')}. Each text "
        "class of each family was built tiny, with random weights scaled up so that its attention is neither uniform "
        "nor on one token; wrapped; and run unpadded, padded on the left and padded on the right. *Exact*: every "
        "weight of every head and the output are those of transformers' eager attention to 1e-5 in all three runs. "
        '*Route*: "interface" where transformers\' attention interface calls our function, "interception" where it '
        "stands in for what the model's own code asks torch for (see [the models](models.md#in-memory)). "
        "*Refused*: `av.wrap` says why and nothing is drawn. *Not built*: no model could be made from the family's "
        "default configuration with small sizes, so nothing is claimed. Nothing about a family's name decides: a small "
        "run of your own model does, each time one is loaded.",
        "",
        "*Opened*: `av.decompose` split an output (a token's logit; of a model without a word head the output in a "
        "random direction) and a score of each kind of attention into [what wrote them](why.md). The number is by how "
        "much the rows miss what they sum to, as a share of the largest row; the worst of these. *Other* is the share "
        "of the rows' size that comes from layers that mix positions without attention, which are rows of their own.",
        "",
        f"**{counts['exact']} exact, {counts['wrong']} wrong, {counts['refused']} refused, {counts['not built']} not "
        f"built, of {len(results)}.**",
        "",
        f"**{len(opened)} of the {counts['exact']} exact ones opened, to {CLOSED:.0e}{others}.**",
        "",
    ]
    lines += [
        "## Exact",
        "",
        "| family | class | attention | route | layers without | opened | note |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in (result for result in results if result.outcome == "exact"):
        cells = (one.family.name, one.family.model_class, ", ".join(one.streams), one.route, ", ".join(one.without))
        lines.append(f"| {' | '.join(cells)} | {_cell(str(one.closure))} | {one.reason} |")
    for outcome in ("wrong", "refused", "not built"):
        lines += ["", f"## {outcome.capitalize()}", "", "| family | class | why |", "| --- | --- | --- |"]
        lines += [
            f"| {one.family.name} | {one.family.model_class} | {_cell(one.reason)} |"
            for one in results
            if one.outcome == outcome
        ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def main(write: Callable[[str], object] = TABLE.write_text) -> None:
    """Try all families, or those named, and write the table, or say what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these families, without writing the table")
    names = parser.parse_args().names
    torch.set_num_threads(1)  # a process with threads can't be forked
    # Telling which families read ids imports their code, which forked processes share and don't import again.
    chosen = [family for family in families() if not names or family.name in names]
    results: list[Result] = []
    way = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
    with multiprocessing.get_context(way).Pool(os.cpu_count(), _quiet, maxtasksperchild=_EACH) as pool:
        for result in pool.imap(try_family, chosen):
            results.append(result)
            told = f"{result.family.name} {result.family.model_class}: {result.outcome} {result.reason}"
            told += "" if result.closure is None else f"; opened: {result.closure}"
            print(f"{len(results)}/{len(chosen)} {told} ({result.seconds:.1f} s)", flush=True)
    if not names:
        write(_text(sorted(results, key=lambda result: (result.family.name, result.family.model_class))))


if __name__ == "__main__":
    main()
