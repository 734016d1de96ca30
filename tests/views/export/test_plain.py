"""An SVG file is what Inkscape and LaTeX read: live text in generic faces, millimetres, nothing from outside."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import attention_viz as av
from attention_viz import views
from attention_viz.views import heatmap_svg, save
from attention_viz.views.export.latex import latex_text
from attention_viz.views.export.plain import ATTRIBUTES, ELEMENTS, plain_svg
from attention_viz.views.style.theme import LIGHT, on_ramp
from attention_viz.views.style.wording import escaped

MOON = "moon cheese frog ring moon cheese"
SVG, XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
ANYTHING = st.text(st.characters() | st.characters(categories=["Cs"]) | st.sampled_from("\x00\x0c\ufffe\u202e<&>\"'"))
HARD = ["50%", "a_b & {c}", "#$~^\\", "שלום", "👩‍🔬", "a\x07b", "‿ing", "x₁", "naïve", "|<>|", "你好"]


def trace() -> av.Trace:
    return av.load("induction").trace(MOON)


def named(labels: list[str]) -> av.Trace:
    import torch

    tensors = (torch.randn(2, len(labels), 4, generator=torch.Generator().manual_seed(0)) for _ in range(3))
    return av.Trace.from_qkv(*tensors, av.masks.causal(len(labels)), labels=labels)


def elements(document: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Each element's name and attributes, as documents write them."""
    for element in ElementTree.fromstring(document.encode()).iter():
        known = {
            name.replace(XLINK, "xlink:").replace("{http://www.w3.org/XML/1998/namespace}", "xml:"): value
            for name, value in element.attrib.items()
        }
        yield element.tag.removeprefix(SVG), known


def check(document: str) -> None:
    """Only what Inkscape and LaTeX read."""
    for name, attributes in elements(document):
        assert name in ELEMENTS and set(attributes) <= ATTRIBUTES, (name, set(attributes) - ATTRIBUTES)
        for key, value in attributes.items():
            if key == "font-family":
                assert value in ("sans-serif", "monospace")
            elif key == "xlink:href":
                assert value.startswith("data:image/png;base64,")
            elif key != "offset":
                assert not re.search(r"url\((?!#)|var\(|rgba|%$|https?:", value), (key, value)
    assert re.search(r'<svg [^>]*width="[\d.]+mm" height="[\d.]+mm"', document)


def texts(document: str) -> list[str]:
    return ["".join(one.itertext()) for one in ElementTree.fromstring(document.encode()).iter(f"{SVG}text")]


def saved(picture: Any, path: Path, **more: Any) -> str:
    save(picture, path, **more)
    return path.read_text("utf-8")


def test_a_heads_picture_is_live_text_in_millimetres(tmp_path: Path) -> None:
    run = trace()
    document = saved(heatmap_svg(run, 1, 2, width="85mm"), tmp_path / "a.svg")
    check(document)
    assert 'width="85mm"' in document
    assert set(run.query_tokens().numbered) <= set(texts(document)) and "0.54" in texts(document)


@pytest.mark.parametrize("name", ["heatmap", "steps", "head_grid"])
def test_a_views_picture_is_live_text_in_millimetres(name: str, tmp_path: Path) -> None:
    run = trace()
    figure = getattr(views, name)(run, *(() if name == "head_grid" else (1, 2)))
    document = saved(figure, tmp_path / "a.svg", trace=run, width="170mm")
    check(document)
    assert 'width="170mm"' in document and "<image" not in document, "cells are rectangles"
    words = " ".join(texts(document))
    assert "frog" in words or name == "head_grid"


def test_rectangles_have_the_colours_of_their_weights(tmp_path: Path) -> None:
    run = trace()
    weights = run.weights(1, 2).numpy()
    document = saved(heatmap_svg(run, 1, 2), tmp_path / "a.svg")
    boxes = [one for name, one in elements(document) if name == "rect" and one.get("fill", "").startswith("#")]
    cell = next(float(one["width"]) for name, one in elements(document) if name == "rect" and one.get("fill") == "none")
    size = cell / len(weights)
    for (row, column), weight in numpy.ndenumerate(weights):
        x, y = (column + 0.5) * size, (row + 0.5) * size
        over = [
            one["fill"]
            for one in boxes[1:]
            if float(one["x"]) <= x < float(one["x"]) + float(one["width"])
            and float(one["y"]) <= y < float(one["y"]) + float(one["height"])
        ]
        expected = on_ramp(LIGHT.weights, round(float(weight) * 255) / 255)
        assert over and over[0].lower() == expected.lower(), (row, column, weight)


def test_many_cells_stay_one_sharp_image(tmp_path: Path) -> None:
    import torch
    from PIL import Image

    parts = (torch.randn(1, 200, 4, generator=torch.Generator().manual_seed(1)) for _ in range(3))
    run = av.Trace.from_qkv(*parts, stream="encoder")
    document = saved(heatmap_svg(run, 0, 0), tmp_path / "a.svg")
    check(document)
    (source,) = [one["xlink:href"] for name, one in elements(document) if name == "image"]
    import base64
    import io

    with Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2]))) as image:
        assert image.size == (1200, 1200)
        pixels = numpy.asarray(image)
    assert (pixels[::6, ::6].repeat(6, 0).repeat(6, 1) == pixels).all()


@settings(max_examples=60, deadline=None)
@given(text=ANYTHING, latex=st.booleans())
def test_any_text_is_xml(text: str, latex: bool) -> None:
    inner = f'<text x="1">{escaped(text)}<tspan dy="2">{escaped(text)}</tspan>{escaped(text)}</text>'
    document = plain_svg(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="10" height="20"><title>{escaped(text)}</title>{inner}</svg>',
        latex=latex,
    )
    check(document)
    if not latex:
        clean = ElementTree.fromstring(f"<a>{escaped(text)}</a>").text or ""
        assert "".join(texts(document)).replace("\r", "\n") == 3 * clean.replace("\r", "\n")


def test_tokens_of_any_script_are_text(tmp_path: Path) -> None:
    document = saved(heatmap_svg(named(HARD), 0, 0, width="85mm"), tmp_path / "a.svg")
    check(document)
    found = " ".join(texts(document))
    assert all(one in found for one in ("שלום", "👩‍🔬", "50%", "你好", "a␇b"))


def test_what_other_programs_dont_read_is_left_out() -> None:
    document = plain_svg(
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="96" height="96px">'
        "<style>text{fill:red}</style><script>1</script><foreignObject><p>x</p></foreignObject>"
        '<filter id="f"/><image href="https://example.com/a.png" width="1" height="1"/>'
        '<g class="a" data-b="1" onclick="x()" filter="url(#f)" style="display: none"><text>hidden</text></g>'
        '<svg x="3" y="4" width="50%" height="48" viewBox="0 0 24 24" overflow="hidden"><rect width="100%" height="5"/>'
        "</svg><text style=\"fill: rgba(255, 0, 16, 0.5); font-family: 'A', Menlo; font-size: 9px; white-space: pre\" "
        'clip-path="url(\'#c\')" stroke="var(--x)">a  b</text>'
        '<use href="#f"/><rect fill="url(https://example.com#a)" width="1" height="1"/></svg>'
    )
    check(document)
    found = list(elements(document))
    assert not {name for name, _ in found} & {"image", "use", "style", "script", "filter"} and "hidden" not in document
    (text,) = [one for name, one in found if name == "text"]
    assert text == {
        "fill": "#ff0010",
        "fill-opacity": "0.5",
        "font-family": "monospace",
        "font-size": "9",
        "xml:space": "preserve",
        "clip-path": "url(#c)",
    }
    groups = [one for name, one in found if name == "g"]
    assert groups[0] == {"transform": "translate(3 4) scale(2 2)", "clip-path": "url(#edge0)"}
    assert dict(found[0][1])["width"] == "25.4mm"
    assert [one["width"] for name, one in found if name == "rect"] == ["24", "24", "1"]


def test_latex_is_only_for_svg(tmp_path: Path) -> None:
    with pytest.raises(av.AttentionVizError, match=r"latex=True is for .svg files.*got .pdf"):
        save(heatmap_svg(trace(), 1, 2), tmp_path / "a.pdf", latex=True)


def test_characters_of_latex_are_escaped() -> None:
    assert latex_text("50%_&") == r"50\char37{}\textunderscore{}\char38{}"
    assert latex_text("the₂ ‿ing é") == r"the\textsubscript{2} $\smile$ing é"
    assert latex_text("\u2068שa\u2069") == r"$\langle$U+05E9$\rangle$a"
    assert not re.search(r"[%&#~^]|(?<!\\)[_]", latex_text("".join(map(chr, range(32, 127)))))


def test_inkscape_and_latex_set_the_guides_figure(tmp_path: Path) -> None:
    for program in ("inkscape", "pdflatex"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} isn't installed")
    run = named(HARD)
    save(heatmap_svg(run, 0, 1, width="85mm", title=None, footer=False), tmp_path / "bank.svg")
    save(heatmap_svg(run, 0, 1, width="85mm", title="\n".join(HARD)), tmp_path / "bank-latex.svg", latex=True)
    guide = Path(__file__).parents[3] / "docs/how-to/figure.md"
    (document,) = re.findall(r"```latex\n(.*?)```", guide.read_text("utf-8"), re.DOTALL)
    (tmp_path / "paper.tex").write_text(document, "utf-8")
    for words in (
        ["inkscape", "bank.svg", "--export-filename=bank.pdf"],
        ["inkscape", "bank-latex.svg", "--export-filename=bank-latex.pdf", "--export-latex"],
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
    ):
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    assert (tmp_path / "paper.pdf").read_bytes().startswith(b"%PDF")
    # The page that Inkscape made is as wide as the figure: 85 mm in points.
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+)", (tmp_path / "bank.pdf").read_bytes())
    assert box is not None and abs(float(box[1]) - 85 / 25.4 * 72) < 1
