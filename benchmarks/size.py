"""Measure the data sent to the browser: bytes per weight, and the size of a page that shows all heads."""

import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import attention_viz as av
from attention_viz.explorer import pack
from attention_viz.explorer.packet import read_packet
from attention_viz.explorer.payload import ERROR, LEVELS
from benchmarks.measuring import Spread
from benchmarks.passages import PASSAGES, cut
from benchmarks.report import Benchmark, Result, Table
from benchmarks.rivals import PAGES, Page

__all__ = ["BENCHMARK", "MARKS"]

MARKS = {24: 1.1, 512: 0.5}
_LENGTHS = (24, 64, 128, 512)
# A page of bertviz for 512 tokens takes a minute and gigabytes to make, and its size hardly depends on the text.
_PASSAGES_AT = {512: 1}
_OWN = "attention_viz page"
_PAYLOAD = "attention_viz in the app"


@dataclass(frozen=True)
class Size:
    """The size of a page or of the app's message, and its part that grows with the weights.

    Attributes:
        each: bytes per weight, as they are, without what any page of this kind has.
        each_zipped: the same of the compressed page.
    """

    whole: float
    zipped: float
    each: float
    each_zipped: float


def run(quick: bool) -> Result:
    """Make every page for every passage at every length."""
    model = av.load("all-MiniLM-L6-v2")
    assert isinstance(model, av.AttentionModel) and model.tokenizer is not None
    rows: list[list[str]] = []
    remarks: list[str] = []
    for length in (12,) if quick else _LENGTHS:
        passages = PASSAGES[:2] if quick else PASSAGES
        traces = [model.trace(cut(model.tokenizer, passage, length)) for passage in passages]
        sizes = _sizes(traces, passages_elsewhere=_PASSAGES_AT.get(length, len(traces)))
        rows += [_row(length, name, found, sizes[_PAYLOAD]) for name, found in sizes.items()]
        remarks += _remark(length, sizes[_PAYLOAD])
    missing = [f"{name} is not installed here, so it is not measured." for name, page in PAGES.items() if page is None]
    return Result([Table(_COLUMNS, rows)], [*remarks, *missing], packages=("bertviz", "inspectus"))


def _sizes(traces: Sequence[av.Trace], passages_elsewhere: int) -> dict[str, list[Size]]:
    """Return the sizes for each trace, by kind of page."""
    sizes = {_PAYLOAD: [_payload_size(trace) for trace in traces], _OWN: _page_sizes(_own_page, traces)}
    for name, page in PAGES.items():
        if page is not None:
            sizes[name] = _page_sizes(lambda trace, page=page: _made(page, trace), traces[:passages_elsewhere])
    return sizes


def _payload_size(trace: av.Trace) -> Size:
    """Return the bytes on the socket, and per weight without the header; they are compressed already."""
    payload = pack(trace)
    body, weights = len(read_packet(payload)[1]), _weights(trace)
    return Size(len(payload), len(gzip.compress(payload, 6)), body / weights, body / weights)


def _page_sizes(page: Callable[[av.Trace], str], traces: Sequence[av.Trace]) -> list[Size]:
    empty = _measured(page(_smallest()))
    return [_page_size(_measured(page(trace)), empty, _weights(trace)) for trace in traces]


def _measured(page: str) -> tuple[int, int]:
    content = page.encode()
    return len(content), len(gzip.compress(content, 6))


def _page_size(found: tuple[int, int], empty: tuple[int, int], weights: int) -> Size:
    return Size(*found, *((whole - part) / weights for whole, part in zip(found, empty, strict=True)))


def _own_page(trace: av.Trace) -> str:
    return av.explore(trace).html()


def _made(page: Page, trace: av.Trace) -> str:
    layers = range(trace.layer_count())
    return page([trace.attention(layer).weights[None] for layer in layers], trace.query_tokens().labels)


def _smallest() -> av.Trace:
    """Return a trace of one weight, whose page has only the parts that all pages of its kind share."""
    return av.scratch("a", d_model=1, heads=1)


def _weights(trace: av.Trace) -> int:
    shapes = (trace.attention(layer).shape for layer in range(trace.layer_count()))
    return sum(heads * queries * keys for heads, queries, keys in shapes)


_COLUMNS = (
    "tokens",
    "made by",
    "bytes per weight",
    "the same, gzipped",
    "all of it",
    "all of it, gzipped",
    "gzipped ÷ attention_viz in the app",
)


def _row(length: int, name: str, found: Sequence[Size], ours: Sequence[Size]) -> list[str]:
    def spread(pick: Callable[[Size], float], pattern: str) -> str:
        return Spread.of(pick(size) for size in found).write(pattern)

    times = Spread.of(size.each_zipped / own.each_zipped for size, own in zip(found, ours, strict=False))
    return [
        f"{length}",
        name,
        spread(lambda size: size.each, "{:.2f}"),
        spread(lambda size: size.each_zipped, "{:.2f}"),
        _amount(Spread.of(size.whole for size in found).median),
        _amount(Spread.of(size.zipped for size in found).median),
        times.write("{:.1f}"),
    ]


def _amount(size: float) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


def _remark(length: int, ours: Sequence[Size]) -> list[str]:
    if length not in MARKS:
        return []
    found, mark = Spread.of(size.each for size in ours).median, MARKS[length]
    word = "reached" if found <= mark else "missed"
    return [f"The target at {length} tokens, a median of at most {mark} bytes per weight, is {word}: {found:.2f}."]


BENCHMARK = Benchmark(
    title="Bytes per weight and page size",
    method=(
        "The beginnings of ten passages of prose run through all-MiniLM-L6-v2 (6 layers × 12 heads), and every tool "
        "gets the same weights. *In the app* is the server's message to the browser for one trace, `pack(trace)`. It "
        "is compressed already, and its bytes per weight are counted without its header (tokens and the like). The "
        "other rows are whole HTML pages: `av.explore(trace).html()`, bertviz's `model_view` and `head_view`, and the "
        "page that `inspectus.attention` displays. To count their bytes per weight, the size of the same page with a "
        "single weight is subtracted, so neither scripts nor styles count; gzip is at level 6. Each figure is the "
        "median over the passages, with the smallest and the largest in brackets. At 512 tokens, the other tools' "
        "pages are made for the first passage only, because one takes a minute. The tools send different data. Ours "
        f"sends weights in steps of 1/{LEVELS}, none off by more than {ERROR:.1e} (downloads and `trace.save` have the "
        "full float32). Theirs send whole float32 numbers, bertviz as text and twice per page, since the comment in "
        "its template holds them, too. bertviz's pages also load d3, jQuery and require.js from the internet, which "
        "isn't counted."
    ),
    run=run,
)
