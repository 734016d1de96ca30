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
from attention_viz.trace.kind import InputKind
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    from attention_viz.models.model import AttentionModel

# Positions of the patched text, and their counterparts in the other.
Pairs = tuple[tuple[int, int], ...]


def plain_run(model: "AttentionModel", trace: Trace) -> ModelRun:
    """Return the run behind a trace, if it can be patched."""
    run = run_behind(model, trace)
    if run.runner.answers:
        raise UnsupportedModel(
            f"can't patch the encoder–decoder {run.name}, since positions of its two texts can't be paired; use "
            "attention_viz.decompose"
        )
    if run.edits:
        raise TraceError(
            f"can't patch an edited run ({', '.join(trace.provenance.edits)}); trace the text without edits"
        )
    return run


def settled(
    run: "ModelRun | AttentionModel", trace: Trace, of: Logit | Probability | Direction
) -> Logit | Probability | Direction:
    """Return the number with token ids and a position counted from the start."""
    if not isinstance(of, Logit | Probability | Direction):  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
        raise ShapeError(
            f"effects need an av.Logit, an av.Probability or an av.Direction, not the {of}; to decompose a score, use "
            "av.decompose"
        )
    rows, width = trace.output_shape
    if of.position is not None and not -rows <= of.position < rows:
        raise ShapeError(f"no position {of.position}; the output has positions {-rows} to {rows - 1}")
    position = None if of.position is None else of.position % rows
    if isinstance(of, Direction):
        if of.vector.shape != (width,):
            raise ShapeError(f"a direction must be ({width},), as wide as the output; got {tuple(of.vector.shape)}")
        return replace(of, position=position)
    if no_words := run.anatomy.no_words:
        raise UnsupportedModel(
            f"the {of} needs an unembedding, which {run.name} lacks; use an av.Direction of its output ({no_words})"
        )
    logits = trace.output_at(of.position).float()
    token = token_of(run.name, run.tokenizer, logits, of.token)
    at = position if position is not None else -1
    if isinstance(of, Probability):
        return Probability(token, at)
    against = None if of.against is None else token_of(run.name, run.tokenizer, logits, of.against, like=token)
    return Logit(token, at, against)


def paired(text: Trace, other: Trace, aligned: bool) -> dict[str, Pairs]:
    """Return pairs of positions in the two texts, by attention stream."""
    if text.streams != other.streams:
        raise ShapeError(
            f"the inputs have the streams {', '.join(text.streams)} and {', '.join(other.streams)}; give both an image"
        )
    several = len(text.attention_streams) > 1
    return {
        stream: _paired(text.query_tokens(stream), other.query_tokens(stream), aligned, stream if several else "")
        for stream in text.streams
    }


def _paired(mine: Tokens, yours: Tokens, aligned: bool, beside: str) -> Pairs:
    """Return pairs of positions; `beside` is a stream's name if there are several."""
    if len(mine) == len(yours):
        if mine.padding != yours.padding:
            raise ShapeError("the two texts are padded at different positions; use texts without padding")
        if (mine.place, mine.regions) != (yours.place, yours.regions):
            raise ShapeError(
                "the two inputs have their image at other positions, or images of other shapes, so positions can't be "
                "paired; give both images one shape and one place in the text"
            )
        return tuple((at, at) for at in range(len(mine)))
    if beside == InputKind.PICTURE.value:
        raise ShapeError(
            f"the images have {len(mine)} and {len(yours)} patches in the model; give both one shape, in pixels"
        )
    if not aligned or beside:
        how = "" if beside else ", or pair their shared tokens with aligned=True (--aligned on the command line)"
        raise ShapeError(f"the texts have {len(mine)} and {len(yours)} tokens; make them equally long{how}")
    axis = align(mine, yours)
    found: list[tuple[int, int]] = []
    for place, at in enumerate(axis.one):
        partner = None if at is None else axis.partner(place)
        to = None if partner is None else axis.other[partner]
        if at is not None and to is not None:
            found.append((at, to))
    if not found:
        raise ShapeError("the two texts share no token, so their positions can't be paired")
    return tuple(found)


def counterpart(
    of: Logit | Probability | Direction, text: Trace, spots: Mapping[int, int], count: int, rows: int
) -> Logit | Probability | Direction | None:
    """Return the other text's number; None if its position is unpaired; `count` is of the output's tokens."""
    if of.position is None or text.output_shape[0] != count:
        return of
    at = spots.get(of.position)
    if at is None and of.position == text.output_shape[0] - 1:
        at = rows - 1
    return None if at is None else replace(of, position=at)
