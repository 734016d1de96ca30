"""Attention that draws random numbers, as Reformer's hashing of longer texts, is read with the numbers of its run."""

import functools

import pytest
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

import attention_viz as av
from attention_viz.errors import UnsupportedModel
from attention_viz.recording.sparse.hearing import sparse_turns
from attention_viz.recording.sparse.turn import SparseSite, Turn, returned
from tests.models.families import built, ids
from tests.recording.sparse.cases import SPARSE, weights_by_one_hot

CHUNK = 16


def reformer(hash_seed: int | None = None) -> PreTrainedModel:
    """A model that hashes texts of more than a chunk, with other rotations each time if it has no seed."""
    name, config, sizes, _ = SPARSE["reformer, buckets"]
    return built(name, config, sizes | {"lsh_attn_chunk_length": CHUNK, "hash_seed": hash_seed})


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

    kind = next(type(one) for one in model.modules() if type(one).__name__ == "LSHSelfAttention")
    site = SparseSite(kind, (), "")
    handles = [one.register_forward_hook(hear) for one in site.of(model)]
    with torch.no_grad(), sparse_turns(model, [site], take):
        _ = model(input_ids=ids(2 * CHUNK))
    for handle in handles:
        handle.remove()
    for one, other in zip(own, again, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert len(own) == 2
