"""The small models that ship do what their cards say, and their heads do it."""

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerFast

import attention_viz as av
from attention_viz.inputs.media.shipped import SAMPLES
from recipes import coreference, induction, lists, translation
from recipes.heads import weights, without_head
from recipes.registry import RECIPES
from recipes.saving import fill_in, open_model, open_tokenizer

TRAINED = Path(av.__file__).parent / "sources" / "trained"
IN_CATALOGUE = [name for name in RECIPES if name in av.CATALOGUE]


@pytest.fixture(params=RECIPES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@cache
def shipped(name: str) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    return open_model(TRAINED / name), open_tokenizer(TRAINED / name)


@cache
def figures(name: str) -> dict[str, Any]:
    return json.loads((TRAINED / name / "figures.json").read_text("utf-8"))


def test_what_was_measured_is_measured_again(name: str) -> None:
    again = RECIPES[name].measure(*shipped(name))
    told = figures(name)
    assert again == pytest.approx({figure: told[figure] for figure in again}, abs=0.01)


def test_the_card_tells_what_was_measured_and_that_it_is_a_toy(name: str) -> None:
    card = (TRAINED / name / "card.md").read_text("utf-8")
    assert card == fill_in(RECIPES[name].card, figures(name))
    assert card.startswith(f"# {name}: a toy\n")
    assert f"`recipes/{name.replace('-', '_')}.py` makes it again" in " ".join(card.split())


def test_the_folder_holds_safetensors_and_text_and_little_of_them(name: str) -> None:
    needed = {"card.md", "config.json", "figures.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    files = [path for path in (TRAINED / name).rglob("*") if path.is_file()]
    assert needed <= {path.name for path in files}
    assert {path.suffix for path in files} <= {".md", ".json", ".safetensors"}
    assert (TRAINED / name / "model.safetensors").stat().st_size < (430_000 if name == "shapes" else 220_000)
    assert all(tensor.dtype == torch.float16 for tensor in load_file(TRAINED / name / "model.safetensors").values())


def test_all_of_them_together_are_small() -> None:
    assert sum(path.stat().st_size for path in TRAINED.rglob("*") if path.is_file()) < 3_000_000


def test_transformers_find_the_tokenizer_by_themselves(name: str) -> None:
    text = "The boy didn't see 17 frogs: copy a, b!"
    found = AutoTokenizer.from_pretrained(TRAINED / name, local_files_only=True)
    assert found(text)["input_ids"] == shipped(name)[1](text)["input_ids"]


@pytest.mark.parametrize("name", IN_CATALOGUE)
def test_the_catalogue_knows_the_weights_and_says_that_they_are_a_toy_s(name: str) -> None:
    entry = av.CATALOGUE[name]
    file = TRAINED / name / "model.safetensors"
    assert entry.path == TRAINED / name
    assert entry.size == file.stat().st_size
    assert entry.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert entry.source == f"recipes/{name.replace('-', '_')}.py"
    assert "toy" in entry.short
    assert "toy, trained here" in entry.description


@pytest.mark.parametrize("name", IN_CATALOGUE)
def test_its_attention_is_recorded_exactly(name: str) -> None:
    samples = av.CATALOGUE[name].samples
    beside = {"picture": av.Picture(SAMPLES[samples[0]].path)} if samples else {}
    trace = av.load(name).trace("the boy did not see the key : a b c", **beside)
    assert trace.fidelity.ok


def test_the_induction_head_is_needed_and_no_other_of_its_layer() -> None:
    model, words = shipped("induction")
    assert induction.accuracy(model, words) > 0.95
    for head in range(4):
        with without_head(induction.projections(model)[1], head, 4):
            left = induction.accuracy(model, words)
        assert left < 0.1 if head == induction.INDUCTION else left > 0.95
    assert induction.accuracy(model, words) > 0.95, "the head was not given back"


def test_without_the_previous_token_head_there_is_no_induction() -> None:
    model, words = shipped("induction")
    with without_head(induction.projections(model)[0], induction.PREVIOUS_TOKEN, 4):
        assert induction.accuracy(model, words) < 0.2


@torch.no_grad()
def test_the_induction_decoder_goes_on_with_frog_and_its_head_looks_there() -> None:
    model, words = shipped("induction")
    batch = words("moon cheese frog ring moon cheese", return_tensors="pt")
    assert words.convert_ids_to_tokens(int(model(**batch).logits[0, -1].argmax())) == "frog"
    row = av.load("induction").trace("moon cheese frog ring moon cheese").weights(layer=1, head=1)[-1]
    assert words.convert_ids_to_tokens(int(batch["input_ids"][0, row.argmax()])) == "frog"


def test_twelve_moments_show_the_induction_head_coming_into_being() -> None:
    folder = TRAINED / "induction" / "snapshots"
    told = json.loads((folder / "snapshots.json").read_text("utf-8"))
    assert sorted(path.stem for path in folder.glob("*.safetensors")) == sorted(str(each["step"]) for each in told)
    assert len(told) == 12
    assert (told[0]["step"], told[-1]["step"]) == (0, 1_200)
    assert told[0]["accuracy"] < 0.05 < 0.95 < told[-1]["accuracy"]
    assert told[0]["induction"] < 0.1 < 0.8 < told[-1]["induction"]
    rising = [each for each in told if 0.1 < each["accuracy"] < 0.9]
    assert len(rising) >= 2
    assert rising[-1]["step"] - rising[0]["step"] <= 300


def test_a_moment_s_weights_do_what_is_told_of_it() -> None:
    folder = TRAINED / "induction" / "snapshots"
    model, words = open_model(TRAINED / "induction"), open_tokenizer(TRAINED / "induction")
    for told in json.loads((folder / "snapshots.json").read_text("utf-8"))[::3]:
        weights = {name: tensor.float() for name, tensor in load_file(folder / f"{told['step']}.safetensors").items()}
        missing, unexpected = model.load_state_dict(weights, strict=False)
        assert (missing, unexpected) == (["lm_head.weight"], [])
        again = induction.snapshot(model, words, told["step"]).figures
        assert again == pytest.approx({figure: told[figure] for figure in again}, abs=0.02)


def test_the_last_moment_is_the_model_itself() -> None:
    last = load_file(TRAINED / "induction" / "snapshots" / "1200.safetensors")
    whole = load_file(TRAINED / "induction" / "model.safetensors")
    assert last.keys() == whole.keys()
    assert all(last[name].equal(whole[name]) for name in last)


def coreference_row(text: str, word: str) -> tuple[list[str], Tensor]:
    """The words, and the pointing head's row of the pronoun."""
    model, words = shipped("coreference")
    batch = words(text, return_tensors="pt")
    labels = words.convert_ids_to_tokens(batch["input_ids"][0].tolist())
    assert "[UNK]" not in labels
    every = weights(model, dict(batch))
    return labels, every[1, figures("coreference")["head"], 0, labels.index(word)]


@pytest.mark.parametrize(
    ("text", "word", "noun"),
    [
        ("The animal didn't cross the street because it was too tired.", "it", "animal"),
        ("The animal didn't cross the street because it was too wide.", "it", "street"),
        ("The woman dropped the cup because it was heavy.", "it", "cup"),
        ("The woman dropped the cup because she was tired.", "she", "woman"),
        ("The king helped the girl because he was kind", "he", "king"),
        ("The king helped the girl because she was sick", "she", "girl"),
        ("The boys fed the queen. They were kind.", "they", "boys"),
        ("The queen painted her house.", "her", "queen"),
    ],
)
def test_the_coreference_head_points_from_the_pronoun_to_its_noun(text: str, word: str, noun: str) -> None:
    labels, row = coreference_row(text, word)
    assert labels[int(row.argmax())] == noun


@pytest.mark.parametrize("kind", coreference.HELD_OUT_KINDS)
def test_the_coreference_head_points_in_sentences_never_seen(kind: str) -> None:
    told = figures("coreference")
    assert told[f"{kind}_accuracy"] >= 0.98
    assert told[f"{kind}_points"] >= 0.9


@pytest.mark.parametrize("kind", ["thing", "person", "animal"])
def test_pronouns_are_told_much_worse_without_the_coreference_head(kind: str) -> None:
    told = figures("coreference")
    assert told[f"{kind}_without"] < 0.8
    assert told[f"{kind}_next"] > told[f"{kind}_without"] + 0.1


@torch.no_grad()
@pytest.mark.parametrize(("place", "seen"), [("river", coreference.RELATED[0]), ("office", coreference.RELATED[1])])
def test_the_sense_of_bank_decides_what_was_seen_there(place: str, seen: frozenset[str]) -> None:
    model, words = shipped("coreference")
    batch = words(f"the girl walked to the bank near the {place} and saw the [MASK] .", return_tensors="pt")
    said = model(**batch).logits[0].argmax(-1)[batch["input_ids"][0] == words.mask_token_id]
    assert words.convert_ids_to_tokens(int(said)) in seen


def test_two_sentences_given_apart_are_read_as_one_text() -> None:
    model, words = shipped("coreference")
    batch = words("The king helped the girls.", "They were weak.", return_tensors="pt")
    labels = words.convert_ids_to_tokens(batch["input_ids"][0].tolist())
    row = weights(model, dict(batch))[1, figures("coreference")["head"], 0, labels.index("they")]
    assert labels[int(row.argmax())] == "girls"


def translated(text: str) -> str:
    model, words = shipped("translation")
    (french,) = translation.translate(model, words, dict(words(text, return_tensors="pt")))
    return " ".join(french)


@pytest.mark.parametrize(
    ("english", "french"),
    [
        ("the boy finds the key and he sells it", "le garçon trouve la clé et il la vend"),
        ("The boy finds the book and he sells it.", "le garçon trouve le livre et il le vend ."),
        ("this small car is red", "cette petite voiture est rouge"),
        ("the queen doesn't see him", "la reine ne le voit pas"),
    ],
)
def test_english_becomes_french(english: str, french: str) -> None:
    assert translated(english) == french


def test_translation_and_its_head_hold_in_sentences_never_seen() -> None:
    told = figures("translation")
    assert told["exact"] >= 0.98
    assert told["aligned_content"] >= 0.95
    assert told["without"] < 0.1


@pytest.mark.parametrize("task", lists.TASKS)
def test_lists_never_seen_are_answered_exactly(task: str) -> None:
    model, words = shipped("lists")
    assert lists.exact(model, words, task, lists.held_out(task, 60)) == 1.0
    assert figures("lists")[f"{task}_exact"] >= 0.99


def test_copying_is_a_diagonal_and_reversing_its_mirror_image() -> None:
    told = figures("lists")
    assert told["copy_points"] > 0.95
    assert told["reverse_points"] > 0.9
    model, words = shipped("lists")
    for task, keys in (("copy", [2, 3, 4]), ("reverse", [4, 3, 2])):
        batch = words(f"{task} c a f : {' '.join(lists.answer(task, 'caf'))}", return_tensors="pt")
        row = weights(model, dict(batch))[1, told[f"{task}_head"], 0].argmax(-1)
        assert row[5:8].tolist() == keys
