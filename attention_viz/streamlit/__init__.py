"""The app's components for your own Streamlit app: explorer, atlas, steps, mask and why.

Each takes a trace and a key of its own, and returns the reader's choice. None needs the app's pages or state.
"""

from attention_viz.streamlit.heads import atlas, explorer
from attention_viz.streamlit.masking import mask
from attention_viz.streamlit.one_head import steps, why

__all__ = ["atlas", "explorer", "mask", "steps", "why"]
