"""Starting the app from the command line."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import NoReturn
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from attention_viz.cli.output import tell
from attention_viz.errors import AttentionVizError

__all__ = ["run_app"]

# The app's files are beside the package in a checkout; an installed package comes without them.
HOME = Path(__file__).parents[2]

_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_SECONDS_TO_START = 60


def run_app(arguments: Namespace) -> int:
    """Serve the app until Ctrl-C.

    Raises:
        AttentionVizError: the app's files aren't here, the address can't be had, or the server doesn't start.
    """
    host: str = arguments.host
    port: int = arguments.port
    if not ((HOME / "app.py").is_file() and (HOME / "pages").is_dir()):
        raise AttentionVizError(
            f"the app's files, app.py and pages, aren't installed: they are not in {HOME}; start it from a checkout"
        )
    _check_address(host, port)
    tell("Starting the app …")
    signal.signal(signal.SIGTERM, _end)  # the server must not outlive us
    server = _start(host, port)
    try:
        reachable = _in_a_link(_EVERYWHERE.get(host, host))
        if not _answers(server, f"http://{reachable}:{port}/_stcore/health"):
            raise AttentionVizError("the app did not start; the reason stands above")
        print(f"http://{'localhost' if host in _EVERYWHERE else reachable}:{port}", flush=True)
        tell("Ctrl-C stops it.")
        return server.wait()
    finally:
        _stop(server)


def _end(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)


def _check_address(host: str, port: int) -> None:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, port), family=family).close()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise AttentionVizError(
            f"can't listen at {host}, port {port}: {reason}; --host and --port choose others"
        ) from None


def _start(host: str, port: int) -> subprocess.Popen[bytes]:
    options = (f"--server.port={port}", f"--server.address={host}")
    command = [sys.executable, "-m", "streamlit", "run", "app.py", *options]
    # Streamlit's greeting would stand among our results; what goes wrong is still said.
    quiet = {"STREAMLIT_LOGGER_HIDE_WELCOME_MESSAGE": "true", "STREAMLIT_LOGGER_LEVEL": "warning"}
    return subprocess.Popen(command, cwd=HOME, env={**os.environ, **quiet}, stdout=sys.stderr.fileno())


def _answers(server: subprocess.Popen[bytes], address: str) -> bool:
    """Wait until the server answers; False when it ended or the time is over."""
    direct = build_opener(ProxyHandler({}))  # a proxy for the internet must not be asked for this machine
    deadline = time.monotonic() + _SECONDS_TO_START
    while server.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(URLError, OSError), direct.open(address, timeout=5):
            return True
        time.sleep(0.1)
    return False


def _in_a_link(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _stop(server: subprocess.Popen[bytes]) -> None:
    """End the server, patiently first."""
    server.terminate()
    try:
        server.wait(timeout=10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
