"""What a page goes on holding for a visitor once it is drawn."""

import gc
import weakref

from attention_viz.serving import runs
from attention_viz.serving.run import Request
from tests.ui.screens import Screen

TEXT = "The heron by the weir had not moved"


def test_explore_and_its_buttons_hold_no_run_that_had_to_go_for_those_of_others() -> None:
    screen = Screen().open("/?model=induction&text=" + TEXT.replace(" ", "+"))
    assert screen.files
    key = next(key for key in runs.TRACES._values if key[0] == Request("induction", TEXT))
    held = weakref.ref(runs.TRACES._values[key].trace)
    runs.TRACES.discard(lambda one: one == key)
    gc.collect()
    assert held() is None
    assert all(screen.download(name) for name in ("Weights (CSV)", "Picture (SVG)", "Weights (parquet)"))
