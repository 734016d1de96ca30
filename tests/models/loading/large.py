"""A small model in the forms in which large ones are held, made from scratch and saved to a folder."""

import copy
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import accelerate
import peft
import pytest
import torch
from accelerate.hooks import ModelHook, add_hook_to_module
from accelerate.utils import recursively_apply
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM

import attention_viz as av

IDS = [5, 17, 33, 42, 8, 61, 3, 9, 33, 42, 8, 12]
LAYERS = 4
_PARTS = {"model.embed_tokens": "cpu", "model.norm": "cpu", "model.rotary_emb": "cpu", "lm_head": "disk"}


def whole() -> LlamaForCausalLM:
    """Four layers with random weights, larger than at the start of training, so that heads differ."""
    torch.manual_seed(0)
    size = dict(hidden_size=128, intermediate_size=256, num_attention_heads=4, num_key_value_heads=2)
    config = LlamaConfig(vocab_size=128, num_hidden_layers=LAYERS, max_position_embeddings=256, **size)
    model = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.Linear):
                module.weight.mul_(3)
    return model


def needs(*packages: str) -> None:
    """Skip a test whose packages aren't installed."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} isn't installed; run make large")


def on_disk(folder: Path) -> av.AttentionModel:
    return av.load(folder, max_memory={"cpu": "500KB"})


def by_map(folder: Path) -> av.AttentionModel:
    layers = {f"model.layers.{layer}": "disk" if layer else "cpu" for layer in range(LAYERS)}
    return av.load(folder, device={**_PARTS, **layers})


def in_memory_apart(folder: Path) -> av.AttentionModel:
    """As beside a GPU: what the device doesn't hold waits in the CPU's memory, here on the way to the same CPU."""
    model: Any = LlamaForCausalLM.from_pretrained(folder)
    return av.wrap(accelerate.cpu_offload(model, execution_device=torch.device("cpu")))


class Moved(ModelHook):
    """Copies whatever passes a module, as a move to another GPU and back does."""

    def pre_forward(self, module: nn.Module, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        return recursively_apply(torch.clone, args), recursively_apply(torch.clone, kwargs)

    def post_forward(self, module: nn.Module, output: Any) -> Any:
        return recursively_apply(torch.clone, output)


def on_two_devices(folder: Path) -> av.AttentionModel:
    """Accelerate's hooks on every part, as on two GPUs; what passes the second half is moved there and back."""
    model: Any = LlamaForCausalLM.from_pretrained(folder)
    parts = ("embed_tokens", "rotary_emb", "norm", *(f"layers.{layer}" for layer in range(LAYERS)))
    places: dict[str, Any] = {"lm_head": "cpu", **{f"model.{part}": "cpu" for part in parts}}
    model = accelerate.dispatch_model(model, places, main_device="cpu", force_hooks=True)
    for layer in model.model.layers[2:]:
        add_hook_to_module(layer, Moved(), append=True)
    return av.wrap(model)


def eight_bits(folder: Path) -> av.AttentionModel:
    needs("torchao")
    return av.load(folder, quantization="int8")


def four_bits(folder: Path) -> av.AttentionModel:
    needs("torchao")
    return av.load(folder, quantization="int4")


def bitsandbytes_eight(folder: Path) -> av.AttentionModel:
    needs("bitsandbytes")
    from transformers import BitsAndBytesConfig

    return av.load(folder, quantization=BitsAndBytesConfig(load_in_8bit=True))


def bitsandbytes_four(folder: Path) -> av.AttentionModel:
    needs("bitsandbytes")
    from transformers import BitsAndBytesConfig

    # On some CPUs it computes in bfloat16, whatever the model is in.
    config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16)
    return av.load(folder, dtype="bfloat16", quantization=config)


def unpacked(folder: Path) -> av.AttentionModel:
    needs("gguf")
    return av.load(write_gguf(folder, blocks=True))


def adapted(folder: Path) -> av.AttentionModel:
    return av.load(write_adapter(folder))


FORMS: dict[str, Callable[[Path], av.AttentionModel]] = {
    "disk": on_disk,
    "device map": by_map,
    "CPU offload": in_memory_apart,
    "two devices": on_two_devices,
    "torchao int8": eight_bits,
    "torchao int4": four_bits,
    "bitsandbytes int8": bitsandbytes_eight,
    "bitsandbytes int4": bitsandbytes_four,
    "GGUF": unpacked,
    "LoRA": adapted,
}
MOVED = ("disk", "device map", "CPU offload", "two devices")


def dense(form: str, model: av.AttentionModel) -> LlamaForCausalLM:
    """The whole model with the same numbers in plain parameters."""
    plain = whole()
    held: Any = model.hf_model
    if form in MOVED:
        return plain
    if form == "LoRA":
        return copy.deepcopy(held).merge_and_unload()
    if form == "GGUF":
        plain.load_state_dict(held.state_dict())
        return plain
    for path, module in plain.named_modules():
        if isinstance(module, nn.Linear):
            module.weight = nn.Parameter(_numbers(held.get_submodule(path), held.dtype).float(), requires_grad=False)
    return plain


def _numbers(module: Any, dtype: torch.dtype) -> Tensor:
    """A quantized matrix's numbers: what it makes of the unit vectors, which no rounding of its input changes."""
    with torch.no_grad():
        return module(torch.eye(module.in_features, dtype=dtype)[None])[0].T.contiguous()


def write_adapter(folder: Path) -> Path:
    """Save an adapter around the model, in a folder beside the model's."""
    torch.manual_seed(1)
    where = ["q_proj", "k_proj", "v_proj", "o_proj"]
    config = peft.LoraConfig(r=3, init_lora_weights=False, target_modules=where)
    place = folder.parent / "adapter"
    peft.get_peft_model(LlamaForCausalLM.from_pretrained(folder), config).save_pretrained(place)
    file = place / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"base_model_name_or_path": folder.name}))
    return place


def write_gguf(folder: Path, *, blocks: bool) -> Path:
    """Write the model as llama.cpp does: names, queries and keys in pairs of rows, and 8 bits per number or 32."""
    import gguf
    from gguf.quants import quantize

    model, file = whole(), folder.parent / f"model-{'Q8_0' if blocks else 'F32'}.gguf"
    config: Any = model.config
    out = gguf.GGUFWriter(file, "llama")
    out.add_name("four layers")
    out.add_block_count(LAYERS)
    out.add_context_length(config.max_position_embeddings)
    out.add_embedding_length(config.hidden_size)
    out.add_feed_forward_length(config.intermediate_size)
    out.add_head_count(config.num_attention_heads)
    out.add_head_count_kv(config.num_key_value_heads)
    out.add_layer_norm_rms_eps(config.rms_norm_eps)
    out.add_rope_freq_base(config.rope_parameters["rope_theta"])
    out.add_vocab_size(config.vocab_size)
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for key, tensor in model.state_dict().items():
        part = key.split(".")[-2]
        numbers = tensor if part not in heads else _in_pairs(tensor, heads[part])
        array = numbers.contiguous().numpy()
        if blocks and array.ndim == 2:
            kind = gguf.GGMLQuantizationType.Q8_0
            out.add_tensor(_named(key), quantize(array, kind), raw_dtype=kind)
        else:
            out.add_tensor(_named(key), array)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return file


def _in_pairs(tensor: Tensor, heads: int) -> Tensor:
    """Order rows as llama.cpp's rotary positions do."""
    return tensor.reshape(heads, 2, -1, tensor.shape[1]).transpose(1, 2).reshape(tensor.shape)


_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def _named(key: str) -> str:
    path = key.removesuffix(".weight")
    if not path.startswith("model.layers."):
        return f"{_NAMES[path]}.weight"
    number, inner = path.removeprefix("model.layers.").split(".", 1)
    return f"blk.{number}.{_NAMES[inner]}.weight"
