"""Measure analyses of all heads against plain implementations: metrics, findings, flow, norm-weighting."""

import time
from collections.abc import Callable

import torch
from torch import Tensor

import attention_viz as av
from attention_viz.analysis.attribution import fetched_lengths
from attention_viz.analysis.metrics import METRICS
from attention_viz.trace.trace import Trace
from benchmarks.measuring import Spread, on_one_thread, ratios, take_turns
from benchmarks.passages import PASSAGES, cut
from benchmarks.report import Benchmark, Result, Table, at_most

__all__ = ["BENCHMARK", "naive_flow", "naive_links", "naive_metrics", "naive_norms"]

_MARKS = {"metrics": 2.5, "flow": 200.0, "norms": 200.0}
# Milliseconds for the findings of 270 heads at some 25 tokens.
_FINDINGS_MARK = 30.0
# Twenty-five tokens of SmolLM2's.
_SENTENCE = (
    "When Mary and John went to the store on the hill above the old town, John gave a cold bottle of milk to Mary and"
)


def run(quick: bool) -> Result:
    """Measure them, on one thread."""
    with on_one_thread():
        found = {
            "metrics": _metrics(quick),
            "findings": _findings(quick),
            "flow": _flow(quick),
            "norms": _lengths(quick),
            "norms from a trace": _norms(quick),
        }
    rows = [row for row, _ in found.values()]
    remarks = [
        f"The target for {name}, {mark:g} times as fast, is "
        f"{'reached' if found[name][1].median >= mark else 'missed'}: {found[name][1].median:.3g}."
        for name, mark in _MARKS.items()
    ]
    took = float(rows[1][-1].removesuffix(" ms"))
    remarks.append(at_most("findings", took, _FINDINGS_MARK, "{:g} ms"))
    return Result([Table(("analysis", "plain ÷ ours", "ours"), rows)], remarks, ("scipy", "networkx"))


def naive_metrics(weights: Tensor, ids: Tensor, special: Tensor) -> list[float]:
    """Return all of a text's metrics of one head, everything computed anew."""
    n = len(ids)
    rows, places = ~special, torch.arange(n)
    same = (ids[:, None] == ids) & (places[:, None] > places)
    last = torch.where(same, places, -1).max(dim=-1).values
    follows = torch.zeros(n, n)
    follows[last >= 0] = torch.nn.functional.one_hot(last[last >= 0] + 1, n).float()
    distance = (places[:, None] - places).abs().double()
    some = rows & same.any(dim=-1)
    neighbours = [torch.diag(torch.ones(n - 1), offset) for offset in (-1, 1)]
    having = [rows & one.any(dim=-1) for one in neighbours]
    return [
        float(-(weights * (weights + 1e-12).log()).sum(dim=-1)[rows].mean()),
        *(float((weights * one).sum(dim=-1)[has].mean()) for one, has in zip(neighbours, having, strict=True)),
        float((weights * torch.eye(n)).sum(dim=-1)[rows].mean()),
        float(weights[rows, 0].mean()),
        float((weights.double() * distance).sum(dim=-1)[rows].mean()),
        float((weights * same).sum(dim=-1)[some].mean()),
        float((weights * follows).sum(dim=-1)[some].mean()),
        float((weights * special).sum(dim=-1)[rows].mean()),
        float(weights.max(dim=-1).values[rows].mean()),
        float(weights.double().var(dim=-1, correction=0)[rows].mean()),
    ]


def naive_links(trace: Trace, count: int) -> list[tuple[float, int, int, int, int]]:
    """Return the heaviest links between two words, from every cell: weight, layer, head, query, key."""
    tokens = trace.query_tokens()
    words = [place for place, label in enumerate(tokens.labels) if any(sign.isalpha() for sign in label)][1:]
    found = []
    for layer in range(trace.layer_count()):
        for head in range(trace.head_count(layer)):
            rows = trace.weights(layer, head).tolist()
            links = [(rows[query][key], layer, head, query, key) for query in words for key in words if query != key]
            found.append(max(links))
    return sorted(found, reverse=True)[:count]


def naive_flow(trace: Trace, query: int, key: int) -> float:
    """Return the flow from one position after the last layer to one token, by networkx."""
    import networkx

    count, layers = len(trace.query_tokens()), trace.layer_count()
    graph = networkx.DiGraph()
    for layer in range(layers):
        mixed = trace.attention(layer).weights.double().mean(dim=0) + torch.eye(count)
        for i, row in enumerate((mixed / mixed.sum(dim=-1, keepdim=True)).tolist()):
            for j, share in enumerate(row):
                graph.add_edge((layer + 1, i), (layer, j), capacity=share)
    return float(networkx.maximum_flow_value(graph, (layers, query), (0, key)))


def naive_norms(weights: Tensor, value: Tensor, joining: Tensor) -> Tensor:
    """Return the norm of every head's vectors, each of them computed: (head, query, key, d_model)."""
    vectors = value @ joining
    return (weights[..., None] * vectors[:, None]).norm(dim=-1)


def _metrics(quick: bool) -> tuple[list[str], Spread]:
    model = av.load("all-MiniLM-L6-v2")
    length = 32 if quick else 512
    trace = model.trace(cut(model.tokenizer, PASSAGES[0], length))
    # Twice the model's heads, as a model of twelve layers has.
    layers = trace.layers["encoder"]
    trace = Trace(
        {"encoder": (*layers, *layers)},
        trace.queries,
        trace.keys,
        trace.output,
        trace.provenance,
        trace.fidelity,
    )
    tokens = trace.query_tokens()
    ids, special = torch.tensor(tokens.ids), torch.tensor(tokens.special)

    def naive() -> list[list[float]]:
        heads = (head for layer in range(trace.layer_count()) for head in trace.attention(layer).weights)
        return [naive_metrics(head, ids, special) for head in heads]

    named = f"{len(METRICS)} metrics of {12 * trace.layer_count()} heads, {length} tokens"
    return _compare(named, lambda: av.head_table(trace), naive, quick)


def _findings(quick: bool) -> tuple[list[str], Spread]:
    trace = av.load("SmolLM2-135M-Instruct").trace(_SENTENCE)
    heads = trace.layer_count() * trace.head_count(0)
    named = f"findings of {heads} heads, {len(trace.query_tokens())} tokens"
    return _compare(named, lambda: av.findings(trace), lambda: naive_links(trace, 5), quick)


def _flow(quick: bool) -> tuple[list[str], Spread]:
    model = av.load("all-MiniLM-L6-v2")
    length = 16 if quick else 64
    trace = model.trace(cut(model.tokenizer, PASSAGES[0], length))
    query, last = length // 2, trace.layer_count() - 1
    named = f"attention flow, {length} tokens, one pair"
    keys = (1, length // 2, length - 2)
    # Ours gives all keys of a query at once, and is measured so; networkx gives a pair.
    return _compare(
        named,
        lambda: av.flow(trace, layers=[last], queries=[query]),
        lambda: [naive_flow(trace, query, key) for key in keys],
        quick,
        pairs=(length, len(keys)),
    )


def _norms(quick: bool) -> tuple[list[str], Spread]:
    """Measure norms from a trace, weights and W_O included."""
    trace, model = _read(quick)
    call, joining = trace.attention(3), _joining(model)
    return _compare(
        f"norm-weighting of 12 heads, {len(trace.query_tokens())} tokens, from a trace",
        lambda: av.norm_weighted(model, trace, 3),
        lambda: naive_norms(call.weights, call.value, joining),
        quick,
    )


def _lengths(quick: bool) -> tuple[list[str], Spread]:
    """Measure the norms alone, with weights and W_O given to both."""
    trace, model = _read(quick)
    call, joining = trace.attention(3), _joining(model)
    weights, value, rounds = call.weights, call.value, 20
    return _compare(
        f"norm-weighting of 12 heads, {len(trace.query_tokens())} tokens, with weights and W_O given",
        lambda: [fetched_lengths(weights, value, joining) for _ in range(rounds)],
        lambda: naive_norms(weights, value, joining),
        quick,
        pairs=(rounds, 1),
    )


def _read(quick: bool) -> tuple[Trace, av.AttentionModel]:
    model = av.load("all-MiniLM-L6-v2")
    return model.trace(cut(model.tokenizer, PASSAGES[0], 16 if quick else 128)), model


def _joining(model: av.AttentionModel) -> Tensor:
    return model.projections(3)["output"].weight.detach().unflatten(0, (12, -1))


def _compare(
    named: str, ours: Callable[[], object], naive: Callable[[], object], quick: bool, pairs: tuple[int, int] = (1, 1)
) -> tuple[list[str], Spread]:
    """Return one row: the ratio of processor times."""
    ways = {"ours": ours, "naive": naive}
    figures = take_turns(ways, lambda: (time.process_time(),), rounds=2 if quick else 9)
    spent = {name: [max(1e-9, reading[0]) for reading in readings] for name, readings in figures.items()}
    for name, count in zip(ways, pairs, strict=True):
        spent[name] = [seconds / count for seconds in spent[name]]
    ratio = ratios(spent["naive"], spent["ours"])
    return [named, ratio.write("{:.3g}"), f"{1000 * Spread.of(spent['ours']).median:.3g} ms"], ratio


BENCHMARK = Benchmark(
    title="Analyses of all heads",
    method=(
        "Each row compares one of our functions with its plain implementation. Metrics: all metrics of as many heads "
        "as a model of twelve layers has, against a loop that computes everything for each head. Findings: eight "
        "kinds among the heads of SmolLM2-135M-Instruct, against a loop over every cell that finds only the largest "
        "weights. Flow: the attention flow of one pair of tokens, against networkx. Norms: norm-weighted attention of "
        "a layer, against the paper's formula, which computes every vector. It is measured twice: with weights and "
        "W_O given to both, and from a trace, where ours also gets W_O and computes the weights. Except for the "
        "findings, the model is all-MiniLM-L6-v2; the metrics count its layers twice. We count processor time on one "
        "thread and take the ways in turns. Each figure is the median of nine rounds, with the smallest and the "
        "largest in brackets; ratios are taken within a round."
    ),
    run=run,
)
