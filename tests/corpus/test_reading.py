"""A corpus is read from every kind of file, a text at a time, and what can't be read is refused by name."""

import io
from pathlib import Path

import pandas
import pytest

import attention_viz as av

TEXTS = ["The bank was closed.", "It rained “cats”, and dogs", "雨が降る。"]


def read(source: object, **options: object) -> list[str]:
    return list(av.Corpus(source, **options).texts())  # pyright: ignore[reportArgumentType]


def test_every_kind_of_file_gives_the_same_texts(tmp_path: Path) -> None:
    frame = pandas.DataFrame({"number": range(3), "text": TEXTS})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    (tmp_path / "a.txt").write_text("\n\n".join(TEXTS) + "\n", "utf-8")
    (tmp_path / "note.md").write_text("not a corpus")
    for ending in ("csv", "parquet", "jsonl", "txt"):
        assert read(tmp_path / f"a.{ending}") == TEXTS
    assert read(tmp_path) == TEXTS * 4
    assert read(iter([*TEXTS, " "])) == TEXTS


def test_standard_input_is_read_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("one\n\ntwo\r\n"))
    assert read("-") == ["one", "two"]


def test_a_whole_text_is_cut_at_the_ends_of_sentences(tmp_path: Path) -> None:
    text = "He went.\nShe stayed at\nhome. “Why?” he asked.\n\nA heading\n\nNobody knew! 雨が降る。雪も降る。"
    (tmp_path / "a.txt").write_text(text, "utf-8")
    whole = [
        "He went.",
        "She stayed at home.",
        "“Why?”",
        "he asked.",
        "A heading",
        "Nobody knew!",
        "雨が降る。",
        "雪も降る。",
    ]
    assert read(tmp_path / "a.txt", split="sentences", longest=1) == whole
    assert read(tmp_path / "a.txt", split="sentences", longest=30) == [
        "He went. She stayed at home.",
        "“Why?” he asked. A heading",
        "Nobody knew! 雨が降る。 雪も降る。",
    ]


def test_what_can_not_be_read_is_refused_by_name(tmp_path: Path) -> None:
    pandas.DataFrame({"id": [1], "body": ["a"]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(av.UnusableText, match=r"a\.parquet has no column 'text'; its columns are id, body"):
        read(tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet", column="body") == ["a"]
    (tmp_path / "b.csv").write_text("id,body\n1,a\n")
    with pytest.raises(av.UnusableText, match="no column 'text'; its columns are id, body"):
        read(tmp_path / "b.csv")
    (tmp_path / "latin.txt").write_bytes("Käse".encode("latin-1"))
    with pytest.raises(av.UnusableText, match=r"latin\.txt isn't UTF-8 text: invalid .* at byte 1"):
        read(tmp_path / "latin.txt")
    (tmp_path / "c.jsonl").write_text('"fine"\n{"text": 3}\n')
    with pytest.raises(av.UnusableText, match="line 2 contains int; use a text"):
        read(tmp_path / "c.jsonl")
    (tmp_path / "d.jsonl").write_text("{oh\n")
    with pytest.raises(av.UnusableText, match="line 1 isn't valid JSON"):
        read(tmp_path / "d.jsonl")
    (tmp_path / "e.parquet").write_bytes(b"no table")
    with pytest.raises(av.UnusableText, match=r"can't read .* as a table"):
        read(tmp_path / "e.parquet")
    with pytest.raises(av.UnusableText, match="doesn't exist"):
        read(tmp_path / "nothing.txt")
    with pytest.raises(av.UnusableText, match=r"unknown ending; use one of \.txt"):
        read(__file__)
    (tmp_path / "empty").mkdir()
    with pytest.raises(av.UnusableText, match="has no text files"):
        read(tmp_path / "empty")
    with pytest.raises(av.UnusableText, match="got int"):
        read([3])
    with pytest.raises(av.UnusableText, match="split at 'words'"):
        read(["a"], split="words")
