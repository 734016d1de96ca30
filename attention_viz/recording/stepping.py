"""A decoder run a token at a time, with the keys and values of the tokens before it, and whether that is the same run.

Most decoders keep in their cache just what their attention is handed: keys and values, positions already turned into
them. Then a recorded run is all that its next token needs. Which decoders do so isn't told by their names: a few tokens
are run both ways and compared, once for each model.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from attention_viz.edits.eviction import Evict
from attention_viz.edits.kinds.masks import Allow
from attention_viz.errors import AttentionVizError
from attention_viz.operation.kernel import BOUNDS
from attention_viz.recording.differences import Difference
from attention_viz.recording.grown import Grown
from attention_viz.recording.probe import Anatomy, probe_ids
from attention_viz.recording.runner import Pass, Runner, alike
from attention_viz.trace.memory import LateOutput
from attention_viz.trace.once import once

if TYPE_CHECKING:
    from transformers.cache_utils import DynamicCache

__all__ = ["Stepping", "Steps", "apart", "cache_of"]

# Of the tokens that are run both ways, how many are read at once; and what the cache keeps of them.
_READ, _EVICT = 5, Evict(first=2, last=2)
# A step that is another operation is off by a hundredth and more; how exact the right one is, a trace says itself.
_ROOM = 10


@dataclass(frozen=True, eq=False)
class Stepping:
    """Runs one decoder token by token.

    Attributes:
        anatomy: what the probe learnt of it.
        limit: how many tokens it can read at once; None where nothing says.
    """

    runner: Runner
    anatomy: Anatomy
    limit: int | None

    @once
    def exact(self) -> bool:
        """Whether running on with the keys kept gives what a run of the whole text gives."""
        return self._same(None)

    @once
    def evicts(self) -> bool:
        """Whether running on without the keys thrown away gives what blocking them in a run of the whole text gives.

        A model that drops old keys of its own accord counts positions in its cache, where they'd be wrong.
        """
        return self.exact and not _drops_keys(self.runner.model.config) and self._same(_EVICT)

    def begin(self, start: Pass, room: int, evict: Evict | None) -> "Steps":
        """Go on from a recorded run; errors as of `Grown`."""
        return Steps(self.runner, Grown(start, room, each_head=evict is not None), evict)

    def _same(self, evict: Evict | None) -> bool:
        """Run a few tokens both ways."""
        try:
            ids = probe_ids(self.runner.model, self.limit)
            whole = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
            start = self.runner.inputs({name: tensor[:, :_READ] for name, tensor in whole.items()})
            steps = self.begin(self.runner.record(start), ids.shape[1] - _READ, evict)
            for token in ids[0, _READ:].tolist():
                steps.read(token)
            edits = (Allow(steps.grown.allowed),) if evict else ()
            there = self.runner.record(self.runner.inputs(whole), edits, self.anatomy.places)
            return apart(steps.grown.record, there) <= _ROOM * BOUNDS.get(self.runner.model.dtype, 0.0)
        except (AttentionVizError, RuntimeError, TypeError, ValueError, LookupError, AttributeError):
            # What a family's own code may raise when it is handed a cache that isn't its own.
            return False


class Steps:
    """One text that a decoder goes on with.

    Attributes:
        grown: what it has computed so far.
    """

    def __init__(self, runner: Runner, grown: Grown, evict: Evict | None) -> None:
        """Go on from what was computed."""
        self.grown = grown
        self._runner, self._evict = runner, evict
        self._cache = None if evict else cache_of(grown.cached())

    def read(self, token: int) -> None:
        """Run one more token."""
        count = self.grown.count
        kept = range(count) if self._evict is None else self._evict.kept(count)
        cache = self._cache or cache_of(self.grown.cached(kept))
        self.grown.add(self._runner.record_next(token, count, len(kept), cache), kept)


def apart(one: Pass, other: Pass) -> float:
    """How far two runs lie apart: infinitely where a call's inputs differ, else the outputs' relative difference."""
    pairs = zip(one.calls, other.calls, strict=True)
    if not all(mine.module is theirs.module and alike(mine.attention, theirs.attention) for mine, theirs in pairs):
        return math.inf
    found = Difference()
    # The rows of a long text's output are made of what the calls gave, which was compared.
    rows = slice(-1, None) if isinstance(one.output, LateOutput) else slice(None)
    found.add(one.output[rows], other.output[rows])
    return found.relative


def cache_of(layers: Mapping[int, tuple[Tensor, Tensor]]) -> "DynamicCache":
    """A cache that holds these keys and values and never drops any."""
    from transformers.cache_utils import DynamicCache

    cache = DynamicCache()
    for number in sorted(layers):
        cache.update(*layers[number], number)
    return cache


def _drops_keys(config: object) -> bool:
    """Whether a model's own layers forget keys that lie far back."""
    text = cast("Any", config).get_text_config()
    kinds = set(getattr(text, "layer_types", None) or ["full_attention"])
    return getattr(text, "sliding_window", None) is not None or kinds != {"full_attention"}
