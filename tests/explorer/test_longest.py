"""A text of 32,768 tokens: few bytes for the page, a bounded head, and the rows that each figure is from."""

import math

import pytest
import torch

import attention_viz as av
from attention_viz.analysis.findings.findings import searched_rows
from attention_viz.explorer.packet import read_packet
from attention_viz.explorer.payload import id_of, is_long, pack
from attention_viz.explorer.terms import pack_head
from attention_viz.trace.trace import Trace

TOKENS, WIDTH, HEADS = 32_768, 8, 2
WORDS = ("river", "bridge", "stone", "rain", "boat", "harbour", "lamp", "garden")


@pytest.fixture(scope="module")
def trace() -> Trace:
    """Two heads with nothing blocked, whose mask would take a gigabyte."""
    generator = torch.Generator().manual_seed(0)
    query, key = (2 * torch.randn(HEADS, TOKENS, WIDTH, generator=generator) for _ in range(2))
    labels = [f"{WORDS[place % 8]}{place // 8}" for place in range(TOKENS)]
    return av.Trace.from_qkv(query, key, torch.zeros(HEADS, TOKENS, WIDTH), labels=labels, layout="bhsd")


def test_the_page_says_how_many_rows_pictures_and_findings_are_from(trace: Trace) -> None:
    assert is_long(trace)
    payload = pack(trace, terms=(), hosted=True)
    header, _ = read_packet(payload)
    (stream,) = header["streams"]
    assert 0 < stream["sampled"] < TOKENS
    rows = searched_rows(trace, "encoder")
    assert rows is not None and stream["searched"] == rows < TOKENS
    assert all(one["query"] in range(TOKENS) for one in header["findings"])
    assert len(payload) < 2_000_000, "the tokens themselves"
    packed = pack_head(trace, "encoder", 0, 1, id_of(payload) or "")
    entry = read_packet(packed)[0]["entry"]
    assert entry["size"] == [math.ceil(TOKENS / 512)] * 2
    assert len(packed) < 1.5 * 4 * 2 * TOKENS * WIDTH + 1_000_000


def test_a_short_text_is_searched_whole_and_says_nothing() -> None:
    trace = av.scratch("the river carried the boat below the stone bridge")
    assert searched_rows(trace, trace.streams[0]) is None
    (stream,) = read_packet(pack(trace, terms=()))[0]["streams"]
    assert "searched" not in stream
