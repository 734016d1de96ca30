"""Finds code in a model that isn't from torch or transformers: classes, forwards, methods and hooks.

Such a model isn't refused. More is proven of it: families' own code moves tokens as their inputs' shapes say, into
windows for instance, which is found once per shape; other code may go by the length or the words of each text.
"""

import functools
import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as every_module

from attention_viz.inputs.module_tree import own_names
from attention_viz.recording.weights.unchanged import HOOKS

# Packages whose layers keep each token at its position: they wrap, place, quantize or speed up layers.
_KNOWN = frozenset(sys.stdlib_module_names) | frozenset(
    """
    accelerate apex aqlm attention_viz auto_gptq auto_round awq bitsandbytes causal_conv1d compressed_tensors deepspeed
    eetq fbgemm_gpu fla flash_attn flute fp_quant gptqmodel hqq huggingface_hub kernels liger_kernel llmcompressor
    mamba_ssm optimum peft quanto quark sinq spqr_quant torch torchao transformer_engine transformers unsloth
    unsloth_zoo vptq xformers
    """.split()
)
# The towers of timm move an image's patches, but no words. One set for all texts: classes are remembered by it.
_KNOWN_FOR_WORDS = _KNOWN | {"timm"}
_CODE = (FunctionType, MethodType, functools.partial)


@dataclass(frozen=True, eq=False)
class ForeignCode:
    """Code of someone else's in a module, equal only to itself; `kind` is a class, a function or a hook, in words."""

    module: nn.Module | None
    kind: str
    code: object

    def __eq__(self, other: object) -> bool:
        """Compare by identity, since such code may compare in any way."""
        return isinstance(other, ForeignCode) and self.module is other.module and self.code is other.code

    def __hash__(self) -> int:
        """Hash by identity."""
        return hash((id(self.module), id(self.code)))

    def named_in(self, model: nn.Module) -> str:
        """Name it and its module."""
        path = next((name for name, module in model.named_modules() if module is self.module), "")
        where = "all modules" if self.module is None else f"{path or 'its outermost module'}"
        return f"{self.kind} of {where}" + (f" ({type(self.module).__name__})" if self.module is not None else "")


def foreign_code(modules: Iterable[nn.Module], *, images: bool = True) -> Iterator[ForeignCode]:
    """Yield the code of modules that isn't from known packages.

    Args:
        images: whether code that moves an image's patches alone counts.
    """
    known = _KNOWN if images else _KNOWN_FOR_WORDS
    for name in ("_global_forward_hooks", "_global_forward_pre_hooks"):
        hooks: Mapping[int, object] = getattr(every_module, name)
        yield from (ForeignCode(None, "the hook", hook) for hook in hooks.values() if not _is_known(hook, known))
    for module in modules:
        own, kind = vars(module), type(module)
        if not _is_known_class(kind, kind.forward, known):
            yield ForeignCode(module, "the class", kind)
        for name in own_names(own):
            value = own[name]
            if type(value) in _CODE and not _is_known(value, known):
                yield ForeignCode(module, f"the function {name}", value)
            elif name == "_hf_hook":
                parts = (value, *getattr(value, "hooks", ()))
                yield from (ForeignCode(module, "the hook", one) for one in parts if not _is_known(one, known))
        for name in HOOKS:
            if hooks := own[name]:
                yield from (
                    ForeignCode(module, "the hook", hook) for hook in hooks.values() if not _is_known(hook, known)
                )


def content_of(inputs: Mapping[str, Any]) -> bytes:
    """Return a digest of all tensors among the inputs."""
    found = hashlib.blake2b(digest_size=16)
    for name, one in sorted(inputs.items()):
        if isinstance(one, Tensor):
            found.update(repr((name, tuple(one.shape), one.dtype)).encode())
            found.update(one.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.digest()


def _is_known(code: Any, known: frozenset[str]) -> bool:
    """Return whether a function, and all that it wraps, is from known packages."""
    left = [code]
    while left:
        code = left.pop()
        inside = code.func if isinstance(code, functools.partial) else getattr(code, "__func__", None)
        home = getattr(code, "__globals__", {}).get("__name__") or getattr(type(code), "__module__", "")
        if inside is None and home.partition(".")[0] not in known:
            return False
        left += [one for one in (inside, getattr(code, "__wrapped__", None)) if one is not None]
    return True


@functools.lru_cache(maxsize=1 << 12)
def _is_known_class(kind: type, forward: Callable[..., object], known: frozenset[str]) -> bool:
    return kind.__module__.partition(".")[0] in known and _is_known(forward, known)
