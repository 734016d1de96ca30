"""Tokenize text, and refuse text that can't be read."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from torch import Tensor, nn

from attention_viz.errors import TextTooLong, UnusableText
from attention_viz.inputs.chat_template import render_chat
from attention_viz.inputs.chats import Layout, Message, Rendered, lay_out, render
from attention_viz.inputs.isolated.tokenizer import IsolatedTokenizer
from attention_viz.inputs.labelling import reserved, spellings, tokens_of_ids, unknown_id
from attention_viz.inputs.tokenizing import with_tokenizer
from attention_viz.trace.splitting import kind_of
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.words import group_pieces, keeps_spaces

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

# Tokenizers without a limit say so with a huge number.
_NO_LIMIT = 10**9
# Characters between two pieces that are looked through for a blank: a stranger's tokenizer may say any place.
_MOST_BETWEEN = 1_000


@dataclass(frozen=True)
class Wording:
    """Whether the tokenizer adds its special tokens, and whether a text goes into the chat template.

    Attributes:
        messages: the chat that the text stands for, (role, content) each; by default the text is a user's message.
        continues: whether the last message stays open, for the model to continue.
    """

    special_tokens: bool = True
    chat: bool = False
    messages: tuple[Message, ...] = ()
    continues: bool = False


AS_TYPED = Wording()


@dataclass(frozen=True, eq=False)
class InputRow:
    """One row of input: its tensors, the tokens along the axes, and a chat's segments."""

    tokens: Tokens
    tensors: dict[str, Tensor]
    layout: Layout = field(default_factory=Layout)

    @classmethod
    def of_ids(cls, ids: Tensor, attention_mask: Tensor, tokenizer: "PreTrainedTokenizerBase | None") -> "InputRow":
        """Return a row of ids with its mask; without a tokenizer, labels are the ids as text."""
        padding = tuple(not flag for flag in attention_mask[0].tolist())
        tokens = tokens_of_ids(tokenizer, [int(i) for i in ids[0].tolist()], padding)
        return cls(tokens, {"input_ids": ids, "attention_mask": attention_mask})


def read(
    model: str,
    tokenizer: "PreTrainedTokenizerBase | None",
    text: str,
    second_text: str | None = None,
    wording: Wording = AS_TYPED,
    limit: int | None = None,
) -> InputRow:
    """Tokenize a text, or two sentences."""
    tokenizer = _present(model, tokenizer)
    check_text(text)
    if second_text is not None:
        check_text(second_text)
    chat = _rendered(model, tokenizer, text, second_text, wording) if wording.chat else None
    encoding = _encode(model, tokenizer, text, second_text, wording, chat, tensors=True)
    tensors = {name: cast(Tensor, tensor) for name, tensor in cast("dict[str, Any]", encoding).items()}
    ids = cast("list[int]", tensors["input_ids"][0].tolist())
    if limit is not None and len(ids) > limit:
        raise TextTooLong(model, len(ids), limit, "text")
    special = _marked(encoding, tensors)
    if wording.chat:  # the template wrote its marks into the text, so the tokenizer doesn't count them as added
        special = reserved(tokenizer, ids)
    if all(special) or (wording.chat and not text.strip()):
        raise UnusableText(
            "the text is empty: type at least one word"
            if not text.strip()
            else f"{model}'s tokenizer drops every character of this text; type at least one word"
        )
    labels = cast("list[str]", encoding.tokens() if encoding.is_fast else tokenizer.convert_ids_to_tokens(ids))
    sentences = cast("list[int | None]", encoding.sequence_ids(0) if encoding.is_fast else [None] * len(ids))
    typed = tuple(None if mark else one for one, mark in zip(sentences, special, strict=True))
    spelling, missing = spellings(tokenizer, ids), unknown_id(tokenizer)
    unknown = [number == missing for number in ids]
    # Pieces that show their spaces need no offsets.
    no_spaces = wording.chat or not encoding.is_fast or keeps_spaces(labels, spelling)
    spaces = None if no_spaces else _spaces(encoding, typed, (text, second_text or ""))
    runs = [None if mark else one or 0 for one, mark in zip(sentences, special, strict=True)]
    words = group_pieces(labels, spelling, runs, unknown=unknown, spaces=spaces)
    tokens = Tokens(tuple(labels), tuple(ids), words, special, sentence=typed, spelling=spelling)
    if chat is None:
        return InputRow(tokens, tensors)
    offsets = encoding.encodings[0].offsets if encoding.is_fast else None
    return InputRow(tokens, tensors, lay_out(chat, tokens, offsets, lambda found: str(tokenizer.decode(list(found)))))


def read_target(model: str, tokenizer: "PreTrainedTokenizerBase | None", target: str) -> Tokens:
    """Tokenize the target of an encoder–decoder."""
    tokenizer = _present(model, tokenizer)
    check_text(target)
    encoding = with_tokenizer(model, tokenizer, target, lambda: tokenizer(text_target=target, verbose=False))
    ids = cast("dict[str, list[int]]", encoding)["input_ids"]
    tokens = tokens_of_ids(tokenizer, ids)
    if all(tokens.special):
        raise UnusableText(f"the target is empty, or {model}'s tokenizer drops all of it; type at least one word")
    return tokens


def _encode(
    model: str,
    tokenizer: "PreTrainedTokenizerBase",
    text: str,
    second_text: str | None,
    wording: Wording,
    chat: Rendered | None = None,
    *,
    tensors: bool = False,
) -> Any:
    # Fast tokenizers know which tokens they added; a tensor of these would take longer.
    wanted = {"return_tensors": "pt", "return_special_tokens_mask": not tokenizer.is_fast} if tensors else {}
    options: dict[str, Any] = {"verbose": False, **wanted}
    if not wording.chat:
        special = wording.special_tokens
        return with_tokenizer(
            model,
            tokenizer,
            text + (second_text or ""),
            lambda: tokenizer(text, second_text, add_special_tokens=special, **options),
        )
    written = (chat or _rendered(model, tokenizer, text, second_text, wording)).text
    return with_tokenizer(model, tokenizer, written, lambda: tokenizer(written, add_special_tokens=False, **options))


def _rendered(
    model: str, tokenizer: "PreTrainedTokenizerBase", text: str, second_text: str | None, wording: Wording
) -> Rendered:
    """Put a text, or a chat's messages, into the chat template."""
    if not tokenizer.chat_template:
        less = "pass a text instead of messages" if wording.messages else "leave out chat"
        raise UnusableText(f"{model}'s tokenizer has no chat template; {less}")
    if second_text is not None:
        raise UnusableText("a chat template takes one message; leave out the second sentence")
    process = tokenizer.process if isinstance(tokenizer, IsolatedTokenizer) else None
    template, marks = _template(tokenizer), tokenizer.special_tokens_map
    messages = wording.messages or (("user", text),)

    def filled(messages: list[dict[str, Any]], answers: bool) -> str:
        return render_chat(model, template, messages, marks, process, answers=answers)

    found = render(messages, filled)
    return found.cut() if wording.continues and messages[-1][0] == "assistant" else found


def _template(tokenizer: "PreTrainedTokenizerBase") -> str:
    """Return the tokenizer's default chat template; some have several, by name."""
    found = cast("str | dict[str, str]", tokenizer.chat_template)
    return found if isinstance(found, str) else found.get("default") or next(iter(found.values()))


def check_text(text: object, what: str = "a text") -> None:
    """Refuse anything but a str of whole characters."""
    if not isinstance(text, str):
        raise UnusableText(f"{what} must be a str; got {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UnusableText(
            f"the text has half a character (a lone surrogate) at index {error.start}; remove it"
        ) from None


def count_tokens(
    model: str,
    tokenizer: "PreTrainedTokenizerBase | None",
    text: str,
    second_text: str | None = None,
    wording: Wording = AS_TYPED,
) -> int:
    """Count a text's tokens, special ones included, whatever its length."""
    tokenizer = _present(model, tokenizer)
    check_text(text)
    if isinstance(tokenizer, IsolatedTokenizer) and not wording.chat:
        special = wording.special_tokens
        whole = text + (second_text or "")
        return with_tokenizer(
            model, tokenizer, whole, lambda: tokenizer.count(text, second_text, add_special_tokens=special)
        )
    return len(_encode(model, tokenizer, text, second_text, wording)["input_ids"])


def unknown_parts(model: str, tokenizer: "PreTrainedTokenizerBase | None", text: str) -> list[str]:
    """Return the text's parts that the tokenizer reads as unknown; none if it doesn't say where they are."""
    if tokenizer is None or not tokenizer.is_fast or (unknown := unknown_id(tokenizer)) is None:
        return []
    encoding = with_tokenizer(
        model, tokenizer, text, lambda: tokenizer(text, return_offsets_mapping=True, verbose=False)
    )
    found = cast("dict[str, list[Any]]", encoding)
    pairs = zip(found["input_ids"], found["offset_mapping"], strict=True)
    return [text[start:end] for number, (start, end) in pairs if number == unknown]


def vocabulary(model: "PreTrainedModel") -> int:
    """Return the number of ids that the model knows; 0 if it doesn't read text."""
    table = _word_table(model)
    rows = 0 if table is None else table.num_embeddings
    return rows or _configured(model, "vocab_size") or 0


def words_known(model: "PreTrainedModel") -> int:
    """Return the least number of tokens that the model can output: some embedding rows are input only."""
    counts = (vocabulary(model), _configured(model, "vocab_size") or 0)
    return min((count for count in counts if count), default=0)


def token_limit(model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase | None") -> int | None:
    """Return the largest number of tokens per input: the least of configuration, position table and tokenizer."""
    positions = _configured(model, "max_position_embeddings", "max_encoder_position_embeddings")
    said = None if tokenizer is None else tokenizer.model_max_length
    # A folder's file may say anything; ignore a limit that isn't a number.
    longest = said if isinstance(said, int | float) else None
    limits = (positions, longest, *_table_limits(model, positions))
    return min((int(limit) for limit in limits if limit is not None and 0 < limit < _NO_LIMIT), default=None)


def target_limit(model: "PreTrainedModel", limit: int | None) -> int | None:
    """Return the largest number of tokens that an encoder–decoder's decoder reads, if a text has at most `limit`."""
    own = _configured(model, "max_decoder_position_embeddings", "max_target_positions")
    # ProphetNet's predictions have positions after their tokens'.
    limit = limit if limit is None or _configured(model, "ngram") is None else limit - 1
    return min((one for one in (own, limit) if one is not None), default=None)


def _configured(model: "PreTrainedModel", *names: str) -> int | None:
    """Return the first number of these from the text part's configuration; None if it has none, or not one for all."""
    try:
        config = model.config.get_text_config()
        found = (getattr(config, name, None) for name in names)
        return next((one for one in found if isinstance(one, int)), None)
    except (ValueError, RuntimeError):
        return None


def _table_limits(model: "PreTrainedModel", positions: int | None) -> list[int]:
    """Return sizes of position tables without the first rows kept for padding, as in RoBERTa."""
    tables = [module for module in model.modules() if isinstance(module, nn.Embedding)]
    return [
        table.num_embeddings - table.padding_idx - 1
        for table in tables
        if table.num_embeddings == positions and table.padding_idx is not None and table is not _word_table(model)
    ]


def _word_table(model: "PreTrainedModel") -> nn.Embedding | None:
    try:
        table = model.get_input_embeddings()
    except NotImplementedError:
        return None
    return table if isinstance(table, nn.Embedding) else None


def _present(model: str, tokenizer: "PreTrainedTokenizerBase | None") -> "PreTrainedTokenizerBase":
    if tokenizer is None:
        raise UnusableText(
            f"{model} came without a tokenizer; add its tokenizer.json and tokenizer_config.json to its folder, or, in "
            "Python, pass ids to trace_ids or a tokenizer to wrap"
        )
    return tokenizer


def _marked(encoding: Any, tensors: dict[str, Tensor]) -> tuple[bool, ...]:
    """Return which tokens the tokenizer added by itself."""
    if encoding.is_fast:
        return tuple(map(bool, encoding.encodings[0].special_tokens_mask))
    return tuple(map(bool, tensors.pop("special_tokens_mask")[0].tolist()))


def _spaces(encoding: Any, sentences: Sequence[int | None], texts: tuple[str, str]) -> list[bool]:
    """Return whether a blank precedes each piece, by its offset in its text."""
    found, before = list[bool](), dict[int, int]()
    for sentence, (start, end) in zip(sentences, encoding.encodings[0].offsets, strict=True):
        if sentence is None:
            found.append(False)
            continue
        between = texts[sentence][before.get(sentence, 0) : start]
        found.append(any(kind_of(sign) == "blank" for sign in between[:_MOST_BETWEEN]))
        before[sentence] = end
    return found
