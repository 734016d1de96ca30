"""Use an untrusted tokenizer that runs in a process of its own, through its answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, cast

import numpy as np
import torch

from attention_viz.errors import UnusableText
from attention_viz.inputs.isolated.asking import LIMITS, LONGEST_TEXT, TextProcess
from attention_viz.inputs.isolated.packing import unpack_pieces, unpack_rows
from attention_viz.sources.huggingface import BatchEncoding

# The most bytes of an answer for each byte of the text, and the most besides.
_BYTES_A_BYTE, _BYTES_AROUND = 1_000, 2_000_000
_NOT_HERE = (
    "this tokenizer runs in its own process, on one text at a time; for transformers' own, use "
    "AutoTokenizer.from_pretrained(folder)"
)


@dataclass(frozen=True)
class _Encoding:
    """A fast tokenizer's encoding, by the tokenizers package's names."""

    ids: list[int]
    type_ids: list[int]
    tokens: list[str]
    word_ids: list[int | None]
    sequence_ids: list[int | None]
    special_tokens_mask: list[int]
    attention_mask: list[int]
    offsets: list[tuple[int, int]]
    n_sequences: int


class IsolatedTokenizer:
    """The part of transformers' tokenizer API that we use; each text is sent to its process.

    Known without a text: special tokens and their ids, `special_tokens_map`, `model_max_length`, `padding_side`,
    `chat_template`, `is_fast`, `vocab_size`.
    """

    def __init__(self, process: TextProcess, described: Mapping[str, Any], added: frozenset[int], source: str) -> None:
        """Keep the process's description; see `load`."""
        self.process, self.added, self.name_or_path = process, added, source
        self.spelling = str(described["spelling"])
        self._described = described

    @classmethod
    def load(cls, folder: Path, name: str, check: Callable[[], None] = lambda: None) -> "IsolatedTokenizer":
        """Load a folder's tokenizer in a process of its own; an exception in `check` ends that."""
        process = TextProcess(name, folder)
        answer = process.load(check)
        rows, _ = unpack_rows(["added"], int(answer.values["added"]), answer.content)
        return cls(process, answer.values, frozenset(rows["added"].tolist()), str(folder))

    def __getattr__(self, name: str) -> Any:
        """Return an entry of the process's description."""
        described = self.__dict__.get("_described", {})
        if name.startswith("_") or name not in described:
            raise AttributeError(f"no attribute {name}, since {_NOT_HERE}")
        return described[name]

    def num_special_tokens_to_add(self) -> int:
        """Return the number of special tokens around a text."""
        return int(self._described["num_special_tokens_to_add"])

    def __len__(self) -> int:
        """Return the number of pieces, added ones included."""
        return int(self._described["length"])

    def __repr__(self) -> str:
        """Describe the tokenizer."""
        return f"IsolatedTokenizer({self._described['kind']} of {self.process.name}, {len(self):,} tokens)"

    def __deepcopy__(self, memo: object) -> "IsolatedTokenizer":
        """Return itself, because it doesn't change."""
        return self

    def __call__(
        self,
        text: str | None = None,
        text_pair: str | None = None,
        *,
        text_target: str | None = None,
        add_special_tokens: bool = True,
        return_tensors: str | None = None,
        return_special_tokens_mask: bool = False,
        return_offsets_mapping: bool = False,
        verbose: bool = True,
    ) -> BatchEncoding:
        """Tokenize a text, or two, as transformers' tokenizers do."""
        target = text is None
        first = text_target if target else text
        texts: tuple[object, ...] = (first, text_pair or "")
        if not all(isinstance(one, str) for one in texts) or return_tensors not in (None, "pt"):
            raise TypeError(f"can't take {', '.join(type(one).__name__ for one in texts)}, since {_NOT_HERE}")
        assert first is not None
        # As transformers has it, an empty second text is none for a fast tokenizer.
        pair = text_pair is not None and not (self.is_fast and not text_pair)
        values, content = _request(first, text_pair or "", pair=pair, target=target)
        answer = self._about(content, {**values, "special": add_special_tokens, "count": False})
        wanted = dict.fromkeys(("special_tokens_mask",) * return_special_tokens_mask)
        encoding = self._encoding(answer.values, answer.content, tuple(wanted), tensors=return_tensors is not None)
        if return_offsets_mapping and encoding.encodings is not None:
            offsets = encoding.encodings[0].offsets
            encoding["offset_mapping"] = torch.tensor([offsets]) if return_tensors else offsets
        return encoding

    def _about(self, content: bytes, values: Mapping[str, Any]) -> Any:
        if len(content) > 4 * LONGEST_TEXT:
            raise UnusableText(f"the text has {len(content):,} bytes; shorten it to {4 * LONGEST_TEXT:,}")
        longest = min(LIMITS.answer, _BYTES_AROUND + _BYTES_A_BYTE * len(content))
        return self.process.ask("encode", values, content, longest=longest)

    def _encoding(
        self, values: Mapping[str, Any], content: bytes, wanted: tuple[str, ...], *, tensors: bool
    ) -> BatchEncoding:
        count = int(values["count"])
        rows, rest = unpack_rows(values["names"], count, content)
        pieces = ["" if piece is None else piece for piece in unpack_pieces(count, rest)]
        inputs = [name for name in values["inputs"] if name != "special_tokens_mask"]
        data = {
            name: torch.from_numpy(rows[name])[None] if tensors else rows[name].tolist() for name in (*inputs, *wanted)
        }
        if not values["fast"]:
            return BatchEncoding(data)
        lists: dict[str, list[int]] = {name: row.tolist() for name, row in rows.items()}
        offsets = list(zip(lists["starts"], lists["ends"], strict=True))
        one = _Encoding(
            lists["input_ids"],
            lists.get("token_type_ids", [0] * count),
            pieces,
            _where(lists["words"], None),
            _where(lists["sequences"], 1),
            lists["special_tokens_mask"],
            lists.get("attention_mask", [1] * count),
            offsets,
            2 if values["sequences"] == 2 else 1,
        )
        return BatchEncoding(data, cast("Any", [one]))

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Return the ids of a text; errors as of a call."""
        return cast("list[int]", self(text, add_special_tokens=add_special_tokens)["input_ids"])

    def count(self, text: str, text_pair: str | None = None, *, add_special_tokens: bool = True) -> int:
        """Return a text's number of ids, without transferring them; errors as of a call."""
        pair = text_pair is not None and not (self.is_fast and not text_pair)
        values, content = _request(text, text_pair or "", pair=pair, target=False)
        answer = self._about(content, {**values, "special": add_special_tokens, "count": True})
        return int(answer.values["count"])

    def decode(self, token_ids: Sequence[int] | int, *, skip_special_tokens: bool = False) -> str:
        """Return the text of some ids."""
        ids = [token_ids] if isinstance(token_ids, int) else list(token_ids)
        longest = min(LIMITS.answer, _BYTES_AROUND + _BYTES_A_BYTE * len(ids))
        answer = self.process.ask("decode", {"skip": skip_special_tokens}, _bytes_of(ids), longest=longest)
        return answer.content.decode("utf-8", "surrogatepass")

    def convert_ids_to_tokens(self, ids: Sequence[int] | int) -> Any:
        """Return the piece of one id, or of several; None if an id has none."""
        several = [ids] if isinstance(ids, int) else list(ids)
        longest = min(LIMITS.answer, _BYTES_AROUND + _BYTES_A_BYTE * len(several))
        answer = self.process.ask("pieces", {}, _bytes_of(several), longest=longest)
        pieces = unpack_pieces(len(several), answer.content)
        return pieces[0] if isinstance(ids, int) else pieces

    def convert_tokens_to_ids(self, tokens: str) -> int | None:
        """Return a piece's id; for an unknown piece the unknown token's id, or None."""
        number = self.process.ask("number", {"piece": tokens}).values["number"]
        return None if number is None else int(number)

    def get_vocab(self) -> dict[str, int]:
        """Return the id of each piece."""
        answer = self.process.ask("vocabulary", {"pieces": True})
        count = int(answer.values["count"])
        rows, rest = unpack_rows(["ids"], count, answer.content)
        pieces = unpack_pieces(count, rest)
        return {str(piece): number for piece, number in zip(pieces, rows["ids"].tolist(), strict=True)}

    def ids(self) -> list[int]:
        """Return the ids of all pieces."""
        answer = self.process.ask("vocabulary", {"pieces": False})
        return unpack_rows(["ids"], int(answer.values["count"]), answer.content)[0]["ids"].tolist()

    def __getstate__(self) -> NoReturn:
        """Refuse to be pickled, because it is tied to a process."""
        raise TypeError(_NOT_HERE)


def _request(first: str, second: str, *, pair: bool, target: bool) -> tuple[dict[str, Any], bytes]:
    try:
        one, other = first.encode(), second.encode()
    except UnicodeEncodeError as error:
        raise UnusableText(
            f"the text has half a character (a lone surrogate) at index {error.start}; remove it"
        ) from None
    return {"first": len(one), "pair": pair, "target": target}, one + other


def _bytes_of(ids: Sequence[int]) -> bytes:
    return np.asarray(ids, "<i8").tobytes()


def _where(numbers: Sequence[int], most: int | None) -> list[int | None]:
    """Return numbers, with None for −1."""
    if any(number < -1 or (most is not None and number > most) for number in numbers):
        raise UnusableText("the tokenizer gives its tokens impossible words or sentences")
    return [None if number < 0 else number for number in numbers]
