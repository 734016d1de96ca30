"""The Compare page's URL choices."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any

from attention_viz.analysis.comparison.align import ALIGNMENTS, Alignment
from attention_viz.analysis.metrics import METRICS, metrics_for
from attention_viz.models import SNAPSHOTS
from attention_viz.models.loading.snapshots import snapshot_name
from attention_viz.serving import permissions as allowed
from attention_viz.serving.models import facts_of
from attention_viz.serving.runs import Run
from attention_viz.serving.uploads import names_of
from attention_viz.sources import CATALOGUE, of_text
from attention_viz.trace.kind import InputKind, Unit
from attention_viz.ui.address import State, own_contrast, own_example
from attention_viz.ui.address.codec import Older, parameter
from attention_viz.ui.address.kinds import AnyText, OneOf, WholeNumber, sample
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.selection import Group

# Splits "Mary's" and "didn't", so that a swapped name leaves its ending behind.
_WORD = re.compile(r"[^\W_]+")
# English function words: swapping them would break the sentence.
_HOLD_TOGETHER = frozenset(
    "a about after all also am an and any are as at be because been before but by can could did do does for from had "
    "has have he her here him his how i if in into is it its may me might more most must my no nor not of off on once "
    "one only or our out over she should so some such than that the their them then there these they this those to too "
    "under until up us was we were what when where which while who whom why will with would yet you your "
    "s t d m ll re ve don doesn didn isn aren wasn weren hasn haven hadn won wouldn couldn shouldn mustn".split()
)
_ARTICLES = frozenset(("a", "an", "her", "his", "its", "my", "our", "the", "their", "your"))
# Words tried in pairs; a text may repeat one word a thousand times.
_TRIED = 50
# Kinds of comparison, by name in the URL.
KINDS = {
    "sentences": "two sentences",
    "models": "two models",
    "heads": "two heads",
    "edit": "before and after",
    "snapshots": "two checkpoints",
}

# Ways to pair the two texts' tokens, by name in the URL.
PAIRED = {"position": "aligned words", "token": "same words only"}

# The model with shipped checkpoints, on a text and with a head that show its training.
TRAINED = State(model="induction", text=CATALOGUE["induction"].examples[0], layer=1, head=1)
STEPS = tuple(SNAPSHOTS[TRAINED.model])

# The default second model, layer and head: those that differ most clearly on the first model's example. A
# decoder's "bank" can't look ahead at "river"; "went" looks at "When" in SmolLM2, and at the other "when" in MiniLM.
_BESIDE = {"all-MiniLM-L6-v2": ("SmolLM2-135M-Instruct", 11, 3), "SmolLM2-135M-Instruct": ("all-MiniLM-L6-v2", 1, 6)}

# The metrics that are shares of weight, so that their curve has the same scale as accuracy.
CURVES = tuple(name for name in metrics_for(Unit.WORD) if METRICS[name].unit == "weight")
# The second model's parameters.
SECOND = ("other_model", "other_layer", "other_head")


def contrast(state: State) -> str:
    """Return the default second sentence."""
    return own_contrast(state.model) if state.text == own_example(state.model) else exchanged(state.text)


def exchanged(text: str) -> str:
    """Swap two words, best names, nouns or content words; unchanged if none differ."""
    words = list(_WORD.finditer(text))
    telling = [word for word in words if word[0].lower() not in _HOLD_TOGETHER]
    names = [word for word in telling if word[0][0].isupper() and not _begins(text, word.start())]
    named = [word for before, word in pairwise(words) if before[0].lower() in _ARTICLES and word in telling]
    # Swapped neighbours look like a removal and an insertion, so they would have no counterparts.
    following = {(one.start(), other.start()) for one, other in pairwise(words)}
    for found, apart in ((names, True), (named, True), (telling, True), (telling, False), (words, False)):
        for one, other in combinations(found[:_TRIED], 2):
            follow = (one.start(), other.start()) in following
            if one[0].lower() != other[0].lower() and not (apart and follow):
                return f"{text[: one.start()]}{other[0]}{text[one.end() : other.start()]}{one[0]}{text[other.end() :]}"
    return text


def _begins(text: str, place: int) -> bool:
    """Return whether a sentence begins there, so any word has a capital."""
    before = text[:place].rstrip()
    return not before or before[-1] in ".!?:…"


def _is(*kinds: str) -> Callable[["CompareChoice", object], bool]:
    return lambda choice, _: choice.what in kinds


def _two_pictures(choice: "CompareChoice", state: object) -> bool:
    return choice.what == "sentences" and isinstance(state, State) and state.facts.reads.medium == InputKind.PICTURE


def _two_texts(choice: "CompareChoice", state: object) -> bool:
    return choice.what == "sentences" and not _two_pictures(choice, state)


def _curves(choice: "CompareChoice", state: State) -> Sequence[str]:
    return CURVES


def _layers(choice: "CompareChoice", state: State) -> Sequence[int]:
    return numbers(choice, state, opening.opened())[0]


def _heads(choice: "CompareChoice", state: State) -> Sequence[int]:
    return numbers(choice, state, opening.opened())[1]


@dataclass(frozen=True)
class CompareChoice:
    """The Compare page's URL choices."""

    what: str = parameter("sentences", OneOf(tuple(KINDS)), "what is compared")
    other: str = parameter(own_contrast(State.model), AnyText(), "the second sentence", applies=_two_texts)
    other_picture: str = parameter("astronaut", sample(InputKind.PICTURE), "the second image", applies=_two_pictures)
    other_model: str = parameter(
        "scratch", OneOf(lambda _, state: models(state)), "the second model", applies=_is("models")
    )
    align: Alignment = parameter(
        "position", OneOf(ALIGNMENTS), "how the two texts' tokens are paired", applies=_is("sentences", "models")
    )
    other_layer: int = parameter(0, WholeNumber(_layers), "the second head's layer", applies=_is("models", "heads"))
    other_head: int = parameter(10, WholeNumber(_heads), "the second head", applies=_is("models", "heads"))
    moment: int = parameter(
        400, OneOf(STEPS), "the first side's checkpoint", applies=_is("snapshots"), older=Older("step")
    )
    other_moment: int = parameter(
        STEPS[-1], OneOf(STEPS), "the second side's checkpoint", applies=_is("snapshots"), older=Older("other_step")
    )
    metric: str = parameter("induction", OneOf(_curves), "the metric shown", applies=_is("snapshots"))


def _follow(choice: CompareChoice, before: State, after: State) -> Mapping[str, Any]:
    """Derive the unchosen second sentence and model from the first."""
    found = dict[str, Any]()
    if (before.model, before.text) != (after.model, after.text) and choice.other == contrast(before):
        found["other"] = contrast(after)
    if before.model != after.model and choice.other_picture == other_sample(before):
        found["other_picture"] = other_sample(after)
    second = {name: getattr(choice, name) for name in SECOND}
    if choice.what == "models" and before.model != after.model and second == beside(before):
        found |= beside(after)
    return found


def other_sample(state: State) -> str:
    """Return the model's second sample image."""
    entry = CATALOGUE.get(state.model)
    samples = entry.samples if entry is not None and entry.reads.medium == InputKind.PICTURE else ()
    return samples[1] if len(samples) > 1 else CompareChoice.other_picture


COMPARE_CHOICES = Group(CompareChoice(), "compare-", follow=_follow)


def sides(choice: CompareChoice, state: State) -> tuple[State, State]:
    """Return both sides' runs without edits: edits run in the second; each has one image, the first of several."""
    if state.facts.reads.medium == InputKind.PICTURE:
        state = replace(state, picture=names_of(state.picture)[0])
    second = {
        "sentences": lambda: _other_input(choice, state),
        "models": lambda: replace(_of_second_model(choice, state), layer=choice.other_layer, head=choice.other_head),
        "heads": lambda: replace(state, layer=choice.other_layer, head=choice.other_head),
        "edit": lambda: state,
        "snapshots": lambda: replace(state, model=snapshot_name(TRAINED.model, choice.other_moment)),
    }
    first = state
    if choice.what == "snapshots":
        first = replace(state, model=snapshot_name(TRAINED.model, choice.moment))
    return first, second[choice.what]()


def _other_input(choice: CompareChoice, state: State) -> State:
    if state.facts.reads.medium == InputKind.PICTURE:
        return replace(state, picture=choice.other_picture)
    return replace(state, text=choice.other, target="").within()


def kinds(choice: CompareChoice, state: State, opened: Run | None = None) -> list[str]:
    """Return the possible comparisons, and the chosen one."""
    missing = {
        "edit": opened is not None,  # a file's run can't change
        "models": state.facts.reads.medium == InputKind.PICTURE,  # only one model reads images
        "snapshots": opened is not None or state.model != TRAINED.model,
        "heads": opened is None and len(state.layers) == 1 and state.head_count == 1,
    }
    return [what for what in KINDS if what == choice.what or not missing.get(what)]


def beside(state: State) -> dict[str, Any]:
    """Return the default second model, layer and head, if any."""
    other, layer, head = _BESIDE.get(state.model, ("", 0, 0))
    if other not in CATALOGUE or CATALOGUE[other].installed is None:
        return {}
    return {"other_model": other, "other_layer": layer, "other_head": head}


def models(state: State) -> Sequence[str]:
    """Return possible second models."""
    return tuple(dict.fromkeys((*of_text(), *allowed.folders(), state.model)))


def numbers(choice: CompareChoice, state: State, opened: Run | None = None) -> tuple[Sequence[int], range]:
    """Return the second side's layers, and the chosen layer's heads."""
    if opened is not None and choice.what != "models":
        stream = opened.stream(state.stream)
        layer, _ = opened.place(stream, choice.other_layer, 0)
        return opened.trace.layer_numbers(stream), range(opened.trace.head_count(layer, stream))
    second = _of_second_model(choice, state) if choice.what == "models" else state
    return second.layers, range(replace(second, layer=choice.other_layer).head_count)


def _of_second_model(choice: CompareChoice, state: State) -> State:
    """Use the second model's first stream if the chosen one is missing."""
    facts = facts_of(choice.other_model)
    stream = state.stream if state.stream in (*facts.heads, *facts.mixers) else None
    return replace(state, model=choice.other_model, stream=stream)
