"""Renders chat templates in a process of its own, whose memory is limited: run by `chat_template`, a request a line."""

import json
import sys
from typing import Any, cast

__all__ = ["main"]

# How many bytes a template may take beside what the program takes by itself, and how long its text may be.
_MEMORY, _LONGEST = 300_000_000, 4_000_000


def main() -> None:
    """Answer each line of JSON, {"template", "messages", "tokens"}, by one with "text" or "error"."""
    from transformers.utils.chat_template_utils import render_jinja_template

    _render(render_jinja_template, {"template": "{{ messages }}", "messages": [], "tokens": {}})
    _limit_memory()
    print(flush=True)  # ready
    for line in sys.stdin:
        try:
            answer = {"text": _render(render_jinja_template, json.loads(line))}
        except MemoryError:
            answer = {"error": f"it takes more than {_MEMORY // 10**6} MB of memory"}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:300]}"}
        print(json.dumps(answer), flush=True)


def _render(render: Any, request: dict[str, Any]) -> str:
    rendered, _ = cast(
        "tuple[list[str], object]",
        render(
            conversations=[request["messages"]],
            chat_template=request["template"],
            add_generation_prompt=True,
            **request["tokens"],
        ),
    )
    if len(rendered[0]) > _LONGEST:
        raise MemoryError
    return rendered[0]


def _limit_memory() -> None:
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            taken = int(file.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):  # only Linux tells what is taken: elsewhere time is the only bound
        return
    resource.setrlimit(resource.RLIMIT_AS, (taken + _MEMORY, taken + _MEMORY))


if __name__ == "__main__":
    main()
