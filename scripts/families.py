"""Try every text family of the installed transformers, and write the results into docs/families.md.

Each is built tiny, with random weights, wrapped, and run unpadded, padded on the left and padded on the right. A family
is exact if the output equals that of its own attention, and every weight of every head that of eager attention, to 1e-5
in all three runs. For exact families, an output and scores are decomposed, too.
"""

import math
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import torch
from torch import Tensor

import scripts.vision_ops  # noqa: F401 # pyright: ignore[reportUnusedImport] -- before transformers

# isort: split
import attention_viz as av
from attention_viz.errors import AttentionVizError
from attention_viz.models.model import AttentionModel
from scripts.closure import CLOSED, Closure, closure
from scripts.counting import unaccounted
from scripts.seen.building import tiny_seen, why_not
from scripts.texts import example_beside
from scripts.tiny import VOCABULARY, Family, families, scaled, tiny
from scripts.trying import (
    LEFT_OUT,
    SCALES,
    SEEN,
    TooLongError,
    asks,
    at_most,
    cell,
    of_parts,
    reason_of,
    tell,
    tells,
    tried,
    wrapped,
)

__all__ = ["TABLE", "Result", "try_family"]

_ROOT = Path(__file__).parents[1]
TABLE = _ROOT / "docs" / "families.md"
_TOKENS, _TARGET, _PADDED = 11, 7, 3
_SECONDS = 90


@dataclass(frozen=True)
class Result:
    """The result for one family.

    Attributes:
        outcome: "exact", "refused", "not built" or "wrong".
        streams: the kinds of attention it has.
        without: its layers without attention.
        reason: why it isn't exact, or a note.
        closure: if exact, the result of decomposing its numbers.
        route: if exact, how our attention replaced its own; see `Provenance.route`.
        left_out: if exact, the modules that attend and aren't recorded.
        seconds: processor time.
        mixer: the kinds of its layers without a softmax, with the distance of their matrices from their own kernels'.
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
    mixer: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """Its cells in the table."""
        if self.outcome != "exact":
            return self.family.name, self.family.model_class, cell(self.reason)
        opened = "" if self.closure is None else cell(str(self.closure))
        known = (", ".join(self.streams), self.route, ", ".join(self.without), self.mixer, opened)
        return (self.family.name, self.family.model_class, *known, ", ".join(self.left_out), self.reason)


def try_family(family: Family) -> Result:
    """Build one family, wrap it, compare it with eager, unpadded and padded, and decompose its numbers."""
    begun = time.process_time()
    try:
        with at_most(_SECONDS):
            return replace(_tried(family), seconds=time.process_time() - begun)
    except TooLongError:
        return Result(family, "not built", reason=f"took more than {_SECONDS} seconds")


@dataclass(frozen=True)
class _Shown:
    """A wrapped model, and the inputs it reads; None for a text alone."""

    model: AttentionModel
    note: str = ""
    inputs: dict[str, Tensor] | None = None

    @classmethod
    def of(cls, family: Family, scale: float) -> "_Shown":
        """Wrap a family's model on a text alone; else one that is small in all its parts, with what it reads."""
        errors = list[Exception]()
        for build in (lambda: tiny(family, scale=scale), lambda: scaled(next(tiny_seen(family)), scale)):
            try:
                model = build()
            except (Exception, SystemExit) as error:  # whatever a family's own code says to sizes that don't fit
                errors.append(error if isinstance(error, Exception) else ValueError(str(error)))
                continue
            try:
                return cls(*wrapped(model))
            except AttentionVizError as error:
                errors.append(error)
                if "doesn't run on text alone" not in str(error):
                    raise
            try:
                inputs = example_beside(model)
            except Exception:  # whatever a family's own code says to what it can't read
                continue
            return cls(*wrapped(model, inputs), inputs)
        raise next((one for one in errors if isinstance(one, AttentionVizError)), errors[0])

    @property
    def beside(self) -> tuple[str, ...]:
        """What it reads beside a text."""
        given = self.inputs or {}
        return tuple(name for name in given if "mask" not in name and not name.endswith("input_ids"))

    def masks(self) -> tuple[Tensor | None, ...]:
        """Return no mask, one with padding on the left and one on the right, if it takes any."""
        if self.inputs is not None and "attention_mask" not in self.inputs:
            return (None,)
        count = _TOKENS if self.inputs is None else self.inputs["attention_mask"].shape[1]
        left, right = torch.ones(1, count, dtype=torch.long), torch.ones(1, count, dtype=torch.long)
        left[0, :_PADDED], right[0, -_PADDED:] = 0, 0
        return None, left, right

    def trace(self, mask: Tensor | None = None) -> av.Trace:
        """Trace its input."""
        if self.inputs is not None:
            return self.model.trace(self.inputs | ({} if mask is None else self._padded(mask)))
        target = _ids(_TARGET, 31) if self.model.answers else None
        return self.model.trace_ids(_ids(_TOKENS, 5), mask, decoder_input_ids=target)

    def _padded(self, mask: Tensor) -> dict[str, Tensor]:
        """Return a mask, and one that goes on with a decoder's own tokens if the model takes such."""
        both = (self.inputs or {}).get("decoder_attention_mask")
        if both is None or both.shape[1] <= mask.shape[1]:
            return {"attention_mask": mask}
        return {"attention_mask": mask, "decoder_attention_mask": torch.cat([mask, both[:, mask.shape[1] :]], dim=1)}

    def tensors(self) -> dict[str, Tensor]:
        """Return its input as its forward takes it."""
        if self.inputs is not None:
            return self.inputs
        found = {"input_ids": _ids(_TOKENS, 5), "attention_mask": torch.ones(1, _TOKENS, dtype=torch.long)}
        if self.model.answers:
            target = _ids(_TARGET, 31)
            found |= {"decoder_input_ids": target, "decoder_attention_mask": torch.ones_like(target)}
        return found


def _tried(family: Family) -> Result:
    shown, reason, telling, read = None, "", False, ""
    for scale in SCALES:
        try:
            shown = _Shown.of(family, scale)
        except AttentionVizError as error:
            reason = reason_of(error, reason)
            continue
        except (Exception, SystemExit) as error:
            return Result(family, "not built", reason=why_not(family, error))
        telling = tells(shown.trace())
        if telling:
            break
    if shown is None:
        return Result(family, "refused", reason=reason)
    try:
        errors = [_error(shown.trace(mask)) for mask in shown.masks()]
    except AttentionVizError as error:
        return Result(family, "refused", reason=reason_of(error))
    trace, model = shown.trace(), shown.model
    if missing := unaccounted(model, trace, shown.tensors()):
        return Result(family, "wrong", reason=missing)
    outcome = "exact" if max(errors) <= 1e-5 else "wrong"
    # The rows of a decomposition begin with heads.
    opened = closure(model, trace) if outcome == "exact" and trace.layers else None
    notes = [] if telling else ["attention stayed uniform or on one token, so less is proven"]
    notes += [shown.note] if shown.note else []
    notes += [f"read with {read}"] if (read := ", ".join(shown.beside)) else []
    reason = "; ".join(notes) if outcome == "exact" else f"off by {max(errors):.1e}"
    known = (model.streams, model.layers_without_attention, reason, opened, trace.provenance.route)
    return Result(family, outcome, *known, model.left_out, mixer=_mixer(shown, trace))


def _mixer(shown: _Shown, trace: av.Trace) -> str:
    """Name the kinds of a model's layers without a softmax, or say that none was heard."""
    model = shown.model
    if not trace.mixers:
        return "none heard" if model.layers_without_attention else ""
    kinds = dict.fromkeys(layer.mixer.kind for layers in trace.mixers.values() for layer in layers)
    calls = model.runner.record(model.runner.inputs(shown.tensors()), proves=True).mixers
    return f"{' and '.join(kinds)}, {max(call.error for call in calls):.0e}"


def _error(trace: av.Trace) -> float:
    fidelity = trace.fidelity
    return math.inf if fidelity.output_error is None else fidelity.largest_error or 0.0


def _ids(count: int, start: int) -> Tensor:
    """Return one row of ids, all different and none of them special."""
    return ((start + 11 * torch.arange(count)) % (VOCABULARY - 7) + 5)[None]


_HEADS = {
    "exact": ("family", "class", "attention", "route", "layers without", "mixer", "opened", "left out", "note"),
    **dict.fromkeys(("wrong", "refused", "not built"), ("family", "class", "why")),
}
# A table's lines by outcome, family and class.
_Lines = dict[tuple[str, str, str], tuple[str, ...]]


def _lines_of(table: str) -> _Lines:
    """Read the lines of a written table."""
    found, outcome = _Lines(), ""
    for line in table.splitlines():
        if line.startswith("## "):
            outcome = line.removeprefix("## ").lower()
        cells = tuple(one.strip() for one in re.split(r"(?<!\\)\|", line)[1:-1])
        if cells and len(cells) == len(_HEADS.get(outcome, ())) and not cells[0].startswith(("---", "family")):
            found[outcome, cells[0], cells[1]] = cells
    return found


def _updated(table: str, results: Sequence[Result]) -> _Lines:
    """Replace the lines of some families in a written table."""
    tried = {(one.family.name, one.family.model_class) for one in results}
    others = {key: cells for key, cells in _lines_of(table).items() if key[1:] not in tried}
    return others | _lines(results)


def _lines(results: Sequence[Result]) -> _Lines:
    return {(one.outcome, one.family.name, one.family.model_class): one.cells for one in results}


def _text(found: _Lines) -> str:
    counts = Counter(outcome for outcome, _, _ in found)
    exact = [
        dict(zip(_HEADS["exact"], cells, strict=True)) for (outcome, _, _), cells in found.items() if outcome == "exact"
    ]
    opened = [one for one in exact if one["opened"] and not one["opened"].startswith("no: ")]
    mixing = [one for one in exact if one["mixer"] not in ("", "none heard")]
    others = "" if len(opened) == counts["exact"] else "; the other rows say why not, or have no softmax attention"
    lines = [
        "# Which families can be shown",
        "",
        f"`make families` wrote this page with transformers {version('transformers')} and torch {version('torch')}. "
        "It builds each text class of each family tiny, with random weights scaled up so that its attention is neither "
        "uniform nor on one token. It wraps the model and runs it unpadded, padded on the left and on the right. "
        "A family's name decides nothing: each time you load your own model, a small run decides.",
        "",
        "- *Exact*: the output equals that of the model's own attention, and every weight of every head equals that of "
        "transformers' eager attention, to 1e-5 in all three runs.",
        '- *Route*: "interface" if transformers\' attention interface calls our function, "interception" if our '
        "function replaces torch calls in the model's own code (see [the models](models.md#in-memory)).",
        "- *Mixer*: layers that mix tokens without a softmax, by kind, with the largest distance of their outputs and "
        "matrices from those of the model's own kernels, as a share of the largest number. *None heard* means that "
        "these layers aren't in the trace.",
        f"- {LEFT_OUT}",
        "- *Counted*: a counter of its own hears the plain run: each row of each head is in the trace or left out by "
        "name, else the row is wrong.",
        "- *Read with*: tensors beside a text, or instead of one, that the model needs: `av.wrap(model, inputs=…)`.",
        "- *Refused*: `av.wrap` says why, and nothing is drawn.",
        "- *Not built*: no small model could be made from the default configuration, so the result is unknown.",
        "- *Opened*: `av.decompose` split an output (a token's logit; without an unembedding, the output in a random "
        "direction) and a score of each kind of attention into [their contributions](why.md). The number is the "
        "largest distance of the rows' sum from its number, as a share of the largest row. *Other* is the share of the "
        "rows' size from layers that mix positions without attention; these have their own rows.",
        "",
        f"**{counts['exact']} exact{of_parts(one['left out'].split() for one in exact)}, {counts['wrong']} wrong, "
        f"{counts['refused']} refused, {counts['not built']} not built, of {len(found)}.**",
        "",
        f"**{len(mixing)} of the {counts['exact']} exact ones have layers that mix tokens without a softmax.**",
        "",
        f"**{len(opened)} of the {counts['exact']} exact ones opened, to {CLOSED:.0e}{others}.**",
    ]
    for outcome, names in _HEADS.items():
        lines += ["", f"## {outcome.capitalize()}", "", _row(names), _row(["---"] * len(names))]
        lines += [_row(found[key]) for key in sorted(found) if key[0] == outcome]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main(write: Callable[[str], object] = TABLE.write_text) -> int:
    """Try all families, or the named ones, print results and differences, and write the table."""
    arguments = asks(__doc__).parse_args()
    # Finding the families that read ids imports their code, which forked processes share.
    chosen = [one for one in families() if not arguments.names or one.name in arguments.names][:: arguments.every]
    results: list[Result] = []
    for result in tried(try_family, chosen):
        results.append(result)
        phrase = f"{result.family.name} {result.family.model_class}: {result.outcome} {result.reason}"
        phrase += "" if result.closure is None else f"; opened: {result.closure}"
        phrase += f"; left out: {', '.join(result.left_out)}" if result.left_out else ""
        print(f"{len(results)}/{len(chosen)} {phrase} ({result.seconds:.1f} s)", flush=True)
    # Pictures and sound are tried by a script of their own.
    before, heading, others = TABLE.read_text("utf-8").partition(SEEN)
    whole = not arguments.names and arguments.every == 1
    text = _text(_updated(before, results) if arguments.update else _lines(results))
    failed = tell(before, text, whole=whole or arguments.update)
    if (whole or arguments.update) and not arguments.compare:
        write(f"{text}\n{heading}{others}" if heading else text)
    return failed


if __name__ == "__main__":
    sys.exit(main())
