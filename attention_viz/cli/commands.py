"""What each command does: asks the library, and hands on what it says."""

import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from attention_viz.cli.files import check_target, layout_of, write
from attention_viz.cli.output import report, show, show_pairs, show_with_origin
from attention_viz.errors import AttentionVizError

if TYPE_CHECKING:
    from attention_viz.models import AttentionModel
    from attention_viz.scratch.model import Scratch
    from attention_viz.trace.tokens import Tokens

__all__ = ["circuits", "compare", "find", "findings", "heads", "models", "patch", "trace", "verify", "why"]

_EXAMPLE = "The bank of the river was flooded"


def trace(arguments: Namespace) -> int:
    """Write what a model computed on a text."""
    path = check_target(arguments)
    text = _text(arguments.text)
    second, target = (None if one is None else _whole(one) for one in (arguments.second, arguments.target))
    made = _model(arguments.model).trace(text, second, target=target)
    write(made, path, arguments.layer, arguments.head, arguments.stream, layout_of(arguments))
    report(f"Wrote {path}")
    return 0


def findings(arguments: Namespace) -> int:
    """Print what a person should look at in a text."""
    import pandas

    import attention_viz as av

    text = _text(arguments.text)
    found = av.findings(_model(arguments.model).trace(text), arguments.top)
    columns = ["finding", "strength", "kind", "stream", "layer", "head", "query", "key"]
    rows = [(one.text, one.strength, one.kind, one.stream, one.layer, one.head, one.query, one.key) for one in found]
    show(pandas.DataFrame(rows, columns=columns), arguments.format)
    return 0


def heads(arguments: Namespace) -> int:
    """Print the metrics of every head, or one of them with the largest first."""
    import attention_viz as av

    name: str | None = arguments.metric
    if name is not None and name not in av.METRICS:
        arguments.usage_error(f"argument --metric: there is no {name!r}; there are {', '.join(av.METRICS)}")
    text = _text(arguments.text)
    table = av.head_table(_model(arguments.model).trace(text), arguments.stream)
    if name is not None:
        table = table.sort_values(by=name, ascending=False, kind="stable")[[name]]
    show(table.reset_index(), arguments.format)
    return 0


def find(arguments: Namespace) -> int:
    """Print the heads that link one word to another."""
    import attention_viz as av

    text = _text(arguments.text)
    made = _model(arguments.model).trace(text)
    found = av.find_heads(made, query=arguments.query, key=arguments.key, stream=arguments.stream)
    show(found.head(arguments.top), arguments.format)
    return 0


def compare(arguments: Namespace) -> int:
    """Print which heads differ most between two texts, or, of one head, the cells that do."""
    import attention_viz as av

    where = (arguments.layer, arguments.head)
    if (where[0] is None) != (where[1] is None):
        arguments.usage_error("needed: --layer and --head together, or neither")
    text, other, model = _text(arguments.text), _whole(arguments.other), _model(arguments.model)
    one, two = model.trace(text), model.trace(other)
    origin: dict[str, object] = {"model": model.name, "text": text, "other": other}
    if where[0] is None:
        table = av.head_divergences(one, two, stream=arguments.stream, align=arguments.align)
        ranked = table.reset_index()
    else:
        found = av.compare(one, two, *where, stream=arguments.stream, align=arguments.align)
        origin["divergence"] = found.mean
        table = found.table()
        ranked = table.sort_values("difference", key=abs, ascending=False, kind="stable", na_position="last")
    origin |= {str(name): one for name, one in table.attrs.items()}
    show_with_origin(origin, ranked.head(arguments.top), arguments.format)
    return 0


def why(arguments: Namespace) -> int:
    """Print what wrote a number, largest first."""
    import attention_viz as av

    score = [getattr(arguments, name) for name in ("layer", "head", "query", "key")]
    asks_score = any(one is not None for one in score)
    if asks_score == (arguments.token is not None) or (asks_score and None in score):
        arguments.usage_error("needed: --token, or --layer, --head, --query and --key together")
    text, model = _text(arguments.text), _model(arguments.model)
    if not isinstance(model, av.AttentionModel):
        raise AttentionVizError(f"{model.name} is our own module: nobody trained its random weights to say anything")
    made = model.trace(text)
    if asks_score:
        stream = made.stream(arguments.stream)
        query = _position(made.query_tokens(stream), arguments.query)
        key = _position(made.key_tokens(stream), arguments.key)
        asked = av.Score(arguments.layer, arguments.head, query, key, arguments.stream, arguments.relative)
    else:
        asked = av.Logit(arguments.token, arguments.position, arguments.against)
    found = av.decompose(model, made, asked)
    origin = {
        "of": str(asked),
        "model": made.provenance.model,
        "text": text,
        "total": found.total,
        "remainder": f"{found.remainder:.1e}",
        "held": found.held,
        "position_bias": found.position_bias or None,
        "softcap": found.softcap,
    }
    largest = found.table.groupby("side", sort=False).head(arguments.top)
    show_with_origin(origin, largest, arguments.format)
    return 0


def circuits(arguments: Namespace) -> int:
    """Print what a model's weights alone tell of its heads, or, of one head, of those that it reads."""
    import pandas

    import attention_viz as av

    place = (arguments.layer, arguments.head)
    if (place[0] is None) != (place[1] is None):
        arguments.usage_error("needed: --layer and --head together, or neither")
    model = _model(arguments.model)
    if not isinstance(model, av.AttentionModel):
        raise AttentionVizError(f"{model.name} is our own module: nobody trained its random weights to say anything")
    if place[0] is None:
        found: pandas.DataFrame = av.circuits(model, arguments.stream)
        table = found.reset_index()
    else:
        found = av.compositions(model, arguments.stream, into=[place])
        largest = found[["q", "k", "v"]].max(axis=1).sort_values(ascending=False, kind="stable")
        table = found.loc[largest.index[: arguments.top]]
    for name, why in found.attrs["missing"].items():
        report(f"{name}: {why}")
    show(table, arguments.format)
    return 0


def patch(arguments: Namespace) -> int:
    """Print what each head does when it is put from one text into another, the largest effect first."""
    import attention_viz as av

    text, other, model = _text(arguments.text), _whole(arguments.other), _model(arguments.model)
    if not isinstance(model, av.AttentionModel):
        raise AttentionVizError(f"{model.name} is our own module: nobody trained its random weights to say anything")
    asked = av.Logit(arguments.token, arguments.position, arguments.against)
    table = av.patch(
        model,
        text,
        other,
        asked,
        direction=arguments.direction,
        parts=arguments.parts,
        by=arguments.by,
        aligned=arguments.aligned,
        confirm=arguments.confirm,
        report=lambda done, of: report(f"{done} of {of} runs done"),
    )
    origin = {
        "of": str(asked),
        "model": model.name,
        "text": text,
        "other": other,
        **{str(name): one for name, one in table.attrs.items()},
    }
    # Those that were not run come last, by their estimates.
    ranked = table.assign(_run=table["effect"].abs(), _guess=table["estimate"].abs())
    ranked = ranked.sort_values(["_run", "_guess"], ascending=False).drop(columns=["_run", "_guess"])
    show_with_origin(origin, ranked.head(arguments.top).reset_index(), arguments.format)
    return 0


def _position(tokens: "Tokens", asked: str) -> int:
    """A position, told by its number or by a word that stands in the text once."""
    if asked.isascii() and asked.isdigit():
        return int(asked)
    words = [tokens.text_of(pieces) for pieces in tokens.pieces]
    found = [pieces[-1] for pieces, word in zip(tokens.pieces, words, strict=True) if word == asked]
    if len(found) == 1:
        return found[0]
    told = f"stands at positions {', '.join(map(str, found))}; name one of them" if found else "isn't one of its words"
    raise AttentionVizError(f"{asked!r} was asked for, and {told}")


def verify(arguments: Namespace) -> int:
    """Print how far ours is from the model's own; 1 where that is too far."""
    from attention_viz.models import CATALOGUE

    known = CATALOGUE.get(arguments.model)
    own = known.examples[0] if known and known.examples else _EXAMPLE
    text = own if arguments.text is None else _text(arguments.text)
    fidelity = _model(arguments.model).verify(text)
    show_pairs(
        {
            "output_error": f"{fidelity.output_error:.3g}",
            "weight_error": f"{fidelity.weight_error:.3g}",
            "bound": f"{fidelity.bound:.3g}",
            "ok": "yes" if fidelity.ok else "no",
        }
    )
    return 0 if fidelity.ok else 1


def models(arguments: Namespace) -> int:
    """Print the catalogue, or bring models onto this machine."""
    from attention_viz.models import catalogue

    if arguments.install is not None:
        from attention_viz.models.sources.install import install, installable

        for name in arguments.install or installable():
            install(name, report)
        return 0
    show(catalogue().reset_index(), arguments.format)
    return 0


def _model(name: str) -> "AttentionModel | Scratch":
    import attention_viz as av

    report(f"Loading {name} …")
    return av.load(name)


def _text(argument: str) -> str:
    """What was given, or for - what standard input holds, without the line's end that a shell adds."""
    if argument != "-":
        return _whole(argument)
    try:
        return _whole(sys.stdin.read().removesuffix("\n").removesuffix("\r"))
    except UnicodeDecodeError as error:
        raise AttentionVizError(f"standard input is not text in {error.encoding}: {error.reason}") from None


def _whole(text: str) -> str:
    """The text, refused where a shell handed over bytes that are no characters, which no file could hold later."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise AttentionVizError(f"the text holds a byte that is no character, at place {error.start}") from None
    return text
