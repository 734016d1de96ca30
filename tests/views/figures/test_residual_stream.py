"""One token's way through a model, drawn: each bar is an addition, and each row below a probability."""

import json

import plotly.graph_objects as go
import pytest
import torch

import attention_viz as av
from attention_viz.circuits.layers.model_flow import ModelFlow, model_flow
from attention_viz.views import residual_stream
from attention_viz.views.style.theme import DARK, LIGHT, ThemeName
from tests.shipped import load_once

TEXT = "moon cheese frog ring moon cheese"


@pytest.fixture(scope="module")
def flow() -> ModelFlow:
    return model_flow(load_once("induction").trace(TEXT))


def odd(word: str) -> ModelFlow:
    """Eight layers of numbers from a seed, around words that could be markup."""
    numbers = torch.Generator().manual_seed(2)
    streams, attention = torch.randn(9, 4, generator=numbers), torch.randn(8, 4, generator=numbers)
    logits = torch.randn(9, 3, generator=numbers).sort(descending=True).values
    sums = {one: (logits.double() / one).logsumexp(dim=-1) for one in (0.5, 1.0, 2.0)}
    return ModelFlow(word, tuple(range(3, 11)), streams, attention, ((word,) * 3,) * 9, logits, sums, 3)


def bars(figure: go.Figure, axis: str) -> list[go.Bar]:
    return [one for one in figure.data if isinstance(one, go.Bar) and (one.xaxis or "x") == axis]


def lines(figure: go.Figure, mode: str) -> list[go.Scatter]:
    return [one for one in figure.data if isinstance(one, go.Scatter) and one.mode == mode]


def test_bars_are_the_additions_as_parts_of_the_sum(flow: ModelFlow) -> None:
    above, below = bars(residual_stream(flow), "x")
    for layer in range(len(flow.layers)):
        middle = flow.streams[layer] + flow.attention[layer]
        assert above.y[layer] == pytest.approx(float(flow.attention[layer].norm() / middle.norm()), rel=1e-5)
        mlp = flow.streams[layer + 1] - middle
        assert below.y[layer] == pytest.approx(-float(mlp.norm() / flow.streams[layer + 1].norm()), rel=1e-5)
        assert f"{float(mlp.norm()):.2f}" in below.hovertext[layer]


@pytest.mark.parametrize(("axis", "temperature"), [("x3", 0.5), ("x4", 1.0), ("x5", 2.0)])
def test_rows_are_the_softmax_of_the_models_logits_at_a_temperature(
    flow: ModelFlow, axis: str, temperature: float
) -> None:
    (drawn,) = bars(residual_stream(flow), axis)
    logits = load_once("induction").trace(TEXT).output[-1].double()
    theirs = torch.softmax(logits / temperature, dim=0).sort(descending=True).values
    assert list(drawn.x) == pytest.approx(theirs[:5].tolist(), rel=1e-4)


@pytest.mark.parametrize("stop", [0, 1, 2])
def test_rows_of_an_early_stop_are_those_of_the_logit_lens(flow: ModelFlow, stop: int) -> None:
    model = load_once("induction")
    lens = av.logit_lens(model, model.trace(TEXT), count=5)  # pyright: ignore[reportArgumentType] -- no module of ours
    there = lens[(lens["position"] == lens["position"].max()) & (lens["layer"] == stop - 1)]
    (drawn,) = bars(residual_stream(flow, stop), "x4")
    assert list(drawn.x) == pytest.approx(there["probability"].tolist(), rel=1e-4)
    assert list(flow.likeliest[stop]) == there["written"].tolist()


def test_layers_that_do_not_run_are_pale_and_the_way_down_begins_before_them(flow: ModelFlow) -> None:
    figure = residual_stream(flow, 1)
    for side in bars(figure, "x"):
        assert list(side.marker.color) == [LIGHT.accent, LIGHT.line]
    (way,) = lines(figure, "lines+markers")
    assert way.x[-1] == 0.5 and way.y[-1] < 0
    for stop, first in ((1, flow.likeliest[1][0]), (2, "frog")):
        names, logits = lines(residual_stream(flow, stop), "text")[1:]
        assert names.text[0] == first and logits.text[0] == f"{float(flow.logits[stop].max()):.1f}"
    assert flow.likeliest[1][0] != "frog"


@pytest.mark.parametrize("word", ["</script>", "<b>x</b>", "\u202eevil", "عربي", "x" * 500])
@pytest.mark.parametrize(("theme", "ground"), [("light", LIGHT.background), ("dark", DARK.background)])
def test_tokens_stay_text_in_both_themes(word: str, theme: ThemeName, ground: str) -> None:
    figure = residual_stream(odd(word), theme=theme)
    drawn = json.dumps(figure.to_plotly_json(), default=str, ensure_ascii=False)
    for markup in ("<b>x</b>", "</script>", "\u202e"):
        assert markup not in drawn
    assert figure.layout.paper_bgcolor == ground
    shown = [str(one) for part in lines(figure, "text") for one in part.text]
    assert all(len(one) < 80 for one in shown)


def test_layers_keep_the_models_own_numbers() -> None:
    texts = [one.text for one in residual_stream(odd("a")).layout.annotations]
    assert "layer 3" in texts and "10" in texts


@pytest.mark.parametrize("stop", [-1, 9])
def test_a_stop_beyond_the_layers_is_refused(stop: int) -> None:
    with pytest.raises(av.ShapeError, match=f"from 0 to 8, the number of layers; got {stop}"):
        residual_stream(odd("a"), stop)


@pytest.mark.parametrize("stop", [0, 1, 2])
def test_without_predictions_the_stream_ends_at_the_sum(flow: ModelFlow, stop: int) -> None:
    figure, whole = residual_stream(flow, stop, predictions=False), residual_stream(flow, stop)
    for ours, theirs in zip(bars(figure, "x"), bars(whole, "x"), strict=True):
        assert list(ours.y) == list(theirs.y) and list(ours.marker.color) == list(theirs.marker.color)
    assert not lines(figure, "text") and not bars(figure, "x4")
    texts = [one.text for one in figure.layout.annotations]
    assert f"sum: {float(flow.streams[stop].norm()):.2f} long" in texts
    assert not any("token" in text or "logit" in text for text in texts)
    (way,) = lines(figure, "lines+markers")
    assert way.x[-1] == stop - 0.5 and figure.layout.yaxis.range[0] < way.y[-1] < -1
