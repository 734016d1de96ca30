"""How tokens and captions are written in pictures: text stays text, whatever characters it is made of."""

import unicodedata
from collections.abc import Sequence

from attention_viz import __version__
from attention_viz.analysis.readings import READINGS
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace

__all__ = [
    "caption",
    "escaped",
    "listed",
    "one_line",
    "provenance_line",
    "readable",
    "shortened",
    "shown",
    "spelled",
    "spread",
    "with_minus",
]

_LONGEST_LABEL = 18


def shown(label: str) -> str:
    """A token's label with what can't be seen made visible: control characters as their pictures, spaces as ␣."""
    return "".join(_visible(character) for character in label) or "∅"


def spelled(label: str) -> str:
    """A token's label as the explorer writes it: a light mark for a space before it, another where a word goes on."""
    if len(label) > 1 and label[0] in "Ġ▁":
        return f"·{shown(label[1:])}"
    return f"‿{shown(label[2:])}" if label.startswith("##") and len(label) > 2 else shown(label)


def listed(parts: Sequence[str]) -> str:
    """Parts of a sentence: "one", "one and two", "one, two and three"."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def shortened(label: str, longest: int = _LONGEST_LABEL) -> str:
    """A label that fits beside an axis; the full one belongs into the hover."""
    return label if len(label) <= longest else label[: longest - 1] + "…"


def escaped(text: str) -> str:
    """Text that neither SVG nor Plotly, which reads a little HTML in its labels, can take for markup."""
    return (
        text.replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace('"', "&quot;")
        .replace("'", "&#39;")
    )


def readable(labels: Sequence[str]) -> list[str]:
    """Tokens' labels as pictures write them: what can't be seen made visible, and nothing taken for markup."""
    return [escaped(shown(label)) for label in labels]


def with_minus(number: str) -> str:
    """A written number with the minus sign, as wide as a plus, where Python writes a hyphen: for pages, not files."""
    return number.replace("-", "−")


def spread(count: int, most: int) -> list[int]:
    """At most that many positions out of `count`, evenly spaced from the first, for labels that would touch."""
    step = max(1, -(-count // max(1, most)))
    return list(range(0, count, step))


def caption(trace: Trace, layer: int, head: int, stream: str) -> str:
    """What a picture of one head shows, in a line: also how its numbers are read, where they aren't the weights."""
    found = READINGS.get(trace.provenance.reading)
    which = f"head {head}" if found is None or found.per_head else "all heads together"
    read = "" if found is None or found.function is None else f" · {found.label}"
    return f"{trace.provenance.model} · {stream} layer {trace.label(layer, stream)}, {which}{read}"


def provenance_line(trace: Trace, layer: int | None, head: int | None, tokens: Tokens | None) -> str:
    """Where the numbers of a picture come from, so that it can be made again; None leaves out what it isn't about."""
    origin = trace.provenance
    parts = [f"model {origin.model}"]
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
    parts += [f"edited: {edit}" for edit in origin.edits]
    if origin.text is not None:
        parts.append(f"text “{one_line(origin.text, 90)}”")
    for name, text in (("second text", origin.second_text), ("target", origin.target)):
        if text:
            parts.append(f"{name} “{one_line(text, 90)}”")
    parts.append(f"attention_viz {origin.versions.get('attention_viz', __version__)}")
    return " · ".join(parts)


def one_line(text: str, longest: int) -> str:
    """A text of somebody's as part of a sentence: in one line, not too long, and without signs that turn it around."""
    return shortened(shown(" ".join(text.split())).replace("␣", " "), longest)


def _visible(character: str) -> str:
    if character == " ":
        return "␣"
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    # Joiners hold emoji and Indic letters together: they stay. Every other format or control character would be
    # invisible, or (direction overrides) move the text around it.
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in "\u200c\u200d":
        return f"⟨{code:04X}⟩"
    return character
