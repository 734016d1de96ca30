"""Work out a trace's bytes from a model's configuration alone."""

from dataclasses import dataclass
from typing import Any

from attention_viz.inputs.cost import LONG


@dataclass(frozen=True)
class TraceBytes:
    """The numbers per token that a trace keeps.

    Attributes:
        layers: attention layers.
        kept_by_layer: queries, keys and values.
        width: of the hidden state.
        words: the vocabulary's size; 0 without logits.
    """

    layers: int
    kept_by_layer: int
    width: int
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
        words = 0 if model.get_output_embeddings() is None else _number(text, "vocab_size")
        return cls(layers, heads * key + groups * (key + value), width, words)

    def kept(self, tokens: int, itemsize: int, layers: int | None = None) -> int:
        """Return the bytes of a text's trace; long texts keep the last hidden state instead of logits."""
        output = self.words or self.width if tokens < LONG else self.width
        count = self.layers if layers is None else layers
        return tokens * itemsize * (count * self.kept_by_layer + output)

    def in_memory(self, tokens: int, itemsize: int, layers: int | None = None) -> int:
        """Return a trace's bytes in memory; a long text's calls go to a file."""
        return self.kept(tokens, itemsize, 0 if tokens >= LONG else layers)


def _layers(config: Any) -> int:
    """Return the attention layers; an encoder–decoder's decoder has two per layer."""
    encoder = _number(config, "encoder_layers") or _number(config, "num_encoder_layers")
    decoder = _number(config, "decoder_layers") or _number(config, "num_decoder_layers")
    if getattr(config, "is_encoder_decoder", False) and decoder:
        return (encoder or _number(config, "num_hidden_layers")) + 2 * decoder
    layers, types = _number(config, "num_hidden_layers"), getattr(config, "layer_types", None)
    if not types:
        return layers
    # A hybrid's other layers keep less, or more.
    return sum("attention" in one and "linear" not in one for one in types[:layers])


def _number(config: Any, name: str) -> int:
    found = getattr(config, name, 0)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0
