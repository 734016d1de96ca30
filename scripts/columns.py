"""Draw every figure of `av.views` for print: 85 mm wide in a column, and 170 mm across a page.

Run `.venv/bin/python -m scripts.columns` after a figure or its layout changed; add names to draw only those.
Writes docs/print.md and docs/print/. Needs Chrome, Chromium or Edge. The figures are the gallery's.
"""

import argparse
from typing import Any

from attention_viz.views.export.fitted import fitted
from attention_viz.views.export.rendering import Draw, rendered
from attention_viz.views.export.sheet import Sheet
from scripts.gallery import PAGE, PICTURES, runs, shortened

__all__ = ["ACROSS", "DOCUMENT", "PRINTED", "page"]

ACROSS = {"column": "85mm", "page": "170mm"}
PRINTED, DOCUMENT = PAGE.parent / "print", PAGE.parent / "print.md"
_LIMIT = 900.0

_HEAD = """# Figures in a paper

This page has every figure of `av.views` twice: 85 mm wide, as in a column, and 170 mm, as across a page. To write one,
call `save(figure, path, trace, width="85mm", footer=False)`. Text is 7 points in a column and 8 across a page. Titles
and labels fit, and cells show their numbers if these are readable. On a screen of 96 dots per inch, the figures are as
large as on paper. A PDF has exactly this width, so LaTeX's `\\includegraphics` needs no scaling. In a column, the
matrices of `compare` are below each other. `.venv/bin/python -m scripts.columns` draws this page's figures.
"""


def main() -> None:
    """Draw the figures in one browser, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m scripts.columns", description="Draw figures at print widths.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these; by default all")
    wanted: list[str] = parser.parse_args().names or list(PICTURES)
    ready = runs()
    laid: dict[str, dict[str, Any]] = {}
    for name in wanted:
        figure = PICTURES[name](ready).to_plotly_json()
        laid |= {f"{name}-{where}": fitted(figure, Sheet.asked(width)) for where, width in ACROSS.items()}

    async def work(draw: Draw) -> dict[str, bytes]:
        return {name: await draw(figure, "svg", 1) for name, figure in laid.items()}

    drawn = rendered("the figures", work, limit=_LIMIT)
    PRINTED.mkdir(exist_ok=True)
    for name, made in drawn.items():
        (PRINTED / f"{name}.svg").write_bytes(shortened(made))
        print(f"docs/print/{name}.svg")
    DOCUMENT.write_text(page(), encoding="utf-8", newline="\n")


def page() -> str:
    """Return the page, with the figures in the gallery's order."""
    parts = [_HEAD]
    for name in PICTURES:
        shown = [f"![{name}, {width} wide](print/{name}-{where}.svg)" for where, width in ACROSS.items()]
        parts.append(f"## {name}\n\n" + "\n\n".join(shown))
    return "\n\n".join(parts).replace("\n\n\n", "\n\n") + "\n"


if __name__ == "__main__":
    main()
