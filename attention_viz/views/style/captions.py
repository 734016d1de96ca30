"""Write a picture's head and provenance in a line."""

import re
from collections.abc import Sequence

from attention_viz import __version__
from attention_viz.analysis.readings import READINGS
from attention_viz.analysis.signed import mixer_of
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace
from attention_viz.views.style.wording import one_line

# What stands between the parts of a line.
_BETWEEN = " · "


def model_name(model: str) -> str:
    """Name a model; of a local folder, its last part."""
    parts = [part for part in re.split(r"[/\\]", model) if part]
    is_path = model.startswith(("/", ".", "~")) or "\\" in model or len(parts) > 2
    return parts[-1] if is_path and parts else model


def layer_name(trace: Trace, layer: int, stream: str) -> str:
    """Name a layer, with its kind if it has no softmax, as in "Layer 3 · gated delta"."""
    name = f"Layer {trace.label(layer, stream)}"
    return f"{name}{_BETWEEN}{mixer_of(trace, stream, layer).kind}" if stream in trace.mixers else name


def caption(trace: Trace, layer: int, head: int, stream: str) -> str:
    """Describe a head's picture in a line, with its reading unless weights."""
    return _BETWEEN.join(_caption(trace, layer, head, stream))


def caption_lines(trace: Trace, layer: int, head: int, stream: str, longest: int) -> list[str]:
    """Wrap the caption between its parts."""
    lines = list[str]()
    for part in _caption(trace, layer, head, stream):
        if lines and len(lines[-1]) + len(_BETWEEN) + len(part) <= longest:
            lines[-1] += _BETWEEN + part
        else:
            lines.append(one_line(part, longest))
    return lines


def _caption(trace: Trace, layer: int, head: int, stream: str) -> list[str]:
    found = READINGS.get(trace.provenance.reading)
    which = f"head {head}" if found is None or found.per_head else "all heads together"
    if stream in trace.mixers:
        per = mixer_of(trace, stream, layer).per
        return [model_name(trace.provenance.model), layer_name(trace, layer, stream), f"{per} {head}"]
    read = [] if found is None or found.function is None else [found.label]
    return [model_name(trace.provenance.model), f"{stream} layer {trace.label(layer, stream)}, {which}", *read]


def provenance_lines(lines: Sequence[str]) -> str:
    """Name each run's provenance, or one if all agree."""
    different = list(dict.fromkeys(lines))
    if len(different) == 1:
        return different[0]
    return "; ".join(f"run {place}: {line}" for place, line in enumerate(different, start=1))


def provenance_line(trace: Trace, layer: int | None, head: int | None, tokens: Tokens | None) -> str:
    """Write a picture's provenance for reproduction; None omits irrelevant parts."""
    origin = trace.provenance
    parts = [f"model {model_name(origin.model)}"]
    if origin.revision:
        parts.append(f"revision {origin.revision}")
    if origin.sha256:
        parts.append(f"sha256 {origin.sha256[:12]}…")
    read = READINGS.get(origin.reading)
    head = head if read is None or read.per_head else None
    parts += [f"{name} {number}" for name, number in (("layer", layer), ("head", head)) if number is not None]
    parts += [f"read as {read.label}"] if read is not None and read.function is not None else []
    if tokens is not None:
        parts.append(f"{len(tokens)} tokens")
    parts += [words for words in (origin.generated_in_words, origin.stored_in_words) if words]
    parts += [f"edited: {edit}" for edit in origin.edits]
    if origin.text is not None:
        parts.append(f"text “{one_line(origin.text, 90)}”")
    for name, text in (*origin.media.items(), ("second text", origin.second_text), ("target", origin.target)):
        if text:
            parts.append(f"{name} “{one_line(text, 90)}”")
    parts.append(f"attention_viz {origin.versions.get('attention_viz', __version__)}")
    return _BETWEEN.join(parts)
