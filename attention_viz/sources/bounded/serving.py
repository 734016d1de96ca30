"""Answer requests one by one inside a bounded process."""

import contextlib
import importlib
import os
import socket
import sys
from collections.abc import Callable
from typing import Any

from attention_viz.errors import AttentionVizError, first_line
from attention_viz.sources.bounded.framing import Message, TooLong, pack, receive
from attention_viz.sources.bounded.limits import Limits, give_time, impose, leave_network

Answering = Callable[[Message], Message]
"""Answers one request. A module that is run in a bounded process has a function `start` that returns one."""

# A request of the process that watches is its own affair; this only keeps a broken one from taking everything.
_LONGEST_REQUEST = 1_000_000_000
_LONGEST_REASON = 2_000


def serve(channel: socket.socket, answering: Answering, limits: Limits) -> None:
    """Answer requests on a channel until the other end is closed."""
    impose(limits)
    channel.sendall(pack(Message({"ready": True})))
    with contextlib.suppress(EOFError, OSError, TooLong, ValueError):
        while True:
            request = receive(lambda count: _exactly(channel, count), _LONGEST_REQUEST)
            give_time(limits)
            channel.sendall(_answer(answering, request))


def channel_of_standard_input() -> socket.socket:
    """Take over the channel that this process was started with."""
    if sys.platform == "win32":
        return socket.fromshare(sys.stdin.buffer.read())
    channel = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return channel


def import_for_answers(name: str) -> Any:
    """Import a module whose `start` returns the request handler; its optional `prepare` imports more.

    Such a module imports nothing heavy at its top, and changes nothing there: others may import it.
    """
    module = importlib.import_module(name)
    if hasattr(module, "prepare"):
        module.prepare()
    return module


def main() -> None:
    """Import the first argument's module and answer with it, in a process of its own without forks."""
    leave_network()
    channel, module = channel_of_standard_input(), import_for_answers(sys.argv[1])
    limits = Limits.of_json(receive(lambda count: _exactly(channel, count), _LONGEST_REQUEST).values)
    serve(channel, module.start(), limits)


def _answer(answering: Answering, request: Message) -> bytes:
    try:
        return pack(answering(request))
    except MemoryError:
        return pack(Message({"over": "memory"}))
    except AttentionVizError as error:
        return _error(type(error).__name__, str(error))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # what breaks down in Rust is no Exception
        return _error("", f"{type(error).__name__}: {first_line(error)}")


def _error(kind: str, reason: str) -> bytes:
    return pack(Message({"error": reason[:_LONGEST_REASON], "kind": kind}))


def _exactly(channel: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = channel.recv(min(count - len(parts), 1_000_000))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


if __name__ == "__main__":
    main()
