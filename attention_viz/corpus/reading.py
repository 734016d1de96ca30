"""A corpus as texts, from files, folders, the hub or a list."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from attention_viz.corpus.hub import ON_HUB, hub_rows
from attention_viz.corpus.pictured import checked_pair
from attention_viz.errors import UnusableText

if TYPE_CHECKING:
    import pandas

__all__ = ["SPLITS", "Corpus", "Source"]

Source = str | PathLike[str] | Iterable[str] | Iterable[tuple[str, str | PathLike[str]]]

# How a .txt file and standard input become texts.
SPLITS = ("lines", "sentences")
# Rows of a table that are read at a time.
_ROWS = 1_000
# A sentence's end: its mark, what closes a quotation after it, and a space; or an empty line.
_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s)|\n\s*\n|[。！？]+[」』）]*")


@dataclass(frozen=True)
class Corpus:
    """A source of texts, and how to split it.

    Attributes:
        source: a .txt, .jsonl, .csv or .parquet file, a folder of these, "-" for standard input, "hub:NAME" for a data
            set on the hub, or the texts.
        column: the column, or the field of a .jsonl object, with the text.
        split: "lines" for one text per line of a .txt; "sentences" for passages of the whole file, cut at sentence
            ends.
        longest: the most characters of a passage of several sentences.
        picture: the column, or field, with the path of each text's image, beside its file, for a model that reads text
            with images; None for none.
    """

    source: Source
    column: str = "text"
    split: str = "lines"
    longest: int = 400
    picture: str | None = None

    def __post_init__(self) -> None:
        """Refuse another way to split."""
        if self.split not in SPLITS:
            raise UnusableText(f"can't split at {self.split!r}; choose {', '.join(SPLITS)}")

    @property
    def again(self) -> bool:
        """Whether it is local and can be read a second time."""
        source = self.source
        if isinstance(source, str | PathLike):
            return str(source) != "-" and not _is_on_hub(source)
        return not isinstance(source, Iterator)

    @property
    def name(self) -> str:
        """Its name: the file's, the folder's, or that on the hub."""
        if not isinstance(self.source, str | PathLike):
            return "texts"
        if _is_on_hub(self.source):
            return str(self.source)
        return "standard input" if str(self.source) == "-" else Path(self.source).name

    def texts(self) -> Iterator[str]:
        """Yield the texts in order, without empty ones.

        Raises:
            UnusableText: a file is missing, of an unknown kind, not UTF-8, or lacks the column; or a value isn't a
                text.
        """
        for text in self._all():
            if isinstance(text, tuple | list):
                raise UnusableText("a corpus of texts has a text with an image; choose a model that reads both")
            if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
                raise UnusableText(f"a corpus needs texts; got {type(text).__name__}")
            if text.strip():
                yield text

    def pairs(self) -> Iterator[tuple[str, Path]]:
        """Yield the texts with their images' paths in order; an empty text with an image is skipped when read.

        Raises:
            UnusableText: as `texts`, or a text has no image.
            UnusablePicture: an image isn't a file's path.
        """
        for one in self._all():
            yield checked_pair(one, self.name)

    def _all(self) -> Iterator[Any]:
        if not isinstance(self.source, str | PathLike):
            yield from self.source
        elif str(self.source) == "-":
            yield from self._of_lines(sys.stdin, "standard input")
        elif _is_on_hub(self.source):
            yield from self._of_rows(hub_rows(str(self.source)), str(self.source))
        else:
            for path in self._files(Path(self.source)):
                yield from _KINDS[path.suffix.lower()](self, path)

    def _files(self, path: Path) -> list[Path]:
        known = ", ".join(_KINDS)
        if path.is_dir():
            found = sorted(one for one in path.rglob("*") if one.suffix.lower() in _KINDS and one.is_file())
            if not found:
                raise UnusableText(f"the folder {path} has no text files; add one or more of {known}")
            return found
        if not path.is_file():
            why = f"the corpus {path} doesn't exist; name a file of {known}, a folder of them, or -"
            raise UnusableText(why) from FileNotFoundError(path)
        if path.suffix.lower() not in _KINDS:
            raise UnusableText(f"the corpus {path} has an unknown ending; use one of {known}")
        return [path]

    def _of_lines(self, lines: TextIO, name: str) -> Iterator[str]:
        try:
            if self.split == "lines":
                yield from (line.rstrip("\r\n") for line in lines)
            else:
                yield from _passages(lines, self.longest)
        except UnicodeDecodeError as error:
            raise UnusableText(f"{name} isn't UTF-8 text: {error.reason} at byte {error.start}") from None

    def read_lines(self, path: Path) -> Iterator[str]:
        """Yield the texts of a .txt file."""
        with _opened(path) as lines:
            yield from self._of_lines(lines, str(path))

    def read_objects(self, path: Path) -> Iterator[Any]:
        """Yield the texts of a .jsonl file: each line is a text in quotes, or an object with the column as a field."""
        with _opened(path) as lines:
            for number, line in enumerate(Corpus("-")._of_lines(lines, str(path)), start=1):
                if line.strip():
                    found = [_text_in(line, column, f"{path}, line {number}") for column in self._columns]
                    yield from self._of_columns(path, *([one] for one in found))

    def read_csv(self, path: Path) -> Iterator[Any]:
        """Yield the texts of a .csv file."""
        import pandas

        try:
            opened: Any = pandas.read_csv(path, chunksize=_ROWS, dtype=str, keep_default_na=False, encoding="utf-8")
            with opened as frames:
                for frame in frames:
                    yield from self._of_frame(frame, path)
        except UnicodeDecodeError as error:
            raise UnusableText(f"{path} isn't UTF-8 text: {error.reason} at byte {error.start}") from None
        except (pandas.errors.ParserError, pandas.errors.EmptyDataError) as error:
            raise UnusableText(f"can't read {path} as a table: {error}") from None

    def read_parquet(self, path: Path) -> Iterator[Any]:
        """Yield the texts of a .parquet file."""
        import pyarrow
        from pyarrow import parquet

        try:
            table: Any = parquet.ParquetFile(path)
            self._check_columns(table.schema_arrow.names, path)
            for batch in table.iter_batches(batch_size=_ROWS, columns=self._columns):
                found = [cast("list[Any]", batch.column(name).to_pylist()) for name in self._columns]
                yield from self._of_columns(path, *found)
        except pyarrow.ArrowException as error:
            raise UnusableText(f"can't read {path} as a table: {error}") from None

    def _of_rows(self, rows: Iterable[dict[str, Any]], name: str) -> Iterator[str]:
        for row in rows:
            self._check_columns(list(row), name)
            if row[self.column] is not None:
                yield row[self.column]

    def _of_frame(self, frame: "pandas.DataFrame", path: Path) -> Iterator[Any]:
        self._check_columns([str(name) for name in frame.columns], path)
        yield from self._of_columns(path, *(frame[name].tolist() for name in self._columns))

    @property
    def _columns(self) -> list[str]:
        return [self.column] if self.picture is None else [self.column, self.picture]

    def _of_columns(self, path: Path, texts: list[Any], pictures: list[Any] | None = None) -> Iterator[Any]:
        """Yield the texts that there are, with their images' paths beside a file."""
        for text, picture in zip(texts, pictures or texts, strict=True):
            if text is not None:
                beside = path.parent / picture if isinstance(picture, str) and picture else picture
                yield text if pictures is None else (text, beside)

    def _check_columns(self, columns: list[str], name: str | Path) -> None:
        wrong = next((one for one in self._columns if one not in columns), None)
        if wrong is not None:
            raise UnusableText(f"{name} has no column {wrong!r}; its columns are {', '.join(columns)}")


_KINDS: dict[str, Callable[[Corpus, Path], Iterator[Any]]] = {
    ".txt": Corpus.read_lines,
    ".jsonl": Corpus.read_objects,
    ".csv": Corpus.read_csv,
    ".parquet": Corpus.read_parquet,
}


def _is_on_hub(source: object) -> bool:
    """Match hub names; files of that name need a path."""
    return isinstance(source, str) and source.startswith(ON_HUB)


def _opened(path: Path) -> TextIO:
    try:
        return path.open(encoding="utf-8-sig", newline=None)
    except OSError as error:
        raise UnusableText(f"can't read {path}: {error.strerror or error}") from None


def _text_in(line: str, column: str, place: str) -> str:
    try:
        found = json.loads(line)
    except json.JSONDecodeError as error:
        raise UnusableText(f"{place} isn't valid JSON: {error.msg}") from None
    if isinstance(found, dict):
        fields = cast("dict[str, Any]", found)
        if column not in fields:
            raise UnusableText(f"{place} has no {column!r}; its fields are {', '.join(fields)}")
        found = fields[column]
    if not isinstance(found, str):
        raise UnusableText(f"{place} contains {type(found).__name__}; use a text, or an object with {column!r}")
    return found


def _passages(lines: Iterable[str], longest: int) -> Iterator[str]:
    passage = ""
    for sentence in filter(None, _sentences(lines)):
        if passage and len(passage) + 1 + len(sentence) > longest:
            yield passage
            passage = ""
        passage = f"{passage} {sentence}".strip()
    yield passage


def _sentences(lines: Iterable[str]) -> Iterator[str]:
    """Split at sentence ends and empty lines, not line ends."""
    open_part = ""
    for line in lines:
        open_part, start = open_part + line, 0
        for end in _END.finditer(open_part):
            yield " ".join(open_part[start : end.end()].split())
            start = end.end()
        open_part = open_part[start:]
    yield " ".join(open_part.split())
