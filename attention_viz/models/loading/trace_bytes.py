"""Work out a trace's bytes from a model's configuration alone."""

from dataclasses import dataclass
from typing import Any

from attention_viz.inputs.cost import LONG

# Vectors of a layer's width, and of its MLP's, that exist per token while it runs, as in GPT-2; most models have fewer.
_WIDTHS, _INNER = 9, 4


@dataclass(frozen=True)
class TraceBytes:
    """The numbers per token that a trace keeps, and that a run needs meanwhile.

    Attributes:
        layers: attention layers.
        kept_by_layer: queries, keys and values.
        width: of the hidden state.
        inner: width of the MLP.
        words: the vocabulary's size; 0 without logits.
    """

    layers: int
    kept_by_layer: int
    width: int
    inner: int
    words: int

    @classmethod
    def of(cls, model: Any) -> "TraceBytes | None":
        """Read a model's configuration; None if it doesn't say the sizes."""
        config = model.config
        try:
            text = config.get_text_config()
        except ValueError:  # several parts of it read text
            text = config
        heads, width = _number(text, "num_attention_heads"), _number(text, "hidden_size")
        layers = _layers(text)
        if not (heads and width and layers):
            return None
        key = _number(text, "head_dim") or width // heads
        groups = _number(text, "num_key_value_heads") or heads
        value = _number(text, "v_head_dim") or key
        if nope := _number(text, "qk_nope_head_dim"):  # latent keys, which are spread over all heads
            key, groups = nope + _number(text, "qk_rope_head_dim"), heads
        experts = _number(text, "moe_intermediate_size") * max(1, _number(text, "num_experts_per_tok"))
        inner = max(_number(text, "intermediate_size"), experts) or 4 * width
        words = 0 if model.get_output_embeddings() is None else _number(text, "vocab_size")
        return cls(layers, heads * key + groups * (key + value), width, inner, words)

    def kept(self, tokens: int, itemsize: int, layers: int | None = None) -> int:
        """Return the bytes of a text's trace; long texts keep the last hidden state instead of logits."""
        output = self.words or self.width if tokens < LONG else self.width
        count = self.layers if layers is None else layers
        return tokens * itemsize * (count * self.kept_by_layer + output)

    def run(self, tokens: int, itemsize: int, layers: int | None = None) -> int:
        """Estimate the bytes beside the weights while a layer runs, for a model that `run_bytes` can't run."""
        passing = tokens * itemsize * (_WIDTHS * self.width + _INNER * self.inner)
        return passing if tokens >= LONG else passing + self.kept(tokens, itemsize, layers)


def _layers(config: Any) -> int:
    """Return the attention layers; an encoder–decoder's decoder has two per layer."""
    encoder = _number(config, "encoder_layers") or _number(config, "num_encoder_layers")
    decoder = _number(config, "decoder_layers") or _number(config, "num_decoder_layers")
    if getattr(config, "is_encoder_decoder", False) and decoder:
        return (encoder or _number(config, "num_hidden_layers")) + 2 * decoder
    return _number(config, "num_hidden_layers")


def _number(config: Any, name: str) -> int:
    found = getattr(config, name, 0)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0
