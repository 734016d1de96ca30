"""Timed words as WebVTT subtitles."""

import html
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas

__all__ = ["to_webvtt"]


def to_webvtt(times: "pandas.DataFrame") -> str:
    """Write a cue per timed word.

    Source: W3C, "WebVTT: The Web Video Text Tracks Format", section 4.
    """
    rows = zip(times["word"].tolist(), times["start"].tolist(), times["end"].tolist(), strict=True)
    cues = [
        f"{_stamp(start)} --> {_stamp(end)}\n{html.escape(' '.join(str(word).split()), quote=False)}\n"
        for word, start, end in rows
        if not math.isnan(start)
    ]
    return "\n".join(["WEBVTT\n", *cues])


def _stamp(second: float) -> str:
    thousandths = round(second * 1000)
    minutes, rest = divmod(thousandths, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{rest // 1000:02}.{rest % 1000:03}"
