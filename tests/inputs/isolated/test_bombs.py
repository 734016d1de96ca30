"""Tokenizers that were written to take all time or memory end their own process, and nothing else."""

import gc
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import attention_viz as av
from attention_viz.inputs.chat_template import render_chat
from attention_viz.inputs.isolated import asking
from attention_viz.inputs.isolated.asking import ProcessSlots, TextProcess
from attention_viz.inputs.isolated.tokenizer import IsolatedTokenizer
from attention_viz.inputs.labelling import label_ids
from attention_viz.inputs.text import Wording, read
from attention_viz.inputs.tokenizing import with_tokenizer
from attention_viz.models.loading.load_folder import load_folder
from attention_viz.models.loading.reading import read_tokenizer
from attention_viz.sources.bounded import starting
from attention_viz.sources.bounded.limits import Limits
from attention_viz.sources.folders import check_folder
from tests.models.families import build

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux bounds the memory")

QUICK = Limits(memory=150_000_000, seconds=1.5, processor=1.5, answer=20_000_000)
TEXT = "banana pancakes at a bank"

REPLACE = {
    "type": "Sequence",
    "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 10}] * 12,
}
NOWHERE = {"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"Regex": ""}, "content": "aaa"}] * 20}


def added(**told: object) -> list[dict[str, object]]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "special": False}
    return [{"id": 3, "content": "aa", **flags, **told}]


def template(*parts: object, tokens: dict[str, Any] | None = None) -> dict[str, object]:
    return {"type": "TemplateProcessing", "single": parts, "pair": parts, "special_tokens": tokens or {}}


SEQUENCE = {"Sequence": {"id": "A", "type_id": 0}}
MANY = {"SpecialToken": {"id": "x", "type_id": 0}}
LONG_WORD = {"type": "WordPiece", "vocab": {"[UNK]": 0, "a": 1, **{"a" * n + "b": n for n in range(2, 40)}}}

# By name: what tokenizer.json has besides a plain vocabulary, and the text that sets it off.
AT_A_TEXT: dict[str, tuple[dict[str, object], str]] = {
    "a letter becomes ten, twelve times": ({"normalizer": REPLACE}, TEXT),
    "an empty pattern": ({"normalizer": NOWHERE}, TEXT),
    "40 million ids around a text": (
        {
            "post_processor": template(
                *[MANY] * 2000, SEQUENCE, tokens={"x": {"id": "x", "ids": [0] * 20_000, "tokens": ["[UNK]"] * 20_000}}
            )
        },
        TEXT,
    ),
    "a text said 3,000 times": ({"post_processor": template(*[SEQUENCE] * 3000)}, TEXT),
    "a word without bounds": (
        {
            "model": LONG_WORD
            | {"unk_token": "[UNK]", "continuing_subword_prefix": "", "max_input_chars_per_word": 10**9}
        },
        "a" * 300_000,
    ),
    "a piece of a million letters": (
        {
            "model": {"type": "WordLevel", "vocab": {"u" * 1_000_000: 0}, "unk_token": "u" * 1_000_000},
            "pre_tokenizer": {"type": "Whitespace"},
        },
        TEXT,
    ),
}


def folder_of(path: Path, told: dict[str, object], **config: object) -> Path:
    """A folder whose tokenizer.json says that."""
    path.mkdir(exist_ok=True)
    plain: dict[str, object] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "bank": 1, "a": 2}, "unk_token": "[UNK]"},
    }
    (path / "tokenizer.json").write_text(json.dumps(plain | told))
    named = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]"} if "model" not in told else {}
    (path / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"} | named | config)
    )
    (path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    return path


def peak() -> int:
    """The most memory that this process took since it was last forgotten, in MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1000


@pytest.fixture
def honest(tmp_path: Path) -> IsolatedTokenizer:
    return IsolatedTokenizer.load(folder_of(tmp_path / "honest", {}), "honest")


@pytest.fixture(autouse=True)
def unharmed(honest: IsolatedTokenizer, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test does: this process takes little memory, and the next text is answered."""
    monkeypatch.setattr(asking, "LIMITS", QUICK)
    Path("/proc/self/clear_refs").write_text("5")
    before = peak()
    yield
    assert peak() - before < 50
    assert len(read("honest", honest, "the bank").tokens) == 2


def asked(tokenizer: Any, text: str) -> Any:
    return read("one", tokenizer, text)


@pytest.mark.parametrize("name", AT_A_TEXT)
def test_a_tokenizer_that_runs_away_on_a_text_is_refused(name: str, tmp_path: Path) -> None:
    told, text = AT_A_TEXT[name]
    tokenizer = IsolatedTokenizer.load(folder_of(tmp_path / "bomb", told), "one")
    begun = time.monotonic()
    with pytest.raises(
        av.UnusableText, match=r"^one's tokenizer (takes (more|longer) than|gives an answer of|makes .* tokens of)"
    ):
        asked(tokenizer, text)
    assert time.monotonic() - begun < 15


def test_one_that_runs_away_while_it_is_loaded_is_no_model(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "bomb", {"normalizer": REPLACE, "added_tokens": added()})
    with pytest.raises(av.ModelNotFound, match=r"tokenizer of one.*takes (more|longer) than"):
        read_tokenizer(check_folder_without_weights(folder), lambda: None, apart=True)


def check_folder_without_weights(folder: Path) -> Any:
    build("bert with a head").save_pretrained(folder)
    return check_folder(folder, "one")


def test_one_that_fills_up_to_two_billion_tokens_fills_up_nothing(tmp_path: Path) -> None:
    padding = {"strategy": {"Fixed": 2**31}, "direction": "Right", "pad_to_multiple_of": None}
    told: dict[str, object] = {"padding": padding | {"pad_id": 0, "pad_type_id": 0, "pad_token": "[UNK]"}}
    tokenizer: Any = IsolatedTokenizer.load(folder_of(tmp_path / "bomb", told), "one")
    assert asked(tokenizer, "a bank").tokens.labels == ("a", "bank")


def test_one_that_runs_away_over_ids_is_refused(tmp_path: Path) -> None:
    decoders = [{"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 10}] * 12
    told: dict[str, object] = {"decoder": {"type": "Sequence", "decoders": decoders}}
    tokenizer: Any = IsolatedTokenizer.load(folder_of(tmp_path / "bomb", told), "one")
    assert label_ids(tokenizer, [1, 2]).labels == ("bank", "a")
    with pytest.raises(av.UnusableText, match=r"^one's tokenizer takes (more|longer) than"):
        tokenizer.decode([1, 2])


def test_a_folder_s_chat_template_runs_within_the_same_bounds(tmp_path: Path) -> None:
    doubling = "{% set n = namespace(x='xxxxxxxxxx') %}{% for a in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}"
    tokenizer: Any = IsolatedTokenizer.load(folder_of(tmp_path / "bomb", {}, chat_template=doubling), "one")
    with pytest.raises(av.UnusableText, match="one's chat template takes more than 150 MB of memory"):
        read("one", tokenizer, "a bank", wording=Wording(chat=True))
    assert len(asked(tokenizer, "a bank").tokens) == 2


def test_one_that_ends_over_the_first_two_texts_is_refused_for_a_while(tmp_path: Path) -> None:
    tokenizer: Any = IsolatedTokenizer.load(folder_of(tmp_path / "bomb", {"normalizer": REPLACE}), "one")
    for text in (TEXT, f"{TEXT}!"):
        with pytest.raises(av.UnusableText, match="takes"):
            asked(tokenizer, text)
    begun = time.monotonic()
    with pytest.raises(av.UnusableText, match=r"stopped on 2 of its first texts because .*; wait (59|60) seconds"):
        asked(tokenizer, "bnk")
    assert time.monotonic() - begun < 0.5
    tokenizer.process._ends.clear()
    assert len(asked(tokenizer, "bnk").tokens) == 1


def test_texts_that_end_one_are_refused_themselves_and_no_others(tmp_path: Path) -> None:
    tokenizer: Any = IsolatedTokenizer.load(folder_of(tmp_path / "bomb", {"normalizer": REPLACE}), "one")
    assert len(asked(tokenizer, "bnk").tokens) == 1
    for text in (TEXT, f"{TEXT}!", TEXT):
        with pytest.raises(av.UnusableText, match=r"takes .* for this text; shorten it"):
            asked(tokenizer, text)
    assert len(asked(tokenizer, "bnk").tokens) == 1
    begun = time.monotonic()
    with pytest.raises(
        av.UnusableText, match=r"stopped 2 times on this text because it takes .*; wait (59|60) seconds"
    ):
        asked(tokenizer, TEXT)
    assert time.monotonic() - begun < 0.5
    assert len(asked(tokenizer, "b n k").tokens) == 3


def test_what_runs_away_while_it_is_loaded_again_is_not_blamed_on_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer: Any = IsolatedTokenizer.load(folder_of(tmp_path / "slow", {}), "one")
    tokenizer.process.rest()
    monkeypatch.setattr(tokenizer.process, "limits", Limits(seconds=0.001))
    with pytest.raises(
        av.UnusableText, match=r"^one's tokenizer takes longer than 0\.001 seconds while reloading; try again"
    ):
        asked(tokenizer, "a bank")
    monkeypatch.undo()
    assert len(asked(tokenizer, "a bank").tokens) == 2


def test_no_process_for_a_text_is_said_and_the_next_text_is_read() -> None:
    process = TextProcess("one", module="tests.sources.bounded.unforkable")
    assert process.ask("", {"echo": 1}).values == {"said": 1}
    process.rest()
    with pytest.raises(
        av.UnusableText, match=r"^one's tokenizer can't start \(Resource temporarily unavailable\); try again$"
    ):
        process.ask("", {"echo": 2})
    assert process.ask("", {"echo": 3}).values == {"said": 3}
    starting._images.pop("tests.sources.bounded.unforkable").end()  # pyright: ignore[reportPrivateUsage]


def test_a_process_killed_in_the_middle_of_a_text_is_told_and_the_next_text_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "LIMITS", Limits())
    before = children()
    tokenizer: Any = IsolatedTokenizer.load(folder_of(tmp_path / "killed", {}), "one")
    (own,) = children() - before
    os.kill(own, signal.SIGSTOP)  # it can't answer before it is killed, however slow this machine is
    ending = threading.Timer(0.15, os.kill, (own, signal.SIGKILL))
    ending.start()
    with pytest.raises(av.UnusableText, match="one's tokenizer was ended from outside for this text"):
        asked(tokenizer, TEXT)
    ending.join()
    assert len(asked(tokenizer, "bnk").tokens) == 1


def children() -> set[int]:
    """All processes below this one."""
    found, parents = dict[int, int](), {os.getpid()}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            found[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
    while more := {one for one, parent in found.items() if parent in parents} - parents:
        parents |= more
    return parents - {os.getpid()}


def test_eight_threads_are_answered_each_with_its_own(honest: IsolatedTokenizer) -> None:
    texts = [" ".join(["a"] * count + ["bank"]) for count in range(40)]

    def count(text: str) -> int:
        return len(asked(honest, text).tokens)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(count, texts)) == [count + 1 for count in range(40)]


MISBEHAVING = "tests.sources.bounded.misbehaving"


def test_no_more_processes_run_than_there_are_slots_however_many_are_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "SLOTS", ProcessSlots(2))
    TextProcess("first", module=MISBEHAVING).ask("", {"echo": 1})  # its image has started then
    several = [TextProcess(str(n), module=MISBEHAVING) for n in range(5)]
    gc.collect()
    before, most = len(children()), 0
    with ThreadPoolExecutor(5) as pool:
        answers = [pool.submit(one.ask, "", {"sleep": 0.3}) for one in several]
        while not all(answer.done() for answer in answers):
            most = max(most, len(children()) - before)
            time.sleep(0.02)
        assert all(answer.result().values == {} for answer in answers)
    assert most == 2


def test_one_that_finds_no_slot_in_time_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "SLOTS", ProcessSlots(1))
    busy, other = (TextProcess(name, module=MISBEHAVING) for name in ("busy", "other"))
    busy.ask("", {"echo": 1})
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(busy.ask, "", {"sleep": 1.2})
        time.sleep(0.3)
        with pytest.raises(av.UnusableText, match=r"^other's tokenizer can't start because all 1 processes were busy"):
            other.ask("", {"echo": 2}, seconds=0.3)
        assert answer.result().values == {}
    assert other.ask("", {"echo": 2}).values == {"said": 2}


def test_few_processes_are_kept_and_the_others_start_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "SLOTS", ProcessSlots(2))
    before = children()
    several: list[Any] = [IsolatedTokenizer.load(folder_of(tmp_path / str(n), {}), str(n)) for n in range(4)]
    assert len(children() - before) == 2
    for tokenizer in several:
        assert asked(tokenizer, "a bank").tokens.labels == ("a", "bank")
    assert len(children() - before) == 2


def test_files_that_changed_meanwhile_are_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "changing", {})
    tokenizer: Any = IsolatedTokenizer.load(folder, "one")
    tokenizer.process.rest()
    folder_of(folder, {"model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1, "bank": 2}, "unk_token": "[UNK]"}})
    with pytest.raises(av.UnusableText, match="files of one changed since the model was loaded; load it again"):
        asked(tokenizer, "a bank")


def test_a_folder_s_tokenizer_is_no_object_of_this_process_and_one_that_is_handed_over_is(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "model", {})
    build("bert with a head").save_pretrained(folder)
    model = load_folder(folder, "one")
    assert isinstance(model.tokenizer, IsolatedTokenizer)
    again = av.wrap(model.hf_model, model.tokenizer)
    assert again.trace("a bank").weights(0, 0).equal(model.trace("a bank").weights(0, 0))
    with pytest.raises(AttributeError, match=r"AutoTokenizer\.from_pretrained"):
        model.tokenizer.train_new_from_iterator  # noqa: B018
    with pytest.raises(TypeError, match="one text at a time"):
        model.tokenizer(["a", "bank"])  # pyright: ignore[reportArgumentType]


def test_without_isolation_all_is_read_in_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTENTION_VIZ_ISOLATE", "off")
    folder = folder_of(tmp_path / "model", {}, chat_template="{{ messages[0].content }} bank")
    build("bert with a head").save_pretrained(folder)
    before = children()
    model = load_folder(folder, "one")
    assert not isinstance(model.tokenizer, IsolatedTokenizer)
    assert model.trace("a", chat=True).query_tokens().labels == ("a", "bank")
    assert children() == before
    with pytest.raises(av.UnusableText, match="one's chat template refuses this text: TemplateError: no"):
        render_chat("one", "{{ raise_exception('no') }}", [], {})


def test_a_text_longer_than_any_model_reads_is_refused_unsent(honest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("it was asked")

    monkeypatch.setattr(honest.process, "ask", never)
    with pytest.raises(av.UnusableText, match=r"2,000,001 characters; .* the 2,000,000 that honest's tokenizer takes"):
        read("honest", honest, "a" * 2_000_001)
    with pytest.raises(av.UnusableText, match="half a character"):
        with_tokenizer("honest", honest, "\ud800", lambda: honest.encode("\ud800"))
    monkeypatch.undo()
