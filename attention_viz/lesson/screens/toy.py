"""Heads of the toy: one writes another's key, and one adds to words' logits."""

from attention_viz.lesson.composed import STEPS, TOY_WORDS, Composed, WrittenBy
from attention_viz.lesson.language import TOY
from attention_viz.lesson.lesson import Ask, CatalogueHead, Control, Lesson, Shown, short
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import in_words, signed, signs, texts, weight_texts
from attention_viz.trace.spelling import weight_text
from attention_viz.views import composition, looks

# The word that the lesson opens on, by its place.
_OPENING = 1
# A word that leads to the key makes up at least this part of the score.
_MOST = 0.5


def _composed(scene: Scene) -> Composed:
    # No word followed the last one the first time.
    at = scene.word if scene.word is not None and scene.word < len(TOY_WORDS) - 1 else _OPENING
    return Composed(scene, at, int(_CONTROL_TOGETHER.value(scene)))


def _ask_together(scene: Scene) -> Ask:
    pair = _composed(scene)
    names, numbers = pair.trace.key_tokens().names, pair.by_word
    layer, head = pair.reader
    best = max(numbers, key=numbers.__getitem__)
    found, score, last = short(names[pair.key]), pair.opened.total, len(TOY_WORDS) - 1
    parts = {"other": short(names[best]), "part": signed(numbers[best], 2), "score": signed(score, 2)}
    return Ask(
        translate(
            "Which word’s part in the key of {found} led {word} there?", found=found, word=short(names[pair.query])
        ),
        translate("{other} led it there: {part} of a score of {score}", **parts)
        if numbers[best] > _MOST * score > 0
        else translate("No word led it there: a score of {score}", **parts),
        translate(
            "the toy {model}, {step} steps, layer {layer}, head {head}: the score by word; {rest} comes from no word",
            **{"model": TOY, "step": pair.step, "layer": layer, "head": head},
            rest=signed(score - sum(numbers.values()), 2),
        ),
        tuple(in_words(names[at]) for at in numbers),
        tuple(numbers.values()),
        shown=tuple(signed(number, 2) for number in numbers.values()),
        pressed=tuple(str(at - pair.start) if 0 <= at - pair.start < last else "" for at in numbers),
        word=True,
        place=CatalogueHead.of(pair.trace, layer, head),
        premise=translate(
            "When {word} comes again, a head of the second layer looks at {found}.",
            word=short(names[pair.query]),
            found=found,
        ),
    )


def _show_together(scene: Scene) -> Shown:
    pair = _composed(scene)
    names = [in_words(name) for name in pair.trace.key_tokens().names]
    (layer, head), (before_layer, before_head) = pair.reader, pair.writer
    before, weight = pair.looks
    best = max(pair.by_word, key=pair.by_word.__getitem__)
    facts = {
        **texts(step=pair.step, layer=layer, head=head, before_layer=before_layer, before_head=before_head),
        **weight_texts(before=before, weight=weight, without=pair.without_writer),
        **signs(2, score=pair.opened.total, by_word=pair.by_word[best]),
        "text": in_words(pair.text, 80),
        "word": names[pair.query],
        "plain": pair.words[pair.at],
        "found": names[pair.key],
        "source": names[pair.key - 1],
        "best_word": names[best],
    }
    says = translate(
        "After {step} steps layer {before_layer}, head {before_head} takes {before} at “{found}” from “{source}”; "
        "layer {layer}, head {head} takes {weight} from “{found}”.",
        **facts,
    )
    figure = composition(
        pair.trace,
        pair.writer,
        pair.reader,
        pair.query,
        pair.key,
        pair.over_training,
        marked=pair.step,
        theme=scene.theme,
    )
    return Shown(facts, figure, says)


_CONTROL_TOGETHER = Control(
    "Checkpoint", lambda scene: {str(step): str(step) for step in STEPS}, lambda scene: str(STEPS[-1]), ordered=True
)


# The word that the lesson opens on, by its place.
_OPENING_WRITES = 1


def _written(scene: Scene) -> WrittenBy:
    at = scene.word if scene.word is not None and scene.word < len(TOY_WORDS) - 1 else _OPENING_WRITES
    layer, head = map(int, _CONTROL_WRITES.value(scene).split("·"))
    return WrittenBy(scene, at, (layer, head))


def _ask_writes(scene: Scene) -> Ask:
    """Ask which head the next word needs beside the one that raises it most; the others' additions mislead."""
    at = _written(scene).at
    reader, following = WrittenBy(scene, at), TOY_WORDS[at + 1]
    heads = {name: _head(scene, at, name) for name in _heads(scene) if _head(scene, at, name).place != reader.place}
    before = reader.likely[following]
    left = {name: one.likely_without[following] for name, one in heads.items()}
    needed = min(left, key=left.__getitem__)
    layer, head = reader.place
    names = {"layer": layer, "head": head, "word": short(following)}
    return Ask(
        translate("Which other head does {word} need as much?", **names),
        translate(
            "Without head {other}, the probability of {word} falls to {left}",
            other=needed,
            left=weight_text(left[needed]),
            **names,
        ),
        translate(
            "the toy {model}, all heads but layer {layer}, head {head}: loss of probability without each",
            model=TOY,
            **names,
        ),
        tuple(f"{name}: {signed(one.added[following], 2)}" for name, one in heads.items()),
        tuple(max(0.0, before - one) for one in left.values()),
        shown=tuple(translate("{chance} lost", chance=weight_text(max(0.0, before - one))) for one in left.values()),
        pressed=tuple(heads),
        whole=before,
        place=CatalogueHead.of(reader.trace, layer, head),
        premise=translate(
            "After {query} comes {word}. Layer {layer}, head {head} adds {added} to its logit. Without this head, its "
            "probability falls from {likely} to {without}. The other heads (layer·head) add this:",
            query=short(reader.trace.key_tokens().names[reader.query]),
            added=signed(reader.added[following], 2),
            likely=weight_text(before),
            without=weight_text(reader.likely_without[following]),
            **names,
        ),
        reasons=tuple(
            ""
            if name == needed
            else translate(
                "Without head {other}, {word} still has {left}.",
                **{"other": name, "word": short(following), "left": weight_text(one)},
            )
            for name, one in left.items()
        ),
    )


def _head(scene: Scene, at: int, name: str) -> WrittenBy:
    layer, head = map(int, name.split("·"))
    return WrittenBy(scene, at, (layer, head))


def _show_writes(scene: Scene) -> Shown:
    found = _written(scene)
    layer, head = found.place
    names = [in_words(name) for name in found.trace.key_tokens().names]
    seen, weight = names[int(found.row.argmax())], float(found.row.max())
    best = max(found.added, key=found.added.__getitem__)
    worst = min(found.added, key=found.added.__getitem__)
    following, writer = TOY_WORDS[found.at + 1], found.pair.writer
    early = WrittenBy(scene, found.at, writer)
    facts = {
        **texts(layer=layer, head=head, worst=worst, best=best, seen=seen),
        **texts(early_layer=writer[0], early=writer[1], next=following),
        **texts(later_layer=found.pair.reader[0], later=found.pair.reader[1]),
        **weight_texts(weight=weight, likely=found.likely[following], without=found.likely_without[following]),
        **signs(2, added=found.added[best], taken=found.added[worst], small=early.added[following]),
        "left": weight_text(early.likely_without[following]),
        "text": in_words(found.pair.text, 80),
        "word": names[found.query],
    }
    says = translate(
        "At “{word}” layer {layer}, head {head} takes {weight} from “{seen}” and adds {added} to the logit of "
        "“{best}”.",
        **facts,
    )
    return Shown(facts, looks(found.trace, layer, head, found.query, theme=scene.theme), says)


def _heads(scene: Scene) -> dict[str, str]:
    trace = WrittenBy(scene, _OPENING_WRITES).trace
    places = [(layer, head) for layer in trace.layer_numbers() for head in range(trace.head_count(layer))]
    return {f"{layer}·{head}": f"{layer}·{head}" for layer, head in places}


def _reader(scene: Scene) -> str:
    layer, head = WrittenBy(scene, _OPENING_WRITES).place
    return f"{layer}·{head}"


_CONTROL_WRITES = Control("Layer · head", _heads, _reader)

LESSONS = {
    "together": Lesson(
        "Heads work together",
        7,
        _ask_together,
        _show_together,
        _CONTROL_TOGETHER,
        "part",
        deeper=("why", "compare"),
        idea=(
            "This toy model has two layers. It reads a few words twice; a small ₂ marks the second time. In the first "
            "layer, heads add something of earlier words to each word’s vector. The second layer makes the word’s key "
            "from that sum."
        ),
    ),
    "writes": Lesson(
        "What a head writes",
        6,
        _ask_writes,
        _show_writes,
        _CONTROL_WRITES,
        "added",
        deeper=("why", "heads"),
        idea=(
            "At its end, a model gives every word that it knows a number, its logit: the larger, the likelier it "
            "comes next. A head’s output raises some logits and lowers others. But heads of later layers read it, too, "
            "and may need it."
        ),
    ),
}
