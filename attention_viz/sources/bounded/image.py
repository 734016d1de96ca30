"""Keep a process with everything imported, and fork bounded processes from it in milliseconds.

It runs as a program, whose argument is the module to import. Each datagram on its standard input, a socket, orders a
fork: it holds the answering module and the limits, and brings two sockets. The first is the new process's channel. The
second stays here: once its other end is closed, the process is killed; once the process ends, its status is written to
it. If the system refuses to fork, the reason is written to it instead.
"""

import contextlib
import gc
import json
import os
import selectors
import signal
import socket
import struct
import sys
from collections.abc import Mapping
from typing import Any

from attention_viz.sources.bounded.limits import Limits, end_with_parent, leave_network
from attention_viz.sources.bounded.serving import channel_of_standard_input, import_for_answers, serve

# How a process ended, as `os.waitstatus_to_exitcode` says it.
STATUS = struct.Struct(">i")
# A status from this number on is no process's: the system refused to fork, for the reason of the errno beyond it.
NOT_FORKED = 1_000
LONGEST_ORDER = 4_000


class _Forker:
    """Forks ordered processes, and watches them."""

    def __init__(self, orders: socket.socket, name: str, module: Any) -> None:
        self._orders, self._name, self._module = orders, name, module
        self._watched = dict[int, socket.socket]()
        self._selector = selectors.DefaultSelector()
        self._selector.register(orders, selectors.EVENT_READ)
        self._ended, self._wake = socket.socketpair()
        self._wake.setblocking(False)
        self._ended.setblocking(False)
        self._selector.register(self._ended, selectors.EVENT_READ)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _go_on)  # any function has the descriptor written to

    def run(self) -> None:
        """Work until no more orders can come."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._orders:
                    if not self._fork():
                        return
                elif key.fileobj is self._ended:
                    self._reap()
                elif key.data in self._watched:  # nobody waits for that one
                    self._selector.unregister(key.fileobj)
                    os.kill(key.data, signal.SIGKILL)

    def _fork(self) -> bool:
        order, sockets, _, _ = socket.recv_fds(self._orders, LONGEST_ORDER, 2)
        if not order:
            return False
        if len(sockets) != 2:  # the system has no more descriptors for this process
            for number in sockets:
                os.close(number)
            return True
        channel, control = (socket.socket(fileno=number) for number in sockets)
        parent = os.getpid()
        try:
            process = os.fork()
        except OSError as error:  # no more processes or memory: those that run go on
            with channel, control, contextlib.suppress(OSError):
                control.send(STATUS.pack(NOT_FORKED + (error.errno or 0)))
            return True
        if process == 0:
            self._become(parent, channel, control, json.loads(order))
        channel.close()
        control.setblocking(False)
        self._watched[process] = control
        self._selector.register(control, selectors.EVENT_READ, process)
        return True

    def _become(self, parent: int, channel: socket.socket, control: socket.socket, order: Mapping[str, Any]) -> None:
        """Run the ordered process to its end."""
        try:
            end_with_parent(parent)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._selector.close()
            for one in (self._orders, self._ended, self._wake, control, *self._watched.values()):
                one.close()
            name = order["module"]
            module = self._module if name == self._name else import_for_answers(name)
            serve(channel, module.start(), Limits.of_json(order))
        finally:
            os._exit(0)

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._ended.recv(4096)
        while self._watched:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == 0:
                return
            control = self._watched.pop(process)
            with contextlib.suppress(KeyError):
                self._selector.unregister(control)
            with contextlib.suppress(OSError):  # nobody wants to know
                control.send(STATUS.pack(os.waitstatus_to_exitcode(status)))
            control.close()


def _go_on(_number: int, _frame: object) -> None:
    pass


def main() -> None:
    """Import the module, and fork."""
    leave_network()
    orders, module = channel_of_standard_input(), import_for_answers(sys.argv[1])
    gc.collect()
    gc.freeze()  # what is never collected is never written to, and stays shared
    _Forker(orders, sys.argv[1], module).run()


if __name__ == "__main__":
    main()
