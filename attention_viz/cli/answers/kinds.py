"""The kinds of answers, with every key that each may have."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from attention_viz.analysis.findings.finding import FINDING_KINDS
from attention_viz.analysis.metrics import METRICS
from attention_viz.cli.answers.keys import DRAFT, Key, flag, number, object_schema, text, whole


@dataclass(frozen=True)
class AnswerKind:
    """A kind of answer: the facts of its result, and the columns of its rows if it has any.

    Attributes:
        patterns: further columns of the rows, by a regular expression.
        tool_only: no command prints it, only a tool for agents.
        version: grows whenever a key changes its meaning or goes; new keys leave it.
    """

    meaning: str
    facts: Mapping[str, Key]
    row: Mapping[str, Key] | None = None
    patterns: Mapping[str, Key] = field(default_factory=dict[str, Key])
    tool_only: bool = False
    version: int = 1


# Layer numbers are the model's own.
_LAYER = whole("layer, by the model's own number")
_HEAD = whole("head, from 0")
_PLACE = {"layer": _LAYER, "head": _HEAD}
_STREAM = text("attention type: encoder, decoder, cross, mixer, or a tower's input")
_TOKEN = text("the token as the tokenizer writes it", null=True)
_WRITTEN = text("the token as people read it", null=True)
_TEXT = text("the text; null if the trace has token ids alone", null=True)
_OTHER = text("the other text; null if the trace has token ids alone", null=True)
_OF = text("the measured number, in words")
_HELD = text("the kind of effect, in words")


def _heads() -> dict[str, Key]:
    named = {name: number(one.meaning, null=True, optional=True) for name, one in METRICS.items()}
    random = number("the standard test of induction, with random tokens", null=True, optional=True)
    return {**_PLACE, **named, "induction_random": random}


_METRIC = f"({'|'.join([*METRICS, 'induction_random'])})"
_ENDINGS = {
    f"^{_METRIC}_n$": whole("the number of queries behind the mean"),
    f"^{_METRIC}_spread$": number("standard deviation over the texts", null=True),
    f"^{_METRIC}_error$": number("standard error, if a sample of queries was measured", null=True),
}

_FINDING = {
    "text": text("the text, if there are several", null=True, optional=True),
    "finding": text("the finding in a sentence"),
    "strength": number("the number in the sentence", null=True),
    "kind": text("the kind of finding", values=tuple(FINDING_KINDS)),
    "stream": _STREAM,
    **_PLACE,
    "query": whole("position of the query, from 0"),
    "key": whole("position of the key, from 0"),
    "effect": number("direct effect on the logit of word minus that of rival", null=True),
    "word": text("the likeliest next word; empty without an effect"),
    "rival": text("the word that it is compared with; empty without an effect"),
}
_COMPARED = {
    "layer": whole("layer, by the model's own number", optional=True),
    "head": whole("head, from 0", optional=True),
    "divergence": number("mean divergence of the head's rows in bits, 0 to 1", null=True, optional=True),
    "rows": whole("the number of rows in the mean", optional=True),
    "query": whole("the query's place along the common axis", null=True, optional=True),
    "key": whole("the key's place along the common axis", null=True, optional=True),
    **{
        f"{other}{axis}_token": text(
            f"the {axis}'s token{' in the other text' * bool(other)}", null=True, optional=True
        )
        for other in ("", "other_")
        for axis in ("query", "key")
    },
    **{f"{axis}_written": text(f"the {axis} as people read it", null=True, optional=True) for axis in ("query", "key")},
    "weight": number("attention weight in the text", null=True, optional=True),
    "other_weight": number("attention weight in the other text", null=True, optional=True),
    "difference": number("other_weight minus weight", null=True, optional=True),
}
_CONTRIBUTION = {
    "side": text("the side of a score that the part wrote, or output", values=("query", "key", "output")),
    "kind": text("embedding, position, head, mixer, mlp, other, bias, constant, …"),
    "stream": text("the part's stream, if the model has several", null=True, optional=True),
    "layer": whole("layer, by the model's own number; null for a part outside the layers", null=True),
    "head": whole("head, from 0; null for a part that isn't a head", null=True),
    "position": whole("position that the part wrote at", null=True),
    "token": _TOKEN,
    "contribution": number("contribution to the number", null=True),
    "written": _WRITTEN,
}
_EFFECT = {
    "stream": text("the head's stream, if the model has several", optional=True),
    "layer": _LAYER,
    "head": whole("head, from 0; null for all channels of a layer without a softmax", null=True),
    "effect": number("the number without the head minus the number with it", null=True),
    "effect_spread": number("its standard deviation over the texts", null=True, optional=True),
    "number": number("the number without the head", null=True),
    "number_spread": number("its standard deviation over the texts", null=True, optional=True),
}
_PATCHED = {
    "stream": text("the head's stream, if the model has several", optional=True),
    "layer": _LAYER,
    "head": whole("head, from 0; missing for MLPs", null=True, optional=True),
    "position": whole("position patched alone", optional=True),
    "token": text("the token at this position, or its place in the image", null=True, optional=True),
    "effect": number("total effect of the patch; null if it wasn't run", null=True),
    "estimate": number("its estimate by gradient", null=True),
}
_CIRCUIT = {
    "layer": whole("layer, by the model's own number", optional=True),
    "head": whole("head, from 0", optional=True),
    "ov": number("copying: fraction of positive eigenvalues, -1 to 1", null=True, optional=True),
    "qk": number("matching: fraction of positive eigenvalues, -1 to 1", null=True, optional=True),
    "ov_norm": number("Frobenius norm of the OV matrix", null=True, optional=True),
    "qk_norm": number("Frobenius norm of the QK matrix", null=True, optional=True),
    **{f"{end}_{one}": whole(f"{one} of the {role} head", optional=True) for end, role in
       (("from", "earlier"), ("to", "reading")) for one in ("layer", "head")},
    **{one: number(f"composition by the {name}", null=True, optional=True) for one, name in
       (("q", "queries"), ("k", "keys"), ("v", "values"))},
}  # fmt: skip
_FIDELITY = {
    "output_error": number("largest difference from the model's own output, relative; null if unmeasured", null=True),
    "weight_error": number("largest difference of a weight, relative; null if unmeasured", null=True),
    "bound": number("the largest allowed error"),
    "reference": text("the run that ours is compared with"),
    "rule": text("the rule that decides"),
    "ok": flag("whether the run is verified"),
}
_STREAMS = {
    "name": text("its name, for the argument stream"),
    "layers": Key("array", "numbers of its layers", each="integer"),
    "heads": Key("array", "number of heads of each of these layers", each="integer"),
}

ANSWERS: Mapping[str, AnswerKind] = {
    "findings": AnswerKind("Notable attention in a text, best first.", {}, _FINDING),
    "heads": AnswerKind("Metrics of each head.", {}, _heads(), _ENDINGS),
    "find": AnswerKind(
        "Heads by how much one word attends to another.",
        {},
        {
            **_PLACE,
            "weight": number("attention weight, or the signed weight without a softmax", null=True),
            "share": number("share of the row's size, without a softmax", null=True, optional=True),
            "query": whole("position of the query, from 0"),
            "key": whole("position of the key, from 0"),
            "rank": whole("rank, from 1"),
        },
    ),
    "compare": AnswerKind(
        "Heads, or one head's weights, by how much they differ between two texts.",
        {
            "text": _TEXT,
            "other": _OTHER,
            "divergence": number("mean divergence of the chosen head, in bits", null=True, optional=True),
            "align": text("how words are paired", values=("position", "token")),
            "rows": whole("rows in the chosen head's mean", optional=True, null=True),
            "shared": whole("rows left out, because they can't differ"),
        },
        _COMPARED,
    ),
    "why": AnswerKind(
        "A number as the sum of the parts' contributions.",
        {
            "of": _OF,
            "text": _TEXT,
            "total": number("the number", null=True),
            "remainder": number("the number minus the sum of all rows", null=True),
            "held": _HELD,
            "position_bias": number("bias by distance, not in the sum; null for none", null=True),
            "softcap": number("soft cap applied afterwards; null for none", null=True),
        },
        _CONTRIBUTION,
    ),
    "effects": AnswerKind(
        "Each head's ablation effect on a number, largest first.",
        {
            "text": text("the text, if there is one alone", null=True, optional=True),
            "texts": whole("the number of texts, if there are several", optional=True),
            "number": number("the number with all heads", null=True),
            "of": _OF,
            "to": text("the replacement of a head's output"),
            "held": _HELD,
        },
        _EFFECT,
    ),
    "patch": AnswerKind(
        "Effects of patching parts from another text, largest first.",
        {
            "of": _OF,
            "text": _TEXT,
            "other": _OTHER,
            "number": number("the number in the text", null=True),
            "other_number": number("the number in the other text", null=True),
            "held": _HELD,
        },
        _PATCHED,
    ),
    "circuits": AnswerKind("Heads by the model's parameters alone.", {}, _CIRCUIT),
    "scan": AnswerKind(
        "Each head's role over many texts.",
        {},
        {
            "stream": _STREAM,
            **_PLACE,
            "role": text("the head's role"),
            "score": number("the metric behind the role", null=True),
            "label": text("the role as pages name it"),
        },
    ),
    "verify": AnswerKind("The distance of our run from the model's own.", {"text": text("the text"), **_FIDELITY}),
    "plan": AnswerKind(
        "A model's need of memory, in bytes.",
        {
            "name": text("the model's name"),
            "numbers": whole("its parameters"),
            "dtype": text("dtype of its numbers"),
            "quantization": text("how its matrices are rounded; empty if they aren't"),
            "device": text("the device that computes"),
            "weights": whole("bytes of the weights"),
            "by_device": Key("object", "bytes of the weights per device", each="integer"),
            "tokens": whole("length of the text"),
            "trace": whole("bytes of its trace; a lower bound if not counted", null=True),
            "counted": flag("whether the whole run was counted"),
            "peak": whole("bytes on the device while the text is traced; a lower bound if not counted"),
            "free": whole("bytes that the device may take", null=True),
            "layers": whole("attention layers that a trace keeps", null=True),
            "alternatives": Key("array", "options that would fit, best first", each="string"),
            "trace_per_1000": whole("bytes of a trace per 1,000 tokens", null=True),
            "fits": flag("whether the peak fits; null if unknown or not counted", null=True),
        },
    ),
    "models": AnswerKind(
        "The models of the catalogue.",
        {},
        {
            "name": text("the model's name"),
            "description": text("what it is"),
            "layers": whole("number of layers"),
            "heads": whole("number of heads per layer"),
            "bytes": whole("size of its files"),
            "available": flag("whether it is on this machine"),
            "source": text("where it is from"),
        },
    ),
    "trace": AnswerKind(
        "A text's trace, kept under an id, and its tokens.",
        {
            "trace": text("the id, for the other tools"),
            "text": _TEXT,
            "streams": Key("array", "the attention types, with their layers", within=_STREAMS),
            **_FIDELITY,
        },
        {
            "stream": _STREAM,
            "position": whole("position, from 0"),
            "token": text("the token as the tokenizer writes it"),
            "written": text("the token as people read it; a repeated word is numbered"),
        },
        tool_only=True,
    ),
    "picture": AnswerKind(
        "A picture of one head's weights, which follows the answer.",
        {
            **_PLACE,
            "stream": _STREAM,
            "format": text("the picture's format", values=("png", "svg")),
            "width": whole("width in pixels"),
            "height": whole("height in pixels"),
            "bytes": whole("size of the file"),
        },
        tool_only=True,
    ),
}

_CUT = text("the parts left out of a tool's answer, and how to get them", optional=True)


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON Schema of an answer with its envelope."""
    kind = ANSWERS[name]
    result = object_schema(kind.facts)
    if kind.row is not None:
        rows = {"type": "array", "items": object_schema(kind.row, kind.patterns)}
        result["properties"]["rows"] = rows
        result["required"].append("rows")
    envelope = {
        "schema": text("the name of this schema", values=(name,)),
        "schema_version": whole("its version", least=kind.version, most=kind.version),
        "package_version": text("the version of attention_viz"),
        "model": text("the model; null for none or several", null=True),
        "notes": Key("array", "what to know about the result, in sentences", each="string"),
        "cut": _CUT,
    }
    found = object_schema(envelope)
    found["properties"]["result"] = result
    found["required"].append("result")
    identity = {"$schema": DRAFT, "$id": f"urn:attention-viz:schema:{name}:{kind.version}", "title": name}
    return {**identity, "description": kind.meaning, **found}
