"""What stands out in a picture and in a sound: regions, neighbours by place, and how that is said."""

import pytest
import torch

import attention_viz as av
from attention_viz.analysis.findings.regions import connected, region_of
from attention_viz.analysis.findings.scene import StreamScene
from attention_viz.trace.seen import Seen
from attention_viz.trace.tokens import Tokens
from tests.analysis.planted import trace_of
from tests.shipped import shown

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
    assert found.text == (
        f"The class token looks at one region at the upper left in 3 of 4 heads: {found.strength:.2f}"
    )


# Two regions of a 9 × 9 picture, three and two patches large, and a query away from both.
TWO = [at(*one, side=9) for one in ((2, 2), (2, 3), (3, 2), (6, 6), (7, 6))]
LOOKING = at(4, 4, side=9)


def looking_at(keys: list[int], query: int = LOOKING) -> torch.Tensor:
    weights = even(patches(9))
    weights[1, 2, query, keys] = 60
    return weights


def test_a_patch_that_looks_at_two_regions_comes_first_and_is_told_without_rows_and_columns() -> None:
    weights = looking_at(TWO)
    weights[0, 0, at(8, 0, side=9), at(1, 1, side=9)] = 900  # a link with more weight
    trace = trace_of(weights, patches(9), "picture")
    first = av.findings(trace)[0]
    assert (first.kind, first.layer, first.head, first.query) == ("regions", 1, 2, LOOKING)
    assert first.key in TWO
    row = trace.weights(1, 2)[LOOKING]
    assert first.strength == pytest.approx(float(row[TWO].sum()), rel=1e-5)
    assert first.text == f"A patch near the centre looks at two regions: {first.strength:.2f}"


def test_rows_of_a_fixed_step_registers_edges_and_regions_of_everybody_are_no_regions() -> None:
    side = 9
    steps, single, edge = even(patches(side)), [at(2, 2, side), at(6, 6, side)], [at(2, 0, side), at(3, 0, side)]
    for row in range(side):
        for column in range(side):
            for one in TWO:
                away = [row + (one - 1) // side - 4, column + (one - 1) % side - 4]
                if 0 <= min(away) and max(away) < side:
                    steps[1, 2, at(row, column, side), at(away[0], away[1], side)] = 60
    everybody = even(patches(side))
    everybody[1, 2, :, TWO] = 60
    for weights in (steps, looking_at(single), looking_at([*edge, *TWO[3:]]), everybody, looking_at(TWO, TWO[0] + 1)):
        kinds = [one.kind for one in av.findings(trace_of(weights, patches(side), "picture"), 9)]
        assert "regions" not in kinds


@pytest.mark.parametrize("name", ["chelsea", "astronaut"])
def test_a_sample_opens_on_regions_that_hold_more_than_as_many_patches_elsewhere(name: str) -> None:
    trace = shown("dinov2-small", name)
    first = av.findings(trace)[0]
    assert first.kind == "regions" and first.layer >= 8
    row = trace.weights(first.layer, first.head)[first.query, 1:].reshape(16, 16)
    inside = row >= row.max() / 2
    assert first.strength == pytest.approx(float(row[inside].sum()), rel=1e-5)
    assert sum(map(len, connected(inside))) < 0.06 * row.numel()
    others = trace.weights(first.layer, first.head)[:, 1:].reshape(-1, 16, 16)[:, inside].sum(dim=1)
    moves = [(down, across) for down in range(16) for across in range(16) if 4 <= max(down, across) <= 12]
    moved = sum(float(torch.roll(row, move, (0, 1))[inside].sum()) for move in moves) / len(moves)
    assert first.strength > 1.6 * float(others.mean()) and first.strength > 5 * moved


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
    assert links[0].text.startswith("A patch at the lower right looks at one at the upper left: ")


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
