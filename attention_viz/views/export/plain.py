"""Rewrite an SVG document as programs for print read it: Inkscape, and LaTeX by it.

Text stays text, in a generic face. Styles become attributes, inner documents become groups, and small images become
rectangles, which stay sharp. Whatever is left is in `ELEMENTS` and `ATTRIBUTES`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from attention_viz.trace.spelling import xml_text
from attention_viz.views.export.cells import cells_of
from attention_viz.views.export.latex import latex_text
from attention_viz.views.export.sheet import in_millimetres, px
from attention_viz.views.style.wording import escaped

__all__ = ["ATTRIBUTES", "ELEMENTS", "plain_svg"]

ELEMENTS = frozenset(
    "svg g defs clipPath linearGradient stop rect path circle ellipse line polyline polygon text tspan image title "
    "desc".split()
)
# Attributes of form and place, then those that a style may have as well.
_FORM = frozenset(
    "id x y dx dy x1 x2 y1 y2 cx cy r rx ry width height d points transform viewBox offset preserveAspectRatio role "
    "gradientUnits gradientTransform clipPathUnits xlink:href xml:space".split()
)
_STYLE = frozenset(
    "fill fill-opacity fill-rule stroke stroke-opacity stroke-width stroke-dasharray stroke-linecap stroke-linejoin "
    "stroke-miterlimit opacity font-family font-size font-weight font-style text-anchor clip-path clip-rule stop-color "
    "stop-opacity image-rendering".split()
)
ATTRIBUTES = _FORM | _STYLE
_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_RGBA = re.compile(r"rgba\(\s*([\d.]+)\s*,\s*([\d.]+)\s*,\s*([\d.]+)\s*,\s*([\d.]+)\s*\)")
_INSIDE = re.compile(r"""url\((['"&quot;]*)#([\w:.-]+)\1\)""")
# What a colour or number may be; a reference to anything but a part of the document isn't.
_OUTSIDE = re.compile(r"url\(|var\(|expression|javascript:", re.IGNORECASE)
_MONOSPACE = re.compile(r"mono|courier|consolas|menlo", re.IGNORECASE)


@dataclass
class _Document:
    """The clips of inner documents, and how text is written."""

    latex: bool
    clips: list[Element] = field(default_factory=list[Element])


def plain_svg(document: str, *, latex: bool = False) -> str:
    """Return the document with live text, generic faces and a size in millimetres.

    Args:
        latex: whether text is escaped for LaTeX, which sets it if Inkscape exports PDF+LaTeX.
    """
    root = ElementTree.fromstring(document)
    about = _Document(latex)
    width, height = (float(root.attrib[name].removesuffix("px")) for name in ("width", "height"))
    made = Element("svg", {"viewBox": f"0 0 {px(width)} {px(height)}", **_attributes(root)})
    made.attrib |= {"width": f"{in_millimetres(width)}mm", "height": f"{in_millimetres(height)}mm"}
    made.extend(_children(root, about, (width, height)))
    if about.clips:
        defs = Element("defs")
        defs.extend(about.clips)
        made.insert(0, defs)
    return f"{_written(made, top=True)}\n"


def _name(tag: object) -> str:
    """Return a name without its namespace, as documents write it."""
    space, _, name = str(tag).removeprefix("{").rpartition("}")
    return f"xlink:{name}" if space == _XLINK else f"xml:{name}" if space.endswith("/namespace") else name


def _children(parent: Element, about: _Document, size: tuple[float, float]) -> Iterable[Element]:
    for child in parent:
        name = _name(child.tag)
        styles = _styles(child)
        if name not in ELEMENTS or styles.get("display") == "none" or styles.get("visibility") == "hidden":
            continue
        if name == "svg":
            yield _group(child, about, size)
            continue
        attributes = _attributes(child)
        if name == "image":
            yield from cells_of(attributes)
            continue
        made = Element(name, _sized(attributes, size))
        if name in ("text", "tspan", "title", "desc"):
            made.text, made.tail = _text(child.text, name, about), None
        made.extend(_children(child, about, size))
        for one, its in zip(made, child, strict=False):
            if name in ("text", "tspan"):
                one.tail = _text(its.tail, name, about)
        yield made


def _text(text: str | None, name: str, about: _Document) -> str | None:
    return latex_text(text) if text and about.latex and name in ("text", "tspan") else text


def _group(inner: Element, about: _Document, outer: tuple[float, float]) -> Element:
    """Return an inner document as a group, cut off at its edges if it hides the rest."""
    known = _sized(_attributes(inner), outer)
    x, y, width, height = (float(known.get(name, usual)) for name, usual in _box(outer))
    left, top, across, down = map(float, known.get("viewBox", f"0 0 {width} {height}").replace(",", " ").split())
    moves = [f"translate({px(x)} {px(y)})"] * bool(x or y)
    if (across, down) != (width, height):
        moves.append(f"scale({width / across:.5g} {height / down:.5g})")
    moves += [f"translate({px(-left)} {px(-top)})"] * bool(left or top)
    rest = {name: value for name, value in known.items() if name in _STYLE}
    group = Element("g", rest | ({"transform": " ".join(moves)} if moves else {}))
    if inner.attrib.get("overflow", _styles(inner).get("overflow")) == "hidden":
        edge = Element("clipPath", {"id": f"edge{len(about.clips)}"})
        edge.append(Element("rect", {"x": px(left), "y": px(top), "width": px(across), "height": px(down)}))
        about.clips.append(edge)
        group.attrib["clip-path"] = f"url(#{edge.attrib['id']})"
    group.extend(_children(inner, about, (across, down)))
    return group


def _box(outer: tuple[float, float]) -> Iterable[tuple[str, float]]:
    return ("x", 0.0), ("y", 0.0), ("width", outer[0]), ("height", outer[1])


def _sized(attributes: dict[str, str], size: tuple[float, float]) -> dict[str, str]:
    """Write lengths in percent as numbers."""
    known = dict(attributes)
    for name, whole in (("width", size[0]), ("height", size[1])):
        if known.get(name, "").endswith("%"):
            known[name] = px(float(known[name][:-1]) / 100 * whole)
        elif name in known:
            known[name] = known[name].removesuffix("px")
    return known


def _styles(element: Element) -> dict[str, str]:
    pairs = (one.partition(":") for one in element.attrib.get("style", "").split(";"))
    return {name.strip(): value.strip() for name, _, value in pairs if value.strip()}


def _attributes(element: Element) -> dict[str, str]:
    """Return an element's attributes and styles, in words that every program knows."""
    written = {_name(name): value for name, value in element.attrib.items()}
    styles = _styles(element)
    if styles.get("white-space") == "pre":
        written["xml:space"] = "preserve"
    if "href" in written:
        written["xlink:href"] = written.pop("href")
    found: dict[str, str] = {}
    for name, value in (*written.items(), *((name, one) for name, one in styles.items() if name in _STYLE)):
        if name not in ATTRIBUTES or (name == "xlink:href" and not value.startswith("data:image/png;base64,")):
            continue
        found |= _value(name, value)
    return found


def _value(name: str, value: str) -> dict[str, str]:
    """Return an attribute, or a colour with its opacity; nothing for what isn't in the document."""
    if name == "font-family":
        return {name: "monospace" if _MONOSPACE.search(value) else "sans-serif"}
    if (inside := _INSIDE.fullmatch(value)) is not None:
        return {name: f"url(#{inside[2]})"}
    if name != "xlink:href" and _OUTSIDE.search(value):
        return {}
    if (colour := _RGBA.fullmatch(value)) is not None and name in ("fill", "stroke", "stop-color"):
        red, green, blue, share = (float(one) for one in colour.groups())
        opacity = "stop-opacity" if name == "stop-color" else f"{name}-opacity"
        return {name: f"#{round(red):02x}{round(green):02x}{round(blue):02x}", opacity: f"{share:g}"}
    if value == "transparent":
        return {name: "none"}
    if name == "font-size":
        return {name: value.removesuffix("px")}
    return {name: value}


def _written(element: Element, *, top: bool = False) -> str:
    spaces = f' xmlns="{_SVG}" xmlns:xlink="{_XLINK}"' if top else ""
    attributes = "".join(f' {name}="{escaped(value)}"' for name, value in element.attrib.items())
    inside = escaped(element.text or "") + "".join(_written(one) + escaped(one.tail or "") for one in element)
    start = f"<{element.tag}{spaces}{attributes}"
    return xml_text(f"{start}>{inside}</{element.tag}>" if inside else f"{start}/>")
