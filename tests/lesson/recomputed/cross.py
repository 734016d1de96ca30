"""Cross-attention: the toy translator's softmax over the source in numpy, head by head."""

import math

import numpy as np

from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText
from attention_viz.trace.trace import Trace

# The lesson's own sentence, since the toy doesn't know the reader's.
TEXT = "the boy finds the key and he sells it"


def _heads(trace: Trace) -> np.ndarray:
    call = trace.attention(0, "cross")
    query, key = (tensor.detach().double().numpy() for tensor in (call.query, call.key))
    powers = np.exp(np.einsum("hqd,hkd->hqk", query, key) / math.sqrt(query.shape[-1]))
    return powers / powers.sum(axis=-1, keepdims=True)


def _clearest(heads: np.ndarray) -> int:
    """Both texts end with a mark, which is no word."""
    return max(range(len(heads)), key=lambda head: sum(row[:-1].max() for row in heads[head][:-1]))


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    heads = _heads(run("translation", TEXT))
    head, at = _clearest(heads), int(scene.choice or 0)
    said, read = heads.shape[1:]
    return {
        "cells": str(said * read),
        "head": str(head),
        "said": str(said),
        "read": str(read),
        "weight": f"{heads[head][at].max():.2f}",
    }


def values(scene: Scene, run: RunText) -> list[float]:
    heads = _heads(run("translation", TEXT))
    return [float(row.max()) for row in heads[_clearest(heads)][:-1]]


def numbers(scene: Scene, run: RunText) -> set[str]:
    return set()
