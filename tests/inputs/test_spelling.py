"""Tokens of byte-level tokenizers read well wherever people see them, and stay the tokenizer's own in files."""

import functools
import inspect
import json
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest
import torch
import transformers
from tokenizers import Tokenizer
from tokenizers.models import BPE

import attention_viz as av
from attention_viz.analysis.search import find_heads
from attention_viz.edits.change import Change
from attention_viz.edits.changes import describe
from attention_viz.inputs.labelling import spelling_of
from attention_viz.views import VIEWS, heatmap_svg
from tests.inputs.test_text import byte_tokenizer
from tests.models.families import build
from tests.trace.files.taken_apart import put_together, taken_apart

TEXT = "the bank\nMary was naïve\tof — the river"


@functools.cache
def model() -> av.AttentionModel:
    tokenizer = byte_tokenizer()
    tokenizer.add_tokens(["café"])
    return av.wrap(build("gpt2", vocab_size=310), tokenizer)


@functools.cache
def trace() -> av.Trace:
    return model().trace(TEXT)


@pytest.mark.parametrize(
    ("name", "spelling"),
    [
        ("GPT2Tokenizer", "byte-level"),
        ("WhisperTokenizer", "byte-level"),
        ("CLIPTokenizer", "byte-level end-of-word"),
        ("OpenAIGPTTokenizer", "end-of-word"),
        ("BertTokenizer", "wordpiece"),
        ("LlamaTokenizer", "sentencepiece"),
        ("T5Tokenizer", "sentencepiece"),
        ("ByT5Tokenizer", "bytes"),
    ],
)
def test_a_tokenizer_says_itself_how_it_writes_its_pieces(name: str, spelling: str) -> None:
    assert spelling_of(getattr(transformers, name)()) == spelling


def test_a_tokenizer_that_says_nothing_is_not_guessed_at() -> None:
    assert spelling_of(transformers.PreTrainedTokenizerFast(tokenizer_object=Tokenizer(BPE()))) == "unknown"


def test_tokens_are_written_as_text_and_labelled_by_the_tokenizer() -> None:
    tokens = trace().query_tokens()
    assert tokens.labels[:3] == ("the", "Ġbank", "Ċ")
    assert tokens.written[:3] == ("the", "·bank", "↵")
    assert {"⇥", "⟨E2⟩"} <= set(tokens.written)
    assert not set("ĠĊĉ") & set("".join(tokens.written))
    assert not model().trace("café").query_tokens().labels[0] != "café"
    assert model().trace("café").query_tokens().written == ("café",)  # added as it is: no bytes


def test_a_search_finds_the_word_that_was_typed() -> None:
    found = find_heads(trace(), "Mary", "bank")
    tokens = trace().query_tokens()
    query, key = found[["query", "key"]].to_numpy()[0]
    assert tokens.labels[key] == "Ġbank"
    assert tokens.texts[query] == "M"
    assert len(find_heads(trace(), "naïve", "·bank")) == len(found)
    with pytest.raises(av.TraceError, match=r"its tokens are the, ·bank, ↵, "):
        find_heads(trace(), "mat", "bank")


@pytest.mark.parametrize(
    "name",
    [
        *("heatmap", "looks", "alignment", "steps", "side_by_side", "roles", "products", "shares"),
        *("difference", "changed_outputs", "candidates", "paths"),
    ],
)
def test_no_picture_shows_the_letters_that_stand_for_bytes(name: str) -> None:
    whole = trace()
    known: dict[str, Any] = {"trace": whole, "before": whole, "after": whole, "layer": 0, "head": 0, "query": 1}
    known |= {"key": 0, "start": 0, "end": 2, "position": 1, "likely": model().candidates(whole, count=300)}
    needed = [one.name for one in inspect.signature(VIEWS[name]).parameters.values() if one.default is one.empty]
    drawn = text_of(VIEWS[name](**{one: known[one] for one in needed}))
    assert "·bank" in drawn
    assert not {"Ġ", "Ċ", "ĉ", "Ã"} & set(drawn)


def text_of(figure: go.Figure) -> str:
    return json.dumps(
        figure.to_plotly_json(), default=lambda one: str(getattr(one, "tolist", str)()), ensure_ascii=False
    )


def test_two_texts_side_by_side_are_written_so_too() -> None:
    other = model().trace("the bank of the river was naïve")
    drawn = text_of(av.views.compare(av.compare(trace(), other, 0, 0)))
    assert "·bank" in drawn
    assert "Ġ" not in drawn


def test_neither_do_the_picture_for_print_nor_the_words_of_a_change() -> None:
    assert "·bank" in heatmap_svg(trace(), 0, 0)
    assert "Ġ" not in heatmap_svg(trace(), 0, 0)
    assert "“bank” may not attend to “the₁”" in describe(Change("block", 0, 0, None, ((1, 0),)), trace())


def test_files_have_the_tokenizers_own_tokens() -> None:
    assert set(trace().table(0, 0)["key_token"]) == set(trace().query_tokens().labels)


def test_a_saved_trace_still_knows_and_an_older_one_is_told_by_its_text(tmp_path: Path) -> None:
    trace().save(tmp_path / "new")
    assert av.Trace.load(tmp_path / "new").query_tokens() == trace().query_tokens()
    for text, written in ((TEXT, "·bank"), ("another text", "·bank"), (None, "·bank")):
        older = without_spelling(tmp_path / "new", tmp_path / "older", text)
        assert older.query_tokens().written[1] == written
        known = "byte-level" if text == TEXT else "unknown"
        assert set(older.query_tokens().spelling) == {known}
    assert without_spelling(tmp_path / "new", tmp_path / "older", TEXT).query_tokens().written == (
        trace().query_tokens().written
    )


def test_letters_of_another_language_are_not_taken_for_bytes(tmp_path: Path) -> None:
    pieces = av.Tokens(("Ġgant", "u", "Ċ"), (0, 1, 2))
    whole = model().trace_ids(torch.tensor([[1, 2, 3]])).derived(queries={"decoder": pieces}, keys={"decoder": pieces})
    whole.save(tmp_path / "new")
    assert set(without_spelling(tmp_path / "new", tmp_path / "older", "Ġgant u Ċ").query_tokens().spelling) == {
        "unknown"
    }


def without_spelling(path: Path, target: Path, text: str | None) -> av.Trace:
    """A trace as a version wrote it that knew nothing of spellings."""
    header, ours, body = taken_apart(path)
    for axis in ("queries", "keys"):
        del ours["streams"]["decoder"][axis]["spelling"]
    ours["provenance"]["text"] = text
    return av.Trace.load(put_together(target, header, body, ours))


def test_words_are_put_together_byte_by_byte() -> None:
    words = av.merge_words(trace()).query_tokens()
    assert "·naïve" in words.written
    assert "·—" in words.written
    assert words.texts[words.written.index("·naïve")] == "naïve"
