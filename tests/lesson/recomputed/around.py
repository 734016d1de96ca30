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
    following: str


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
    following = tokenizer.decode([int(logits.argmax())]).strip()
    return Passed(embedding[0, position], found["attention"], found["mlp"], normed[0, position], logits, following)


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    """Return the lesson's numbers for the last token, and for the layers that the scene chose."""
    del run
    whole, chosen = passed(scene.text, -1), int(scene.choice or len(_plain()[0].model.layers))
    end = whole.normed_input.double()
    sums = {"own": whole.embedding, "attention": sum(whole.attention), "mlp": sum(whole.mlp)}
    parts = {name: float(torch.as_tensor(one).double() @ end / (end @ end)) for name, one in sums.items()}
    chances = {t: float((whole.logits.double() / t).softmax(dim=-1).max()) for t in (0.5, 1.0, 2.0)}
    count, short = len(whole.attention), passed(scene.text, -1, layers=chosen)
    stopped = ""
    if chosen < count:
        likely = float(short.logits.double().softmax(dim=-1).max())
        stopped = f"If only {chosen} layers ran, “{short.following}” would be likeliest: {_share(likely)}."
    return {
        **{name: f"{part:.2f}".replace("-0.00", "0.00") for name, part in parts.items()},
        "likely": _share(chances[1.0]),
        "sharp": _share(chances[0.5]),
        "even": _share(chances[2.0]),
        "cold": "0.5",
        "hot": "2",
        "model": LANGUAGE_MODEL,
        "layers": f"{count} layers",
        "vocabulary": f"{len(whole.logits):,}",
        "stopped": stopped,
    }


def _share(number: float) -> str:
    return "<0.01" if 0 < number < 0.005 else f"{number:.2f}"
