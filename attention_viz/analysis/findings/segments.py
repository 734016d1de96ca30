"""Heads whose rows of a chat's answer draw on its question, its thinking, or another segment."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attention_viz.analysis.findings.finding import Candidate
from attention_viz.analysis.findings.scene import StreamScene
from attention_viz.operation.attention import Attention
from attention_viz.trace.chat.segments import Segment

SEGMENTS = "segments"
# What the answer may draw on, by role, in words.
TARGETS = {
    "thinking": "the thinking",
    "user": "the question",
    "tool": "the tool's result",
    "system": "the system message",
}
# Tokens that the answer and the other segment need: the first words of an answer are beside what precedes it.
_FEWEST = 8
# The least weight, and rows of a long answer that are looked through, spread over it.
_LEAST, _MOST_ROWS = 0.3, 64
# Candidates of each layer and segment.
_OF_A_LAYER = 3


def segments_of(scene: StreamScene) -> list[Candidate]:
    """Return the heads whose answer's rows give a segment more than even rows would.

    The score is (w − e) / (1 − e): w is the mean weight on the segment, e the segment's share of the tokens that a row
    can attend to. Special tokens, lone signs and the first token don't count in w.
    """
    segments = scene.trace.segments
    answer = next((one for one in reversed(segments) if one.role == "assistant"), None)
    if answer is None or not scene.alike or scene.stream != scene.trace.text_stream:
        return []
    rows = _carrying(scene, answer)
    if len(rows) < _FEWEST:
        return []
    rows = rows[torch.linspace(0, len(rows) - 1, min(len(rows), _MOST_ROWS)).long()]
    found = list[Candidate]()
    for role in TARGETS:
        target = next((one for one in reversed(segments) if one.role == role and one.end <= answer.start), None)
        keys = torch.zeros(0) if target is None else _carrying(scene, target)
        if len(keys) >= _FEWEST:
            for number in scene.trace.layer_numbers(scene.stream):
                call = scene.trace.attention(number, scene.stream)
                found += _of_layer(scene, (number, call), role, rows, keys.long())
    return found


def _carrying(scene: StreamScene, segment: Segment) -> Int[Tensor, " position"]:
    """Return a segment's positions with letters or digits, without the first token."""
    carrying = scene.queries.carrying[segment.start : segment.end].nonzero()[:, 0] + segment.start
    return carrying[carrying > 0]


def _of_layer(
    scene: StreamScene, layer: tuple[int, Attention], role: str, rows: Int[Tensor, " row"], keys: Int[Tensor, " key"]
) -> list[Candidate]:
    number, call = layer
    weights = call.rows(rows.tolist()).weights.detach().float().cpu().nan_to_num(0)
    on_target: Float[Tensor, "head row key"] = weights[..., keys]
    strengths = on_target.sum(dim=-1).mean(dim=-1)
    reach = rows + 1.0 if scene.looks_back else torch.full((len(rows),), float(weights.shape[-1]))
    even = float((len(keys) / reach).mean())
    scores = torch.where(strengths >= _LEAST, (strengths - even) / (1 - even), 0)
    found = list[Candidate]()
    best, order = scores.topk(min(_OF_A_LAYER, len(scores)))
    for score, head in zip(best.tolist(), order.tolist(), strict=True):
        if score <= 0:
            continue
        row, key = divmod(int(on_target[head].argmax()), len(keys))
        seen = int(rows[row]), int(keys[key])
        words = scene.queries.of_position[seen[0]], scene.keys.of_position[seen[1]]
        place = scene.stream, number, head
        found.append(Candidate(SEGMENTS, score, float(strengths[head]), *place, *words, seen=seen, target=role))
    return found
