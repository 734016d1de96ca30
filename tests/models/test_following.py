"""Tokens that something else generated, and the probability that each token had."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close

import attention_viz as av
from attention_viz.explorer import pack
from attention_viz.explorer.packet import read_packet
from attention_viz.models.model import AttentionModel
from attention_viz.trace.derived import beginning
from tests.models.families import build, eager_twin
from tests.models.picture_families import IMAGE, PIXELS, WHOLE, tensors_of, text_of, tiny_of
from tests.models.test_continuation import REPEATED, decoder
from tests.shipped import shipped

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


def beamed(model: AttentionModel, text: str, more: int) -> tuple[torch.Tensor, int]:
    """A beam search's tokens, and the prompt's length."""
    start = torch.tensor([model.trace(text).query_tokens().ids])
    plain: Any = eager_twin(model.hf_model)
    return plain.generate(start, num_beams=3, max_new_tokens=more, do_sample=False, pad_token_id=0), start.shape[1]


def plain_chances(model: Any, tensors: dict[str, Any], ids: torch.Tensor, start: int) -> tuple[Any, Any]:
    """The log probability and rank of each token from `start` on, from transformers' own logits."""
    with torch.no_grad():
        logits = model(**tensors).logits[0].double()
    chosen = ids[0, start:, None]
    likely = logits.log_softmax(dim=-1)[start - 1 : -1]
    return likely.gather(1, chosen)[:, 0], (likely > likely.gather(1, chosen)).sum(dim=-1) + 1


@pytest.mark.parametrize("family", ["gpt2", "llama", "jamba"])
def test_a_beams_tokens_are_one_run_and_marked_as_generated(family: str) -> None:
    model = decoder(family)
    ids, prompt = beamed(model, "the bank of", 5)
    trace, whole = model.follow(ids, prompt=prompt), model.trace_ids(ids)
    for layer in trace.layer_numbers():
        assert torch.equal(trace.attention(layer).weights, whole.attention(layer).weights)
    assert torch.equal(trace.output, whole.output) and trace.query_tokens() == whole.query_tokens()
    assert trace.provenance.generated == ids.shape[1] - prompt == 5
    assert "5 tokens generated elsewhere" in repr(trace)
    assert trace.fidelity.ok


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma2"])
def test_each_token_has_the_probability_of_plain_transformers(family: str, tmp_path: Path) -> None:
    model = decoder(family)
    ids, prompt = beamed(model, "the bank of", 5)
    trace = model.follow(ids, prompt=prompt)
    likely, ranks = plain_chances(eager_twin(model.hf_model), {"input_ids": ids}, ids, 1)
    trace.save(tmp_path / "followed")
    for one in (trace, av.Trace.load(tmp_path / "followed")):
        for start, first in ((None, prompt), (1, 1)):
            table = model.chances(one, start)
            assert list(table.columns) == ["position", "token", "id", "probability", "rank", "written"]
            assert table.position.tolist() == [*range(first, ids.shape[1])]
            assert table.id.tolist() == ids[0, first:].tolist()
            assert table.token.tolist() == list(one.query_tokens().labels[first:])
            expected = likely[first - 1 :]
            assert_close(torch.tensor(table.probability.to_numpy()).log(), expected, rtol=0, atol=1e-5)
            assert table["rank"].tolist() == ranks[first - 1 :].tolist()


def test_chances_of_generated_tokens_are_those_of_following_them() -> None:
    model = decoder("llama")
    sampled: dict[str, Any] = {"sample": True, "temperature": 2.0, "top_p": 0.9, "seed": 6}
    for options in (dict[str, Any](), sampled):
        first, *_, last = model.generate("the bank of", 6, **options)
        table = model.chances(last)
        assert len(table) == 6 and (bool((table["rank"] == 1).all()) == (not options))
        again = model.chances(model.follow(last.query_tokens().numbers, prompt=len(first.query_tokens())))
        assert table.drop(columns="probability").equals(again.drop(columns="probability"))
        assert table.probability.to_numpy() == pytest.approx(again.probability.to_numpy(), abs=1e-6)
        for token, position, likely in zip(table.id, table.position, table.probability, strict=True):
            assert model.probability(last, token, position - 1) == pytest.approx(likely, abs=1e-12)


def test_a_followed_trace_goes_on() -> None:
    model = decoder("gpt2")
    ids, prompt = beamed(model, "the bank of", 3)
    trace = model.follow(ids, prompt=prompt)
    *_, more = model.extend(trace, 2)
    *_, same = model.extend(model.trace_ids(ids), 2)
    assert more.query_tokens() == same.query_tokens()
    assert [(one.method, one.tokens) for one in more.provenance.decoding] == [("given", 3), ("greedy", 2)]
    assert more.fidelity.ok


def test_views_of_generated_tokens_are_those_after_generate() -> None:
    model = shipped("induction")
    first, *_, made = model.generate(REPEATED, 3)
    trace = model.follow(made.query_tokens().numbers, prompt=len(first.query_tokens()))
    ours, theirs = (read_packet(pack(one))[0]["axes"] for one in (trace, made))
    assert ours == theirs and len(ours[0]["generated"]) == 3
    drawn: list[Any] = [av.views.cache(one, 1, 1) for one in (trace, made)]
    assert [one.x for one in drawn[0].data] == [one.x for one in drawn[1].data]
    merged = [av.merge_words(one).provenance for one in (trace, made)]
    assert merged[0].generated == merged[1].generated == 3
    cut = beginning(trace, len(trace.query_tokens()) - 1)
    assert cut.provenance.generated == 2 and model.chances(cut).equals(model.chances(trace)[:2])


def test_a_prompt_alone_has_nothing_generated_and_lists_all_its_tokens() -> None:
    model = decoder("gpt2")
    trace = model.follow([5, 6, 7], prompt=3)
    assert trace.provenance.generated == 0 and trace.provenance.decoding == ()
    assert model.chances(trace).position.tolist() == [1, 2]
    assert model.chances(model.trace_ids([5])).empty


def test_a_long_text_has_chances_without_all_of_its_logits() -> None:
    model = decoder("llama", max_position_embeddings=2_100)
    ids = (torch.arange(2_060) * 7 % 290 + 3)[None]
    trace = model.follow(ids, prompt=2_050)
    likely, ranks = plain_chances(eager_twin(model.hf_model), {"input_ids": ids}, ids, 1)
    for start, first in ((None, 2_050), (1, 1)):
        table = model.chances(trace, start)
        assert_close(torch.tensor(table.probability.to_numpy()).log(), likely[first - 1 :], rtol=0, atol=1e-5)
        assert table["rank"].tolist() == ranks[first - 1 :].tolist()


def test_a_mask_of_the_prompt_leaves_padding_out() -> None:
    model = decoder("gpt2")
    ids, mask = torch.tensor([[0, 0, 5, 6, 7, 8]]), torch.tensor([[0, 0, 1, 1]])
    trace = model.follow(ids, prompt=4, attention_mask=mask)
    whole = model.trace_ids(ids, torch.tensor([[0, 0, 1, 1, 1, 1]]))
    assert torch.equal(trace.output, whole.output) and trace.provenance.generated == 2
    assert trace.query_tokens().padding == (True, True, False, False, False, False)
    assert model.chances(trace, start=1).position.tolist() == [3, 4, 5]


@pytest.mark.parametrize("name", ["recall", "recall-mamba"])
def test_layers_without_a_softmax_follow_too(name: str) -> None:
    model = shipped(name)
    ids = torch.tensor([model.trace("a 1 b 2 a").query_tokens(model.trace("a 1 b 2 a").streams[0]).ids])
    trace = model.follow(ids, prompt=3)
    likely, ranks = plain_chances(copy.deepcopy(model.hf_model), {"input_ids": ids}, ids, 3)
    table = model.chances(trace)
    assert table.position.tolist() == [*range(3, ids.shape[1])]
    assert_close(torch.tensor(table.probability.to_numpy()).log(), likely, rtol=0, atol=1e-4)
    assert table["rank"].tolist() == ranks.tolist()


def test_an_encoder_decoders_output_has_chances_but_its_ids_arent_followed() -> None:
    model = shipped("translation")
    trace = model.trace("the boy finds the key")
    table = model.chances(trace)
    assert table.token.tolist() == list(trace.query_tokens("cross").labels)
    expected = trace.output.double().softmax(dim=-1)
    for row, token, likely in zip(expected, table.id, table.probability, strict=True):
        assert likely == pytest.approx(float(row[token]))
    with pytest.raises(av.UnsupportedModel, match="encoder–decoder; pass its decoder's ids to trace_ids"):
        model.follow([1, 2, 3], prompt=1)


@pytest.mark.parametrize("family", ["llava", "gemma3", "qwen2_vl"])
def test_what_a_model_generates_beside_an_image_is_followed(family: str) -> None:
    model = av.wrap(copy.deepcopy(tiny_of(family)), WHOLE[family]())
    plain: Any = copy.deepcopy(tiny_of(family))
    plain.set_attn_implementation("eager")
    tensors = tensors_of(WHOLE[family](), text_of(family), [PIXELS])
    options: dict[str, Any] = {"bad_words_ids": [[IMAGE]], "pad_token_id": 0, "num_beams": 2, "do_sample": False}
    with torch.no_grad():
        ids = plain.generate(**tensors, max_new_tokens=4, **options)
    prompt = tensors["input_ids"].shape[1]
    trace = model.follow(ids, prompt=prompt, **{name: one for name, one in tensors.items() if name != "input_ids"})
    assert trace.provenance.generated == ids.shape[1] - prompt > 0
    before = model.trace(text_of(family), picture=av.Picture(PIXELS))
    stream = trace.streams[-1]
    assert trace.query_tokens(stream).regions[:prompt] == before.query_tokens(stream).regions
    for layer in trace.layer_numbers(stream):
        ours, typed = (one.attention(layer, stream).weights for one in (trace, before))
        assert_close(ours[:, :prompt, :prompt], typed, rtol=0, atol=1e-6)
    longer = dict(tensors, input_ids=ids)
    for name, one in tensors.items():
        if one.shape == (1, prompt) and name != "input_ids":
            fill = 1 if name == "attention_mask" else 0
            longer[name] = torch.cat([one, one.new_full((1, ids.shape[1] - prompt), fill)], dim=1)
    likely, ranks = plain_chances(plain, longer, ids, prompt)
    table = model.chances(trace)
    assert table.position.tolist() == [*range(prompt, ids.shape[1])]
    assert table.id.tolist() == ids[0, prompt:].tolist()
    assert_close(torch.tensor(table.probability.to_numpy()).log(), likely, rtol=0, atol=1e-4)
    assert table["rank"].tolist() == ranks.tolist()


def test_a_sampled_word_beside_an_image_is_never_a_placeholder() -> None:
    model = av.wrap(copy.deepcopy(tiny_of("llava")), WHOLE["llava"]())
    picture = av.Picture(PIXELS)
    options: dict[str, Any] = {"sample": True, "temperature": 3.0, "seed": 5, "picture": picture}
    traces = list(model.generate(text_of("llava"), 6, **options))
    *_, again = model.generate(text_of("llava"), 6, **options)
    assert torch.equal(again.output, traces[-1].output)
    table = model.chances(traces[-1])
    assert IMAGE not in table.id.tolist() and len(table) == len(traces) - 1
    *_, ended = model.generate(text_of("llava"), 6, stop=[int(table.id[1])], **options)
    assert ended.provenance.generated <= 2
    with pytest.raises(av.UnusableText, match=r"after the prompt is a placeholder for an image; set prompt="):
        tensors = tensors_of(WHOLE["llava"](), text_of("llava"), [PIXELS])
        ids = tensors.pop("input_ids")
        model.follow(ids, prompt=1, **tensors)


def test_what_cant_be_followed_is_refused_by_name() -> None:
    model = decoder("gpt2")
    for prompt in (0, 4, 1.5, True, "1"):
        with pytest.raises(av.ShapeError, match=f"prompt must be a number of tokens from 1 to 3; got {prompt!r}"):
            model.follow([5, 6, 7], prompt=prompt)  # pyright: ignore[reportArgumentType]
    with pytest.raises(av.ShapeError, match="one row of ids"):
        model.follow(torch.tensor([[5, 6], [7, 8]]), prompt=1)
    with pytest.raises(av.UnusableText, match="knows the ids 0 to 299"):
        model.follow([5, 300], prompt=1)
    with pytest.raises(av.UnsupportedModel, match="reads ids alone; leave out pixel_values"):
        model.follow([5, 6], prompt=1, pixel_values=torch.zeros(1, 3, 4, 4))
    encoder = shipped("all-MiniLM-L6-v2")
    with pytest.raises(av.UnsupportedModel, match="can't follow generated tokens"):
        encoder.follow([5, 6, 7], prompt=1)
    with pytest.raises(av.UnsupportedModel, match="looks ahead; use a decoder"):
        av.wrap(build("bert with a head")).follow([5, 6, 7], prompt=1)


def test_chances_that_no_token_has_are_refused_by_name() -> None:
    model = decoder("gpt2")
    trace = model.trace_ids([5, 6, 7])
    for start in (0, 4, -1, 1.5):
        with pytest.raises(av.ShapeError, match="start must be a position from 1 to 3"):
            model.chances(trace, start)  # pyright: ignore[reportArgumentType]
    with pytest.raises(av.UnsupportedModel, match="only its own traces"):
        shipped("induction").chances(trace)
    *_, last = shipped("induction").generate(REPEATED, 2)
    with pytest.raises(av.TraceError, match="use the trace before merge_words"):
        shipped("induction").chances(av.merge_words(last))
    with pytest.raises(av.UnsupportedModel, match="isn't a decoder"):
        bert = av.wrap(build("bert with a head"))
        bert.chances(bert.trace_ids([5, 6, 7]))
