"""The page to compare with: a head chosen from a list, and a Plotly heatmap that the server makes of it.

Started by `benchmarks.switching`, which leaves the weights in a file. As light as such a page gets: the weights are in
memory before anybody chooses, and neither torch nor a model is loaded.
"""

import os

import numpy as np
import plotly.graph_objects as go
import streamlit as st


@st.cache_resource
def weights() -> dict[str, np.ndarray]:
    """The weights of one layer, (head, query, key), and the tokens."""
    with np.load(os.environ["BENCHMARK_WEIGHTS"]) as file:
        return dict(file)


st.set_page_config(layout="wide")
head = st.selectbox("Head", range(len(weights()["weights"])))
tokens = [f"{place} {token}" for place, token in enumerate(weights()["tokens"])]  # axes want each name once
figure = go.Figure(go.Heatmap(z=weights()["weights"][head], x=tokens, y=tokens, zmin=0, zmax=1))
figure.update_layout(title=f"Head {head}", yaxis_autorange="reversed", height=600)
st.plotly_chart(figure)
