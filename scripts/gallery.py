"""Draw every figure of `av.views` from real runs, and write the page that shows them.

Run `.venv/bin/python -m scripts.gallery` after a figure changed; add names to draw only those. Writes
docs/gallery.md and docs/gallery/. Needs Chrome, Chromium or Edge. The page shows the code that made the figures.
"""

# What `runs` makes is handed out by its names.
# pyright: reportUnusedVariable=false

import argparse
import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import plotly.graph_objects as go

import attention_viz as av
from attention_viz.views.export.rendering import Draw, rendered

__all__ = ["FOLDER", "PAGE", "PICTURES", "code_of", "page", "runs", "runs_code", "shortened"]

_DOCS = Path(__file__).parents[1] / "docs"
PAGE, FOLDER = _DOCS / "gallery.md", _DOCS / "gallery"
_WIDTH, _HEIGHT, _WIDE = 760, 460, 1080
# Seconds for all of them, on a machine with other things to do.
_LIMIT = 600.0


def runs() -> SimpleNamespace:
    """Return the runs that the figures show."""
    import pandas

    from attention_viz.circuits.layers.model_flow import model_flow
    from attention_viz.edits.effects import moved_output
    from attention_viz.inputs.media.shipped import SAMPLES
    from attention_viz.lesson.measuring import practice, seconds_by_length
    from attention_viz.models import SNAPSHOTS, moments
    from attention_viz.scratch.model import Scratch

    bert = av.load("all-MiniLM-L6-v2")
    bank = bert.trace("The bank of the river was flooded")
    city = bert.trace("The bank of the city was robbed")
    masked = bert.trace("The bank of the river was flooded", edits=[av.Allow(av.masks.causal(9), layer=2)])
    silent = [bert.trace("The bank of the river was flooded", edits=[av.Ablate(0, head)]) for head in range(12)]
    moved = [float(moved_output(bank, one).mean()) for one in silent]
    effects = pandas.Series(moved, pandas.MultiIndex.from_product([[0], range(12)], names=["layer", "head"]))
    looking = [float(bank.weights(0, head)[2, 5]) for head in range(12)]
    apart = av.head_divergences(bank, city)

    ours = Scratch(8, 2, 0)
    sat = ours.trace("The cat sat on mat")
    plane = Scratch(2, 1, 0).trace("The cat sat on mat")
    wider = [Scratch(d_k, 1, 0, positions="none").trace("The cat sat on mat") for d_k in (4, 16, 64, 256)]

    toy = av.load("induction")
    frog = toy.trace("moon cheese frog ring moon cheese")
    *_, grown = toy.extend(frog, 8, evict=av.Evict(first=1, last=4))  # pyright: ignore[reportAttributeAccessIssue]
    likely = toy.candidates(frog)  # pyright: ignore[reportAttributeAccessIssue] -- it is no module of ours
    lens = av.logit_lens(toy, frog, count=3)  # pyright: ignore[reportArgumentType] -- it is no module of ours
    passed = model_flow(av.load("SmolLM2-135M-Instruct").trace("The bank of the river was flooded"))
    steps = [(step, av.load("induction", revision=f"step-{step}")) for step in SNAPSHOTS["induction"]]
    learned = {
        step: float(av.head_table(then.trace("moon cheese frog ring moon cheese")).loc[(1, 1), "induction"])
        for step, then in steps
    }
    twice = toy.trace("moon cheese frog ring moon cheese frog ring")
    again = {step: then.trace("moon cheese frog ring moon cheese frog ring") for step, then in steps}
    together = {step: (float(one.weights(0, 0)[3, 2]), float(one.weights(1, 1)[6, 3])) for step, one in again.items()}
    right = moments("induction")["accuracy"].to_dict()

    recalled = av.load("recall").trace("ben blue , anna red , ben green . ben ?")
    french = av.load("translation").trace("the boy finds the key and he sells it")
    cat = av.load("dinov2-small").trace(av.Picture(SAMPLES["chelsea"].path))  # pyright: ignore[reportArgumentType] -- it sees
    river = av.load("whisper-tiny.en").trace(av.Sound(SAMPLES["window"].path))  # pyright: ignore[reportArgumentType] -- it hears
    seconds, blockwise = seconds_by_length(), practice("blockwise")
    return SimpleNamespace(**locals())


PICTURES: dict[str, Callable[[Any], go.Figure]] = {
    "heatmap": lambda r: av.views.heatmap(r.bank, 0, 4),
    "arrived": lambda r: av.views.arrived(r.recalled, 0, 1),
    "looks": lambda r: av.views.looks(r.bank, 0, 4, query=2),
    "alignment": lambda r: av.views.alignment(r.french, 0, 1, "cross"),
    "steps": lambda r: av.views.steps(r.sat, 0, 0, "scores"),
    "learned": lambda r: av.views.learned(r.sat, 0, 0, "query", r.ours.projections(0)["query"]),
    "angles": lambda r: av.views.angles(r.frog, 1, 1),
    "saturation": lambda r: av.views.saturation(*r.wider, chosen=64),
    "side_by_side": lambda r: av.views.side_by_side(r.frog, 1),
    "roles": lambda r: av.views.roles(r.sat, 0, 0),
    "products": lambda r: av.views.products(r.sat, 0, 0, query=1, key=2),
    "shares": lambda r: av.views.shares(r.sat, 0, 0, query=1),
    "hull": lambda r: av.views.hull(r.plane, 0, 0, query=1),
    "difference": lambda r: av.views.difference(r.bank, r.masked, 2, 3),
    "changed_heads": lambda r: av.views.changed_heads(r.bank, r.masked),
    "changed_outputs": lambda r: av.views.changed_outputs(r.bank, r.masked),
    "candidates": lambda r: av.views.candidates(r.frog, 1, 1, r.likely),
    "logit_lens": lambda r: av.views.logit_lens(r.frog, r.lens),
    "residual_stream": lambda r: av.views.residual_stream(r.passed),
    "cache": lambda r: av.views.cache(r.grown, 1, 1),
    "all_heads": lambda r: av.views.all_heads(r.bank),
    "head_grid": lambda r: av.views.head_grid(r.bank, "previous"),
    "head_scatter": lambda r: av.views.head_scatter(r.bank, "previous", "entropy"),
    "head_map": lambda r: av.views.head_map(r.bank),
    "queries_and_keys": lambda r: av.views.queries_and_keys(r.bank, 0, 4),
    "head_effects": lambda r: av.views.head_effects(r.bank, r.effects, chosen=(0, 4)),
    "compare": lambda r: av.views.compare(av.compare(r.bank, r.city, 0, 4)),
    "compared_heads": lambda r: av.views.compared_heads(r.bank, r.city, r.apart),
    "training": lambda r: av.views.training(r.learned, r.right, "Induction"),
    "paths": lambda r: av.views.paths(r.sat, 0, 4),
    "cost": lambda r: av.views.cost(r.seconds, chosen=512),
    "before_after": lambda r: av.views.before_after(r.blockwise.before, r.blockwise.after, r.blockwise.unit),
    "weight_and_effect": lambda r: av.views.weight_and_effect(r.looking, r.moved, layer=0),
    "composition": lambda r: av.views.composition(r.twice, (0, 0), (1, 1), 6, 3, r.together, marked=1200),
    "overlay": lambda r: av.views.overlay(r.cat, 11, 0, position=0),
    "spoken": lambda r: av.views.spoken(r.river, 2, 1),
}

_HEAD = """# Gallery

This page has every figure of `av.views` with the call that draws it. Each call also takes `theme="dark"` and returns a
Plotly figure, which shows the number under the pointer; `av.views.save` writes it to a file. `.venv/bin/python -m
scripts.gallery` made this page from these runs:
"""


def main() -> None:
    """Draw the figures in one browser, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m scripts.gallery", description="Draw the gallery's figures.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these; by default all")
    wanted: list[str] = parser.parse_args().names or list(PICTURES)
    ready = runs()
    figures = {name: _plain(PICTURES[name](ready)) for name in wanted}

    async def work(draw: Draw) -> dict[str, bytes]:
        return {name: await draw(figure, "svg", 1) for name, figure in figures.items()}

    drawn = rendered("the gallery", work, limit=_LIMIT)
    FOLDER.mkdir(exist_ok=True)
    for name, made in drawn.items():
        content = shortened(made)
        (FOLDER / f"{name}.svg").write_bytes(content)
        print(f"docs/gallery/{name}.svg: {len(content) / 1e3:.0f} kB")
    PAGE.write_text(page(), encoding="utf-8", newline="\n")


def page() -> str:
    """Return the page, with the figures in the order of `VIEWS`."""
    parts = [_HEAD, f"```python\n{runs_code()}\n```"]
    for name in PICTURES:
        says = inspect.getdoc(av.views.VIEWS[name]) or ""
        first = says.partition("\n\n")[0]
        parts.append(f"## {name}\n\n{first}\n\n```python\n{code_of(name)}\n```\n\n![{first}](gallery/{name}.svg)")
    return "\n\n".join(parts).replace("\n\n\n", "\n\n") + "\n"


def code_of(name: str) -> str:
    """Return the code of a figure's call, from this file."""
    tree = ast.parse(Path(__file__).read_text("utf-8"))
    (table,) = (one.value for one in tree.body if isinstance(one, ast.AnnAssign) and isinstance(one.value, ast.Dict))
    made = {ast.literal_eval(key): value for key, value in zip(table.keys, table.values, strict=True) if key}
    call = made[name]
    assert isinstance(call, ast.Lambda)
    return re.sub(r"\br\.", "", ast.unparse(call.body)).replace("'", '"')


def runs_code() -> str:
    """Return the code of `runs`, as you would type it."""
    lines = inspect.getsource(runs).splitlines()[2:-1]
    return re.sub(r"  # pyright: .*", "", inspect.cleandoc("\n".join(["import attention_viz as av", *lines])))


def shortened(drawn: bytes) -> bytes:
    """Shorten an SVG: coordinates to a hundredth of a pixel, and the usual font once, at the top."""
    digits = re.compile(rb"(\d\.\d\d)\d+")
    text = re.sub(rb' (?:d|transform|x|y)="[^"]*"', lambda found: digits.sub(rb"\1", found[0]), drawn)
    text = text.replace(b' data-notex="1"', b"").replace(b" white-space: pre;", b"")
    fonts = re.findall(rb"font-family: [^;]*; ?", text)
    usual = max(fonts, key=fonts.count)
    head, _, rest = text.partition(b' style=""')
    tag, _, inside = rest.partition(b">")
    style = b"<style>text { white-space: pre }</style>"
    return head + b' style="' + usual.strip() + b'"' + tag + b">" + style + inside.replace(usual, b"") + b"\n"


def _plain(figure: go.Figure) -> dict[str, Any]:
    plain: dict[str, Any] = figure.to_plotly_json()
    layout = plain["layout"]
    wide = _WIDE if len([name for name in layout if name.startswith("xaxis")]) > 2 else _WIDTH
    size = {"width": layout.get("width") or wide, "height": layout.get("height") or _HEIGHT}
    return {**plain, "layout": {**layout, **size}}


if __name__ == "__main__":
    main()
