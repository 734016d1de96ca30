"""The app's server as a process: start, wait, end. Standard library only."""

import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

# Where app.py and pages/ are: an installed package has them inside, a checkout beside it.
_INSTALLED, _CHECKOUT = Path(__file__).parents[1] / "app", Path(__file__).parents[2]
HOME = _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT

# For Linux's C library: keep what a trace gave back for the next one, since fresh memory from the kernel costs each run
# several percent of it. And keep it in two places for all threads, not one for each: there, what one visitor's thread
# gave back would wait unused while the next one's asks for more: gigabytes with thirty long texts, which is worth that
# two runs at the same time wait for each other now and then.
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(2**28), "MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_ARENA_MAX": "2"}

_NOT_FOUND = 404
_TEACHER = "ATTENTION_VIZ_TEACHER"
# Without letters that look alike.
_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"


def new_teacher_key() -> str:
    """Return a random teacher's key; "" if the operator set one."""
    if os.environ.get(_TEACHER):
        return ""
    return "-".join("".join(secrets.choice(_ALPHABET) for _ in range(5)) for _ in range(2))


def start(port: int, *options: str, log: IO[bytes] | int | None = None, teacher: str = "") -> subprocess.Popen[bytes]:
    """Start the app's server on a port.

    Args:
        options: Streamlit's, such as "--server.address=127.0.0.1".
        log: output file or its number; by default ours.
        teacher: the teacher's key, if it isn't a setting.
    """
    command = [sys.executable, "-m", "attention_viz.ui.process", "run", "app.py", f"--server.port={port}", *options]
    # Streamlit's greeting names an address that works on this machine only; what goes wrong is still logged.
    quiet = {"STREAMLIT_LOGGER_HIDE_WELCOME_MESSAGE": "true", "STREAMLIT_LOGGER_LEVEL": "warning"}
    environment = {**KEEP_MEMORY, **os.environ, **quiet} | ({_TEACHER: teacher} if teacher else {})
    errors = None if log is None else subprocess.STDOUT
    return subprocess.Popen(command, cwd=HOME, env=environment, stdout=log, stderr=errors)


def exit_on_signals() -> None:
    """Raise `SystemExit` on termination or hangup, to stop the server, which would otherwise keep its port."""
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):  # Windows has no SIGHUP
            signal.signal(getattr(signal, name), _leave)


def _leave(number: int, _frame: object) -> None:
    # Once is enough: a second signal must not break off what stops the server.
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def wait_until_healthy(
    server: subprocess.Popen[bytes], port: int, seconds: float = 60, host: str = "127.0.0.1"
) -> bool:
    """Wait for the server; False if it ended or timed out."""
    direct = build_opener(ProxyHandler({}))  # a proxy for the internet must not be asked for this machine
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}/_stcore/health"
    deadline = time.monotonic() + seconds
    while server.poll() is None and time.monotonic() < deadline:
        try:
            with direct.open(address, timeout=5):
                return True
        except HTTPError as error:
            if error.code == _NOT_FOUND:  # it answers, but below a path that Streamlit was told
                return True
        except OSError:
            pass  # not yet
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
