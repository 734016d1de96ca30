"""A recall hybrid (OLMo-Hybrid): a gated delta head that keeps the last colour, softmax heads that find the first."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
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

PLAN = Plan(steps=1_600, rows=64, rate=3e-3, warmup=100)
TRIALS = 500
# Heads of the gated delta layer and of the softmax layer; the first of each is to do the work.
DELTA_HEADS, SOFTMAX_HEADS, CHOSEN = 2, 2, 0
# How fast the other heads learn.
SPEED = 0.1
KEY_WIDTH, VALUE_WIDTH = 16, 32


@dataclass(frozen=True)
class WholeKernel:
    """A kernel of transformers', computed with the whole matrix of tokens by tokens: faster for texts this short.

    Attributes:
        matrix: the kernel's weights, (row, head, query, key), and the values that they mix, from its arguments.
        with_state: whether the kernel returns its last state, too.
    """

    module: ModuleType
    name: str
    matrix: Callable[..., tuple[Tensor, Tensor]]
    with_state: bool = False

    @contextmanager
    def used(self, silent: tuple[int, int] | None = None) -> Generator[list[Tensor]]:
        """While this lasts, models compute so.

        Args:
            silent: a call, counted from 0, and a head whose output is 0 in it.

        Yields:
            The weights of each call without gradients, in order.
        """
        own, heard = getattr(self.module, self.name), list[Tensor]()

        def run(*arguments: Any, **named: Any) -> Any:
            matrix, values = self.matrix(*arguments, **named)
            if silent is not None and silent[0] == len(heard):
                matrix = matrix.index_fill(1, torch.tensor([silent[1]]), 0.0)
            if not torch.is_grad_enabled():
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
        num_attention_heads=SOFTMAX_HEADS,
        layer_types=["linear_attention", "full_attention"],
        linear_num_key_heads=DELTA_HEADS,
        linear_num_value_heads=DELTA_HEADS,
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


def train(seed: int, stop: int | None = None) -> Trained:
    """Train from a seed; in half of the steps the gated delta layer has to answer alone."""
    chance, words = seeded(seed), pairs.tokenizer(first=True)
    model, first = model_of(words), words.get_vocab()["first"]
    favoured = [
        Favouring([layer], heads, chosen={0: CHOSEN}, speed={0: SPEED})
        for layer, heads in zip(projections(model), (DELTA_HEADS, SOFTMAX_HEADS), strict=True)
    ]

    def loss(model: PreTrainedModel, batch: Batch) -> Tensor:
        if chance.random() < 0.5:
            return pairs.loss(model, batch)
        labels = batch["labels"].masked_fill(batch["input_ids"] == first, UNASKED)
        with without_softmax(model):
            return pairs.loss(model, {**batch, "labels": labels})

    rows = pairs.batches(chance, words, PLAN.rows, first=True)
    with DELTA.used():
        learn(
            model,
            rows,
            PLAN,
            stop=stop,
            loss=loss,
            penalty=lambda: torch.stack([one.penalty() for one in favoured]).sum(),
            after_step=lambda _: [one.hold_back() for one in favoured] and None,
        )
    return Trained(model, words)


def questions(texts: Sequence[pairs.PairText], kind: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The rows and positions of all questions of a kind: their text, last word, answer and the name's other colour."""
    found = [
        (row, one.at, one.answer, one.other)
        for row, text in enumerate(texts)
        for one in text.questions
        if one.kind == kind
    ]
    row, at, answer, other = torch.tensor(found).T
    return row, at, answer, other


def mean_weights(matrix: Tensor, texts: Sequence[pairs.PairText], kind: str) -> tuple[Tensor, Tensor]:
    """Each head's mean weight, from (row, head, query, key), of the right colour and of the name's other one."""
    row, at, answer, other = questions(texts, kind)
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

    with DELTA.used() as heard:
        rates("")
        right, other = mean_weights(heard[0], texts, "last")
        figures |= {"delta_last": float(right[CHOSEN]), "delta_erased": float(other[CHOSEN])}
        with without_softmax(model):
            rates("without_softmax_")
        for head in range(SOFTMAX_HEADS):
            with without_head(projections(model)[1], head, SOFTMAX_HEADS):
                rates(f"without_1_{head}_")
    for head in range(DELTA_HEADS):
        with DELTA.used((0, head)):
            rates(f"without_0_{head}_")
    with KEEPING.used() as heard:
        rates("keeping_")
        right, other = mean_weights(heard[0], texts, "last")
        figures |= {"keeping_delta_last": float(right[CHOSEN]), "keeping_delta_erased": float(other[CHOSEN])}
    asked = {"input_ids": pairs.batch_of(texts, words)["input_ids"]}
    (attended,) = weights(model, asked)
    row, at, answer, _ = questions(texts, "first")
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
  gated delta layer learned to answer that alone. In both layers, the parts of W_O of all heads but head 0 started ten
  times smaller and learned ten times slower, and each head's part cost a little (a group lasso).

## Measured on {trials} texts that it never saw

Right answers:

| | `?`, one colour | `?`, two colours | `first`, two colours |
|---|---|---|---|
| all heads | **{once}** | **{last}** | **{first}** |
| without the softmax layer | {without_softmax_once} | {without_softmax_last} | {without_softmax_first} |
| without **layer 0 head 0** (gated delta) | {without_0_0_once} | {without_0_0_last} | {without_0_0_first} |
| without layer 0 head 1 | {without_0_1_once} | {without_0_1_last} | {without_0_1_first} |
| without **layer 1 head 0** (softmax) | {without_1_0_once} | {without_1_0_last} | {without_1_0_first} |
| without layer 1 head 1 | {without_1_1_once} | {without_1_1_last} | {without_1_1_first} |
| if writes erased nothing | {keeping_once} | {keeping_last} | {keeping_first} |

At `?` about a name with two colours, the mean weight in layer 0 head 0 is {delta_last} for the last colour and
{delta_erased} for the first, which was erased. If writes erased nothing, it would be {keeping_delta_last} and
{keeping_delta_erased}. At `first`, the largest weight of layer 1 head 0 is on the first colour in {softmax_points} of
all questions; its mean is {softmax_first}.

## What to look at

Layer 0 head 0 in the row of `?`: the last colour of `ben` has a large weight, the colour before almost none. Writing
`ben green` erased `ben blue`. Layer 1 still finds `blue`, because softmax attention keeps all tokens.

## What it can't do

Other names or colours, a third colour for a name, or questions in other words.
"""

RECIPE = Recipe(seed=0, train=train, measure=measure, card=CARD)
