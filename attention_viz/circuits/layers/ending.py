"""End a run: the likeliest words, a sentence's vector, or a token's own."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from attention_viz.circuits.opened import run_of
from attention_viz.inputs.labelling import label_ids
from attention_viz.recording.gradients import ModelRun
from attention_viz.trace.trace import Trace

# The folders and files of a sentence-transformers model.
_MODULES, _CONFIG = "modules.json", "config.json"


@dataclass(frozen=True, eq=False)
class Ending:
    """The end of a run, at some positions.

    Attributes:
        kind: "next words" after a position, "words" at it, "sentence", "token" or "none".
        words: by position, the likeliest words and their probabilities over the whole vocabulary.
        vectors: (1, width) of a sentence, (position, width) of tokens; else None.
        made: how a sentence's vector is made, or the reason for kind "none".
    """

    kind: str
    words: Mapping[int, Sequence[tuple[str, float]]] = field(default_factory=dict[int, "Sequence[tuple[str, float]]"])
    vectors: Float[Tensor, "row width"] | None = None
    made: str = ""


def ending(trace: Trace, stream: str, positions: Sequence[int], count: int = 5) -> Ending:
    """Return how a run ends at some of a stream's positions.

    Raises:
        TraceError: the trace comes from a file or from another trace, or the model has changed since.
    """
    run, rows = run_of(trace), len(trace.query_tokens(stream))
    if stream == "encoder" and "decoder" in trace.attention_streams:
        return Ending("none", made="The decoder reads the encoder’s last vectors.")
    if trace.output_shape[0] != rows:
        return Ending("none", made="The model’s head reads the last layer’s vectors.")
    if not run.anatomy.no_words:
        words = {at: _likeliest(run, trace.output_at(at), count) for at in positions}
        return Ending("next words" if _is_causal(trace, stream) else "words", words)
    if "hidden_state" not in trace.provenance.output:
        return Ending("none", made="The model’s head reads the last layer’s vectors.")
    pooling = pooling_of(Path(str(run.runner.model.name_or_path)))
    if pooling is None or stream != "encoder":
        return Ending("token", vectors=trace.output[list(positions)].float())
    return Ending("sentence", vectors=_sentence(trace, stream, **pooling)[None], made=_made(**pooling))


def _is_causal(trace: Trace, stream: str) -> bool:
    """Return whether a stream's layers read no later token."""
    if stream in trace.mixers:
        return all(layer.mixer.is_causal for layer in trace.mixers[stream])
    return stream != "encoder"


def _likeliest(run: ModelRun, logits: Float[Tensor, " token"], count: int) -> list[tuple[str, float]]:
    likely, ids = logits.double().softmax(dim=-1).topk(min(count, logits.shape[-1]))
    written = label_ids(run.tokenizer, [int(one) for one in ids]).written
    return list(zip(written, likely.tolist(), strict=True))


def pooling_of(folder: Path) -> dict[str, Any] | None:
    """Return how a sentence-transformers folder makes a sentence's vector: `how` ("mean" or "first"), `normed`.

    None if it isn't such a folder, or pools in another way.
    """
    if not folder.is_absolute():  # a hub's name, not a folder
        return None
    try:
        modules = json.loads((folder / _MODULES).read_text("utf-8"))
        kinds = {str(one["type"]).rpartition(".")[2]: str(one["path"]) for one in modules}
        config = json.loads((folder / kinds["Pooling"] / _CONFIG).read_text("utf-8"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    modes = [name for name, value in config.items() if name.startswith("pooling_mode_") and value is True]
    how = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "first"}.get("".join(modes))
    if how is None or kinds.keys() - {"Transformer", "Pooling", "Normalize"}:
        return None
    return {"how": how, "normed": "Normalize" in kinds}


def _sentence(trace: Trace, stream: str, *, how: str, normed: bool) -> Float[Tensor, " width"]:
    output = trace.output.float()
    real = [at for at, padding in enumerate(trace.query_tokens(stream).padding) if not padding]
    vector = output[real].mean(dim=0) if how == "mean" else output[real[0]]
    return normalize(vector, dim=0) if normed else vector


def _made(*, how: str, normed: bool) -> str:
    return ("mean of all tokens" if how == "mean" else "the first token’s vector") + (", length 1" if normed else "")
