"""The numbers of *Around attention*, from plain transformers with hooks on its modules."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from attention_viz.lesson.language import LANGUAGE_MODEL
from attention_viz.lesson.scene import RunText, Scene
from attention_viz.sources import CATALOGUE


@dataclass(frozen=True, eq=False)
class Passed:
    """One position's way through the plain model, as its own modules put it out."""

    embedding: Tensor
    attention: tuple[Tensor, ...]
    mlp: tuple[Tensor, ...]
    normed_input: Tensor
    logits: Tensor


@cache
def _plain() -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    path = CATALOGUE[LANGUAGE_MODEL].path
    return AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval(), AutoTokenizer.from_pretrained(path)


def passed(text: str, position: int, layers: int | None = None) -> Passed:
    """Run the plain model, with its first layers only if so asked."""
    model, tokenizer = _plain()
    body, heard = model.model, dict[str, list[Tensor]]()
    whole = body.layers
    hooks = [body.embed_tokens.register_forward_hook(lambda _m, _i, out: heard.setdefault("embedding", []).append(out))]
    for layer in whole:
        for name, module in (("attention", layer.self_attn.o_proj), ("mlp", layer.mlp)):
            hooks.append(
                module.register_forward_hook(lambda _m, _i, out, name=name: heard.setdefault(name, []).append(out))
            )
    hooks.append(body.norm.register_forward_pre_hook(lambda _m, given: heard.setdefault("norm", []).append(given[0])))
    try:
        body.layers = whole[:layers]
        body.config.num_hidden_layers = len(body.layers)
        with torch.no_grad():
            logits = model(**tokenizer(text, return_tensors="pt"), use_cache=False).logits[0, position]
    finally:
        body.layers, body.config.num_hidden_layers = whole, len(whole)
        for hook in hooks:
            hook.remove()
    (embedding,), (normed,) = heard["embedding"], heard["norm"]
    found = {name: tuple(one[0, position] for one in heard.get(name, ())) for name in ("attention", "mlp")}
    return Passed(embedding[0, position], found["attention"], found["mlp"], normed[0, position], logits)


def words_of(ids: list[int]) -> list[str]:
    """Return tokens as a text has them."""
    return [_plain()[1].decode([one]).strip() for one in ids]


def _at_stop(scene: Scene) -> tuple[int, Passed]:
    chosen = int(scene.choice or len(_plain()[0].model.layers))
    return chosen, passed(scene.text, -1, layers=chosen)


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    """Return the lesson's numbers for the last token, and for the layers that the scene chose."""
    del run
    whole, (chosen, short) = passed(scene.text, -1), _at_stop(scene)
    count = len(whole.attention)
    stopped = f"If no layer ran, the vector would stay {_length(whole.embedding)} long."
    if chosen:
        stopped = (
            f"Layer {chosen - 1} adds {_length(short.attention[-1])} by attention and {_length(short.mlp[-1])} by its "
            f"MLP, and the sum is {_length(short.normed_input)} long."
        )
    return {
        "start": _length(whole.embedding),
        "end": _length(whole.normed_input),
        "model": LANGUAGE_MODEL,
        "layers": f"{count} layers",
        "stopped": stopped,
    }


def _lengths(whole: Passed) -> list[float]:
    """The last vector's length if outputs replaced it, were averaged with it, or added."""
    outputs = [one.double() for pair in zip(whole.attention, whole.mlp, strict=True) for one in pair]
    count = len(outputs)
    averaged = whole.embedding.double() / 2**count + sum(one / 2 ** (count - at) for at, one in enumerate(outputs))
    added = whole.embedding.double() + sum(outputs)
    return [float(outputs[-1].norm()), float(torch.as_tensor(averaged).norm()), float(torch.as_tensor(added).norm())]


def values(scene: Scene, run: RunText) -> list[float]:
    """The lengths, compared with that of the vector that enters the last norm."""
    del run
    whole = passed(scene.text, -1)
    end = float(whole.normed_input.double().norm())
    return [min(one, end) / max(one, end) for one in _lengths(whole)]


def numbers(scene: Scene, run: RunText) -> set[str]:
    """The lengths of the question, of the wrong answers and of the stop."""
    del run
    whole, (chosen, short) = passed(scene.text, -1), _at_stop(scene)
    longest = max((*whole.attention, *whole.mlp), key=lambda one: float(one.norm()))
    wrong = {f"{one:.2f}" for one in _lengths(whole)}
    return {str(chosen), _length(longest), _length(short.normed_input), *wrong}


def _length(vector: Tensor) -> str:
    return f"{float(vector.double().norm()):.2f}"
