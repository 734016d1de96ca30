"""Labels in pictures: cut by what is seen, and no markup."""

import html

import pytest

from attention_viz.views.style.wording import escaped, readable, shortened


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
