"""Check whether two texts can be patched, and pair their positions."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from attention_viz.analysis.comparison.align import align
from attention_viz.circuits.asked import Direction, Logit, Probability
from attention_viz.circuits.opened import run_behind
from attention_viz.errors import ShapeError, TraceError, UnsupportedModel
from attention_viz.inputs.vocabulary import token_of
from attention_viz.recording.gradients import ModelRun
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    from attention_viz.models.model import AttentionModel


def plain_run(model: "AttentionModel", trace: Trace) -> ModelRun:
    """Return the run behind a trace, if it can be patched."""
    run = run_behind(model, trace)
    if run.runner.answers:
        raise UnsupportedModel(
            f"{run.name} is an encoder–decoder, which reads one text and says another: which of its positions belong "
            "together isn't known, so nothing is put; it can be opened with attention_viz.decompose"
        )
    if run.edits:
        raise TraceError(f"something was to be put into or from an edited run ({', '.join(trace.provenance.edits)})")
    return run


def settled(
    run: "ModelRun | AttentionModel", trace: Trace, of: Logit | Probability | Direction
) -> Logit | Probability | Direction:
    """Return the number with token ids and a position counted from the start."""
    if not isinstance(of, Logit | Probability | Direction):  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
        raise ShapeError(
            f"what a head does is told of an av.Logit, an av.Probability or an av.Direction; got the {of}; "
            "what wrote a score is told by av.decompose"
        )
    rows, width = trace.output_shape
    if of.position is not None and not -rows <= of.position < rows:
        raise ShapeError(f"position {of.position} was asked for; the output has positions {-rows} to {rows - 1}")
    position = None if of.position is None else of.position % rows
    if isinstance(of, Direction):
        if of.vector.shape != (width,):
            raise ShapeError(f"a direction has to be ({width},), as wide as the output; got {tuple(of.vector.shape)}")
        return replace(of, position=position)
    if no_words := run.anatomy.no_words:
        raise UnsupportedModel(
            f"the {of} was asked for, and {run.name} has no head that chooses tokens; ask for a Direction of its "
            f"output: {no_words}"
        )
    logits = trace.output_at(of.position).float()
    token = token_of(run.name, run.tokenizer, logits, of.token)
    at = position if position is not None else -1
    if isinstance(of, Probability):
        return Probability(token, at)
    against = None if of.against is None else token_of(run.name, run.tokenizer, logits, of.against, like=token)
    return Logit(token, at, against)


def paired(text: Trace, other: Trace, aligned: bool) -> tuple[tuple[int, int], ...]:
    """Return pairs of positions in the two texts."""
    mine, yours = text.query_tokens(), other.query_tokens()
    if len(mine) == len(yours):
        if mine.padding != yours.padding:
            raise ShapeError("the two texts are padded at different positions; needed: texts without padding")
        return tuple((at, at) for at in range(len(mine)))
    if not aligned:
        raise ShapeError(
            f"the texts have {len(mine)} and {len(yours)} tokens, so their positions don't belong together; make them "
            "as long as each other, or say aligned=True (--aligned on the command line) to pair the tokens that both "
            "have"
        )
    axis = align(mine, yours)
    found: list[tuple[int, int]] = []
    for place, at in enumerate(axis.one):
        partner = None if at is None else axis.partner(place)
        to = None if partner is None else axis.other[partner]
        if at is not None and to is not None:
            found.append((at, to))
    if not found:
        raise ShapeError("the two texts have no token in common, so their positions can't be paired")
    return tuple(found)


def counterpart(
    of: Logit | Probability | Direction, text: Trace, spots: Mapping[int, int], rows: int
) -> Logit | Probability | Direction | None:
    """Return the other text's number; None if its position is unpaired."""
    if of.position is None or text.output_shape[0] != len(text.query_tokens()):
        return of
    at = spots.get(of.position)
    if at is None and of.position == text.output_shape[0] - 1:
        at = rows - 1
    return None if at is None else replace(of, position=at)
