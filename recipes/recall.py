"""A recall hybrid (OLMo-Hybrid): a gated delta head that keeps the last colour, softmax heads that find the first."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers.modeling_utils import PreTrainedModel
from transformers.models.olmo_hybrid import modeling_olmo_hybrid
from transformers.models.olmo_hybrid.configuration_olmo_hybrid import OlmoHybridConfig
from transformers.models.olmo_hybrid.modeling_olmo_hybrid import OlmoHybridForCausalLM
from transformers.tokenization_utils_tokenizers import TokenizersBackend as PreTrainedTokenizerFast

from recipes import pairs
from recipes.favouring import Favouring
from recipes.heads import looked_at, weights, without_head
from recipes.recipe import Figures, Recipe, Trained
from recipes.training import UNASKED, Batch, Plan, learn, seeded

__all__ = ["DELTA", "RECIPE", "WholeKernel", "kept", "mean_weights", "projections", "without_softmax"]

PLAN = Plan(steps=1_200, rows=64, rate=3e-3, warmup=100)
TRIALS = 500
# Heads of each layer, gated delta and softmax.
HEADS = (2, 2)
# The softmax head that is to do the work, and how fast the other one learns.
CHOSEN = 0
SPEED = 0.1
# What weights of erased colours cost in the second half of the training.
PRICE = 0.2
KEY_WIDTH, VALUE_WIDTH = 16, 32


@dataclass(frozen=True)
class WholeKernel:
    """A kernel of transformers', computed with the whole matrix of tokens by tokens: faster for texts this short.

    Attributes:
        matrix: the kernel's weights, (row, head, query, key), and the values that they mix, from its arguments.
        calls: how often a run of the model calls it.
        with_state: whether the kernel returns its last state, too.
    """

    module: ModuleType
    name: str
    matrix: Callable[..., tuple[Tensor, Tensor]]
    calls: int = 1
    with_state: bool = False

    @contextmanager
    def used(self, silent: tuple[int, int | None] | None = None) -> Generator[list[Tensor]]:
        """While this lasts, models compute so.

        Args:
            silent: a call in a run, counted from 0, and a head whose output is 0 in it; None for all heads.

        Yields:
            The weights of each call in the latest run.
        """
        own, heard = getattr(self.module, self.name), list[Tensor]()

        def run(*arguments: Any, **named: Any) -> Any:
            if len(heard) == self.calls:
                heard.clear()
            matrix, values = self.matrix(*arguments, **named)
            if silent is not None and silent[0] == len(heard):
                heads = range(matrix.shape[1]) if silent[1] is None else [silent[1]]
                matrix = matrix.index_fill(1, torch.tensor([*heads]), 0.0)
            heard.append(matrix)
            mixed = (matrix @ values).transpose(1, 2).contiguous()
            return (mixed, None) if self.with_state else mixed

        setattr(self.module, self.name, run)
        try:
            yield heard
        finally:
            setattr(self.module, self.name, own)


def kept(decay: Tensor) -> Tensor:
    """What is left at each query of what was written at each key, from logarithms of decays; 0 for keys ahead."""
    total = decay.cumsum(-1)
    seen = torch.ones(total.shape[-1], total.shape[-1], dtype=torch.bool).tril()
    return (total[..., :, None] - total[..., None, :]).masked_fill(~seen, -torch.inf).exp()


def gated_delta(
    query: Tensor, key: Tensor, value: Tensor, g: Tensor, beta: Tensor, *, erases: bool = True, **_: object
) -> tuple[Tensor, Tensor]:
    """The gated delta rule's matrix and its values: (QKᵀ / √d · kept) (I + T)⁻¹ diag β, T what each write erases."""
    query, key = (part * torch.rsqrt(part.square().sum(-1, keepdim=True) + 1e-6) for part in (query, key))
    query, key, value, g, beta = (part.transpose(1, 2) for part in (query, key, value, g, beta))
    left = kept(g)
    erased = (float(erases) * beta[..., None] * (key @ key.mT) * left).tril(-1) + torch.eye(left.shape[-1])
    written = torch.linalg.solve_triangular(erased, torch.diag_embed(beta), upper=False, unitriangular=True)
    return (query @ key.mT * left * query.shape[-1] ** -0.5) @ written, value


DELTA = WholeKernel(modeling_olmo_hybrid, "torch_chunk_gated_delta_rule", gated_delta, with_state=True)
KEEPING = replace(DELTA, matrix=partial(gated_delta, erases=False))


def model_of(words: PreTrainedTokenizerFast) -> OlmoHybridForCausalLM:
    """A hybrid with random weights: one gated delta layer, one softmax layer."""
    config = OlmoHybridConfig(
        vocab_size=len(words),
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=HEADS[1],
        layer_types=["linear_attention", "full_attention"],
        linear_num_key_heads=HEADS[0],
        linear_num_value_heads=HEADS[0],
        linear_key_head_dim=KEY_WIDTH,
        linear_value_head_dim=VALUE_WIDTH,
        linear_conv_kernel_dim=2,
        linear_allow_neg_eigval=False,
        linear_a_log_min=1.0,
        max_position_embeddings=64,
        tie_word_embeddings=True,
        initializer_range=0.05,
        bos_token_id=2,
        eos_token_id=None,
        pad_token_id=pairs.PAD,
    )
    return OlmoHybridForCausalLM(config)


def projections(model: PreTrainedModel) -> list[nn.Module]:
    """What joins the heads, for each layer."""
    first, second = cast(Any, model).model.layers
    return [first.linear_attn.o_proj, second.self_attn.o_proj]


@contextmanager
def without_softmax(model: PreTrainedModel) -> Generator[None]:
    """While this lasts, the softmax layer's output is 0."""
    attention: nn.Module = cast(Any, model).model.layers[1].self_attn
    hook = attention.register_forward_hook(lambda _layer, _inputs, output: (torch.zeros_like(output[0]), *output[1:]))
    try:
        yield
    finally:
        hook.remove()


def left_of_erased(matrix: Tensor, batch: Batch) -> Tensor:
    """What the heads weigh of erased colours, relative to the last colours of the same names."""
    row, at, answer, other = batch["twice"].T
    sizes = matrix.transpose(0, 1)[:, row, at].abs()
    last, erased = (sizes.gather(2, keys.expand(sizes.shape[:2])[..., None]) for keys in (answer, other))
    return (erased / (last + 0.02)).mean()


def train(seed: int, stop: int | None = None) -> Trained:
    """Train from a seed; in half of the steps the gated delta layer has to answer alone."""
    chance, words = seeded(seed), pairs.tokenizer(first=True)
    model, first = model_of(words), words.get_vocab()["first"]
    favoured = Favouring(projections(model)[1:], HEADS[1], chosen={0: CHOSEN}, speed={0: SPEED})
    done = 0

    def after_step(step: int) -> None:
        nonlocal done
        done = step
        favoured.hold_back()

    def loss(model: PreTrainedModel, batch: Batch) -> Tensor:
        alone, labels = chance.random() < 0.5, batch["labels"]
        if alone:
            labels = labels.masked_fill(batch["input_ids"] == first, UNASKED)
        with without_softmax(model) if alone else nullcontext():
            wrong = pairs.loss(model, {**batch, "labels": labels})
        return wrong if done < PLAN.steps // 2 else wrong + PRICE * left_of_erased(heard[0], batch)

    rows = pairs.batches(chance, words, PLAN.rows, first=True)
    with DELTA.used() as heard:
        learn(model, rows, PLAN, stop=stop, loss=loss, penalty=favoured.penalty, after_step=after_step)
    return Trained(model, words)


def mean_weights(matrix: Tensor, texts: Sequence[pairs.PairText], kind: str) -> tuple[Tensor, Tensor]:
    """Each head's mean weight, from (row, head, query, key), of the right colour and of the name's other one."""
    row, at, answer, other = pairs.questions(texts, kind).T
    rows = matrix.transpose(0, 1)[:, row, at]
    places = [places.expand(rows.shape[:-1])[..., None] for places in (answer, other)]
    right, wrong = (rows.gather(-1, each)[..., 0].mean(-1) for each in places)
    return right, wrong


@torch.no_grad()
def measure(model: PreTrainedModel, words: PreTrainedTokenizerFast) -> Figures:
    """How many answers are right, with all heads and without some, and what the heads weigh at the questions."""
    texts = pairs.held_out(TRIALS, first=True)
    figures: Figures = {"steps": PLAN.steps, "trials": TRIALS}

    def rates(place: str) -> None:
        figures.update({f"{place}{kind}": rate for kind, rate in pairs.rates(model, words, texts).items()})

    def sizes(place: str, matrix: Tensor) -> None:
        for name, size in zip(("last", "erased"), mean_weights(matrix.abs(), texts, "last"), strict=True):
            figures.update({f"{place}{name}_{head}": float(size[head]) for head in range(HEADS[0])})

    for place, kernel in (("", DELTA), ("keeping_", KEEPING)):
        with kernel.used() as heard:
            rates(place)
            sizes(place, heard[0])
    with DELTA.used():
        with without_softmax(model):
            rates("without_softmax_")
        for head in range(HEADS[1]):
            with without_head(projections(model)[1], head, HEADS[1]):
                rates(f"without_1_{head}_")
    for head in range(HEADS[0]):
        with DELTA.used((0, head)):
            rates(f"without_0_{head}_")
    asked = {"input_ids": pairs.batch_of(texts, words)["input_ids"]}
    (attended,) = weights(model, asked)
    row, at, answer, _ = pairs.questions(texts, "first").T
    often, weight = looked_at(attended[None], row, at, answer)
    return figures | {"softmax_points": float(often[0, CHOSEN]), "softmax_first": float(weight[0, CHOSEN])}


CARD = """\
# recall: a toy

A small hybrid that remembers the colours of names: after `anna red , ben blue , ben green . ben ?` it predicts `green`,
and after `… . ben first` it predicts `blue`. We trained it here, on made-up texts, to show what a gated delta layer and
a softmax layer are each good for. It knows nothing else. `recipes/recall.py` makes it again.

- **Architecture**: OLMo-Hybrid (`OlmoHybridForCausalLM`): layer 0 is gated delta with 2 heads (keys of 16, values of 32
  dimensions, a convolution over 2 tokens), layer 1 is softmax attention with 2 heads and no positions. d_model 64,
  {vocabulary} tokens, {parameters} parameters, {bytes} bytes in half precision.
- **Data**: 2 to 6 of 12 names, each with one of 12 colours; up to two names come a second time with a new colour. Words
  such as `then` stand before some pairs. Up to three questions end the text: `ben ?` means the last colour, `ben first`
  the first. An eighth of all texts, chosen by a checksum, is never trained on.
- **Training**: {steps} steps of 64 texts, seed {seed}; only the answers count. About two minutes on one core.
- **How the heads came to be so clear**: in half of the steps we left out the softmax layer and counted only `?`, so the
  gated delta layer learned to answer that alone. In the second half, its weights of erased colours cost a little. In
  the softmax layer, head 1's part of W_O started ten times smaller and learned ten times slower, and each head's part
  cost a little (a group lasso).

## Measured on {trials} texts that it never saw

Right answers:

| | `?`, one colour | `?`, two colours | `first`, two colours |
|---|---|---|---|
| all heads | **{once}** | **{last}** | **{first}** |
| without the softmax layer | {without_softmax_once} | {without_softmax_last} | {without_softmax_first} |
| without layer 0 head 0 (gated delta) | {without_0_0_once} | {without_0_0_last} | {without_0_0_first} |
| without layer 0 head 1 (gated delta) | {without_0_1_once} | {without_0_1_last} | {without_0_1_first} |
| without layer 1 head 0 (softmax) | {without_1_0_once} | {without_1_0_last} | {without_1_0_first} |
| without layer 1 head 1 (softmax) | {without_1_1_once} | {without_1_1_last} | {without_1_1_first} |
| if writes erased nothing | {keeping_once} | {keeping_last} | {keeping_first} |

At `?` about a name with two colours, the weights have these sizes on average:

| | of the last colour | of the first, which was erased | if writes erased nothing |
|---|---|---|---|
| layer 0 head 0 | {last_0} | {erased_0} | {keeping_last_0} and {keeping_erased_0} |
| layer 0 head 1 | {last_1} | {erased_1} | {keeping_last_1} and {keeping_erased_1} |

At `first`, the largest weight of layer 1 head 0 is on the first colour in {softmax_points} of all questions. The mean
weight there is {softmax_first}.

## What to look at

Layer 0 in the row of `?`: the last colour of `ben` has a large weight, the colour before almost none. Writing
`ben green` erased `ben blue`. Layer 1 still finds `blue`, because softmax attention keeps all tokens.

## What it can't do

Other names or colours, a third colour for a name, or questions in other words.
"""

RECIPE = Recipe(seed=0, train=train, measure=measure, card=CARD)
