"""Axes: as many tokens are named as find room beside each other."""

import attention_viz as av
from attention_viz import views
from attention_viz.views.style.axes import lower


def test_a_picture_that_is_made_lower_names_fewer_tokens_down_its_side_so_that_no_two_touch() -> None:
    trace = av.scratch(" ".join(["word"] * 27))
    figure = views.heatmap(trace, 0, 0)
    named = len(figure.layout["yaxis"].ticktext)
    lower(figure, 350)
    side = figure.layout["yaxis"]
    assert (named, len(side.ticktext), list(side.tickvals)) == (27, 14, list(range(0, 27, 2)))
    # Where there is room, all keep their names.
    assert len(lower(views.heatmap(trace, 0, 0), 430).layout["yaxis"].ticktext) == 27
