"""A chat's messages: check them, render them, and find their tokens by marks that the template passes through."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from attention_viz.errors import UnusablePicture, UnusableText
from attention_viz.trace.chat.segments import SEGMENT_ROLES, Segment, answered, cut_thinking
from attention_viz.trace.provenance import Provenance
from attention_viz.trace.spelling import decode
from attention_viz.trace.tokens import Tokens

# Role and content.
Message = tuple[str, str]
# A message's text, or its parts, {"type": "text", "text": …} and {"type": "image"} each.
Content = str | Sequence[Mapping[str, Any]]
Render = Callable[[list[dict[str, Any]], bool], str]

MOST_MESSAGES = 1_000
_LONGEST_ROLE = 64
# Roles that a typed line begins with.
_TYPED = ("system", "user", "assistant", "tool")
_LINE = re.compile(rf"^({'|'.join(_TYPED)}):[ \t]?", re.IGNORECASE)
# Marks around each message in a second rendering, and within them its number: letters of Unicode's private use.
_OPENS, _CLOSES, _DIGIT = "\ue0f0", "\ue0f1", 0xE0E0
_MARK = re.compile(f"([{_OPENS}{_CLOSES}])([\ue0e0-\ue0e9]+)\ue0f2")
_ANY_MARK = re.compile("[\ue0e0-\ue0f2]")
_THOUGHT = re.compile(r"<think>\s*\Z")


@dataclass(frozen=True)
class Layout:
    """The tokens of a rendered chat's messages.

    Attributes:
        segments: each message's tokens, in order; empty if they can't be found.
        notes: why some are missing, a sentence each.
        answer: the role and position that a generated answer begins with; None if nothing awaits one.
    """

    segments: tuple[Segment, ...] = ()
    notes: tuple[str, ...] = ()
    answer: tuple[str, int] | None = None


@dataclass(frozen=True)
class Rendered:
    """A rendered chat: its text, and the role, start and end of each found part in characters."""

    text: str
    parts: tuple[tuple[str, int, int], ...] = ()
    notes: tuple[str, ...] = ()
    opens: str | None = None

    def cut(self) -> "Rendered":
        """Return the chat without what closes its last message, so that a model continues it."""
        if not self.parts or self.parts[-1][0] not in ("assistant", "thinking"):
            raise UnusableText(
                "can't continue the last message, because the chat template doesn't show where it ends; end the chat "
                "with a user's message"
            )
        role, _, end = self.parts[-1]
        return replace(self, text=self.text[:end], opens=role)


def check_messages(messages: Sequence[object]) -> tuple[Message, ...]:
    """Return a chat's messages as (role, content); refuse anything but texts."""
    if not messages:
        raise UnusableText("the chat is empty: pass at least one message")
    if len(messages) > MOST_MESSAGES:
        raise UnusableText(f"the chat has {len(messages):,} messages; pass at most {MOST_MESSAGES:,}")
    found = tuple(map(_check_message, messages))
    if not any(content.strip() for _, content in found):
        raise UnusableText("every message is empty; write at least one word")
    return found


def _check_message(message: object) -> Message:
    entry = cast("Mapping[str, Any]", message)
    if not isinstance(message, Mapping) or not isinstance(entry.get("role"), str):
        raise UnusableText(f'messages must be dicts, {{"role": "user", "content": "…"}}; got {message!r:.60}')
    role, content = entry["role"], entry.get("content")
    if not role or len(role) > _LONGEST_ROLE:
        raise UnusableText(f"a message's role must have 1 to {_LONGEST_ROLE} characters; got {len(role)}")
    if more := sorted(str(name) for name in entry if name not in ("role", "content")):
        raise UnusableText(f"a message has a role and a content; leave out {', '.join(more)!s:.60}")
    if isinstance(content, list | tuple):
        content = "".join(map(_text_of, cast("Sequence[object]", content)))
    if not isinstance(content, str):
        raise UnusableText(f"a message's content must be a str; got {type(content).__name__}")
    for text in (role, content):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UnusableText("a message has half a character (a lone surrogate); remove it") from None
    return role, content


def _text_of(part: object) -> str:
    entry = cast("Mapping[str, Any]", part)
    if isinstance(part, Mapping) and entry.get("type") in ("image", "video", "audio"):
        raise UnusablePicture(f"the model reads text; leave out the part of the type {entry['type']!r}")
    if not isinstance(part, Mapping) or entry.get("type") != "text" or not isinstance(entry.get("text"), str):
        raise UnusableText(f'a content\'s parts must be {{"type": "text", "text": "…"}}; got {part!r:.60}')
    return entry["text"]


def written_chat(messages: Sequence[Message]) -> str:
    """Write messages as a person types them: each one's role, a colon, and its content."""
    return "\n".join(f"{role}: {content}" for role, content in messages)


def typed_chat(text: str) -> tuple[Message, ...]:
    """Read a typed chat: JSON messages, lines that begin with a role and a colon, or else one user's message.

    Raises:
        UnusableText: broken JSON, a text before the first role, an empty message, or no message of the user's.
    """
    bare = text.strip()
    if re.match(r'\[\s*\{\s*"', bare):
        return _of_json(bare)
    lines = bare.split("\n")
    starts = [(at, found) for at, line in enumerate(lines) if (found := _LINE.match(line))]
    if not starts:
        return (("user", text),)
    if starts[0][0]:
        raise UnusableText(
            f"“{starts[0][1][1]}:” begins line {starts[0][0] + 1}, but the lines before it have no role. Begin the "
            "chat with system:, user: or assistant:, or write it as JSON messages"
        )
    ends = [*(at for at, _ in starts[1:]), len(lines)]
    found = list[Message]()
    for (at, mark), end in zip(starts, ends, strict=True):
        content = "\n".join([lines[at][mark.end() :], *lines[at + 1 : end]]).strip()
        if not content:
            raise UnusableText(f"line {at + 1} begins an empty message, “{mark[0].strip()}”; type its text after it")
        found.append((mark[1].lower(), content))
    return tuple(found)


def _of_json(text: str) -> tuple[Message, ...]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnusableText(
            f'the chat looks like JSON messages, [{{"role": …, "content": …}}], but isn\'t valid JSON: {error}'
        ) from None
    return check_messages(cast("list[object]", found))


def render(messages: Sequence[tuple[str, Content]], template: Render, *, answers: bool | None = None) -> Rendered:
    """Render a chat, and find its messages in the text.

    A second rendering has marks around each message. If it is the same text without them, the marks show where each
    message is.

    Args:
        answers: whether an answer is to follow; by default if the last message isn't the assistant's.
    """
    answers = messages[-1][0] != "assistant" if answers is None else answers
    text = template([{"role": role, "content": content} for role, content in messages], answers)
    if _ANY_MARK.search(text) or any(_ANY_MARK.search(str(content)) for _, content in messages):
        return Rendered(text, notes=(_unknown("they have characters of Unicode's private use"),))
    parts, marked = _marked(messages)
    try:
        again = template(marked, answers)
    except UnusableText:
        return Rendered(text, notes=(_unknown("the template refuses marks around them"),))
    if _MARK.sub("", again) != text:
        return Rendered(text, notes=(_unknown("the template writes them differently with marks around them"),))
    found = _found(text, again, parts, answers)
    return replace(found, notes=(*found.notes, *_empty(messages)))


def _empty(messages: Sequence[tuple[str, Content]]) -> list[str]:
    """Return a note per role that has an empty message."""
    empty = [
        role
        for role, content in messages
        if not (content.strip() if isinstance(content, str) else any(one.get("text", "x").strip() for one in content))
    ]
    return [f"No segment has the empty message of the role {role!r:.60}." for role in dict.fromkeys(empty)]


def _unknown(why: str) -> str:
    return f"The messages' segments are unknown, because {why}; set them with trace.with_segments."


def _marked(messages: Sequence[tuple[str, Content]]) -> tuple[list[tuple[str, str]], list[dict[str, Any]]]:
    """Return each part's role and text, and the messages with marks around their parts."""
    parts, marked = list[tuple[str, str]](), list[dict[str, Any]]()
    for role, content in messages:
        if isinstance(content, str):
            marked.append({"role": role, "content": _with_marks(role, content, parts)})
            continue
        pieces = [
            {**one, "text": _with_marks(role, str(one["text"]), parts)} if "text" in one else one for one in content
        ]
        marked.append({"role": role, "content": pieces})
    return parts, marked


def _with_marks(role: str, content: str, parts: list[tuple[str, str]]) -> str:
    """Put numbered marks around a text's parts, and add these to `parts`."""
    written, after = "", 0
    for part, start, end in _cut(role, content):
        number = "".join(chr(_DIGIT + int(digit)) for digit in str(len(parts)))
        opens, closes = f"{_OPENS}{number}\ue0f2", f"{_CLOSES}{number}\ue0f2"
        written += f"{content[after:start]}{opens}{content[start:end]}{closes}"
        parts.append((part, content[start:end]))
        after = end
    return written + content[after:]


def _cut(role: str, content: str) -> list[tuple[str, int, int]]:
    if role == "assistant":
        return cut_thinking(content)
    bare = content.strip()
    start = len(content) - len(content.lstrip())
    return [(role, start, start + len(bare))] if bare else []


def _found(text: str, again: str, parts: Sequence[tuple[str, str]], answers: bool) -> Rendered:
    """Read the marks of a second rendering."""
    places, removed = dict[tuple[str, int], list[int]](), 0
    for mark in _MARK.finditer(again):
        number = int("".join(str(ord(sign) - _DIGIT) for sign in mark[2]))
        places.setdefault((mark[1], number), []).append(mark.start() - removed)
        removed += len(mark[0])
    found, notes = list[tuple[str, int, int]](), list[str]()
    for number, (role, content) in enumerate(parts):
        starts, ends = (places.get((sign, number), []) for sign in (_OPENS, _CLOSES))
        if not starts and not ends:
            notes.append(f"The chat template leaves out “{' '.join(content.split())[:40]}”, so no segment has it.")
        elif len(starts) != 1 or len(ends) != 1 or text[starts[0] : ends[0]] != content:
            return Rendered(text, notes=(_unknown("the template repeats or changes one of them"),))
        else:
            found.append((role, starts[0], ends[0]))
    if found != sorted(found, key=lambda one: one[1]):
        return Rendered(text, notes=(_unknown("the template changes their order"),))
    rest = text[found[-1][2] if found else 0 :]
    opens = ("thinking" if _THOUGHT.search(rest) else "assistant") if answers else None
    return Rendered(text, tuple(found), tuple(notes), opens)


def lay_out(
    chat: Rendered, tokens: Tokens, offsets: Sequence[tuple[int, int]] | None, decoded: Callable[[Sequence[int]], str]
) -> Layout:
    """Find the tokens of a rendered chat's parts.

    Args:
        offsets: each token's start and end in the text; None if the tokenizer doesn't say.
        decoded: writes ids as text.
    """
    if chat.notes and not chat.parts:
        return Layout(notes=chat.notes)
    if offsets is None:
        return Layout(notes=(_unknown("the tokenizer doesn't show where its tokens are"),))
    firsts, lasts = np.asarray(offsets, np.int64).reshape(-1, 2).T
    found, notes, before = list[Segment](), list(chat.notes), 0
    for role, start, end in chat.parts:
        inside: list[int] = np.flatnonzero((firsts < end) & (lasts > start)).tolist()
        if not inside or inside[0] < before or inside[-1] - inside[0] >= len(inside):
            return Layout(notes=(_unknown("a token belongs to two of them"),))
        before = inside[-1] + 1
        if not _holds(tokens, inside[0], before, chat.text[start:end], decoded):
            return Layout(notes=(_unknown("the tokenizer changes their text"),))
        if role in SEGMENT_ROLES:
            found.append(Segment(role, inside[0], before))
        else:
            notes.append(f"No segment has the messages of the role {role!r:.60}.")
    answer = None if chat.opens is None else (chat.opens, len(tokens))
    if answer is not None and found and found[-1].end == len(tokens) and found[-1].role == answer[0]:
        answer = (found[-1].role, found[-1].start)  # the model continues the last message
    return Layout(tuple(found), tuple(dict.fromkeys(notes)), answer)


def lay_out_beside(chat: Rendered, tokens: Tokens, marks: Sequence[int], tokenizer: Any) -> Layout:
    """Find the tokens of a chat with images; `marks` are the positions of the placeholders that a processor repeats.

    The other tokens must be the text's own, one by one.
    """
    ids, placed = tokens.numbers, set(marks)
    kept = [at for at in range(len(ids)) if at not in placed]
    mark = {ids[at] for at in marks}
    for special in (True, False):
        try:
            encoded = tokenizer(chat.text, add_special_tokens=special, return_offsets_mapping=True)
        except (NotImplementedError, TypeError, ValueError):
            break
        own = zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)
        words = [(number, (int(first), int(last))) for number, (first, last) in own if number not in mark]
        if [number for number, _ in words] == [ids[at] for at in kept]:
            offsets = [(0, 0)] * len(ids)
            for at, (_, span) in zip(kept, words, strict=True):
                offsets[at] = span
            found = lay_out(chat, tokens, offsets, lambda some: str(tokenizer.decode(list(some))))
            return replace(found, segments=_with_pictures(found.segments, sorted(placed)))
    return Layout(notes=(_unknown("the processor writes other tokens around images"),))


def _with_pictures(segments: tuple[Segment, ...], marks: Sequence[int]) -> tuple[Segment, ...]:
    """Add a segment per run of placeholders; none without the text's."""
    known = set(marks)
    starts = [at for at in marks if at - 1 not in known]
    ends = [at + 1 for at in marks if at + 1 not in known]
    pictures = [Segment("picture", start, end) for start, end in zip(starts, ends, strict=True)]
    return tuple(sorted((*segments, *pictures), key=lambda one: one.start)) if segments else ()


def continued_segments(origin: Provenance, tokens: Tokens) -> Provenance:
    """Return the origin of a longer answer, whose generated tokens continue the assistant's segment."""
    if origin.answer is None:
        return origin
    role, start = origin.answer
    before = tuple(one for one in origin.segments if one.end <= start)
    return replace(origin, segments=(*before, *answered(tokens, role, start)))


def _holds(tokens: Tokens, start: int, end: int, content: str, decoded: Callable[[Sequence[int]], str]) -> bool:
    """Check that tokens, written as text, contain a message; blanks don't count."""
    wanted = "".join(content.split())
    pieces = zip(tokens.labels[start:end], tokens.spelling[start:end], strict=True)
    raw = "".join(decode(label, how) for label, how in pieces)
    text = raw.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return wanted in "".join(text.split()) or wanted in "".join(decoded(tokens.numbers[start:end]).split())
