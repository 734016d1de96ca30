"""Check a trace file's facts on writing and reading, by common rules."""

import re
from collections.abc import Iterable, Mapping, Sequence, Sized
from itertools import pairwise

from attention_viz.errors import TraceError
from attention_viz.operation.kernel import BOUNDS
from attention_viz.trace.kind import MEDIA
from attention_viz.trace.provenance import MERGED, Fidelity, Provenance
from attention_viz.trace.tokens import Tokens

# In all streams together. The deepest models of today have 126 layers; those that run one again and again, 300.
MOST_LAYERS, MOST_HEADS = 512, 65_536
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
# Whose queries are the keys.
_SELF = ("picture", "sound", "encoder", "decoder")


def check_facts(
    queries: Mapping[str, Tokens], keys: Mapping[str, Tokens], provenance: Provenance, fidelity: Fidelity
) -> None:
    """Refuse facts that are impossible or too long for a page."""
    for stream in queries:
        for axis, tokens in (("queries", queries[stream]), ("keys", keys[stream])):
            _check_tokens(f"the {stream}'s {axis}", tokens)
        same = len(queries[stream]) != len(keys[stream]) or queries[stream].labels == keys[stream].labels
        if stream in _SELF and not same:
            raise TraceError(
                f"the {stream}'s keys have other labels than its queries, and self-attention has the same tokens on "
                "both; the stream of other tokens is “cross”"
            )
    _check_provenance(provenance, max(map(len, (*queries.values(), *keys.values())), default=0))
    _check_text("what the run was compared with", fidelity.reference, _LONGEST_NOTE)
    if fidelity.rows is not None and not 0 <= fidelity.rows < _IDS.stop:
        raise TraceError(f"{fidelity.rows} rows are said to be compared; needed: a number from 0 to 2³² − 1")
    if not 0 <= fidelity.bound <= (most := max(BOUNDS.values())):
        raise TraceError(f"its errors may reach {fidelity.bound:g}; needed: a bound from 0 to {most:g}")


def check_layer_count(streams: Iterable[Sized]) -> None:
    """Refuse more layers than any model has."""
    if (count := sum(map(len, streams))) > MOST_LAYERS:
        raise TraceError(f"it has {count:,} layers, and a file holds {MOST_LAYERS:,} at most")


def check_layer_names(label: str, parts: Iterable[str]) -> None:
    """Refuse invalid layer labels or bias part names."""
    parts = list(parts)
    if len(parts) > _MOST_PARTS:
        raise TraceError(f"a layer has a bias of {len(parts):,} parts, and a file holds {_MOST_PARTS} at most")
    for what, name in (("the label of a layer", label), *(("the name of a bias's part", part) for part in parts)):
        _check_text(what, name, _LONGEST_LAYER)


def check_heads(heads: Iterable[int]) -> None:
    """Refuse more heads than any model has."""
    if (count := sum(heads)) > MOST_HEADS:
        raise TraceError(f"its layers have {count:,} heads in all, and a file holds {MOST_HEADS:,} at most")


def check_output_rows(rows: int, width: int, queries: Mapping[str, Tokens], provenance: Provenance) -> None:
    """Refuse an output whose row count doesn't fit its tokens.

    A text's has one row per token, or one. Image and audio towers pool positions, and merged words keep one row per
    piece: their count is unknown.
    """
    if not rows:
        raise TraceError(f"the output is {rows} × {width}; needed: at least one row")
    known = not any(tokens.placed for tokens in queries.values()) and not {"picture", "sound"} & set(queries)
    counts = {1, *map(len, queries.values())}
    if known and MERGED not in provenance.edits and rows not in counts:
        allowed = " or ".join(map(str, sorted(counts)))
        raise TraceError(f"the output has {rows:,} rows for {allowed} tokens; needed: one per token, or one in all")


def _check_tokens(where: str, tokens: Tokens) -> None:
    for label in tokens.labels:
        _check_text(f"a label of {where}", label, _LONGEST_LABEL)
    if (letters := sum(map(len, tokens.labels))) > _LONGEST_LABELS:
        raise TraceError(f"{where} have labels of {letters:,} characters; a file holds {_LONGEST_LABELS:,} at most")
    ids = enumerate(tokens.ids or ())
    wrong = next((one for at, one in ids if one not in _IDS and not _is_unknown(tokens, at)), None)
    if wrong is not None:
        raise TraceError(f"a token of {where} has the id {wrong}; needed: a number from 0 to 2³² − 1")
    if odd := set(tokens.sentence) - _SENTENCES:
        raise TraceError(f"a token of {where} is of sentence {min(odd, key=str)!r}; needed: 0, 1 or none")
    if any(abs(second) > _SECONDS for second in tokens.frames.values()):
        raise TraceError(f"a frame of {where} begins more than {_SECONDS:,.0f} seconds from the sound's beginning")
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
        raise TraceError(f"a token of {where} belongs to word {far}; {len(tokens)} tokens have words 0 to {most - 1}")
    for (before, first), (sentence, second) in pairwise(known):
        if second < first and sentence == before and second:
            raise TraceError(f"in {where} word {second} comes after word {first}; words are counted in their order")


def _check_provenance(origin: Provenance, tokens: int) -> None:
    if not 0 <= origin.generated <= max(tokens, _IDS.stop * (MERGED in origin.edits)):
        raise TraceError(f"the model is said to have generated {origin.generated} of {tokens} tokens")
    for name in ("model", "dtype", "reading", "route", "output", "stored", "revision", "sha256"):
        _check_text(f"the {name} of the run", getattr(origin, name) or "", _LONGEST_NAME)
    for name in MEDIA:
        _check_text(f"what is said of the {name}", getattr(origin, name) or "", _LONGEST_NOTE)
    for name in ("text", "second_text", "target"):
        _check_text(f"the {name.replace('_', ' ')}", getattr(origin, name) or "", _LONGEST_TEXT)
    versions = (*origin.versions.keys(), *origin.versions.values())
    for what, notes in (("notes", origin.notes), ("edits", origin.edits), ("added masks", origin.added)):
        _check_notes(what, notes)
    _check_notes("versions", versions)


def _check_notes(what: str, notes: Sequence[str]) -> None:
    if len(notes) > _MOST_NOTES:
        raise TraceError(f"it has {len(notes):,} {what}, and a file holds {_MOST_NOTES:,} at most")
    for note in notes:
        _check_text(f"one of the {what}", note, _LONGEST_NOTE)


def _check_text(what: str, text: str, most: int) -> None:
    if len(text) > most:
        raise TraceError(f"{what} has {len(text):,} characters, and a file holds {most:,} at most: {text[:40]!r} …")
    if half := _HALF.search(text):
        raise TraceError(f"{what} has {half[0]!r}, half a character, which is no text; leave it out")
