"""A chat's messages are found in what its template writes, or not at all."""

import json

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

import attention_viz as av
from attention_viz.inputs.chats import MOST_MESSAGES, Render, check_messages, lay_out, render, typed_chat, written_chat
from attention_viz.trace.tokens import Tokens

CHATML = (
    "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
TRIMMED = CHATML.replace("m.content", "m.content | trim")
# Drops what an assistant thought in earlier turns, as templates of models that think do.
THINKING = (
    "{% for m in messages %}<|{{ m.role }}|>"
    "{% if m.role == 'assistant' and not loop.last %}{{ m.content.split('</think>')[-1].lstrip('\n') }}"
    "{% else %}{{ m.content }}{% endif %}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|><think>\n{% endif %}"
)
CHAT = (
    ("system", "Be brief."),
    ("user", " user: system? "),
    ("assistant", "<think>\nuser\n</think>\n\nNo."),
    ("user", "No."),
)


def by(template: str) -> Render:
    """Render with a template in this process."""
    compiled = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True).from_string(template)

    def filled(messages: list[dict[str, str]], answers: bool) -> str:
        return compiled.render(messages=messages, add_generation_prompt=answers)

    return filled


@pytest.mark.parametrize("template", [CHATML, TRIMMED], ids=["as written", "trimmed"])
def test_each_message_is_found_though_its_words_are_elsewhere_too(template: str) -> None:
    found = render(CHAT, by(template))
    said = [(role, found.text[start:end]) for role, start, end in found.parts]
    assert said == [
        ("system", "Be brief."),
        ("user", "user: system?"),
        ("thinking", "user"),
        ("assistant", "No."),
        ("user", "No."),
    ]
    assert found.parts[3][1] < found.text.index("<|end|>\n<|user|>\nNo.") < found.parts[4][1]
    assert (found.notes, found.opens) == ((), "assistant")


def test_thinking_that_the_template_leaves_out_has_no_segment_and_a_note() -> None:
    found = render(CHAT, by(THINKING))
    assert [role for role, _, _ in found.parts] == ["system", "user", "assistant", "user"]
    assert found.notes == ("The chat template leaves out “user”, so no segment has it.",)
    assert found.opens == "thinking"


def test_an_empty_message_has_no_segment_and_a_note() -> None:
    found = render((("user", "a"), ("assistant", " "), ("user", "b")), by(CHATML))
    assert [role for role, *_ in found.parts] == ["user", "user"]
    assert found.notes == ("No segment has the empty message of the role 'assistant'.",)


def test_a_chat_that_ends_with_an_answer_awaits_none() -> None:
    found = render(CHAT[:3], by(CHATML))
    assert found.opens is None and found.text.endswith("No.<|end|>\n")
    assert found.cut().text.endswith("</think>\n\nNo.") and found.cut().opens == "assistant"


@pytest.mark.parametrize(
    ("template", "why"),
    [
        (CHATML.replace("m.content", "m.content ~ m.content"), "repeats or changes one of them"),
        (CHATML.replace("m.content", "m.content | upper"), "repeats or changes one of them"),
        (CHATML.replace("m.content", "m.content ~ (m.content | length)"), "writes them differently"),
        (CHATML + "\ue0f0", "characters of Unicode's private use"),
        ("{% for m in messages | reverse %}{{ m.content }};{% endfor %}", "changes their order"),
    ],
    ids=["twice", "changed", "counted", "marks of its own", "reversed"],
)
def test_a_template_that_doesn_t_pass_messages_through_has_no_segments_and_a_note(template: str, why: str) -> None:
    found = render(CHAT, by(template))
    assert not found.parts and why in found.notes[0] and "trace.with_segments" in found.notes[0]
    assert found.text == by(template)([{"role": role, "content": content} for role, content in CHAT], True)


def test_a_message_with_the_marks_of_our_own_is_not_searched_for() -> None:
    found = render((("user", "a\ue0f0\ue0e1\ue0f2b"),), by(CHATML))
    assert not found.parts and "private use" in found.notes[0]


def test_tokens_of_two_messages_or_with_another_text_have_no_segments() -> None:
    chat = render((("user", "ab"), ("user", "cd")), by("{% for m in messages %}{{ m.content }}{% endfor %}"))
    one = Tokens(("a", "bc", "d"), (0, 1, 2), spelling=("text",) * 3)
    assert "a token belongs to two" in lay_out(chat, one, [(0, 1), (1, 3), (3, 4)], lambda _: "").notes[0]
    other = Tokens(("ab", "xx"), (0, 1), spelling=("text",) * 2)
    assert "changes their text" in lay_out(chat, other, [(0, 2), (2, 4)], lambda _: "xx").notes[0]
    assert "where its tokens are" in lay_out(chat, other, None, lambda _: "").notes[0]
    right = Tokens(("ab", "cd"), (0, 1), spelling=("text",) * 2)
    found = lay_out(chat, right, [(0, 2), (2, 4)], lambda _: "")
    assert found.segments == (av.Segment("user", 0, 1), av.Segment("user", 1, 2))


def test_other_roles_have_no_segment_and_a_note() -> None:
    chat = render((("critic", "ab"),), by("{{ messages[0].content }}"))
    found = lay_out(chat, Tokens(("ab",), (0,), spelling=("text",)), [(0, 2)], lambda _: "")
    assert not found.segments and found.notes == ("No segment has the messages of the role 'critic'.",)


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([], "the chat is empty"),
        ([{"role": "user", "content": " "}], "every message is empty"),
        ([{"role": "user", "content": "a"}] * (MOST_MESSAGES + 1), "at most 1,000"),
        (["a"], "messages must be dicts"),
        ([{"role": "u" * 65, "content": "a"}], "1 to 64 characters"),
        ([{"role": "user", "content": None}], "content must be a str; got NoneType"),
        ([{"role": "user", "content": "a", "tool_calls": []}], "leave out tool_calls"),
        ([{"role": "user", "content": "\ud800"}], "half a character"),
        ([{"role": "user", "content": [{"type": "text"}]}], "parts must be"),
    ],
)
def test_messages_are_refused_by_what_is_wrong(messages: list[object], why: str) -> None:
    with pytest.raises(av.UnusableText, match=why):
        check_messages(messages)


def test_pictures_are_refused_and_parts_of_text_joined() -> None:
    with pytest.raises(av.UnusablePicture, match="the model reads text"):
        check_messages([{"role": "user", "content": [{"type": "image"}]}])
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert check_messages([{"role": "user", "content": parts}]) == (("user", "ab"),)


def test_a_chat_is_typed_in_lines_or_as_json_or_as_one_message() -> None:
    typed = "System: Be brief.\nuser: One.\n\nTwo: three.\nassistant:No.\nuser:\n Why?"
    chat = (("system", "Be brief."), ("user", "One.\n\nTwo: three."), ("assistant", "No."), ("user", "Why?"))
    assert typed_chat(typed) == chat
    assert typed_chat(written_chat(chat)) == chat
    assert typed_chat(json.dumps([{"role": role, "content": content} for role, content in CHAT])) == CHAT
    assert typed_chat("Is 3:1 odd?\n[sic]") == (("user", "Is 3:1 odd?\n[sic]"),)
    assert typed_chat("[sic] a user: of it") == (("user", "[sic] a user: of it"),)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Hello.\nuser: Hi.", "“user:” begins line 2, but the lines before it have no role"),
        ("user: Hi.\nassistant: \nuser: And?", "line 2 begins an empty message, “assistant:”"),
        ('[{"role": "user", "content": "a}]', "isn't valid JSON"),
        ('[{"role": "user"}]', "content must be a str"),
    ],
)
def test_an_ambiguous_chat_is_refused(text: str, why: str) -> None:
    with pytest.raises(av.UnusableText, match=why):
        typed_chat(text)
