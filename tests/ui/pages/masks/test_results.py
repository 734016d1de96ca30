"""What a mask did in the whole model is worked out once for two runs, and anew for others."""

import pytest

import attention_viz as av
from attention_viz.scratch.model import Scratch
from attention_viz.ui.pages.masks import view
from tests.ui.screens import Screen


def test_what_a_mask_did_is_worked_out_once_for_the_same_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    work_out = view.moved_of

    def counted(*runs: object) -> object:
        made.append(runs)
        return work_out(*runs)

    monkeypatch.setattr(view, "moved_of", counted)
    scratch, text = Scratch(8, 2), "The cat sat on mat"
    before, after, other = (scratch.trace(text, edits=edits) for edits in ((), [av.Block(2, 1)], [av.Block(3, 0)]))
    first = view.moved(before, after, "encoder")
    assert view.moved(before, after, "encoder") is first and len(made) == 1
    assert first.outputs[2] > 0 and not any(first.outputs[at] for at in (0, 1, 3, 4))
    second = view.moved(before, other, "encoder")
    assert second.outputs[3] > 0 and second.outputs[2] == 0
    # Against another run it isn't the same.
    assert not any(view.moved(after, after, "encoder").outputs) and len(made) == 3


def test_padding_opens_on_the_head_that_it_moves_most() -> None:
    told = Screen().open("/masks?mask=padding&batch=A+boat+drifted+by").channel("masks-board")
    heads = told["run"]["heads"]
    assert heads[told["layer"]][told["head"]] == max(one for row in heads for one in row) > 0
    # A head that a link names stays.
    kept = Screen().open("/masks?mask=padding&batch=A+boat+drifted+by&layer=0&head=2").channel("masks-board")
    assert (kept["layer"], kept["head"]) == (0, 2)
