"""The chosen head ablated, its pair, and its queries and keys: the page's numbers are the library's."""

import re
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

import attention_viz as av
from attention_viz.analysis.likeness import head_distances
from attention_viz.edits.effects import moved_output
from attention_viz.explorer.packet import read_packet
from attention_viz.ui.pages.heads import silence
from attention_viz.ui.pages.heads.choice import VIEWS
from attention_viz.ui.pages.heads.silence import SENTENCES
from attention_viz.views.style.wording import share_text
from tests.ui.screens import Screen

TEXT = "moon cheese frog ring moon cheese"
INDUCTION = "/heads?model=induction&text=moon+cheese+frog+ring+moon+cheese&layer=1&head=1"
BANK = "The bank of the river was flooded"


def effect(screen: Screen) -> dict[str, Any]:
    """What the page tells the browser of the chosen head's ablation."""
    return screen.channel("heads-effect")


def test_ablating_the_chosen_head_shows_the_next_word_before_and_after(tmp_path: Path) -> None:
    model = av.load("induction")
    before, after = model.trace(TEXT), model.trace(TEXT, edits=[av.Ablate(1, 1)])
    old, new = (trace.output[-1].softmax(dim=-1) for trace in (before, after))
    word = int(old.argmax())
    (name,) = model.labels([word])
    screen = Screen().open(INDUCTION)
    assert effect(screen)["was"] == f"The next word: “{name}”, {old[word]:.2f}."
    assert effect(screen)["changed"] is None and not effect(screen)["silent"]
    screen = Screen().open(INDUCTION + "&silence=on")
    told = effect(screen)
    assert told["of"] == "decoder 1 1" and told["silent"]
    assert told["sentence"].startswith(f"Without 1·1, “{name}” falls from {old[word]:.2f} to {new[word]:.2f}")
    assert told["rows"][0][1:3] == pytest.approx([float(old[word]), float(new[word])], abs=1e-6)
    most = int(new.argmax())
    assert most == word or f"“{model.labels([most])[0]}” rises" in told["sentence"]
    assert max(row[2] for row in told["rows"]) == pytest.approx(float(new[most]), abs=1e-6)
    far = float(((after.output - before.output).norm(dim=-1) / before.output.norm(dim=-1)).mean())
    assert f"The output moves by {share_text(far)} of its length" in told["note"]
    # The whole run can be downloaded here, too, as it was before the ablation.
    (tmp_path / "run").write_bytes(screen.download("Trace (safetensors)"))
    assert torch.equal(av.Trace.load(tmp_path / "run").weights(1, 1), before.weights(1, 1))


def test_later_heads_tell_how_much_of_their_weight_the_ablation_moves() -> None:
    model = av.load("induction")
    before, after = (model.trace(TEXT, edits=edits) for edits in ((), [av.Ablate(0, 2)]))
    moved = [
        float((before.weights(layer, head) - after.weights(layer, head)).abs().sum(dim=-1).mean()) / 2
        for layer in range(2)
        for head in range(4)
    ]
    told = effect(
        Screen().open("/heads?model=induction&text=moon+cheese+frog+ring+moon+cheese&layer=0&head=2&silence=on")
    )
    assert told["changed"][2] is None and told["changed"][:2] + told["changed"][3:] == pytest.approx(
        moved[:2] + moved[3:], abs=1e-5
    )
    assert moved[:4] == [0] * 4 and max(moved) > 0.01
    most = moved.index(max(moved)) - 4
    assert f"1·{most} most, {max(moved):.2f} of its weight moves" in told["note"]


def test_an_embedder_shows_the_nearest_of_a_dozen_sentences() -> None:
    model = av.load("all-MiniLM-L6-v2")

    def mean(text: str, *edits: av.Ablate) -> torch.Tensor:
        return model.trace(text, edits=edits).output.double().mean(dim=0)

    others = torch.stack([mean(one) for one in SENTENCES])
    old, new = (torch.cosine_similarity(one[None], others) for one in (mean(BANK), mean(BANK, av.Ablate(0, 4))))
    told = effect(Screen().open(f"/heads?text={BANK.replace(' ', '+')}&layer=0&head=4&silence=on"))
    first, now = int(old.argmax()), int(new.argmax())
    assert (f"The nearest sentence is now “{SENTENCES[now][:-1]}”." in told["sentence"]) is (first != now)
    assert told["rows"][0][0] == SENTENCES[first]  # in full
    assert told["rows"][0][1:3] == pytest.approx([float(old[first]), float(new[first])], abs=1e-6)
    runs = [model.trace(BANK, edits=edits).output for edits in ((), [av.Ablate(0, 4)])]
    moved = (runs[1] - runs[0]).norm(dim=-1) / runs[0].norm(dim=-1)
    most = int(moved[1:-1].argmax())
    words = (
        f"moves by {share_text(moved.mean())}; “{BANK.lower().split()[most]}” most, by {share_text(moved[1 + most])}"
    )
    assert words in told["sentence"]


def test_the_view_of_ablated_heads_runs_by_itself_and_stays() -> None:
    model = av.load("induction")
    before = model.trace(TEXT)
    screen = Screen().open(INDUCTION + "&view=silenced")
    tried = [
        float(moved_output(before, model.trace(TEXT, edits=[av.Ablate(layer, head)])).mean())
        for layer in range(2)
        for head in range(4)
    ]
    assert screen.channel("heads-grid", "effects")["effects"] == pytest.approx(tried, abs=1e-6)
    layer, head = divmod(tried.index(max(tried)), 4)
    assert (
        f"### Without {layer}·{head}, the output moves by {share_text(max(tried))}: the most of 8 heads."
        in screen.words
    )


def test_many_runs_of_a_long_text_wait_for_a_press(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "MOST_TOKENS", 50)
    screen = Screen().open(INDUCTION + "&view=silenced")
    assert screen.channel("heads-grid", "effects")["effects"] == [None] * 8
    assert "Ablating each head takes 8 runs of 7 tokens." in screen.words
    screen.press("Ablate all 8 heads")
    assert None not in screen.channel("heads-grid", "effects")["effects"]


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_has_a_headline_of_its_own(view: str) -> None:
    trace = av.load("induction").trace(TEXT)
    table = av.head_table(trace)
    entropy, first = table["entropy"], table["first"]
    apart = head_distances(trace).fill_diagonal_(9)
    heads = [f"{layer}·{head}" for layer, head in table.index]
    alike = divmod(int(apart.argmin()), len(heads))
    together = numpy.corrcoef(entropy, first)[0, 1]
    says = {
        "roles": "a clear role here",
        "patterns": f"{heads[entropy.argmin()]} has the sharpest rows of all 8 heads, and {heads[entropy.argmax()]}",
        "silenced": "the most of 8 heads",
        "colours": f"Entropy: highest in {heads[entropy.argmax()]} ({entropy.max():.2f})",
        "scatter": f"correlation {together:.2f}.".replace("-", "−"),
        "map": f"{heads[alike[0]]} and {heads[alike[1]]} are most alike",
    }
    screen = Screen().open(f"{INDUCTION}&view={view}&metric=entropy&beside=first")
    (headline,) = [line for line in screen.words.splitlines() if line.startswith("### ")]
    assert says[view] in headline
    assert screen.picker("Atlas view").value == view


def test_the_role_is_a_mean_and_the_sentence_names_the_row_that_is_not_like_it() -> None:
    trace = av.load("all-MiniLM-L6-v2").trace(BANK)
    words = ["[CLS]", *BANK.lower().split(), "[SEP]"]
    own = trace.weights(0, 4)[1:-1, 2:-1]  # without [CLS] and [SEP], and the first word
    assert int((own.max(dim=-1).values >= 0.4).sum()) == 1
    weight = float(trace.weights(0, 4)[words.index("bank"), words.index("river")])
    score = av.roles(trace).loc[(0, 4), "score"]
    screen = Screen().open(f"/heads?text={BANK.replace(' ', '+')}&layer=0&head=4")
    assert f"Broad on average ({score:.2f}). Tokens attend to nearly everything equally." in screen.words
    assert f"One strong row: “bank” → “river” {weight:.2f}." in screen.words


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
    assert re.search(r"“the₁” \(position 4\): “window”, 0\.9\d\.", effect(screen)["was"])
    (grid,) = [one.proto.bytes for one in screen.all("bidi_component") if one.proto.id.endswith("-heads-one")]
    keys = read_packet(grid)[0]["columns"]
    assert len(keys) < 200 and keys[0] == "0.00 s"
