"""What a person chose, kept in the address, so that a link reproduces the screen."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from attention_viz.models import CATALOGUE
from attention_viz.serving import permissions as allowed
from attention_viz.serving.facts import Nature, nature
from attention_viz.serving.request import OwnModule, Request
from attention_viz.serving.settings import SETTINGS
from attention_viz.ui.parts.notices import notice, with_number

__all__ = [
    "DEFAULT",
    "EXAMPLES",
    "MOST_MORE",
    "READING_NAMES",
    "Positions",
    "ReadingName",
    "State",
    "Switch",
    "read_address",
    "write_address",
]

Positions = Literal["sinusoidal", "none"]
Switch = Literal["on", "off"]
ReadingName = Literal["raw", "norm", "rollout", "flow", "gradient"]

READING_NAMES: tuple[ReadingName, ...] = get_args(ReadingName)

EXAMPLES = (
    "The bank of the river was flooded",
    "The cat sat because it was tired.",
    "The bank is steep, so it's dangerous to stand near it",
)


@dataclass(frozen=True)
class State:
    """What all pages share: everything that decides which head of what is shown.

    Attributes:
        model: a name in the catalogue, the path of a folder, or an id on the hub, "owner/name@revision".
        text: what was typed.
        layer: from 0.
        head: from 0.
        stream: "encoder", "decoder" or "cross", for traces with several; None for the first there is.
        second: another sentence that an encoder reads together with the text; empty for none.
        target: what an encoder–decoder is to say; empty for what it says of its own accord.
        more: by how many tokens a decoder goes on with the text.
        special: "off" where the tokenizer adds no special tokens.
        chat: "on" where the text stands in the model's chat template.
        reading: how weights are read where they are shown as weights, a name of `READINGS`.
        words: "on" where the pieces of words are put together.
        d_model: width of our own module, where that is the model.
        heads: how many heads our own module has.
        seed: of our own module's random weights.
        positions: whether our own module adds positions to its embeddings.
    """

    model: str = "all-MiniLM-L6-v2"
    text: str = EXAMPLES[0]
    layer: int = 0
    head: int = 4
    stream: str | None = None
    second: str = ""
    target: str = ""
    more: int = 0
    special: Switch = "on"
    chat: Switch = "off"
    reading: ReadingName = "raw"
    words: Switch = "off"
    d_model: int = 8
    heads: int = 2
    seed: int = 0
    positions: Positions = "sinusoidal"

    @property
    def own(self) -> bool:
        """Whether the model is our own module, which has settings of its own."""
        return self.model == "scratch"

    @property
    def nature(self) -> Nature:
        """What is known of the model."""
        return nature(self.model)

    @property
    def layer_count(self) -> int:
        """How many layers there are to choose from."""
        return self.nature.layer_count(self.stream)

    @property
    def head_count(self) -> int:
        """How many heads there are to choose from."""
        return self.heads if self.own else self.nature.head_count(self.stream, self.layer)

    @property
    def request(self) -> Request:
        """What has to be run for it: all but which head is looked at, and how."""
        own = OwnModule(self.d_model, self.heads, self.seed, self.positions) if self.own else None
        special, chat = self.special == "on", self.chat == "on"
        return Request(self.model, self.text, self.second, self.target, self.more, special, chat, own)

    def within(self) -> "State":
        """The same with layer and head as far in as the model has them: another model may have fewer."""
        state = replace(self, layer=min(self.layer, self.layer_count - 1))
        return replace(state, head=min(state.head, state.head_count - 1))


DEFAULT = State()

_TEXTS = ("text", "second", "target")
_STREAMS = ("encoder", "decoder", "cross")
_KINDS: dict[str, Any] = {
    "positions": Positions,
    "special": Switch,
    "chat": Switch,
    "reading": ReadingName,
    "words": Switch,
}

# By how many tokens a decoder goes on at most: each of them is a run of its own.
MOST_MORE = 40

# The smallest and largest value of each number of our own module; layer and head depend on the model.
_RANGES = {"d_model": (1, 512), "heads": (1, 16), "seed": (0, 9999)}


def read_address(parameters: Mapping[str, str], default: State = DEFAULT) -> tuple[State, list[str]]:
    """What an address asks for, and a plain sentence for each part of it that can't be had.

    Args:
        parameters: the address's query parameters, as anybody may have typed them.
        default: what holds where the address says nothing.
    """
    notices: list[str] = []
    texts: dict[str, Any] = {
        name: parameters.get(name, getattr(default, name))[: SETTINGS.longest_input] for name in _TEXTS
    }
    state = replace(default, **texts)
    model = parameters.get("model", state.model)
    reason = allowed.refusal(model)
    if reason is None:
        state = replace(state, model=allowed.canonical(model))
    else:
        told = notice("model", model, ", ".join((*CATALOGUE, *allowed.ways())), state.model)
        notices.append(f"{told} Why: {reason}.")
    stream = parameters.get("stream")
    if stream in (None, *_STREAMS):
        state = replace(state, stream=stream or state.stream)
    else:
        notices.append(notice("stream", stream, ", ".join(_STREAMS), state.stream or "the first there is"))
    for name, kind in _KINDS.items():
        given, there, usual = parameters.get(name), get_args(kind), getattr(state, name)
        if given in (None, *there):
            state = replace(state, **{name: given or usual})
        else:
            allowed_here = " and ".join(there) if len(there) == 2 else ", ".join(there)
            notices.append(notice(name, given, allowed_here, usual))
    for name, (low, high) in _RANGES.items():
        state = with_number(state, name, parameters, low, high, notices)
    state = with_number(state, "more", parameters, 0, MOST_MORE, notices).within()
    for name, count in (("layer", state.layer_count), ("head", state.head_count)):
        state = with_number(state, name, parameters, 0, count - 1, notices)
    return state, notices


def write_address(state: State) -> dict[str, str]:
    """The query parameters that reproduce a state; the text is left out where a link can't carry it."""
    parameters = {"model": state.model, "layer": str(state.layer), "head": str(state.head)}
    for name in _TEXTS:
        text: str = getattr(state, name)
        if len(text) <= SETTINGS.longest_link and (text or name == "text"):
            parameters[name] = text
    # Of a model with only one it would say nothing.
    if state.stream is not None and len(state.nature.heads) != 1:
        parameters["stream"] = state.stream
    for name in ("more", "special", "chat", "reading", "words"):
        if getattr(state, name) != getattr(DEFAULT, name):
            parameters[name] = str(getattr(state, name))
    if state.own:
        parameters |= {name: str(getattr(state, name)) for name in (*_RANGES, "positions")}
    return parameters
