"""Tries every text family that the installed transformers knows, and writes what came out into docs/families.md.

Each is built tiny, with random weights; wrapped; and run unpadded, padded on the left and padded on the right. A family
is exact where the output is that of its own attention and every weight of every head that of eager attention, to 1e-5
in all three. Of one that is exact an output and scores are opened into what wrote them, too.
"""

import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import torch
from torch import Tensor

import attention_viz as av
from attention_viz.errors import AttentionVizError
from attention_viz.models.model import AttentionModel
from scripts.closure import CLOSED, Closure, closure
from scripts.tiny import VOCABULARY, Family, families, tiny
from scripts.trying import (
    LEFT_OUT,
    SCALES,
    SEEN,
    TooLongError,
    asks,
    at_most,
    cell,
    first_line,
    of_parts,
    tell,
    tells,
    tried,
)

__all__ = ["TABLE", "Result", "try_family"]

_ROOT = Path(__file__).parents[1]
TABLE = _ROOT / "docs" / "families.md"
_TOKENS, _TARGET, _PADDED = 11, 7, 3
_SECONDS = 90


@dataclass(frozen=True)
class Result:
    """What came out for one family.

    Attributes:
        outcome: "exact", "refused", "not built" or "wrong".
        streams: the kinds of attention it has.
        without: which of its layers have none.
        reason: why it is not exact, or what is to be said of it.
        closure: of an exact one, what came of opening its numbers.
        route: of an exact one, how our attention came into it; see `Provenance.route`.
        left_out: of an exact one, what attends beside what is recorded.
        seconds: of the processor, that trying it took.
    """

    family: Family
    outcome: str
    streams: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    reason: str = ""
    closure: Closure | None = None
    route: str = ""
    left_out: tuple[str, ...] = ()
    seconds: float = 0.0


def try_family(family: Family) -> Result:
    """Build one family, wrap it, compare it with eager, unpadded and padded, and open its numbers."""
    begun = time.process_time()
    try:
        with at_most(_SECONDS):
            return replace(_tried(family), seconds=time.process_time() - begun)
    except TooLongError:
        return Result(family, "not built", reason=f"took more than {_SECONDS} seconds")


def _tried(family: Family) -> Result:
    wrapped, reason, telling = None, "", False
    for scale in SCALES:
        try:
            model = tiny(family, scale=scale)
        except (Exception, SystemExit) as error:
            return Result(family, "not built", reason=first_line(error))
        try:
            wrapped = av.wrap(model)
            telling = tells(_trace(wrapped, None))
        except AttentionVizError as error:
            reason = reason or str(error.__cause__ or error)  # without what can be done instead, the same for all
            if "doesn't run on text alone" in reason:  # at no scale
                break
            continue
        if telling:
            break
    if wrapped is None:
        return Result(family, "refused", reason=reason)
    try:
        errors = [_error(wrapped, mask) for mask in _masks()]
    except AttentionVizError as error:
        return Result(family, "refused", reason=str(error))
    outcome = "exact" if max(errors) <= 1e-5 else "wrong"
    opened = closure(wrapped, _trace(wrapped, None)) if outcome == "exact" else None
    reason = "" if telling else "attention stayed uniform or on one token, so less is proven"
    reason = reason if outcome == "exact" else f"off by {max(errors):.1e}"
    route = _trace(wrapped, None).provenance.route
    known = (wrapped.streams, wrapped.layers_without_attention, reason, opened, route, wrapped.left_out)
    return Result(family, outcome, *known)


def _error(wrapped: AttentionModel, mask: Tensor | None) -> float:
    fidelity = _trace(wrapped, mask).fidelity
    return math.inf if fidelity.output_error is None else fidelity.largest_error or 0.0


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


def _text(results: Sequence[Result]) -> str:
    counts = Counter(result.outcome for result in results)
    opened = [result.closure for result in results if result.closure is not None and result.closure.opened]
    others = "" if len(opened) == counts["exact"] else "; the others say why not"
    lines = [
        "# Which families can be shown",
        "",
        f"Made by `make families` with transformers {version('transformers')} and torch {version('torch')}. Each text "
        "class of each family was built tiny, with random weights scaled up so that its attention is neither uniform "
        "nor on one token; wrapped; and run unpadded, padded on the left and padded on the right. *Exact*: the output "
        "is that of the model's own attention, and every weight of every head that of transformers' eager attention, "
        "to 1e-5 in all three runs. "
        '*Route*: "interface" where transformers\' attention interface calls our function, "interception" where it '
        "stands in for what the model's own code asks torch for (see [the models](models.md#in-memory)). "
        f"{LEFT_OUT} "
        "*Refused*: `av.wrap` says why and nothing is drawn. *Not built*: no model could be made from the family's "
        "default configuration with small sizes, so nothing is claimed. Nothing about a family's name decides: a small "
        "run of your own model does, each time one is loaded.",
        "",
        "*Opened*: `av.decompose` split an output (a token's logit; of a model without a word head the output in a "
        "random direction) and a score of each kind of attention into [what wrote them](why.md). The number is by how "
        "much the rows miss what they sum to, as a share of the largest row; the worst of these. *Other* is the share "
        "of the rows' size that comes from layers that mix positions without attention, which are rows of their own.",
        "",
        f"**{counts['exact']} exact{of_parts(result.left_out for result in results)}, {counts['wrong']} wrong, "
        f"{counts['refused']} refused, {counts['not built']} not built, of {len(results)}.**",
        "",
        f"**{len(opened)} of the {counts['exact']} exact ones opened, to {CLOSED:.0e}{others}.**",
        "",
    ]
    lines += [
        "## Exact",
        "",
        "| family | class | attention | route | layers without | opened | left out | note |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in (result for result in results if result.outcome == "exact"):
        cells = (one.family.name, one.family.model_class, ", ".join(one.streams), one.route, ", ".join(one.without))
        lines.append(f"| {' | '.join(cells)} | {cell(str(one.closure))} | {', '.join(one.left_out)} | {one.reason} |")
    for outcome in ("wrong", "refused", "not built"):
        lines += ["", f"## {outcome.capitalize()}", "", "| family | class | why |", "| --- | --- | --- |"]
        lines += [
            f"| {one.family.name} | {one.family.model_class} | {cell(one.reason)} |"
            for one in results
            if one.outcome == outcome
        ]
    return "\n".join(lines) + "\n"


def main(write: Callable[[str], object] = TABLE.write_text) -> int:
    """Try all families, or those named, say what came out and what did otherwise before, and write the table."""
    arguments = asks(__doc__).parse_args()
    # Telling which families read ids imports their code, which forked processes share and don't import again.
    chosen = [one for one in families() if not arguments.names or one.name in arguments.names][:: arguments.every]
    results: list[Result] = []
    for result in tried(try_family, chosen):
        results.append(result)
        phrase = f"{result.family.name} {result.family.model_class}: {result.outcome} {result.reason}"
        phrase += "" if result.closure is None else f"; opened: {result.closure}"
        phrase += f"; left out: {', '.join(result.left_out)}" if result.left_out else ""
        print(f"{len(results)}/{len(chosen)} {phrase} ({result.seconds:.1f} s)", flush=True)
    text = _text(sorted(results, key=lambda result: (result.family.name, result.family.model_class)))
    # Pictures and sound are tried by a script of their own.
    before, heading, others = TABLE.read_text("utf-8").partition(SEEN)
    whole = not arguments.names and arguments.every == 1
    failed = tell(before, text, whole=whole)
    if whole and not arguments.compare:
        write(f"{text}\n{heading}{others}" if heading else text)
    return failed


if __name__ == "__main__":
    sys.exit(main())
