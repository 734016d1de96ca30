"""What is of the wrong kind is refused in our own words, wherever it comes in."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import attention_viz as av
from tests.models.families import build
from tests.models.loading.test_load_folder import word_tokenizer

IDS = torch.tensor([[1, 2, 3]])
OPEN = torch.ones(2, 2, dtype=torch.bool)


@pytest.fixture(scope="module")
def model(unchecked_module: None) -> Iterator[av.AttentionModel]:
    yield av.wrap(build("bert with a head"), word_tokenizer())


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda model: model.trace_ids(IDS.to_sparse()), "dense tensor.*torch.sparse"),
        (lambda model: model.trace_ids(IDS.to("meta")), "dense tensor"),
        (lambda model: model.trace_ids([[1, 2]]), "whole number.*list"),
        (lambda model: model.trace_ids(IDS.float()), "ids .*whole numbers"),
        (lambda model: model.trace_ids(IDS + 2**62), "token 4611686018427387905"),
        (lambda model: model.trace_ids(IDS, torch.ones_like(IDS).to_sparse()), "attention_mask .*dense"),
        (lambda model: model.trace_ids(IDS, torch.ones_like(IDS).to("meta")), "attention_mask .*dense"),
        (lambda model: model.trace_ids(IDS, [[1, 1, 1]]), "attention_mask .*tensor"),
        (lambda model: model.trace(5), "text .*str; got int"),
        (lambda model: model.trace("a", b"b"), "text .*str; got bytes"),
        (lambda model: model.verify(None), "text .*str; got NoneType"),
        (lambda model: model.trace("a", edits=av.Ablate(0, 0)), "edits"),
        (lambda model: model.trace("a", edits=[5]), "5|int"),
        (lambda model: model.trace("a").attention(0.0), "layer 0.0"),
        (lambda model: model.trace("a").attention(0, 5), "stream"),
        (lambda model: av.find_heads(model.trace("a"), 5, "a"), "word .*str; got int"),
        (lambda _: av.load(5), "name of a model must be a str; got int"),
        (lambda _: av.masks.padding(IDS.to_sparse(), 0), "token_ids .*dense tensor"),
        (lambda _: av.masks.padding(IDS.to("meta"), 0), "token_ids .*dense tensor"),
        (lambda _: av.masks.padding([1, 0], 0), "token_ids .*tensor; got list"),
        (lambda _: av.masks.combine(OPEN, [1]), "a mask .*tensor; got list"),
        (lambda _: av.Ablate("0", 0), "layer"),
        (lambda _: av.Ablate(0, 1.5), "head"),
        (lambda _: av.Temperature(float("nan")), "nan"),
        (lambda _: av.Temperature(10**400), "."),
        (lambda _: av.Allow(OPEN.to_sparse()), "allowed .*dense tensor"),
        (lambda _: av.Allow(OPEN.to("meta")), "allowed .*dense tensor"),
        (lambda _: av.Replace(0, 0, [[1.0]]), "weights .*tensor; got list"),
        (lambda _: av.Replace(0, 0, torch.ones(2, 2, device="meta")), "weights .*dense tensor"),
        (lambda _: av.scratch("a b", allowed=[[1]]), "allowed .*tensor; got list"),
        (lambda _: av.scratch("a b", allowed=OPEN.to("meta")), "allowed .*dense tensor"),
    ],
)
def test_what_is_of_the_wrong_kind_is_refused_in_our_words(
    ask: Callable[[Any], object], message: str, model: av.AttentionModel
) -> None:
    with pytest.raises(av.AttentionVizError, match=message):
        ask(model)


def test_a_folder_may_be_named_by_a_path(tmp_path: Any) -> None:
    build("bert with a head").save_pretrained(tmp_path)
    word_tokenizer().save_pretrained(tmp_path)
    assert av.load(tmp_path).trace("the bank").fidelity.ok
