"""Examples in the explorer: one page for all, which reads what it shows from a file of the head's."""

import base64
import json

from attention_viz.corpus.site.frame import SCRIPTS, page
from attention_viz.corpus.site.parts import Head, Site
from attention_viz.explorer.source import page_source, style_sheet

__all__ = ["explored_data", "explorer_page", "explorer_script", "explorer_style"]


def explored_data(head: Head) -> str:
    """A head's examples for the explorer: a script, since a page from a file may not read one otherwise."""
    packed = [base64.b64encode(one.row.packed).decode("ascii") for one in head.examples if one.explored is not None]
    return f"window.EXPLORED = {json.dumps(packed)};\n"


def explorer_script() -> str:
    """What draws an example, once it is there: as a function, since a page from a file may load no module."""
    return f'window.drawExplorer = async () => {{\n"use strict";\n{page_source()}\n}};\n'


def explorer_style() -> str:
    """The explorer's own style."""
    return style_sheet()


def explorer_page(site: Site) -> str:
    """The page; which example it shows stands behind the sign # in its address."""
    body = (
        '<p class="back"><a id="back" href="index.html">All heads</a></p><h1 id="what">An example</h1>'
        '<div id="explorer"></div><script id="payload" type="application/octet-stream"></script>'
        f'<script src="explorer.js"></script>{SCRIPTS}'
    )
    return page("An example in the explorer", site, body, more='<link rel="stylesheet" href="explorer.css">')
