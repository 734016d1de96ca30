import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attention_viz.errors import TraceError
from attention_viz.protocol.fitting import Fit, fit_text
from attention_viz.trace.splitting import split_words
from attention_viz.trace.tokens import Tokens


def test_what_is_not_known_of_tokens_is_filled_in() -> None:
    tokens = Tokens(("a", "b", "c"), (7, 8, 9))
    assert tokens.words == tokens.sentence == (None, None, None)
    assert tokens.special == tokens.padding == (False, False, False)
    assert len(tokens) == 3 and len(Tokens((), ())) == 0


def test_ids_alone_are_labelled_by_themselves() -> None:
    assert Tokens.of_ids([101, 7], [False, True]) == Tokens(("101", "7"), (101, 7), padding=(False, True))


@pytest.mark.parametrize("field", ["ids", "words", "special", "padding", "sentence"])
def test_rows_of_different_length_are_refused_by_name(field: str) -> None:
    rows = {"labels": ("a", "b"), "ids": (1, 2), field: (True, False, True)}
    with pytest.raises(TraceError, match=f"{field} needs 2 entries, one per token; got 3"):
        Tokens(**rows)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The cat sat on mat", "The cat sat on mat"),
        ("The bank is steep, so it's dangerous.", "The bank is steep , so it's dangerous ."),
        ("rock'n'roll isn’t 'quoted' dogs' '", "rock'n'roll isn’t ' quoted ' dogs ' '"),
        ("3.14 a_b x-y 2nd", "3.14 a _ b x-y 2nd"),
        ("<script>=cmd()", "< script > = cmd ( )"),
        ("cafe\u0301 nai\u0308ve \u0301", "cafe\u0301 nai\u0308ve \u0301"),
        ("👩‍👩‍👧👍🏽🏳️‍🌈🇩🇪🇫🇷1️⃣", "👩‍👩‍👧 👍🏽 🏳️‍🌈 🇩🇪 🇫🇷 1️⃣"),
        ("שלום עולם! \u200fمرحبا بك؟", "שלום עולם ! مرحبا بك ؟"),
        ("我喜欢カタカナ、한국어", "我 喜 欢 カ タ カ ナ 、 한국어"),
        ("हिन्दी क्\u200dष नमस्ते", "हिन्दी क्\u200dष नमस्ते"),
        ("a\x00b\tc\r\nd\u200be\ufefff\u2028g\x7f", "a b c d e f g"),
        (" \t\n\x00\u200b\ufeff\u2028\xa0", ""),
        ("", ""),
        ("x\ud800y", "x y"),
    ],
)
def test_a_text_is_split_into_what_is_seen_as_a_word_or_a_sign(text: str, words: str) -> None:
    assert split_words(text) == tuple(words.split())


@settings(max_examples=300)
@given(st.text(st.characters() | st.sampled_from("a1'’ \u0301\u200d🇩👩🏽我\u200b"), max_size=30))
def test_splitting_drops_nothing_that_is_seen_and_keeps_the_order(text: str) -> None:
    words = split_words(text)
    rest = text
    for word in words:
        skipped, found, rest = rest.partition(word)
        assert found == word and split_words(skipped) == ()
        assert split_words(word) == (word,)
    assert split_words(rest) == ()


def count(text: str) -> int:
    return len(split_words(text))


def test_a_text_that_fits_is_kept_whole() -> None:
    assert fit_text(" two words ", count, 2) == Fit(" two words ", "", 2, 2)
    assert fit_text("two words", count, None) == Fit("two words", "", 2, None)


def test_a_text_that_does_not_fit_is_cut_after_the_last_word_that_does() -> None:
    assert fit_text("one, two  three", count, 3) == Fit("one, two", "  three", 4, 3)
    assert fit_text("我喜欢", count, 2) == Fit("我喜", "欢", 3, 2)


@settings(max_examples=100)
@given(st.text(st.sampled_from("ab, \n我🇩🇪'"), max_size=40), st.integers(1, 9), st.integers(0, 3))
def test_what_is_kept_fits_and_nothing_typed_is_lost(text: str, limit: int, added: int) -> None:
    fit = fit_text(text, lambda part: count(part) + added, limit + added)
    assert fit.kept + fit.cut == text
    assert count(fit.kept) <= limit
    assert (fit.cut == "") == (count(text) <= limit)


def test_a_limit_below_what_a_tokenizer_adds_keeps_nothing_of_a_blank_text() -> None:
    assert fit_text("  ", lambda part: count(part) + 2, 1) == Fit("", "  ", 2, 1)


def test_a_word_is_found_however_it_is_written() -> None:
    tokens = Tokens(("Ġa", "Ġbank", "er", "Ġa"), (1, 2, 3, 1), words=(0, 1, 1, 2), spelling=("byte-level",) * 4)
    assert {tokens.index(word) for word in ("Ġbank", "·bank", "bank", "banker", "BANKER")} == {1}
    assert tokens.places("a") == [(0,), (3,)] and tokens.places("banker") == [(1, 2)]
    with pytest.raises(TraceError, match="“a” occurs at positions 0, 3; choose one"):
        tokens.index("a")
    with pytest.raises(TraceError, match="“river” isn't in this text; its tokens are ·a, ·bank"):
        tokens.index("river")


def test_a_time_and_a_patch_are_written_as_they_are() -> None:
    tokens = Tokens(("[CLS]", "0.74 s"), None, special=(True, False), place=(None, (0.74,)))
    assert tokens.written == ("[CLS]", "0.74 s")
