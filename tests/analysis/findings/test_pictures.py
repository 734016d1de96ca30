"""What stands out in a picture and in a sound: regions, neighbours by place, and how that is said."""

import pytest
import torch

import attention_viz as av
from attention_viz.analysis.findings.regions import region_of
from attention_viz.analysis.findings.scene import StreamScene
from attention_viz.trace.seen import Seen
from attention_viz.trace.tokens import Tokens
from tests.analysis.planted import trace_of

SIDE = 6


def patches(side: int = SIDE) -> Tokens:
    """A class token and the patches of a square picture."""
    places = tuple((float(row), float(column)) for row in range(side) for column in range(side))
    labels = ("[CLS]", *(f"{row:g},{column:g}" for row, column in places))
    special = (True, *[False] * len(places))
    return Tokens(labels, None, special=special, spelling=("text",) * len(labels), place=(None, *places))


def even(tokens: Tokens, layers: int = 2, heads: int = 4) -> torch.Tensor:
    return torch.ones(layers, heads, len(tokens), len(tokens), dtype=torch.float64)


def at(row: int, column: int, side: int = SIDE) -> int:
    return 1 + row * side + column


# A block of three by three in the upper left corner.
BLOCK = [at(row, column) for row in range(3) for column in range(3)]


def test_a_region_at_which_heads_of_the_class_token_look_is_found_and_told() -> None:
    tokens = patches()
    weights = even(tokens)
    for head in (0, 2, 3):
        weights[1, head, 0, BLOCK] = 12
    weights[1, 3, 0, at(1, 1)] = 20
    trace = trace_of(weights, tokens, "picture")
    found = next(one for one in av.findings(trace) if one.kind == "region")
    assert (found.layer, found.head, found.query, found.key) == (1, 3, 0, at(1, 1))
    region = region_of(StreamScene(trace, "picture"), 1, 0)
    assert region is not None and region.heads == (3, 0, 2)
    own = trace.attention(1).weights[[0, 2, 3], 0, 1:].double()
    inside = own[:, [one - 1 for one in region.patches]].sum(-1) / own.sum(-1)
    assert found.strength == pytest.approx(float(inside.mean()), rel=1e-5)
    area = len(region.patches) / SIDE**2
    assert found.text == (
        "3 of 4 heads of layer 1 look from “[CLS]” at one region around patch 1, 1: "
        f"{found.strength:.2f} of their weight on patches, for {area:.2f} of the image"
    )


def test_one_head_alone_and_even_weights_make_no_region() -> None:
    tokens = patches()
    assert not [one for one in av.findings(trace_of(even(tokens), tokens, "picture")) if one.kind == "region"]
    weights = even(tokens)
    weights[0, 1, 0, BLOCK] = 12
    assert not [one for one in av.findings(trace_of(weights, tokens, "picture")) if one.kind == "region"]


def test_a_patch_below_is_a_neighbour_and_no_link() -> None:
    tokens = patches()
    weights = even(tokens)
    weights[0, 0, at(4, 4), at(5, 4)] = 900  # six positions on, one patch down
    weights[0, 1, at(4, 4), at(0, 0)] = 60
    links = [one for one in av.findings(trace_of(weights, tokens, "picture"), 9) if one.kind == "link"]
    assert (links[0].query, links[0].key) == (at(4, 4), at(0, 0))
    assert links[0].text.startswith("Patch 4, 4 looks at patch 0, 0: ")


@pytest.mark.parametrize(
    ("step", "kind", "told"),
    [((-1, 0), "above", "Each patch looks at the one above it"), ((0, -1), "previous", "the one to its left")],
)
def test_a_head_of_neighbours_in_a_picture_is_told_by_where_they_are(
    step: tuple[int, int], kind: str, told: str
) -> None:
    tokens = patches()
    weights = even(tokens)
    for row in range(SIDE):
        for column in range(SIDE):
            beside = row + step[0], column + step[1]
            if min(beside) >= 0:
                weights[1, 2, at(row, column), at(*beside)] = 500
    found = next(one for one in av.findings(trace_of(weights, tokens, "picture"), 9) if one.kind == kind)
    assert (found.layer, found.head) == (1, 2)
    assert told in found.text


def test_frames_after_the_end_of_a_sound_are_never_told() -> None:
    count = 30
    labels = tuple(f"{second / 10:.2f} s" for second in range(count))
    place = tuple((second / 10,) for second in range(count))
    tokens = Tokens(labels, None, spelling=("text",) * count, place=place)
    weights = even(tokens, 1, 3)
    weights[0, 0, 25, 12] = 900  # after the end
    weights[0, 1, 4, 28] = 900
    weights[0, 2, 4, 12] = 20
    made = trace_of(weights, tokens)
    heard = Seen(sound=torch.zeros(2 * 16_000), rate=16_000)
    trace = av.Trace(made.layers, made.queries, made.keys, made.output, made.provenance, made.fidelity, seen=heard)
    assert all(max(one.query, one.key) < 20 for one in av.findings(trace, 9))
    assert av.findings(trace)[0].text.startswith("0.40 s looks at 1.20 s: ")
