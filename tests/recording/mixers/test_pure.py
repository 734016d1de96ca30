"""Models without any softmax attention: their mixers alone are the trace."""

from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast

import attention_viz as av
from attention_viz.errors import AttentionVizError, ShapeError, TraceError, UnsupportedModel
from tests.recording.mixers.hybrids import build

COUNT = 30
IDS = (torch.arange(COUNT)[None] * 7) % 97


def trace_of(name: str, **options: Any) -> av.Trace:
    return av.wrap(build(name)).trace_ids(IDS, **options)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("mamba2", "SSD"),
        ("mamba", "selective scan"),
        ("falcon_mamba", "selective scan"),
        ("xlstm", "mLSTM"),
        ("fnet", "Fourier"),
        ("yoso", "YOSO"),
    ],
)
def test_a_model_without_softmax_attention_has_its_mixers(name: str, kind: str) -> None:
    model = build(name)
    wrapped = av.wrap(model)
    trace = wrapped.trace_ids(IDS)
    assert trace.streams == wrapped.streams == ("mixer",) and trace.attention_streams == () and not trace.layers
    assert trace.stream() == "mixer" and set(trace.queries) == set(trace.keys) == {"mixer"}
    assert trace.layer_numbers() == wrapped.layer_numbers() == (0, 1) and trace.layer_count() == 2
    mixer = trace.attention(1)
    assert isinstance(mixer, av.TokenMixer) and mixer.kind == kind
    assert trace.head_count(1) == mixer.shape[0] == wrapped.heads["mixer"][1]
    assert torch.equal(trace.weights(1, 1), mixer.weights[1])
    assert trace.label(1) == "1" and len(trace.query_tokens()) == len(trace.key_tokens()) == COUNT
    assert kind in repr(trace) and f"{COUNT} × {COUNT}" in repr(trace) and kind in trace._repr_html_()
    assert trace.nbytes > 0 and trace.output.shape[0] == COUNT
    assert trace.fidelity.ok and trace.fidelity.output_error == 0 and "own kernel" in trace.fidelity.reference
    with torch.no_grad():
        plain = model(IDS, **({"use_cache": False} if name == "xlstm" else {}))[0][0]
    assert torch.allclose(trace.output, plain, atol=1e-5)


def test_what_needs_a_softmax_says_that_there_is_none() -> None:
    trace = trace_of("mamba2")
    tries = (
        lambda: av.head_table(trace),
        lambda: av.roles(trace),
        lambda: av.rollout(trace),
        lambda: av.merge_words(trace),
        trace.relevance,
        trace.value_zeroing,
        lambda: trace.layer(0),
        lambda: trace.check_every_layer("rollout", "mixer"),
        lambda: trace.attention_stream("mixer"),
    )
    for one in tries:
        with pytest.raises(AttentionVizError, match="no softmax attention"):
            one()
    assert not trace.differentiable and list(av.findings(trace)) == []


def with_words(name: str) -> Any:
    """A wrapped model with a tokenizer that knows the words w0 to w96."""
    known = {f"w{number}": number for number in range(97)}
    inside = Tokenizer(WordLevel(known, unk_token="w0"))
    inside.pre_tokenizer = WhitespaceSplit()
    return av.wrap(build(name), PreTrainedTokenizerFast(tokenizer_object=inside, unk_token="w0"))


TEXT = " ".join(f"w{number}" for number in IDS[0].tolist())


def test_some_layers_of_mixers_are_kept_by_the_models_number() -> None:
    wrapped = with_words("mamba2")
    whole, one = wrapped.trace(TEXT), wrapped.trace(TEXT, layers=[1])
    assert whole.query_tokens().labels[3] == f"w{IDS[0, 3]}" and whole.fidelity.ok
    assert one.layer_numbers() == (1,) and torch.equal(one.weights(1, 2), whole.weights(1, 2))
    with pytest.raises(TraceError, match="layer 0 has no mixer; choose 1"):
        one.weights(0, 0)
    with pytest.raises(ShapeError, match="can't keep layer 2"):
        wrapped.trace(TEXT, layers=[2])


@pytest.mark.parametrize(
    ("layers", "streams"), [([0], ("mixer",)), ([1], ("decoder",)), ([0, 1], ("decoder", "mixer"))]
)
def test_a_hybrid_keeps_mixers_and_attention_alike(layers: list[int], streams: tuple[str, ...]) -> None:
    wrapped = with_words("qwen3_next")
    whole, some = wrapped.trace(TEXT), wrapped.trace(TEXT, layers=layers)
    assert some.streams == streams and some.fidelity.ok
    for layer in layers:
        assert torch.equal(some.weights(layer, 1), whole.weights(layer, 1))


def test_edits_without_a_stream_mean_the_mixers() -> None:
    model: Any = build("mamba2")
    wrapped = av.wrap(model)
    trace = wrapped.trace_ids(IDS, edits=[av.Ablate(1, 2)])
    skipped = wrapped.trace_ids(IDS, edits=[av.Skip(9)])
    assert not trace.attention(1).head(2).output.any() and trace.attention(0).head(2).output.any()
    assert not skipped.weights(0, 3)[10:, 9].any() and not skipped.weights(1, 3)[10:, 9].any()
    with pytest.raises(ShapeError, match="layer of the mixer"):
        wrapped.trace_ids(IDS, edits=[av.Ablate(5, 2)])


def test_a_trace_of_mixers_alone_can_be_derived_and_listed() -> None:
    trace = trace_of("mamba2")
    for other in (trace.detached(), trace.derived(provenance=trace.provenance), trace.only(), trace.only("mixer")):
        assert torch.equal(other.weights(1, 2), trace.weights(1, 2)) and other.fidelity.ok
    table = trace.table(layer=1, head=2)
    assert table["stream"].unique().tolist() == ["mixer"] and len(trace.table()) == 2 * 8 * COUNT**2
    assert torch.equal(torch.tensor(table["weight"].to_numpy()).view(COUNT, COUNT), trace.weights(1, 2))
    hybrid = trace_of("qwen3_next")
    assert hybrid.only("mixer").streams == ("mixer",) and set(hybrid.table()["stream"]) == {"decoder"}


class Blender(nn.Module):
    """Mixes each token with the one before, as no kernel that is known does."""

    def forward(self, hidden_states: Tensor, *_: object, **__: object) -> Tensor:
        return hidden_states + hidden_states.roll(1, dims=1)


class Bottle(nn.Module):
    """Changes each token by itself."""

    def forward(self, hidden_states: Tensor, *_: object, **__: object) -> Tensor:
        return hidden_states.tanh()


def test_a_layer_that_mixes_unheard_is_refused_by_name() -> None:
    model: Any = build("mamba2")
    model.backbone.layers[1] = Bottle()
    assert av.wrap(model).trace_ids(IDS).layer_numbers() == (0,)
    model.backbone.layers[1] = Blender()
    with pytest.raises(UnsupportedModel, match=r"backbone\.layers\.1 mixes tokens by means that"):
        av.wrap(model)


def test_a_mixer_that_calls_nothing_is_refused_by_name() -> None:
    for name in ("mamba2", "qwen3_next"):
        model: Any = build(name)
        layer = next(one for one in model.modules() if hasattr(one, "mixer") or hasattr(one, "linear_attn"))
        mixer = layer.mixer if hasattr(layer, "mixer") else layer.linear_attn
        mixer.forward = lambda hidden_states, *_, **__: hidden_states
        with pytest.raises(UnsupportedModel, match=f"{type(mixer).__name__} of layer 0 called no kernel"):
            av.wrap(model)
