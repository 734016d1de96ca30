"""How large a model is, told before anything of it is loaded."""

import itertools
import json
import resource
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel, modeling_utils

import attention_viz as av
from attention_viz.models.loading.load_folder import load_folder
from attention_viz.sources import building
from tests.models.families import build
from tests.models.loading.test_load_folder import word_tokenizer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    build("bert with a head").save_pretrained(tmp_path)
    word_tokenizer().save_pretrained(tmp_path)
    return tmp_path


def change(folder: Path, **values: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"hidden_size": 20_000, "intermediate_size": 80_000, "num_attention_heads": 8}, "don't fit its config.json"),
        ({"vocab_size": 4 * 10**9}, "sets vocab_size to 4,000,000,000"),
        ({"vocab_size": 9 * 10**8}, "don't fit its config.json"),
        ({"num_hidden_layers": 10**6}, "sets num_hidden_layers to 1,000,000"),
        (
            {"num_hidden_layers": 9_999, "hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 1},
            "parts",
        ),
        ({"num_labels": 10**9}, "sets num_labels to"),
        ({"max_position_embeddings": 5 * 10**8}, "don't fit its config.json"),
    ],
)
def test_an_absurd_configuration_is_refused_by_name_in_no_time_and_without_memory(
    values: dict[str, int], message: str, folder: Path, unread: None
) -> None:
    change(folder, **values)
    started = time.monotonic()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises((av.ModelNotFound, av.UnsupportedModel), match=message) as refused:
        load_folder(folder, "absurd")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kilobytes
    assert "absurd" in str(refused.value)
    assert time.monotonic() - started < 60


@pytest.mark.parametrize(
    "content",
    [
        f'{{"model_type": "bert", "{"x" * 1_000_000}": 1e300}}',
        f'{{"model_type": "bert", "hidden_size": {"9" * 4_000}}}',
        f'{{"model_type": "bert", "hidden_size": {"9" * 1_000_000}}}',
        f'{{"model_type": "{"x" * 1_000_000}"}}',
        '{"model_type": "bert", "a": ' + '{"a": ' * 900 + "1" + "}" * 901,
        '{"model_type": "bert", "a": ' + "[" * 1_000_000 + "]" * 1_000_000 + "}",
    ],
    ids=["key", "number", "long number", "type", "deep", "very deep"],
)
def test_a_refusal_repeats_no_more_than_a_line_of_what_a_file_holds(content: str, folder: Path) -> None:
    (folder / "config.json").write_text(content)
    with pytest.raises((av.ModelNotFound, av.UnsupportedModel)) as refused:
        load_folder(folder, "long")
    assert len(str(refused.value)) < 2_500


def test_nothing_is_loaded_that_takes_more_memory_than_allowed(folder: Path, unread: None) -> None:
    with pytest.raises(av.UnsupportedModel, match=r"large needs \d+ MB of memory by its config.json; at most"):
        load_folder(folder, "large", largest=1_000)


def test_a_model_within_its_limit_is_loaded(folder: Path) -> None:
    model = load_folder(folder, "fitting", largest=100_000_000)
    assert model.trace("the bank").fidelity.ok
    assert model.nbytes < 100_000_000


def test_to_count_a_model_leaves_torch_as_it_was(folder: Path) -> None:
    load_folder(folder, "fitting")
    assert torch.nn.Linear(2, 2).weight.device.type == "cpu"


LONGEST = {
    80_000_000: (
        "tokenizer.json",
        "vocab.txt",
        "added_tokens.json",
        "merges.txt",
        "spiece.model",
        "source.spm",
        "qwen.tiktoken",
    ),
    20_000_000: ("tokenizer_config.json", "model.safetensors.index.json"),
    5_000_000: (
        "config.json",
        "generation_config.json",
        "special_tokens_map.json",
        "preprocessor_config.json",
        "processor_config.json",
    ),
    1_000_000: ("chat_template.jinja", "additional_chat_templates/rag.jinja"),
}


@pytest.mark.parametrize(("file", "most"), [(file, most) for most, files in LONGEST.items() for file in files])
def test_a_text_longer_than_any_model_s_is_refused_unread(file: str, most: int, folder: Path, unread: None) -> None:
    (folder / file).parent.mkdir(exist_ok=True)
    with (folder / file).open("ab") as long:
        long.truncate(most + 1)  # no room is taken for what was never written
    name = Path(file).name
    with pytest.raises(
        av.UnsupportedModel, match=f"{name} of long has {most + 1:,} bytes; at most {most:,} are allowed"
    ):
        load_folder(folder, "long")


def test_too_many_chat_templates_are_refused(folder: Path) -> None:
    (folder / "additional_chat_templates").mkdir()
    for number in range(101):
        (folder / f"additional_chat_templates/{number}.jinja").write_text("x")
    with pytest.raises(av.UnsupportedModel, match="has 101 chat templates; at most 100 are allowed"):
        load_folder(folder, "many")


def test_what_no_model_is_read_from_may_be_long(folder: Path) -> None:
    with (folder / "trainer_log.txt").open("ab") as long:
        long.truncate(90_000_000)
    assert load_folder(folder, "logged").trace("the bank").fidelity.ok


def test_a_header_that_announces_more_than_any_model_s_is_refused_unread(folder: Path) -> None:
    with (folder / "model.safetensors").open("wb") as long:
        long.write((50_000_000).to_bytes(8, "little"))
        long.truncate(60_000_000)
    with pytest.raises(av.UnsupportedModel, match=r"headers of .* have 50,000,000 bytes; at most 40,"):
        load_folder(folder, "long")


def test_a_load_that_nobody_waits_for_does_not_wait_for_its_turn_either(folder: Path) -> None:
    asked = list[int]()

    def cancelled() -> bool:
        asked.append(1)
        return len(asked) > 5

    with building._building, pytest.raises(av.LoadCancelled, match="left"):
        load_folder(folder, "left", cancelled=cancelled)
    assert load_folder(folder, "next").trace("the bank").fidelity.ok


def test_models_are_read_beside_each_other_and_built_one_after_the_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, go_on = threading.Event(), threading.Event()
    turns = list[str]()
    read = modeling_utils.convert_and_load_state_dict_in_model

    def read_slowly(**given: Any) -> Any:
        if threading.current_thread().name.startswith("slow"):
            reading.set()
            assert go_on.wait(60)
        return read(**given)

    def initialize(self: torch.nn.Module) -> None:
        turns.append("held" if building._building.locked() else "free")
        original(self)

    original = PreTrainedModel.initialize_weights
    monkeypatch.setattr(PreTrainedModel, "initialize_weights", initialize)
    monkeypatch.setattr(modeling_utils, "convert_and_load_state_dict_in_model", read_slowly)
    with ThreadPoolExecutor(thread_name_prefix="slow") as pool:
        slow = pool.submit(load_folder, folder, "slow")
        assert reading.wait(60)
        quick = load_folder(folder, "quick")
        assert not slow.done()
        go_on.set()
        assert slow.result().trace("the bank").fidelity.ok
    assert quick.trace("the bank").fidelity.ok
    assert turns and set(turns) == {"held"}
    assert type(quick.hf_model) is type(build("bert with a head"))


def test_a_load_of_the_catalogue_is_given_up_as_any_other() -> None:
    for name in ("all-MiniLM-L6-v2", "coreference"):
        asked = itertools.count()
        with pytest.raises(av.LoadCancelled, match=name):
            av.load(name, cancelled=lambda asked=asked: next(asked) > 10)
    with pytest.raises(av.LoadCancelled, match="induction"):
        av.load("induction", revision="step-0", cancelled=lambda: True)


def test_a_load_that_is_cancelled_stops_wherever_it_is(folder: Path) -> None:
    asked = 0

    def cancelled(after: int) -> bool:
        nonlocal asked
        asked += 1
        return asked > after

    for after in (0, 1, 2, 10):
        asked = 0
        with pytest.raises(av.LoadCancelled, match="left"):
            load_folder(folder, "left", cancelled=lambda after=after: cancelled(after))
