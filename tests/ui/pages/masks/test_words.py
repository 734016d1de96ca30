"""What the Masks page says of a mask."""

from dataclasses import replace

import attention_viz as av
from attention_viz.ui.pages.masks.page import MASKS, MaskChoice
from attention_viz.ui.pages.masks.words import blocked_words, mask_words, slide_words
from tests.shipped import shipped


def test_a_slide_says_which_mask_it_is_and_where_it_acts_if_that_is_not_everywhere() -> None:
    causal = MaskChoice("causal")
    assert slide_words(causal) == MASKS["causal"][1]
    assert slide_words(MaskChoice("window", window=2)).startswith("With a window of 2, each token may attend to itself")
    assert slide_words(MaskChoice("drawn")) == "Some cells are blocked by hand."
    assert slide_words(replace(causal, in_head=3)).endswith(" The mask acts in head 3 only.")
    assert slide_words(replace(causal, in_layer=2, in_head=3)).endswith(" The mask acts in layer 2 and head 3 only.")


def test_a_window_of_a_model_that_looks_back_is_told_by_what_is_left_to_look_at() -> None:
    window = MaskChoice("window", window=2)
    assert mask_words(window).endswith("itself and the one on each side.")
    assert mask_words(window, looks_back=True).endswith("itself and the one before it.")
    assert mask_words(MaskChoice("window", window=4), looks_back=True).endswith("itself and the 3 before it.")
    before = shipped("induction").trace("moon cheese frog ring moon cheese")
    count = len(before.query_tokens())
    after = shipped("induction").trace(before.provenance.text, edits=[av.Allow(av.masks.sliding_window(count, 2))])
    own, left = count * (count + 1) // 2, 2 * count - 1
    assert f"It blocks {own - left} of the {own} cells here that the model leaves open (hatched" in blocked_words(
        before, after, 1, 1, window
    )
