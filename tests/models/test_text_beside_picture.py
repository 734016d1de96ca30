"""A text beside a picture, read by real processors and tiny models with random weights."""

import copy
import functools
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor

import attention_viz as av
from attention_viz.models.model import AttentionModel
from scripts.tiny import scaled

WORDS = [str(word) for word in "[PAD] [UNK] <s> </s> <image> what is on this picture ? a cat dog mat of the".split()]
PICTURE = av.Picture(np.random.default_rng(3).integers(0, 256, (48, 64, 3), dtype=np.uint8))
PLACES = [(float(row), float(column)) for row in range(4) for column in range(4)]
VISION: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 32,
    "patch_size": 8,
}
TEXT: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": len(WORDS),
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 3,
}


def tokenizer() -> Any:
    made: Any = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", bos_token="<s>", eos_token="</s>",
        extra_special_tokens={"image_token": "<image>"},
    )  # fmt: skip


def images() -> Any:
    return transformers.CLIPImageProcessor(size={"height": 32, "width": 32}, do_center_crop=False)


def clip() -> tuple[Any, Any]:
    config = transformers.CLIPConfig(text_config=TEXT, vision_config=VISION, projection_dim=16)
    return transformers.CLIPModel(config), transformers.CLIPProcessor(images(), tokenizer())


def git() -> tuple[Any, Any]:
    config = transformers.GitConfig(vision_config=VISION, **TEXT)
    return transformers.GitForCausalLM(config), transformers.GitProcessor(images(), tokenizer())


def llava(strategy: str = "default") -> tuple[Any, Any]:
    vision = transformers.CLIPVisionConfig(**VISION)
    made: Any = transformers.LlavaConfig
    config = made(
        vision_config=vision,
        text_config=transformers.LlamaConfig(**TEXT),
        image_token_id=4,
        vision_feature_select_strategy=strategy,
    )
    processor = transformers.LlavaProcessor(
        images(), tokenizer(), patch_size=8, vision_feature_select_strategy=strategy, num_additional_image_tokens=1
    )
    return transformers.LlavaForConditionalGeneration(config), processor


@functools.cache
def wrapped(make: Any) -> tuple[AttentionModel, Any, Any]:
    torch.manual_seed(5)
    model, processor = make()
    model = scaled(model.float().eval(), 4)
    return av.wrap(copy.deepcopy(model), processor), model, processor


def eager(make: Any, text: str) -> Any:
    """What a model itself says to a text and the picture."""
    _, model, processor = wrapped(make)
    tensors = processor(text=text, images=Image.fromarray(PICTURE.pixels), return_tensors="pt")
    model.set_attn_implementation("eager")
    with torch.no_grad():
        return model(**{name: one for name, one in tensors.items() if isinstance(one, Tensor)}, output_attentions=True)


def same(trace: av.Trace, stream: str, theirs: Any) -> None:
    assert len(theirs) == 2
    for layer, weights in enumerate(theirs):
        assert torch.allclose(trace.attention(layer, stream).weights, weights[0], atol=1e-5)


def test_two_towers_read_a_text_beside_a_picture() -> None:
    wrapping, *_ = wrapped(clip)
    trace = wrapping.trace("a cat on the mat", picture=PICTURE)
    assert trace.streams == ("picture", "decoder")
    assert trace.fidelity.ok
    patches, words = trace.query_tokens("picture"), trace.query_tokens("decoder")
    assert patches.labels[0] == "[CLS]"
    assert list(patches.place[1:]) == PLACES
    assert words.labels == ("a", "cat", "on", "the", "mat")
    assert words.ids == tuple(WORDS.index(word) for word in words.labels)
    assert not words.placed
    assert trace.provenance.text == "a cat on the mat"
    assert trace.provenance.picture == "picture, 64 × 48 pixels"
    told = eager(clip, "a cat on the mat")
    assert trace.provenance.output in told
    assert trace.output.reshape(-1) == pytest.approx(told[trace.provenance.output].reshape(-1), abs=1e-5)
    same(trace, "picture", told.vision_model_output.attentions)
    same(trace, "decoder", told.text_model_output.attentions)


@pytest.mark.parametrize(("strategy", "before"), [("default", 0), ("full", 1)])
def test_one_tower_has_the_patches_where_the_text_has_its_place_for_them(strategy: str, before: int) -> None:
    make = functools.partial(llava, strategy)
    wrapping, *_ = wrapped(make)
    text = "what is <image> this ?"
    trace = wrapping.trace(text, picture=PICTURE)
    assert trace.streams == ("picture", "decoder")
    assert trace.fidelity.ok
    tokens = trace.query_tokens("decoder")
    assert tokens.labels[:2] == ("what", "is")
    assert tokens.labels[-2:] == ("this", "?")
    assert list(tokens.place) == [*[None] * (2 + before), *PLACES, None, None]
    assert tokens.labels[2 + before] == "0,0"
    assert not any(tokens.special[2 + before : 18 + before])
    assert tokens.ids is None
    same(trace, "decoder", eager(make, text).attentions)


def test_a_text_without_a_place_for_its_picture_gets_one_before_it_and_says_so() -> None:
    wrapping, *_ = wrapped(llava)
    trace = wrapping.trace("what is this ?", picture=PICTURE)
    assert list(trace.query_tokens("decoder").place[:16]) == PLACES
    assert any("<image> was put before it" in told for told in trace.provenance.notes)
    assert trace.provenance.text == "what is this ?"


def test_a_model_that_puts_the_picture_before_the_words_has_both_on_its_axis() -> None:
    wrapping, *_ = wrapped(git)
    trace = wrapping.trace("a cat on", picture=PICTURE)
    assert trace.streams == ("picture", "encoder")
    tokens = trace.query_tokens("encoder")
    assert list(tokens.place) == [None, *PLACES, None, None, None]
    assert tokens.labels == ("[CLS]", *(f"{row:g},{column:g}" for row, column in PLACES), "a", "cat", "on")
    same(trace, "encoder", eager(git, "a cat on").attentions)


def test_what_is_asked_of_a_trace_of_both_works() -> None:
    wrapping, *_ = wrapped(llava)
    trace = wrapping.trace("what is this ?", picture=PICTURE)
    assert len(av.head_table(trace, "decoder")) == 8
    assert av.findings(trace) is not None
    assert av.gradient(wrapping, trace, stream="decoder").shape == (2, 4, 20, 20)
    edited = wrapping.trace("what is this ?", picture=PICTURE, edits=[av.Block(19, 3, stream="decoder")])
    assert float(edited.weights(0, 0, "decoder")[19, 3]) == 0


def test_a_trace_of_both_comes_back_from_its_file(tmp_path: Any) -> None:
    wrapping, *_ = wrapped(llava)
    trace = wrapping.trace("what is this ?", picture=PICTURE)
    trace.save(tmp_path / "both.safetensors")
    again = av.Trace.load(tmp_path / "both.safetensors")
    assert again.query_tokens("decoder") == trace.query_tokens("decoder")
    assert (again.provenance.text, again.provenance.picture) == ("what is this ?", "picture, 64 × 48 pixels")


Asked = Callable[[AttentionModel], object]
HALVES: list[tuple[Asked, type[Exception], str]] = [
    (lambda model: model.trace("a cat"), av.UnusableText, "reads a text with an image"),
    (lambda model: model.trace(PICTURE), av.UnusableText, "got an image alone"),
    (lambda model: model.trace("", picture=PICTURE), av.UnusableText, "type at least one word"),
    (lambda model: model.trace("<image> <image>", picture=PICTURE), av.UnusableText, "2 places"),
    (lambda model: model.trace("a", picture=cast("Any", "cat.png")), av.UnusablePicture, "picture= takes av.Picture"),
    (lambda model: model.trace("a", "b", picture=PICTURE), av.UnusableText, "leave out the second text"),
    (lambda model: model.trace("a", picture=PICTURE, target="b"), av.UnsupportedModel, "isn't an encoder–decoder"),
]


@pytest.mark.parametrize(("ask", "error", "told"), HALVES)
def test_half_of_what_is_needed_or_more_is_refused(ask: Asked, error: type[Exception], told: str) -> None:
    wrapping, *_ = wrapped(llava)
    with pytest.raises(error, match=told):
        ask(wrapping)


def test_a_model_that_shuffles_its_patches_has_them_where_it_put_them() -> None:
    # As many positions as patches, in another order.
    order = torch.randperm(16, generator=torch.Generator().manual_seed(0))

    def shuffled() -> tuple[Any, Any]:
        model, processor = llava()

        def shuffle(_module: object, _inputs: object, output: Tensor) -> Tensor:
            return output[:, order]

        model.model.multi_modal_projector.register_forward_hook(shuffle)
        return model, processor

    trace = wrapped(shuffled)[0].trace("<image> a cat", picture=PICTURE)
    assert list(trace.query_tokens("decoder").place[:16]) == [PLACES[at] for at in order.tolist()]


def test_a_picture_beside_a_text_for_a_model_that_reads_text_alone_is_refused() -> None:
    model = av.wrap(transformers.LlamaForCausalLM(transformers.LlamaConfig(**TEXT)).eval(), tokenizer())
    with pytest.raises(av.UnusablePicture, match="reads only text"):
        model.trace("a cat", picture=PICTURE)
