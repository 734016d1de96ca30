"""What runs in the bounded processes of the tests: it does whatever it is asked, good and bad."""

import os
import socket
import struct
import time
from pathlib import Path

import attention_viz as av
from attention_viz.sources.bounded.framing import Message
from attention_viz.sources.bounded.serving import Answering


class Panic(BaseException):
    """No Exception, as what Rust raises."""


def start() -> Answering:
    return answering


def answering(request: Message) -> Message:
    match dict(request.values):
        case {"echo": said}:
            return Message({"said": said}, request.content)
        case {"take": count}:
            return Message({"taken": len(bytearray(count))})
        case {"sleep": seconds}:
            time.sleep(seconds)
            return Message({})
        case {"work": seconds}:
            until = time.process_time() + seconds
            while time.process_time() < until:
                pass
            return Message({})
        case {"abort": True}:
            os.abort()
        case {"refuse": reason}:
            raise av.UnusableText(reason)
        case {"break": reason}:
            raise Panic(reason)
        case {"lie": lengths}:
            own_channel().sendall(struct.pack(">QQ", *lengths))
            time.sleep(60)
        case {"garbage": text}:
            own_channel().sendall(struct.pack(">QQ", len(text), 0) + text.encode())
        case {"answer": length}:
            return Message({}, bytes(length))
        case {"write": path}:
            Path(path).write_text("something")
            return Message({})
        case {"open": count}:
            files = [open(os.devnull) for _ in range(count)]
            return Message({"opened": len(files)})
        case {"environment": True}:
            return Message({"names": sorted(os.environ), "folder": os.getcwd(), "parent": os.getppid()})
        case {"connect": address}:
            with socket.create_connection(tuple(address), timeout=2):
                return Message({})
        case {"kill": number}:
            os.kill(os.getpid(), number)
        case {"who": True}:
            return Message({"process": os.getpid()})
    raise AssertionError(request)


def own_channel() -> socket.socket:
    """The one socket that is open here."""
    for number in range(64):
        try:
            found = socket.socket(fileno=os.dup(number))
        except OSError:
            continue
        if found.type == socket.SOCK_STREAM:
            return found
        found.close()
    raise AssertionError("no channel")
