"""What heads do: a language model's weights from its queries and keys, and its probabilities."""

from functools import cache

import numpy as np

import attention_viz as av
from attention_viz.corpus.shipped import scans
from attention_viz.edits.kinds.ablation import Ablate
from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText
from attention_viz.trace.trace import Trace
from tests.lesson.recomputed import by_hand

MODEL = "SmolLM2-135M-Instruct"
ROLES = {"previous": "previous", "first": "first"}


def _text(scene: Scene) -> str:
    return f" {scene.text} {scene.text}"


def _keys(trace: Trace, job: str) -> dict[int, int]:
    """By query, the key of the job: the token before, the first, or what followed the same token last time."""
    ids = list(trace.query_tokens().ids)
    if job == "previous":
        return {at: at - 1 for at in range(1, len(ids))}
    if job == "first":
        return dict.fromkeys(range(len(ids)), 0)
    return {
        at: len(ids[:at]) - ids[:at][::-1].index(one)
        for at, one in enumerate(ids)
        if one in ids[:at] and len(ids[:at]) - ids[:at][::-1].index(one) < len(ids)
    }


@cache
def _every(trace: Trace) -> dict[tuple[int, int], by_hand.Array]:
    return {
        (layer, head): by_hand.weights(trace, layer, head, causal=True)
        for layer in trace.layer_numbers()
        for head in range(trace.head_count(layer))
    }


def _heads(trace: Trace, keys: dict[int, int]) -> dict[tuple[int, int], float]:
    """Each head's mean weight on the job's keys, the largest first."""
    found = {place: sum(matrix[pair] for pair in keys.items()) / len(keys) for place, matrix in _every(trace).items()}
    return dict(sorted(found.items(), key=lambda one: -one[1]))


def _asked(trace: Trace, matrix: by_hand.Array, keys: dict[int, int]) -> tuple[int, int]:
    """The pair of the job with the largest weight, of the repetition if it has one."""
    half = len(matrix) / 2
    later = {query: key for query, key in keys.items() if query >= half and key != query} or keys
    return max(later.items(), key=lambda pair: matrix[pair])


def _opened(scene: Scene, run: RunText) -> tuple[Trace, dict[int, int], tuple[int, int], by_hand.Array, int, int]:
    trace = run(MODEL, _text(scene))
    keys = _keys(trace, scene.choice or "previous")
    place = next(iter(_heads(trace, keys)))
    matrix = _every(trace)[place]
    return trace, keys, place, matrix, *_asked(trace, matrix, keys)


def _continues(trace: Trace) -> float:
    """The mean probability of the true next token in the repetition."""
    ids, shares = list(trace.query_tokens().ids), by_hand.softmax(by_hand.array(trace.output))
    half = len(ids) // 2
    return float(np.mean([shares[at, ids[at + 1]] for at in range(half, len(ids) - 1)]))


def _finding(scene: Scene, run: RunText) -> str:
    trace, keys, (layer, head), *_ = _opened(scene, run)
    if scene.choice == "first":
        lengths = np.linalg.norm(by_hand.values(trace, layer, head), axis=1)
        return f"{by_hand.number(lengths[0], 3)} {by_hand.number(lengths[1:].mean(), 3)}"
    if scene.choice != "copying":
        return ""
    heads = list(_heads(trace, keys))[:3]
    after = _continues(run(MODEL, _text(scene), edits=[Ablate(*place) for place in heads]))
    places = ", ".join(f"layer {one} head {other}" for one, other in heads)
    return f"{places}: {by_hand.number(after, 3)} {by_hand.number(_continues(trace), 3)}"


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    trace, keys, (layer, head), matrix, query, key = _opened(scene, run)
    roles, job = av.Scan.load(scans()[MODEL]).roles.loc[(layer, head)], ROLES.get(scene.choice or "previous")
    role = f"role {job or 'induction'}"
    return {
        "count": str(len(_every(trace))),
        "layer": str(layer),
        "head": str(head),
        "share": by_hand.share(_heads(trace, keys)[layer, head]),
        "weight": by_hand.share(matrix[query, key]),
        "finding": _finding(scene, run),
        "often": f"{roles[f'{role}_texts']} {roles[f'{role}_holds']}",
    }


def values(scene: Scene, run: RunText) -> list[float]:
    """The ten largest weights of the row, in order of their keys."""
    *_, matrix, query, _ = _opened(scene, run)
    row = matrix[query, : query + 1]
    return [row[key] for key in sorted(np.argsort(-row, kind="stable")[:10])]


def numbers(scene: Scene, run: RunText) -> set[str]:
    """The positions of the question's tokens and of the two examples, and how many bars there are."""
    _, keys, _, matrix, query, key = _opened(scene, run)
    looks = [at for at in keys if at not in (query, keys[at]) and matrix[at].argmax() == keys[at]]
    examples = sorted(looks, key=lambda at: -matrix[at, keys[at]])[:2]
    return {str(one) for one in (query, key, *examples, *(keys[at] for at in examples), min(10, query + 1))}
