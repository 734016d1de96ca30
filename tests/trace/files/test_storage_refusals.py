import copy
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from attention_viz.errors import TraceError
from attention_viz.operation import masks
from attention_viz.operation.attention import Attention, attend
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Fidelity, Layer, Provenance, Trace
from tests.trace.files.taken_apart import put, put_together, taken_apart, tampered

pytestmark = pytest.mark.usefixtures("unchecked_module")

N, HEADS, GROUPS, D_K, D_V, D_MODEL = 5, 4, 2, 3, 7, 11
FIDELITY = Fidelity(1.5e-7, 2.5e-8, 1e-5, "itself, <b>plainly</b>", 0.25)


def full_trace() -> Trace:
    """A trace in which every term of a call is there to be broken."""
    torch.manual_seed(0)
    call = attend(
        torch.randn(HEADS, N, D_K),
        torch.randn(GROUPS, N, D_K),
        torch.randn(GROUPS, N, D_V),
        masks.causal(N),
        bias=torch.randn(HEADS, 1, N),
        softcap=30.0,
        sinks=torch.randn(HEADS),
    )
    layer = Layer(call, "0", embeddings=torch.randn(N, D_MODEL), joined=torch.randn(N, D_MODEL))
    tokens = {"decoder": Tokens(("[CLS]", "a", "##b", "…", "[PAD]"), (101, 7, 8, 9, 0), (None, 0, 0, 1, None))}
    provenance = Provenance("a model", "a b", versions={"torch": "2"}, edits=("one",))
    return Trace({"decoder": (layer, layer)}, tokens, tokens, torch.randn(N, D_MODEL), provenance, FIDELITY)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "good.safetensors"
    full_trace().save(path)
    return path


def pickled(path: Path) -> Path:
    path.write_bytes(pickle.dumps({"query": [1, 2, 3]}))
    return path


def foreign(path: Path) -> Path:
    save_file({"weight": torch.ones(3, 3)}, path, metadata={"format": "pt"})
    return path


def without_metadata(path: Path) -> Path:
    save_file({"weight": torch.ones(3, 3)}, path)
    return path


def written(content: bytes) -> Callable[[Path], Path]:
    def make(path: Path) -> Path:
        path.write_bytes(content)
        return path

    return make


def folder(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (pickled, "isn't a readable safetensors file"),
        (foreign, "not a trace: its header has no 'attention_viz' entry"),
        (without_metadata, "not a trace: its header has no 'attention_viz' entry"),
        (written(b""), "isn't a readable safetensors file"),
        (written(b"hello"), "isn't a readable safetensors file"),
        (written(b"\xff" * 64), "isn't a readable safetensors file"),
        (written(struct.pack("<Q", 4) + b"null"), "isn't a readable safetensors file"),
        (folder, "no file at"),
        (lambda path: path, "no file at"),
        (lambda path: path / ("n" * 5000), "isn't a readable safetensors file|no file at"),
        (lambda path: path / "a\0b", "no file at"),
    ],
)
def test_what_is_not_a_trace_is_refused_in_plain_words(
    make: Callable[[Path], Path], message: str, tmp_path: Path
) -> None:
    with pytest.raises(TraceError, match=message) as raised:
        Trace.load(make(tmp_path / "file"))
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


@settings(max_examples=60)
@given(st.data())
def test_no_bit_of_a_file_changes_unnoticed(saved: Path, data: st.DataObject) -> None:
    raw, flipped = bytearray(saved.read_bytes()), saved.with_name("flipped")
    bits = data.draw(st.sets(st.integers(0, 8 * len(raw) - 1), min_size=1, max_size=4))
    for bit in bits:
        raw[bit // 8] ^= 1 << bit % 8
    flipped.write_bytes(raw)
    with pytest.raises(TraceError):
        Trace.load(flipped)


def test_a_number_that_changed_in_the_file_is_told_in_plain_words(saved: Path) -> None:
    raw, flipped = bytearray(saved.read_bytes()), saved.with_name("flipped")
    raw[-1] ^= 1
    flipped.write_bytes(raw)
    with pytest.raises(TraceError, match="flipped is damaged: its checksum is wrong"):
        Trace.load(flipped)


@settings(max_examples=60)
@given(st.data())
def test_a_truncated_or_scratched_file_loads_or_is_refused_and_nothing_else(saved: Path, data: st.DataObject) -> None:
    raw = bytearray(put_together(saved.with_name("older"), *taken_apart(saved)[::2]).read_bytes())
    if data.draw(st.booleans()):
        raw = raw[: data.draw(st.integers(0, len(raw) - 1))]
    else:
        raw[data.draw(st.integers(0, len(raw) // 2))] = data.draw(st.integers(0, 255))
    broken = saved.with_name("broken")
    broken.write_bytes(raw)
    use(broken)


def use(path: Path) -> None:
    """Load a file and look at everything in it; a refusal with a message is as good."""
    try:
        trace = Trace.load(path)
    except TraceError as error:
        assert str(error)
        return
    for stream in trace.streams:
        assert len(trace.query_tokens(stream)) == trace.weights(0, 0, stream).shape[0]
        for layer in trace.layers[stream]:
            assert isinstance(layer.attention, Attention) and layer.attention.output.ndim == 3
    assert isinstance(trace.fidelity.ok, bool) and repr(trace)
    trace.save(path.with_name("saved again"))


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value in a header."""
    inside = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [path, *(place for key, value in inside for place in places(value, (*path, key)))]


values = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        3,
        0.5,
        float("nan"),
        float("inf"),
        10**400,
        "",
        "t0000",
        "t0003",
        "t9999",
        "<b>",
        [],
        [1],
        {},
        {"a": 1},
        [[]],
    ]
)


@settings(max_examples=150)
@given(st.data())
def test_a_tampered_header_loads_or_is_refused_and_nothing_else(saved: Path, data: st.DataObject) -> None:
    def change(header: dict[str, Any]) -> object:
        *way, last = data.draw(st.sampled_from(places(header)[1:]))
        node: Any = header
        for step in way:
            node = node[step]
        if data.draw(st.booleans()):
            node[last] = copy.deepcopy(data.draw(values))
        else:
            del node[last]
        return None

    use(tampered(saved, change))


LAYER = ("streams", "decoder", "layers", 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("format", 8), "trace format 8; this version reads formats 1, 2, 3, 4, 5, 6 and 7"),
        (put("format", 4), "lacks or garbles 'rounded'"),
        (
            put("provenance", "stored", "t0000"),
            "an unknown part, 't0000'; a file keeps terms or weights, in float16 or float32",
        ),
        (put("provenance", "stored", "weights, "), "an unknown part, ''"),
        (put("provenance", "stored_weight_error", float("nan")), "from the run must be a number from 0; got nan"),
        (put("provenance", "stored_output_error", -1), "from the run must be a number from 0; got -1.0"),
        (put("provenance", "generated", 10**30), "generated 1000000000000000000000000000000 of 5 tokens"),
        (put("provenance", "generated", -1), "generated -1 of 5 tokens"),
        (put("streams", {}), "got none"),
        (put("streams", [1]), "garbles"),
        (put("streams", "decoder", "layers", []), "the decoder has none"),
        (put("streams", "decoder", "queries", "labels", ["a"]), "ids needs 1 entries, one per token; got 5"),
        (put("streams", "decoder", "queries", "labels", 1, {"a": 1}), "which should be str"),
        (put("streams", "decoder", "queries", "ids", 0, float("inf")), "inf, which should be int"),
        (put("streams", "decoder", "queries", "special", 0, "false"), "'false', which should be bool"),
        (put(*LAYER, "scale", float("nan")), "scale must be a finite number"),
        (put(*LAYER, "causal", True), "a causal mask needs"),
        (put(*LAYER, "scale", 10**400), "garbles"),
        (put(*LAYER, "softcap", 0), "softcap must be"),
        (put(*LAYER, "tensors", "query", "t9999"), "'t9999'"),
        (put(*LAYER, "tensors", "mask", "t0000"), "a layer has the wrong tensors"),
        (put(*LAYER, "tensors", {"query": "t0000"}), "a layer has the wrong tensors, query"),
        (put(*LAYER, "tensors", "allowed", "t0000"), "allowed must be boolean"),
        (put(*LAYER, "tensors", "joined", "t0000"), r"needs joined of \(query, d_model\)"),
        (put(*LAYER, "tensors", "value", "t0003"), "same length|multiple|broadcast|one floating-point dtype"),
        (put("output", "t0000"), r"the output must be .*\(position, width\)"),
        (put("provenance", "model", None), "which should be str"),
        (put("provenance", "versions", "torch", 2), "2, which should be str"),
        (put("fidelity", "bound", "wide"), "'wide', which should be float"),
        (put("fidelity", "bound", float("nan")), "'bound': nan"),
        (put("fidelity", "weight_error", -1), "'weight_error': -1.0"),
        (put("streams", "decoder", "queries", "place", [[0, 1e308]] * 5), "1 rows × 100,000,"),
        (put("streams", "decoder", "keys", "place", [[20_000, 20_000]] * 5), "20,001 rows × 20,001 columns"),
        (put("streams", "decoder", "keys", "place", [[0, -5], *[None] * 4]), "whole numbers from 0"),
        (put("streams", "decoder", "keys", "place", [[0, 0], [1.5], *[None] * 3]), "got lengths 1 and 2"),
        (put("streams", "decoder", "keys", "place", [[1, 2, 3]] * 5), "got lengths 3"),
        (put("streams", "decoder", "keys", "place", [[0.5, 0], *[None] * 4]), "whole numbers from 0"),
        (lambda header: "[" * 100_000, "isn't a readable safetensors file"),
        (lambda header: "{", "isn't a readable safetensors file"),
        (lambda header: "5", "not a trace"),
        (lambda header: "null", "not a trace"),
    ],
)
def test_a_tampered_header_is_refused_in_plain_words(
    saved: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    with pytest.raises(TraceError, match=message):
        Trace.load(tampered(saved, change))


def test_tensors_of_other_shapes_than_the_header_says_are_refused(saved: Path) -> None:
    header, ours, body = taken_apart(saved)
    query = ours["streams"]["decoder"]["layers"][0]["tensors"]["query"]
    header[query]["shape"] = [HEADS, D_K, N]
    with pytest.raises(TraceError, match="same width d_k"):
        Trace.load(put_together(saved.with_name("turned"), header, body))


@pytest.mark.parametrize("kind", ["BOOL", "I8", "U8", "F8_E4M3", "F8_E5M2", "F8_E8M0"])
@pytest.mark.parametrize("what", [("query", "key", "value"), ("embeddings",), ("joined",), ("bias",), ("sinks",), ()])
def test_numbers_that_cannot_be_computed_with_are_refused(saved: Path, what: tuple[str, ...], kind: str) -> None:
    header, ours, body = taken_apart(saved)
    tensors = ours["streams"]["decoder"]["layers"][0]["tensors"]
    for name in [tensors[one] for one in what] or [ours["output"]]:
        begin, end = header[name]["data_offsets"]
        width = (end - begin) // torch.Size(header[name]["shape"]).numel()
        header[name] |= {"dtype": kind, "shape": [*header[name]["shape"][:-1], header[name]["shape"][-1] * width]}
    with pytest.raises(TraceError, match="broken trace"):
        Trace.load(put_together(saved.with_name("kinds"), header, body))
