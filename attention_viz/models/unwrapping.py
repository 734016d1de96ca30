"""Find the transformers model inside other libraries' wrappers, recognised by their class's module.

None of those libraries is imported.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

from torch import nn

from attention_viz.errors import UnsupportedModel
from attention_viz.sources.huggingface import PreTrainedModel, PreTrainedTokenizerBase

OTHER_WAYS = (
    "To record any module's calls to torch attention, use av.record(). For TransformerLens's cache, use "
    "av.Trace.from_cache; for results of other code, av.Trace.from_qkv or av.Trace.from_weights"
)
COMPILED = "The model was compiled. It runs here without torch.compile."

# Wrappers inside each other, such as a compiled model in a pipeline.
_DEEPEST = 10


@dataclass(frozen=True)
class Held:
    """An object passed as a model, opened step by step; `notes` are for readers of its traces."""

    model: Any
    tokenizer: Any
    notes: tuple[str, ...] = ()

    def opened(self, model: Any, note: str, tokenizer: Any = None) -> "Held":
        """Replace the model by the inner one; a passed tokenizer takes precedence over the inner one."""
        beside = tokenizer if self.tokenizer is None else self.tokenizer
        return Held(model, beside, (*self.notes, note) if note not in self.notes else self.notes)


def homes(thing: object) -> set[str]:
    """Return the modules that define an object's class and its bases, each with all its parents."""
    names = (kind.__module__.split(".") for kind in type(thing).__mro__)
    return {".".join(parts[:count]) for parts in names for count in range(1, len(parts) + 1)}


def unwrapped(thing: object, tokenizer: object = None) -> Held:
    """Find the transformers model that an object is or holds."""
    held = Held(thing, tokenizer)
    for _ in range(_DEEPEST):
        home = homes(held.model)
        found = next((opener for name, opener in _OPENERS.items() if name in home), None)
        inner = held if found is None else found(held)
        if inner.model is held.model:
            break
        held = inner
    _refuse_others(held.model)
    if COMPILED not in held.notes and any(_is_compiled(module) for module in held.model.modules()):
        return replace(held, notes=(*held.notes, COMPILED))
    return held


def _compiled(held: Held) -> Held:
    inside = getattr(held.model, "_orig_mod", None)
    return held if inside is None else held.opened(inside, COMPILED)


def _parallel(held: Held) -> Held:
    kind = type(held.model).__name__
    return held.opened(held.model.module, f"The module inside {kind} runs on one device.")


def _sentences(held: Held) -> Held:
    """Open a SentenceTransformer or CrossEncoder, or the module in it that holds the transformers model."""
    outer, found = held.model, [inside for _, inside in _within(held.model)]
    if len(found) != 1:
        return held
    note = (
        f"This is the {type(found[0]).__name__} inside the {type(outer).__name__}. Steps before it (prompts) and after "
        "it (pooling, activation) are left out."
    )
    tokenizer = getattr(outer, "processor", None) or getattr(outer, "tokenizer", None)
    return held.opened(found[0], note, tokenizer)


def _pipeline(held: Held) -> Held:
    pipeline = held.model
    beside = (getattr(pipeline, name, None) for name in ("processor", "image_processor", "feature_extractor"))
    words = getattr(pipeline, "tokenizer", None)
    # A model that hears or sees is read by its processor; of one that also speaks, that has the tokenizer.
    reader = next((one for one in beside if one is not None), None)
    reads_text = getattr(pipeline.model, "main_input_name", "input_ids") == "input_ids"
    tokenizer = words if words is not None and (reads_text or reader is None) else reader
    return held.opened(pipeline.model, f"This is the model inside the {type(pipeline).__name__}.", tokenizer)


def _nnsight(held: Held) -> Held:
    kind = type(held.model).__name__
    inside = vars(held.model).get("_module", vars(held.model).get("_model"))
    if inside is None:
        return held
    if isinstance(inside, nn.Module) and any(parameter.is_meta for parameter in inside.parameters()):
        raise UnsupportedModel(f"the weights of this {kind} aren't loaded; create it with {kind}(…, dispatch=True)")
    note = f"This is the model inside the {kind}, without interventions."
    return held.opened(inside, note, vars(held.model).get("tokenizer"))


def _bridge(held: Held) -> Held:
    """Open TransformerLens's TransformerBridge; its HookedTransformer holds no transformers model."""
    inside = getattr(held.model, "original_model", None)
    if inside is None:
        return held
    note = f"This is the model inside the {type(held.model).__name__}, with its hooks."
    return held.opened(inside, note, getattr(held.model, "tokenizer", None))


# By where a class is defined: what opens its objects.
_OPENERS: dict[str, Callable[[Held], Held]] = {
    "torch._dynamo": _compiled,
    "torch.nn.parallel": _parallel,
    "sentence_transformers": _sentences,
    "transformers.pipelines": _pipeline,
    "nnsight": _nnsight,
    "transformer_lens": _bridge,
}


def _is_compiled(module: nn.Module) -> bool:
    """Return whether torch.compile was applied to a module, its call or its forward."""
    return (
        getattr(module, "_compiled_call_impl", None) is not None
        or hasattr(vars(module).get("forward"), "_torchdynamo_orig_callable")
        or "torch._dynamo" in homes(module)
    )


def _refuse_others(thing: Any) -> None:
    """Refuse anything but a transformers model, with or without PEFT adapters."""
    if "peft" in homes(thing) and hasattr(thing, "peft_config"):
        return
    if isinstance(thing, PreTrainedModel):
        return
    kind = type(thing).__name__
    got = f"wrap takes a transformers model, not {kind}"
    if isinstance(thing, str | PathLike):
        raise UnsupportedModel(f"{got}; to load a model by its name, call av.load({str(thing)[:100]!r})")
    if isinstance(thing, type):
        raise UnsupportedModel(f"{got} {thing.__name__}, a class; pass a model, {thing.__name__}.from_pretrained(…)")
    if hasattr(thing, "facts") and hasattr(thing, "hf_model"):
        raise UnsupportedModel(f"{got}, which is wrapped already; use it as it is")
    if isinstance(thing, PreTrainedTokenizerBase):
        raise UnsupportedModel(f"{got}, a tokenizer; call av.wrap(hf_model, tokenizer)")
    inside = list(_within(thing))
    if len(inside) == 1:
        path, model = inside[0]
        raise UnsupportedModel(
            f"{got}, which holds a {type(model).__name__}; call av.wrap(x{path}), where x is the {kind}"
        )
    if inside:
        listed = ", ".join(f"x{path} ({type(model).__name__})" for path, model in inside)
        raise UnsupportedModel(f"{got}, which holds {len(inside)} of them; pass one, {listed}, where x is the {kind}")
    raise UnsupportedModel(f"{got}, which holds none. {OTHER_WAYS}")


def _within(thing: Any) -> Iterator[tuple[str, PreTrainedModel]]:
    """Yield the outermost transformers models that an object holds, each with its path."""
    if isinstance(thing, PreTrainedModel):
        yield "", thing
    elif isinstance(thing, nn.Module):
        for name, child in thing.named_children():
            step = f"[{name}]" if name.isdigit() else f".{name}"
            yield from ((step + path, model) for path, model in _within(child))
    else:
        for name, value in vars(thing).items() if hasattr(thing, "__dict__") else ():
            if isinstance(value, nn.Module):
                yield from ((f".{name}{path}", model) for path, model in _within(value))
