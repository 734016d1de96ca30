"""Facts that can't be, and those without an end, are refused while a file is read; whatever is written can be read."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import safe_open

from attention_viz.errors import TraceError
from attention_viz.operation import masks
from attention_viz.operation.attention import attend
from attention_viz.trace.decoding import Decoding
from attention_viz.trace.derived import merge_words
from attention_viz.trace.files.facts import MOST_HEADS, MOST_LAYERS
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Fidelity, Layer, Provenance, Trace
from tests.trace.files.taken_apart import put, put_together, taken_apart, tampered

pytestmark = pytest.mark.usefixtures("unchecked_module")

_SAMPLED = {"method": "sampled", "temperature": 0.7, "top_p": 0.9, "seed": 3, "tokens": 2}
N = 5
TOKENS = Tokens(("[CLS]", "a", "##b", "…", "[PAD]"), (101, 7, 8, 9, 0), (None, 0, 0, 1, None))
WAY = ("streams", "decoder")


def trace(tokens: Tokens = TOKENS, layers: int = 2, heads: int = 2, **origin: Any) -> Trace:
    """A small decoder's run of these tokens."""
    torch.manual_seed(0)
    count = len(tokens)
    found = tuple(
        Layer(attend(*torch.randn(3, heads, count, 2), masks.causal(count)), str(number)) for number in range(layers)
    )
    axis, provenance = {"decoder": tokens}, Provenance(**{"model": "a model", "text": "ab …", **origin})
    fidelity = Fidelity(1e-7, 1e-8, 1e-5, "itself", rows=3)
    return Trace({"decoder": found}, axis, axis, torch.randn(count, 3), provenance, fidelity)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("facts") / "good.safetensors"
    trace().save(path)
    return path


def both(name: str, values: list[Any]) -> Callable[[dict[str, Any]], None]:
    """A change of the tokens along both axes."""

    def change(header: dict[str, Any]) -> None:
        for axis in ("queries", "keys"):
            header["streams"]["decoder"][axis][name] = values

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("fidelity", "rows", -5), "compared rows must be from 0 .* got -5"),
        (put("fidelity", "bound", 1e308), r"bound must be from 0 to 0.05; got 1e\+308"),
        (put("fidelity", "reference", "x" * 30_000), "reference has 30,000 characters"),
        (put("provenance", "generated", N + 1), "generated 6 of 5 tokens"),
        (put("provenance", "decoding", [_SAMPLED]), "says how 2 tokens were chosen, but 0 were generated"),
        (put("provenance", "decoding", [_SAMPLED | {"temperature": 0.0}]), "temperature must be a number above 0"),
        (put("provenance", "decoding", [_SAMPLED | {"seed": 2**63}]), "seed must be a whole number from 0"),
        (put("provenance", "decoding", [_SAMPLED | {"method": "guessed"}]), "unknown method 'guessed'"),
        (put("provenance", "decoding", [_SAMPLED | {"tokens": "2"}]), "garbles"),
        (put("provenance", "decoding", {"method": "greedy"}), "garbles"),
        (both("ids", [101, 7, -1, 9, 0]), "has the id -1; ids go from 0"),
        (both("ids", [101, 7, 8, 9, 2**32]), "has the id 4294967296"),
        (both("words", [0, 10**12, 5, 3, -7]), "has the word 1000000000000; 5 tokens have words 0 to"),
        (both("words", [0, 5, 3, 3, 4]), "word 3 follows word 5"),
        (both("words", [0, 0, -7, 1, 1]), "has the word -7"),
        (both("sentence", [0, 0, 7, None, None]), "has the sentence 7; use 0, 1 or None"),
        (both("place", [[1e300], *[None] * 4]), "begins more than 10,000,000 seconds"),
        (put(*WAY, "keys", "labels", ["z"] * N), "must have its queries' labels"),
        (both("labels", ["a", "b\ud800", "c", "d", "e"]), "half a character"),
        (put("provenance", "text", "\udfff"), "half a character"),
        (
            both("labels", ["x" * 3_000_000, "b", "c", "d", "e"]),
            "has 3,000,000 characters; a file holds at most 100,000",
        ),
        (put("provenance", "model", "m" * 10_000), "the run's model has 10,000 characters"),
        (put("provenance", "output", "o" * 10_000), "the run's output has 10,000"),
        (put("provenance", "edits", ["e"] * 20_000), "20,000 edits; a file holds at most 10,000"),
        (put("provenance", "told", ["e" * 50_000]), "one of the notes has 50,000"),
        (put("provenance", "versions", {"v" * 50_000: "1"}), "one of the versions has 50,000"),
        (put("provenance", "text", "t" * 20_000_001), "the text has 20,000,001 characters"),
        (put(*WAY, "layers", 0, "label", "L" * 500), "a layer's label has 500"),
        (put(*WAY, "layers", 0, "bias_parts", {str(one): "t0000" for one in range(99)}), "a bias of 99 parts"),
        (put(*WAY, "kept", {"numbers": [0, 1], "of": 10**9}), "model has 1,000,000,000 layers"),
        (
            put(*WAY, "kept", {"numbers": [0, 1], "of": 2, "every": [0, 1], "without": list(range(2, 10_000))}),
            "names 9,998 layers",
        ),
    ],
)
def test_a_fact_that_cannot_be_is_refused_by_name(
    saved: Path, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    with pytest.raises(TraceError, match=message) as raised:
        Trace.load(tampered(saved, change))
    assert len(str(raised.value)) < 400


def test_a_layer_that_is_named_20000_times_is_refused_at_once(saved: Path) -> None:
    def change(header: dict[str, Any]) -> None:
        layers = header["streams"]["decoder"]["layers"]
        header["streams"]["decoder"]["layers"] = [{**layers[0], "label": str(at)} for at in range(20_000)]

    path = tampered(saved, change)
    began = time.process_time()
    with pytest.raises(TraceError, match="20,000 layers; a file holds at most 512"):
        Trace.load(path)
    assert time.process_time() - began < 2


def test_heads_without_a_number_in_them_are_refused(saved: Path) -> None:
    header, ours, body = taken_apart(saved)
    for layer in ours["streams"]["decoder"]["layers"]:
        del layer["tensors"]["allowed"]
        for name in ("query", "key", "value"):
            header[layer["tensors"][name]] |= {"shape": [10**9, N, 0], "data_offsets": [0, 0]}
    kept = {name: one for name, one in header.items() if name == ours["output"] or name == "__metadata__"}
    begin, end = header[ours["output"]]["data_offsets"]
    empty = {name: one for name, one in header.items() if one.get("data_offsets") == [0, 0]}
    kept[ours["output"]] |= {"data_offsets": [0, end - begin]}
    with pytest.raises(TraceError, match="2,000,000,000 heads in all"):
        Trace.load(put_together(saved.with_name("hollow"), {**kept, **empty}, body[begin:end], ours))


def test_weights_that_layers_share_are_refused(tmp_path: Path) -> None:
    trace().save(tmp_path / "weights", what="weights")

    def change(header: dict[str, Any]) -> None:
        one, other = header["streams"]["decoder"]["layers"]
        other["tensors"]["weights"] = one["tensors"]["weights"]

    with pytest.raises(TraceError, match="2 layers need as many weight tensors; got 1"):
        Trace.load(tampered(tmp_path / "weights", change))


@pytest.mark.parametrize("shape", [(15, 1), (3, 5)])
def test_an_output_of_other_rows_than_tokens_is_refused(saved: Path, shape: tuple[int, int]) -> None:
    header, ours, body = taken_apart(saved)
    header[ours["output"]]["shape"] = list(shape)
    with pytest.raises(TraceError, match=rf"one row per token \(1 or 5\), or one in all; got {shape[0]}"):
        Trace.load(put_together(saved.with_name("rows"), header, body))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: trace(replace(TOKENS, ids=(101, 7, 8, 9, -5))), "has the id -5"),
        (lambda: trace(replace(TOKENS, labels=("x" * 200_000, "b", "c", "d", "e"))), "has 200,000 characters"),
        (lambda: trace(text="\ud834"), "half a character"),
        (lambda: trace(generated=9), "generated 9 of 5 tokens"),
        (lambda: trace(generated=3, decoding=(Decoding(tokens=2),)), "says how 2 tokens were chosen, but 3"),
        (lambda: trace(Tokens.of_ids([0]), layers=MOST_LAYERS + 1), "513 layers"),
        (lambda: trace(Tokens.of_ids([0]), layers=1, heads=MOST_HEADS + 1), "65,537 heads in all"),
    ],
)
def test_what_would_not_be_read_is_not_written(made: Callable[[], Trace], message: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=message):
        made().save(tmp_path / "never")
    assert list(tmp_path.iterdir()) == []


_letters = st.characters(exclude_categories=["Cs"])
_tokens = st.lists(st.text(_letters, max_size=8), min_size=1, max_size=6).flatmap(
    lambda labels: st.builds(
        Tokens,
        st.just(tuple(labels)),
        st.none() | st.tuples(*[st.integers(0, 2**32 - 1)] * len(labels)),
        words=st.lists(st.none() | st.integers(0, 9), min_size=len(labels), max_size=len(labels)).map(_rising),
        special=st.tuples(*[st.booleans()] * len(labels)),
    )
)


def _rising(words: list[int | None]) -> tuple[int | None, ...]:
    known = iter(sorted(word for word in words if word is not None))
    return tuple(None if word is None else next(known) for word in words)


@pytest.mark.filterwarnings("ignore:any")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tokens=_tokens, merged=st.booleans(), what=st.sampled_from(["all", "terms", "weights"]), made=st.integers(0, 3))
def test_whatever_is_saved_loads(tokens: Tokens, merged: bool, what: str, made: int, tmp_path: Path) -> None:
    one = trace(tokens, generated=min(made, len(tokens)))
    one = merge_words(one) if merged else one
    one.save(tmp_path / "any", what=what)
    loaded = Trace.load(tmp_path / "any")
    assert loaded.query_tokens() == one.query_tokens()
    assert loaded.provenance.generated == one.provenance.generated <= len(one.query_tokens())


@pytest.mark.parametrize(
    "tokens",
    [
        # What an encoder–decoder without a head would say next has no id.
        Tokens(("a", "b", "…"), (1, 2, -1)),
        # Words of version 1.0.0: each sentence's own, and numbers that a tokenizer skipped.
        Tokens(("a", "b", "c", "d"), None, words=(0, 7, 0, 3), sentence=(0, 0, 1, 1)),
        Tokens(tuple("ab" * 16_384), tuple(range(32_768)), words=tuple(range(32_768))),
        # A merged word of broken bytes, and one of a text without blanks.
        Tokens(("\udce2\udc80", "ACGT" * 24_000), None),
    ],
    ids=["next", "sentences", "long", "bytes"],
)
def test_what_runs_have_is_written_and_read(tokens: Tokens, tmp_path: Path) -> None:
    query = torch.zeros(1, len(tokens), 1)
    call = attend(query, query, query)
    axis, origin = {"decoder": tokens}, Provenance("a model")
    measured = Fidelity(0, 0, 0.05, "")
    Trace({"decoder": (Layer(call, "0"),)}, axis, axis, query[0], origin, measured).save(tmp_path / "any")
    assert Trace.load(tmp_path / "any").query_tokens() == tokens


def test_a_file_of_version_1_0_0_without_a_checksum_is_read(saved: Path, tmp_path: Path) -> None:
    header, ours, body = taken_apart(saved)
    for axis in ("queries", "keys"):
        for name in ("sentence", "spelling", "place"):
            del ours["streams"]["decoder"][axis][name]
    for name in (
        "target",
        "picture",
        "sound",
        "told",
        "generated",
        "decoding",
        "special_tokens",
        "chat",
        "added",
        "stored",
    ):
        del ours["provenance"][name]
    path = put_together(tmp_path / "older", header, body, ours)
    assert Trace.load(path).query_tokens().labels == TOKENS.labels
    with safe_open(path, framework="pt") as file:
        assert "checksum" not in file.metadata()["attention_viz"]


def test_a_file_keeps_how_its_tokens_were_chosen_and_one_from_before_had_the_likeliest(
    saved: Path, tmp_path: Path
) -> None:
    ways = (Decoding("given", tokens=1), Decoding("sampled", 0.7, 0.9, 3, 2))
    trace(generated=3, decoding=ways).save(tmp_path / "ways")
    assert Trace.load(tmp_path / "ways").provenance.decoding == ways
    header, ours, body = taken_apart(saved)
    ours["provenance"] |= {"generated": 2}
    del ours["provenance"]["decoding"]
    older = Trace.load(put_together(tmp_path / "older", header, body, ours))
    assert older.provenance.decoding == (Decoding(tokens=2),)


def test_merged_words_are_generated_where_all_of_their_pieces_are() -> None:
    tokens = Tokens(("un", "happy", "cat", "s"), (1, 2, 3, 4), words=(0, 0, 1, 1))
    assert [merge_words(trace(tokens, generated=made)).provenance.generated for made in range(5)] == [0, 0, 1, 1, 2]
