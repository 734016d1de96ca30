"""What Python's prompt and a notebook show of what this library hands out: a few lines, and nothing run for it."""

import importlib
from collections.abc import Callable

import pytest
import torch

import attention_viz as av
from attention_viz.edits.places import check_whole
from attention_viz.trace.tokens import Tokens

MODEL = av.load("induction")
TRACE = MODEL.trace("moon cheese frog ring moon cheese")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: MODEL, "'induction', decoder: 2 layers × 4 heads"),
        (lambda: TRACE, "decoder: 2 layers × 4 heads × 7 × 7 tokens"),
        (lambda: TRACE.attention(0), "query=<float32 4 × 7 × "),
        (lambda: TRACE.layer(0), "label='0'"),
        (TRACE.query_tokens, "Tokens(7: <s> moon cheese"),
        (TRACE.relevance, "(<float32 4 × 7 × 7>, "),
        (lambda: MODEL.projections(0)["query"], "weight=<float32 "),
        (lambda: av.decompose(MODEL, TRACE, av.Logit("frog")), "table=<table of "),
        (lambda: av.compare(TRACE, TRACE, 0, 1, other_head=2), "layer 0, head 1 with decoder layer 0, head 2: "),
        (lambda: av.Allow(av.masks.causal(2000)), "Allow(allowed=<bool 2000 × 2000>"),
        (lambda: av.Replace(0, 1, torch.eye(500)), "weights=<float32 500 × 500>"),
        (lambda: av.Ablate(0, 1), "Ablate(layer=0, head=1"),
        (lambda: av.Trace.from_weights(torch.eye(900)), "1 layers × 1 heads × 900 × 900 tokens"),
        (lambda: Tokens.of_labels(["word"] * 5000), "Tokens(5000: word word"),
        (lambda: av.scratch("a " * 600), "…, encoder"),
    ],
)
def test_what_is_shown_at_a_prompt_is_a_few_lines(made: Callable[[], object], said: str) -> None:
    text = repr(made())
    assert said in text and len(text) < 700


def test_a_notebook_shows_a_trace_and_its_tokens_without_running_anything() -> None:
    trace = MODEL.trace("moon cheese frog")
    shown = trace._repr_html_()
    assert "<td" in shown and "moon cheese frog" in shown and "layers 0 to 1, 4 heads, 4 × 4 tokens" in shown
    assert "fidelity" not in shown and "fidelity" not in vars(trace)
    assert trace.fidelity.ok and "verified: " in trace._repr_html_()
    assert trace.query_tokens()._repr_html_().count("<tr>") == 5
    found = av.decompose(MODEL, trace, av.Logit("frog"))
    assert f"{found.total:.6g}" in found._repr_html_() and "contribution" in found._repr_html_()


def test_a_notebook_shows_what_a_comparison_compared() -> None:
    one, other = MODEL.trace("moon cheese frog"), MODEL.trace("moon cheese ring")
    found = av.compare(one, other, 1, 1)
    shown = found._repr_html_()
    for part in (
        f"{found.mean:.6f} bits over 1 row<",
        "3 rows that can&#x27;t differ",
        "frog→ring",
        "“moon cheese frog”",
    ):
        assert part in shown
    longer = av.compare(one, MODEL.trace("moon cheese frog ring"), 1, 1)._repr_html_()
    assert "no comparable row" in longer and "+ring" in longer


def test_what_a_person_wrote_is_text_in_a_notebook() -> None:
    trace = av.Trace.from_weights(torch.eye(1), ["<script>x</script>"], name="<b>")
    other = av.compare(trace, av.Trace.from_weights(torch.eye(1), ["y"]), 0, 0)._repr_html_()
    for shown in (trace._repr_html_(), trace.query_tokens()._repr_html_(), other):
        assert "<script" not in shown and "<b>" not in shown and "&lt;script&gt;" in shown


@pytest.mark.parametrize(
    "name", ["attention_viz", "attention_viz.views", "attention_viz.errors", "attention_viz.masks"]
)
def test_dir_lists_what_is_there_and_nothing_else(name: str) -> None:
    module = av.masks if name.endswith("masks") else importlib.import_module(name)
    assert set(module.__all__) - {"__version__"} == {one for one in dir(module) if not one.startswith("__")}
    assert all(hasattr(module, one) for one in dir(module))


def test_nothing_public_of_a_trace_is_for_those_who_made_it() -> None:
    """What runs the model once more stands behind a trace, out of sight."""
    public = {one for one in [*dir(TRACE), *vars(TRACE)] if not one.startswith("_")}
    assert not public & {"measure", "complete", "differentiate", "zero", "run", "rerun"}


def test_numbers_taken_from_a_table_are_layers_heads_and_tokens() -> None:
    layer, head = av.head_table(TRACE)["induction"].idxmax()
    likely = MODEL.candidates(TRACE)["id"].iloc[0]
    assert not isinstance(layer, int) and not isinstance(likely, int)  # numpy's own kinds
    check_whole("layer", layer)
    assert av.explore(TRACE, layer=layer, head=head).html() == av.explore(TRACE, layer=1, head=1).html()
    opened = [av.decompose(MODEL, TRACE, av.Logit(token)).total for token in (likely, int(likely))]
    assert opened[0] == opened[1]
    with pytest.raises(av.ShapeError, match="layer must be a whole number; got True"):
        check_whole("layer", True)
