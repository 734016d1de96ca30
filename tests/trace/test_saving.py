"""A saved file is whole, or it is the one that was there before, whatever is written."""

import errno
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import attention_viz as av
from attention_viz import views
from attention_viz.cli import files
from attention_viz.trace.trace import Trace
from tests.killed import die, killed_in

KILLED_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
import attention_viz as av

trace = av.scratch("another text, much longer than the one before it")
# The disk is so slow that the kill comes in the middle: half of the file is there.
def half(file, content):
    file.write(content[: len(content) // 2])
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)

class Slow:
    def __init__(self, file): self.file = file
    def __enter__(self): return self
    def __exit__(self, *_): self.file.close()
    def __getattr__(self, name): return getattr(self.file, name)
    def write(self, content): half(self.file, content)

opened = Path.open
Path.open = lambda self, *given, **named: Slow(opened(self, *given, **named))
trace.save(sys.argv[1])
"""


def test_a_kill_in_the_middle_of_saving_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "trace.safetensors"
    av.scratch("the old text").save(path)
    killed = subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, path], capture_output=True, check=False)
    assert killed.returncode == -9, killed.stderr
    assert av.Trace.load(path).provenance.text == "the old text"


def test_a_file_keeps_its_rights_and_a_link_stays_a_link(tmp_path: Path) -> None:
    path, link = tmp_path / "trace.safetensors", tmp_path / "link"
    av.scratch("one").save(path)
    path.chmod(0o640)
    link.symlink_to(path)
    av.scratch("two").save(link)
    assert link.is_symlink() and av.Trace.load(path).provenance.text == "two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link", "trace.safetensors"]


class FullDisk:
    """A file that takes half of what is written, and then there is no room."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def __enter__(self) -> "FullDisk":
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def write(self, content: Any) -> None:
        self.file.write(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")


def as_cli(ending: str) -> Callable[[Trace, Path], None]:
    return lambda trace, path: files.ENDINGS[ending].write(trace, path, files.FilePart(0, 0))


WRITERS: dict[str, Callable[[Trace, Path], None]] = {
    "trace": lambda trace, path: trace.save(path),
    "explorer": lambda trace, path: av.explore(trace).save_html(path),
    "picture": lambda trace, path: views.save(views.heatmap_svg(trace, 0, 0), path.with_suffix(".svg")),
    **{ending: as_cli(ending) for ending in (".csv", ".parquet", ".html", ".svg", ".safetensors")},
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_disk_that_is_full_leaves_what_was_there(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, trace, opened = tmp_path / "one.svg", av.scratch("the new text"), Path.open

    def on_a_full_disk(self: Path, mode: str = "r", *how: Any, **more: Any) -> Any:
        file = opened(self, mode, *how, **more)
        return file if mode.startswith("r") else FullDisk(file)

    path.write_bytes(b"what was there")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", on_a_full_disk)
        with pytest.raises((OSError, av.TraceError), match="No space left"):
            WRITERS[name](trace, path)
    assert path.read_bytes() == b"what was there"
    assert [one.name for one in tmp_path.iterdir()] == ["one.svg"]
    WRITERS[name](trace, path)
    assert path.read_bytes() != b"what was there"


class Killed(FullDisk):
    """A file in which half of what is written is there when the process that writes is killed."""

    def write(self, content: Any) -> None:
        self.file.write(content[: len(content) // 2])
        self.file.flush()
        die()


@pytest.mark.parametrize("name", WRITERS)
def test_an_export_that_is_killed_leaves_what_was_there(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, trace, opened = tmp_path / "one.svg", av.scratch("the new text"), Path.open

    def slowly(self: Path, mode: str = "r", *how: Any, **more: Any) -> Any:
        file = opened(self, mode, *how, **more)
        return file if mode.startswith("r") else Killed(file)

    path.write_bytes(b"what was there")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", slowly)
        killed_in(lambda: WRITERS[name](trace, path))
    assert path.read_bytes() == b"what was there"
    WRITERS[name](trace, path)
    assert path.read_bytes() != b"what was there"


def test_what_can_not_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(av.TraceError, match="can't write the trace"):
        av.scratch("one").save(tmp_path / "folder")
    with pytest.raises(av.TraceError, match=f"one.safetensors: no folder {tmp_path / 'none'}$"):
        av.scratch("one").save(tmp_path / "none" / "one.safetensors")
    assert not list((tmp_path / "folder").iterdir()) and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1])
def test_an_id_that_no_tensor_holds_is_refused_on_saving(number: int, tmp_path: Path) -> None:
    one = av.scratch("a b")
    wide = av.Tokens(("a", "b"), (1, number))
    with pytest.raises(av.TraceError, match=r"has the id -?9223372036854775"):
        one.derived(queries={"encoder": wide}, keys={"encoder": wide}).save(tmp_path / "wide")
    assert not list(tmp_path.iterdir())
