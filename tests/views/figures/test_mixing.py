"""Pictures of layers without a softmax: signed weights, and what arrives."""

from typing import Any

import numpy
import pytest
import torch

import attention_viz as av
from attention_viz import views
from attention_viz.analysis.comparison.shares import in_shares
from attention_viz.errors import ShapeError, TraceError
from attention_viz.trace.trace import Trace
from attention_viz.views.style.theme import LIGHT, channels
from tests.recording.mixers.hybrids import build


def trace_of(name: str) -> Trace:
    return av.wrap(build(name)).trace_ids((torch.arange(12)[None] * 7) % 97)


@pytest.fixture(scope="module")
def hybrid() -> Trace:
    return trace_of("qwen3_next")


def matrix(figure: Any) -> Any:
    return figure.data[0]


def heatmaps(figure: Any) -> list[Any]:
    return [one for one in figure.data if one.type == "heatmap"]


def test_a_heatmap_has_the_sign_by_colour_and_the_size_on_a_logarithmic_scale(hybrid: Trace) -> None:
    weights = hybrid.weights(0, 2, "mixer").double().numpy()
    drawn = matrix(views.heatmap(hybrid, 0, 2, "mixer"))
    with numpy.errstate(divide="ignore"):
        wanted = numpy.sign(weights) * (1 + numpy.log10(abs(weights) / abs(weights).max()) / 4).clip(0, 1)
    assert numpy.abs(drawn.z - numpy.nan_to_num(wanted)).max() < 1e-5
    assert (drawn.zmin, drawn.zmax) == (-1, 1) and [one for _, one in drawn.colorscale] == list(LIGHT.differences)
    query, key = numpy.unravel_index(weights.argmin(), weights.shape)
    words, row = drawn.hovertext[query][key], weights[query]
    share = abs(row[key]) / abs(row).sum()
    assert f"taken away from {query * 7 % 97}: −{abs(row[key]):.4g}" in words and f"share of size {share:.3f}" in words
    assert f"Σ|·| {abs(row).sum():.4g}" in words and "−" not in drawn.hovertext[0][5]
    figure = views.heatmap(hybrid, 0, 2, "mixer")
    assert figure.layout.title.text.endswith("Layer 0 · gated delta · head 2")
    assert "may not attend" not in str(figure.data) and "blocked" not in str(figure.data)


def test_a_head_as_svg_has_the_colours_of_its_signs(hybrid: Trace) -> None:
    document = views.heatmap_svg(hybrid, 0, 2, "mixer")
    assert "signed weight" in document and LIGHT.differences[0] in document and "looks" not in document
    with pytest.raises(TraceError, match="mixer"):
        views.looks(hybrid, 0, 0, 3, stream="mixer")
    with pytest.raises(ShapeError, match="a signed row isn"):
        views.head_grid(hybrid, "entropy", "mixer")
    # A negative metric has two colours, around 0.
    sums = matrix(views.head_grid(hybrid, "row_sum", "mixer"))
    assert sums.zmin == -sums.zmax if (sums.z < 0).any() else sums.zmin == 0


def test_what_arrives_is_the_length_of_weight_times_value_in_all_channels() -> None:
    trace = trace_of("jamba")
    mixer = trace.attention(layer := trace.layer_numbers("mixer")[0], "mixer")
    parts = mixer.weights[..., None].double() * mixer.value[:, None].double()
    wanted = parts.square().sum(dim=(0, -1)).sqrt().numpy()
    figure = views.arrived(trace, layer)
    drawn = matrix(figure)
    texts = [[float(words.rpartition(": ")[2]) for words in row] for row in drawn.hovertext]
    assert numpy.abs(numpy.array(texts) - wanted).max() < 1e-3 * wanted.max() and drawn.zmin == 0
    assert figure.layout.title.text.endswith(f"all {mixer.shape[0]} channels: what arrived")
    with pytest.raises(TraceError, match="has a matrix for each of its"):
        views.side_by_side(trace, layer, "mixer")
    with pytest.raises(TraceError, match="'decoder' has none"):
        views.arrived(trace, layer, stream="decoder")
    # One picture for each layer, however many channels it has.
    assert matrix(views.all_heads(trace, "mixer")).z.shape == (trace.layer_count("mixer"), 1)


def test_all_heads_and_heads_side_by_side_have_one_matrix_each(hybrid: Trace) -> None:
    figure = views.all_heads(hybrid, "mixer")
    assert matrix(figure).z.shape == (1, 4) and figure.layout.yaxis.ticktext == ("0 · gated delta",)
    heads = heatmaps(views.side_by_side(hybrid, 0, "mixer"))
    largest = hybrid.attention(0, "mixer").weights.abs().amax(dim=(1, 2))
    assert [round(float(abs(one.z).max()), 4) for one in heads] == [
        round(1 + float(torch.log10(one / largest.max())) / 4, 4) for one in largest
    ]
    assert channels(LIGHT.differences[0]) != channels(LIGHT.weights[-1])


def test_a_mixer_and_a_softmax_head_are_compared_by_signed_shares_of_size(hybrid: Trace) -> None:
    found = av.compare(hybrid, hybrid, 0, 1, other_layer=1, other_head=2, stream="mixer", other_stream="decoder")
    weights = hybrid.weights(0, 1, "mixer").double()
    shares = weights / weights.abs().sum(dim=-1, keepdim=True)
    left, right, change = heatmaps(views.compare(found))[:3]
    assert numpy.abs(left.z - shares.numpy()).max() < 1e-6 and left.zmin == -left.zmax
    assert numpy.abs(right.z - hybrid.weights(1, 2, "decoder").numpy()).max() < 1e-6
    assert numpy.abs(change.z - (right.z - left.z)).max() < 1e-6
    assert "share of size" in left.hovertext[3][2] and "attends" not in left.hovertext[3][2]
    assert in_shares(in_shares(found)).weights.allclose(in_shares(found).weights)
