"""Attention that draws random numbers, as Reformer's hashing of longer texts, is read with the numbers of its run."""

import functools
import threading
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.models.reformer.modeling_reformer import EfficientAttentionMixin

import attention_viz as av
from attention_viz.errors import UnsupportedModel
from attention_viz.recording.sparse.draws import DrawMode
from attention_viz.recording.sparse.hearing import sparse_turns
from attention_viz.recording.sparse.turn import SparseSite, Turn, returned
from tests.models.families import built, ids
from tests.recording.sparse.cases import LENGTHS, SPARSE, sparse, weights_by_one_hot

CHUNK = 16
MERGE = "_merge_hidden_size_dims"


def reformer(hash_seed: int | None = None) -> PreTrainedModel:
    """A model that hashes texts of more than a chunk, with other rotations each time if it has no seed."""
    name, config, sizes, _ = SPARSE["reformer, buckets"]
    return built(name, config, sizes | {"lsh_attn_chunk_length": CHUNK, "hash_seed": hash_seed})


def hashing(model: PreTrainedModel) -> SparseSite:
    kind = next(type(one) for one in model.modules() if type(one).__name__ == "LSHSelfAttention")
    return SparseSite(kind, (), "")


@pytest.fixture
def drawn_elsewhere(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The numbers that another thread draws at the begin and end of each turn."""
    numbers = list[float]()

    def disturbed(own: Callable[..., object]) -> Callable[..., object]:
        def call(*given: object) -> object:
            other = threading.Thread(target=lambda: numbers.append(float(torch.rand(()))))
            other.start()
            other.join()
            return own(*given)

        return call

    for name in ("_split_hidden_size_dim", MERGE):
        monkeypatch.setattr(EfficientAttentionMixin, name, disturbed(getattr(EfficientAttentionMixin, name)))
    return numbers


@functools.cache
def theirs(count: int) -> list[Tensor]:
    given = {"input_ids": ids(count), "attention_mask": torch.ones(1, count, dtype=torch.long)}
    return weights_by_one_hot(reformer(), "LSHSelfAttention", given, count)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_random_state_changes_what_is_shown(seed: int) -> None:
    model = reformer()
    _ = torch.manual_seed(seed)
    wrapped = av.wrap(model)
    for count in (3, CHUNK):
        trace = wrapped.trace_ids(ids(count))
        assert trace.fidelity.ok
        for layer, own in enumerate(theirs(count)):
            torch.testing.assert_close(trace.attention(layer).weights, own, rtol=0, atol=1e-5)
    with pytest.raises(UnsupportedModel, match=r"draws other random numbers .* hash_seed=0, or use a shorter text"):
        _ = wrapped.trace_ids(ids(CHUNK + 1))


def test_a_model_that_seeds_its_draws_is_shown_at_any_length() -> None:
    wrapped = av.wrap(reformer(hash_seed=3))
    assert wrapped.trace_ids(ids(2 * CHUNK + 1)).fidelity.ok


def test_a_turn_runs_again_with_its_own_draws_and_leaves_the_generator_alone() -> None:
    model, own, again = reformer(), list[Tensor](), list[Tensor]()

    def hear(_module: nn.Module, _inputs: object, output: object) -> None:
        own.append(returned(output))

    def take(turn: Turn, _count: int) -> None:
        before = torch.get_rng_state()
        again.append(returned(turn.run().output))
        assert torch.equal(torch.get_rng_state(), before)

    site = hashing(model)
    handles = [one.register_forward_hook(hear) for one in site.of(model)]
    with torch.no_grad(), sparse_turns(model, [site], take):
        _ = model(input_ids=ids(2 * CHUNK))
    for handle in handles:
        handle.remove()
    for one, other in zip(own, again, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert len(own) == 2


@pytest.mark.parametrize("name", ["reformer, buckets", "reformer, local"])
def test_another_threads_draws_change_nothing(name: str, drawn_elsewhere: list[float]) -> None:
    wrapped = av.wrap(sparse(name))
    for count in LENGTHS[name]:
        assert wrapped.trace_ids(ids(count)).fidelity.ok
    assert drawn_elsewhere


def test_another_thread_draws_no_number_twice(drawn_elsewhere: list[float]) -> None:
    model = reformer()
    with torch.no_grad(), sparse_turns(model, [hashing(model)], lambda turn, _count: turn.run() and None):
        _ = model(input_ids=ids(2 * CHUNK))
    assert len(drawn_elsewhere) == len({*drawn_elsewhere}) > 8


def test_draws_of_any_form_are_repeated_and_draw_nothing() -> None:
    def draw() -> list[Tensor]:
        into = torch.empty(3)
        return [
            torch.randn(2, 3),
            torch.empty(4).normal_().neg_(),
            torch.rand(3, out=into),
            into,
            torch.randperm(9),
            torch.randn_like(torch.ones(2)),
        ]

    with DrawMode() as first:
        own = draw()
    before = torch.get_rng_state()
    with DrawMode(first.found) as second:
        again = draw()
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(one, other) for one, other in zip(own, again, strict=True))
    assert len(first.found) == 5
    assert not second.found
    assert not any(one.by_numbers or one.own for one in first.found)


def test_draws_by_numbers_and_by_other_generators_are_known() -> None:
    with DrawMode() as drawing:
        _ = torch.multinomial(torch.ones(3), 1)
        _ = torch.rand(3, generator=torch.Generator().manual_seed(0))
    assert [(one.by_numbers, one.own) for one in drawing.found] == [(True, False), (False, True)]


def test_draws_that_depend_on_the_states_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    merge: Callable[..., Tensor] = getattr(EfficientAttentionMixin, MERGE)

    def drawing(self: EfficientAttentionMixin, states: Tensor, *sizes: int) -> Tensor:
        _ = torch.bernoulli(states.sigmoid())
        return merge(self, states, *sizes)

    monkeypatch.setattr(EfficientAttentionMixin, MERGE, drawing)
    with pytest.raises(UnsupportedModel, match="draws random numbers that depend on its states"):
        _ = av.wrap(reformer(hash_seed=3))


def test_a_draw_between_a_turns_seed_and_its_own_draw_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped, seed, seeded = av.wrap(reformer(hash_seed=3)), torch.manual_seed, list[int]()
    expected = wrapped.trace_ids(ids(2 * CHUNK)).attention(0).weights

    def disturbed(number: int) -> torch.Generator:
        seeded.append(number)
        generator = seed(number)
        if len(seeded) % 3:
            other = threading.Thread(target=torch.rand, args=(len(seeded),))
            other.start()
            other.join()
        return generator

    monkeypatch.setattr(torch, "manual_seed", disturbed)
    assert torch.equal(wrapped.trace_ids(ids(2 * CHUNK)).attention(0).weights, expected)
