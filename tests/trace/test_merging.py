from pathlib import Path

import numpy
import pytest
import torch

import attention_viz as av
from attention_viz.errors import TraceError
from attention_viz.trace.spelling import without_marks
from attention_viz.trace.trace import Layer, Trace
from tests.shipped import shipped
from tests.trace.test_trace import one_stream

TEXT = "The tokenizer unbelievably splits words"


def test_weights_between_words_are_means_over_query_pieces_of_sums_over_key_pieces() -> None:
    trace = shipped("all-MiniLM-L6-v2").trace(TEXT)
    merged, tokens = av.merge_words(trace), trace.query_tokens()
    words = merged.query_tokens()
    assert words.labels == ("[CLS]", "the", "tokenizer", "unbelievably", "splits", "words", "[SEP]")
    assert words.special == (True, False, False, False, False, False, True)
    groups: dict[object, list[int]] = {}
    for position, word in enumerate(tokens.words):
        groups.setdefault(("alone", position) if word is None else word, []).append(position)
    pieces = list(groups.values())
    assert [len(group) for group in pieces] == [1, 1, 2, len(pieces[3]), 1, 1, 1] and len(pieces[3]) > 1
    for layer in range(6):
        for head in range(12):
            weights = trace.weights(layer, head).double().numpy()
            expected = [[weights[numpy.ix_(a, b)].sum() / len(a) for b in pieces] for a in pieces]
            assert merged.weights(layer, head).numpy() == pytest.approx(numpy.array(expected), abs=1e-6)


def test_a_text_without_pieces_and_a_decoder_keep_their_weights() -> None:
    for trace in (shipped("induction").trace("moon cheese frog"), av.scratch("the cat sat")):
        merged = av.merge_words(trace)
        assert merged.query_tokens().labels == trace.query_tokens().labels
        torch.testing.assert_close(merged.weights(0, 1), trace.weights(0, 1).float(), atol=1e-6, rtol=0)


def test_each_stream_is_merged_and_the_file_holds_it(tmp_path: Path) -> None:
    trace = shipped("translation").trace("the boy finds the key")
    merged = av.merge_words(trace)
    merged.save(tmp_path / "words.safetensors")
    again = Trace.load(tmp_path / "words.safetensors")
    assert again.streams == trace.streams
    assert again.provenance.edits == ("pieces of words merged afterwards",)
    assert merged.fidelity.reference.endswith("before its words were merged")
    torch.testing.assert_close(again.weights(0, 1, "cross"), merged.weights(0, 1, "cross"))
    assert av.explore(again).html()


def test_rows_that_an_attention_sink_takes_a_share_of_are_refused() -> None:
    trace = one_stream()
    layer = trace.layers["decoder"][0]
    call = av.attend(layer.attention.query, layer.attention.key, layer.attention.value, sinks=torch.zeros(2))
    with pytest.raises(TraceError, match="attention sinks take a share"):
        av.merge_words(
            Trace(
                {"decoder": (Layer(call, "0"),)},
                trace.queries,
                trace.keys,
                trace.output,
                trace.provenance,
                trace.fidelity,
            )
        )


@pytest.mark.parametrize(
    ("label", "plain"),
    [("##ing", "ing"), ("▁bank", "bank"), ("Ġbank", "bank"), ("cat</w>", "cat"), ("▁", "▁"), ("a", "a")],
)
def test_a_piece_without_its_marks(label: str, plain: str) -> None:
    assert without_marks(label) == plain
