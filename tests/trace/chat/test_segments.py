"""Segments: whose tokens are where, through generation, derived traces and files."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import attention_viz as av
from attention_viz.trace.chat.segments import answered, cut_thinking, segment_names
from attention_viz.trace.derived import beginning
from attention_viz.trace.files.format import CHECKSUM, HEADER
from attention_viz.trace.tokens import Tokens

WORDS = ["be", "brief", "why", "hm", "so", "since", "it", "is"]
SEGMENTS = (av.Segment("system", 0, 2), av.Segment("user", 2, 3), av.Segment("assistant", 5, 8))


def trace() -> av.Trace:
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 2, 8, 4)
    return av.Trace.from_qkv(query, key, value, av.masks.causal(8), labels=WORDS)


@pytest.mark.parametrize(
    ("role", "start", "end", "why"),
    [("robot", 0, 1, "unknown role 'robot'"), ("user", 1, 1, "an end after it"), ("user", -1, 1, "a start from 0")],
)
def test_an_impossible_segment_is_refused(role: str, start: int, end: int, why: str) -> None:
    with pytest.raises(av.TraceError, match=why):
        av.Segment(role, start, end)


def test_segments_by_hand_come_in_order_and_inside_the_text() -> None:
    found = trace().with_segments(SEGMENTS[::-1])
    assert found.segments == SEGMENTS and len(SEGMENTS[0]) == 2
    assert found.provenance.answer == ("assistant", 5)
    assert found.with_segments([]).segments == ()
    with pytest.raises(av.TraceError, match="can't overlap"):
        trace().with_segments([av.Segment("user", 0, 3), av.Segment("tool", 2, 4)])
    with pytest.raises(av.TraceError, match="ends after the text, which has 8 tokens"):
        trace().with_segments([av.Segment("user", 0, 9)])
    with pytest.raises(av.TraceError, match=r"must be av\.Segment"):
        trace().with_segments([("user", 0, 1)])  # pyright: ignore[reportArgumentType] -- from outside


def test_equal_roles_are_numbered() -> None:
    several = [av.Segment("user", at, at + 1) for at in (0, 2)] + [av.Segment("tool", 1, 2)]
    assert segment_names(several) == ("user 1", "user 2", "tool")


def test_thinking_is_cut_out_of_an_answer() -> None:
    text = "<think>\n a b\n</think>\n\nc <think>d"
    assert [(role, text[start:end]) for role, start, end in cut_thinking(text)] == [
        ("thinking", "a b"),
        ("assistant", "c"),
        ("thinking", "d"),
    ]
    assert cut_thinking("a</think>b") == [("thinking", 0, 1), ("assistant", 9, 10)]
    assert cut_thinking("<think>\n\n</think>") == []


def test_generated_tokens_are_thinking_until_it_is_closed() -> None:
    labels = ("?", "<", "think", ">", "a", "b", "</", "think", ">\n", "c")
    found = {
        count: answered(Tokens(labels[:count], spelling=("text",) * count), "assistant", 1)
        for count in range(1, len(labels) + 1)
    }
    assert found[1] == ()
    assert found[5] == (av.Segment("thinking", 4, 5),)
    assert found[6] == (av.Segment("thinking", 4, 6),)
    assert found[9] == (av.Segment("thinking", 4, 6),)
    assert found[10] == (av.Segment("thinking", 4, 6), av.Segment("assistant", 9, 10))
    opened = Tokens(("?", "a", "</think>", "c"), spelling=("text",) * 4)
    assert answered(opened, "thinking", 1) == (av.Segment("thinking", 1, 2), av.Segment("assistant", 3, 4))


def test_derived_traces_keep_segments_only_of_their_own_tokens() -> None:
    found = trace().with_segments(SEGMENTS)
    assert found.derived(output=torch.zeros(8, 2)).segments == SEGMENTS
    assert beginning(found, 6).segments == (*SEGMENTS[:2], av.Segment("assistant", 5, 6))
    assert beginning(found, 4).provenance.answer is None
    fewer, call = Tokens.of_labels(WORDS[:3]), found.attention(0)
    terms = (call.query[:, :3], call.key[:, :3], call.value[:, :3], av.masks.causal(3))
    short = av.Trace.from_qkv(*terms, labels=WORDS[:3])
    assert found.derived(layers=short.layers, queries={"decoder": fewer}, keys={"decoder": fewer}).segments == ()


def test_merged_words_keep_the_segments_of_their_first_pieces() -> None:
    tokens = Tokens(("a", "b", "c", "d"), (0, 1, 2, 3), words=(0, 0, 1, 2), spelling=("text",) * 4)
    query, key, value = torch.randn(3, 1, 4, 2)
    plain = av.Trace.from_qkv(query, key, value, av.masks.causal(4))
    named = plain.derived(queries={"decoder": tokens}, keys={"decoder": tokens})
    found = av.merge_words(named.with_segments([av.Segment("user", 0, 2), av.Segment("assistant", 3, 4)]))
    assert found.segments == (av.Segment("user", 0, 1), av.Segment("assistant", 2, 3))


def test_a_file_keeps_segments(tmp_path: Path) -> None:
    found = trace().with_segments(SEGMENTS)
    found.save(tmp_path / "chat.safetensors")
    loaded = av.Trace.load(tmp_path / "chat.safetensors")
    assert loaded.segments == SEGMENTS and loaded.provenance == found.provenance
    trace().save(tmp_path / "plain.safetensors")
    assert "segments" not in _header(tmp_path / "plain.safetensors")["provenance"]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"segments": [["user", 0, 9]]}, "ends after the text"),
        ({"segments": [["user", 0, 2], ["user", 1, 3]]}, "can't overlap"),
        ({"segments": [["robot", 0, 2]]}, "unknown role 'robot'"),
        ({"segments": [["user", 0]]}, "a role, a start and an end"),
        ({"segments": [["user", "0", 1]]}, "which should be int"),
        ({"segments": [["user", True, 2]]}, "which should be int"),
        ({"segments": {"user": 1}}, "which should be list"),
        ({"segments": [["user", at, at + 1] for at in range(4_097)]}, "4,097 segments"),
        ({"answer": ["user", 3]}, "answer begins as 'user' at 3"),
        ({"answer": ["assistant", 99]}, "from 0 to 8"),
        ({"messages": [["user", 3]]}, "which should be str"),
        ({"messages": [["user", ""]] * 4_097}, "4,097 messages"),
        ({"messages": [["u" * 201, ""]]}, "a message's role has 201 characters"),
    ],
)
def test_a_header_with_impossible_segments_is_refused_by_name(
    entry: dict[str, object], why: str, tmp_path: Path
) -> None:
    path = tmp_path / "chat.safetensors"
    trace().with_segments(SEGMENTS).save(path)
    header = _header(path)
    del header[CHECKSUM]
    # As older files, without a checksum: they begin with their format.
    header["provenance"] |= entry
    save_file(load_file(path), path, metadata={HEADER: json.dumps(header)})
    with pytest.raises(av.TraceError, match=f"chat.safetensors is a broken trace: .*{why}"):
        av.Trace.load(path)


def _header(path: Path) -> dict[str, dict[str, object]]:
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    return json.loads(json.loads(content[8 : 8 + size])["__metadata__"][HEADER])
