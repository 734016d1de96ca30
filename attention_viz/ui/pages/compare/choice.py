"""What is compared with what on the Compare page, read from the address and written back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from attention_viz.models import CATALOGUE, SNAPSHOTS
from attention_viz.serving import permissions as allowed
from attention_viz.serving.facts import nature
from attention_viz.serving.models import snapshot_name
from attention_viz.serving.runs import Drawn
from attention_viz.serving.settings import SETTINGS
from attention_viz.ui.address import State
from attention_viz.ui.parts.notices import notice, whole_number, with_number

__all__ = [
    "CURVES",
    "KINDS",
    "STEPS",
    "TRAINED",
    "CompareChoice",
    "counts",
    "models",
    "read_choice",
    "sides",
    "within",
    "write_choice",
]

# What can be compared, by its name in the address.
KINDS = {
    "sentences": "two sentences",
    "models": "two models",
    "heads": "two heads",
    "edit": "before and after a change",
    "snapshots": "two moments of training",
}

# The model whose moments of training ship, on a text and with a head that show them.
TRAINED = State(model="induction", text=CATALOGUE["induction"].examples[0], layer=1, head=1)
STEPS = tuple(SNAPSHOTS[TRAINED.model])

# The metrics that are shares of weight, so that their curve has one scale with the share of right answers.
CURVES = ("induction", "previous", "duplicate", "first", "self", "next", "special", "confidence")

# The parameters that each kind has a use for.
_OWN = {
    "sentences": ("other",),
    "models": ("other_model", "other_layer", "other_head"),
    "heads": ("other_layer", "other_head"),
    "edit": (),
    "snapshots": ("step", "other_step", "metric"),
}


@dataclass(frozen=True)
class CompareChoice:
    """Everything that decides what the first side is compared with; the first side is what all pages share.

    Attributes:
        what: a name in `KINDS`.
        other: the second sentence.
        other_model: the second model.
        other_layer: of the second head, from 0.
        other_head: the second head, from 0.
        step: the moment of training on the first side.
        other_step: the moment on the second.
        metric: whose curve over the training is drawn, one of `CURVES`.
    """

    what: str = "sentences"
    other: str = "The bank of the city was robbed"
    other_model: str = "scratch"
    other_layer: int = 0
    other_head: int = 10
    step: int = 400
    other_step: int = STEPS[-1]
    metric: str = CURVES[0]


def read_choice(parameters: Mapping[str, str], state: State) -> tuple[CompareChoice, list[str]]:
    """What an address asks for, and a plain sentence for each part of it that can't be had.

    Args:
        parameters: the address's query parameters, as anybody may have typed them.
        state: what is chosen of the first side.
    """
    choice, notices = CompareChoice(), list[str]()
    for name, there in (("what", tuple(KINDS)), ("metric", CURVES), ("other_model", models(state))):
        given, usual = parameters.get(name), getattr(choice, name)
        if given is None or given in there:
            choice = replace(choice, **{name: given or usual})
        else:
            notices.append(notice(name, given, ", ".join(there), usual))
    choice = replace(choice, other=parameters.get("other", choice.other)[: SETTINGS.longest_input])
    for name in ("step", "other_step"):
        given, usual = parameters.get(name), getattr(choice, name)
        if given is None or whole_number(given) in STEPS:
            choice = replace(choice, **{name: usual if given is None else whole_number(given)})
        else:
            notices.append(notice(name, given, ", ".join(map(str, STEPS)), str(usual)))
    choice = within(choice, state)
    for place, name in enumerate(("other_layer", "other_head")):
        choice = with_number(choice, name, parameters, 0, counts(choice, state)[place] - 1, notices)
    return within(choice, state), notices


def write_choice(choice: CompareChoice) -> dict[str, str]:
    """The query parameters that reproduce a choice: only those that its kind has a use for."""
    told = {name: str(getattr(choice, name)) for name in _OWN[choice.what]}
    return {"what": choice.what} | {name: text for name, text in told.items() if len(text) <= SETTINGS.longest_link}


def within(choice: CompareChoice, state: State, opened: Drawn | None = None) -> CompareChoice:
    """The same with the second head as far in as its model has it: another model may have fewer."""
    choice = replace(choice, other_layer=min(choice.other_layer, counts(choice, state, opened)[0] - 1))
    return replace(choice, other_head=min(choice.other_head, counts(choice, state, opened)[1] - 1))


def sides(choice: CompareChoice, state: State) -> tuple[State, State]:
    """What runs on either side, without edits: those run in the second."""
    second = {
        "sentences": lambda: replace(state, text=choice.other, target="").within(),
        "models": lambda: replace(_of_second_model(choice, state), layer=choice.other_layer, head=choice.other_head),
        "heads": lambda: replace(state, layer=choice.other_layer, head=choice.other_head),
        "edit": lambda: state,
        "snapshots": lambda: replace(state, model=snapshot_name(TRAINED.model, choice.other_step)),
    }
    first = state
    if choice.what == "snapshots":
        first = replace(state, model=snapshot_name(TRAINED.model, choice.step))
    return first, second[choice.what]()


def models(state: State) -> Sequence[str]:
    """What can be the second model: the catalogue, the folders that may be read here, and the first side's own."""
    return tuple(dict.fromkeys((*CATALOGUE, *allowed.folders(), state.model)))


def counts(choice: CompareChoice, state: State, opened: Drawn | None = None) -> tuple[int, int]:
    """How many layers the second side has, and how many heads the chosen one of them."""
    if opened is not None and choice.what != "models":
        stream = opened.stream(state.stream)
        layers = opened.trace.layer_count(stream)
        return layers, opened.trace.head_count(min(choice.other_layer, layers - 1), stream)
    second = _of_second_model(choice, state) if choice.what == "models" else state
    second = replace(second, layer=min(choice.other_layer, second.layer_count - 1))
    return second.layer_count, second.head_count


def _of_second_model(choice: CompareChoice, state: State) -> State:
    """The first side's wishes to the second model; where it lacks that kind of attention, its first."""
    stream = state.stream if state.stream in nature(choice.other_model).heads else None
    return replace(state, model=choice.other_model, stream=stream)
