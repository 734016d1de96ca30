"""Findings as sentences with roles for query and key."""

from collections.abc import Iterator
from string import Formatter

from torch import Tensor

from attention_viz.analysis.findings.finding import Candidate, Finding
from attention_viz.analysis.findings.hearing import HEARD, THIRDS
from attention_viz.analysis.findings.pairs import NEXT_WORD
from attention_viz.analysis.findings.regions import region_of
from attention_viz.analysis.findings.scene import StreamScene
from attention_viz.analysis.findings.segments import TARGETS
from attention_viz.analysis.findings.word_regions import WORD_REGION, word_region
from attention_viz.analysis.places import beside_words, patch_words
from attention_viz.analysis.readings import READINGS
from attention_viz.analysis.signed import has_channels, mixer_of
from attention_viz.analysis.words import Words, quoted
from attention_viz.trace.kind import Unit
from attention_viz.trace.provenance import MERGED
from attention_viz.trace.spelling import weight_text

# A field is a part of the sentence, named after its role; its text follows a colon unless it is a word of the input.
_SENTENCES = {
    "link": "{query} looks at {key}: {number}",
    "pronoun": "{query} looks back at {key}: {number}",
    "repeat": "{query} looks back at {key}: {number}",
    "next word": "{query:the last {unit}} looks at {key}: {number}",
    "alignment": "before {query} it attends to {key}: {number}",
    "heard": "before {query} it attends to {key:the word’s {third} third}: {number}",
    "previous": "{query:each {unit}} looks at {key:the one before it}: {number} on average",
    "above": "{query:each {unit}} looks at {key:the one above it}: {number} on average",
    "regions": "{query} looks at {key:{count} regions}: {number}",
    "region": "{query} looks at {key:one region {where}} in {heads} of {of} heads: {number}",
    "region of a word": "{query} attends to {key:one region {where}}: {number}, {times} times its area",
    "same token": "{query:repeated {repeated}} look back at {key:their earlier occurrences}: {number} on average",
    "induction": "{query:repeated {repeated}} look at {key:the {one} that followed last time}: {number} on average",
    "segments": "{query:the answer} draws on {key:{target}}: {number} on average",
    "carried": "{key} is carried to {query}: {number} of the row's size",
    "erased": "{query} erases {number} of the value of {key}",
}
# Sentences for patches and frames that differ from those for words.
_FEW_PATCHES = "{query} attends to {key:{patches} {where}}: {number}"
_OTHERWISE = {
    ("previous", Unit.PATCH): "{query:each {unit}} looks at {key:the one to its left}: {number} on average",
    ("alignment", Unit.FRAME): "{query} is transcribed while hearing {key}: weight {number}",
}
_NEXT = "before predicting {next}, {query:the last {unit}} looks at {key}: {number}"
# Without a model behind the trace: a head that looks at a word may well write against it.
_SAID = "{query:the last {unit}} looks at {key}, also {next:the likeliest next word} (looking isn't writing): {number}"
_WRITES = "{query} looks at {key} ({number}) and writes {side} "
# Of a layer with a matrix per channel, what arrives in all of them has no sign.
_ARRIVED = "{key} is carried to {query}: {number} of all that arrives"
_TAKEN = "{key} is taken away from {query}: {number} of the row's size"
# Fields besides query, key and number.
_PLAIN = ("before", "heads", "of", "layer", "area", "side", "times")
_COUNTS = {2: "two", 3: "three"}
# So few patches are counted: how often their area says little.
_PATCHES = {1: "one patch", 2: "two patches"}
_ONE_INDUCTION = "{query} looks at {key}, which followed {before}: {number}"


def tell(scene: StreamScene, one: Candidate) -> Finding:
    """Turn a candidate into a finding."""
    parts = [part for part in _parts(scene, one) if part[0]]
    parts[0] = (f"{parts[0][0][:1].upper()}{parts[0][0][1:]}", parts[0][1])
    place = (one.stream, one.layer, one.head, *_positions(scene, one))
    effect, word, rival = one.effect or (None, "", "")
    return Finding(one.kind, *place, one.strength, _joined(parts), effect, word, rival)


def _positions(scene: StreamScene, one: Candidate) -> tuple[int, int]:
    if one.seen is not None:
        return one.seen
    queries, keys = scene.queries.pieces[one.query], scene.keys.pieces[one.key]
    if len(queries) == len(keys) == 1:
        return queries[0], keys[0]
    row, column = divmod(int(_tile(scene, one).nan_to_num(0).abs().argmax()), len(keys))
    return queries[row], keys[column]


def _tile(scene: StreamScene, one: Candidate) -> Tensor:
    """Return the weights between two words' tokens; of a layer with a matrix per channel, what arrives in all."""
    queries, keys = scene.queries.pieces[one.query], scene.keys.pieces[one.key]
    if has_channels(scene.trace, one.stream, one.layer):
        return mixer_of(scene.trace, one.stream, one.layer).rows(queries).layer_contributions[:, list(keys)]
    return scene.trace.attention(one.layer, one.stream).tile(one.head, queries, keys)


def _parts(scene: StreamScene, one: Candidate) -> Iterator[tuple[str, str]]:
    if (reading := scene.trace.provenance.reading) != "raw":
        yield f"by {READINGS[reading].label.casefold() if reading in READINGS else reading}, ", ""
    following = None
    if one.kind == NEXT_WORD:
        following = _likeliest_next(scene) if one.effect is None else one.effect.word
    said = {"unit": _unit(scene, one), "before": scene.queries.named(one.key - 1) if one.kind == "induction" else ""}
    said["target"] = TARGETS.get(one.target, "")
    said["third"] = THIRDS[one.words] if one.kind == HEARD else ""
    said |= dict(zip(("one", "repeated"), _repeated(scene, one), strict=True))
    said |= {"count": _COUNTS.get(one.words, str(one.words)), **_of_region(scene, one), **_of_effect(one)}
    for literal, role, spelled, _ in Formatter().parse(_template(scene, one, following)):
        yield literal, ""
        if role in ("number", "effect"):
            yield (weight_text(one.strength) if role == "number" else said[role]), role
        elif role in _PLAIN:
            yield said[role], ""
        elif role is not None and spelled:
            yield spelled.format(**said), role
        elif role == "next":
            yield quoted(following or ""), role
        elif role is not None:
            yield from _named(scene, one, role)


def _named(scene: StreamScene, one: Candidate, role: str) -> Iterator[tuple[str, str]]:
    words, word = (scene.queries, one.query) if role == "query" else (scene.keys, one.key)
    named = words.named(word)
    where, looking = _where(scene.queries, one.query), _where(scene.keys, one.key)
    if where and looking and one.kind == "link":
        named = f"a patch {where}" if role == "query" else f"one {_beside(scene, one) if where == looking else looking}"
    elif role == "query" and words.tokens.patches and one.kind != WORD_REGION:
        named = f"a patch {where}" if where else "the class token" if "[CLS]" in named else named
    yield named, role


def _where(words: Words, word: int) -> str:
    """Say where a patch is; nothing for other tokens."""
    return patch_words(words.tokens, words.pieces[word][0])


def _beside(scene: StreamScene, one: Candidate) -> str:
    queries, keys = scene.queries, scene.keys
    (query, *_), (key, *_) = queries.pieces[one.query], keys.pieces[one.key]
    return beside_words(keys.tokens.patches[key], queries.tokens.patches[query])


def _of_effect(one: Candidate) -> dict[str, str]:
    if one.effect is None:
        return {}
    side = "against" if one.effect.number < 0 else "for"
    return {"side": side, "effect": f"{one.effect.number:+.2f}".replace("-", "\u2212")}


def _of_region(scene: StreamScene, one: Candidate) -> dict[str, str]:
    if one.kind == WORD_REGION:
        beside = word_region(scene, one.layer, one.head, one.query)
        assert beside is not None
        where = _where(scene.keys, one.key)
        return {"times": f"{beside.times:.0f}", "patches": _PATCHES.get(one.words, ""), "where": where}
    if one.kind != "region":
        return {}
    found = region_of(scene, one.layer, scene.queries.pieces[one.query][0])
    assert found is not None
    return {"heads": str(len(found.heads)), "of": str(found.of), "where": _where(scene.keys, one.key)}


def _template(scene: StreamScene, one: Candidate, following: str | None) -> str:
    if one.kind == "induction" and one.words == 1:
        return _ONE_INDUCTION
    if one.kind == WORD_REGION and one.words in _PATCHES:
        return _FEW_PATCHES
    if following is not None:
        own = scene.keys.texts[one.key].casefold() == following.casefold()
        if one.effect is not None:
            return _WRITES + ("it: {effect}" if own else "{next}: {effect}")
        return _SAID if own else _NEXT
    if one.kind == "carried":
        if has_channels(scene.trace, one.stream, one.layer):
            return _ARRIVED
        return _TAKEN if float(_tile(scene, one).sum()) < 0 else _SENTENCES[one.kind]
    unit = (scene.queries if scene.alike else scene.keys).units[one.key]
    return _OTHERWISE.get((one.kind, unit), _SENTENCES[one.kind])


def _joined(parts: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    found = list[tuple[str, str]]()
    for text, role in parts:
        if found and role == "" == found[-1][1]:
            found[-1] = (found[-1][0] + text, role)
        else:
            found.append((text, role))
    return tuple(found)


def _unit(scene: StreamScene, one: Candidate) -> str:
    if one.kind == NEXT_WORD:
        return "token" if scene.queries.kinds[one.query] in ("sign", "special") else "word"
    if (unit := scene.queries.tokens.unit) is not Unit.WORD:
        return unit
    return unit if len(scene.queries.pieces) == len(scene.queries.tokens) else unit.token


def _repeated(scene: StreamScene, one: Candidate) -> tuple[str, str]:
    """Return the noun of a repeated token, one and many; bytes of a character are pieces."""
    text = "" if one.seen is None else scene.queries.tokens.texts[one.seen[0]]
    return ("piece", "pieces") if any("\udc80" <= sign <= "\udcff" for sign in text) else ("word", "words")


def _likeliest_next(scene: StreamScene) -> str | None:
    """Without leading space; None unless the output is logits, the text has the id, and it is whole."""
    trace, tokens = scene.trace, scene.queries.tokens
    call = trace.attention(trace.layer_numbers(scene.stream)[0], scene.stream)
    width = trace.output_shape[1]
    # A hidden state is as wide as the heads together, as a rule, and no vocabulary ends below the ids of a text.
    if tokens.ids is None:
        return None
    logits = width > max(tokens.ids) and width != call.shape[0] * call.value.shape[-1]
    if scene.last is None or not logits or trace.output_shape[0] != len(tokens) or MERGED in trace.provenance.edits:
        return None
    best = int(trace.output_at(scene.queries.pieces[scene.last][-1]).argmax())
    place = tokens.ids.index(best) if best in tokens.ids else None
    if place is None or tokens.special[place] or not tokens.texts[place].isprintable():
        return None
    return tokens.texts[place]
