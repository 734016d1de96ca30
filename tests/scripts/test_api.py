"""The reference has every public name, as it is called in the code, and a question for every call at the top."""

import inspect
import re

import attention_viz as av
from scripts import api

PAGE = api.page()


def test_every_public_name_has_its_place() -> None:
    headed = set(re.findall(r"^### (av\.[\w.]+)$", PAGE, re.MULTILINE))
    for name, value in api.names().items():
        if isinstance(value, dict):
            assert f"- `{name}`: " in PAGE and all(f"`{key}`" in PAGE for key in value)
        elif inspect.isclass(value) and issubclass(value, BaseException):
            assert f"| `{name}` | " in PAGE
        else:
            assert name in headed, name


def test_every_call_at_the_top_answers_a_question_and_no_question_names_another() -> None:
    named = set(re.findall(r"av\.(\w+)", " ".join(api.QUESTIONS.values())))
    calls = {name for name in dir(av) if inspect.isfunction(getattr(av, name))}
    assert calls <= named, "a call that no question names; add one to scripts/api.py"
    assert all(hasattr(av, name) for name in named)


def test_signatures_are_those_of_the_code_with_every_argument() -> None:
    for name, value in api.names().items():
        if not inspect.isfunction(value):
            continue
        section = PAGE.partition(f"\n### {name}\n")[2].partition("\n### ")[0]
        code = section.partition("```python\n")[2].partition("\n```")[0]
        for argument, known in inspect.signature(value).parameters.items():
            assert re.search(rf"\b{argument}\b", code), f"{name} lacks {argument}"
            told = f"- `{argument}`: " in section or f"`{argument}`" in section or "Args" not in section
            assert told or known.kind is known.VAR_KEYWORD, f"{name} doesn't say what {argument} is"


def test_methods_of_types_that_calls_return_are_there() -> None:
    for method in ("weights", "query_tokens", "save", "from_qkv", "from_weights", "table"):
        assert f"\n#### .{method}\n" in PAGE
    assert "**`.fidelity`** → `Fidelity`" in PAGE and "**`.nbytes`** → `int`" in PAGE
