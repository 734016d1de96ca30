"""A matrix in blocks: each block's number is one of its cells', and nothing of the matrix is left out."""

import math
import tracemalloc

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import attention_viz as av
from attention_viz.analysis.blocks import MOST_CELLS, block_size, call_blocks, matrix_blocks, row_slices


def furthest(cells: numpy.ndarray) -> float:
    """The cell furthest from 0, found one by one."""
    there = [float(one) for one in cells.ravel() if math.isfinite(one)]
    return max(there, key=abs, default=math.nan)


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 400), st.integers(0, 3))
def test_a_block_is_its_cell_furthest_from_nought(rows: int, columns: int, most: int, seed: int) -> None:
    random = numpy.random.default_rng(seed)
    matrix = random.normal(size=(rows, columns))
    matrix[random.random((rows, columns)) < 0.3] = -math.inf
    blocked = numpy.isneginf(matrix)
    blocks = matrix_blocks(matrix, blocked, most)
    if rows * columns <= most:
        assert blocks.whole and numpy.array_equal(blocks.values, matrix)
        return
    assert blocks.values.size <= most
    down, across = blocks.ranges(0), blocks.ranges(1)
    assert (down[-1][1], across[-1][1]) == (rows - 1, columns - 1)
    assert blocks.values.shape == (len(down), len(across))
    for i, (top, bottom) in enumerate(down):
        for j, (left, right) in enumerate(across):
            part = slice(top, bottom + 1), slice(left, right + 1)
            assert abs(blocks.values[i, j]) == abs(furthest(matrix[part])) or blocked[part].all()
            assert blocks.blocked[i, j] == blocked[part].all()


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10**6))
def test_there_are_never_more_blocks_than_allowed(rows: int, columns: int, most: int) -> None:
    high, wide = block_size((rows, columns), most)
    assert -(-rows // high) * -(-columns // wide) <= most


@given(st.integers(0, 10**5), st.integers(1, 10**5), st.integers(1, 300))
def test_rows_are_taken_one_after_another_and_none_twice(rows: int, columns: int, multiple: int) -> None:
    slices = list(row_slices(rows, columns, multiple))
    assert [place for some in slices for place in (some.start, some.stop)] == sorted(
        place for some in slices for place in (some.start, some.stop)
    )
    assert sum(some.stop - some.start for some in slices) == rows
    assert all((some.stop - some.start) % multiple == 0 for some in slices[:-1])


def test_the_blocks_of_a_head_are_those_of_its_weights() -> None:
    generator = torch.Generator().manual_seed(2)
    query, key, value = (3 * torch.randn(count, 5, generator=generator) for count in (610, 701, 701))
    call = av.attend(query, key, value, av.masks.causal(610, 701))
    exact, blocks = call.weights.numpy(), call_blocks(call)
    assert blocks.size == (3, 3) and blocks.values.shape == (204, 234)
    for i, (top, bottom) in list(enumerate(blocks.ranges(0)))[::7]:
        for j, (left, right) in list(enumerate(blocks.ranges(1)))[::5]:
            cells = exact[top : bottom + 1, left : right + 1]
            assert blocks.values[i, j] == pytest.approx(cells.max(), abs=1e-7)


def test_some_rows_of_a_call_have_the_same_weights_as_in_the_whole() -> None:
    generator = torch.Generator().manual_seed(3)
    query = torch.randn(6, 11, 4, generator=generator)
    key, value = (torch.randn(2, 7, width, generator=generator) for width in (4, 3))
    bias = torch.randn(6, 11, 7, generator=generator)
    call = av.attend(query, key, value, av.masks.causal(11, 7), bias=bias, softcap=3.0, sinks=torch.randn(6))
    for some in (slice(2, 9), [10, 0, 3]):
        assert torch.allclose(call.rows(some).weights, call.weights[:, some], atol=1e-7)
        assert torch.allclose(call.rows(some).output, call.output[:, some], atol=1e-6)
    with pytest.raises(av.ShapeError, match="11"):
        call.rows([11])


def test_a_matrix_of_many_million_cells_never_stands_in_memory() -> None:
    count = 7_700
    call = av.attend(torch.zeros(count, 0), torch.zeros(count, 0), torch.zeros(count, 0))
    tracemalloc.start()  # counts what numpy holds; torch's own share is bounded by the rows taken at a time
    blocks = call_blocks(call)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert blocks.values.size <= MOST_CELLS < count**2
    assert numpy.allclose(blocks.values, 1 / count)
    assert peak < 100e6 < 4 * count**2
