"""The server's process, which also loads the default model.

Usage: python -m attention_viz.ui.process run app.py [options of `streamlit run`].
"""

import faulthandler
import os
import signal
import sys

from attention_viz.serving import preload
from attention_viz.serving.logs import keep_messages_out
from attention_viz.serving.settings import SETTINGS
from attention_viz.ui.address.state import DEFAULT
from attention_viz.ui.front.server import serve
from attention_viz.ui.packing import payload_of

# A tab takes four, and an idle connection one: with the usual limit of 1,024 they would soon keep everyone out.
_FILES = 16_384

# Modules that draw the pages; the pages' own modules have to wait for Streamlit.
_DRAWN_WITH = ("attention_viz.explorer.payload", "attention_viz.views.figures.matrices")


def begin_loading() -> preload.Preloading:
    """Load the default model and run its example in the background."""
    return preload.begin(DEFAULT.request, payload_of, _DRAWN_WITH)


def allow_open_files() -> None:
    """Raise this process's limit of open files and connections, up to a bound."""
    if sys.platform == "win32":
        return
    import resource

    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if most == resource.RLIM_INFINITY else min(most, _FILES)
    if allowed != resource.RLIM_INFINITY and allowed < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def main() -> None:
    """Begin to load, and serve."""
    allow_open_files()
    # Threads of torch that wait for each other sleep: spinning, on a busy machine they took twenty times as long. Read
    # when torch is imported.
    _ = os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # On this signal, a hung server logs each thread's stack: code only, no typed text.
    if sys.platform != "win32":
        faulthandler.register(signal.SIGUSR1)
    if not SETTINGS.log_messages:
        keep_messages_out()
    command, *words = sys.argv[1:] or ["nothing"]
    if command != "run":
        sys.exit(f"unknown command {command}; use: run app.py")
    serve(words, begin_loading())


if __name__ == "__main__":
    main()
