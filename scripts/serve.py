"""Starts the app and says where to open it: on this machine, and from the others in the room.

Usage: serve.py [--port 8501] [--reload]. Run by the environment's Python, from the project's root.
"""

import argparse
import contextlib
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import IO
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

APP = Path(__file__).parents[1] / "app.py"
RELOAD = ("--server.fileWatcherType=auto", "--server.runOnSave=true", "--client.showErrorDetails=full")

# For Linux's C library: keep what a trace gave back for the next one. To get fresh memory from the kernel for each run
# costs several percent of it.
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(2**28), "MALLOC_MMAP_THRESHOLD_": str(2**25)}


def start(port: int, *options: str, log: IO[bytes] | None = None) -> subprocess.Popen[bytes]:
    """Start the app's server on a port, with the project's configuration; `log` takes what it prints."""
    command = [sys.executable, "-m", "streamlit", "run", APP.name, f"--server.port={port}", *options]
    # Streamlit's greeting names an address that works on this machine only; what goes wrong is still logged.
    quiet = {"STREAMLIT_LOGGER_HIDE_WELCOME_MESSAGE": "true", "STREAMLIT_LOGGER_LEVEL": "warning"}
    environment = {**KEEP_MEMORY, **os.environ, **quiet}
    return subprocess.Popen(command, cwd=APP.parent, env=environment, stdout=log, stderr=log and subprocess.STDOUT)


def wait_until_healthy(server: subprocess.Popen[bytes], port: int, seconds: float = 60) -> bool:
    """Wait until the server answers; False when it ended or the time is over."""
    direct = build_opener(ProxyHandler({}))  # a proxy for the internet must not be asked for this machine
    deadline = time.monotonic() + seconds
    while server.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(URLError, OSError), direct.open(f"http://127.0.0.1:{port}/_stcore/health", timeout=5):
            return True
        time.sleep(0.1)
    return False


def stop(server: subprocess.Popen[bytes]) -> None:
    """End the server, patiently first."""
    server.terminate()
    try:
        server.wait(timeout=10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def is_taken(port: int) -> bool:
    """Whether another program listens on the port."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a server stopped a moment ago is no obstacle
        try:
            listener.bind(("0.0.0.0", port))
        except OSError:
            return True
    return False


def address_in_the_room() -> str | None:
    """This machine's address in its network; None without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("192.0.2.1", 9))  # an address kept for documentation: this sends nothing, it picks a route
        except OSError:
            return None
        return asking.getsockname()[0]


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description="Start the app and say where to open it.")
    parser.add_argument("--port", type=int, default=8501)
    parser.add_argument("--reload", action="store_true", help="follow edits to the code, and show errors on the page")
    arguments = parser.parse_args()
    port: int = arguments.port
    if is_taken(port):
        sys.exit(f"Port {port} is in use, perhaps by this app itself. Choose another: make run PORT={port + 1}")
    print("Starting the app ...", flush=True)
    server = start(port, *(RELOAD if arguments.reload else ()))
    try:
        if not wait_until_healthy(server, port):
            sys.exit("The app did not start; the reason stands above.")
        print(f"  On this machine:            http://localhost:{port}")
        if address := address_in_the_room():
            print(f"  From others in the room:    http://{address}:{port}")
        print("Ctrl-C stops it.", flush=True)
        sys.exit(server.wait())
    except KeyboardInterrupt:
        stop(server)
        print("Stopped.", flush=True)
    finally:
        stop(server)


if __name__ == "__main__":
    main()
