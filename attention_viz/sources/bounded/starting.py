"""Start bounded processes: forked from an image if the system can do that, else alone."""

import atexit
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Protocol

from attention_viz.sources.bounded.framing import Message, pack
from attention_viz.sources.bounded.image import STATUS
from attention_viz.sources.bounded.limits import Limits

_ROOT = Path(__file__).parents[3]
# Nothing else of the environment reaches a bounded process: it holds passwords and tokens.
_PASSED_ON = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "SYSTEMROOT",
    "WINDIR",
    "TEMP",
    "TMP",
    "TMPDIR",
)
_OWN = {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
# How long a process that was killed may take to be gone.
_GONE = 5.0


class Started(Protocol):
    """A started process, whose `channel` carries requests and answers."""

    channel: socket.socket

    def end(self) -> int | None:
        """Kill it if it still runs; return its exit code, or minus the signal that killed it."""
        ...


def start(module: str, limits: Limits, image: str | None = None) -> Started:
    """Start a process that answers by a module; on Linux, fork it from one that imported `image` or the module."""
    return start_forked(module, limits, image) if sys.platform.startswith("linux") else start_alone(module, limits)


def prepare(module: str) -> None:
    """Import a module in the background, so that its first process starts soon."""
    if sys.platform.startswith("linux"):
        _image_of(module)


def start_alone(module: str, limits: Limits, _image: str | None = None) -> Started:
    """Start a process that imports the module itself; works on every system."""
    return _Alone(module, limits)


def start_forked(module: str, limits: Limits, image: str | None = None) -> Started:
    """Fork a process from an image that imported the module, or `image`; Linux only."""
    channel, theirs = socket.socketpair()
    control, watched = socket.socketpair()
    with theirs, watched, _closed_on_error(channel, control):
        found = _image_of(image or module)
        found.order(module, limits, theirs, watched)
    return _Forked(channel, control, found)


@contextlib.contextmanager
def _closed_on_error(*sockets: socket.socket) -> Generator[None]:
    try:
        yield
    except BaseException:
        for one in sockets:
            one.close()
        raise


class _Forked:
    def __init__(self, channel: socket.socket, control: socket.socket, image: "_Image") -> None:
        self.channel, self._control, self._image = channel, control, image
        self._owner = os.getpid()

    def end(self) -> int | None:
        """Kill it if it still runs; return its exit status, None if unknown."""
        with self.channel, self._control:
            return self._ended() if os.getpid() == self._owner else None

    def _ended(self) -> int | None:
        self._control.settimeout(_GONE)
        # Half closed, that has it killed, while its status still comes.
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
        try:
            found = self._control.recv(STATUS.size)
        except OSError:
            return None
        if len(found) == STATUS.size:
            return STATUS.unpack(found)[0]
        self._image.gone = True
        return None


class _Alone:
    def __init__(self, module: str, limits: Limits) -> None:
        self.channel, theirs = socket.socketpair()
        with theirs, _closed_on_error(self.channel):
            self._process = _run("serving", module, theirs)
        self._owner = os.getpid()
        # If it has ended already, the first request finds that out.
        with contextlib.suppress(OSError):
            self.channel.sendall(pack(Message(limits.as_json())))

    def end(self) -> int | None:
        """Kill it if it still runs; return its exit status, None if unknown."""
        self.channel.close()
        if os.getpid() != self._owner:
            return None
        with contextlib.suppress(subprocess.TimeoutExpired):
            # What ends by itself, such as beyond its memory, is given the moment to say how.
            return self._process.wait(0.2)
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(_GONE)
        return None


class _Image:
    """An image process that forks processes on order.

    Attributes:
        gone: whether a forked process ended without a status. A killed image closes its sockets before the system
            reports its end, so this is known first.
    """

    def __init__(self, module: str) -> None:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, _closed_on_error(self._orders):
            self._process = _run("image", module, theirs)
        self.gone = False

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return not self.gone and self._process.poll() is None

    def order(self, module: str, limits: Limits, *sockets: socket.socket) -> None:
        """Order a process that answers by a module and gets these sockets."""
        order = json.dumps({"module": module, **limits.as_json()}).encode()
        socket.send_fds(self._orders, [order], [one.fileno() for one in sockets])

    def end(self) -> None:
        """Kill it, and with it all its forks."""
        self._orders.close()
        self._process.kill()
        self._process.wait()

    def forget(self) -> None:
        """Drop it in a fork of this process, which doesn't own it."""
        self._orders.close()
        self._process.returncode = 0  # so that nobody waits for what isn't this process's child


_images = dict[str, _Image]()
_lock = threading.Lock()


def _image_of(module: str) -> _Image:
    with _lock:
        found = _images.get(module)
        if found is None or not found.alive:
            if found is not None:
                found.end()
            found = _images[module] = _Image(module)
        return found


def _run(program: str, module: str, channel: socket.socket) -> "subprocess.Popen[bytes]":
    """Run a program of this folder with a channel as standard input, sharing as little as possible."""
    command = [sys.executable, "-P", "-m", f"attention_viz.sources.bounded.{program}", module]
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    paths = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    windows = sys.platform == "win32"
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE if windows else channel.fileno(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,  # a broken tokenizer writes a page of it, with paths
        cwd=_ROOT.anchor,
        env={**passed, **_OWN, "PYTHONPATH": paths},
        start_new_session=not windows,  # Ctrl-C is this process's affair
    )
    if windows:
        _hand_over(process, channel.share)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    return process


def _hand_over(process: "subprocess.Popen[bytes]", share: Callable[[int], bytes]) -> None:
    assert process.stdin is not None
    with process.stdin as pipe:
        pipe.write(share(process.pid))


@atexit.register
def _end_images() -> None:
    with _lock:
        while _images:
            _images.popitem()[1].end()


def _forget_images() -> None:
    """Reset in a fork, which lacks the threads that may hold locks."""
    global _lock
    _lock = threading.Lock()
    while _images:
        _images.popitem()[1].forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_images)
