"""The pages' shared values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from attention_viz.analysis.readings import READINGS
from attention_viz.protocol.facts import ModelFacts
from attention_viz.serving import permissions
from attention_viz.serving.models import facts_of
from attention_viz.serving.run import OwnModule, Request
from attention_viz.serving.uploads import names_of
from attention_viz.sources import CATALOGUE, Entry
from attention_viz.trace.kind import MEDIA, MIXER, STREAMS, InputKind
from attention_viz.ui.address.codec import parameter, read, write
from attention_viz.ui.address.kinds import AnyText, DecimalNumber, OneOf, WholeNumber, notice, sample

Positions = Literal["sinusoidal", "none"]
Switch = Literal["on", "off"]

# The models that the app may open on, the best first, each with the layer and head that show most in its example. A
# pip install may lack the packages with models; the last one is in our own package.
OPENINGS = {"all-MiniLM-L6-v2": (0, 4), "coreference": (1, 2)}
_FIRST_MODEL = next(name for name in OPENINGS if CATALOGUE[name].available)
_FIRST_LAYER, _FIRST_HEAD = OPENINGS[_FIRST_MODEL]
# The same for the models that load slowest, so that the pickers are right before the figure appears. For another image
# or other audio, the best head is known only after the run.
_OPENED = {
    "dinov2-small": {"layer": 10, "head": 4},
    "shapes": {"layer": 1, "head": 0, "stream": "decoder"},
    "whisper-tiny.en": {"layer": 3, "head": 4, "stream": "cross"},
}

# Sentences for every model that has none of its own.
_EXAMPLES_OF = "all-MiniLM-L6-v2"
EXAMPLES = CATALOGUE[_EXAMPLES_OF].examples

# The streams of layers without a softmax; a layer has up to four of them.
_MIXERS = (MIXER, *(f"{MIXER} {number}" for number in (2, 3, 4)))

# The most tokens that a decoder generates: each is a step of its own.
MOST_MORE = 40
# The most images that a text is shown with.
MOST_IMAGES = 4

_SWITCH = OneOf(get_args(Switch))
# The number of positions is known after the run; a pair that the text lacks is dropped then.
_POSITION = WholeNumber(range(1_000_000), nothing="the head's own")


def _model(name: str, text: str, instead: Any) -> tuple[str, list[str]]:
    """Return the model's canonical name, or why it isn't available."""
    reason = permissions.refusal(text)
    if reason is None:
        return permissions.canonical_name(text), []
    refusal = notice(name, text, ", ".join((*CATALOGUE, *permissions.other_sources())), instead)
    return instead, [f"{refusal} Reason: {reason}."]


def _own(state: "State", known: object) -> bool:
    return state.own


def _several(state: "State", known: object) -> bool:
    return len(state.facts.heads) != 1 or bool(state.facts.mixers)


def _reads(what: InputKind) -> "Callable[[State, object], bool]":
    return lambda state, known: state.facts.reads.medium == what


def _reads_text(state: "State", known: object) -> bool:
    return state.facts.reads not in MEDIA


def _evicts(state: "State", known: object) -> bool:
    return state.evict == "on"


def _samples(state: "State", known: object) -> bool:
    return state.sample == "on"


def _readings(choice: object, known: object) -> tuple[str, ...]:
    return tuple(READINGS)


@dataclass(frozen=True)
class State:
    """The pages' shared values."""

    model: str = parameter(_FIRST_MODEL, AnyText(carried=lambda _: True, reader=_model), "the model")
    text: str = parameter(CATALOGUE[_FIRST_MODEL].examples[0], AnyText(), "the sentence", applies=_reads_text)
    picture: str = parameter(
        "chelsea", sample(InputKind.PICTURE, MOST_IMAGES), "the image", applies=_reads(InputKind.PICTURE)
    )
    sound: str = parameter("window", sample(InputKind.SOUND), "the audio", applies=_reads(InputKind.SOUND))
    layer: int = parameter(_FIRST_LAYER, WholeNumber(lambda state, _: state.layers), "the layer")
    head: int = parameter(_FIRST_HEAD, WholeNumber(lambda state, _: range(state.head_count)), "the head")
    stream: str | None = parameter(
        None,
        OneOf((*STREAMS, *_MIXERS), nothing="the first"),
        "the attention type",
        applies=_several,
    )
    query: int | None = parameter(None, _POSITION, "the chosen pair's query position", brief=True)
    key: int | None = parameter(None, _POSITION, "the chosen pair's key position", brief=True)
    second: str = parameter("", AnyText(), "the second sentence", brief=True)
    target: str = parameter("", AnyText(), "an encoder–decoder's target text", brief=True)
    more: int = parameter(0, WholeNumber(range(MOST_MORE + 1)), "how many tokens a decoder generates", brief=True)
    evict: Switch = parameter("off", _SWITCH, "whether old keys are evicted while a decoder generates", brief=True)
    first_keys: int = parameter(4, WholeNumber(range(65)), "how many first keys are kept", applies=_evicts, brief=True)
    last_keys: int = parameter(
        16, WholeNumber(range(1, 513)), "how many recent keys are kept", applies=_evicts, brief=True
    )
    sample: Switch = parameter("off", _SWITCH, "whether a decoder's tokens are drawn at random", brief=True)
    temperature: float = parameter(
        1.0, DecimalNumber(0.05, 5), "divides the logits before sampling", applies=_samples, brief=True
    )
    top_p: float = parameter(
        1.0, DecimalNumber(0.01, 1), "the probability of the tokens sampled from", applies=_samples, brief=True
    )
    sampling_seed: int = parameter(
        0, WholeNumber(range(10_000)), "the seed of the random tokens", applies=_samples, brief=True
    )
    special: Switch = parameter("on", _SWITCH, "special tokens", brief=True)
    chat: Switch = parameter("off", _SWITCH, "the chat template", brief=True)
    reading: str = parameter("raw", OneOf(_readings), "the reading of the weights", brief=True)
    words: Switch = parameter("off", _SWITCH, "whether subword tokens are merged into words", brief=True)
    d_model: int = parameter(8, WholeNumber(range(1, 513)), "width of `scratch`", applies=_own)
    heads: int = parameter(
        2, WholeNumber(range(1, 17)), "heads of `scratch`; the width is a multiple of them", applies=_own
    )
    seed: int = parameter(0, WholeNumber(range(10_000)), "random weights of `scratch`", applies=_own)
    positions: Positions = parameter(
        "sinusoidal", OneOf(get_args(Positions)), "whether `scratch` adds positions", applies=_own
    )

    @property
    def own(self) -> bool:
        """Return whether the model is our configurable module."""
        return self.model == "scratch"

    @property
    def facts(self) -> ModelFacts:
        """The model's known facts."""
        return facts_of(self.model)

    @property
    def layers(self) -> Sequence[int]:
        """Return the available layers."""
        return self.facts.layer_numbers(self.stream)

    @property
    def head_count(self) -> int:
        """Return the number of available heads."""
        return self.heads if self.own else self.facts.head_count(self.stream, self.layer)

    @property
    def shown(self) -> str:
        """Return the picture's or sound's name; "" for text alone."""
        medium = self.facts.reads.medium
        shown = "" if medium is None else getattr(self, medium)
        # A model of images alone reads one.
        return names_of(shown)[0] if self.facts.reads in MEDIA else shown

    @property
    def request(self) -> Request:
        """Return the run to compute, without head and reading."""
        if self.facts.reads in MEDIA:
            return Request(self.model, target=self.target, shown=self.shown)
        special, chat = self.special == "on", self.chat == "on"
        sampled = self.more and self.sample == "on"
        sampling = (self.temperature, self.top_p, self.sampling_seed) if sampled else None
        if self.shown:
            return Request(self.model, self.text, more=self.more, chat=chat, shown=self.shown, sampling=sampling)
        own = OwnModule(self.d_model, self.heads, self.seed, self.positions) if self.own else None
        evict = (self.first_keys, self.last_keys) if self.more and self.evict == "on" else None
        texts = (self.text, self.second, self.target)
        return Request(self.model, *texts, self.more, evict, special, chat, own, sampling=sampling)

    def within(self) -> "State":
        """Limit layer and head to the model's."""
        return read(self, {}, only=("layer", "head"))[0]


DEFAULT = State()


def own_example(model: str) -> str:
    """Return the model's example text."""
    return _with_examples(model).examples[0]


def own_sample(model: str, before: State = DEFAULT) -> dict[str, str]:
    """Return the model's example image or audio, by kind; empty if another one was chosen before, or for text alone."""
    entry = CATALOGUE.get(model)
    medium = None if entry is None else entry.reads.medium
    if entry is None or medium is None or not entry.samples:
        return {}
    last = CATALOGUE.get(before.model)
    own = last.samples[:1] if last is not None and last.reads.medium is medium else ()
    is_own = getattr(before, medium) in (getattr(DEFAULT, medium), *own)
    return {medium: entry.samples[0]} if is_own else {}


def opened_on(model: str) -> Mapping[str, Any]:
    """Return the example's best layer, head and stream."""
    return _OPENED.get(model, {})


def own_contrast(model: str) -> str:
    """Return the model's example comparison text."""
    return _with_examples(model).contrast


def _with_examples(model: str) -> Entry:
    """Return the model's entry, or one with general examples."""
    entry = CATALOGUE.get(model)
    return entry if entry is not None and entry.examples else CATALOGUE[_EXAMPLES_OF]


def read_address(address: Mapping[str, str], default: State = DEFAULT) -> tuple[State, list[str]]:
    """Return the URL's state, and a sentence for each impossible part."""
    return read(default, address)


def write_address(state: State) -> dict[str, str]:
    """Return the state's URL parameters, without overlong texts."""
    return write(state)
