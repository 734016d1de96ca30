"""How far each weight raised one number of what a model says, asked of a text or of a trace."""

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.circuits.asked import Direction
from attention_viz.errors import ShapeError, TraceError, UnsupportedModel
from attention_viz.protocol.model import Model
from attention_viz.protocol.needing import need_model
from attention_viz.trace.rerun import Along
from attention_viz.trace.trace import Trace

__all__ = ["gradient"]


def gradient(
    model: Model,
    text: str | Trace,
    second_text: str | None = None,
    *,
    layer: int | None = None,
    stream: str | None = None,
    target: str | None = None,
    of: tuple[int, int] | Direction | None = None,
) -> Float[Tensor, "*layer head query key"]:
    """How far each weight raised one number y of the model's output: relu(dy/dA ⊙ A), A being the weights that ran.

    0 where a weight held y back, or where y doesn't depend on it: in a decoder's last layer only the row from which y
    comes has numbers. What is said of y holds for small changes of a weight by itself, with the row's other weights as
    they are; biases and what runs past the attention count for nothing.

    y is what the model says: of a decoder, the logit of the token that it finds likeliest after the last one; of an
    encoder that guesses words, that of the likeliest at the first mask, or, in a text without one, the sum of the
    largest logit at every position; of an encoder–decoder, the sum of the logits of the tokens that it says. Of a model
    that chooses no words it is the largest number where the output is one row for the whole text, such as a class;
    elsewhere half the squared length of the mean output vector. Padding never counts.

    The model's parameters get no gradients and keep their flags.

    Source: Chefer, Gur & Wolf 2021, section 3.2, eq. 5, before the mean over heads.

    Args:
        model: from `load` or `wrap`.
        text: what to read; or a trace of this model, of what ran there, edits included.
        second_text: a second sentence, for encoders that read pairs.
        layer: the number of one; by default all, which need the same number of heads.
        stream: whose layers; None for the only one there is.
        target: the text that an encoder–decoder should produce, as in `trace`.
        of: y as (position, token id), the logit of that token there, instead of what the model says; or as a
            `Direction` of the output, such as that of one class, whose vector is 1 there and 0 elsewhere.

    Returns:
        (head, query, key) of a layer, or (layer, head, query, key); 0 or more, in y's units, float32.

    Raises:
        UnsupportedModel: our own module, whose output nobody trained to say anything; a model through which no
            gradient goes; or a token asked for where none are chosen.
        TraceError: there is no such stream or layer, the trace has no model behind it, is another model's, or the model
            has changed since; or all layers were asked for, and the trace keeps only some.
        ShapeError: there is no such position or token, a direction isn't as wide as the output, or all layers were
            asked for and differ in heads.
    """
    trace = _traced(model, text, second_text, target)
    if not trace.differentiable:
        raise TraceError(
            "gradients were asked for of a trace without a model behind it: it comes from a file, or was made of "
            "another trace; trace the text anew"
        )
    stream = trace.stream(stream)
    _check_layer(trace, stream, layer)
    asked = Along(of.vector, of.position) if isinstance(of, Direction) else of
    found = trace.relevance(asked).layers[stream]
    return torch.stack(list(found)) if layer is None else found[trace.layer_numbers(stream).index(layer)]


def _check_layer(trace: Trace, stream: str, layer: int | None) -> None:
    """Refuse a layer that isn't there, and all of them at once where they can't stand in one tensor."""
    if layer is not None:
        _ = trace.attention(layer, stream)
        return
    trace.check_every_layer("the gradient of all layers at once", stream)
    heads = {trace.head_count(number, stream) for number in trace.layer_numbers(stream)}
    if len(heads) > 1:
        raise ShapeError(
            f"all layers of the {stream} were asked for at once, and they have {sorted(heads)} heads: name one layer"
        )


def _traced(model: Model, text: str | Trace, second_text: str | None, target: str | None) -> Trace:
    need_model(model)
    if not model.facts.trained:
        raise UnsupportedModel(
            f"gradients were asked for of {model.name}, our own module: its random weights were never trained to say "
            "anything, so there is no output to ask about; take a pretrained model"
        )
    if isinstance(text, str):
        return model.trace(text, second_text, target=target)
    if second_text is not None or target is not None:
        raise TraceError("a trace was given, and beside it a second sentence or a target: it has its own already")
    if text.provenance.model != model.name:
        raise TraceError(f"a trace of {text.provenance.model} was given; {model.name} knows only its own")
    return text
