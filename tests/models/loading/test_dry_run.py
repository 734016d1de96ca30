"""What strangers ask for is tried in a bounded process: what burns there is ended, and nobody else waits for it."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import attention_viz as av
from attention_viz.errors import AttentionVizError, LoadCancelled
from attention_viz.models.loading import dry_run, verdicts
from attention_viz.models.loading.load_folder import load_folder
from attention_viz.models.loading.verdicts import verdict_of
from attention_viz.sources.bounded import starting
from attention_viz.sources.bounded.limits import Limits
from attention_viz.sources.bounded.starting import start_alone
from attention_viz.sources.folders import check_folder
from tests.models.families import build

QUICK = Limits(memory=400_000_000, seconds=60, processor=1, answer=1_000_000)
# Of what burns for as long as it is let, in a test that goes on beside it.
UNHURRIED = Limits(memory=400_000_000, seconds=60, processor=30, answer=1_000_000)
MANY = 8_000_000


def change(folder: Path, **values: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def saved(folder: Path, kind: str, config: str, **sizes: Any) -> Path:
    torch.manual_seed(0)
    getattr(transformers, kind)(getattr(transformers, config)(**sizes)).save_pretrained(folder)
    return folder


def distilbert(folder: Path) -> Path:
    sizes = {"vocab_size": 97, "dim": 2, "n_heads": 1, "hidden_dim": 2, "n_layers": 2}
    return saved(folder, "DistilBertModel", "DistilBertConfig", **sizes, sinusoidal_pos_embds=True)


def table_to_compute(folder: Path) -> None:
    change(distilbert(folder), max_position_embeddings=MANY)


def table_in_the_file(folder: Path) -> None:
    """The file has a table of that shape, in bytes, which is computed again all the same."""
    table_to_compute(folder)
    tensors = load_file(folder / "model.safetensors")
    tensors["embeddings.position_embeddings.weight"] = torch.zeros(MANY, 2, dtype=torch.uint8)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def frames(folder: Path) -> None:
    sizes = {"image_size": 16, "patch_size": 8, "num_frames": 2, "hidden_size": 8, "num_hidden_layers": 1}
    saved(folder, "VideoMAEModel", "VideoMAEConfig", **sizes, num_attention_heads=1, intermediate_size=8)
    change(folder, num_frames=MANY)


def pixels(folder: Path) -> None:
    sizes = {"hidden_sizes": [16, 32, 48], "num_attention_heads": [1, 2, 3], "depths": [1, 1, 1], "image_size": 64}
    saved(folder, "LevitModel", "LevitConfig", **sizes, key_dim=[4, 4, 4])
    change(folder, image_size=MANY)


def positions(kind: str, **sizes: Any) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        saved(folder, f"{kind}Model", f"{kind}Config", vocab_size=97, max_position_embeddings=64, **sizes)
        change(folder, max_position_embeddings=2_000_000)

    spoil.__name__ = kind
    return spoil


_HIDDEN = {"hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
_TWO = {
    "d_model": 4,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 1,
    "decoder_attention_heads": 1,
    "encoder_ffn_dim": 8,
    "decoder_ffn_dim": 8,
    "pad_token_id": 0,
    "decoder_start_token_id": 0,
}

BURNS = "building and testing .* takes (longer than 1 seconds|more than 400 MB of memory)"
UNFILLED = r"[\d,]+ numbers that the file doesn't hold.* 5,000,000"


def image() -> int:
    """The process from which the others are forked."""
    return starting._images[verdicts._MODULE]._process.pid


def forked() -> list[int]:
    """The processes that try something now."""
    return [int(one) for one in Path(f"/proc/{image()}/task/{image()}/children").read_text().split()]


def none_left() -> bool:
    until = time.monotonic() + 10
    while forked() and time.monotonic() < until:
        time.sleep(0.02)
    return not forked()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (table_to_compute, UNFILLED),
        (table_in_the_file, BURNS),
        (frames, BURNS),
        (pixels, BURNS),
        (positions("Marian", **_TWO), UNFILLED),
        (positions("Pegasus", **_TWO), UNFILLED),
        (positions("RoFormer", **_HIDDEN), UNFILLED),
    ],
)
def test_what_takes_long_to_build_is_refused_and_leaves_no_process(
    spoil: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    spoil(tmp_path)
    with pytest.raises((av.ModelNotFound, av.UnsupportedModel), match=message) as refused:
        verdict_of(check_folder(tmp_path, "absurd"), lambda: None, QUICK)
    assert "absurd" in str(refused.value)
    assert none_left()


FAMILIES = (
    "bert with a head",
    "distilbert",
    "albert",
    "t5",
    "gpt2",
    "llama",
    "gemma2",
    "gpt_oss",
    "qwen3",
    "jamba",
    "bart",
    "deberta-v2",
)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_honest_folder_is_the_model_that_transformers_reads(family: str, tmp_path: Path) -> None:
    build(family).save_pretrained(tmp_path)
    loaded = load_folder(tmp_path, family).hf_model
    plain = type(build(family)).from_pretrained(tmp_path, dtype=torch.float32)
    assert type(loaded) is type(plain)
    wanted, found = plain.state_dict(), loaded.state_dict()
    assert found.keys() == wanted.keys()
    for key, tensor in wanted.items():
        torch.testing.assert_close(found[key], tensor, rtol=0, atol=0)
    buffers = dict(loaded.named_buffers())
    for key, tensor in plain.named_buffers():
        torch.testing.assert_close(buffers[key], tensor, rtol=0, atol=0)


def test_a_table_that_the_file_lacks_is_missing_however_small_it_is(tmp_path: Path) -> None:
    distilbert(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["embeddings.position_embeddings.weight"]
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(av.ModelNotFound, match=r"1 .*such as embeddings\.position_embeddings"):
        load_folder(tmp_path, "sines")


def test_another_load_is_done_while_one_burns(tmp_path: Path) -> None:
    table_in_the_file(tmp_path / "burning")
    build("bert").save_pretrained(tmp_path / "honest")
    given_up = threading.Event()

    def check() -> None:
        if given_up.is_set():
            raise LoadCancelled("enough")

    with ThreadPoolExecutor(1) as pool:
        burning = pool.submit(verdict_of, check_folder(tmp_path / "burning", "burning"), check, UNHURRIED)
        begun = time.monotonic()
        while not forked() and time.monotonic() - begun < 60:
            time.sleep(0.05)
        assert load_folder(tmp_path / "honest", "honest").trace_ids(torch.tensor([[5, 6, 7]])).fidelity.ok
        assert not burning.done()
        given_up.set()
        assert isinstance(burning.exception(60), LoadCancelled)
    assert none_left()


def test_two_loads_at_once_get_their_own_verdicts(tmp_path: Path) -> None:
    for name, family in (("one", "bert"), ("two", "gpt2")):
        build(family).save_pretrained(tmp_path / name)
    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(lambda name: verdict_of(check_folder(tmp_path / name, name), lambda: None), ("one", "two"))
    assert (one.kind, two.kind) == ("BertModel", "GPT2LMHeadModel")


@pytest.fixture
def burning(tmp_path: Path) -> Iterator[tuple[Path, Callable[[], BaseException | None]]]:
    """A folder that is being tried for long, and what comes of it."""
    table_in_the_file(tmp_path / "burning")
    build("bert").save_pretrained(tmp_path / "honest")
    verdict_of(check_folder(tmp_path / "honest", "honest"), lambda: None)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(verdict_of, check_folder(tmp_path / "burning", "burning"), lambda: None, UNHURRIED)
        begun = time.monotonic()
        while not forked() and time.monotonic() - begun < 60:
            time.sleep(0.05)
        yield tmp_path / "honest", lambda: future.exception(60)


def test_a_process_that_is_killed_is_said_and_the_next_load_works(burning: Any) -> None:
    honest, outcome = burning
    for number in forked():
        os.kill(number, signal.SIGKILL)
    error = outcome()
    assert isinstance(error, av.UnsupportedModel)
    assert "the process that tests burning before loading was ended from outside; load the model again" in str(error)
    assert verdict_of(check_folder(honest, "again"), lambda: None).kind == "BertModel"


def test_the_process_that_they_are_forked_from_is_started_again(burning: Any) -> None:
    honest, outcome = burning
    before = image()
    os.kill(before, signal.SIGKILL)
    assert "the process that tests burning before loading" in str(outcome())
    assert verdict_of(check_folder(honest, "again"), lambda: None).kind == "BertModel"
    assert image() != before


def test_a_folder_is_tried_once_as_long_as_it_stays_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build("bert").save_pretrained(tmp_path)
    verdict = verdict_of(check_folder(tmp_path, "one"), lambda: None)
    with monkeypatch.context() as closed:
        closed.setattr(verdicts.process, "Process", pytest.fail)
        assert verdict_of(check_folder(tmp_path, "one"), lambda: None) == verdict
    change(tmp_path, intermediate_size=41)
    for _ in range(2):
        with pytest.raises(av.ModelNotFound, match="shape"):
            verdict_of(check_folder(tmp_path, "one"), lambda: None)
        monkeypatch.setattr(verdicts.process, "Process", pytest.fail)


def test_a_refusal_by_the_clock_is_not_kept(tmp_path: Path) -> None:
    build("bert").save_pretrained(tmp_path)
    hurried = Limits(memory=400_000_000, seconds=1e-4, processor=30, answer=1_000_000)
    with pytest.raises(av.UnsupportedModel, match=r"takes longer than 0\.0001 seconds; load the model again"):
        verdict_of(check_folder(tmp_path, "one"), lambda: None, hurried)
    assert verdict_of(check_folder(tmp_path, "one"), lambda: None).kind == "BertModel"


def test_misfits_are_said_before_any_weight_is_read(tmp_path: Path, unread: None) -> None:
    build("bert").save_pretrained(tmp_path)
    change(tmp_path, intermediate_size=41)
    with pytest.raises(av.ModelNotFound, match=r"shape.*\(37,\).*\(41,\)"):
        load_folder(tmp_path, "other")


@pytest.mark.parametrize("switch", ["on", "off"])
def test_with_and_without_a_process_the_same_is_found(
    switch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTENTION_VIZ_ISOLATE", switch)
    if switch == "off":
        monkeypatch.setattr(verdicts.process, "Process", pytest.fail)
    build("bert with a head").save_pretrained(tmp_path / "honest")
    assert verdict_of(check_folder(tmp_path / "honest", "one"), lambda: None).kind == "BertForMaskedLM"
    table_to_compute(tmp_path / "other")
    with pytest.raises(av.ModelNotFound, match=UNFILLED):
        verdict_of(check_folder(tmp_path / "other", "two"), lambda: None)


def test_it_works_where_nothing_can_be_forked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build("bert").save_pretrained(tmp_path)
    started = verdicts.process.Process
    monkeypatch.setattr(verdicts.process, "Process", lambda module, limits: started(module, limits, start_alone))
    assert verdict_of(check_folder(tmp_path, "one"), lambda: None).kind == "BertModel"


def test_nothing_that_ships_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts.process, "Process", pytest.fail)
    assert av.load("lists").trace("copy c a f :").fidelity.ok


@pytest.mark.parametrize(
    "values",
    [
        {"kind": "pipeline", "size": 1, "why_alone": ""},
        {"kind": ["BertModel"], "size": 1, "why_alone": ""},
        {"kind": "BertModel", "size": "1", "why_alone": ""},
        {"kind": "BertModel", "size": 1},
        {},
    ],
)
def test_an_answer_that_is_no_verdict_is_not_believed(values: dict[str, object]) -> None:
    with pytest.raises(AttentionVizError, match="process that tests one before loading gave no result"):
        verdicts._read("one", values)


def test_a_dry_run_reads_no_weights(tmp_path: Path) -> None:
    build("llama").save_pretrained(tmp_path)
    folder = check_folder(tmp_path, "one")
    (tmp_path / "model.safetensors").unlink()
    assert dry_run.dry_run(folder).kind == "LlamaForCausalLM"
