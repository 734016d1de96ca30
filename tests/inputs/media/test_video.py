"""Videos: frames at regular times, from lists and files, within bounds."""

import errno
import struct
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import attention_viz as av
from attention_viz.inputs.media import decoding, video
from attention_viz.inputs.media.as_read import seen_of
from attention_viz.sources.bounded.framing import Message
from attention_viz.sources.bounded.limits import Limits

# Ten frames per second; frame i is grey of 8 · i.
FILM = np.repeat(np.arange(30, dtype=np.uint8) * 8, 64 * 96 * 3).reshape(30, 64, 96, 3)
FRAMES = np.random.default_rng(0).integers(0, 256, (4, 16, 24, 3), dtype=np.uint8)
# What a lossy codec may change.
_NEAR = 4


def written(path: Path, frames: NDArray[np.uint8], codec: str, rate: int = 10) -> Path:
    """Encode frames by PyAV."""
    made: Any = pytest.importorskip("av")
    with made.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate)
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = "yuv420p"
        for frame in frames:
            container.mux(stream.encode(made.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
    return path


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("film") / "grey.mp4", FILM, "libx264")


def greys(found: av.Video) -> list[int]:
    """The frame that each is, by its grey."""
    levels = found.frames[:, 32, 48, 0].astype(int)
    assert all(abs(level - 8 * round(level / 8)) <= _NEAR for level in levels)
    return [round(level / 8) for level in levels]


def test_frames_come_as_arrays_or_pictures() -> None:
    ways = [FRAMES, list(FRAMES), tuple(map(Image.fromarray, FRAMES)), [av.Picture(one) for one in FRAMES]]
    for source in ways:
        found = av.Video(source, rate=4)
        assert np.array_equal(found.frames, FRAMES)
        assert found.times == (0, 0.25, 0.5, 0.75)
        assert not found.frames.flags.writeable
        assert found.notes == ()
    assert repr(av.Video(FRAMES, rate=4)) == "Video('video', 4 frames of 24 × 16, 4 per second)"
    assert av.Video(FRAMES[..., 0]).frames.shape == (4, 16, 24, 3)


def test_frames_without_a_rate_are_a_second_apart_and_a_note_says_so() -> None:
    found = av.Video(FRAMES)
    assert found.times == (0, 1, 2, 3)
    assert found.notes == ("Its frames were taken to be 1 second apart, since it has no rate.",)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "has no frames; pass at least one"),
        (np.zeros((0, 16, 16, 3), np.uint8), "has no frames"),
        (7, "a path, a file's bytes, or a list or array of frames; got int"),
        (np.zeros((16, 16), np.uint8), r"must be \(frame, row, column, 3\); got \(16, 16\)"),
        ([FRAMES[0], FRAMES[1][:, :16]], "frame 1 is 16 × 16 pixels, but frame 0 is 24 × 16"),
        ([FRAMES[0], "none.png"], "frame 1 can't be read: can't read an image at 'none.png'"),
        ([FRAMES[0]] * 129, "has 129 frames; use at most 128"),
        ("none.mp4", "no video file at 'none.mp4'"),
        ("a\0b", "video"),
    ],
)
def test_what_is_no_video_is_refused(source: Any, message: str) -> None:
    with pytest.raises(av.UnusableVideo, match=message):
        av.Video(source)


@pytest.mark.parametrize("rate", [0, -1, 241, float("nan"), float("inf"), "2", True])
def test_a_wrong_rate_is_refused(rate: Any) -> None:
    with pytest.raises(av.UnusableVideo, match=r"rate must be 0.01 to 240 frames per second"):
        av.Video(FRAMES, rate=rate)


@pytest.mark.parametrize("start", [-1, float("nan"), "1", None])
def test_a_wrong_start_is_refused(start: Any) -> None:
    with pytest.raises(av.UnusableVideo, match=r"start must be a finite number of seconds"):
        av.Video(FRAMES, start=start)
    with pytest.raises(av.UnusableVideo, match=r"start= is for files"):
        av.Video(FRAMES, start=1)


def test_too_many_pixels_are_refused_before_they_are_stacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(video, "MOST_FRAME_PIXELS", 4 * 16 * 24 - 1)
    with pytest.raises(av.UnusableVideo, match=r"4 frames of 24 × 16 have 1,536 pixels; use at most 1,535 in all"):
        av.Video(FRAMES)
    assert len(av.Video(FRAMES[:3]).frames) == 3


def test_without_pyav_a_file_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(decoding, "find_spec", dict[str, object]().get)
    (tmp_path / "a.mp4").write_bytes(b"0")
    with pytest.raises(av.UnusableVideo, match=r'a.mp4 can\'t be decoded without PyAV; run pip install "attention-viz'):
        av.Video(tmp_path / "a.mp4")
    assert len(av.Video(FRAMES).frames) == 4


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "huge.mp4").open("wb") as file:
        file.truncate(2_000_000_001)
    with pytest.raises(av.UnusableVideo, match=r"huge.mp4 has 2,000,000,001 bytes; use at most 2,000,000,000"):
        av.Video(tmp_path / "huge.mp4")


@pytest.mark.parametrize(
    ("ending", "codec"),
    [("mp4", "libx264"), ("webm", "libvpx"), ("mkv", "libx264"), ("avi", "mpeg4"), ("ts", "mpeg2video")],
)
def test_a_file_is_read_at_regular_times_from_its_start_or_another(tmp_path: Path, ending: str, codec: str) -> None:
    path = written(tmp_path / f"grey.{ending}", FILM, codec)
    whole = av.Video(path)
    assert whole.times == (0, 0.5, 1, 1.5, 2, 2.5)
    assert greys(whole) == [0, 5, 10, 15, 20, 25]
    part = av.Video(path.read_bytes(), rate=4, start=1.0)
    assert part.times == (1, 1.25, 1.5, 1.75, 2, 2.25, 2.5, 2.75)
    assert greys(part) == [10, 12, 15, 17, 20, 22, 25, 27]
    assert whole.notes == ("Frames were read 2 times per second, from 0.00 to 2.50 seconds.",)


def test_a_frame_is_shown_until_the_next(film: Path) -> None:
    found = av.Video(film, rate=30)
    assert greys(found)[:7] == [0, 0, 0, 1, 1, 1, 2]


def test_a_long_file_is_read_in_part_and_says_so(film: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(video, "MOST_FRAMES", 3)
    found = av.Video(film)
    assert greys(found) == [0, 5, 10]
    assert "The rest of it wasn't read; choose a part with start=, or a lower rate." in found.notes
    monkeypatch.setattr(video, "MOST_FRAME_PIXELS", 2 * 64 * 96)
    assert greys(av.Video(film)) == [0, 5]


def test_a_rotated_file_is_turned(tmp_path: Path) -> None:
    half = np.zeros((3, 64, 96, 3), np.uint8)
    half[:, :, :48] = 255
    content = bytearray(written(tmp_path / "half.mp4", half, "libx264").read_bytes())
    at = content.index(b"tkhd") + 44
    content[at : at + 36] = struct.pack(">9i", 0, 1 << 16, 0, -(1 << 16), 0, 0, 0, 0, 1 << 30)  # clockwise
    found = av.Video(bytes(content))
    assert found.frames.shape[1:3] == (96, 64)
    assert found.frames[0, 10, 32, 0] > 200 > 50 > found.frames[0, 86, 32, 0]
    assert "It was rotated as the camera noted." in found.notes


def test_broken_files_are_refused_by_name(film: Path, tmp_path: Path) -> None:
    content = film.read_bytes()
    files = {
        "empty.mp4": (b"", "empty.mp4 is empty"),
        "zeros.mp4": (bytes(5000), r"zeros.mp4 is broken or in an unknown format \(Invalid data"),
        "cut.mp4": (content[:1000], "cut.mp4"),
        "text.mp4": (b"not a video" * 100, "text.mp4 is broken"),
        # Playlists, which name other files.
        "list.m3u8": (
            b"#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXTINF:3,\n%s\n#EXT-X-ENDLIST\n" % str(film).encode(),
            "list",
        ),
        "list.ffconcat": (b"ffconcat version 1.0\nfile %s\n" % film.name.encode(), "list"),
    }
    for name, (found, message) in files.items():
        path = film.with_name(name)  # beside the film that the playlists name
        path.write_bytes(found)
        with pytest.raises(av.UnusableVideo, match=message) as error:
            av.Video(path)
        assert str(tmp_path.parent) not in str(error.value)
    with pytest.raises(av.UnusableVideo, match=r"has no frame from 9 s on; it ends at 2.90 s"):
        av.Video(film, start=9)
    with pytest.raises(av.UnusableVideo, match="has no video in it"):
        av.Video(sounded(tmp_path / "sound.mp4"))


def sounded(path: Path) -> Path:
    """A file of audio alone, in a container for videos."""
    made: Any = import_module("av")
    with made.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=16_000, layout="mono")
        frame = made.AudioFrame.from_ndarray(np.zeros((1, 16_000), np.float32), format="fltp", layout="mono")
        frame.sample_rate = 16_000
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def test_a_file_that_takes_too_much_is_stopped(film: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "LIMITS", Limits(memory=300_000))
    with pytest.raises(av.UnusableVideo, match=r"grey.mp4 (takes more than 0.3 MB|is broken)"):
        av.Video(film)
    monkeypatch.setattr(decoding, "LIMITS", Limits(seconds=1e-6))
    with pytest.raises(av.UnusableVideo, match=r"decoding grey.mp4 takes longer than 1e-06 seconds"):
        av.Video(film)
    monkeypatch.setattr(decoding, "LIMITS", Limits(answer=1_000))
    with pytest.raises(av.UnusableVideo, match=r"decoding grey.mp4 gives an answer of more than"):
        av.Video(film)


def test_huge_frames_are_refused_before_decoding(film: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTENTION_VIZ_ISOLATE", "off")
    assert greys(av.Video(film)) == [0, 5, 10, 15, 20, 25]
    monkeypatch.setattr(decoding, "LARGEST", 64 * 96 - 1)
    with pytest.raises(av.UnusableVideo, match=r"grey.mp4 is 96 × 64 pixels; use at most 6,143 per frame"):
        av.Video(film)


def test_a_decoder_without_memory_isnt_reported_as_a_broken_file(film: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Decoder:
        @staticmethod
        def open(*_: object, **_options: object) -> None:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")

    request = Message(
        {"name": "film.mp4", "path": str(film), "rate": 2.0, "start": 0.0, "most": 4, "pixels": 10**6}, b""
    )
    assert decoding.start()(request).values["shape"][0] > 0
    monkeypatch.setattr(decoding, "import_module", lambda _name: Decoder)
    with pytest.raises(MemoryError):
        decoding.start()(request)


def test_a_trace_keeps_images_and_frames_of_so_many_pixels_in_all() -> None:
    for count, size in ((1, (3000, 3000)), (5, (1500, 1000)), (2, (20, 30))):
        seen = seen_of([np.zeros((*size, 3), np.uint8)] * count, tuple(map(float, range(count))))
        kept = [one.shape for one in seen.pictures]
        pixels = sum(rows * columns for rows, columns, _ in kept)
        assert len(kept) == count and len(seen.times) == count
        assert pixels <= 4_000_000
        assert pixels > 3_900_000 or kept[0][:2] == size
