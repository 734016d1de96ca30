"""Pictures for print: true to their size, words inside the page and clear of each other, numbers where they belong."""

import functools
import html
import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch

import attention_viz as av
from attention_viz.views import all_heads, head_grid, heatmap, heatmap_svg, save, side_by_side
from attention_viz.views.export import browsers
from attention_viz.views.export.fitted import fitted
from attention_viz.views.export.save import printed
from attention_viz.views.export.sheet import Sheet, in_pixels
from attention_viz.views.figures.grids import is_turned
from attention_viz.views.style.captions import caption, model_name

SVG = "{http://www.w3.org/2000/svg}"
WORDS = "When Mary and John went to the store, John gave a drink to internationalization·very".split() * 20
MM = 96 / 25.4


def trace_of(tokens: int, *, heads: int = 2, layers: int = 1, name: str = "/home/me/models/my-folder") -> av.Trace:
    made = torch.Generator().manual_seed(tokens)
    query, key, value = (torch.randn(layers, heads, tokens, 8, generator=made) for _ in range(3))
    closed = av.masks.causal(tokens)
    return av.Trace.from_qkv([*query], [*key], [*value], closed, labels=WORDS[:tokens], name=name)


@functools.cache
def drawn_once(draw: Callable[..., Any], layers: int, heads: int) -> dict[str, Any]:
    return draw(trace_of(2, heads=heads, layers=layers, name="m" * 70)).to_plotly_json()


def numbers(document: str) -> list[tuple[float, float, str]]:
    """Column, row and text of what is printed in cells, in the matrix's own pixels."""
    texts = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" fill="#[0-9A-F]{6}">((?:&lt;)?[\d.]+)</text>', document)
    return [(float(x), float(y), html.unescape(text)) for x, y, text in texts]


@pytest.mark.parametrize(
    ("length", "pixels"),
    [
        ("170mm", 642.52),
        ("8.5cm", 321.26),
        ("6.7in", 643.2),
        ("480pt", 640),
        (" 300 px ", 300),
        (300, 300),
        (None, None),
    ],
)
def test_lengths_are_written_as_people_write_them(length: str | float | None, pixels: float | None) -> None:
    assert in_pixels(length, "width") == (pixels if pixels is None else pytest.approx(pixels, abs=0.01))


@pytest.mark.parametrize("length", ["170", "wide", "1mm", "9m", "-5mm", 5, float("nan"), float("inf"), 10**6])
def test_what_is_no_length_is_refused(length: str | float) -> None:
    with pytest.raises(av.AttentionVizError, match=r"width must be "):
        in_pixels(length, "width")
    with pytest.raises(av.AttentionVizError, match="3 to 48 points; got 90"):
        Sheet.asked(font_size=90)


@pytest.mark.parametrize("tokens", [1, 3, 25, 200])
@pytest.mark.parametrize("width", ["85mm", "170mm"])
@pytest.mark.parametrize("named", ["short", "a-model-whose-name-is-as-long-as-those-on-the-hub-can-be-and-then-some"])
def test_every_word_of_a_heads_picture_stands_inside_the_page_and_clear_of_the_next(
    tokens: int, width: str, named: str
) -> None:
    trace = trace_of(tokens, name=named)
    root = ElementTree.fromstring(heatmap_svg(trace, 0, 1, width=width))
    wide, high = (float(root.attrib[side]) for side in ("width", "height"))
    assert wide == pytest.approx(float(width[:-2]) * MM, abs=0.01)
    matrix = next(one for one in root.findall(f"{SVG}g") if "translate" in one.get("transform", ""))
    left, top = map(float, re.findall(r"[\d.]+", matrix.attrib["transform"]))
    for group in (root, matrix, root.findall(f"{SVG}g")[-1]):
        for text in group.findall(f"{SVG}text"):
            size = float(text.get("font-size") or group.attrib["font-size"])
            x, y = (float(text.get(axis, 0)) + start * (group is matrix) for axis, start in (("x", left), ("y", top)))
            if text.get("transform") is None:
                assert x >= 0 and x + 0.57 * size * len(text.text or "") <= wide and 0 < y <= high, text.text
    for across in (False, True):
        group = [one for one in matrix.findall(f"{SVG}g") if one.get("font-family")][across]
        size = float(group.attrib["font-size"])
        at = [float(re.findall(r"[\d.]+", one.get("transform", one.get("y", "")))[0]) for one in group]
        assert all(b - a >= size for a, b in itertools.pairwise(at)), "labels touch"
        longest = max(len(one.text or "") for one in group)
        assert longest * 0.61 * size <= (top if across else left) + 1, "a label runs out"


def test_numbers_stand_in_every_cell_that_isnt_blocked_and_in_no_other() -> None:
    weights = torch.tensor([[1.0, 0, 0], [0.98, 0.02, 0], [0.6996, 0.0004, 0.3]])
    trace = av.Trace.from_weights(weights, ["a", "b", "c"], allowed=av.masks.causal(3))
    assert [text for *_, text in numbers(heatmap_svg(trace, 0, 0))] == ["1.00", "0.98", "0.02", "0.70", "<0.01", "0.30"]
    assert not numbers(heatmap_svg(trace, 0, 0, numbers=False))
    assert not numbers(heatmap_svg(trace_of(25), 0, 0, width="85mm")), "they couldn't be read"
    figure: Any = heatmap(trace, 0, 0)
    texts = [[text.strip() for text in row] for row in figure.data[0].text]
    over = next(one for one in figure.data if one.name == "numbers")
    both = [
        html.unescape("".join(pair)).strip()
        for row in zip(texts, over.text, strict=True)
        for pair in zip(*row, strict=True)
    ]
    assert both == ["1.00", "", "", "0.98", "0.02", "", "0.70", "<0.01", "0.30"]


def test_title_footer_and_letters_are_as_asked_for() -> None:
    trace = trace_of(9)
    plain, bare = heatmap_svg(trace, 0, 0), heatmap_svg(trace, 0, 0, title=None, footer=False)
    assert "my-folder · decoder layer 0, head 0</text>" in plain and "/home/me" not in plain
    shown = re.findall(r">([^<>]+)</text>", bare)
    assert not any("my-folder" in text for text in shown) and "my-folder" in bare, "only in what isn't drawn"
    named = heatmap_svg(trace, 0, 0, title="A <b> & C", width="85mm", font_size=10)
    assert "A &lt;b&gt; &amp; C</text>" in named
    assert f'font-size="{10 * 96 / 72:.2f}"' in named
    low = heatmap_svg(trace, 0, 0, width="170mm", height="80mm")
    assert float(ElementTree.fromstring(low).attrib["height"]) == pytest.approx(80 * MM, abs=0.01)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("/home/me/models/bert-tiny/", "bert-tiny"),
        (r"C:\models\bert-tiny", "bert-tiny"),
        ("./bert-tiny", "bert-tiny"),
        ("a/b/c", "c"),
        ("google-bert/bert-base-uncased", "google-bert/bert-base-uncased"),
        ("SmolLM2-135M-Instruct", "SmolLM2-135M-Instruct"),
    ],
)
def test_a_folder_is_called_by_its_last_part(model: str, said: str) -> None:
    assert model_name(model) == said
    assert caption(trace_of(1, name=model), 0, 0, "decoder").startswith(said)


@pytest.mark.parametrize(("layers", "heads"), [(6, 12), (30, 9), (32, 32)])
@pytest.mark.parametrize("width", [85, 170])
@pytest.mark.parametrize("draw", [head_grid, all_heads])
def test_grids_of_heads_are_laid_out_for_their_width(layers: int, heads: int, width: int, draw: Any) -> None:
    laid = fitted(drawn_once(draw, layers, heads), Sheet.asked(f"{width}mm"))
    layout = laid["layout"]
    assert layout["width"] == pytest.approx(width * MM)
    letters = layout["font"]["size"]
    for line in layout["title"]["text"].split("<br>"):
        assert len(html.unescape(line)) * 0.56 * layout["title"]["font"]["size"] <= layout["width"]
    across, down = (layers, heads) if draw is head_grid and is_turned(layers, heads) else (heads, layers)
    for name, room, count in (("xaxis", layout["width"], across), ("yaxis", layout["height"], down)):
        places = layout[name]["tickvals"]
        step = places[1] - places[0] if len(places) > 1 else count
        assert step * room / count >= 1.0 * letters, "labels would touch"
    if width == 85 and heads == 32 and draw is head_grid:
        assert not any(one.get("texttemplate") for one in laid["data"])


def test_what_is_asked_of_a_figure_is_done_to_it() -> None:
    trace = trace_of(9, heads=8)
    figure = head_grid(trace).to_plotly_json()
    assert fitted(figure, Sheet.asked(numbers=False))["data"][0].get("text") is None
    assert fitted(figure, Sheet.asked(title="A <i>"))["layout"]["title"]["text"] == "A &lt;i&gt;"
    assert fitted(figure, Sheet.asked(title=None))["layout"]["title"]["text"] == ""
    assert fitted(figure, Sheet.asked("170mm", "90mm"), 20)["layout"]["height"] == pytest.approx(90 * MM - 20)
    several = fitted(side_by_side(trace, 0).to_plotly_json(), Sheet.asked("85mm"))["layout"]
    shown = [several[name].get("showticklabels") for name in several if name.startswith("xaxis")]
    assert False in shown and shown[-1] is not False, "labels of the upper row would stand in the lower"
    assert figure["layout"]["height"] == 560, "the figure itself stays as it is"


@pytest.mark.parametrize("width", ["85mm", "170mm"])
@pytest.mark.parametrize("tokens", [3, 26, 60])
def test_every_name_of_a_bar_that_a_picture_has_stands_on_paper_too(tokens: int, width: str) -> None:
    figure: Any = av.views.looks(trace_of(tokens), 0, 0, tokens - 1)
    layout = fitted(figure.to_plotly_json(), Sheet.asked(width))["layout"]
    named = len(layout["yaxis"]["ticktext"])
    assert named == len(figure.layout.yaxis.ticktext) and (named == tokens or tokens > 30)
    room = layout["height"] - layout["margin"]["t"] - 6 * layout["font"]["size"]
    assert room / named >= 1.2 * layout["yaxis"]["tickfont"]["size"], "names would touch"
    low = fitted(figure.to_plotly_json(), Sheet.asked(width, "60mm"))["layout"]
    assert low["height"] == pytest.approx(60 * MM) and len(low["yaxis"]["ticktext"]) <= tokens


def test_in_a_column_matrices_that_stood_beside_each_other_stand_below_each_other() -> None:
    one, other = av.scratch("the cat sat"), av.scratch("the dog sat")
    figure = av.views.compare(av.compare(one, other, 0, 0)).to_plotly_json()
    wide, narrow = (fitted(figure, Sheet.asked(width))["layout"] for width in ("170mm", "85mm"))
    assert len({tuple(wide[name]["domain"]) for name in ("xaxis", "xaxis2", "xaxis3")}) == 3
    assert {tuple(narrow[name]["domain"]) for name in ("xaxis", "xaxis2", "xaxis3")} == {(0.0, 1.0)}
    down = [narrow[name]["domain"] for name in ("yaxis", "yaxis2", "yaxis3")]
    assert all(above[0] > below[1] for above, below in itertools.pairwise(down))
    titles = [note["y"] for note in narrow["annotations"] if "cat" in note["text"] or "second" in note["text"]]
    assert titles == [down[0][1], down[2][1]]
    long = av.scratch(" ".join(["word"] * 30))
    names = fitted(av.views.compare(av.compare(long, long, 0, 0)).to_plotly_json(), Sheet.asked("85mm"))["layout"]
    assert any(note["text"].endswith("…”") for note in names["annotations"])
    low = fitted(figure, Sheet.asked("85mm", "60mm"))["layout"]
    assert len({tuple(low[name]["domain"]) for name in ("xaxis", "xaxis2", "xaxis3")}) == 3, "no room to fold"


def test_a_document_is_asked_for_its_words_where_it_has_run(tmp_path: Path) -> None:
    document = heatmap_svg(trace_of(3), 0, 0)
    with pytest.raises(av.AttentionVizError, match="to heatmap_svg"):
        save(document, tmp_path / "head.svg", title="Another")
    save(document, tmp_path / "head.svg", width="85mm")
    root = ElementTree.parse(tmp_path / "head.svg").getroot()
    assert root.attrib["width"] == "85mm"


def test_a_pdf_is_exactly_as_large_as_it_was_asked_to_be() -> None:
    if browsers.at_hand() is None:
        pytest.skip("no Chrome, Chromium or Edge by its usual name")
    trace = trace_of(25, heads=9, layers=3)
    for picture, sheet in (
        (all_heads(trace), Sheet.asked("170mm", "120mm")),
        (heatmap_svg(trace, 0, 0, width="85mm", height="70mm"), Sheet()),
    ):
        made = printed(picture, ("pdf",), trace, sheet=sheet)["pdf"]
        (box,) = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", made)
        wide, high = (float(side) / 72 * 25.4 for side in box)
        expected = (170, 120) if sheet.width else (85, 70)
        assert (wide, high) == pytest.approx(expected, abs=0.2)
        assert made.count(b"/Type /Page\n") == 1
