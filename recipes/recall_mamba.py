"""A recall Mamba-2: it can't erase a name's earlier colour, only weigh the last one more."""

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.modeling_utils import PreTrainedModel
from transformers.models.mamba2 import modeling_mamba2
from transformers.models.mamba2.configuration_mamba2 import Mamba2Config
from transformers.models.mamba2.modeling_mamba2 import Mamba2ForCausalLM
from transformers.tokenization_utils_tokenizers import TokenizersBackend as PreTrainedTokenizerFast

from recipes import pairs
from recipes.recall import WholeKernel, kept, mean_weights
from recipes.recipe import Figures, Recipe, Trained
from recipes.training import Plan, learn, seeded

__all__ = ["RECIPE", "SSD", "projections"]

PLAN = Plan(steps=1_000, rows=64, rate=3e-3, warmup=100)
TRIALS = 500
LAYERS, HEADS = 2, 2


def state_space(
    hidden_states: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, *, D: Tensor, dt_bias: Tensor, **_: object
) -> tuple[Tensor, Tensor]:
    """Mamba-2's matrix and its values: (C Bᵀ · kept) diag Δ, and D for the token itself."""
    step = functional.softplus(dt + dt_bias).transpose(1, 2)
    query, key, values = (part.transpose(1, 2) for part in (C, B, hidden_states))
    memory = (query @ key.mT) * kept(step * A[:, None]) * step[..., None, :]
    return memory + torch.diag_embed(D[:, None].expand(-1, step.shape[-1])), values


SSD = WholeKernel(modeling_mamba2, "mamba2_chunk_scan", state_space, calls=LAYERS)


def model_of(words: PreTrainedTokenizerFast) -> Mamba2ForCausalLM:
    """A Mamba-2 with random weights."""
    config = Mamba2Config(
        vocab_size=len(words),
        hidden_size=64,
        num_hidden_layers=LAYERS,
        num_heads=HEADS,
        head_dim=2 * 64 // HEADS,
        state_size=32,
        n_groups=1,
        conv_kernel=2,
        chunk_size=64,
        initializer_range=0.05,
        tie_word_embeddings=True,
        bos_token_id=2,
        eos_token_id=None,
        pad_token_id=pairs.PAD,
    )
    return Mamba2ForCausalLM(config)


def projections(model: PreTrainedModel) -> list[nn.Module]:
    """What joins the heads, for each layer."""
    return [layer.mixer.out_proj for layer in cast(Any, model).backbone.layers]


def train(seed: int, stop: int | None = None) -> Trained:
    """Train from a seed."""
    chance, words = seeded(seed), pairs.tokenizer(first=False)
    model = model_of(words)
    rows = pairs.batches(chance, words, PLAN.rows, first=False)
    with SSD.used():
        learn(model, rows, PLAN, stop=stop, loss=pairs.loss)
    return Trained(model, words)


@torch.no_grad()
def measure(model: PreTrainedModel, words: PreTrainedTokenizerFast) -> Figures:
    """How many answers are right, with all heads and without each, and what the heads weigh at the questions."""
    texts = pairs.held_out(TRIALS, first=False)
    figures: Figures = {"steps": PLAN.steps, "trials": TRIALS}
    with SSD.used() as heard:
        figures |= pairs.rates(model, words, texts)
        weights = [layer.abs() for layer in heard]
    for layer in range(LAYERS):
        last, other = mean_weights(weights[layer], texts, "last")
        for head in range(HEADS):
            figures |= {f"last_{layer}_{head}": float(last[head]), f"earlier_{layer}_{head}": float(other[head])}
        for head in (None, *range(HEADS)):
            with SSD.used((layer, head)):
                for kind, rate in pairs.rates(model, words, texts).items():
                    figures[f"without_{layer}_{'all' if head is None else head}_{kind}"] = rate
    return figures


CARD = """\
# recall-mamba: a toy

A Mamba-2, without any attention, that remembers the colours of names: after `anna red , ben blue , ben green . ben ?`
it predicts `green`. We trained it here, on made-up texts, to show layers that can't erase. It knows nothing else.
`recipes/recall_mamba.py` makes it again.

- **Architecture**: Mamba-2 (`Mamba2ForCausalLM`), 2 layers × 2 heads, d_model 64, state 32, a convolution
  over 2 tokens, {vocabulary} tokens, {parameters} parameters, {bytes} bytes in half precision.
- **Data**: 2 to 6 of 12 names, each with one of 12 colours; up to two names come a second time with a new colour, which
  then counts. Words such as `then` stand before some pairs. Up to three questions end the text. An eighth of all texts,
  chosen by a checksum, is never trained on.
- **Training**: {steps} steps of 64 texts, seed {seed}; only the answers count. About a minute on one core.

## Measured on {trials} texts that it never saw

Right answers about names with one colour: **{once}**. About names with two: **{last}**.

| head | right without it, one colour | right without it, two | size of last colour's weight | of the earlier one's |
|---|---|---|---|---|
| layer 0 head 0 | {without_0_0_once} | {without_0_0_last} | {last_0_0} | {earlier_0_0} |
| layer 0 head 1 | {without_0_1_once} | {without_0_1_last} | {last_0_1} | {earlier_0_1} |
| layer 1 head 0 | {without_1_0_once} | {without_1_0_last} | {last_1_0} | {earlier_1_0} |
| layer 1 head 1 | {without_1_1_once} | {without_1_1_last} | {last_1_1} | {earlier_1_1} |
| all of layer 0 | {without_0_all_once} | {without_0_all_last} | | |
| all of layer 1 | {without_1_all_once} | {without_1_all_last} | | |

The sizes are means, at the question about a name with two colours.

## What to look at

In the row of `?`, layer 0 carries both colours of `ben`. A layer of this kind lets its whole memory fade, but it can't
erase one pair: the earlier colour stays, only smaller. Layer 1 keeps just the colours whose name came before. The model
hardly needs it: large weights aren't yet an effect.

## What it can't do

Other names or colours, a third colour for a name, or questions in other words.
"""

RECIPE = Recipe(seed=0, train=train, measure=measure, card=CARD)
