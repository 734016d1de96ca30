"""Steps compared one by one with the model's own from the same cache: right ones pass, those tampered with don't."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

import attention_viz as av
from attention_viz.models.model import AttentionModel
from attention_viz.recording.runner import Pass
from attention_viz.recording.stepping import compare_steps
from tests.inputs.test_text import byte_tokenizer
from tests.models.families import build

STEPS = 4


def model(family: str) -> AttentionModel:
    return av.wrap(build(family, vocab_size=300, eos_token_id=None, bos_token_id=None), byte_tokenizer())


def compared(
    model: AttentionModel, evict: av.Evict | None, tamper: Callable[[Pass], object] = lambda _: None
) -> av.Fidelity:
    """What is found of a text and some steps, tampered with before."""
    *_, trace = model.generate("the bank of", STEPS, evict=evict)
    record = model._parts.tracer.record_of(trace)  # pyright: ignore[reportPrivateUsage] -- what a trace is compared by
    calls = [replace(call, attention=copied(call.attention)) for call in record.calls]
    record = replace(record, calls=tuple(calls), output=record.output.clone())
    tamper(record)
    ids = torch.tensor([trace.query_tokens().ids])
    return compare_steps(record, model.runner, ids, ids.shape[1] - STEPS, range if evict is None else evict.kept)


def copied(call: av.Attention) -> av.Attention:
    return replace(call, query=call.query.clone(), key=call.key.clone(), value=call.value.clone())


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma2", "gpt_oss"])
def test_right_steps_are_found_right(family: str) -> None:
    assert compared(model(family), None).ok


def test_steps_with_fewer_keys_are_compared_with_steps_with_the_same_keys() -> None:
    llama, evict = model("llama"), av.Evict(first=1, last=2)
    assert compared(llama, evict).ok


@pytest.mark.parametrize("row", [-1, -STEPS, 1])
@pytest.mark.parametrize("what", ["query", "key", "value", "output"])
def test_a_number_that_is_off_is_found(what: str, row: int) -> None:
    def tamper(record: Pass) -> None:
        if what == "output":
            record.output[row] *= 1.01
        else:
            getattr(record.calls[1].attention, what)[:, row] *= 1.1

    assert not compared(model("llama"), None, tamper).ok
