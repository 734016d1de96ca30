"""Words of a transcription whose own time a head attends to before it writes them."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from attention_viz.analysis.findings.finding import Candidate
from attention_viz.analysis.findings.scene import StreamScene
from attention_viz.analysis.word_times import said_words, times_of
from attention_viz.errors import TraceError

HEARD = "heard"
# Thirds of a word, as the explorer's `hearing/speech.js` names them; and the share that one of them needs there, too.
THIRDS = ("first", "middle", "last")
_THIRD = 0.6


def word_thirds(scene: StreamScene) -> Iterator[tuple[Sequence[int], NDArray[np.float64]]]:
    """Yield each word's rows, and per frame its third of the word's time: 0 to 2 inside the word."""
    try:
        said, times = said_words(scene.trace), times_of(scene.trace)
    except TraceError:  # nothing is said, or more than there are frames
        return
    frames = scene.trace.key_tokens(scene.stream).frames
    begins = np.array([frames.get(at, np.inf) for at in range(len(scene.keys.tokens))])
    middles = begins + (begins[1] - begins[0]) / 2 if len(begins) > 1 else begins
    for (_, rows), (start, end) in zip(said, times, strict=True):
        if end > start:
            yield rows, np.floor(3 * (middles - start) / (end - start))


def heard_of(scene: StreamScene) -> list[Candidate]:
    """Return each head's words with at least 0.6 of the weight in one third of the word's time."""
    if scene.stream != "cross" or scene.trace.seen.sound is None:
        return []
    found = list[Candidate]()
    for rows, thirds in word_thirds(scene):
        word = int(scene.queries.index[rows[0]])
        if scene.queries.kinds[word] != "content":
            continue
        for layer in scene.trace.layer_numbers(scene.stream):
            weights = scene.trace.attention(layer, scene.stream).rows(list(rows)).weights.detach().double().cpu()
            for head, line in enumerate(weights.mean(dim=1).numpy()):
                shares = [float(line[thirds == third].sum()) for third in range(len(THIRDS))]
                most, frame = int(np.argmax(shares)), int(line.argmax())
                if shares[most] >= _THIRD:
                    place = scene.stream, layer, head, word, int(scene.keys.index[frame])
                    found.append(
                        Candidate(HEARD, shares[most], shares[most], *place, words=most, seen=(rows[0], frame))
                    )
    return found
