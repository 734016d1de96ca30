"""Audio: the cost of recording, the time for words with their times, and the errors of these times."""

import copy
import re
import time
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import Any, cast

import numpy as np
import torch

import attention_viz as av
from attention_viz.inputs.media.shipped import SAMPLES
from benchmarks.measuring import Spread, on_one_thread, take_turns
from benchmarks.recorded import COLUMNS, captured_to_plain
from benchmarks.report import Benchmark, Result, Table
from benchmarks.spoken import SENTENCES, Spoken, speak, speaks

__all__ = ["BENCHMARK", "MARK", "MARK_SECONDS", "MARK_TIMES"]

MARK, MARK_TIMES, MARK_SECONDS, _LATER = 1.05, 1.5, 0.12, 1.0
_MODEL = "whisper-tiny.en"
_RATE, _WINDOW = 16_000, 30
# Seconds of silence before a sentence, and before the word in its middle.
_BEFORE, _WITHIN = 4.0, 2.0
# The heads of tiny.en that its makers tell to align; transformers' own word times go by them.
_PUBLISHED = [[1, 0], [2, 0], [2, 5], [3, 0], [3, 1], [3, 2], [3, 3], [3, 4]]

# A word's start, by its letters.
_Starts = list[tuple[str, float]]


def run(quick: bool) -> Result:
    """Measure the cost of recording, thirty seconds to words, and the words' starts."""
    model = av.load(_MODEL)
    assert isinstance(model, av.AttentionModel) and model.reader is not None
    with on_one_thread():
        row, ratio = _recording(model, quick)
    tables = [Table(COLUMNS, [row], "The cost of recording")]
    remarks = [f"The target, at most {MARK:g}, is {'reached' if ratio <= MARK else f'missed with {ratio:.3f}'}."]
    if not speaks():
        return Result(tables, [*remarks, "espeak-ng isn't on this machine, so no sentence was spoken."])
    spoken = speak(SENTENCES[: 2 if quick else len(SENTENCES)])
    paused = [_with_pauses(one) for one in spoken]
    measured = (
        _thirty_seconds(model, spoken),
        _word_starts(model, spoken, "without pauses"),
        _word_starts(model, paused, f"{_BEFORE:g} s of silence before them, {_WITHIN:g} s before the middle word"),
    )
    return Result([*tables, *(table for table, _ in measured)], [*remarks, *(remark for _, remark in measured)])


def _recording(model: "av.AttentionModel", quick: bool) -> tuple[list[str], float]:
    sound = av.Sound(SAMPLES["window"].path)
    said = model.trace(sound).provenance.target
    ids = torch.tensor([model.trace(sound, target=said).query_tokens("decoder").numbers])
    reader = model.reader
    assert reader is not None

    def plain() -> object:
        with torch.no_grad():
            return model.hf_model(**reader.read(sound).tensors, decoder_input_ids=ids)

    return captured_to_plain("30 s of audio, words given", plain, lambda: model.trace(sound, target=said), quick)


def _thirty_seconds(model: "av.AttentionModel", spoken: Sequence[Spoken]) -> tuple[Table, str]:
    """Measure words and lines of thirty seconds, against transformers' own transcription alone."""
    samples = np.concatenate([np.pad(one.samples, (0, one.rate // 2)) for one in spoken])
    sound = av.Sound(samples[: _WINDOW * spoken[0].rate], spoken[0].rate)
    extractor, tokenizer = _own_parts(model)
    wave, whisper = sound.at(_RATE), cast("Any", model.hf_model)

    def theirs() -> object:
        features = extractor(wave, sampling_rate=_RATE, return_tensors="pt").input_features
        with torch.no_grad():
            return tokenizer.batch_decode(whisper.generate(features), skip_special_tokens=True)

    def ours() -> object:
        return av.word_times(model, model.trace(sound))

    ways: dict[str, Callable[[], object]] = {"theirs": theirs, "ours": ours}
    figures = take_turns(ways, lambda: (time.perf_counter(),), rounds=3)
    own, other = (Spread.of(one for (one,) in figures[name]) for name in ("ours", "theirs"))
    allowed = MARK_TIMES * other.median + _LATER
    rows = [["transformers' `generate`", other.write()], ["words, word times and the trace", own.write()]]
    rows.append(["the target", f"{allowed:.2f}"])
    reached = "reached" if own.median <= allowed else "missed"
    remark = f"Thirty seconds to words and lines: the target, {MARK_TIMES:g} × `generate` + {_LATER:g} s, is {reached}."
    return Table(("30 s of speech", "seconds"), rows, "Thirty seconds to words"), remark


def _with_pauses(spoken: Spoken) -> Spoken:
    """Put a pause before a sentence, and before the word in its middle."""
    middle = spoken.words[len(spoken.words) // 2][1]
    before, cut, within = (round(seconds * spoken.rate) for seconds in (_BEFORE, middle, _WITHIN))
    silence = np.zeros(before, np.float32), np.zeros(within, np.float32)
    samples = np.concatenate([silence[0], spoken.samples[:cut], silence[1], spoken.samples[cut:]])
    words = [(word, start + _BEFORE + _WITHIN * (start >= middle)) for word, start in spoken.words]
    return Spoken(samples, spoken.rate, tuple(words))


def _word_starts(model: "av.AttentionModel", spoken: Sequence[Spoken], which: str) -> tuple[Table, str]:
    """Measure the starts of words against espeak-ng's own times."""
    pipe = _pipeline(model)
    ours = {id(one): _ours(model, one) for one in spoken}
    ways: dict[str, Callable[[Spoken], _Starts]] = {
        "`av.word_times`": lambda one: ours[id(one)],
        'transformers\' `return_timestamps="word"`': lambda one: _theirs(pipe, one),
        "an even split of the audio": lambda one: _even(one, ours[id(one)]),
    }
    rows, medians = list[list[str]](), list[float]()
    for name, starts in ways.items():
        off = [error for one in spoken for error in _off(one, starts(one))]
        medians.append(float(np.median(off)))
        within = np.mean(np.array(off) <= 0.1)
        rows.append([name, f"{len(off)}", f"{medians[-1]:.3f} s", f"{np.mean(off):.3f} s", f"{within:.0%}"])
    columns = ("word starts", "words", "median error", "mean error", "within 0.1 s")
    caption = f"{len(spoken)} sentences, {which}; words that both have"
    reached = "reached" if medians[0] <= MARK_SECONDS else "missed"
    mark = f"the target, a median of at most {MARK_SECONDS:g} s, is {reached} with {medians[0]:.3f} s"
    remark = f"Word starts, {which}: {mark}."
    return Table(columns, rows, caption), remark


def _off(spoken: Spoken, starts: _Starts) -> list[float]:
    """Return the errors of the words that both have, in the same order."""
    true = [_letters(word) for word, _ in spoken.words]
    found = [_letters(word) for word, _ in starts]
    blocks = SequenceMatcher(None, true, found, autojunk=False).get_matching_blocks()
    pairs = [(one.a + at, one.b + at) for one in blocks for at in range(one.size)]
    return [abs(spoken.words[a][1] - starts[b][1]) for a, b in pairs]


def _letters(word: str) -> str:
    return re.sub(r"\W", "", word).casefold()


def _sound(spoken: Spoken) -> "av.Sound":
    return av.Sound(spoken.samples, spoken.rate)


def _ours(model: "av.AttentionModel", spoken: Spoken) -> _Starts:
    table = av.word_times(model, model.trace(_sound(spoken)))
    return list(zip(table.word, table.start, strict=True))


def _even(spoken: Spoken, said: _Starts) -> _Starts:
    """Return the model's words, all of equal length."""
    return [(word, at * spoken.seconds / len(said)) for at, (word, _) in enumerate(said)]


def _theirs(pipe: Any, spoken: Spoken) -> _Starts:
    heard = pipe({"raw": _sound(spoken).at(_RATE), "sampling_rate": _RATE}, return_timestamps="word")
    return [(one["text"], float(one["timestamp"][0])) for one in heard["chunks"]]


def _own_parts(model: "av.AttentionModel") -> tuple[Any, Any]:
    from transformers import WhisperFeatureExtractor, WhisperTokenizer

    path = av.CATALOGUE[_MODEL].path
    assert path is not None
    # The tokenizer that knows of times: any other writes words only.
    return WhisperFeatureExtractor.from_pretrained(path), WhisperTokenizer.from_pretrained(path)


def _pipeline(model: "av.AttentionModel") -> Any:
    from transformers import pipeline

    extractor, tokenizer = _own_parts(model)
    whisper = copy.deepcopy(model.hf_model)
    assert whisper.generation_config is not None
    whisper.generation_config.update(alignment_heads=_PUBLISHED)
    return pipeline("automatic-speech-recognition", model=whisper, tokenizer=tokenizer, feature_extractor=extractor)


BENCHMARK = Benchmark(
    title="Sound",
    method=(
        "First, `model.trace` of audio is measured against a plain pass of Whisper over the same thirty seconds and "
        "words, reading the audio included. This counts the CPU time of the whole process on one thread, in rounds of "
        "plain, captured, plain; each ratio is taken to the middle of its two plain turns. Each figure is the median "
        "of 7 rounds, with the smallest and the largest in brackets. Second, thirty seconds of sentences spoken by "
        "espeak-ng go from samples to the trace and `av.word_times`, against transformers' `generate` alone: the "
        "median of 3 turns, by the clock. Third, the start of each word in twenty sentences is compared with "
        "espeak-ng's own time, for the words that both have. The other rows are transformers' word times, by the "
        "heads that Whisper's makers name, and a split of the audio into words of equal length. The same sentences "
        "are measured again with silence before them and before the middle word."
    ),
    run=run,
)
