"""Shell completion scripts, made from the parser."""

import argparse
import shlex

__all__ = ["SHELLS", "script"]

SHELLS = ("bash", "zsh")

_HEAD = """# Completes attention-viz; evaluate it where the shell starts: eval "$(attention-viz completion SHELL)"
"""
# zsh has bash's way built in.
_ZSH = "autoload -U +X compinit bashcompinit && compinit -u && bashcompinit\n"
_BODY = """_attention_viz() {
    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" command="${COMP_WORDS[1]}"
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W %(commands)s -- "$word"))
        return
    fi
    case "$command $before" in
%(values)s
    esac
    case "$command $word" in
%(options)s
    esac
}
complete -o default -F _attention_viz attention-viz
"""


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return completion code for commands, options, choices, models and files."""
    commands = _commands(parser)
    values = [line for name, command in commands.items() for line in _values(name, command)]
    options = [line for name, command in commands.items() for line in _others(name, command)]
    body = _BODY % {
        "commands": _quoted([*commands, "--help", "--version"]),
        "values": "\n".join(values),
        "options": "\n".join(options),
    }
    return _HEAD.replace("SHELL", shell) + (_ZSH if shell == "zsh" else "") + body


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage] -- argparse has no public way to ask
        if isinstance(action, argparse._SubParsersAction):  # pyright: ignore[reportPrivateUsage] -- as above
            return dict(action.choices)
    return {}


def _options(command: argparse.ArgumentParser) -> list[str]:
    return [one for one in command._option_string_actions if one.startswith("--")]  # pyright: ignore[reportPrivateUsage]


def _others(name: str, command: argparse.ArgumentParser) -> list[str]:
    words = [word for one in command._get_positional_actions() for word in _words(one) or ()]  # pyright: ignore[reportPrivateUsage]
    lines = [f'        "{name} -"*) COMPREPLY=($(compgen -W {_quoted(_options(command))} -- "$word"));;']
    if words:
        lines.append(f'        "{name} "*) COMPREPLY=($(compgen -W {_quoted(words)} -- "$word"));;')
    return lines


def _values(name: str, command: argparse.ArgumentParser) -> list[str]:
    found: list[str] = []
    for option, action in command._option_string_actions.items():  # pyright: ignore[reportPrivateUsage]
        if (words := _words(action)) is not None:
            reply = f"compgen -W {_quoted(words)} -- " if words else "compgen -f -- "
            found.append(f'        "{name} {option}") COMPREPLY=($({reply}"$word")); return;;')
    return found


def _words(action: argparse.Action) -> list[str] | None:
    """None if anything may follow; empty for a file."""
    if action.choices is not None:
        return [str(one) for one in action.choices]
    if action.metavar == "MODEL":
        from attention_viz.sources import CATALOGUE

        return list(CATALOGUE)
    return [] if action.metavar == "FILE" else None


def _quoted(words: list[str]) -> str:
    return shlex.quote(" ".join(words))
