import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attention_viz.errors import ShapeError
from attention_viz.operation import masks
from attention_viz.operation.reach import is_causal


def picture(*rows: str) -> list[list[bool]]:
    """A mask drawn with # where a query may look."""
    return [[cell == "#" for cell in row] for row in rows]


def test_causal_sees_itself_and_what_came_before() -> None:
    assert masks.causal(3).tolist() == picture("#..", "##.", "###")


def test_causal_with_more_keys_lets_the_last_query_see_the_last_key() -> None:
    assert masks.causal(2, 5).tolist() == picture("####.", "#####")


def test_causal_with_fewer_keys_leaves_the_first_queries_nothing() -> None:
    assert masks.causal(3, 2).tolist() == picture("..", "#.", "##")


def test_a_sliding_window_reaches_less_than_its_width_to_either_side() -> None:
    assert masks.sliding_window(4, 2).tolist() == picture("##..", "###.", ".###", "..##")
    assert masks.sliding_window(3, 1).tolist() == picture("#..", ".#.", "..#")


def test_a_prefix_is_open_to_all_and_the_rest_is_causal() -> None:
    assert masks.prefix(4, 2).tolist() == picture("##..", "##..", "###.", "####")


def test_padding_blocks_the_padded_keys_for_every_query() -> None:
    assert masks.padding(torch.tensor([7, 5, 0]), 0).tolist() == picture("##.")
    assert masks.padding(torch.tensor([[7, 0, 0], [0, 8, 9]]), 0).tolist() == [picture("#.."), picture(".##")]


def test_padding_and_causal_combine_by_broadcasting() -> None:
    both = masks.combine(masks.padding(torch.tensor([[7, 5, 0], [0, 8, 9]]), 0), masks.causal(3))
    assert both.tolist() == [picture("#..", "##.", "##."), picture("...", ".#.", ".##")]


def test_a_sliding_window_combined_with_causal_is_that_of_a_decoder() -> None:
    both = masks.combine(masks.causal(4), masks.sliding_window(4, 2))
    assert both.tolist() == picture("#...", "##..", ".##.", "..##")


sizes = st.integers(0, 9)


@given(sizes, sizes)
def test_causal_is_every_key_not_after_the_query_counted_from_the_end(queries: int, keys: int) -> None:
    expected = [[keys - key >= queries - query for key in range(keys)] for query in range(queries)]
    assert masks.causal(queries, keys).tolist() == expected


@given(st.integers(1, 9), st.integers(1, 12))
def test_a_window_is_the_same_seen_from_either_end_and_as_wide_as_the_text_hides_nothing(n: int, window: int) -> None:
    allowed = masks.sliding_window(n, window)
    assert torch.equal(allowed, allowed.mT) and torch.equal(allowed, allowed.flip(0, 1))
    assert allowed.diagonal().all()
    assert allowed.all() == (window >= n)


@given(st.integers(0, 9), st.data())
def test_a_longer_prefix_opens_more_and_none_is_causal(n: int, data: st.DataObject) -> None:
    longer = data.draw(st.integers(0, n))
    shorter = data.draw(st.integers(0, longer))
    assert not (masks.prefix(n, shorter) & ~masks.prefix(n, longer)).any()
    assert torch.equal(masks.prefix(n, 0), masks.causal(n))
    assert masks.prefix(n, n).all()


@given(st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=4))
def test_combining_is_and_in_any_order_and_changes_none_of_its_parts(rows: list[list[bool]]) -> None:
    parts = [torch.tensor(row).reshape(2, 3) for row in rows]
    kept = [part.clone() for part in parts]
    combined = masks.combine(*parts)
    assert torch.equal(combined, torch.stack(parts).all(0))
    assert torch.equal(combined, masks.combine(*reversed(parts)))
    assert torch.equal(combined, masks.combine(combined, *parts))
    assert all(torch.equal(part, before) for part, before in zip(parts, kept, strict=True))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: masks.causal(-1), "queries must be a whole number, 0 or more; got -1"),
        (lambda: masks.causal(3, -2), "keys must be a whole number, 0 or more; got -2"),
        (lambda: masks.sliding_window(-3, 2), "queries"),
        (lambda: masks.sliding_window(3, 0), "window must be a whole number, 1 .*; got 0"),
        (lambda: masks.prefix(4, -1), "prefix must be a whole number from 0 to the 4 positions; got -1"),
        (lambda: masks.prefix(4, 5), "prefix must be a whole number from 0 to the 4 positions; got 5"),
        (lambda: masks.combine(), "at least one mask"),
        (lambda: masks.combine(masks.causal(3), masks.causal(4)), r"broadcast together; got shapes \(3, 3\), \(4, 4\)"),
    ],
)
def test_what_makes_no_mask_is_refused_by_name(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(ShapeError, match=message):
        make()


def padded(n: int, left: int, right: int) -> torch.Tensor:
    """Return True for the keys that aren't padding."""
    keys = torch.ones(n, dtype=torch.bool)
    keys[:left] = keys[n - right :] = False
    return keys


@given(st.integers(1, 11), st.sampled_from(["full", "causal", "window", "causal window", "prefix"]), st.data())
def test_a_mask_is_recognised_by_a_name_that_makes_it_again(n: int, name: str, data: st.DataObject) -> None:
    left = data.draw(st.integers(0, n - 1))
    keys = padded(n, left, data.draw(st.integers(0, n - 1 - left)))
    made = masks.Pattern(name, window=data.draw(st.integers(1, n)), prefix=data.draw(st.integers(0, n)))
    allowed = of_pattern(made, n) & keys
    seen = masks.recognise(allowed)
    assert seen.name != "other"
    assert torch.equal((of_pattern(seen, n) & keys)[keys], allowed[keys])


def of_pattern(pattern: masks.Pattern, n: int) -> torch.Tensor:
    return {
        "full": lambda: torch.ones(n, n, dtype=torch.bool),
        "causal": lambda: masks.causal(n),
        "window": lambda: masks.sliding_window(n, pattern.window or 1),
        "causal window": lambda: masks.combine(masks.sliding_window(n, pattern.window or 1), masks.causal(n)),
        "prefix": lambda: masks.prefix(n, pattern.prefix or 0),
        "nothing": lambda: torch.zeros(n, n, dtype=torch.bool),
    }[pattern.name]()


@pytest.mark.parametrize(
    ("allowed", "name", "words"),
    [
        (None, "full", "every query may attend to every key"),
        (torch.ones(3, 5, dtype=torch.bool), "full", "every key"),
        (masks.causal(7), "causal", "no query attends to a later key"),
        (masks.causal(3, 5), "causal", "no query attends to a later key"),
        (masks.sliding_window(7, 3), "window", "a sliding window of 3"),
        (masks.combine(masks.causal(7), masks.sliding_window(7, 3)), "causal window", "itself and up to 2 before"),
        (masks.prefix(7, 3), "prefix", "the first 3 keys"),
        (masks.padding(torch.tensor([5, 5, 5, 0, 0]), 0).expand(5, 5), "full", "2 positions of padding are blocked"),
        (masks.causal(5) & padded(5, 1, 0), "causal", "1 position of padding is blocked"),
        (torch.zeros(3, 3, dtype=torch.bool), "nothing", "everything is blocked"),
        (torch.eye(4, dtype=torch.bool).flip(0), "other", "without a name"),
    ],
)
def test_a_mask_is_named_in_words(allowed: torch.Tensor | None, name: str, words: str) -> None:
    seen = masks.recognise(allowed)
    assert seen.name == name
    assert words in str(seen)


def test_a_single_cell_more_or_less_is_another_mask() -> None:
    for query, key in ((0, 5), (4, 1), (3, 3)):
        allowed = masks.causal(6)
        allowed[query, key] ^= True
        assert masks.recognise(allowed).name == "other"


@given(st.integers(1, 5), st.data())
def test_any_drawing_is_named_rightly_or_not_at_all(n: int, data: st.DataObject) -> None:
    cells = data.draw(st.lists(st.booleans(), min_size=n * n, max_size=n * n))
    allowed = torch.tensor(cells).reshape(n, n)
    seen = masks.recognise(allowed)
    if seen.name != "other":
        keys = allowed.any(dim=0)
        assert seen.padding == tuple(torch.nonzero(~keys).flatten().tolist()) or seen.name == "nothing"
        assert torch.equal((of_pattern(seen, n) & keys)[keys], allowed[keys])


@pytest.mark.parametrize("n", [1, 5, 255, 256, 257, 700])
def test_a_mask_is_told_to_be_causal_by_every_cell_of_it(n: int) -> None:
    allowed = masks.causal(n)
    assert is_causal(allowed, (n, n)) and is_causal(allowed[None], (n, n))
    generator = torch.Generator().manual_seed(n)
    for row, column in torch.randint(n, (20, 2), generator=generator).tolist():
        other = allowed.clone()
        other[row, column] = ~other[row, column]
        assert not is_causal(other, (n, n))
    assert not is_causal(None, (n, n)) and not is_causal(allowed[:1], (n, n + 1))
