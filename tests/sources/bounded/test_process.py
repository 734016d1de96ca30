"""Whatever runs in a bounded process takes no more than it may, and says nothing but data."""

import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import attention_viz as av
from attention_viz.errors import LoadCancelled
from attention_viz.sources.bounded import starting
from attention_viz.sources.bounded.framing import Message, TooLong, pack, receive
from attention_viz.sources.bounded.limits import Limits
from attention_viz.sources.bounded.process import Broken, NotStarted, Process, ProcessEnded, isolates
from attention_viz.sources.bounded.starting import start, start_alone

ROOT = Path(__file__).parents[3]
MODULE = "tests.sources.bounded.misbehaving"
LIMITS = Limits(memory=100_000_000, seconds=1.5, processor=1, answer=1_000_000)
LINUX = sys.platform.startswith("linux")
on_linux = pytest.mark.skipif(not LINUX, reason="only Linux holds a process to these limits")

Ask = Callable[..., Message]


@pytest.fixture(params=[start, start_alone], ids=["usual", "alone"])
def process(request: pytest.FixtureRequest) -> Iterator[Process]:
    """A process, started as it usually is, and as it is where nothing can be forked."""
    found = Process(MODULE, LIMITS, request.param)
    yield found
    found.end()


def ask(process: Process, content: bytes = b"", **values: Any) -> Message:
    return process.ask(Message(values, content))


def gone(number: int, seconds: float = 10.0) -> bool:
    """Whether a process ends in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return True
        if LINUX and Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False


def test_it_answers_with_values_and_bytes(process: Process) -> None:
    said = {"text": "\ud800 é", "numbers": [1, 2.5, None]}
    answer = ask(process, b"\x00\xff" * 1000, echo=said)
    assert answer.values == {"said": said} and answer.content == b"\x00\xff" * 1000


def test_what_breaks_down_or_refuses_is_said_and_the_process_goes_on(process: Process) -> None:
    with pytest.raises(Broken, match="Panic: the regex"):
        ask(process, **{"break": "the regex"})
    with pytest.raises(av.UnusableText, match="nothing to read"):
        ask(process, refuse="nothing to read")
    assert ask(process, echo=1).values == {"said": 1}


def test_what_takes_too_long_is_ended_in_time(process: Process) -> None:
    number = ask(process, who=True).values["process"]
    begun = time.monotonic()
    with pytest.raises(ProcessEnded, match=r"^takes longer than 1\.5 seconds$"):
        ask(process, sleep=60)
    assert time.monotonic() - begun < 4 and not process.alive and gone(number)
    with pytest.raises(ProcessEnded, match="has ended"):
        ask(process, echo=1)


@on_linux
@pytest.mark.parametrize("request_", [{"take": 10**9}, {"abort": True}], ids=["Python's", "Rust's"])
def test_what_takes_too_much_memory_is_ended(process: Process, request_: dict[str, Any]) -> None:
    assert ask(process, take=10**7).values == {"taken": 10**7}
    with pytest.raises(ProcessEnded, match=r"^takes more than 100 MB of memory$"):
        ask(process, **request_)
    assert not process.alive


@on_linux
def test_processor_time_is_bounded_for_each_answer_by_itself() -> None:
    process = Process(MODULE, Limits(seconds=240, processor=1))
    for _ in range(3):
        ask(process, work=0.6)
    with pytest.raises(ProcessEnded, match="takes longer than 1 seconds"):
        ask(process, work=30)


@pytest.mark.parametrize("lengths", [[4_000_000_000, 0], [2, 4_000_000_000], [2**64 - 1, 2**64 - 1]])
def test_an_answer_that_announces_too_much_is_refused_unread(process: Process, lengths: list[int]) -> None:
    with pytest.raises(ProcessEnded, match=r"^gives an answer of more than 1 MB$"):
        ask(process, lie=lengths)
    assert not process.alive


def test_a_message_too_long_is_never_read() -> None:
    def read(count: int) -> bytes:
        assert count == 16, "more than the lengths was read"
        return struct.pack(">QQ", 10, 4_000_000_000)

    with pytest.raises(TooLong):
        receive(read, 1_000_000)


@pytest.mark.parametrize("text", ["nonsense", "[1]", "[" * 100_000], ids=["no JSON", "no object", "deep"])
def test_an_answer_that_is_no_message_is_refused(process: Process, text: str) -> None:
    with pytest.raises(ProcessEnded, match="gives an answer that can't be read"):
        ask(process, garbage=text)


def test_what_is_packed_is_received() -> None:
    packed = pack(Message({"a": 1}, b"xyz"))
    places = iter((packed[:16], packed[16:24], packed[24:]))
    assert receive(lambda count: next(places), 100) == Message({"a": 1}, b"xyz")


def test_a_process_that_is_killed_in_the_middle_of_an_answer_is_told(process: Process) -> None:
    with pytest.raises(ProcessEnded, match="was ended from outside"):
        ask(process, kill=int(signal.SIGKILL))


@on_linux
def test_it_writes_no_files_and_opens_few(process: Process, tmp_path: Path) -> None:
    with pytest.raises(Broken, match="File too large"):
        ask(process, write=str(tmp_path / "written"))
    with pytest.raises(Broken, match="Too many open files"):
        ask(process, open=200)


def _leaves_network() -> bool:
    """Whether this system lets a process leave the network, tried in another one."""
    code = "from attention_viz.sources.bounded.limits import leave_network; raise SystemExit(not leave_network())"
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60).returncode == 0


@on_linux
def test_it_reaches_no_port_that_this_process_reaches(process: Process) -> None:
    if not _leaves_network():
        pytest.skip("this system lets no process leave the network")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = list(listening.getsockname())
        with socket.create_connection(tuple(address), timeout=2):
            pass
        with pytest.raises(Broken, match=r"Network is unreachable|Connection refused"):
            ask(process, connect=address)


UNFORKABLE = "tests.sources.bounded.unforkable"


@pytest.fixture
def _own_image() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    yield
    starting._images.pop(UNFORKABLE).end()  # pyright: ignore[reportPrivateUsage]


@on_linux
@pytest.mark.usefixtures("_own_image")
def test_a_fork_that_fails_is_said_and_ends_no_other_process() -> None:
    first, second = Process(UNFORKABLE, LIMITS), Process(UNFORKABLE, LIMITS)
    assert ask(first, echo=1).values == {"said": 1}
    with pytest.raises(NotStarted, match=r"^can't start \(Resource temporarily unavailable\)$"):
        ask(second, echo=2)
    third = Process(UNFORKABLE, LIMITS)
    assert ask(first, echo=3).values == {"said": 3} and ask(third, echo=4).values == {"said": 4}


def _breaks(*_: object) -> starting.Started:
    raise BrokenPipeError(32, "Broken pipe")


def test_what_can_t_be_started_is_stopped_and_no_raw_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProcessEnded, match=r"^can't start \(Broken pipe\)$"):
        Process(MODULE, LIMITS, _breaks)
    monkeypatch.setattr(sys, "executable", "/nowhere/at/all")
    with pytest.raises(NotStarted, match=r"^can't start \(No such file or directory\)$"):
        Process(MODULE, LIMITS, start_alone)


def test_it_knows_nothing_of_the_server_s_environment(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "a secret")
    fresh = Process(MODULE, LIMITS, start_alone)
    for one in (process, fresh):
        found = ask(one, environment=True).values
        assert not {"HF_TOKEN", "HOME", "ATTENTION_VIZ_MODELS"} & set(found["names"])
    fresh.end()


def test_a_wait_ends_when_nobody_wants_the_answer(process: Process) -> None:
    number = ask(process, who=True).values["process"]

    def stop() -> None:
        raise LoadCancelled("nobody waits for it")

    with pytest.raises(LoadCancelled):
        process.ask(Message({"sleep": 60}), stop)
    assert not process.alive and gone(number)


_PARENT = f"""
import os, sys
from attention_viz.sources.bounded.framing import Message, pack
from attention_viz.sources.bounded.limits import Limits
from attention_viz.sources.bounded.process import Process
process = Process({MODULE!r}, Limits())
print(process.ask(Message({{"who": True}})).values["process"], flush=True)
if sys.argv[1] == "busy":
    process._started.channel.sendall(pack(Message({{"sleep": 60}})))
os.kill(os.getpid(), 9)
"""


@on_linux
@pytest.mark.parametrize("doing", ["idle", "busy"])
def test_it_ends_with_the_process_that_started_it(doing: str) -> None:
    done = subprocess.run([sys.executable, "-c", _PARENT, doing], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert gone(int(done.stdout)), done.stderr


_COPY = f"""
import os
from attention_viz.sources.bounded.framing import Message
from attention_viz.sources.bounded.limits import Limits
from attention_viz.sources.bounded.process import Process
process = Process({MODULE!r}, Limits())
process.ask(Message({{"echo": 1}}))
if (copy := os.fork()) == 0:
    own = Process({MODULE!r}, Limits())
    assert own.ask(Message({{"echo": 2}})).values == {{"said": 2}}
    process.end()
    raise SystemExit(0)
assert os.waitpid(copy, 0)[1] == 0
assert process.ask(Message({{"echo": 3}})).values == {{"said": 3}}
print("both")
"""


@on_linux
def test_a_copy_of_the_process_leaves_the_other_s_alone() -> None:
    done = subprocess.run([sys.executable, "-c", _COPY], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout == "both\n", done.stderr


@on_linux
def test_after_the_image_is_gone_the_next_process_starts() -> None:
    process = Process(MODULE, LIMITS)
    os.kill(ask(process, environment=True).values["parent"], signal.SIGKILL)
    with pytest.raises(ProcessEnded, match="ended"):
        ask(process, echo=1)
        ask(process, sleep=1)
    again = Process(MODULE, LIMITS)
    assert ask(again, echo=2).values == {"said": 2}
    again.end()


def test_isolation_is_switched_off_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isolates()
    monkeypatch.setenv("ATTENTION_VIZ_ISOLATE", "off")
    assert not isolates()
    monkeypatch.setenv("ATTENTION_VIZ_ISOLATE", "perhaps")
    with pytest.raises(ValueError, match="must be on or off"):
        isolates()
