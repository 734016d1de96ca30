"""Log an error's kind and place, never a visitor's text.

Error messages often quote it, so they are left out.
"""

import logging
import sys
import threading
import traceback
import warnings
from types import TracebackType
from typing import Any

from attention_viz.errors import AttentionVizWarning

_log = logging.getLogger(__name__)

_LEFT_OUT = "message left out, since it may quote a visitor; ATTENTION_VIZ_LOG_MESSAGES=on logs it"


def without_message(error: BaseException) -> str:
    """Format a traceback as Python does, without messages."""
    phrase = "".join(
        line
        for cause in _causes(error)
        for line in (
            "Traceback (most recent call last):\n",
            *traceback.format_tb(cause.__traceback__),
            f"{type(cause).__qualname__} ({_LEFT_OUT})\n",
        )
    )
    return phrase.rstrip("\n")


def keep_messages_out() -> None:
    """Keep error messages out of this process's log."""
    make = logging.getLogRecordFactory()

    def record(*given: Any, **named: Any) -> logging.LogRecord:
        made = make(*given, **named)
        if made.exc_info and made.exc_info[1] is not None:
            made.exc_text = without_message(made.exc_info[1])  # every formatter writes this text if it is set
        return made

    logging.setLogRecordFactory(record)
    sys.excepthook = _unexpected
    threading.excepthook = lambda phrase: _unexpected(phrase.exc_type, phrase.exc_value, phrase.exc_traceback)
    sys.unraisablehook = lambda phrase: _unexpected(phrase.exc_type, phrase.exc_value, phrase.exc_traceback)
    # Pages show the library's warnings.
    warnings.simplefilter("ignore", AttentionVizWarning)


def _causes(error: BaseException) -> list[BaseException]:
    causes, seen = list[BaseException](), set[int]()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        causes.insert(0, one)
        seen.add(id(one))
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
    return causes


def _unexpected(kind: type[BaseException], error: BaseException | None, _where: TracebackType | None) -> None:
    """Log uncaught errors."""
    if issubclass(kind, KeyboardInterrupt | SystemExit):
        return
    _log.error("Uncaught %s", kind.__qualname__, exc_info=error)
