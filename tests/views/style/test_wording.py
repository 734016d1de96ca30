"""Labels in pictures: cut by what is seen, and no markup."""

import html
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attention_viz.trace.spelling import visible, weight_text
from attention_viz.views.style.wording import drawn_names, escaped, one_line, readable, share_text, shortened
from tests.shipped import shipped


@pytest.mark.parametrize("label", ["<|startoftranscript|>", "a<b>&\"c'" * 4, "&&&&&&&&&&&&&&&&&&&&&&"])
@pytest.mark.parametrize("longest", [2, 9, 18])
def test_a_label_is_cut_as_it_is_seen_whether_before_or_after_it_is_made_safe(label: str, longest: int) -> None:
    after = shortened(escaped(label), longest)
    assert after == escaped(shortened(label, longest))
    assert len(html.unescape(after)) == longest


def test_a_label_whose_signs_find_room_is_whole_however_many_letters_write_them() -> None:
    assert shortened(escaped("<|endoftext|>")) == "&lt;|endoftext|&gt;"


def test_of_spaces_only_the_one_before_a_unit_stays_one() -> None:
    assert readable(["0.74 s", " ", "a  b", "<s>", "\n"]) == ["0.74 s", "␣", "a␣␣b", "&lt;s&gt;", "↵"]


def test_what_is_cut_off_of_a_label_is_not_gone_through() -> None:
    label, text = "&x" * 1_500_000, "🏴󠁧󠁢󠁥󠁮󠁧󠁿\n\u200b " * 400_000
    began = time.process_time()
    for _ in range(20):
        assert (len(shortened(label)), len(one_line(text, 40))) == (18, 40)
    assert time.process_time() - began < 2


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("ab \n&<🏴\U000e0067\U000e007f\u200b\udc80\u0301"), max_size=300), st.integers(2, 30))
def test_a_line_begins_as_that_of_the_whole_text(text: str, longest: int) -> None:
    assert one_line(text, longest) == shortened(visible(" ".join(text.split())).replace("␣", " "), longest)


def test_a_label_in_a_hover_has_an_end() -> None:
    (read,) = readable(["<" * 100_000])
    assert read == "&lt;" * 300 + "…"


@pytest.mark.parametrize(
    ("label", "written"),
    [
        ("·العالم", "\u2068·العالم\u2069"),
        ("‿ة", "\u2068‿ة\u2069"),
        ("و₃", "\u2068و₃\u2069"),
        ("<גדול>", "\u2068&lt;גדול&gt;\u2069"),
        ("٣", "\u2068٣\u2069"),
        ("bank₁", "bank₁"),
    ],
)
def test_a_word_from_right_to_left_is_isolated_with_its_mark_and_its_position(label: str, written: str) -> None:
    assert escaped(label) == written == escaped(escaped(label) if "&" not in written else label)


@pytest.mark.parametrize("longest", [3, 9])
def test_what_is_cut_of_an_isolated_word_leaves_it_isolated(longest: int) -> None:
    cut = shortened(escaped("·" + "ש" * 30), longest)
    assert cut == "\u2068·" + "ש" * (longest - 3) + "…\u2069"


def test_a_weight_is_written_with_two_digits_as_browsers_write_it() -> None:
    wanted = {0: "0", 0.001: "<0.01", 0.00499: "<0.01", 0.005: "0.01", 0.125: "0.13", 0.58: "0.58", 0.996: "1.00"}
    assert {weight: weight_text(weight) for weight in wanted} == wanted
    assert [weight_text(weight) for weight in (-1.07, -0.001)] == ["−1.07", ">−0.01"]


def test_a_share_is_written_in_percent_as_short_as_it_can_be() -> None:
    wanted = {
        0: "0.0 %",
        0.0003: "<0.1 %",
        0.0005: "0.1 %",
        0.0123: "1.2 %",
        0.0994: "9.9 %",
        0.48: "48 %",
        1.3: "130 %",
    }
    assert {share: share_text(share) for share in wanted} == wanted


def test_names_for_a_canvas_have_no_markup_to_escape_and_repeated_ones_a_number() -> None:
    tokens = shipped("recall").trace("anna red , anna ?").key_tokens()
    assert drawn_names(tokens) == ["<s>", "anna₁", "red", ",", "anna₂", "?"]
