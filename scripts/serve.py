"""Start the app and print its URLs: for this machine, and for others in the room.

Usage: serve.py [--port 8501] [--reload]. Run by the environment's Python, from the project's root.
"""

import argparse
import os
import socket
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # run as a program, a script knows its own folder only

from attention_viz.cli.server import (
    HOME,
    KEEP_MEMORY,
    exit_on_signals,
    new_teacher_key,
    start,
    stop,
    wait_until_healthy,
)

__all__ = [
    "APP",
    "KEEP_MEMORY",
    "address_in_the_room",
    "free_port",
    "is_taken",
    "start",
    "stop",
    "wait_until_healthy",
]

APP = HOME / "app.py"
RELOAD = ("--server.fileWatcherType=auto", "--server.runOnSave=true", "--client.showErrorDetails=full")


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def is_taken(port: int) -> bool:
    """Return whether another program listens on the port."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a server stopped a moment ago is no obstacle
        try:
            listener.bind(("0.0.0.0", port))
        except OSError:
            return True
    return False


def address_in_the_room() -> str | None:
    """Return this machine's address in its network; None without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("192.0.2.1", 9))  # an address kept for documentation: this sends nothing, it picks a route
        except OSError:
            return None
        return asking.getsockname()[0]


def main() -> None:
    """Serve until Ctrl-C or a signal."""
    parser = argparse.ArgumentParser(description="Start the app and print its URLs.")
    parser.add_argument("--port", type=int, default=8501)
    parser.add_argument("--reload", action="store_true", help="follow edits to the code, and show errors on the page")
    arguments = parser.parse_args()
    port: int = arguments.port
    if is_taken(port):
        sys.exit(f"Port {port} is in use, perhaps by this app itself. Choose another: make run PORT={port + 1}")
    print("Starting the app ...", flush=True)
    exit_on_signals()
    if arguments.reload:
        os.environ.setdefault("ATTENTION_VIZ_LOG_MESSAGES", "on")
    key = new_teacher_key()
    server = start(port, *(RELOAD if arguments.reload else ()), teacher=key)
    try:
        if not wait_until_healthy(server, port):
            sys.exit("The app did not start; see the error above.")
        print(f"  On this machine:            http://localhost:{port}")
        if address := address_in_the_room():
            print(f"  From others in the room:    http://{address}:{port}")
        if key:
            print(f"  Teacher's key for /class:   {key}")
        print("Ctrl-C stops it.", flush=True)
        sys.exit(server.wait())
    except KeyboardInterrupt:
        stop(server)
        print("Stopped.", flush=True)
    finally:
        stop(server)


if __name__ == "__main__":
    main()
