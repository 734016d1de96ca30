"""Tokenize, decode and fill chat templates inside a process for texts.

It has transformers without torch, which takes a fifth of the memory and of the time.
"""

import hashlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from attention_viz.errors import UnusableText
from attention_viz.inputs.isolated.packing import pack_pieces, pack_rows
from attention_viz.inputs.labelling import spelling_of
from attention_viz.sources.bounded.framing import Message
from attention_viz.sources.bounded.serving import Answering

# Tokens with their own names, as their ids have.
NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
# Templates are texts as well, but no chat is as long as this.
_LONGEST_CHAT = 4_000_000
# No script has more tokens per byte, even if it is spelled out ("﷽" becomes 18 letters), besides the tokens around.
_TOKENS_A_BYTE, _TOKENS_AROUND = 16, 1_024


def prepare() -> None:
    """Import the modules that answers need, without torch."""
    cast("dict[str, Any]", sys.modules)["torch"] = None
    from transformers.models.auto.tokenization_auto import AutoTokenizer
    from transformers.utils.chat_template_utils import render_jinja_template

    assert AutoTokenizer and render_jinja_template
    # The first template imports jinja.
    fill_template("{{ messages }}", [], {})


def start() -> Answering:
    """Return the request handler for one tokenizer."""
    return _Texts().answer


class _Texts:
    """A tokenizer, once it is loaded, and its requests."""

    def __init__(self) -> None:
        self._tokenizer: Any = None
        self._name = ""

    def answer(self, request: Message) -> Message:
        """Answer one request: "do" names the method."""
        ways: dict[str, Callable[[Message], Message]] = {
            "load": self.load,
            "encode": self.encode,
            "decode": self.decode,
            "pieces": self.pieces,
            "number": self.number,
            "vocabulary": self.vocabulary,
            "template": self.template,
        }
        return ways[request.values["do"]](request)

    def load(self, request: Message) -> Message:
        """Load a folder's tokenizer, and return its description."""
        from transformers.models.auto.tokenization_auto import AutoTokenizer

        folder, self._name = request.values["folder"], request.values["name"]
        self._tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        return _described(self._tokenizer, Path(folder))

    def encode(self, request: Message) -> Message:
        """Tokenize a text, or two: "first" is the first one's bytes, "pair" whether there is a second."""
        values, content = request.values, request.content
        first, second = content[: values["first"]].decode(), content[values["first"] :].decode()
        most = _TOKENS_A_BYTE * len(content) + _TOKENS_AROUND
        options: dict[str, Any] = {"verbose": False}
        if values["target"]:
            encoding = self._tokenizer(text_target=first, **options)
        else:
            if not self._tokenizer.is_fast:
                options["return_special_tokens_mask"] = True
            pair = second if values["pair"] else None
            encoding = self._tokenizer(first, pair, add_special_tokens=values["special"], **options)
        count = len(encoding["input_ids"])
        if count > most:
            raise UnusableText(
                f"{self._name}'s tokenizer makes {count:,} tokens of {len(content):,} bytes; at most {most:,} are "
                "allowed"
            )
        return Message({"count": count}) if values["count"] else self._encoded(encoding, count)

    def _encoded(self, encoding: Any, count: int) -> Message:
        rows = {name: row for name, row in dict(encoding).items() if len(row) == count}
        if encoding.is_fast:
            one = encoding.encodings[0]
            starts, ends = zip(*one.offsets, strict=True) if count else ((), ())
            rows |= {"special_tokens_mask": one.special_tokens_mask, "starts": starts, "ends": ends}
            for name, numbers in (("words", one.word_ids), ("sequences", one.sequence_ids)):
                rows[name] = [-1 if number is None else number for number in numbers]
            pieces = one.tokens
        else:
            pieces = self._tokenizer.convert_ids_to_tokens(encoding["input_ids"])
        names, content = pack_rows(rows)
        values = {"count": count, "names": names, "inputs": list(encoding), "fast": encoding.is_fast}
        return Message(values | {"sequences": encoding.n_sequences}, content + pack_pieces(pieces))

    def decode(self, request: Message) -> Message:
        """Write ids as text."""
        text = self._tokenizer.decode(_numbers(request), skip_special_tokens=request.values["skip"])
        return Message({}, str(text).encode("utf-8", "surrogatepass"))

    def pieces(self, request: Message) -> Message:
        """Name ids by their pieces."""
        return Message({}, pack_pieces(self._tokenizer.convert_ids_to_tokens(_numbers(request))))

    def number(self, request: Message) -> Message:
        """Return the id of a piece."""
        return Message({"number": self._tokenizer.convert_tokens_to_ids(request.values["piece"])})

    def vocabulary(self, request: Message) -> Message:
        """Return all ids; with their pieces if "pieces" is set."""
        known = self._tokenizer.get_vocab()
        _, content = pack_rows({"ids": list(known.values())})
        return Message({"count": len(known)}, content + (pack_pieces(list(known)) if request.values["pieces"] else b""))

    def template(self, request: Message) -> Message:
        """Fill a chat template."""
        values = request.values
        text = fill_template(values["template"], values["messages"], values["tokens"], answers=values["answers"])
        return Message({}, text.encode("utf-8", "surrogatepass"))


def fill_template(
    template: str, messages: list[dict[str, str]], tokens: Mapping[str, Any], *, answers: bool = True
) -> str:
    """Fill a chat template with a conversation, by default ready for an answer."""
    from transformers.utils.chat_template_utils import render_jinja_template

    rendered, _ = cast(
        "tuple[list[str], object]",
        render_jinja_template(
            conversations=[messages], chat_template=template, add_generation_prompt=answers, **tokens
        ),
    )
    if len(rendered[0]) > _LONGEST_CHAT:
        raise MemoryError
    return rendered[0]


def _described(tokenizer: Any, folder: Path) -> Message:
    """Describe a tokenizer as data, as far as known without a text."""
    template = tokenizer.chat_template
    added = sorted(tokenizer.added_tokens_decoder)
    values: dict[str, Any] = {
        "kind": type(tokenizer).__name__,
        "is_fast": bool(tokenizer.is_fast),
        "vocab_size": int(tokenizer.vocab_size),
        "length": len(tokenizer),
        "all_special_ids": list(tokenizer.all_special_ids),
        "special_tokens_map": tokenizer.special_tokens_map,
        "model_max_length": tokenizer.model_max_length,
        "padding_side": tokenizer.padding_side,
        "chat_template": template if isinstance(template, str | dict) else None,
        "num_special_tokens_to_add": int(tokenizer.num_special_tokens_to_add()),
        "spelling": spelling_of(tokenizer),
        "added": len(added),
        "digest": _digest(tokenizer, folder),
    }
    for name in NAMED:
        values |= {one: getattr(tokenizer, one, None) for one in (name, f"{name}_id")}
    return Message(values, pack_rows({"added": added})[1])


def _digest(tokenizer: Any, folder: Path) -> str:
    """Return a digest that reveals a replaced tokenizer."""
    backend, found = getattr(tokenizer, "backend_tokenizer", None), hashlib.sha256()
    if backend is not None:
        found.update(backend.to_str().encode("utf-8", "surrogatepass"))
    else:
        for name in sorted(tokenizer.vocab_files_names.values()):
            found.update((folder / name).read_bytes() if (folder / name).is_file() else b"")
    return found.hexdigest()


def _numbers(request: Message) -> list[int]:
    return np.frombuffer(request.content, "<i8").tolist()
