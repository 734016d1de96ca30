"""A packaged model is converted once, whole or not at all, and whatever stands in the way is said by name."""

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import attention_viz as av
from attention_viz.models.loading.load_folder import load_folder
from attention_viz.sources.folders import WEIGHTS, sha256_of
from attention_viz.sources.packages.conversion import VARIABLE, Conversion, cache_folder
from attention_viz.sources.packages.converters import CONVERTERS
from tests.killed import die, killed_in
from tests.sources.packages.gguf_file import write_gguf

NAME = "SmolLM2-135M-Instruct"


@dataclass(frozen=True)
class Packaged:
    """A tiny model in a package, and what becomes of it."""

    conversion: Conversion
    package: Path
    sha256: str
    size: int

    def complete(self, **given: Any) -> Path:
        return self.conversion.complete(**{"package": self.package, "sha256": self.sha256, "size": self.size, **given})


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, int]:
    """The file of a package, and the sha256 and the size of the weights that are made of it."""
    place = tmp_path_factory.mktemp("files")
    write_gguf(place / "tiny.gguf")
    CONVERTERS["llama_gguf"](place / "tiny.gguf", place, lambda done, of: None)
    return place / "tiny.gguf", sha256_of(place / WEIGHTS), (place / WEIGHTS).stat().st_size


@pytest.fixture
def packaged(files: tuple[Path, str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Packaged:
    """Its package, and a cache with nothing in it."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    source, sha256, size = files
    package = tmp_path / "tiny_package"
    package.mkdir()
    shutil.copy(source, package)
    conversion = Conversion(NAME, 1, source.name, source.stat().st_size, sha256_of(source), "llama_gguf")
    return Packaged(conversion, package, sha256, size)


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that were written, in order."""
    convert, seen = CONVERTERS["llama_gguf"], list[Path]()

    def counted(source: Path, folder: Path, progress: Callable[[int, int], None]) -> None:
        seen.append(folder)
        convert(source, folder, progress)

    monkeypatch.setitem(CONVERTERS, "llama_gguf", counted)
    return seen


def test_a_package_becomes_a_folder_with_its_card_once(packaged: Packaged, conversions: list[Path]) -> None:
    told: list[tuple[int, int]] = []
    folder = packaged.complete(progress=lambda *at: told.append(at))
    assert folder.is_relative_to(cache_folder())
    assert told[-1][0] == told[-1][1] > 0
    assert (folder / "README.md").read_text("utf-8").startswith(f"# {NAME}\n")
    assert load_folder(folder, NAME, compared=packaged.sha256).trace("ab c").provenance.sha256 == packaged.sha256
    assert packaged.complete() == folder
    assert len(conversions) == 1


@pytest.fixture
def in_the_catalogue(packaged: Packaged, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny model goes by the name of a real one."""
    (packaged.package / "__init__.py").touch()
    monkeypatch.syspath_prepend(packaged.package.parent)
    entry = replace(
        av.CATALOGUE[NAME],
        package=packaged.package.name,
        conversion=packaged.conversion,
        sha256=packaged.sha256,
        size=packaged.size,
    )
    monkeypatch.setitem(av.CATALOGUE, NAME, entry)


@pytest.mark.usefixtures("in_the_catalogue")
def test_a_model_whose_cache_is_gone_is_converted_when_it_is_loaded(
    packaged: Packaged, conversions: list[Path]
) -> None:
    for times in (1, 2):
        assert av.load(NAME).trace("ab c").fidelity.ok
        assert len(conversions) == times
        shutil.rmtree(packaged.conversion.folder)


@pytest.mark.usefixtures("in_the_catalogue")
def test_a_conversion_that_nobody_waits_for_is_given_up(packaged: Packaged) -> None:
    with pytest.raises(av.LoadCancelled, match=NAME):
        av.load(NAME, cancelled=lambda: True)
    assert [path.name for path in packaged.conversion.folder.parent.iterdir()] == [f"{NAME}.1.lock"]
    assert av.load(NAME).trace("ab c").fidelity.ok


def test_who_comes_at_the_same_time_waits_for_the_one_conversion(
    packaged: Packaged, conversions: list[Path], together: Callable[..., list[object]]
) -> None:
    assert set(together(*[packaged.complete] * 4)) == {packaged.conversion.folder}
    assert len(conversions) == 1


def test_what_breaks_off_leaves_nothing_that_looks_like_a_model(
    packaged: Packaged, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(source: Path, folder: Path, progress: Callable[[int, int], None]) -> None:
        (folder / WEIGHTS).write_bytes(bytes(10))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setitem(CONVERTERS, "llama_gguf", broken)
        packaged.complete()
    assert [path.name for path in packaged.conversion.folder.parent.iterdir()] == [f"{NAME}.1.lock"]
    killed = packaged.conversion.folder.with_name(f".{NAME}.1-abc") / f"{NAME}.1"
    killed.mkdir(parents=True)
    folder = packaged.complete()
    assert packaged.conversion.is_complete
    assert sorted(path.name for path in folder.parent.iterdir()) == [f"{NAME}.1", f"{NAME}.1.lock"]


def test_a_conversion_that_is_killed_is_none_and_the_next_one_is_whole(
    packaged: Packaged, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(source: Path, folder: Path, progress: Callable[[int, int], None]) -> None:
        (folder / WEIGHTS).write_bytes(bytes(10))
        die()

    with monkeypatch.context() as patch:
        patch.setitem(CONVERTERS, "llama_gguf", half)
        killed_in(packaged.complete)
    left = [path.name for path in packaged.conversion.folder.parent.iterdir() if path.is_dir()]
    assert [name.startswith(f".{NAME}.1-") for name in left] == [True]
    assert not packaged.conversion.is_complete
    folder = packaged.complete()  # the lock went with whoever was killed
    assert sha256_of(folder / WEIGHTS) == packaged.sha256
    assert sorted(path.name for path in folder.parent.iterdir()) == [f"{NAME}.1", f"{NAME}.1.lock"]


def test_a_disk_that_is_full_in_the_middle_is_said_and_nothing_is_left(
    packaged: Packaged, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: Path, folder: Path, progress: Callable[[int, int], None]) -> None:
        (folder / WEIGHTS).write_bytes(bytes(10))
        raise OSError(errno.ENOSPC, "No space left on device")

    with (
        monkeypatch.context() as patch,
        pytest.raises(av.ModelNotFound, match=rf"\(No space left.*folder with {VARIABLE}"),
    ):
        patch.setitem(CONVERTERS, "llama_gguf", full)
        packaged.complete()
    assert [path.name for path in packaged.conversion.folder.parent.iterdir()] == [f"{NAME}.1.lock"]
    assert sha256_of(packaged.complete() / WEIGHTS) == packaged.sha256


def half_written(folder: Path) -> None:
    (folder / "manifest.json").unlink()


def cut_short(folder: Path) -> None:
    os.truncate(folder / WEIGHTS, 1_000)


def one_byte_changed(folder: Path) -> None:
    weights = bytearray((folder / WEIGHTS).read_bytes())
    weights[-1] ^= 1
    (folder / WEIGHTS).write_bytes(weights)


def one_byte_changed_after_the_clock_was_set_back(folder: Path) -> None:
    before = (folder / WEIGHTS).stat().st_mtime
    one_byte_changed(folder)
    os.utime(folder / WEIGHTS, (before - 3600, before - 3600))


def one_file_gone(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


@pytest.mark.parametrize(
    "harm",
    [half_written, cut_short, one_byte_changed, one_byte_changed_after_the_clock_was_set_back, one_file_gone],
)
def test_a_folder_that_is_not_whole_is_never_believed(
    packaged: Packaged, conversions: list[Path], harm: Callable[[Path], None]
) -> None:
    harm(packaged.complete())
    assert not packaged.conversion.is_complete
    with pytest.raises(
        av.ModelNotFound, match=f"{NAME} is half-written or damaged in the cache.*models --install {NAME}"
    ):
        packaged.complete(package=None)
    assert sha256_of(packaged.complete() / WEIGHTS) == packaged.sha256
    assert len(conversions) == 2


def test_a_copied_folder_is_compared_once_and_then_known(packaged: Packaged, conversions: list[Path]) -> None:
    folder = packaged.complete()
    os.utime(folder / WEIGHTS, (1, 1))
    before = (folder / "manifest.json").read_text()
    assert packaged.complete() == folder
    assert (folder / "manifest.json").read_text() != before
    assert len(conversions) == 1


def test_another_file_in_the_package_is_refused_before_anything_is_written(packaged: Packaged) -> None:
    source = packaged.package / "tiny.gguf"
    content = bytearray(source.read_bytes())
    content[-1] ^= 1
    source.write_bytes(content)
    with pytest.raises(av.ModelNotFound, match=r"tiny_package is damaged \(tiny\.gguf has sha256 .*, expected"):
        packaged.complete()
    source.write_bytes(content[:-1])
    with pytest.raises(
        av.ModelNotFound, match=r"tiny_package is damaged \(tiny\.gguf has [\d,]+ bytes instead of [\d,]+"
    ):
        packaged.complete()
    source.unlink()
    with pytest.raises(av.ModelNotFound, match=r"has 0 bytes instead of"):
        packaged.complete()
    assert not packaged.conversion.folder.exists()


def test_what_comes_out_is_compared_too(packaged: Packaged) -> None:
    with pytest.raises(av.ModelNotFound, match=f"conversion of {NAME} failed with sha256"):
        replace(packaged, sha256="0" * 64).complete()
    assert not packaged.conversion.folder.exists()


def test_without_package_and_cache_the_way_to_it_is_said(packaged: Packaged) -> None:
    with pytest.raises(
        av.ModelNotFound, match=f"not on this machine; install it with attention-viz models --install {NAME}"
    ):
        packaged.complete(package=None)


def test_a_cache_that_can_t_be_written_is_said_with_the_way_to_another(
    packaged: Packaged, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(VARIABLE, str(tmp_path / "file"))
    with pytest.raises(
        av.ModelNotFound, match=rf"can't convert .* \(Not a directory\); choose another folder with {VARIABLE}"
    ) as told:
        packaged.complete()
    assert str(tmp_path) not in str(told.value)  # visitors of a server read it


def test_too_little_disk_is_said_before_with_how_much(packaged: Packaged, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(packaged.package)._replace(free=1_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(av.ModelNotFound, match=rf"needs {packaged.size + 20_000_000:,} bytes .* 1,000,000 free"):
        packaged.complete()
    assert not packaged.conversion.folder.exists()


def test_the_cache_is_this_user_s_unless_another_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert cache_folder().is_absolute()
    assert cache_folder().name == "attention_viz"
    monkeypatch.setenv(VARIABLE, "~/elsewhere")
    assert cache_folder() == Path.home() / "elsewhere"
