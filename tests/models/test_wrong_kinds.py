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
        (lambda model: model.trace_ids(IDS.to_sparse()), "a dense tensor of ids; got one of torch.sparse"),
        (lambda model: model.trace_ids(IDS.to("meta")), "a dense tensor of ids; got one without numbers"),
        (lambda model: model.trace_ids([[1, 2]]), "of one whole number or more; got one with list in it"),
        (lambda model: model.trace_ids(IDS.float()), "ids are whole numbers"),
        (lambda model: model.trace_ids(IDS + 2**62), "there is a token 4611686018427387905"),
        (lambda model: model.trace_ids(IDS, torch.ones_like(IDS).to_sparse()), "attention_mask has to be a dense"),
        (lambda model: model.trace_ids(IDS, torch.ones_like(IDS).to("meta")), "attention_mask has to be a dense"),
        (lambda model: model.trace_ids(IDS, [[1, 1, 1]]), "attention_mask has to be a tensor"),
        (lambda model: model.trace(5), "text has to be a str; got int"),
        (lambda model: model.trace("a", b"b"), "text has to be a str; got bytes"),
        (lambda model: model.verify(None), "text has to be a str; got NoneType"),
        (lambda model: model.trace("a", edits=av.Ablate(0, 0)), "edits"),
        (lambda model: model.trace("a", edits=[5]), "5|int"),
        (lambda model: model.trace("a").attention(0.0), "no layer 0.0"),
        (lambda model: model.trace("a").attention(0, 5), "stream"),
        (lambda model: av.find_heads(model.trace("a"), 5, "a"), "a word must be a str; got int"),
        (lambda _: av.load(5), "a model is asked for by its name, as a str; got int"),
        (lambda _: av.masks.padding(IDS.to_sparse(), 0), "token_ids has to be a dense tensor with numbers"),
        (lambda _: av.masks.padding(IDS.to("meta"), 0), "token_ids has to be a dense tensor with numbers"),
        (lambda _: av.masks.padding([1, 0], 0), "token_ids has to be a tensor; got list"),
        (lambda _: av.masks.combine(OPEN, [1]), "a mask has to be a tensor; got list"),
        (lambda _: av.Ablate("0", 0), "layer"),
        (lambda _: av.Ablate(0, 1.5), "head"),
        (lambda _: av.Temperature(float("nan")), "nan"),
        (lambda _: av.Temperature(10**400), "."),
        (lambda _: av.Allow(OPEN.to_sparse()), "allowed has to be a dense tensor with numbers"),
        (lambda _: av.Allow(OPEN.to("meta")), "allowed has to be a dense tensor with numbers"),
        (lambda _: av.Replace(0, 0, [[1.0]]), "weights has to be a tensor; got list"),
        (lambda _: av.Replace(0, 0, torch.ones(2, 2, device="meta")), "weights has to be a dense tensor with numbers"),
        (lambda _: av.scratch("a b", allowed=[[1]]), "allowed has to be a tensor; got list"),
        (lambda _: av.scratch("a b", allowed=OPEN.to("meta")), "allowed has to be a dense tensor with numbers"),
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
