"""Commands that explain a number or compare runs."""

from types import SimpleNamespace
from typing import TYPE_CHECKING

import click

from attention_viz.cli.answers.answer import Answer
from attention_viz.cli.arguments import FORMAT, STREAM, command, inputs, model, option, place, placing, top
from attention_viz.cli.given import given, model_behind, pretrained, report_without, trace_of
from attention_viz.cli.output import print_answer, report, show

if TYPE_CHECKING:
    from collections.abc import Callable

_MARY = "When Mary and John went to the store, John gave a drink to"
_TOKEN = option("--token", "WORD", "the candidate next word", required=True)
_AGAINST = option("--against", "WORD", "subtract the logit of this word")
_POSITION = option("--position", "N", "position of the token before WORD; -1 is the last", type=int, default=-1)
_OTHER_TRACE = option("--other-trace", "FILE", "a saved trace instead of --other")


def _choice(name: str, default: str, other: str, purpose: str) -> click.Option:
    return option(name, None, purpose, type=click.Choice([default, other]), default=default)


@command(
    "Rank heads, or the weights of one head, by how much they differ between two texts.",
    'compare --text "The bank of the river was flooded" --other "The bank of the city was flooded" --model '
    "SmolLM2-135M-Instruct",
    *inputs("--text"),
    option("--other", "TEXT", "the text to compare with"),
    _OTHER_TRACE,
    option("--layer", "N", "compare one head only: its layer, by the model's own number", type=place),
    option("--head", "N", "compare one head only: its number, from 0", type=place),
    _choice(
        "--align",
        "position",
        "token",
        "position: compare each word with its replacement; token: compare the same words only",
    ),
    top("maximum number of rows"),
    STREAM,
    FORMAT,
)
def compare(arguments: SimpleNamespace) -> int:
    """Print heads that differ most, or one head's cells."""
    import attention_viz as av

    where = (arguments.layer, arguments.head)
    if (where[0] is None) != (where[1] is None):
        raise click.UsageError("give --layer and --head together, or neither")
    (one,), model = given(arguments)
    two, _ = trace_of(arguments, arguments.other, arguments.other_trace, one, model, "--other")
    texts = {"text": one.provenance.text, "other": two.provenance.text}
    facts: dict[str, object] = {**texts}
    if where[0] is None:
        table = av.head_divergences(one, two, stream=arguments.stream, align=arguments.align)
        ranked = table.reset_index()
    else:
        found = av.compare(one, two, *where, stream=arguments.stream, align=arguments.align)
        facts["divergence"] = found.mean
        table = found.table()
        ranked = table.sort_values("difference", key=abs, ascending=False, kind="stable", na_position="last")
    facts |= {str(name): value for name, value in table.attrs.items()}
    name = one.provenance.model if one.provenance.model == two.provenance.model else None
    show(Answer("compare", name, facts, ranked.head(arguments.top)), arguments.format)
    return 0


@command(
    "Decompose a next word's logit, or a pair's score, into the contributions of the model's parts.",
    f'why --text "{_MARY}" --token Mary --against John --model SmolLM2-135M-Instruct',
    *inputs("--text", again=True),
    option("--token", "WORD", "the candidate next word"),
    _AGAINST,
    _POSITION,
    option("--layer", "N", "for a score: the layer, by the model's own number", type=place),
    option("--head", "N", "for a score: the head, from 0", type=place),
    option("--query", "WORD", "for a score: the query word or its position"),
    option("--key", "WORD", "for a score: the key word or its position"),
    option("--relative", None, "for a score: subtract the mean score of the other keys", is_flag=True),
    top("maximum number of rows; for a score, on each side"),
    STREAM,
    FORMAT,
)
def why(arguments: SimpleNamespace) -> int:
    """Print the contributions to a number, largest first."""
    import attention_viz as av
    from attention_viz.cli.answers.asking import contributions, score_of

    score = [getattr(arguments, name) for name in ("layer", "head", "query", "key")]
    asks_score = any(one is not None for one in score)
    if asks_score == (arguments.token is not None) or (asks_score and None in score):
        raise click.UsageError("give --token, or --layer, --head, --query and --key together")
    (read,), loaded = given(arguments)
    model, (made,) = model_behind(arguments, [read], loaded)
    asked = (
        score_of(
            made,
            *(arguments.layer, arguments.head),
            (arguments.query, arguments.key),
            arguments.stream,
            relative=arguments.relative,
        )
        if asks_score
        else av.Logit(arguments.token, arguments.position, arguments.against)
    )
    print_answer(contributions(model, made, asked, arguments.top), arguments.format)
    return 0


@command(
    "Describe heads by the model's parameters alone, without a text, or list the earlier heads that one head reads.",
    "circuits --model induction --layer 1 --head 1",
    model(),
    *placing(),
    option("--layer", "N", "layer of the reading head, by the model's own number", type=place),
    option("--head", "N", "number of the reading head, from 0", type=place),
    top("with --layer and --head: maximum number of heads that it reads"),
    STREAM,
    FORMAT,
)
def circuits(arguments: SimpleNamespace) -> int:
    """Print numbers from parameters, or the heads that one head reads."""
    import pandas

    import attention_viz as av

    place = (arguments.layer, arguments.head)
    if (place[0] is None) != (place[1] is None):
        raise click.UsageError("give --layer and --head together, or neither")
    model = pretrained(arguments.model, arguments)
    report_without({model.name: model.layers})
    if place[0] is None:
        found: pandas.DataFrame = av.circuits(model, arguments.stream)
        table = found.reset_index()
    else:
        found = av.compositions(model, arguments.stream, into=[place])
        largest = found[["q", "k", "v"]].max(axis=1).sort_values(ascending=False, kind="stable")
        table = found.loc[largest.index[: arguments.top]]
    notes = [f"{name}: {why}" for name, why in found.attrs["missing"].items()]
    print_answer(Answer("circuits", model.name, table=table, notes=notes), arguments.format)
    return 0


@command(
    "Ablate each head in turn and print the change in a next word's logit or probability, largest first.",
    f'effects "{_MARY}" --token Mary --model SmolLM2-135M-Instruct',
    *inputs(several=True, again=True),
    _TOKEN,
    _AGAINST,
    option("--probability", None, "measure the probability of WORD instead of its logit", is_flag=True),
    _POSITION,
    _choice(
        "--to",
        "mean",
        "zero",
        "replace a head's output with its mean over the positions of this text, or with 0",
    ),
    top("maximum number of heads"),
    STREAM,
    FORMAT,
)
def effects(arguments: SimpleNamespace) -> int:
    """Print each head's ablation effect, largest first."""
    import attention_viz as av
    from attention_viz.cli.answers.asking import head_effects

    if arguments.probability and arguments.against is not None:
        raise click.UsageError("argument --probability: it takes no second word, so leave out --against")
    read, loaded = given(arguments)
    model, traces = model_behind(arguments, read, loaded)
    asked = (
        av.Probability(arguments.token, arguments.position)
        if arguments.probability
        else av.Logit(arguments.token, arguments.position, arguments.against)
    )

    def progress(text: int) -> "Callable[[int, int], None]":
        return lambda done, of: report(f"text {text} of {len(traces)}: {done} of {of} heads done")

    found = head_effects(model, traces, asked, arguments.to, arguments.stream, arguments.top, progress)
    show(found, arguments.format)
    return 0


@command(
    "Patch each head's activations from another text and print the total effect on a next word's logit.",
    f'patch --text "{_MARY}" --other "When Mary and John went to the store, Mary gave a drink to" --token Mary '
    "--against John --model SmolLM2-135M-Instruct",
    *inputs("--text", again=True),
    option("--other", "TEXT", "the other text; it should differ in one thing"),
    _OTHER_TRACE,
    _TOKEN,
    _AGAINST,
    _POSITION,
    _choice(
        "--direction",
        "noising",
        "denoising",
        "noising: patch heads from the other text into this one; denoising: from this text into the other",
    ),
    _choice("--parts", "heads", "mlps", "patch the heads, or the MLP of each layer"),
    _choice("--by", "head", "position", "head: patch all positions at once; position: patch each position alone"),
    option("--aligned", None, "allow texts of different lengths, and pair their tokens", is_flag=True),
    option("--confirm", "N", "run only the N patches with the largest gradient estimates", type=place),
    top("maximum number of rows"),
    FORMAT,
)
def patch(arguments: SimpleNamespace) -> int:
    """Print the effects of patching, largest first."""
    import attention_viz as av
    from attention_viz.cli.answers.asking import patches

    (read,), loaded = given(arguments)
    second, loaded = trace_of(arguments, arguments.other, arguments.other_trace, read, loaded, "--other")
    model, (text, other) = model_behind(arguments, [read, second], loaded)
    asked = av.Logit(arguments.token, arguments.position, arguments.against)
    found = patches(
        model,
        text,
        other,
        asked,
        arguments.top,
        lambda done, of: report(f"{done} of {of} runs done"),
        direction=arguments.direction,
        parts=arguments.parts,
        by=arguments.by,
        aligned=arguments.aligned,
        confirm=arguments.confirm,
    )
    show(found, arguments.format)
    return 0
