"""Starting the app from a shell: it says where it is, and stops when asked."""

import re
import signal
import socket
import subprocess
import sys

import pytest

from scripts import serve


def test_a_port_in_use_is_refused_with_the_way_out() -> None:
    with socket.socket() as listener:
        listener.bind(("0.0.0.0", 0))
        listener.listen()
        port = listener.getsockname()[1]
        assert serve.is_taken(port)
        command = [sys.executable, "scripts/serve.py", f"--port={port}"]
        told = subprocess.run(command, cwd=serve.APP.parent, capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert f"Port {port} is in use" in told.stderr
    assert "PORT=" in told.stderr


def test_the_address_for_the_room_is_not_one_that_only_this_machine_knows() -> None:
    address = serve.address_in_the_room()
    assert address is None or not address.startswith("127.")


def test_a_machine_without_a_network_has_no_address_for_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object) -> None:
        raise OSError("Network is unreachable")

    monkeypatch.setattr(serve.socket.socket, "connect", unreachable)
    assert serve.address_in_the_room() is None


def test_the_app_says_where_to_open_it_and_stops_on_ctrl_c() -> None:
    port = serve.free_port()
    command = [sys.executable, "scripts/serve.py", f"--port={port}"]
    process = subprocess.Popen(
        command,
        cwd=serve.APP.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    told = ""
    for line in process.stdout:
        told += line
        if line.startswith("Ctrl-C"):
            break
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=30)
    assert f"http://localhost:{port}" in told, errors
    assert re.search(r"Teacher's key for /class:   [a-z2-9]{5}-[a-z2-9]{5}\n", told)
    assert "Stopped." in rest
    assert "Traceback" not in errors
    assert not serve.is_taken(port)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="this system has no such signal")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_to_end_ends_the_server_as_well(name: str) -> None:
    port = serve.free_port()
    command = [sys.executable, "scripts/serve.py", f"--port={port}"]
    process = subprocess.Popen(
        command, cwd=serve.APP.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout
    for line in process.stdout:
        if line.startswith("Ctrl-C"):
            break
    assert serve.is_taken(port)
    process.send_signal(getattr(signal, name))
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 128 + getattr(signal, name)
    assert "Traceback" not in errors
    assert not serve.is_taken(port)
