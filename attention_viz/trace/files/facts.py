"""Check a trace file's facts on writing and reading, by common rules."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence, Sized
from itertools import pairwise

from torch import Tensor

from attention_viz.errors import TraceError
from attention_viz.operation.kernel import BOUNDS
from attention_viz.operation.shapes import FLOATING, widened
from attention_viz.operation.terms import terms_of
from attention_viz.operation.token_mixer import KINDS, TokenMixer
from attention_viz.trace.chat.segments import MOST_SEGMENTS, check_segments, text_stream
from attention_viz.trace.kind import MEDIA, InputKind
from attention_viz.trace.provenance import MERGED, Fidelity, Provenance
from attention_viz.trace.tokens import Tokens

# In all streams together. The deepest models of today have 126 layers; those that run one again and again, 300.
MOST_LAYERS, MOST_HEADS = 512, 65_536
# Of layers with a matrix per channel. The largest models of today have about a million channels in all.
MOST_CHANNELS = 2**22
# Characters. A word of a long text without blanks, such as DNA, is one label once its pieces are merged.
_LONGEST_LABEL, _LONGEST_LABELS, _LONGEST_TEXT = 100_000, 1_000_000, 20_000_000
_LONGEST_NOTE, _LONGEST_NAME = 20_000, 5_000
_MOST_NOTES = 10_000
_LONGEST_LAYER, _MOST_PARTS = 200, 16
# An id is an index into a vocabulary, or in our own attention 32 bits of a hash; -1 stands for the token that nobody
# knows yet, written so.
_IDS, _UNKNOWN_ID, _UNKNOWN_LABEL = range(2**32), -1, "…"
# Tokenizers' own words, in files of version 1.0.0, may skip numbers: of blanks that make no piece.
_WORDS_PER_TOKEN, _MORE_WORDS = 16, 1_000
_SENTENCES = {None, 0, 1}
_SECONDS = 1e7
# Half a character, and no byte of a broken one (PEP 383) either.
_HALF = re.compile("[\ud800-\udc7f\udd00-\udfff]")
# Whose queries aren't the keys.
_CROSS = "cross"


def check_facts(
    queries: Mapping[str, Tokens], keys: Mapping[str, Tokens], provenance: Provenance, fidelity: Fidelity
) -> None:
    """Refuse facts that are impossible or too long for a page."""
    for stream in queries:
        for axis, tokens in (("queries", queries[stream]), ("keys", keys[stream])):
            _check_tokens(f"the {stream}'s {axis}", tokens)
        same = len(queries[stream]) != len(keys[stream]) or queries[stream].labels == keys[stream].labels
        if stream != _CROSS and not same:
            raise TraceError(
                f"the {stream}'s keys must have its queries' labels, as in self-attention; for other tokens, use "
                "the stream “cross”"
            )
    _check_provenance(provenance, max(map(len, (*queries.values(), *keys.values())), default=0))
    _check_chat(provenance, len(queries[text_stream(list(queries))]) if queries else 0)
    _check_text("the comparison's reference", fidelity.reference, _LONGEST_NOTE)
    if fidelity.rows is not None and not 0 <= fidelity.rows < _IDS.stop:
        raise TraceError(f"the number of compared rows must be from 0 to 2³² − 1; got {fidelity.rows}")
    if not 0 <= fidelity.bound <= (most := max(BOUNDS.values())):
        raise TraceError(f"its error bound must be from 0 to {most:g}; got {fidelity.bound:g}")


def check_layer_count(streams: Iterable[Sized]) -> None:
    """Refuse more layers than any model has."""
    if (count := sum(map(len, streams))) > MOST_LAYERS:
        raise TraceError(f"it has {count:,} layers; a file holds at most {MOST_LAYERS:,}")


def check_layer_names(label: str, parts: Iterable[str]) -> None:
    """Refuse invalid layer labels or bias part names."""
    parts = list(parts)
    if len(parts) > _MOST_PARTS:
        raise TraceError(f"a layer has a bias of {len(parts):,} parts; a file holds at most {_MOST_PARTS}")
    for what, name in (("a layer's label", label), *(("a bias part's name", part) for part in parts)):
        _check_text(what, name, _LONGEST_LAYER)


def check_heads(heads: Iterable[int]) -> None:
    """Refuse more heads than any model has."""
    if (count := sum(heads)) > MOST_HEADS:
        raise TraceError(f"its layers have {count:,} heads in all; a file holds at most {MOST_HEADS:,}")


def check_mixers(mixers: Iterable[TokenMixer]) -> None:
    """Refuse mixers that can't be computed, and more heads or channels than any model has."""
    counts = {"head": 0, "channel": 0}
    for mixer in mixers:
        _check_mixer(mixer)
        counts[mixer.per] += mixer.shape[0]
    check_heads([counts["head"]])
    if counts["channel"] > MOST_CHANNELS:
        raise TraceError(f"its layers have {counts['channel']:,} channels; a file holds at most {MOST_CHANNELS:,}")


def _check_mixer(mixer: TokenMixer) -> None:
    if mixer.kind not in KINDS or mixer.per not in ("head", "channel"):
        known = f"choose {', '.join(KINDS)}, per head or channel"
        raise TraceError(f"a layer mixes by {mixer.kind!r:.40} per {mixer.per!r:.40}; {known}")
    if mixer.at is not None or len(mixer.shape) != 3:
        raise TraceError(f"a {mixer.kind} layer needs all rows as (head, query, key); got {mixer.shape}")
    tensors = {term: value for term in terms_of(TokenMixer) if isinstance(value := getattr(mixer, term.name), Tensor)}
    for term, tensor in tensors.items():
        # Weights alone have no values.
        without = term.name == "value" and mixer.factor is not None and mixer.factor.shape[:-2] == mixer.shape[:1]
        shape = tensor.shape[:-1] if without else tensor.shape
        if not all(shape) or tensor.ndim > 3 or (term.name == "skip" and (tensor.shape != mixer.shape[:1])):
            raise TraceError(f"{term.name} of a {mixer.kind} layer has an impossible shape, {tuple(tensor.shape)}")
    kinds = {str(widened(one).dtype) for term, one in tensors.items() if not term.axes.boolean}
    if len(kinds) > 1 or (mixer.skip is not None and mixer.skip.dtype not in FLOATING):
        raise TraceError(f"the tensors of a {mixer.kind} layer need one kind of number; got {', '.join(sorted(kinds))}")
    numbers = {"scale": mixer.scale, "exponent": mixer.exponent or 1.0, "epsilon": mixer.epsilon}
    odd = [f"{name} {number}" for name, number in numbers.items() if not math.isfinite(number)]
    if odd or mixer.epsilon < 0 or (mixer.exponent is not None and mixer.exponent <= 0):
        raise TraceError(f"a {mixer.kind} layer needs finite numbers, an exponent above 0 and an epsilon from 0")


def check_output_rows(rows: int, width: int, queries: Mapping[str, Tokens], provenance: Provenance) -> None:
    """Refuse an output whose row count doesn't fit its tokens.

    A text's has one row per token, or one. Image and audio towers pool positions, and merged words keep one row per
    piece: their count is unknown.
    """
    if not rows:
        raise TraceError(f"the output needs at least one row; got {rows} × {width}")
    placed = any(tokens.placed or any(tokens.slots) for tokens in queries.values())
    known = not placed and not {"picture", "sound"} & set(queries)
    counts = {1, *map(len, queries.values())}
    if known and MERGED not in provenance.edits and rows not in counts:
        allowed = " or ".join(map(str, sorted(counts)))
        raise TraceError(f"the output needs one row per token ({allowed}), or one in all; got {rows:,}")


def _check_tokens(where: str, tokens: Tokens) -> None:
    for label in tokens.labels:
        _check_text(f"a label of {where}", label, _LONGEST_LABEL)
    if (letters := sum(map(len, tokens.labels))) > _LONGEST_LABELS:
        raise TraceError(f"{where} have labels of {letters:,} characters; a file holds at most {_LONGEST_LABELS:,}")
    ids = enumerate(tokens.ids or ())
    wrong = next((one for at, one in ids if one not in _IDS and not _is_unknown(tokens, at)), None)
    if wrong is not None:
        raise TraceError(f"a token of {where} has the id {wrong}; ids go from 0 to 2³² − 1")
    if odd := set(tokens.sentence) - _SENTENCES:
        raise TraceError(f"a token of {where} has the sentence {min(odd, key=str)!r}; use 0, 1 or None")
    if any(abs(second) > _SECONDS for second in tokens.frames.values()):
        raise TraceError(f"a frame of {where} begins more than {_SECONDS:,.0f} seconds from the audio's start")
    _check_words(where, tokens)


def _is_unknown(tokens: Tokens, at: int) -> bool:
    """Return whether this stands for the next token of a model without a head."""
    return at == len(tokens) - 1 and tokens.labels[at] == _UNKNOWN_LABEL and tokens.numbers[at] == _UNKNOWN_ID


def _check_words(where: str, tokens: Tokens) -> None:
    """Check words count from 0; version 1.0.0 restarts per sentence."""
    most = _WORDS_PER_TOKEN * len(tokens) + _MORE_WORDS
    known = [(one, word) for one, word in zip(tokens.sentence, tokens.words, strict=True) if word is not None]
    far = next((word for _, word in known if not 0 <= word < most), None)
    if far is not None:
        raise TraceError(f"a token of {where} has the word {far}; {len(tokens)} tokens have words 0 to {most - 1}")
    for (before, first), (sentence, second) in pairwise(known):
        if second < first and sentence == before and second:
            raise TraceError(f"in {where}, word {second} follows word {first}; words must count up")


def _check_provenance(origin: Provenance, tokens: int) -> None:
    if not 0 <= origin.generated <= max(tokens, _IDS.stop * (MERGED in origin.edits)):
        raise TraceError(f"the model can't have generated {origin.generated} of {tokens} tokens")
    if (counted := sum(one.tokens for one in origin.decoding)) != origin.generated:
        raise TraceError(f"it says how {counted} tokens were chosen, but {origin.generated} were generated")
    for name in ("model", "dtype", "reading", "route", "output", "stored", "revision", "sha256"):
        _check_text(f"the run's {name}", getattr(origin, name) or "", _LONGEST_NAME)
    for name in (*MEDIA, InputKind.VIDEO):
        _check_text(f"the description of the {name}", getattr(origin, name) or "", _LONGEST_NOTE)
    for name in ("text", "second_text", "target"):
        _check_text(f"the {name.replace('_', ' ')}", getattr(origin, name) or "", _LONGEST_TEXT)
    versions = (*origin.versions.keys(), *origin.versions.values())
    for what, notes in (("notes", origin.notes), ("edits", origin.edits), ("added masks", origin.added)):
        _check_notes(what, notes)
    _check_notes("versions", versions)


def _check_chat(origin: Provenance, tokens: int) -> None:
    """Refuse segments that overlap or end after the text, and messages beyond any chat's."""
    _ = check_segments(origin.segments, tokens)
    if len(origin.messages) > MOST_SEGMENTS:
        raise TraceError(f"it has {len(origin.messages):,} messages; a file holds at most {MOST_SEGMENTS:,}")
    for role, content in origin.messages:
        _check_text("a message's role", role, _LONGEST_LAYER)
        _check_text("a message", content, _LONGEST_TEXT)
    if origin.answer is None:
        return
    role, start = origin.answer
    if role not in ("assistant", "thinking") or not 0 <= start <= tokens:
        raise TraceError(f"its answer begins as {role!r:.40} at {start}; use assistant or thinking, from 0 to {tokens}")


def _check_notes(what: str, notes: Sequence[str]) -> None:
    if len(notes) > _MOST_NOTES:
        raise TraceError(f"it has {len(notes):,} {what}; a file holds at most {_MOST_NOTES:,}")
    for note in notes:
        _check_text(f"one of the {what}", note, _LONGEST_NOTE)


def _check_text(what: str, text: str, most: int) -> None:
    if len(text) > most:
        raise TraceError(f"{what} has {len(text):,} characters; a file holds at most {most:,}: {text[:40]!r} …")
    if half := _HALF.search(text):
        raise TraceError(f"{what} has {half[0]!r}, half a character; leave it out")
