"""The server's process: Streamlit as its own command starts it, with the model that the app opens on loading beside.

Usage: python -m attention_viz.ui.process run app.py [Streamlit's options].
"""

import os
import sys
import threading

from streamlit.web.cli import main as streamlit

from attention_viz.serving import preload
from attention_viz.ui.address.state import DEFAULT

__all__ = ["begin_loading", "main"]

# What pages draw with; their own modules have to wait for Streamlit.
_DRAWN_WITH = ("attention_viz.explorer.payload", "attention_viz.views.figures.heatmap")


def begin_loading() -> threading.Thread:
    """Load the model that the app opens on, and run its example, in the background."""
    return preload.begin(DEFAULT.request, _DRAWN_WITH)


def main() -> None:
    """Begin to load, and serve."""
    # Threads of torch that wait for each other sleep: spinning, on a busy machine they took twenty times as long. Read
    # when torch is imported.
    _ = os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    begin_loading()
    sys.argv[0] = "streamlit"
    streamlit()


if __name__ == "__main__":
    main()
