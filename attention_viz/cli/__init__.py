"""The command line, `attention-viz`: the library from a shell.

Only results go to standard output; progress and errors go to standard error. Heavy imports are inside the commands
that need them, so that `--help` is fast.
"""

import contextlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Generator, Sequence
from typing import Any

from click import shell_completion

from attention_viz.cli.arguments import COMPLETE
from attention_viz.cli.exits import INTERRUPTED, PIPE_CLOSED, code_of
from attention_viz.cli.output import one_line, report
from attention_viz.cli.program import PROGRAM, program, run
from attention_viz.errors import AttentionVizError, AttentionVizWarning

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: the words after the program's name; by default `sys.argv`'s.

    Returns:
        The exit code, one of `exits.MEANINGS`.
    """
    with _interrupts() as interrupts, _warnings_on_a_line():
        try:
            return _run(argv)
        except KeyboardInterrupt:
            return INTERRUPTED
        except BrokenPipeError:
            _drop_output()
            return PIPE_CLOSED
        except Exception as error:
            if interrupts:
                return INTERRUPTED
            if not isinstance(error, AttentionVizError):
                raise
            report(f"attention-viz: {one_line(str(error))}")
            return code_of(error)


def _run(argv: Sequence[str] | None) -> int:
    try:
        if completion := os.environ.get(COMPLETE):
            return shell_completion.shell_complete(program, {}, PROGRAM, COMPLETE, completion)
        return run(sys.argv[1:] if argv is None else argv)
    finally:
        sys.stdout.flush()


@contextlib.contextmanager
def _interrupts() -> Generator[list[int]]:
    """Record each Ctrl-C, because transformers turns one during its import into another error."""
    seen: list[int] = []

    def note(number: int, _frame: object) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    # Keep another program's handler, and that of a shell that shields background jobs from Ctrl-C.
    ours = threading.current_thread() is threading.main_thread()
    ours = ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, note)
    try:
        yield seen
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def _warnings_on_a_line() -> Generator[None]:
    """Report each library warning every time, on its own line, without a code position."""
    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any) -> None:
            if issubclass(category, AttentionVizWarning):
                report(f"attention-viz: {one_line(str(message))}")
            else:
                others(message, category, *place)

        warnings.simplefilter("always", AttentionVizWarning)
        warnings.showwarning = show
        yield


def _drop_output() -> None:
    """Discard output still to be flushed at the end, instead of failing a second time."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
