"""Plotly's own script, for pages and slides that draw figures in a browser."""

from pathlib import Path

import plotly

__all__ = ["PLOTLY_SCRIPT"]

PLOTLY_SCRIPT = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
