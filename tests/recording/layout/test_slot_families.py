"""Latents, object queries and virtual tokens, against the weights that the models themselves hand out."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from peft import PrefixTuningConfig, PromptTuningConfig, TaskType, get_peft_model
from torch import Tensor, nn
from transformers import (
    Blip2Config,
    Blip2ForConditionalGeneration,
    DeformableDetrConfig,
    DeformableDetrModel,
    DetrConfig,
    DetrModel,
    LlamaConfig,
    LlamaForCausalLM,
    LxmertConfig,
    LxmertModel,
    PerceiverConfig,
    PerceiverForMaskedLM,
    ResNetConfig,
)

import attention_viz as av
from attention_viz.errors import UnsupportedModel
from tests.recording.layout.test_slots import NEAR, PIXELS, SMALL, sharp

IDS = torch.arange(7, 16)[None]
MASKS = {"unpadded": [1] * 9, "padded left": [0, 0, *[1] * 7], "padded right": [*[1] * 7, 0, 0]}


def perceiver() -> Any:
    torch.manual_seed(0)
    config = PerceiverConfig(
        vocab_size=60,
        max_position_embeddings=16,
        d_model=24,
        d_latents=32,
        num_latents=6,
        num_blocks=2,
        num_self_attends_per_block=2,
        num_self_attention_heads=4,
        num_cross_attention_heads=4,
        qk_channels=16,
        v_channels=32,
        attn_implementation="eager",
    )
    return sharp(PerceiverForMaskedLM(config))


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_a_perceivers_latents_read_the_text_and_each_other(mask: list[int]) -> None:
    model, flags = perceiver(), torch.tensor([mask])
    trace = av.wrap(model).trace_ids(IDS, flags)
    assert trace.streams == ("pooling", "slots", "readout")
    with torch.no_grad():
        theirs = model(input_ids=IDS, attention_mask=flags, output_attentions=True)
    # Of the encoder's blocks, and of the decoder's.
    (first, *_), own = theirs.cross_attentions, theirs.attentions
    torch.testing.assert_close(trace.attention(0, "pooling").weights, first[0], **NEAR)
    for number, weights in zip(trace.layer_numbers("slots"), own, strict=False):
        torch.testing.assert_close(trace.attention(number, "slots").weights, weights[0], **NEAR)
    padded = [at for at, flag in enumerate(mask) if not flag]
    assert float(trace.attention(0, "pooling").weights[..., padded].abs().sum()) == 0
    assert trace.fidelity.ok


def test_a_perceivers_axes_say_what_they_are() -> None:
    trace = av.wrap(perceiver()).trace_ids(IDS)
    latents = tuple(f"latent {number}" for number in range(6))
    assert trace.query_tokens("pooling").labels == trace.key_tokens("slots").labels == latents
    assert trace.key_tokens("readout").labels == latents
    assert trace.key_tokens("pooling").labels == tuple(map(str, range(7, 16)))
    assert trace.query_tokens("readout").names[:2] == ("output query 0", "output query 1")
    assert trace.query_tokens("readout").written[:2] == ("output 0", "output 1")


def test_a_word_is_at_the_key_that_moves() -> None:
    """A name shifted by one position would be at another key."""
    wrapped = av.wrap(perceiver())
    before = wrapped.trace_ids(IDS)
    for at in (0, 4, 8):
        other = IDS.clone()
        other[0, at] = 50
        after = wrapped.trace_ids(other)
        far = (after.attention(0, "pooling").key - before.attention(0, "pooling").key).abs().amax(dim=(0, 2))
        (moved,) = (far > 1e-5).nonzero()[:, 0].tolist()
        assert after.key_tokens("pooling").labels[moved] == "50"


def detr() -> tuple[Any, dict[str, Tensor]]:
    torch.manual_seed(0)
    config = DetrConfig(
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone_config=ResNetConfig(
            embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], out_features=["stage2"], layer_type="basic"
        ),
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        num_queries=5,
        attn_implementation="eager",
    )
    return sharp(DetrModel(config)), {"pixel_values": PIXELS}


def test_detrs_object_queries_attend_to_each_other_and_to_the_image() -> None:
    model, inputs = detr()
    trace = av.wrap(model, inputs=inputs).trace(inputs)
    with torch.no_grad():
        theirs = model(**inputs, output_attentions=True)
    assert set(trace.streams) == {"picture", "pooling", "slots"}
    for stream, weights in (
        ("picture", theirs.encoder_attentions),
        ("slots", theirs.decoder_attentions),
        ("pooling", theirs.cross_attentions),
    ):
        assert trace.layer_numbers(stream) == (0, 1)
        for number, one in enumerate(weights):
            torch.testing.assert_close(trace.attention(number, stream).weights, one[0], **NEAR)
    assert trace.query_tokens("pooling").names[4] == "object query 4"
    assert trace.query_tokens("pooling").written[4] == "query 4"
    assert trace.key_tokens("slots") == trace.query_tokens("pooling")


def test_detr_leaves_out_an_images_padding() -> None:
    model, inputs = detr()
    mask = torch.ones(1, 32, 32, dtype=torch.long)
    mask[..., 16:] = 0
    inputs = {**inputs, "pixel_mask": mask}
    trace = av.wrap(model, inputs=inputs).trace(inputs)
    with torch.no_grad():
        theirs = model(**inputs, output_attentions=True).cross_attentions
    torch.testing.assert_close(trace.attention(1, "pooling").weights, theirs[1][0], **NEAR)
    assert (trace.attention(1, "pooling").weights == 0).any()


def test_sampled_points_are_refused_by_name() -> None:
    torch.manual_seed(0)
    config = DeformableDetrConfig(
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone_config=ResNetConfig(
            embedding_size=8, hidden_sizes=[8, 8, 8, 8], depths=[1] * 4, out_features=["stage2", "stage3", "stage4"],
            layer_type="basic",
        ),
        d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=32, decoder_ffn_dim=32, num_queries=5,
    )  # fmt: skip
    with pytest.raises(UnsupportedModel, match="at sampled points"):
        av.wrap(DeformableDetrModel(config).eval(), inputs={"pixel_values": torch.rand(1, 3, 128, 128)})


def handed_out(module: nn.Module, run: Callable[[], object]) -> Tensor:
    """The weights that an attention module returns, (head, query, key)."""
    found = list[Tensor]()
    handle = module.register_forward_hook(lambda _module, _args, output: found.append(output[1][0]))
    with torch.no_grad():
        run()
    handle.remove()
    return found[-1]


def test_a_q_formers_latents_are_apart_from_the_text() -> None:
    torch.manual_seed(0)
    config = Blip2Config(
        vision_config={**SMALL, "image_size": 32, "patch_size": 8, "initializer_range": 0.1},
        qformer_config={**SMALL, "encoder_hidden_size": 32, "cross_attention_frequency": 1, "vocab_size": 60},
        text_config={
            "model_type": "opt", "vocab_size": 60, "hidden_size": 32, "ffn_dim": 48, "num_hidden_layers": 2,
            "num_attention_heads": 4, "max_position_embeddings": 64, "word_embed_proj_dim": 32,
        },
        num_query_tokens=5, image_token_index=59, attn_implementation="eager",
    )  # fmt: skip
    model: Any = sharp(Blip2ForConditionalGeneration(config))
    inputs = {"pixel_values": PIXELS, "input_ids": torch.tensor([[*[59] * 5, 7, 9, 11]])}
    trace = av.wrap(model, inputs=inputs).trace(inputs)
    assert set(trace.streams) == {"picture", "decoder", "pooling", "slots"}
    for number, layer in enumerate(model.qformer.encoder.layer):
        for stream, module in (("slots", layer.attention), ("pooling", layer.crossattention)):
            theirs = handed_out(module.attention, lambda: model(**inputs))
            torch.testing.assert_close(trace.attention(number, stream).weights, theirs, **NEAR)
    assert trace.query_tokens("slots").labels == tuple(f"latent {number}" for number in range(5))
    assert trace.key_tokens("pooling").patches == trace.key_tokens("picture").patches != {}


TUNINGS: dict[str, Callable[..., Any]] = {"prefix": PrefixTuningConfig, "prompt": PromptTuningConfig}


def tuned(kind: str) -> Any:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=100,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        attn_implementation="eager",
    )
    model: Any = sharp(LlamaForCausalLM(config))
    return get_peft_model(model, TUNINGS[kind](task_type=TaskType.CAUSAL_LM, num_virtual_tokens=3)).eval()


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("kind", TUNINGS)
def test_virtual_tokens_come_before_the_text(kind: str, mask: list[int]) -> None:
    model, flags = tuned(kind), torch.tensor([mask])
    wrapped = av.wrap(model)
    trace = wrapped.trace_ids(IDS, flags)
    with torch.no_grad():
        theirs = model(input_ids=IDS, attention_mask=flags, output_attentions=True)
    real = [at for at, filling in enumerate(trace.query_tokens().padding) if not filling]
    for number, weights in enumerate(theirs.attentions):
        torch.testing.assert_close(trace.attention(number).weights[:, real], weights[0][:, real], **NEAR)
    keys = trace.key_tokens()
    assert keys.names[:3] == ("virtual token 0", "virtual token 1", "virtual token 2")
    assert keys.labels[5:8] == ("9", "10", "11")
    assert keys.written[2] == "virtual 2"
    assert len(trace.query_tokens()) == len(trace.output) == (9 if kind == "prefix" else 12)
    assert wrapped.limit == 61
    with pytest.raises(UnsupportedModel, match="can't be continued"):
        _ = wrapped.generate("x", 2)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("kind", TUNINGS)
def test_a_text_after_virtual_tokens_is_where_its_keys_move(kind: str) -> None:
    wrapped = av.wrap(tuned(kind))
    before = wrapped.trace_ids(IDS)
    for at in (0, 8):
        other = IDS.clone()
        other[0, at] = 50
        after = wrapped.trace_ids(other)
        far = (after.attention(0).key - before.attention(0).key).abs().amax(dim=(0, 2))
        (moved,) = (far > 1e-5).nonzero()[:, 0].tolist()
        assert after.key_tokens().labels[moved] == "50"


@pytest.mark.parametrize("regions", [5, 9])
def test_a_module_that_attends_both_ways_has_a_stream_for_each(regions: int) -> None:
    """LXMERT's layers use one module from words to regions and back, also with as many regions as words."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 4, "vocab_size": 60}
    layers = {"l_layers": 1, "x_layers": 2, "r_layers": 1, "visual_feat_dim": 12}
    model: Any = sharp(LxmertModel(LxmertConfig(**sizes, **layers, attn_implementation="eager")))
    inputs = {
        "input_ids": IDS,
        "attention_mask": torch.ones_like(IDS),
        "visual_feats": torch.randn(1, regions, 12),
        "visual_pos": torch.rand(1, regions, 4),
    }
    trace = av.wrap(model, inputs=inputs).trace(inputs)
    assert trace.streams == ("picture", "encoder", "cross", "cross 2")
    words, seen = tuple(map(str, IDS[0].tolist())), tuple(map(str, range(regions)))
    for stream, queries, keys in (
        ("picture", seen, seen), ("encoder", words, words), ("cross", words, seen), ("cross 2", seen, words),
    ):  # fmt: skip
        assert (trace.query_tokens(stream).labels, trace.key_tokens(stream).labels) == (queries, keys)
    # The modules of each stream, each called as often; of those called twice, words ask first.
    encoder = model.encoder
    own = {
        "picture": [encoder.r_layers[0].attention.self, *(one.visn_self_att.self for one in encoder.x_layers)],
        "encoder": [encoder.layer[0].attention.self, *(one.lang_self_att.self for one in encoder.x_layers)],
        "cross": [one.visual_attention.att for one in encoder.x_layers],
        "cross 2": [one.visual_attention.att for one in encoder.x_layers],
    }
    for stream, modules in own.items():
        assert trace.layer_count(stream) == len(modules)
        for number, module in zip(trace.layer_numbers(stream), modules, strict=True):
            several = softmaxes(module, lambda: model(**inputs))
            theirs = several[1 if stream == "cross 2" else 0]
            torch.testing.assert_close(trace.attention(number, stream).weights, theirs, **NEAR)


def softmaxes(module: Any, run: Callable[[], object]) -> list[Tensor]:
    """The weights that go into a module's dropout in each of its calls, (head, query, key)."""
    found = list[Tensor]()
    handle = module.dropout.register_forward_pre_hook(lambda _module, given: found.append(given[0][0]))
    with torch.no_grad():
        run()
    handle.remove()
    return found
