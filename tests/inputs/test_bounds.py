"""Tokenizers and chat templates are other people's programs: they run within bounds."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import attention_viz as av
from attention_viz.inputs import chat_template, tokenizing
from attention_viz.inputs.chat_template import render_chat
from attention_viz.inputs.text import read
from attention_viz.inputs.tokenizing import with_tokenizer
from attention_viz.models.loading import reading
from attention_viz.sources.folders import check_folder
from tests.models.families import build
from tests.models.loading.test_load_folder import word_tokenizer

MESSAGES = [{"role": "user", "content": "hello"}]


class PanicException(BaseException):
    """Of the name that a tokenizer written in Rust raises under; no Exception either."""


def test_a_template_writes_the_text_with_the_tokenizer_s_own_tokens() -> None:
    template = (
        "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    assert render_chat("one", template, MESSAGES, {"bos_token": "<s>"}) == "<s><user>hello<assistant>"


# What takes memory has the time to; what takes none would only run for longer.
LONG = "{% for a in range(99999) %}{% for b in range(99999) %}{{ 'xxxxxxxxxxxxxxxxxxxx' }}{% endfor %}{% endfor %}"
DOUBLING = (
    "{% set n = namespace(x='xxxxxxxxxx') %}{% for a in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x }}"
)
FOR_EVER = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"


@pytest.mark.parametrize(
    ("template", "seconds"), [(LONG, 3.0), (DOUBLING, 3.0), (FOR_EVER, 1.0)], ids=["long", "doubling", "for ever"]
)
def test_a_template_that_runs_away_is_refused_in_time(
    template: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert render_chat("one", "ready", MESSAGES, {}) == "ready"  # a program is running
    started = time.monotonic()
    with monkeypatch.context() as patch:
        patch.setattr(chat_template, "SECONDS", seconds)
        with pytest.raises(av.UnusableText, match=r"^one's chat template takes (longer than|more than 300 MB)"):
            render_chat("one", template, MESSAGES, {})
    assert time.monotonic() - started < 30
    assert render_chat("one", "and again", MESSAGES, {}) == "and again"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux tells how much memory is taken")
def test_a_template_gets_no_more_memory_than_allowed_however_short_its_text() -> None:
    doubled = "{% set n = namespace(x='xxxxxxxxxx') %}{% for a in range(27) %}{% set n.x = n.x ~ n.x %}{% endfor %}"
    with pytest.raises(av.UnusableText, match="one's chat template takes more than 300 MB of memory for this text"):
        render_chat("one", doubled + "{{ n.x | length }}", MESSAGES, {})


def test_a_template_that_refuses_a_text_says_why() -> None:
    with pytest.raises(av.UnusableText, match="one's chat template refuses this text: TemplateError: only questions"):
        render_chat("one", "{{ raise_exception('only questions') }}", MESSAGES, {})


def test_a_tokenizer_that_breaks_down_is_told_as_an_error_of_ours() -> None:
    def panic() -> None:
        raise PanicException("called `Result::unwrap()` on an `Err` value")

    with pytest.raises(av.UnusableText, match="one's tokenizer failed on this text"):
        with_tokenizer("one", word_tokenizer(), "text", panic)


def test_a_tokenizer_whose_longest_text_is_no_number_is_told_as_an_error_of_ours() -> None:
    tokenizer = word_tokenizer()
    tokenizer.model_max_length = []
    with pytest.raises(av.UnusableText, match="one's tokenizer failed on this text: TypeError: "):
        read("one", tokenizer, "the bank")


def test_a_tokenizer_that_breaks_down_as_it_is_read_is_told_as_an_error_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build("bert with a head").save_pretrained(tmp_path)
    word_tokenizer().save_pretrained(tmp_path)

    def panic(*_: object, **__: object) -> None:
        raise PanicException("index out of bounds")

    monkeypatch.setattr(reading.AutoTokenizer, "from_pretrained", panic)
    with pytest.raises(av.ModelNotFound, match=r"tokenizer of one.*: index out of bounds"):
        reading.read_tokenizer(check_folder(tmp_path, "one"), lambda: None, apart=False)


def test_a_tokenizer_that_takes_too_long_is_not_waited_for_and_keeps_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tokenizing, "SECONDS", 0.5)
    slow, quick, go = word_tokenizer(), word_tokenizer(), threading.Event()
    with pytest.raises(av.UnusableText, match=r"one's tokenizer took longer than 0\.5 seconds"):
        with_tokenizer("one", slow, "text", lambda: go.wait(20))
    assert len(read("two", quick, "the bank").tokens) >= 2
    go.set()
    monkeypatch.setattr(tokenizing, "SECONDS", 20.0)
    assert len(read("one", slow, "the bank").tokens) >= 2


def test_a_tokenizer_s_own_timeout_is_told_as_an_error_of_ours() -> None:
    def give_up() -> None:
        raise TimeoutError("no word for it")

    with pytest.raises(av.UnusableText, match="failed on this text: TimeoutError: no word for it"):
        with_tokenizer("one", word_tokenizer(), "text", give_up)


def test_a_text_longer_than_any_model_reads_is_refused_unread() -> None:
    with pytest.raises(av.UnusableText, match=r"2,000,001 characters; .* the 2,000,000 that one's tokenizer takes"):
        read("one", word_tokenizer(), "a" * 2_000_001)


def test_a_tokenizer_s_thread_ends_with_it() -> None:
    tokenizer = word_tokenizer()
    read("one", tokenizer, "the bank")
    before = sum(thread.name == "tokenizer" for thread in threading.enumerate())
    del tokenizer
    deadline = time.monotonic() + 10
    while sum(thread.name == "tokenizer" for thread in threading.enumerate()) >= before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert sum(thread.name == "tokenizer" for thread in threading.enumerate()) < before


_FORKED = """
import os, sys
from pathlib import Path
from attention_viz.inputs import tokenizing
from attention_viz.inputs.isolated.tokenizer import IsolatedTokenizer
class Tokenizer: pass
own, apart = Tokenizer(), IsolatedTokenizer.load(Path(sys.argv[1]), "apart")
first = apart("a b")["input_ids"]
assert tokenizing.with_tokenizer("one", own, "a", lambda: 1) == 1
apart.process._turn.acquire(), tokenizing._lock.acquire()  # as other threads do while they work
if (copy := os.fork()) == 0:
    tokenizing.SECONDS = 3.0
    assert tokenizing.with_tokenizer("one", own, "a", lambda: 2) == 2
    assert apart("a b")["input_ids"] == first
    os._exit(0)
apart.process._turn.release(), tokenizing._lock.release()
assert os.waitpid(copy, 0)[1] == 0
assert apart("a b")["input_ids"] == first
assert tokenizing.with_tokenizer("one", own, "a", lambda: 3) == 3
print("both")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system doesn't fork")
def test_a_copy_of_the_process_reads_texts_of_its_own(tmp_path: Path) -> None:
    word_tokenizer().save_pretrained(tmp_path)
    command = [sys.executable, "-c", _FORKED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "both\n", done.stderr
