"""The Heads page's sentences."""

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

import pandas

from attention_viz.analysis.findings.finding import Finding
from attention_viz.analysis.head_table import COUNT, FEW, few_behind
from attention_viz.analysis.metrics import METRICS, metrics_for
from attention_viz.analysis.places import beside_words, patch_words
from attention_viz.analysis.roles import ROLES, SHARES
from attention_viz.analysis.rows import QueryRows
from attention_viz.analysis.search import Detector
from attention_viz.analysis.signed import mixer_of
from attention_viz.analysis.words import token_named
from attention_viz.corpus.tables import HOLDS, TEXTS
from attention_viz.edits.words import listed
from attention_viz.explorer.atlas_payload import HeadTables
from attention_viz.explorer.atlas_roles import resting_words
from attention_viz.serving.permissions import display_name
from attention_viz.trace.kind import Unit
from attention_viz.trace.slots import are_alike
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace
from attention_viz.views.figures.points import metric_in
from attention_viz.views.style.wording import shortened, with_minus

# A top rank isn't worth naming if its value is about 0.
_NOTHING = 0.005
# A key with less is little of its row, and one with more is most of it; as in Explore's sentence.
_LITTLE_OF_ROW, _MOST_OF_ROW = 0.25, 0.5
# A row is strong from this weight on one token.
_STRONG = 0.4


def claim_words(parts: Mapping[str, HeadTables], trace: Trace) -> str:
    """Count heads with a clear role, and those with sinks or even weights."""
    jobs, stream = pandas.concat([part.roles for part in parts.values()]), next(iter(parts))
    count, named = len(jobs), sum(ROLES[name].job for name in jobs["role"])
    model = shortened(display_name(trace.provenance.model), 40)
    if all(score != score for score in jobs["score"].tolist()):
        return f"This text has too few words to show the roles of the {count} heads of {model}."
    several = "have a clear role" if named != 1 else "has a clear role"
    own = parts[stream].roles["role"].tolist() if stream not in trace.mixers else []
    resting, broad = own.count("first"), jobs["role"].tolist().count("broad")
    where = resting_words(trace, stream)
    others = ""
    if resting >= broad and resting and where:
        sinks = "sinks" if " and " in where else "a sink"
        others = f"; {resting} use{'s' if resting == 1 else ''} {where} as {sinks}"
    elif broad:
        attend = ("is" if broad == 1 else "are") if trace.mixers else f"attend{'s' if broad == 1 else ''}"
        others = f"; {broad} {attend} almost {'even' if trace.mixers else 'evenly'}"
    return f"{named or 'None'} of the {count} heads of {model} {several} here{others}."


def seen_words(trace: Trace, stream: str, head: tuple[int, int], query: int, key: int) -> str:
    """Describe a head's representative pair, with its weight."""
    asks, gives = _named_pair(trace, stream, query, key)
    if stream in trace.mixers:
        mixer = mixer_of(trace, stream, head[0]).head(head[1]).rows([query])
        weight, share = float(mixer.weights[0, key]), float(mixer.shares[0, key])
        how = "arrives at" if mixer.per == "channel" else "is taken away from" if weight < 0 else "is carried to"
        where = " in all channels" if mixer.per == "channel" else ""
        numbers = f"{weight_text(weight)}, share of size {weight_text(share)}"
        return f"{gives[:1].upper()}{gives[1:]} {how} {asks}{where}: {numbers}"
    weight = float(trace.attention(head[0], stream).tile(head[1], [query], [key]).nan_to_num(0).reshape(-1)[0])
    return (
        f"{asks[:1].upper()}{asks[1:]} looks at {gives}: {weight_text(weight)}{_aside(trace, stream, head, query, key)}"
    )


def _aside(trace: Trace, stream: str, head: tuple[int, int], query: int, key: int) -> str:
    """Say where most of a row goes, if that is one special token and little goes to the key."""
    keys = trace.key_tokens(stream)
    row = trace.attention(head[0], stream).tile(head[1], [query], range(len(keys))).nan_to_num(0).reshape(-1)
    most = int(row.argmax())
    if most == key or not keys.special[most] or float(row[most]) <= _MOST_OF_ROW or float(row[key]) >= _LITTLE_OF_ROW:
        return ""
    return f"; most, {weight_text(float(row[most]))}, goes to {keys.names[most]}"


def role_words(trace: Trace, stream: str, role: tuple[str, float]) -> str:
    """Say what a head does on average, as the card of a head that is pointed at says it."""
    name, score = role
    label, meaning = ROLES[name].wording("mixer" if stream in trace.mixers else trace.query_tokens(stream).unit)
    share = "" if score != score or name == "mixed" else f" ({weight_text(score)})"
    return f"{label} on average{share}. {meaning}"


def pair_words(
    trace: Trace,
    stream: str,
    head: tuple[int, int],
    role: str,
    pair: tuple[int, int],
    findings: Sequence[Finding] = (),
) -> str:
    """Describe a head's pair; if its role names no target, count strong rows, because a role is a mean.

    A patch that looks at several regions is described as in its finding.
    """
    query, key = pair
    strong = _strong_rows(trace, stream, head)
    if not ROLES[role].job and pair in strong:
        asks, gives = _named_pair(trace, stream, query, key)
        rows = "One strong row:" if len(strong) == 1 else f"{len(strong)} strong rows, such as"
        return f"{rows} {asks} → {gives} {weight_text(strong[pair])}"
    of_patch = {(one.stream, one.layer, one.head, one.query): one.text for one in findings if one.kind == "regions"}
    return of_patch.get((stream, *head, query)) or seen_words(trace, stream, head, query, key)


def _strong_rows(trace: Trace, stream: str, head: tuple[int, int]) -> dict[tuple[int, int], float]:
    """Return the rows that give one token, other than special ones and the first, much of their weight."""
    if stream in trace.mixers:
        return {}
    queries, keys = trace.query_tokens(stream), trace.key_tokens(stream)
    first = QueryRows.of(queries, keys, alike=are_alike(stream, queries, keys)).first
    columns = [key for key in keys.counted if key != first]
    if not columns or not queries.counted:
        return {}
    tile = trace.attention(head[0], stream).tile(head[1], list(queries.counted), columns).nan_to_num(0)
    largest, at = tile.reshape(len(queries.counted), len(columns)).max(dim=-1)
    return {
        (query, columns[int(place)]): float(weight)
        for query, weight, place in zip(queries.counted, largest, at, strict=True)
        if weight >= _STRONG
    }


def _named_pair(trace: Trace, stream: str, query: int, key: int) -> tuple[str, str]:
    queries, keys = trace.query_tokens(stream), trace.key_tokens(stream)
    where = patch_words(keys, key)
    if not where or query == key:
        return named(queries, query), "itself" if where else named(keys, key)
    if where == patch_words(queries, query):
        where = beside_words(keys.patches[key], queries.patches[query])
    return named(queries, query), f"one patch {where}"


def named(tokens: Tokens, position: int) -> str:
    """Format a token for a sentence; patches by where they are in the image, frames by their time."""
    if where := patch_words(tokens, position):
        return f"the patch {where}"
    if tokens.patches and tokens.written[position] == "[CLS]":
        return "the class token"
    return token_named(tokens, position)


def metric_words(name: str, *, formula: bool = False, mixes: bool = False) -> str:
    """Explain a metric, with formula, unit and source, as Markdown; `mixes` for layers without a softmax."""
    metric = METRICS[name].in_mixers if mixes else METRICS[name]
    if not formula:
        return metric.label
    return f"{metric.meaning} ${metric.formula}$, in {metric.unit}. :small[Source: {metric.source}.]"


def few_words(table: pandas.DataFrame) -> str:
    """Name means over few tokens, with counts; empty if none."""
    few = [f"{METRICS[name].label} on {count}" for name, count in few_behind(table).items()]
    return f"Few tokens qualify for these metrics, so treat the means with care: {listed(few)}." if few else ""


def missing_words(table: pandas.DataFrame, asked: Sequence[str] = tuple(METRICS)) -> str:
    """Explain metrics with no number for any head; empty if none."""
    possible = {*metrics_for(Unit.WORD), *metrics_for(Unit.WORD, "mixer")}
    there = [name for name in asked if name in table and name in possible]
    none = [name for name in there if table[name].isna().to_numpy().all()]
    others = [METRICS[name].label for name in none if name != "special"]
    said = ["This text has no special tokens, so “Special tokens” is undefined."] if "special" in none else []
    if others:
        said.append(f"No token of this text qualifies for {listed(others)}.")
    return " ".join(said)


def head_words(table: pandas.DataFrame, head: tuple[int, int]) -> str:
    """Name the metric that ranks this head highest, and count others that rank it high; empty if none."""
    if head not in table.index:
        return ""
    ranks, row = table.rank(ascending=False, method="min").loc[head], table.loc[head]
    most = [
        name for name in METRICS if name in table and row[name] > _NOTHING and ranks[name] <= max(1, len(table) // 20)
    ]
    if not most:
        return ""
    best, *others = sorted(most, key=lambda name: float(ranks[name]))
    rank, label = int(ranks[best]), metric_in(table, best).label
    place = "Highest" if rank == 1 else f"Number {rank}"
    more = f"; among the highest by {len(others)} more" if others else ""
    return f"{place} of {len(table)} heads by {label[:1].lower()}{label[1:]}{more}"


def metric_rows(table: pandas.DataFrame, head: tuple[int, int]) -> list[tuple[str, str, str]]:
    """Return a head's metrics: label, number with its spread and token count if few, and rank."""
    if head not in table.index:
        return []
    row, ranks = table.loc[head], table.rank(ascending=False, method="min").loc[head]
    rows = list[tuple[str, str, str]]()
    for name in METRICS:
        if name not in table or isnan(row[name]):
            continue
        spread = "" if f"{name}_spread" not in table else f" ± {row[f'{name}_spread']:.2f}"
        count = row[name + COUNT]
        few = f" of {int(count)} token{'' if count == 1 else 's'}" if count < FEW else ""
        number = with_minus(f"{row[name]:.2f}")
        rows.append((metric_in(table, name).label, f"{number}{spread}{few}", f"{int(ranks[name])} of {len(table)}"))
    return rows


def found_words(trace: Trace, found: pandas.DataFrame, stream: str) -> str:
    """Describe a search's heaviest head."""
    top = found.iloc[0]
    queries, keys = trace.query_tokens(stream), trace.key_tokens(stream)
    query, key = (token_named(tokens, int(top[axis])) for axis, tokens in (("query", queries), ("key", keys)))
    if stream in trace.mixers:
        return (
            f"{key} (position {int(top['key'])}) has its largest share for {query} (position {int(top['query'])}) in "
            f"{_where(top)}: {weight_text(float(top['share']))} of the row’s size, weight "
            f"{weight_text(float(top['weight']))}."
        )
    return (
        f"{query} (position {int(top['query'])}) attends most to {key} (position {int(top['key'])}) in "
        f"{_where(top)}: {weight_text(float(top['weight']))}."
    )


def several_words(found: pandas.DataFrame, count: int) -> str:
    """Describe the best head over several texts."""
    top = found.iloc[0]
    both = f"{int(top['texts'])} of the {count} texts have both words."
    return (
        f"{both} On these, {_where(top)} ranks best: {top['mean_rank']:.1f} on average, weight "
        f"{top['weight']:.3f} ± {top['spread']:.3f}."
    )


def like_words(found: pandas.DataFrame, rows: int) -> str:
    """Describe the head most similar to the drawn pattern."""
    top = found.iloc[0]
    run = "1 drawn row" if rows == 1 else f"{rows} drawn rows"
    return (
        f"Over {run}, {_where(top)} is most similar to the pattern: {top['similarity']:.3f} (1 − the Jensen–Shannon "
        "divergence; 1: equal, 0: nothing in common)."
    )


def detected_words(detector: Detector, found: pandas.DataFrame, texts: int) -> str:
    """Describe a detector's pattern, and its strongest head."""
    top, metric = found.iloc[0], METRICS[detector.metric]
    over = f", on average over {texts} texts" if texts > 1 else ""
    label = f"{metric.label[:1].lower()}{metric.label[1:]}"
    return f"{detector.finds} The strongest is {_where(top)}: {label} {top[metric.unit]:.3f}{over}."


def _where(row: Any) -> str:
    return f"layer {int(row['layer'])}, head {int(row['head'])}"


def safe_csv(table: pandas.DataFrame) -> bytes:
    """Export numbers and our own names only, with a UTF-8 mark for spreadsheets."""
    return b"\xef\xbb\xbf" + table.reset_index().to_csv(index=False, float_format="%.9g", lineterminator="\n").encode()


def over_words(row: Mapping[str, Any], texts: int, corpus: str) -> str:
    """Describe a head's role over the texts."""
    role = str(row["role"])
    label = ROLES[role].label
    over = f"Over {texts:,} texts of {corpus}, this head’s role is “{label}”"
    if role not in SHARES:
        most = "" if isnan(row["score"]) else f"; the largest share is {weight_text(float(row['score']))}"
        return f"{over}: no share reaches its threshold{most}."
    return f"{over} (share {weight_text(float(row['score']))}), which holds in {_often(row, role)}."


def here_words(row: Mapping[str, Any], role: str, score: float) -> str:
    """Return how often this sentence's role recurs over the texts."""
    if role not in SHARES:
        return f"In this sentence its role is “{ROLES[role].label}”."
    same = "the same" if role == row["role"] else f"“{ROLES[role].label}”"
    return f"In this sentence its role is {same} ({weight_text(score)}), as in {_often(row, role)}."


def _often(row: Mapping[str, Any], role: str) -> str:
    could, holds = (int(row[f"role {role}{ending}"]) for ending in (TEXTS, HOLDS))
    if not could:
        return "none of the texts, since none can show it"
    return f"{holds / could:.0%} of the {could:,} texts where it can be measured"
