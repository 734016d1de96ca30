"""Ray Data, local or on a cluster.

Ray passes only texts and the bytes of a safetensors file.
"""

import importlib
import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import torch

from attention_viz.corpus.chunks import Chunk
from attention_viz.corpus.part import CorpusPart
from attention_viz.corpus.worker import ScanSettings, Worker
from attention_viz.errors import UnsupportedModel, first_line
from attention_viz.models.loading.by_name import load
from attention_viz.models.model import AttentionModel

# Chunks that Ray gets at a time: a corpus may be larger than the memory of this process.
_HANDED = 4_096


def run_ray(worker: Worker, chunks: Iterable[Chunk], workers: int | None) -> Iterator[tuple[Chunk, CorpusPart]]:
    """Return each chunk's sums in order; `workers` None means one per processor."""
    ray = _ray()
    model = worker.model
    if model.origin.sha256 is None:
        raise UnsupportedModel(f"Ray can't load {model.name}, which was wrapped in memory; use the engine “local”")
    if not ray.is_initialized():
        _begin(ray)
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    ray.data.DataContext.get_current().enable_progress_bars = False
    actors = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
    ahead = iter(chunks)
    while some := list(islice(ahead, _HANDED)):
        yield from _handed(ray, worker, some, actors)


def _begin(ray: Any) -> None:
    """Start Ray, or join the cluster in RAY_ADDRESS."""
    address = os.environ.get("RAY_ADDRESS")
    options: dict[str, Any] = {} if address else {"include_dashboard": False}
    try:
        ray.init(log_to_driver=False, **options)
    except (ConnectionError, RuntimeError, ray.exceptions.RayError) as error:
        hint = "; if the cluster needs a token, set RAY_AUTH_MODE=token" if address else ""
        raise UnsupportedModel(
            f"can't connect to Ray at {address or 'this machine'}: {first_line(error)}{hint}"
        ) from error


def _handed(ray: Any, worker: Worker, chunks: list[Chunk], actors: int) -> Iterator[tuple[Chunk, CorpusPart]]:
    rows = [{"start": chunk.start, "texts": list(chunk.texts)} for chunk in chunks]
    given = ray.data.from_items(rows, override_num_blocks=len(rows))
    done = given.map_batches(
        _Actor,
        fn_constructor_args=(worker.model.name, worker.model.origin.sha256, worker.settings, worker.heads),
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(size=min(actors, len(rows))),
    )
    try:
        for chunk, row in zip(chunks, done.iter_rows(), strict=True):
            if int(row["start"]) != chunk.start:
                raise RuntimeError(f"Ray returned the chunk at {row['start']}; expected {chunk.start}")
            yield chunk, CorpusPart.of_bytes(row["part"])[0]
    except ray.exceptions.RayError as error:
        # It has the whole way there, of which the end says what went wrong.
        phrase = re.sub(r"^[\w.]+: ", "", str(error).strip().split("\n")[-1].strip())
        raise UnsupportedModel(f"a Ray actor failed: {phrase}") from error


class _Actor:
    def __init__(self, name: str, sha256: str, settings: ScanSettings, heads: int) -> None:
        """Load the model."""
        torch.set_num_threads(1)
        model = load(name, alone=not settings.pictures)
        if not isinstance(model, AttentionModel) or model.origin.sha256 != sha256:
            raise UnsupportedModel(f"{name} has different weights on a Ray actor's machine; install the same there")
        self.worker = Worker(model, settings, heads)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Return one chunk's sums as bytes."""
        start, texts = int(batch["start"][0]), [str(text) for text in batch["texts"][0]]
        return {"start": [start], "part": [self.worker.run(start, texts).to_bytes()]}


def _ray() -> Any:
    # By name: a type checker that doesn't have it would ask for it.
    try:
        _ = importlib.import_module("ray.data")
        return importlib.import_module("ray")
    except ImportError:
        raise UnsupportedModel(
            'the engine “ray” needs Ray, which isn\'t installed; run pip install "attention-viz[ray]"'
        ) from None
