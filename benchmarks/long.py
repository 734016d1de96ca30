"""Measure texts of thousands of tokens: the first picture, the browser's work, and the size of a file."""

import base64
import itertools
import resource
import time
from collections.abc import Callable
from tempfile import TemporaryDirectory

import torch
from playwright.sync_api import Page
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaForCausalLM

import attention_viz as av
from attention_viz.analysis.overview import overview
from attention_viz.explorer import id_of, pack, pack_head, script
from attention_viz.operation.attention import Attention, attend
from attention_viz.trace.trace import Trace
from benchmarks.measuring import Spread, ratios, take_turns
from benchmarks.passages import PASSAGES
from benchmarks.report import Benchmark, Result, Table
from benchmarks.serving import ROOT, VIEWPORT, chromium, serving

__all__ = ["BENCHMARK", "products_and_exponentials"]

_MODEL = "SmolLM2-135M-Instruct"
# A layer and a head in the middle, and where its part of 512 × 512 cells begins.
_LAYER, _HEAD = 15, 4
# Layers of which no head was looked at before one of theirs is clicked.
_OTHERS = 3, 24, 9, 28, 6, 19
_WIDTH = 64
# Rows at a time, of which the logits fit into the processor's cache.
_ROWS = 64
_MARKS = {
    "seconds beyond a plain forward until the first picture": 3.0,
    "another head in the app, from the click to its map, in milliseconds": 600.0,
    "a head of another layer, the same": 600.0,
    "memory of the app's server with one visitor, in megabytes": 3500.0,
    "a row and a column under the pointer, in milliseconds": 16.0,
    "512 × 512 cells, in milliseconds": 120.0,
    "a file with the numbers of a layer, in megabytes": 40.0,
    "the same, seconds to make it": 15.0,
    "the map of a head ÷ products and exponentials": 1.3,
    "memory that the map takes, in megabytes": 2000.0,
}

# Chooses a head that wasn't looked at before and waits for its map; until it comes, the note below says nothing, or
# isn't there.
_CHOOSE = """async (cell) => {
    const root = cell.getRootNode();
    const told = () => root.querySelector('[data-testid="explorer-blocks"]')?.textContent;
    const begun = performance.now();
    const until = async (done) => {
        while (!done()) {
            if (performance.now() - begun > 60000) throw new Error("no map came within a minute");
            await new Promise(requestAnimationFrame);
        }
    };
    cell.click();
    await until(() => !told());
    await until(told);
    return performance.now() - begun;
}"""
# Seconds that the first picture of a long text may take.
_PATIENCE = 900

# Reads a head and times what it computes: a row with its column, and a part that wasn't looked at before.
_COMPUTE = """async ([packed, rounds]) => {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const {header, body} = readPacket(bytes);
    const head = await readHead({body}, header.entry, header.masks, weightValues({levels: 4000}));
    const times = {row: [], part: []};
    const side = Math.min(512, head.queries);
    const countUp = (from) => Int32Array.from({length: side}, (_, place) => from + place);
    for (let round = 0; round < rounds; round++) {
        const query = head.queries - 1 - round;
        let begun = performance.now();
        for (let key = 0; key < head.keys; key++) head.at(query, key);
        for (let row = 0; row < head.queries; row++) head.at(row, round);
        times.row.push(performance.now() - begun);
        head.squares.clear();
        begun = performance.now();
        head.sample(countUp(head.queries - side), countUp(0), side, side);
        times.part.push(performance.now() - begun);
    }
    return times;
}"""


def run(quick: bool) -> Result:
    """Measure them; the browser's part in Chromium without a screen."""
    tokens, longest, rounds = (600, 2_048, 2) if quick else (8_000, 32_768, 5)
    # First: what a process has taken at most can't be told apart afterwards.
    ratio, memory = _map(longest, rounds)
    text = _text(tokens)
    heads, others, server = _in_app(text, rounds)
    # Passes of half a minute differ by more than what is looked for: of two rounds one would come at a bad time.
    trace, first = _first_picture(text, min(rounds, 4))
    packed = pack_head(trace, "decoder", _LAYER, _HEAD, id_of(pack(trace, terms=())) or "")
    browser = _in_browser(packed, rounds)
    file = _file(trace)
    figures = {
        "seconds beyond a plain forward until the first picture": first,
        "another head in the app, from the click to its map, in milliseconds": heads,
        "a head of another layer, the same": others,
        "memory of the app's server with one visitor, in megabytes": Spread.of([server]),
        "a row and a column under the pointer, in milliseconds": browser["row"],
        "512 × 512 cells, in milliseconds": browser["part"],
        "a file with the numbers of a layer, in megabytes": Spread.of([file[0]]),
        "the same, seconds to make it": Spread.of([file[1]]),
        "the map of a head ÷ products and exponentials": ratio,
        "memory that the map takes, in megabytes": Spread.of([memory]),
    }
    rows = [
        [name, f"{longest if 'the map' in name else tokens:,}", _spread(found), _short(_MARKS[name])]
        for name, found in figures.items()
    ]
    remarks = [
        f"The target for {name}, at most {_short(_MARKS[name])}, is "
        f"{'reached' if found.median <= _MARKS[name] else 'missed'}: {_short(found.median)}."
        for name, found in figures.items()
    ]
    remarks.append(_longest(longest))
    return Result([Table(("quantity", "tokens", "measured", "target"), rows)], remarks, ("playwright",))


def _spread(found: Spread) -> str:
    middle, low, high = map(_short, (found.median, found.low, found.high))
    return middle if low == high else f"{middle} ({low}–{high})"


def _short(number: float) -> str:
    """Round it to three digits."""
    return f"{float(f'{number:.3g}'):,g}"


def _text(tokens: int) -> str:
    return av.load(_MODEL).fit(" ".join(PASSAGES * 40), tokens).kept


def _in_app(text: str, rounds: int) -> tuple[Spread, Spread, float]:
    """Return the milliseconds to maps of a layer's other heads and of other layers, and the server's megabytes."""
    with serving(("-m", "attention_viz.ui.process", "run", str(ROOT / "app.py"))) as address, chromium() as browser:
        page = browser.new_page(viewport=VIEWPORT)
        page.goto(f"{address}/?model={_MODEL}&layer={_LAYER}&head=0")
        sentence = page.get_by_label("Sentence", exact=True)
        sentence.fill(text)
        sentence.press("Control+Enter")
        note = page.get_by_test_id("explorer-blocks").filter(has_text="weights")
        note.wait_for(timeout=1000 * _PATIENCE)
        page.get_by_role("button", name="Verified").wait_for(timeout=1000 * _PATIENCE)
        times = [_choose(page, _LAYER, head) for head in range(1, rounds + 2)]
        others = [_choose(page, layer, _HEAD) for layer in _OTHERS[:rounds]]
    # The server was the largest process started here; Linux counts in kilobytes.
    return Spread.of(times[1:]), Spread.of(others), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3


def _choose(page: Page, layer: int, head: int) -> float:
    page.wait_for_timeout(3000)  # until the page has come to rest
    cell = page.get_by_test_id("explorer-grid").locator(f'[data-layer="{layer}"][data-head="{head}"]')
    return float(cell.evaluate(_CHOOSE))


def _first_picture(text: str, rounds: int) -> tuple[Trace, Spread]:
    """Return a long text's trace, and the extra time of its first picture over a plain forward."""
    model = av.load(_MODEL)
    assert isinstance(model, av.AttentionModel) and model.tokenizer is not None
    ids = model.tokenizer(text, return_tensors="pt")["input_ids"]

    made = list[Trace]()

    def plain() -> None:
        with torch.no_grad():
            model.hf_model(ids, use_cache=False)

    def picture() -> None:
        made[:] = [model.trace(text)]
        payload = pack(made[0], terms=())
        pack_head(made[0], "decoder", _LAYER, _HEAD, id_of(payload) or "")

    ways: dict[str, Callable[[], object]] = {"plain": plain, "picture": picture}
    figures = take_turns(ways, lambda: (time.perf_counter(),), rounds=rounds)
    # A machine grows slower and faster by seconds a minute: each is compared with the passes on both sides of it.
    passes = [*(alone for (alone,) in figures["plain"]), _seconds(plain)[1]]
    beside = [(before + after) / 2 for before, after in itertools.pairwise(passes)]
    return made.pop(), Spread.of(whole - alone for (whole,), alone in zip(figures["picture"], beside, strict=True))


def _seconds(do: Callable[[], object]) -> tuple[object, float]:
    began = time.perf_counter()
    found = do()
    return found, time.perf_counter() - began


def _in_browser(packed: bytes, rounds: int) -> dict[str, Spread]:
    with chromium() as browser:
        page = browser.new_page()
        names = "{readPacket, readHead, weightValues}"
        page.add_script_tag(content=f"{script('data/terms.js')}\nObject.assign(globalThis, {names});", type="module")
        page.wait_for_function("globalThis.readHead !== undefined")
        times = page.evaluate(_COMPUTE, [base64.b64encode(packed).decode(), rounds + 1])
    return {name: Spread.of(found[1:]) for name, found in times.items()}


def _file(trace: Trace) -> tuple[float, float]:
    """Return the megabytes of an HTML file with one layer's numbers, and the seconds to make it."""
    with TemporaryDirectory() as folder:
        path = f"{folder}/page.html"
        _, took = _seconds(lambda: av.explore(trace, layer=_LAYER, head=_HEAD, layers=[_LAYER]).save_html(path))
        with open(path, "rb") as file:
            return file.seek(0, 2) / 1e6, took


def _map(tokens: int, rounds: int) -> tuple[Spread, float]:
    """Return the ratio of an open head's map to its products and exponentials, and the extra megabytes."""
    generator = torch.Generator().manual_seed(1)
    query, key = (torch.randn(tokens, _WIDTH, generator=generator) for _ in range(2))
    call = attend(2 * query, key, torch.zeros(tokens, 0))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ways = {"map": lambda: overview(call), "base": lambda: products_and_exponentials(call)}
    figures = take_turns(ways, lambda: (time.perf_counter(),), rounds=rounds)
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3
    return ratios([one for (one,) in figures["map"]], [one for (one,) in figures["base"]]), memory


def _longest(tokens: int) -> str:
    """Return the cost of a whole model's trace, and its error against the plain model."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=512,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=tokens,
    )
    model, ids = av.wrap(LlamaForCausalLM(config).eval()), torch.randint(0, 512, (1, tokens))
    with torch.no_grad():
        _, plain = _seconds(lambda: model.hf_model(ids, use_cache=False))
    trace, took = _seconds(lambda: model.trace_ids(ids))
    assert isinstance(trace, Trace)
    found = trace.fidelity
    return (
        f"A made-up Llama of two layers with two heads was traced over {tokens:,} tokens in {took / plain:.2f} times "
        f"its plain forward; its output is {found.output_error:.0e} off, its weights {found.weight_error:.0e}."
    )


def products_and_exponentials(call: Attention) -> torch.Tensor:
    """Compute each product of query and key, and its exponential, some rows at a time."""
    room = call.query.new_empty(_ROWS, len(call.key))
    for rows in call.query.split(_ROWS):
        torch.mm(rows * call.scale, call.key.T, out=room[: len(rows)]).exp_()
    return room


BENCHMARK = Benchmark(
    title="Texts of thousands of tokens",
    method=(
        "SmolLM2-135M-Instruct (30 layers × 9 heads, d_k 64) reads prose of 8,000 tokens. The first picture needs the "
        "trace, the small pictures of all heads, and one head's numbers. Python computes these one after the other. "
        "The time of a plain forward of the same model, the mean of one before and one after, is subtracted. The "
        "plain forward computes the logits of all positions, the trace only those it needs. In the app, one visitor "
        "enters that text and clicks one head after another, three seconds apart: first heads of one layer, which the "
        "server computes in advance, then one head in each of several other layers, which it doesn't. Memory is the "
        "most that the server held. The browser's work for that head is timed in Chromium without a screen: a row "
        "with the column under the pointer, and 512 × 512 cells not viewed before. The file is that of "
        "`av.explore(trace, layers=[15])`. The map of a head of 32,768 tokens, nothing blocked, is compared in turns "
        "with its products and exponentials alone, computed in rows that fit the processor's cache; memory is the "
        "growth of the process. If there are several rounds, each figure is their median, with the smallest and the "
        "largest in brackets."
    ),
    run=run,
)
