"""Tries every family of pictures and sounds that the installed transformers knows, and writes it into docs/families.md.

Each is built tiny, or as it is by default where it can't be, with random weights; wrapped with something that it reads;
and run. A family is exact where the output is that of its own attention and every weight of every head that of eager
attention, to 1e-5, or no further from a run of twice the precision than twice eager itself is, and where all weights
that the model itself hands out are among ours.
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

import attention_viz as av
from attention_viz.errors import AttentionVizError
from scripts.seen.building import broken, seen_families, tiny_seen
from scripts.seen.reading import UnreadError, example_of
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
    tell,
    tells,
    tried,
)

__all__ = ["TABLE", "Seen", "try_seen"]

TABLE = Path(__file__).parents[1] / "docs" / "families.md"
_SECONDS = 120
_OUTCOMES = ("exact", "wrong", "refused", "not built")
# How far weights that a model hands out may be from ours.
_CLOSE = 1e-4


@dataclass(frozen=True)
class Seen:
    """What came out for one family.

    Attributes:
        outcome: "exact", "refused", "not built" or "wrong".
        reads: what it was given, by name and shape.
        streams: the kinds of attention it has.
        places: whether its positions have places in a picture.
        handed: how many layers' weights the model itself handed out, which were compared once more.
        reason: why it is not exact, or what is to be said of it.
        route: of an exact one, how our attention came into it; see `Provenance.route`.
        left_out: of an exact one, what attends beside what is recorded.
        seconds: of the processor, that trying it took.
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
    """Build one family, wrap it with something that it reads, and compare it with eager."""
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
        return Seen(family, "not built", reason=_why_not(family, error))
    shapes = {name: "×".join(map(str, one.shape)) for name, one in inputs.items()}
    reads = ", ".join(f"{name} {shape}" for name, shape in shapes.items() if "mask" not in name)
    found, reason = None, ""
    for scale in SCALES:
        larger = scaled(copy.deepcopy(model), scale)
        try:
            trace = av.wrap(larger, inputs=inputs).trace(inputs)
        except AttentionVizError as error:
            reason = reason or str(error.__cause__ or error)
            continue
        except Exception as error:  # what is no refusal is a fault of ours
            return Seen(family, "wrong", reads, reason=first_line(error))
        found = (larger, trace)
        if tells(trace):
            break
    if found is None:
        return Seen(family, "refused", reads, reason=reason)
    if unread:  # nothing would show in its numbers
        return Seen(family, "not built", reads, reason=unread)
    return _compared(Seen(family, "exact", reads), *found, inputs)


class _UnreadModelError(ValueError):
    """The first of a family's models runs, and it makes no difference with what."""

    def __init__(self, model: Any, error: UnreadError) -> None:
        super().__init__(str(error))
        self.model, self.inputs = model, error.inputs


def _ready(family: Family) -> tuple[Any, dict[str, Tensor]]:
    """The first of a family's models that runs, and what it ran with."""
    errors = list[Exception]()
    for model in tiny_seen(family):
        try:
            return model, example_of(model)
        except UnreadError as error:
            errors.append(_UnreadModelError(model, error))
        except Exception as error:  # whatever a family's own code says to what it can't read
            errors.append(error)
    raise next((one for one in errors if isinstance(one, _UnreadModelError)), errors[0])


def _why_not(family: Family, error: BaseException) -> str:
    """Why a family can't be built here, by name."""
    if package := re.search(r"requires the (\S+) library", str(error)):
        return f"needs the package {package[1]}, which isn't among those that are installed"
    if (own := broken(family)) is not None:
        return f"transformers itself can't build it from its own default configuration: {first_line(own)}"
    return f"nothing was found that it reads: {first_line(error)}"


def _compared(seen: Seen, model: Any, trace: av.Trace, inputs: dict[str, Tensor]) -> Seen:
    """What the fidelity of a run says of it, and what the model itself hands out."""
    fidelity = trace.fidelity
    error = fidelity.largest_error or 0.0
    placed = any(trace.query_tokens(stream).placed for stream in trace.streams)
    origin = trace.provenance
    seen = replace(seen, streams=trace.streams, places=placed, route=origin.route, left_out=origin.left_out)
    if not fidelity.ok:
        return replace(seen, outcome="wrong", reason=f"off by {error:.1e}")
    handed = _handed_out(model, inputs)
    own = [layer.attention.weights for stream in trace.streams for layer in trace.layers[stream]]
    strange = sum(not any(_same(one, ours) for ours in own) for one in handed)
    if strange:
        phrase = f"{strange} of {len(handed)} layers' weights that the model hands out are none of ours"
        return replace(seen, outcome="wrong", reason=phrase)
    notes = ["by the second rule"] * (error > 1e-5)
    notes += ["attention stayed uniform or on one position, so less is proven"] * (not tells(trace))
    return replace(seen, handed=len(handed), reason="; ".join(notes))


def _same(one: Tensor, ours: Tensor) -> bool:
    return one.shape == ours.shape and torch.allclose(one, ours, atol=_CLOSE)


def _handed_out(model: Any, inputs: dict[str, Tensor]) -> list[Tensor]:
    """The weights that a model returns where it is asked for them, by eager attention; none where it has none."""
    try:
        model.set_attn_implementation("eager")
        with torch.no_grad():
            returned = model(**inputs, output_attentions=True)
    except Exception:  # whatever a family's own code says to what it doesn't offer
        return []
    found = list[Tensor]()
    for name in ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions"):
        layers = getattr(returned, name, None)
        found += [one[0] for one in layers or () if isinstance(one, Tensor) and one.ndim == 4]
    return [one for one in found if _are_shares(one)]


def _are_shares(weights: Tensor) -> bool:
    """Whether rows sum to 1: some models hand out scores, or values, by the name of weights."""
    return bool(((weights.sum(dim=-1) - 1).abs() < 1e-3).all())


def _text(results: Sequence[Seen]) -> str:
    counts = Counter(result.outcome for result in results)
    lines = [
        SEEN,
        "",
        f"Made by `make families` with transformers {version('transformers')} and torch "
        f"{version('torch')}. Of each family whose forward takes a picture or a sound one class was built, tiny, or as "
        "it is by default where it can't be made so, with random weights scaled up so that its attention is neither "
        "uniform nor on one position; wrapped with tensors that it reads (`av.wrap(model, inputs=…)`); and run. "
        "*Exact*: the output is that of the model's own attention, and every weight of every head that of "
        "transformers' eager attention, to 1e-5, or no "
        "further from a run in float64 than twice eager itself is. *Handed out*: of so many layers the model itself "
        "returned weights, and each of them is one of ours, too. *Patches*: which part of the picture each position "
        f"stands for was proved by changing it; else positions have numbers. {LEFT_OUT} *Refused*: `av.wrap` says why "
        "and nothing is drawn. *Not built*: the row says why, which is a package that isn't installed, a class that "
        "transformers itself can't build from its own default configuration, a small model to which the picture makes "
        "no difference, or what its own code says to every input that was tried; nothing is claimed of it.",
        "",
        f"**{counts['exact']} exact{of_parts(one.left_out for one in results)}, "
        f"{', '.join(f'{counts[outcome]} {outcome}' for outcome in _OUTCOMES[1:])}, of {len(results)}.**",
        "",
        "## Exact, of pictures and sound",
        "",
        "| family | class | read | attention | route | patches | handed out | left out | note |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in (result for result in results if result.outcome == "exact"):
        cells = (one.family.name, one.family.model_class, one.reads, ", ".join(one.streams), one.route)
        cells = (*cells, "yes" if one.places else "", str(one.handed or ""), ", ".join(one.left_out))
        lines.append(f"| {' | '.join(cells)} | {one.reason} |")
    for outcome in _OUTCOMES[1:]:
        lines += ["", f"## {outcome.capitalize()}, of pictures and sound", "", "| family | class | why |"]
        lines += ["| --- | --- | --- |"]
        lines += [
            f"| {one.family.name} | {one.family.model_class} | {cell(one.reason)} |"
            for one in results
            if one.outcome == outcome
        ]
    return "\n".join(lines) + "\n"


def _kept(path: Path | None) -> dict[Family, Seen]:
    """What came out in earlier runs, a line each."""
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
    """Try all families, or those named, say what came out and what did otherwise before, and write the table."""
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
    text = _text(sorted(results, key=lambda one: (one.family.name, one.family.model_class)))
    whole = not arguments.names and arguments.every == 1
    failed = tell(heading + others, text, whole=whole)
    if whole and not arguments.compare:
        write(f"{texts.rstrip()}\n\n{text}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
