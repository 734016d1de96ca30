"""A server's log says where something went wrong, and nothing of what somebody typed."""

import subprocess
import sys

from attention_viz.serving.logs import without_message

TYPED = "quixotaphrine"

PROGRAM = f"""
import gc, logging, threading, warnings
from attention_viz.errors import AttentionVizWarning
from attention_viz.serving.logs import keep_messages_out
keep_messages_out()

def look_up():
    return {{}}["{TYPED}"]

class Closing:
    def __del__(self):
        look_up()

log = logging.getLogger("anything")
try:
    look_up()
except KeyError as error:
    log.exception("caught")
    try:
        raise ValueError("{TYPED}") from error
    except ValueError:
        log.error("caught, too", exc_info=True)
thread = threading.Thread(target=look_up)
thread.start()
thread.join()
closing = Closing()
del closing
gc.collect()
warnings.warn("{TYPED}", AttentionVizWarning)
look_up()
"""


def test_errors_are_logged_with_their_place_and_without_their_message() -> None:
    # The word comes from outside, as from a visitor: the lines of the program do not hold it.
    program = PROGRAM.replace(f'"{TYPED}"', "input_word").replace(
        "def look_up", "input_word = input()\n\ndef look_up", 1
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], input=TYPED, capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 1
    assert TYPED not in ended.stdout + ended.stderr
    assert ended.stderr.count("in look_up") == 5, ended.stderr
    assert ended.stderr.count("KeyError (message left out") == 5
    assert ended.stderr.count("ValueError (message left out") == 1
    assert "ATTENTION_VIZ_LOG_MESSAGES=on" in ended.stderr


def test_what_led_to_an_error_comes_first_and_a_circle_ends() -> None:
    first, second = KeyError(TYPED), ValueError(TYPED)
    first.__cause__, second.__cause__ = second, first
    told = without_message(first)
    assert told.index("ValueError") < told.index("KeyError")
    assert TYPED not in told
