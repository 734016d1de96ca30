"""Words that differ between two texts: nothing is lost, and what is marked is what differs."""

from attention_viz.analysis.comparison.texts import text_changes


def marked(one: str, other: str) -> list[list[tuple[str, str]]]:
    return [[(piece.text, piece.change) for piece in text if piece.change] for text in text_changes(one, other)]


def test_a_replaced_word_is_swapped_in_both_texts_and_a_lone_one_in_its_own() -> None:
    assert marked("The bank of the river", "The bank of the city") == [[("river", "swapped")], [("city", "swapped")]]
    assert marked("It rained", "It rained badly.") == [[], [("badly", "alone"), (".", "alone")]]
    assert marked("Mary's dog  ran", "Mary's dog\nran") == [[], []]


def test_the_pieces_are_the_text_and_equal_words_are_counted_in_any_case() -> None:
    text = "The cat, the dog — don't\tstop the cat!"
    (pieces, _) = text_changes(text, "")
    assert "".join(piece.text for piece in pieces) == text
    counted = [(piece.text, piece.number) for piece in pieces if piece.number]
    assert counted == [("The", "₁"), ("cat", "₁"), ("the", "₂"), ("the", "₃"), ("cat", "₂")]


def test_scripts_without_spaces_differ_sign_by_sign() -> None:
    assert marked("我喜欢猫", "我喜欢狗") == [[("猫", "swapped")], [("狗", "swapped")]]
