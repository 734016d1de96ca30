"""What the Masks page says of a mask."""

from dataclasses import replace

from attention_viz.ui.pages.masks.choice import MASKS, MaskChoice
from attention_viz.ui.pages.masks.words import slide_words


def test_a_slide_says_which_mask_it_is_and_where_it_acts_if_that_is_not_everywhere() -> None:
    causal = MaskChoice("causal")
    assert slide_words(causal) == MASKS["causal"][1]
    assert slide_words(MaskChoice("window", window=2)).startswith("With a window of 2, each token may look at itself")
    assert slide_words(MaskChoice("drawn")) == "Some cells are blocked by hand."
    assert slide_words(replace(causal, in_head=3)).endswith(" The mask acts in head 3 only.")
    assert slide_words(replace(causal, in_layer=2, in_head=3)).endswith(" The mask acts in layer 2 and head 3 only.")
