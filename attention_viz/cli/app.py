"""Starting the app from the command line."""

import socket
import sys
from types import SimpleNamespace

from attention_viz.cli.arguments import command, option, port
from attention_viz.cli.exits import INTERNAL, SUCCESS
from attention_viz.cli.output import report
from attention_viz.cli.server import HOME, exit_on_signals, new_teacher_key, start, stop, wait_until_healthy
from attention_viz.errors import AttentionVizError
from attention_viz.sources.catalogue import how_to_install

_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}


@command(
    "Start the app and print its URL.",
    "app --port 8502",
    option("--port", "N", "port to listen on", type=port, default=8501),
    option(
        "--host",
        "ADDRESS",
        "address to listen on: 127.0.0.1 admits this machine only, 0.0.0.0 others on the network, too",
        default="127.0.0.1",
    ),
)
def app(arguments: SimpleNamespace) -> int:
    """Serve the app until Ctrl-C."""
    host: str = arguments.host
    port: int = arguments.port
    if not ((HOME / "app.py").is_file() and (HOME / "pages").is_dir()):
        raise AttentionVizError(
            f"app.py and pages aren't in {HOME}; reinstall attention-viz, or run it from a checkout"
        )
    _check_address(host, port)
    if missing := how_to_install():
        report(missing)
    report("Starting the app …")
    exit_on_signals()  # the server must not outlive us
    key = new_teacher_key()
    # Keep the server's output out of our results.
    server = start(port, f"--server.address={host}", log=sys.stderr.fileno(), teacher=key)
    try:
        reachable = _EVERYWHERE.get(host, host)
        if not wait_until_healthy(server, port, host=reachable):
            raise AttentionVizError("the app did not start; see the error above")
        print(f"http://{'localhost' if host in _EVERYWHERE else _in_a_link(reachable)}:{port}", flush=True)
        if key:
            report(f"Teacher's key for /class: {key}")
        report("Press Ctrl-C to stop it.")
        return INTERNAL if server.wait() else SUCCESS
    finally:
        stop(server)


def _check_address(host: str, port: int) -> None:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, port), family=family).close()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise AttentionVizError(
            f"can't listen at {host}, port {port} ({reason}); choose others with --host and --port"
        ) from None


def _in_a_link(host: str) -> str:
    return f"[{host}]" if ":" in host else host
