"""A model is the same however it is held: offloaded, spread, quantized, unpacked or with an adapter."""

from pathlib import Path
from typing import Any

import pytest
import torch

import attention_viz as av
from tests.models.loading.large import FORMS, IDS, LAYERS, MOVED, dense, needs, whole, write_gguf
from tests.models.loading.shapes import SHAPES, check_peaks

pytestmark = [
    pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning"),  # peft asks for it
    pytest.mark.filterwarnings("ignore:MatMul8bitLt"),
    pytest.mark.filterwarnings("ignore:.*KernelPreference|.*ScaleCalculationMode"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # while torchao is imported
]

# bitsandbytes also rounds activations, to 8 bits or bfloat16, so another attention function makes more difference.
BOUND = {"bitsandbytes int8": 3e-2, "bitsandbytes int4": 3e-2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("large") / "model"
    whole().save_pretrained(place)
    return place


@pytest.fixture(scope="module")
def loaded() -> dict[str, av.AttentionModel]:
    return {}


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, folder: Path, loaded: dict[str, av.AttentionModel]) -> str:
    name: str = request.param
    if name not in loaded:
        loaded[name] = FORMS[name](folder)
    return name


def own_attention(model: av.AttentionModel) -> tuple[torch.Tensor, ...]:
    """What transformers itself returns for the same loaded model."""
    hf_model: Any = model.hf_model
    before = hf_model.config._attn_implementation
    hf_model.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            return hf_model(torch.tensor([IDS]), output_attentions=True).attentions
    finally:
        hf_model.set_attn_implementation(before)


def test_weights_are_those_that_transformers_returns(form: str, loaded: dict[str, av.AttentionModel]) -> None:
    trace, expected = loaded[form].trace_ids(IDS), own_attention(loaded[form])
    assert len(expected) == LAYERS
    for layer, weights in enumerate(expected):
        own = trace.attention(layer).weights.float()
        torch.testing.assert_close(own, weights[0].float(), rtol=0, atol=BOUND.get(form, 2e-6))
    assert trace.fidelity.ok


def test_the_output_is_that_of_the_same_numbers_in_plain_parameters(
    form: str, loaded: dict[str, av.AttentionModel]
) -> None:
    with torch.no_grad():
        expected = dense(form, loaded[form])(torch.tensor([IDS])).logits[0]
    found = loaded[form].trace_ids(IDS).output
    bound = {**dict.fromkeys(MOVED, 1e-6), **BOUND}.get(form, 1e-4)
    assert float((found - expected).abs().max()) <= bound * float(expected.abs().max())


def test_rounding_changes_the_model_and_moving_it_does_not(form: str, loaded: dict[str, av.AttentionModel]) -> None:
    with torch.no_grad():
        plain = whole()(torch.tensor([IDS])).logits[0]
    off = float((loaded[form].trace_ids(IDS).output - plain).abs().max() / plain.abs().max())
    assert off <= 1e-6 if form in MOVED else 1e-4 < off


def test_bytes_in_memory_are_those_stored(form: str, loaded: dict[str, av.AttentionModel]) -> None:
    size = sum(one.numel() * 4 for one in whole().parameters())
    share = loaded[form].nbytes / size
    least, most = {
        "disk": (0, 0.2),
        "device map": (0.2, 0.5),
        "CPU offload": (0, 0.1),
        "torchao int8": (0.25, 0.4),
        "torchao int4": (0.25, 0.4),
        "bitsandbytes int8": (0.25, 0.4),
        "bitsandbytes int4": (0.1, 0.3),
    }.get(form, (0.99, 1.1))
    assert least <= share <= most


@pytest.mark.parametrize("shape", SHAPES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("quantization", ["int8", "int4"])
def test_the_plan_knows_what_a_quantized_model_takes(quantization: str, shape: Any, tmp_path: Path) -> None:
    needs("torchao")
    shape().save_pretrained(tmp_path)
    check_peaks(tmp_path, {"quantization": quantization})


def test_a_gguf_file_of_full_precision_is_the_same_model(folder: Path) -> None:
    needs("gguf")
    model = av.load(write_gguf(folder, blocks=False))
    with torch.no_grad():
        expected = whole()(torch.tensor([IDS])).logits[0]
    trace = model.trace_ids(IDS)
    torch.testing.assert_close(trace.output, expected, rtol=1e-5, atol=1e-5)
    assert "model-F32.gguf" in trace.provenance.notes[0]
    assert len(trace.provenance.sha256 or "") == 64


def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path) -> None:
    needs("gguf")
    file = tmp_path / "mine.gguf"
    file.write_bytes(b"GGUF" + bytes(60))
    with pytest.raises(av.errors.AttentionVizError, match=r"mine\.gguf"):
        av.load(file)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quantization": "int3"}, "unknown quantization 'int3'; choose int8, int4"),
        ({"quantization": 4}, "quantization takes int8, int4 or a quantization configuration"),
        ({"dtype": "float8"}, "unknown dtype 'float8'; choose auto, float64"),
        ({"device": "my GPU"}, "unknown device 'my GPU'; choose auto, cpu"),
        ({"device": "disk"}, "can't run on a disk alone"),
        ({"device": "meta"}, "a model on the meta device has no numbers"),
        ({"device": {}}, "device takes a name or a device map"),
        ({"device": {"lm_head": -1}}, "a device map names a device per part"),
        ({"device": {"head": "cpu"}}, "the device map names 'head', which .* doesn't have"),
        ({"device": {"lm_head": "cpu"}}, "the device map leaves out model.embed_tokens.weight"),
        ({"device": {"": "disk"}}, "puts everything on the disk"),
        ({"device": {"": "cpu", "lm_head": "disk"}}, "names 'lm_head' and a part that has it"),
        ({"device": {"": "nodevice"}}, "this machine has no device 'nodevice'"),
        ({"max_memory": {"cpu": "much"}}, "a number of bytes or a size such as \"10GiB\"; got 'much'"),
        ({"max_memory": {"disk": "1GB"}}, "max_memory names a device, such as cpu"),
        ({"max_memory": {}}, "max_memory must name devices"),
        ({"max_memory": {"cpu": "10KB"}}, "the largest matrix of .* has 131,072 bytes, more than max_memory allows"),
    ],
)
def test_options_that_make_no_sense_are_refused_by_name(options: dict[str, Any], message: str, folder: Path) -> None:
    with pytest.raises(av.UnsupportedModel, match=message):
        av.load(folder, **options)
    with pytest.raises(av.UnsupportedModel, match=message):
        av.load_plan(str(folder), **options)


def test_a_quantized_model_does_not_wait_on_the_disk(folder: Path) -> None:
    needs("torchao")
    with pytest.raises(av.UnsupportedModel, match="int8 by torchao, doesn't fit into max_memory"):
        av.load(folder, quantization="int8", max_memory={"cpu": "400KB"})


def test_a_missing_package_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(av.UnsupportedModel, match=r"needs torchao or bitsandbytes.*attention-viz\[large\]"):
        av.load(folder, quantization="int8")
    with pytest.raises(av.UnsupportedModel, match=r"accelerate isn't installed; run pip install .*\[large\]"):
        av.load(folder, max_memory={"cpu": "1GB"})
