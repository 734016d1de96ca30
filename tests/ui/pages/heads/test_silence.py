"""The chosen head ablated, its pair, and its queries and keys: the page's numbers are the library's."""

import re
from pathlib import Path

import pytest
import torch

import attention_viz as av
from attention_viz.edits.effects import likelier, moved_output
from attention_viz.ui.pages.heads.silence import SENTENCES
from tests.ui.screens import Screen

TEXT = "moon cheese frog ring moon cheese"
INDUCTION = "/heads?model=induction&text=moon+cheese+frog+ring+moon+cheese&layer=1&head=1"
BANK = "The bank of the river was flooded"


def test_ablating_the_chosen_head_shows_the_next_word_before_and_after(tmp_path: Path) -> None:
    model = av.load("induction")
    before, after = model.trace(TEXT), model.trace(TEXT, edits=[av.Ablate(1, 1)])
    found = likelier(before, after, len(before.output) - 1)
    names = model.labels([number for number, *_ in found])
    screen = Screen().open(INDUCTION)
    assert f"The next word: “{names[0]}”, {found[0][1]:.3f}." in screen.words
    screen.press("Ablate head")
    assert screen.address["silence"] == "on"
    now = max(range(len(found)), key=lambda place: found[place][2])
    said = f"becomes “{names[now]}”, no longer “{names[0]}”" if now else f"stays “{names[0]}”"
    assert said in screen.words
    rows = re.findall(r"heads-number\">([0-9.]+) → ([0-9.]+)<", screen.part("silenced"))
    assert (f"{found[0][1]:.3f}", f"{found[0][2]:.3f}") in rows
    assert f"moves by {float(moved_output(before, after).mean()):.2%} of its length" in screen.words
    # The whole run can be downloaded here, too, as it was before the ablation.
    (tmp_path / "run").write_bytes(screen.download("Trace (safetensors)"))
    assert torch.equal(av.Trace.load(tmp_path / "run").weights(1, 1), before.weights(1, 1))
    screen.press("Restore head")
    assert "silence" not in screen.address


def test_an_embedder_shows_the_nearest_of_a_dozen_sentences() -> None:
    model = av.load("all-MiniLM-L6-v2")

    def mean(text: str, *edits: av.Ablate) -> torch.Tensor:
        return model.trace(text, edits=edits).output.double().mean(dim=0)

    others = torch.stack([mean(one) for one in SENTENCES])
    old, new = (torch.cosine_similarity(one[None], others) for one in (mean(BANK), mean(BANK, av.Ablate(0, 4))))
    screen = Screen().open(f"/heads?text={BANK.replace(' ', '+')}&layer=0&head=4&silence=on")
    first, now = int(old.argmax()), int(new.argmax())
    said = f"stays “{SENTENCES[first]}”" if first == now else f"becomes “{SENTENCES[now]}”"
    assert f"The nearest sentence {said}" in screen.words
    assert f">{old[first]:.3f} → {new[first]:.3f}<" in screen.part("silenced")


def test_all_heads_ablated_one_at_a_time_colour_the_atlas() -> None:
    model = av.load("induction")
    before = model.trace(TEXT)
    screen = Screen().open(INDUCTION + "&view=silenced")
    assert screen.channel("heads-grid")["effects"] == [None] * 8
    screen.press("Ablate all 8")
    tried = [
        float(moved_output(before, model.trace(TEXT, edits=[av.Ablate(layer, head)])).mean())
        for layer in range(2)
        for head in range(4)
    ]
    assert screen.channel("heads-grid")["effects"] == pytest.approx(tried, abs=1e-6)


def test_a_chosen_pair_lists_the_heads_that_link_it_most_and_marks_them() -> None:
    trace = av.load("induction").trace(TEXT)
    links = {(layer, head): float(trace.weights(layer, head)[5, 2]) for layer in range(2) for head in range(4)}
    best = sorted(links, key=lambda head: -links[head])[:5]
    screen = Screen().open(INDUCTION + "&query=5&key=2")
    assert [tuple(one) for one in screen.channel("heads-grid")["linking"]] == [(*head, "decoder") for head in best]
    layer, head = best[1]
    screen.press(f"{layer}·{head}  {links[best[1]]:.2f}")
    assert (screen.address["layer"], screen.address["head"]) == (str(layer), str(head))
    assert screen.address["query"] == "5"
    screen.press("Clear pair")
    assert "query" not in screen.address and screen.channel("heads-grid")["linking"] == []


def test_queries_and_keys_are_another_view_of_the_head() -> None:
    screen = Screen().open(INDUCTION + "&plot=vectors")
    run = [one["name"] for one in screen.figure("heads-vectors")["data"] if one.get("name")]
    assert run == ["query", "key"]
    assert "plot" not in screen.pick("Head view", "weights").address


def test_of_audio_the_chosen_pairs_word_is_shown_and_the_silence_after_it_is_not_drawn() -> None:
    screen = Screen().open("/heads?model=whisper-tiny.en&layer=2&head=4&query=4&key=37")
    assert re.search(r"“the” \(position 4\): “window”, 0\.9\d\d\.", screen.words)
    axis = screen.figure("heads-one")["layout"]["xaxis"]
    assert axis["range"][1] < 200 and axis["ticktext"][0] == "0.00 s" and len(axis["ticktext"]) <= 9
