"""Try every image and audio family of the installed transformers, and write the results into docs/families.md.

Each is built tiny, else by default, with random weights, wrapped with inputs that it reads, and run. A
family is exact if the output equals that of its own attention, and every weight of every head that of eager attention,
to 1e-5 (or if the distance from a run of twice the precision is at most twice that of eager itself), and if all weights
that the model itself returns are among ours.
"""

import copy
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import scripts.vision_ops  # noqa: F401 # pyright: ignore[reportUnusedImport] -- before transformers

# isort: split
import attention_viz as av
from attention_viz.errors import AttentionVizError
from attention_viz.models.model import AttentionModel
from scripts.counting import unaccounted
from scripts.seen.building import seen_families, tiny_seen, why_not
from scripts.seen.reading import UnreadError, depends, example_of
from scripts.tiny import Family, scaled
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
    reason_of,
    tell,
    tells,
    tried,
    wrapped,
)

__all__ = ["TABLE", "Seen", "try_seen"]

TABLE = Path(__file__).parents[1] / "docs" / "families.md"
_SECONDS = 120
_OUTCOMES = ("exact", "wrong", "refused", "not built")
# The largest allowed distance between the weights that a model returns and ours.
_CLOSE = 1e-4


@dataclass(frozen=True)
class Seen:
    """The result for one family.

    Attributes:
        outcome: "exact", "refused", "not built" or "wrong".
        reads: its input, by name and shape.
        streams: the kinds of attention it has.
        places: whether its positions have places in an image.
        handed: the number of layers whose weights the model itself returned, which were compared once more.
        reason: why it isn't exact, or a note.
        route: if exact, how our attention replaced its own; see `Provenance.route`.
        left_out: if exact, the modules that attend and aren't recorded.
        seconds: processor time.
    """

    family: Family
    outcome: str
    reads: str = ""
    streams: tuple[str, ...] = ()
    places: bool = False
    handed: int = 0
    reason: str = ""
    route: str = ""
    left_out: tuple[str, ...] = ()
    seconds: float = 0.0


def try_seen(family: Family) -> Seen:
    """Build one family, wrap it with inputs that it reads, and compare it with eager."""
    begun = time.process_time()
    try:
        with at_most(_SECONDS):
            found = _tried(family)
    except TooLongError:
        found = Seen(family, "not built", reason=f"took more than {_SECONDS} seconds")
    return replace(found, seconds=time.process_time() - begun)


def _tried(family: Family) -> Seen:
    unread = ""
    try:
        model, inputs = _ready(family)
    except _UnreadModelError as error:
        model, inputs, unread = error.model, error.inputs, str(error)
    except (Exception, SystemExit) as error:
        return Seen(family, "not built", reason=why_not(family, error))
    shapes = {name: "×".join(map(str, one.shape)) for name, one in inputs.items()}
    reads = ", ".join(f"{name} {shape}" for name, shape in shapes.items() if "mask" not in name)
    found, best, reason, note = None, (False, False), "", ""
    for scale in SCALES:
        larger = scaled(copy.deepcopy(model), scale)
        try:
            shown, note = wrapped(larger, inputs)
            trace = shown.trace(inputs)
        except AttentionVizError as error:
            reason = reason_of(error, reason)
            continue
        except Exception as error:  # what is no refusal is a fault of ours
            return Seen(family, "wrong", reads, reason=first_line(error))
        # A codec's codes may be all the same.
        rank = tells(trace), depends(larger, inputs)
        if rank >= best:
            found, best = (shown, trace), rank
        if all(rank):
            break
    if found is None:
        return Seen(family, "refused", reads, reason=reason)
    if unread:  # nothing would show in its numbers
        return Seen(family, "not built", reads, reason=unread)
    return _compared(Seen(family, "exact", reads, reason=note), *found, inputs)


class _UnreadModelError(ValueError):
    """The first of a family's models runs, but its output doesn't depend on the input."""

    def __init__(self, model: Any, error: UnreadError) -> None:
        super().__init__(str(error))
        self.model, self.inputs = model, error.inputs


def _ready(family: Family) -> tuple[Any, dict[str, Tensor]]:
    """Return the first of a family's models that runs, and its inputs."""
    errors = list[Exception]()
    for model in tiny_seen(family):
        try:
            return model, example_of(model)
        except UnreadError as error:
            errors.append(_UnreadModelError(model, error))
        except Exception as error:  # any error of a family's own code on inputs that it can't read
            errors.append(error)
    raise next((one for one in errors if isinstance(one, _UnreadModelError)), errors[0])


def _compared(seen: Seen, shown: AttentionModel, trace: av.Trace, inputs: dict[str, Tensor]) -> Seen:
    """Judge a run by its fidelity, its number of calls, and by the weights that the model itself returns."""
    fidelity = trace.fidelity
    error = fidelity.largest_error or 0.0
    placed = any(trace.query_tokens(stream).placed for stream in trace.attention_streams)
    origin = trace.provenance
    seen = replace(seen, streams=trace.attention_streams, places=placed, route=origin.route, left_out=origin.left_out)
    if not fidelity.ok:
        return replace(seen, outcome="wrong", reason=f"off by {error:.1e}")
    if shown.runner.answers and "decoder_input_ids" not in inputs and "decoder" in trace.streams:
        inputs = {**inputs, "decoder_input_ids": torch.tensor([trace.query_tokens("decoder").numbers])}
    if missing := unaccounted(shown, trace, inputs):
        return replace(seen, outcome="wrong", reason=missing)
    handed = _handed_out(shown.runner.model, inputs)
    own = [layer.attention.weights for stream in trace.attention_streams for layer in trace.layers[stream]]
    if any("at sampled points" in part for part in origin.left_out):  # whose weights are returned among the others
        handed = [one for one in handed if any(one.shape == ours.shape for ours in own)]
    windowed = shown.runner.windows.active
    strange = sum(not any(_same(one, ours, windowed) for ours in own) for one in handed)
    if strange:
        phrase = f"{strange} of {len(handed)} layers' weights that the model returns differ from ours"
        return replace(seen, outcome="wrong", reason=phrase)
    notes = [*filter(None, [seen.reason]), *["by the second rule"] * (error > 1e-5)]
    notes += ["attention stayed uniform or on one position, so less is proven"] * (not tells(trace))
    return replace(seen, handed=len(handed), reason="; ".join(notes))


def _same(one: Tensor, ours: Tensor, windowed: bool) -> bool:
    if windowed:  # the same weights, head by head, in whatever order
        one = one if one.ndim > 3 else one[None]
        rows, heads, queries, keys = one.shape
        if (heads, rows * queries, rows * keys) != tuple(ours.shape):
            return False
        theirs = one.transpose(0, 1).flatten(1).sort(descending=True).values
        return torch.allclose(theirs, ours.flatten(1).topk(theirs.shape[1]).values, atol=_CLOSE)
    # WavLM returns its heads' mean, once for each head.
    averaged = bool((one == one[:1]).all())
    return one.shape == ours.shape and torch.allclose(one, ours.mean(0) if averaged else ours, atol=_CLOSE)


def _handed_out(model: Any, inputs: dict[str, Tensor]) -> list[Tensor]:
    """Return the weights that a model returns on request, by eager attention; [] if it returns none."""
    try:
        model.set_attn_implementation("eager")
        with torch.no_grad():
            returned = model(**inputs, output_attentions=True)
    except Exception:  # whatever a family's own code says to what it doesn't offer
        return []
    found = list[Tensor]()
    for name in ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions"):
        layers = getattr(returned, name, None)
        several = [one for one in layers or () if isinstance(one, Tensor) and one.ndim == 4]
        found += [one[0] if len(one) == 1 else one for one in several]
    return [one for one in found if _are_shares(one)]


def _are_shares(weights: Tensor) -> bool:
    """Return whether rows sum to 1: some models return scores, or values, under the name of weights."""
    return bool(((weights.sum(dim=-1) - 1).abs() < 1e-3).all())


def _text(results: Sequence[Seen]) -> str:
    counts = Counter(result.outcome for result in results)
    lines = [
        SEEN,
        "",
        f"`make families` wrote this part with transformers {version('transformers')} and torch {version('torch')}. "
        "For each family whose forward takes an image or audio, it builds one class, tiny if possible, else by its "
        "default configuration, with random weights scaled up so that its attention is neither uniform nor on one "
        "position. It wraps the model with tensors that it reads (`av.wrap(model, inputs=…)`) and runs it.",
        "",
        "- *Exact*: the output equals that of the model's own attention, and every weight of every head equals that of "
        "transformers' eager attention, to 1e-5. If it doesn't, the distance from a run in float64 is at most twice "
        "that of eager itself.",
        "- *Returned*: the number of layers whose weights the model itself returned. Each of them equals one of ours.",
        "- *Patches*: the image part of each position was proved by changing it; else positions have numbers.",
        f"- {LEFT_OUT}",
        "- *Counted*: as above, each row of each head of the plain run is in the trace or left out by name.",
        "- *Refused*: `av.wrap` says why, and nothing is drawn.",
        "- *Not built*: the row gives the reason, so the result is unknown. A package is missing, transformers itself "
        "can't build the class from its default configuration, a small model's output doesn't depend on the input, or "
        "its own code failed on every input that we tried.",
        "",
        f"**{counts['exact']} exact{of_parts(one.left_out for one in results)}, "
        f"{', '.join(f'{counts[outcome]} {outcome}' for outcome in _OUTCOMES[1:])}, of {len(results)}.**",
        "",
        "## Exact, of images and audio",
        "",
        "| family | class | read | attention | route | patches | returned | left out | note |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in (result for result in results if result.outcome == "exact"):
        cells = (one.family.name, one.family.model_class, one.reads, ", ".join(one.streams), one.route)
        cells = (*cells, "yes" if one.places else "", str(one.handed or ""), ", ".join(one.left_out))
        lines.append(f"| {' | '.join(cells)} | {one.reason} |")
    for outcome in _OUTCOMES[1:]:
        lines += ["", f"## {outcome.capitalize()}, of images and audio", "", "| family | class | why |"]
        lines += ["| --- | --- | --- |"]
        lines += [
            f"| {one.family.name} | {one.family.model_class} | {cell(one.reason)} |"
            for one in results
            if one.outcome == outcome
        ]
    return "\n".join(lines) + "\n"


def _tabled(table: str) -> dict[Family, Seen]:
    """Read the results in a table."""
    found, outcome = dict[Family, Seen](), ""
    for line in table.splitlines():
        if line.startswith("## "):
            outcome = line.removeprefix("## ").partition(",")[0].lower()
        cells = [one.strip().replace("\\|", "|") for one in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not line.startswith("| ") or cells[0] in ("family", "---"):
            continue
        family = Family(cells[0], cells[1])
        if outcome != "exact":
            found[family] = Seen(family, outcome, reason=cells[2].replace("&lt;", "<"))
            continue
        reads, streams, route, patches, returned, left_out, note = cells[2:]
        found[family] = Seen(
            family,
            outcome,
            reads,
            tuple(streams.split(", ")),
            places=patches == "yes",
            handed=int(returned or 0),
            reason=note,
            route=route,
            left_out=(left_out,) if left_out else (),
        )
    return found


def _kept(path: Path | None) -> dict[Family, Seen]:
    """Read the results of earlier runs, one per line."""
    lines = path.read_text("utf-8").splitlines() if path and path.exists() else []
    found = [json.loads(line) for line in lines]
    tuples = ("streams", "left_out")
    results = [
        Seen(**one | {"family": Family(**one["family"])} | {name: tuple(one[name]) for name in tuples}) for one in found
    ]
    return {one.family: one for one in results}


def _keep(path: Path | None, result: Seen) -> None:
    if path:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(result)) + "\n")


def main(write: Callable[[str], object] = TABLE.write_text) -> int:
    """Try all families, or the named ones, print results and differences, and write the table."""
    parser = asks(__doc__)
    parser.add_argument("--kept", type=Path, help="a file in which results are kept: what is in it isn't tried again")
    arguments = parser.parse_args()
    kept = _kept(arguments.kept)
    named = [one for one in seen_families() if not arguments.names or one.name in arguments.names]
    chosen = named[:: arguments.every]
    results = [kept[one] for one in chosen if one in kept]
    open_ones = [one for one in chosen if one not in kept]
    for number, result in enumerate(tried(try_seen, open_ones), 1):
        results.append(result)
        _keep(arguments.kept, result)
        phrase = f"{result.family.name} {result.family.model_class}: {result.outcome} {', '.join(result.streams)}"
        phrase += f" {result.reason} {', '.join(result.left_out)}"
        print(f"{number}/{len(open_ones)} {phrase} ({result.seconds:.1f} s)", flush=True)
    texts, heading, others = TABLE.read_text("utf-8").partition(SEEN)
    if arguments.update:
        results = [*(_tabled(others) | {one.family: one for one in results}).values()]
    text = _text(sorted(results, key=lambda one: (one.family.name, one.family.model_class)))
    whole = arguments.update or (not arguments.names and arguments.every == 1)
    failed = tell(heading + others, text, whole=whole)
    if whole and not arguments.compare:
        write(f"{texts.rstrip()}\n\n{text}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
