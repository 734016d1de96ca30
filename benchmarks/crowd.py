"""Serve thirty visitors at once, each with a text of thousands of tokens; the others see that they wait."""

import asyncio
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import attention_viz as av
from attention_viz.serving.settings import Settings
from attention_viz.sources import CATALOGUE
from benchmarks.passages import PASSAGES
from benchmarks.report import Benchmark, Result, Table, at_most
from benchmarks.serving import ROOT, Memory, serving
from benchmarks.visitor import Answer, Visitor

__all__ = ["BENCHMARK", "LONGEST", "texts"]

_MODEL = "SmolLM2-135M-Instruct"
_VISITORS, _TOKENS = 30, 2_000
# The longest that the app reads, in a model of so many of its layers, so that all thirty are through in minutes.
_LONGEST, _LAYERS = 8_192, 2
# Seconds that a visitor waits for a page; the last one waits for all others' runs.
_PATIENCE = 3_600
# The server may take as many megabytes of its own, whoever comes; with the settings as they are.
_MOST_MEMORY = 4_000
_WAITING = re.compile(r"Others were first: (\d+) run")


def run(quick: bool) -> Result:
    """Let them all come; in a quick run, three with texts of 300 tokens."""
    count, tokens = (3, 300) if quick else (_VISITORS, _TOKENS)
    return _measured(_MODEL, texts(count, tokens), tokens, {}, must_wait=not quick)


def run_longest(quick: bool) -> Result:
    """Run the longest texts on few layers; in a quick run, three with texts of 700 tokens."""
    count, tokens = (3, 700) if quick else (_VISITORS, _LONGEST)
    with tempfile.TemporaryDirectory() as folder:
        name = f"SmolLM2-of-{_LAYERS}-layers"
        whole = _cut(Path(folder) / name)
        # Room for as many of these traces as there would be for those of all layers.
        room = Settings.trace_disk * _LAYERS // whole
        settings = {"ATTENTION_VIZ_MODELS": folder, "ATTENTION_VIZ_TRACE_DISK": str(room)}
        return _measured(name, texts(count, tokens), tokens, settings, must_wait=not quick)


def _cut(folder: Path) -> int:
    """Return the model's first layers as a folder, and their number in the model."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    path = CATALOGUE[_MODEL].path
    assert path is not None
    model = AutoModelForCausalLM.from_pretrained(path, num_hidden_layers=_LAYERS)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(path).save_pretrained(folder)
    layers = CATALOGUE[_MODEL].layers
    assert isinstance(layers, int)
    return layers


def _measured(
    model: str, sentences: Sequence[str], tokens: int, settings: Mapping[str, str], *, must_wait: bool
) -> Result:
    count = len(sentences)
    in_full = {"STREAMLIT_CLIENT_SHOW_ERROR_DETAILS": "full", **settings}
    with serving(("-m", "attention_viz.ui.process", "run", str(ROOT / "app.py")), in_full) as address:
        visitors = [Visitor(address, {"model": model, "text": text}, _PATIENCE) for text in sentences]
        with Memory() as memory:
            answers = asyncio.run(_all_at_once(visitors))
    errors = [error for one in answers for error in one.errors]
    if errors:
        raise RuntimeError(f"{len(errors)} errors for {count} visitors, such as {'; '.join(errors[:5])}")
    took = sorted(one.seconds for one in answers)
    places = [max(map(int, found)) for one in visitors if (found := _WAITING.findall(" ".join(one.waiting)))]
    if must_wait and not places:
        raise RuntimeError(f"{count} visitors came at once, and none saw a notice to wait")
    rows = [
        ["the first has the page after", f"{took[0]:.0f} s"],
        ["half have it after", f"{took[len(took) // 2]:.0f} s"],
        ["the last has it after", f"{took[-1]:.0f} s"],
        ["saw the number of runs before theirs", f"{len(places)} of {count}"],
        ["the most runs that a visitor saw", str(max(places, default=0))],
        ["errors", str(len(errors))],
        ["most memory of the server itself", f"{memory.own:,.0f} MB"],
        ["most memory for pages of its files", f"{memory.files:,.0f} MB"],
    ]
    mark = at_most("the server's own memory", memory.own, _MOST_MEMORY, "{:,.0f} MB")
    return Result([Table((f"{count} visitors, {tokens:,} tokens each", "measured"), rows)], [mark], ("websockets",))


def texts(count: int, tokens: int) -> list[str]:
    """Return texts of one length, all different, so that none is answered from another's cache."""
    fit, prose = av.load(_MODEL).fit, [*PASSAGES, *PASSAGES]
    start = {one: prose[one % len(PASSAGES) :] for one in range(count)}
    return [fit(f"Reader {one + 1} begins here. {' '.join(start[one] * 3)}", tokens).kept for one in range(count)]


async def _all_at_once(visitors: Sequence[Visitor]) -> list[Answer]:
    await asyncio.gather(*(one.come() for one in visitors))
    try:
        return await asyncio.gather(*(one.open() for one in visitors))
    finally:
        await asyncio.gather(*(one.leave() for one in visitors))


BENCHMARK = Benchmark(
    title="A crowd with long texts",
    method=(
        f"{_VISITORS} visitors, each with their own text of {_TOKENS:,} tokens, open Explore at the same moment on a "
        f"fresh server with {_MODEL} and its default settings. Two texts run at a time; the others wait and see the "
        "number of runs before theirs. The server finishes visitors in the order of arrival. Long traces are kept in "
        "files; when the system needs memory, it drops the parts of them that it has read. A visitor is a connection "
        "like a browser's that draws nothing; visitors and server share the machine. The benchmark fails if a page "
        "shows an error, or if no visitor sees a notice to wait."
    ),
    run=run,
)

LONGEST = Benchmark(
    title="A crowd with the longest texts",
    method=(
        f"The same with texts of {_LONGEST:,} tokens, the longest that the app reads. To finish all thirty in minutes, "
        f"the model is the first {_LAYERS} layers of {_MODEL}, opened from a folder. The disk space for traces is "
        "smaller in the same proportion, so it holds as many of them as of the whole model's."
    ),
    run=run_longest,
)
