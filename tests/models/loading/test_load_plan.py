"""The plan says before anything is loaded what loading then takes."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

import attention_viz as av
from attention_viz.cli import main
from attention_viz.cli.exits import FAILED_CHECK, REFUSED
from attention_viz.models.loading import load_plan as module
from attention_viz.models.loading.load_folder import load_folder
from attention_viz.sources.load_options import LoadOptions, in_bytes
from tests.answers import result_of
from tests.models.loading.allocated import Allocated
from tests.models.loading.large import needs, whole, write_adapter, write_gguf
from tests.models.loading.shapes import EXPERTS, SHAPES, UNCOUNTED, check_peaks


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four layers with 200 MB of weights."""
    torch.manual_seed(0)
    place = tmp_path_factory.mktemp("plan") / "large"
    size = dict(hidden_size=768, intermediate_size=2048, num_attention_heads=12, num_key_value_heads=4)
    config = LlamaConfig(vocab_size=16_000, num_hidden_layers=4, max_position_embeddings=4096, **size)
    LlamaForCausalLM(config).save_pretrained(place)
    return place


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("plan") / "small"
    whole().save_pretrained(place)
    return place


# Limits that their largest matrix fits into.
_LARGEST = {"llama": "5MB", "many_words": "21MB"}


@pytest.fixture(scope="module", params=SHAPES, ids=lambda one: one.__name__)
def shape(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    place = tmp_path_factory.mktemp("plan") / request.param.__name__
    request.param().save_pretrained(place)
    return place


@pytest.mark.parametrize(
    "options",
    [{}, {"dtype": "bfloat16"}, {"max_memory": {"cpu": "2MB"}}, {"max_memory": {"cpu": "2MB"}, "dtype": "bfloat16"}],
    ids=["float32", "bfloat16", "disk", "disk in bfloat16"],
)
def test_the_peak_is_what_torch_makes(options: dict[str, Any], shape: Path) -> None:
    if "max_memory" in options and shape.name in _LARGEST:
        options = {**options, "max_memory": {"cpu": _LARGEST[shape.name]}}
    check_peaks(shape, options)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("make", EXPERTS, ids=lambda one: one.__name__)
def test_a_run_of_experts_is_counted(make: Any, dtype: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    make().save_pretrained(tmp_path)
    model = av.load(tmp_path, dtype=dtype)
    for tokens in (100, 500):
        plan = av.load_plan(str(tmp_path), tokens=tokens, dtype=dtype)
        with Allocated() as running:
            model.trace_ids([5 + at % 100 for at in range(tokens)])
        assert plan.counted
        assert abs((plan.peak - plan.weights) / running.most - 1) < 0.1


@pytest.mark.parametrize("make", UNCOUNTED, ids=lambda one: one.__name__)
def test_a_run_that_cannot_be_counted_never_fits(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(0)
    make().save_pretrained(tmp_path)
    ids = [5 + at % 100 for at in range(300)]
    model = av.load(tmp_path)
    answer = {"decoder_input_ids": ids} if make.__name__ == "relative" else {}
    with Allocated() as running:
        trace = model.trace_ids(ids, **answer)
    plan = av.load_plan(str(tmp_path), tokens=300)
    assert not plan.counted and plan.fits is None and not plan.alternatives
    assert plan.weights < plan.peak <= plan.weights + running.most + 100_000
    assert plan.trace is None or plan.trace <= trace.nbytes + trace.resting_bytes
    words = str(plan)
    assert "at least" in words and "can't be counted beforehand" in words
    assert "at most" not in words and "fit" not in words
    assert plan.trace is None or "A trace takes at least" in words
    assert main(["plan", str(tmp_path), "--format", "json"]) == 0
    found = result_of(capsys.readouterr().out)
    assert found["counted"] is False and found["fits"] is None
    monkeypatch.setattr(module, "free_memory", lambda _device: plan.peak)
    small = av.load_plan(str(tmp_path), tokens=300)
    assert small.fits is False and not small.alternatives and "It does not fit into" in str(small)


def test_allocations_are_counted(tmp_path: Path) -> None:
    save_file({"one": torch.ones(1_000_000)}, tmp_path / "mapped.safetensors")
    with Allocated() as found:
        one = torch.empty(1_000_000)
        other = torch.empty(500_000, dtype=torch.float64)
        del one
        mapped = load_file(tmp_path / "mapped.safetensors")
        third = torch.empty(250_000)
    assert (found.most, found.end) == (8_000_000, 5_000_000)
    assert mapped["one"].nbytes == 4 * third.nbytes == other.nbytes


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"dtype": "bfloat16"},
        {"quantization": "int8"},
        {"quantization": "int4"},
        {"max_memory": {"cpu": "500KB"}},
        {"max_memory": {"cpu": "1500KB"}},
    ],
    ids=str,
)
def test_the_bytes_of_weights_are_those_that_the_loaded_model_has(options: dict[str, Any], small: Path) -> None:
    needs("torchao") if "quantization" in options else None
    plan, model = av.load_plan(str(small), **options), av.load(small, **options)
    in_memory = plan.by_device.get("cpu", 0)
    assert abs(model.nbytes - in_memory) <= 0.03 * plan.weights
    parts: dict[str, Any] = getattr(model.hf_model, "hf_device_map", None) or {}
    assert ("disk" in parts.values()) == ("disk" in plan.by_device) == ("max_memory" in options)
    assert sum(plan.by_device.values()) == plan.weights


def test_what_would_fit_does_fit(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enough = av.load_plan(str(large))
    assert enough.fits and not enough.alternatives
    monkeypatch.setattr(module, "free_memory", lambda _device: enough.peak * 2 // 3)
    plan = av.load_plan(str(large))
    assert plan.fits is False
    assert plan.alternatives[0].startswith('dtype="bfloat16", ')
    assert av.load_plan(str(large), dtype="bfloat16").fits
    disk = next(one for one in plan.alternatives if one.startswith("max_memory"))
    limit = disk.split('"')[3]
    spread = av.load_plan(str(large), max_memory={"cpu": limit})
    assert spread.by_device["disk"] and spread.peak <= enough.peak * 2 // 3 + in_bytes("1MB")
    monkeypatch.setattr(module, "free_memory", lambda _device: None)
    assert av.load_plan(str(large)).fits is None


def test_a_trace_of_fewer_layers_is_offered_if_only_the_trace_is_too_large(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = av.load_plan(str(small), tokens=600)
    monkeypatch.setattr(module, "free_memory", lambda _device: plan.peak + 10_000_000 - 300_000)
    assert "a trace of 2 of the 4 layers" in av.load_plan(str(small), tokens=600).alternatives[0]


def test_the_plan_reads_as_sentences(small: Path) -> None:
    lines = str(av.load_plan(str(small), max_memory={"cpu": "1500KB"})).splitlines()
    assert lines[0].endswith("623,744 numbers take 2.5 MB (float32).")
    assert "on cpu" in lines[1] and "on disk" in lines[1]
    assert lines[2] == "A trace takes 4.6 MB per 1,000 tokens."


def test_the_command_prints_it(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(small), "--tokens", "100"]) == 0
    assert "It fits into" in capsys.readouterr().out
    assert main(["plan", str(small), "--max-memory", "cpu=600KB", "--format", "json"]) == FAILED_CHECK
    found = result_of(capsys.readouterr().out)
    assert found["fits"] is False and found["free"] == 600_000 and found["by_device"]["disk"]
    assert main(["plan", str(small), "--max-memory", "cpu"]) == 2
    assert main(["plan", str(small), "--quantization", "int3"]) == 2
    assert main(["plan", str(small), "--device", "cuda:77"]) == REFUSED


def test_a_command_loads_as_its_options_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "induction", "--model-dtype", "float64"]) == 0
    rule = capsys.readouterr().out
    assert main(["verify", "induction", "--max-memory", "cpu=60KB"]) == 0
    assert "yes" in rule and "yes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "message"),
    [("scratch", "scratch has no weights"), ("no/such/model/here", "."), ("/nowhere", ".")],
)
def test_what_cannot_be_planned_is_refused(name: str, message: str) -> None:
    with pytest.raises(av.errors.AttentionVizError, match=message):
        av.load_plan(name)


@pytest.mark.parametrize("tokens", ["3", 1.5, True, 0, None])
def test_a_length_that_is_no_number_of_tokens_is_refused(tokens: Any, small: Path) -> None:
    with pytest.raises(av.UnsupportedModel, match="tokens must be a whole number of at least 1; got"):
        av.load_plan(str(small), tokens=tokens)


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning")  # peft asks for it
def test_an_adapter_is_planned_with_its_base_model(small: Path, tmp_path: Path) -> None:
    place = write_adapter(shutil.copytree(small, tmp_path / "model"))
    for options in ({}, {"dtype": "bfloat16"}):
        model = av.load(str(place), **options)
        plan = av.load_plan(str(place), tokens=200, **options)
        with Allocated() as running:
            model.trace_ids([5 + at % 100 for at in range(200)])
        assert plan.weights == model.nbytes and plan.numbers == sum(one.numel() for one in model.hf_model.parameters())
        assert abs((plan.peak - plan.weights) / running.most - 1) < 0.1
    for use in (av.load, av.load_plan):
        with pytest.raises(av.UnsupportedModel, match=r"its base model .* would have parts on the disk"):
            use(str(place), max_memory={"cpu": "500KB"})


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_gguf_file_is_planned_with_its_numbers_unpacked(dtype: str, small: Path) -> None:
    file = write_gguf(small, blocks=True)
    model, plan = av.load(str(file), dtype=dtype), av.load_plan(str(file), tokens=200, dtype=dtype)
    with Allocated() as running:
        model.trace_ids([5 + at % 100 for at in range(200)])
    assert plan.weights == model.nbytes
    # While it is read, all numbers are there in float32, and the largest matrix once more.
    unpacked, run = plan.numbers * 4 + 128 * 256 * 4, plan.weights + running.most
    assert abs(plan.peak / max(unpacked, run) - 1) < 0.1
    folder = small.parent / "only" / file.name
    folder.parent.mkdir(exist_ok=True)
    assert av.load_plan(str(shutil.copy(file, folder).parent), tokens=200, dtype=dtype).peak == plan.peak
    with pytest.raises(av.UnsupportedModel, match="quantized already; leave out quantization"):
        av.load_plan(str(file), quantization="int8")


def test_a_broken_gguf_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.gguf"
    file.write_bytes(b"GGUF" + bytes(60))
    for use in (av.load, av.load_plan):
        with pytest.raises(av.errors.ModelNotFound, match=r"can't read the GGUF file .*mine\.gguf"):
            use(str(file))
        with pytest.raises(av.errors.ModelNotFound, match=r"the GGUF file .*none\.gguf' doesn't exist"):
            use(str(tmp_path / "none.gguf"))


def test_a_limit_counts_the_model_as_it_is_held(small: Path) -> None:
    with pytest.raises(av.UnsupportedModel, match="needs 2 MB of memory"):
        load_folder(small, "mine", largest=2_000_000)
    for options in (LoadOptions(dtype="bfloat16"), LoadOptions(max_memory={"cpu": "1500KB"})):
        assert load_folder(small, "mine", options=options, largest=2_000_000).trace_ids([5, 6]).fidelity.ok


@pytest.mark.parametrize(
    ("limit", "size"),
    [(7, 7), ("10GiB", 10 * 2**30), ("1.5 MB", 1_500_000), ("3kb", 3_000), ("2KiB", 2_048), ("8B", 8)],
)
def test_sizes_are_read_in_bytes(limit: object, size: int) -> None:
    assert in_bytes(limit) == size


def test_parts_on_the_disk_are_refused_if_their_file_changed(small: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(small, tmp_path / "mine")
    model = av.load(str(folder), max_memory={"cpu": "500KB"})
    assert model.trace_ids([5, 6, 7]).fidelity.ok
    torch.manual_seed(9)
    whole().save_pretrained(folder)
    with pytest.raises(av.TraceError, match="changed since the model was loaded"):
        model.trace_ids([5, 6, 7])
    for file in folder.glob("*.safetensors"):
        file.unlink()
    with pytest.raises(av.TraceError, match="changed since the model was loaded"):
        model.trace_ids([5, 6, 7])
