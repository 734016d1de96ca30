"""Every command's JSON is as its schema says: each key is documented, each number finite or null."""

import json
from pathlib import Path

import pytest
from jsonschema import ValidationError

import attention_viz as av
from attention_viz.cli import main
from attention_viz.cli.answers.answer import Answer, envelope
from attention_viz.cli.answers.kinds import ANSWERS, schema_of
from attention_viz.cli.exits import FAILED_CHECK, SUCCESS
from attention_viz.cli.program import program
from tests.answers import answer_of, validator_of
from tests.shipped import load_once

MOON, RING = "moon cheese frog ring moon cheese", "moon cheese ring ring moon cheese"
INDUCTION = ("--model", "induction")
SCORE = ("--layer", "1", "--head", "1", "--query", "5", "--key", "1")
PAIR = ("--text", MOON, "--other", RING, *INDUCTION)
TRANSLATION = ("--model", "translation", "--stream", "cross")
CAT = "the cat sees the dog"
ANNA = "anna red , ben blue , emma green , ben orange . ben ?"
IDA = "hugo pink , ida gold , karl white , ida black . ida ?"

CALLS = [
    ("models",),
    ("findings", MOON, *INDUCTION),
    ("findings", MOON, CAT, *INDUCTION, "--top", "1"),
    ("findings", "queen", "--model", "coreference"),
    ("findings", CAT, "--model", "translation"),
    ("findings", "When Mary and John went to the store, John gave a drink to", "--model", "SmolLM2-135M-Instruct"),
    ("heads", MOON, *INDUCTION),
    ("heads", "moon", *INDUCTION),
    ("heads", MOON, RING, *INDUCTION, "--repeated-random"),
    ("heads", MOON, *INDUCTION, "--metric", "induction,previous", "--repeated-random", "--top", "3"),
    ("heads", ANNA, "--model", "recall", "--stream", "mixer"),
    ("heads", CAT, *TRANSLATION),
    ("find", "cheese", "moon", "--text", MOON, *INDUCTION),
    ("find", "?", "anna", "--text", ANNA, "--model", "recall", "--stream", "mixer"),
    ("compare", *PAIR),
    ("compare", *PAIR, "--align", "token", "--layer", "0", "--head", "1"),
    ("compare", "--text", MOON, "--other", "frog", *INDUCTION),
    ("compare", "--text", MOON, "--other", "moon cheese frog", *INDUCTION, "--layer", "1", "--head", "1"),
    ("why", "--text", MOON, "--token", "frog", "--against", "ring", *INDUCTION),
    ("why", "--text", MOON, *SCORE, "--relative", *INDUCTION),
    ("why", "--text", ANNA, "--token", "orange", "--model", "recall"),
    ("why", "--text", IDA, "--token", "black", "--model", "recall-mamba"),
    ("why", "--text", CAT, "--token", "le", "--model", "translation"),
    ("effects", MOON, "--token", "frog", *INDUCTION),
    ("effects", MOON, RING, "--token", "frog", "--against", "ring", "--to", "zero", *INDUCTION),
    ("effects", MOON, "--token", "frog", "--probability", *INDUCTION),
    ("effects", IDA, "--token", "black", "--model", "recall-mamba", "--to", "zero"),
    ("effects", CAT, "--token", "le", "--model", "translation"),
    ("patch", *PAIR, "--token", "frog"),
    ("patch", *PAIR, "--token", "frog", "--parts", "mlps", "--direction", "denoising"),
    ("patch", *PAIR, "--token", "frog", "--by", "position", "--confirm", "1"),
    ("patch", "--text", ANNA, "--other", ANNA.replace("orange", "blue"), "--token", "orange", "--model", "recall"),
    ("circuits", *INDUCTION),
    ("circuits", *INDUCTION, "--layer", "1", "--head", "1"),
    ("circuits", "--model", "coreference"),
    ("verify", "induction"),
    ("verify", "scratch", "--text", "a b"),
    ("plan", "induction"),
    ("plan", "induction", "--max-memory", "cpu=60KB"),
]


@pytest.fixture(autouse=True)
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(av, "load", load_once)


@pytest.mark.parametrize("words", CALLS, ids=" ".join)
def test_a_command_s_json_is_as_its_schema_says(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code = main((*words, "--format", "json"))
    answer = answer_of(capsys.readouterr().out)
    assert code in (SUCCESS, FAILED_CHECK)
    assert (answer["schema"], answer["package_version"]) == (words[0], av.__version__)
    assert answer["model"] == next((name for name in av.CATALOGUE if name in words), None)


def test_a_scan_s_json_is_as_its_schema_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "texts.txt").write_text(f"{MOON}\n{RING}\n", "utf-8")
    words = ("scan", "induction", str(tmp_path / "texts.txt"), "--out", str(tmp_path / "out"), "--workers", "1")
    assert main((*words, "--format", "json")) == SUCCESS
    assert len(answer_of(capsys.readouterr().out)["result"]["rows"]) == 8


def test_every_command_with_json_is_tried_and_has_a_schema() -> None:
    having = {
        name
        for name, command in program.commands.items()
        for option in command.params
        if option.name == "format" and "json" in getattr(option.type, "choices", ())
    }
    assert {words[0] for words in CALLS} | {"scan"} == having
    assert {name for name, kind in ANSWERS.items() if not kind.tool_only} == having


def test_schema_prints_each_and_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == SUCCESS
    listed = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert listed == [[name, str(kind.version)] for name, kind in ANSWERS.items()]
    for name in ANSWERS:
        assert main(["schema", name]) == SUCCESS
        printed = json.loads(capsys.readouterr().out)
        assert printed == schema_of(name)
        assert printed["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        validator_of(name)


@pytest.mark.parametrize("more", [{"surprise": 1}, {"result": {}}, {"schema_version": 99}, {"model": 3}])
def test_another_key_or_type_fails(more: dict[str, object]) -> None:
    answer = envelope(Answer("verify", "m", {"text": "a"} | dict.fromkeys(("reference", "rule"), "")))
    answer["result"] |= {"output_error": float("nan"), "weight_error": None, "bound": 1e-5, "ok": True}
    answer["result"]["output_error"] = None
    validator_of("verify").validate(answer)
    with pytest.raises(ValidationError):
        validator_of("verify").validate({**answer, **more})


def test_no_description_is_missing() -> None:
    def check(schema: dict[str, object], path: str) -> None:
        properties = schema.get("properties", {})
        assert isinstance(properties, dict)
        for name, one in properties.items():
            assert name in ("result", "rows") or one.get("description"), f"{path}.{name}"
            check(one, f"{path}.{name}")
            check(one.get("items", {}), f"{path}.{name}")

    for name in ANSWERS:
        check(schema_of(name), name)
