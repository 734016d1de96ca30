"""The line on a head that uses the first token as an attention sink."""

import attention_viz as av
from attention_viz.models.model import AttentionModel
from attention_viz.ui.pages.heads.one import sink_words
from tests.ui.screens import Screen

BANK = "The bank of the river was flooded"


def test_a_head_with_a_sink_shows_how_little_it_fetches_there(minilm: AttentionModel) -> None:
    table = av.attention_sinks(minilm, minilm.trace(BANK))
    resting = table["weight"].idxmax()
    row = table.loc[resting]
    layer, head = resting
    screen = Screen().open(f"/heads?text={BANK.replace(' ', '+')}&layer={layer}&head={head}")
    (line,) = [one.value.replace("\\", "") for one in screen.app.caption if "of its weight to" in one.value]
    for number in (row["weight"], row["length"] / row["others"], row["fetched"]):
        assert f"{number:.2f}" in line
    assert row["length"] < row["others"]


def test_a_head_without_a_sink_has_no_line(minilm: AttentionModel) -> None:
    table = av.attention_sinks(minilm, minilm.trace(BANK))
    elsewhere = table.loc[(0, 4)].to_dict()
    assert elsewhere["weight"] < 0.4 and not sink_words(elsewhere, "[CLS]")
    alone = av.attention_sinks(av.Scratch(d_model=6, heads=2), av.Scratch(d_model=6, heads=2).trace("bank"))
    assert alone["weight"].isna().all() and not sink_words(alone.loc[(0, 0)].to_dict(), "bank")
