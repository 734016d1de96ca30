"""Detect previous-token, duplicate-token and induction heads, by a scan and by another tool."""

import copy
import importlib
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import attention_viz as av
from attention_viz.corpus.part import CorpusPart
from attention_viz.corpus.worker import ScanSettings, Worker
from benchmarks.measuring import Spread, on_one_thread, ratios, take_turns
from benchmarks.report import Benchmark, Result, Table
from benchmarks.scanning import passages

__all__ = ["BENCHMARK"]

_MODEL, _TEXTS, _ROUNDS = "SmolLM2-135M-Instruct", 16, 3
_KINDS: tuple[str, ...] = ("previous_token_head", "duplicate_token_head", "induction_head")
_OURS = "attention_viz, av.scan's work on a chunk"
_EACH, _ONCE = "TransformerLens, detect_head for each kind", "TransformerLens, detect_head three times from one cache"
# Whose sums are over the same pairs of tokens in both.
_SAME: dict[str, str] = {"previous_token_head": "previous", "duplicate_token_head": "duplicate"}


def run(quick: bool) -> Result:
    """Measure it on one thread; ours alone if the other tool isn't installed."""
    with on_one_thread():
        model = av.load(_MODEL)
        assert isinstance(model, av.AttentionModel)
        texts = passages(2 if quick else _TEXTS)
        worker = Worker(model, ScanSettings(128), sum(map(sum, model.heads.values())))
        ways: dict[str, Callable[[], object]] = {
            _OURS: lambda: CorpusPart.empty(worker.heads).and_then(worker.run(0, texts))
        }
        remarks = list[str]()
        if importlib.util.find_spec("transformer_lens") is None:
            remarks.append("TransformerLens is not installed here, so it is not measured.")
        else:
            other = _Other(model)
            ways |= {_EACH: lambda: other.each(texts), _ONCE: lambda: other.once(texts)}
            remarks.append(_agreement(model, other, texts))
        figures = take_turns(ways, lambda: (time.process_time(),), rounds=1 if quick else _ROUNDS)
    spent = {way: [max(1e-9, one[0]) for one in readings] for way, readings in figures.items()}
    rows = [
        [
            way,
            Spread.of(one * 1_000 / len(texts) for one in seconds).write("{:.0f}"),
            ratios(seconds, spent[_OURS]).write(),
        ]
        for way, seconds in spent.items()
    ]
    columns = ("way", "milliseconds per text", "÷ ours")
    return Result([Table(columns, rows)], remarks, ("transformer-lens",))


class _Other:
    """TransformerLens with the same weights and tokens."""

    def __init__(self, model: av.AttentionModel) -> None:
        lens = importlib.import_module("transformer_lens")
        # It changes the model that it is given.
        given = copy.deepcopy(model.hf_model)
        self.model: Any = lens.TransformerBridge.boot_transformers(
            model.name, hf_model=given, tokenizer=model.tokenizer, device="cpu"
        )
        self.model.cfg.default_prepend_bos = False
        self.detect: Any = importlib.import_module("transformer_lens.head_detector").detect_head

    def each(self, texts: list[str]) -> list[Tensor]:
        """Call it as intended: it runs the model for each kind, one text after the other."""
        return [self.detect(self.model, texts, kind) for kind in _KINDS]

    def once(self, texts: list[str]) -> list[Tensor]:
        """Run the model once per text, and keep only the weights."""
        return [torch.stack(found).mean(dim=0) for found in zip(*map(self.of, texts), strict=True)]

    def of(self, text: str) -> list[Tensor]:
        """The scores of one text."""
        tokens = self.model.to_tokens(text)
        _, cache = self.model.run_with_cache(tokens, remove_batch_dim=True, names_filter=_is_weights)
        return [self.detect(self.model, text, kind, cache=cache) for kind in _KINDS]


def _is_weights(name: str) -> bool:
    return name.endswith("hook_pattern")


def _agreement(model: av.AttentionModel, other: _Other, texts: list[str]) -> str:
    """Return the difference between their scores and our metrics; theirs count queries without such a key as 0."""
    off = 0.0
    for text in texts[:3]:
        trace = model.trace(text)
        table, theirs = av.head_table(trace), dict(zip(_KINDS, other.of(text), strict=True))
        for kind, metric in _SAME.items():
            share = table[f"{metric}_n"] / len(trace.query_tokens())
            ours = torch.tensor((table[metric] * share).fillna(0).to_numpy())
            off = max(off, float((ours - theirs[kind].flatten()).abs().max()))
    return f"Scores of the token before and of the same token, in three of the texts, differ by {off:.0e} at most."


BENCHMARK = Benchmark(
    title="Detecting heads in many texts",
    method=(
        f"{_MODEL}, with the same weights in both tools, reads {_TEXTS} passages of about 64 tokens. TransformerLens's "
        "head detector scores every head as a previous-token, duplicate-token and induction head. It takes one text "
        "after the other and runs the model for each kind. The third row is its quickest way: the model runs once per "
        "text and keeps only the weights. Ours runs texts of about the same length together. It also measures all "
        "metrics, roles, kinds of tokens and examples; its induction counts only what followed the last such token. "
        "We count processor time on one thread, in turns. Each figure is the median of three rounds, with the "
        "smallest and the largest in brackets; ratios are taken within a round."
    ),
    run=run,
)
