"""The command that serves tools to agents."""

import os
from pathlib import Path
from types import SimpleNamespace

from attention_viz.cli.arguments import command, count, option
from attention_viz.cli.exits import SUCCESS
from attention_viz.errors import AttentionVizError

_INSTALL = 'the tools need the package mcp, version 2.3 or later; run pip install "attention-viz[mcp]"'


@command(
    "Serve tools for agents over standard input and output, by the Model Context Protocol.",
    "mcp --models models",
    option("--models", "DIR", "also open models below this folder; repeat it for several", multiple=True),
    option("--hub", None, "also open models of the hub that are on this machine already", is_flag=True),
    option("--seconds", "N", "stop a call after this time", type=count, default=120),
)
def mcp(arguments: SimpleNamespace) -> int:
    """Serve until the client closes the connection."""
    folders = [os.path.abspath(Path(one).expanduser()) for one in arguments.models]
    for folder in folders:
        if not os.path.isdir(folder):
            raise AttentionVizError(f"the folder {folder} doesn't exist") from FileNotFoundError(folder)
    # The settings are read once, when they are imported.
    os.environ["ATTENTION_VIZ_MODELS"] = os.pathsep.join(folders) or "off"
    os.environ["ATTENTION_VIZ_HUB"] = "on" if arguments.hub else "off"
    try:
        from attention_viz.cli.agents.service import serve
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise AttentionVizError(_INSTALL) from None
    except ValueError as error:  # a setting that can't be read
        raise AttentionVizError(str(error)) from None
    serve(arguments.seconds)
    return SUCCESS
