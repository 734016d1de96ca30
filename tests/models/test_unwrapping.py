"""`av.wrap` takes what people hold: the model inside is found, or the message has the line that works."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import peft
import pytest
import tokenizers
import torch
import transformers
from torch import Tensor, nn

import attention_viz as av
from tests.models.families import build, ids
from tests.models.loading.test_load_folder import word_tokenizer

# PEFT asks transformers by an older name.
pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")


class Classifier(nn.Module):
    """A wrapper as people write them."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body, self.config = body, body.config

    def forward(self, **inputs: Tensor) -> Any:
        return self.body(**inputs)


class Trainer:
    """Holds a model as trainers do: it is no module itself."""

    def __init__(self, model: nn.Module) -> None:
        self.args, self.model = None, model


class Envoy:
    """What nnsight 0.8 puts around a model: everything it doesn't have itself is looked up in the module."""

    def __init__(self, module: nn.Module, tokenizer: object = None) -> None:
        self._module, self.tokenizer = module, tokenizer

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._module, name)


Envoy.__module__ = "nnsight.intervention.envoy"


@pytest.fixture(scope="module")
def sentences(minilm: av.AttentionModel) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library's own, while it loads
        from sentence_transformers import SentenceTransformer

        yield SentenceTransformer(minilm.hf_model.name_or_path, device="cpu")


@pytest.mark.parametrize("part", ["the whole", "its first module"])
def test_a_sentence_transformer_is_shown_by_the_model_inside(part: str, sentences: Any) -> None:
    inside, tokenizer = sentences[0].auto_model, sentences.tokenizer
    model = av.wrap(sentences if part == "the whole" else sentences[0])
    assert model.hf_model is inside
    trace = model.trace("The cat sat on the mat")
    with torch.no_grad():
        expected = inside(**tokenizer("The cat sat on the mat", return_tensors="pt")).last_hidden_state[0]
    torch.testing.assert_close(trace.output, expected)
    assert trace.fidelity.ok
    assert any("BertModel inside the" in note and "pooling" in note for note in trace.provenance.notes)
    # What it makes of a text by pooling follows from the trace's output.
    pooled = nn.functional.normalize(trace.output.mean(dim=0), dim=0)
    np.testing.assert_allclose(pooled, sentences.encode("The cat sat on the mat"), atol=1e-5)


def test_a_cross_encoder_is_shown_by_the_model_inside(tmp_path: Path) -> None:
    build("bert with a head", num_labels=1).save_pretrained(tmp_path)
    word_tokenizer().save_pretrained(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sentence_transformers import CrossEncoder

        encoder = CrossEncoder(str(tmp_path), device="cpu")
    model = av.wrap(encoder)
    assert model.hf_model is encoder[0].auto_model
    trace = model.trace("the bank", "a river")
    assert trace.fidelity.ok
    assert "inside the CrossEncoder" in trace.provenance.notes[0]


def test_a_pipeline_is_shown_by_its_model_and_tokenizer() -> None:
    plain, tokenizer = build("bert with a head"), word_tokenizer()
    pipeline = transformers.pipeline("text-classification", model=plain, tokenizer=tokenizer)
    trace = av.wrap(pipeline).trace("the bank")
    assert trace.provenance.notes == ("This is the model inside the TextClassificationPipeline.",)
    torch.testing.assert_close(trace.output, av.wrap(plain, tokenizer).trace("the bank").output)


def test_a_pipeline_of_pictures_is_shown_with_its_processor() -> None:
    size = dict(num_hidden_layers=2, hidden_size=32, num_attention_heads=2, intermediate_size=64)
    model = transformers.ViTForImageClassification(transformers.ViTConfig(**size, image_size=32, patch_size=8)).eval()
    processor = transformers.ViTImageProcessorPil(size={"height": 32, "width": 32}, do_convert_rgb=True)
    pipeline = transformers.pipeline("image-classification", model=model, image_processor=processor)
    trace = av.wrap(pipeline).trace(av.Picture(np.linspace(0, 1, 32 * 32 * 3).reshape(32, 32, 3)))
    assert trace.fidelity.ok
    assert trace.provenance.notes[0] == "This is the model inside the ImageClassificationPipeline."


def test_data_parallel_is_taken_off() -> None:
    plain = build("llama")
    trace = av.wrap(nn.DataParallel(plain)).trace_ids(ids(9))
    torch.testing.assert_close(trace.output, av.wrap(plain).trace_ids(ids(9)).output, rtol=0, atol=0)
    assert "DataParallel" in trace.provenance.notes[0]


def test_an_nnsight_model_is_shown_by_the_model_inside() -> None:
    plain, tokenizer = build("bert with a head"), word_tokenizer()
    model = av.wrap(Envoy(plain, tokenizer))
    assert (model.hf_model, model.tokenizer) == (plain, tokenizer)
    assert "without interventions" in model.trace("the bank").provenance.notes[0]
    with pytest.raises(av.UnsupportedModel, match=r"aren't loaded; create it with Envoy\(…, dispatch=True\)"):
        av.wrap(Envoy(build("llama").to("meta")))


def test_wrappers_inside_each_other_are_all_taken_off_and_told() -> None:
    pipeline = transformers.pipeline("text-classification", model=build("bert with a head"), tokenizer=word_tokenizer())
    pipeline.model = nn.DataParallel(torch.compile(pipeline.model, backend="eager"))
    told = av.wrap(pipeline).trace("the bank").provenance.notes
    words = ("inside the TextClassificationPipeline", "inside DataParallel", "without torch.compile")
    assert [word in note for word, note in zip(words, told, strict=True)] == [True] * 3


def test_a_tokenizer_that_is_handed_over_counts_before_the_one_inside() -> None:
    pipeline = transformers.pipeline("text-classification", model=build("bert with a head"), tokenizer=word_tokenizer())
    other = word_tokenizer()
    assert av.wrap(pipeline, other).tokenizer is other


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (lambda: Classifier(build("llama")), r"not Classifier, which holds a LlamaForCausalLM; .* av\.wrap\(x\.body\)"),
        (lambda: nn.Sequential(nn.Linear(2, 2), build("llama")), r"av\.wrap\(x\[1\]\), where x is the Sequential"),
        (lambda: Trainer(build("llama")), r"not Trainer, which holds a LlamaForCausalLM; .* av\.wrap\(x\.model\)"),
        (lambda: Trainer(Classifier(build("llama"))), r"av\.wrap\(x\.model\.body\)"),
        (
            lambda: nn.ModuleDict({"ask": build("bert"), "answer": build("llama")}),
            r"holds 2 of them; pass one, x\.ask \(BertModel\), x\.answer \(LlamaForCausalLM\)",
        ),
        (lambda: build("llama").model.layers[0], r"not LlamaDecoderLayer, which holds none\. .*av\.record\(\)"),
        (lambda: build("llama").model.layers[0].self_attn, "not LlamaAttention, which holds none"),
        (lambda: nn.Linear(2, 2), r"not Linear, which holds none\. .*av\.record\(\)"),
        (lambda: "gpt2", r"not str; to load a model by its name, call av\.load\('gpt2'\)"),
        (lambda: transformers.BertModel, r"BertModel, a class; pass a model, BertModel\.from_pretrained\(…\)"),
        (lambda: av.wrap(build("llama")), "not AttentionModel, which is wrapped already"),
        (word_tokenizer, r"a tokenizer; call av\.wrap\(hf_model, tokenizer\)"),
        (lambda: None, "not NoneType"),
        (lambda: [build("llama")], "not list"),
        (lambda: {"model": build("llama")}, "not dict"),
    ],
)
def test_what_holds_no_model_or_several_is_refused_with_the_line_that_works(thing: Any, message: str) -> None:
    with pytest.raises(av.UnsupportedModel, match=message):
        av.wrap(thing())


@pytest.mark.parametrize(
    ("tokenizer", "message"),
    [
        ("gpt2", r"not its name, 'gpt2'; call transformers\.AutoTokenizer\.from_pretrained\('gpt2'\)"),
        (Path("gpt2"), r"AutoTokenizer\.from_pretrained\('gpt2'\)"),
        (transformers.AutoTokenizer, "a tokenizer or a processor of transformers; got the class AutoTokenizer"),
        ({}, "got dict"),
        (str.split, "got method_descriptor"),
        (build("llama").config, "got LlamaConfig"),
        (transformers.ViTImageProcessorPil(), "reads text, but ViTImageProcessorPil has no tokenizer"),
    ],
)
def test_what_is_no_tokenizer_is_refused_by_name(tokenizer: Any, message: str) -> None:
    with pytest.raises(av.UnusableText, match=message):
        av.wrap(build("llama"), tokenizer)


@pytest.mark.parametrize("text", ["The cat sat on the mat", "unhappy Éa don't [MASK] zzqx 🦊"])
def test_a_bare_tokenizer_reads_as_the_one_of_transformers_does(text: str, minilm: av.AttentionModel) -> None:
    folder = Path(minilm.hf_model.name_or_path)
    bare = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    trace, expected = av.wrap(minilm.hf_model, bare).trace(text), minilm.trace(text)
    assert trace.query_tokens() == expected.query_tokens()
    bare.no_padding()
    bare.no_truncation()
    assert list(trace.query_tokens().numbers) == bare.encode(text).ids
    torch.testing.assert_close(trace.output, expected.output, rtol=0, atol=0)


VIRTUAL = {
    "prompt tuning": lambda: peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3),
    "prefix tuning": lambda: peft.PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3),
    "p tuning": lambda: peft.PromptEncoderConfig(task_type="CAUSAL_LM", num_virtual_tokens=3, encoder_hidden_size=8),
}


@pytest.mark.parametrize("kind", VIRTUAL)
def test_virtual_tokens_are_shown_before_the_words(kind: str) -> None:
    plain = build("llama")
    expected = av.wrap(plain).trace_ids(ids(9)).output
    model = peft.get_peft_model(plain, VIRTUAL[kind]()).eval()
    trace = av.wrap(model).trace_ids(ids(9))
    assert trace.fidelity.ok
    with torch.no_grad():
        torch.testing.assert_close(trace.output, model(input_ids=ids(9)).logits[0])
    assert trace.key_tokens().labels[:4] == (*(f"virtual token {one}" for one in range(3)), str(int(ids(9)[0, 0])))
    assert trace.weights(0, 0).shape == ((9, 12) if kind == "prefix tuning" else (12, 12))
    torch.testing.assert_close(av.wrap(model.get_base_model()).trace_ids(ids(9)).output, expected)


def test_a_model_with_an_adapter_is_taken_as_it_is() -> None:
    config = peft.LoraConfig(task_type="CAUSAL_LM", init_lora_weights=False)
    model = peft.get_peft_model(build("llama"), config).eval()
    trace = av.wrap(model).trace_ids(ids(9))
    assert trace.fidelity.ok
    with torch.no_grad():
        torch.testing.assert_close(trace.output, model(input_ids=ids(9)).logits[0])
