"""Choose how to quantize a model while it is loaded: by torchao or bitsandbytes, whichever is installed."""

import importlib
import importlib.util
from typing import Any, cast

import torch

from attention_viz.errors import UnsupportedModel
from attention_viz.sources.huggingface import transformers

_INSTALL = 'pip install "attention-viz[large]"'


def quantizer_of(asked: Any, device: torch.device, dtype: torch.dtype | str) -> Any:
    """Return transformers' quantization configuration for "int8" or "int4"; others as they are.

    For "int8", torchao rounds the weights alone, so it comes before bitsandbytes, which rounds activations, too. For
    "int4", bitsandbytes packs two numbers into a byte. On a CPU it rounds the activations to bfloat16, so in full
    precision torchao comes first there, although it takes a byte per number.
    """
    if asked is None or not isinstance(asked, str):
        return asked
    packs = asked == "int4" and (device.type != "cpu" or dtype is torch.bfloat16)
    makers = (_bitsandbytes, _torchao) if packs else (_torchao, _bitsandbytes)
    for make in makers:
        found = make(asked, dtype)
        if found is not None:
            return found
    raise UnsupportedModel(
        f'quantization="{asked}" needs torchao or bitsandbytes, and neither is installed; run {_INSTALL}'
    )


def method_of(quantizer: Any) -> str:
    """Return a configuration's method: such as "torchao" or "bitsandbytes"."""
    method = quantizer.quant_method
    return str(getattr(method, "value", method))


def described(quantizer: Any) -> str:
    """Return what a configuration does, such as "int4 by bitsandbytes"."""
    kind = str(type(getattr(quantizer, "quant_type", None)).__name__)
    four = getattr(quantizer, "load_in_4bit", False) or getattr(quantizer, "bits", None) == 4
    four = (
        four
        or "int4" in kind.lower()
        or "int4" in str(getattr(getattr(quantizer, "quant_type", None), "weight_dtype", ""))
    )
    eight = getattr(quantizer, "load_in_8bit", False) or "int8" in kind.lower()
    return f"{'int4 ' if four else 'int8 ' if eight else ''}by {method_of(quantizer)}"


def _torchao(asked: str, _dtype: torch.dtype | str) -> Any:
    if importlib.util.find_spec("torchao") is None:
        return None
    quantization: Any = importlib.import_module("torchao.quantization")
    if asked == "int8":
        return transformers.TorchAoConfig(quantization.Int8WeightOnlyConfig())
    return transformers.TorchAoConfig(quantization.IntxWeightOnlyConfig(weight_dtype=cast(Any, torch).int4))


def _bitsandbytes(asked: str, dtype: torch.dtype | str) -> Any:
    if importlib.util.find_spec("bitsandbytes") is None:
        return None
    if asked == "int8":
        return transformers.BitsAndBytesConfig(load_in_8bit=True)
    compute = dtype if isinstance(dtype, torch.dtype) else torch.bfloat16
    return transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=compute)
