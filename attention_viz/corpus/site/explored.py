"""Examples in the explorer: one page, one data file per head."""

import base64
import json

from attention_viz.corpus.site.frame import rendered
from attention_viz.corpus.site.parts import Head, Site
from attention_viz.explorer.source import page_source, style_sheet


def explored_data(head: Head) -> str:
    """Return a head's examples as a script, because file pages can't fetch data."""
    packed = [base64.b64encode(one.row.packed).decode("ascii") for one in head.examples if one.explored is not None]
    return f"window.EXPLORED = {json.dumps(packed)};\n"


def explorer_script() -> str:
    """Return the drawing function, because file pages can't load modules."""
    return f'window.drawExplorer = async () => {{\n"use strict";\n{page_source()}\n}};\n'


def explorer_style() -> str:
    """Return the explorer's style."""
    return style_sheet()


def explorer_page(site: Site) -> str:
    """Return the page; the URL's # names its example."""
    return rendered("explorer", site=site)
