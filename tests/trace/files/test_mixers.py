"""Layers without a softmax in files and tables: exact, bounded, and refused by name if a file was tampered with."""

import copy
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load

import attention_viz as av
from attention_viz.errors import AttentionVizWarning, ShapeError, TraceError
from attention_viz.operation.terms import terms_of
from attention_viz.trace.export import to_safetensors, trace_in_html
from attention_viz.trace.layers import MixerLayer
from attention_viz.trace.trace import Trace
from tests.analysis.mixed import KINDS, TOKENS, mixed_trace
from tests.trace.files.taken_apart import put, put_together, taken_apart, tampered
from tests.trace.files.test_storage_refusals import places, values

pytestmark = pytest.mark.usefixtures("unchecked_module")

TERMS = terms_of(av.TokenMixer)


def loaded(trace: Trace, path: Path, **options: Any) -> Trace:
    trace.save(path, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AttentionVizWarning)
        return Trace.load(path)


def every_kind() -> Trace:
    """A trace with every term of a mixer, in layers that are put together by hand."""
    torch.manual_seed(2)
    base, n = mixed_trace("bamba"), TOKENS
    query, key, value = torch.randn(2, n, 4), torch.randn(2, n, 4), torch.randn(2, n, 3)
    row, decay = torch.rand(2, n, 1), -torch.rand(2, n, 1)
    allowed = torch.rand(n, n) < 0.8
    mixers = (
        av.TokenMixer("mLSTM", query, key, value, decay, row, floor=1 + row, scale=0.5, epsilon=1e-6),
        av.TokenMixer("YOSO", query, key, value, gate=row, allowed=allowed, exponent=9.0),
        av.TokenMixer("Fourier", query[:1, :, :1], key[:1, :, :1], value, factor=torch.randn(2, n, n)),
        av.TokenMixer("convolution", query, key, value, skip=torch.randn(2), taps=torch.rand(2, 1, 4), per="channel"),
    )
    return base.derived(mixers={"mixer": tuple(MixerLayer(one, str(at)) for at, one in enumerate(mixers))})


@pytest.mark.parametrize("what", ["all", "terms"])
@pytest.mark.parametrize("trace", [every_kind, *((lambda name=name: mixed_trace(name)) for name in KINDS)])
def test_a_file_keeps_each_term_and_fact_exactly(trace: Callable[[], Trace], what: str, tmp_path: Path) -> None:
    own = trace()
    found = loaded(own, tmp_path / "trace.safetensors", what=what)
    assert found.streams == own.streams and found.layer_numbers("mixer") == own.layer_numbers("mixer")
    assert not any("softmax" in note for note in found.provenance.notes)
    for one, other in zip(own.mixers["mixer"], found.mixers["mixer"], strict=True):
        assert (one.label, one.mixer.kind, one.mixer.per) == (other.label, other.mixer.kind, other.mixer.per)
        for term in TERMS:
            mine, theirs = getattr(one.mixer, term.name), getattr(other.mixer, term.name)
            alike = (
                torch.equal(mine, theirs) and mine.dtype == theirs.dtype
                if isinstance(mine, torch.Tensor)
                else mine == theirs
            )
            assert alike, term.name
        torch.testing.assert_close(one.mixer.weights, other.mixer.weights, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", KINDS)
def test_weights_alone_and_rounded_numbers_state_how_far_they_are(name: str, tmp_path: Path) -> None:
    own, mixer = mixed_trace(name), mixed_trace(name).attention(0, "mixer")
    alone = loaded(own, tmp_path / "alone", what="weights")
    assert torch.equal(alone.attention(0, "mixer").weights, mixer.weights)
    with pytest.raises(ShapeError, match="only the weights are known here, not the values"):
        _ = alone.attention(0, "mixer").contributions
    for options in ({"dtype": "float16"}, {"dtype": "float16", "what": "weights"}):
        rounded = loaded(own, tmp_path / "rounded", **options)
        off = float((rounded.attention(0, "mixer").weights - mixer.weights).abs().max())
        attention = float((rounded.attention(1).weights - own.attention(1).weights).abs().max())
        assert 0 < off and rounded.provenance.stored_weight_error == pytest.approx(max(off, attention), rel=1e-3)
        assert rounded.attention(0, "mixer").query.dtype == torch.float32
    assert loaded(alone, tmp_path / "again").attention(0, "mixer").weights.equal(mixer.weights)


def test_some_layers_keep_their_mixers_and_numbers(tmp_path: Path) -> None:
    own = every_kind()
    some = loaded(own, tmp_path / "some", layers=[1, 3])
    assert (some.layer_numbers("decoder"), some.layer_numbers("mixer")) == ((1,), (1, 3))
    assert some.attention(3, "mixer").kind == "convolution"
    assert loaded(mixed_trace("jamba"), tmp_path / "none", layers=[1]).streams == ("decoder",)
    alone = loaded(mixed_trace("jamba"), tmp_path / "mixers", layers=[0])
    assert alone.streams == ("mixer",) and alone.query_tokens() == mixed_trace("jamba").query_tokens("mixer")
    with pytest.raises(ShapeError, match="can't keep layer 9"):
        own.save(tmp_path / "nothing", layers=[1, 9])


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mixers") / "good.safetensors"
    every_kind().save(path)
    return path


def put_in(layer: int, *way: Any) -> Callable[[dict[str, Any]], None]:
    """A change in a layer of the mixers, that puts the last argument where the others lead."""
    return put("mixers", "mixer", "layers", layer, *way)


def with_output(layer: int, name: str) -> Callable[[dict[str, Any]], None]:
    """A change that takes the output, (position, width), for a mixer's tensor."""
    return lambda ours: put_in(layer, "tensors", name, ours["output"])(ours)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put_in(0, "kind", "softmax"), "mixes by 'softmax' per 'head', which this version doesn't know"),
        (put_in(0, "kind", 3), "which should be str"),
        (put_in(0, "per", "token"), "per 'token', which this version doesn't know"),
        (put_in(0, "scale", float("nan")), "finite numbers"),
        (put_in(0, "epsilon", -1.0), "an epsilon from 0"),
        (put_in(0, "epsilon", "x"), "which should be float"),
        (put_in(1, "exponent", 0.0), "an exponent above 0"),
        (put_in(1, "exponent", float("inf")), "finite numbers"),
        (put_in(0, "tensors", "query", "t9999"), "'t9999'"),
        (put_in(0, "tensors", {"query": "t0000"}), "a layer has the wrong tensors, query"),
        (put_in(0, "tensors", "state", "t0000"), "a layer has the wrong tensors"),
        (put_in(0, "tensors", {"weights": "t0000"}), "each of 8 positions needs a query; got 21"),
        (with_output(0, "weights"), r"needs weights \(head, query, key\) alone"),
        (
            lambda ours: put_in(3, "tensors", "skip", ours["output"])(ours),
            "skip of a convolution layer has an impossible shape",
        ),
        (with_output(3, "taps"), "taps needs the axes"),
        (with_output(1, "allowed"), "allowed needs a tensor"),
        (with_output(0, "key"), "query and key need the same width; got 4 and 97"),
        (lambda ours: ours["mixers"].update(foo=ours["mixers"].pop("mixer")), "named mixer, mixer 2"),
        (lambda ours: ours["mixers"].update(mixer={"layers": []}), "named mixer, mixer 2"),
        (lambda ours: ours.update(mixers=[1]), "which should be dict"),
        (
            lambda ours: ours["mixers"]["mixer"].update(layers=ours["mixers"]["mixer"]["layers"] * 200),
            "holds at most 512",
        ),
    ],
)
def test_a_tampered_mixer_is_refused_by_name(
    saved: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    with pytest.raises(TraceError, match=message):
        Trace.load(tampered(saved, change))


@settings(max_examples=60)
@given(st.data())
def test_a_tampered_mixer_loads_or_is_refused_and_nothing_else(saved: Path, data: st.DataObject) -> None:
    def change(ours: dict[str, Any]) -> None:
        *way, last = data.draw(st.sampled_from(places(ours["mixers"])[1:]))
        node: Any = ours["mixers"]
        for step in way:
            node = node[step]
        if data.draw(st.booleans()):
            node[last] = copy.deepcopy(data.draw(values))
        else:
            del node[last]

    try:
        found = Trace.load(tampered(saved, change))
    except TraceError as error:
        assert str(error)
        return
    for stream in found.mixers:
        for layer in found.layer_numbers(stream):
            mixer = found.attention(layer, stream)
            assert mixer.weights.shape == mixer.shape and mixer.output.shape[-2] == TOKENS
    found.save(saved.with_name("saved again"))


@pytest.mark.parametrize(
    ("shape", "message"),
    [([2**40, TOKENS, 0], "value of a mLSTM layer has an impossible shape"), ([2, 3, TOKENS], "value needs the axes")],
)
def test_a_shape_that_no_kernel_has_is_refused(saved: Path, shape: list[int], message: str) -> None:
    header, ours, body = taken_apart(saved)
    value = header[ours["mixers"]["mixer"]["layers"][0]["tensors"]["value"]]
    begin, end = value["data_offsets"]
    if not shape[-1]:
        # A tensor without a number, of as many heads as can be written.
        other = header["empty"] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body)]}
        assert end > begin and other
        ours["mixers"]["mixer"]["layers"][0]["tensors"]["value"] = "empty"
        header["__metadata__"]["attention_viz"] = ""
    else:
        value["shape"] = shape
    with pytest.raises(TraceError, match=message):
        Trace.load(put_together(saved.with_name("shapes"), header, body, ours))


def test_more_channels_than_any_model_has_are_refused(monkeypatch: pytest.MonkeyPatch, saved: Path) -> None:
    monkeypatch.setattr("attention_viz.trace.files.facts.MOST_CHANNELS", 1)
    with pytest.raises(TraceError, match="2 channels; a file holds at most 1"):
        Trace.load(saved)
    with pytest.raises(TraceError, match="2 channels; a file holds at most 1"):
        every_kind().save(saved.with_name("more"))


@pytest.mark.parametrize("name", KINDS)
def test_a_table_has_the_signed_weights_of_each_stream(name: str) -> None:
    own = mixed_trace(name)
    table = own.table(stream="mixer")
    heads = own.head_count(0, "mixer")
    assert len(table) == heads * TOKENS**2 and table["weight"].min() < 0
    row = table[(table["head"] == heads - 1) & (table["query"] == 9) & (table["key"] == 4)].iloc[0]
    assert row["weight"] == own.weights(0, heads - 1, "mixer")[9, 4].item()
    assert (row["query_token"], row["key_token"]) == (own.query_tokens().labels[9], own.key_tokens().labels[4])
    both = own.table()
    assert both.groupby("stream").size().to_dict() == {"decoder": 4 * TOKENS**2, "mixer": heads * TOKENS**2}
    assert set(own.table(layer=0)["stream"]) == {"mixer"} and set(own.table(layers=[1])["stream"]) == {"decoder"}
    with pytest.raises(TraceError, match="no layer 7"):
        own.table(layer=7)
    assert "layer 0 (" in trace_in_html(own) and f"{heads} " in trace_in_html(own)


def test_a_heads_tensors_have_its_terms_and_signed_weights() -> None:
    own = mixed_trace("bamba")
    found = load(to_safetensors(own, 0, 3, "mixer"))
    assert found.keys() == {"query", "key", "value", "decay", "write", "skip", "weights", "output"}
    assert torch.equal(found["weights"], own.weights(0, 3, "mixer"))
    assert torch.allclose(found["weights"] @ found["value"], found["output"], atol=1e-5)
