"""A mask's effect on one head."""

import torch
from torch import Tensor

from attention_viz.analysis.signed import mixer_of, open_cells
from attention_viz.analysis.words import token_named
from attention_viz.explorer.mask_payload import CROSSING
from attention_viz.operation.masks import recognise
from attention_viz.trace.kept import KeptLayers, layers_in_words
from attention_viz.trace.trace import Trace
from attention_viz.ui.address import State
from attention_viz.ui.pages.masks.page import MASKS, MaskChoice, takes_no_mask, window_words

_MOST_NAMED = 6


def allowed_of(trace: Trace, layer: int, head: int, stream: str | None = None) -> Tensor:
    """Return one head's open cells, (query, key); by default the first stream's."""
    stream = stream or trace.streams[0]
    if stream in trace.mixers:
        return open_cells(mixer_of(trace, stream, layer).head(head))
    one = trace.attention(layer, stream).head(head)
    if one.allowed is None:
        return torch.ones(one.shape, dtype=torch.bool)
    return one.allowed.cpu().expand(one.shape)


def own_mask_words(trace: Trace, layer: int, head: int, stream: str | None = None) -> str:
    """Describe the model's own mask, and layers that differ."""
    if stream is not None and stream in trace.mixers:
        return _mixer_words(trace, stream)
    here = recognise(allowed_of(trace, layer, head))
    # A file names its edits, but not the mask without them.
    whose = "The mask here, the model's own plus edits" if trace.provenance.edits else "The model's own mask"
    first = f"{whose}{'' if trace.provenance.edits else ' here'}: {here}."
    layers = trace.layer_numbers(trace.streams[0])
    others = {number: str(recognise(allowed_of(trace, number, 0))) for number in layers}
    if len(set(others.values())) == 1:
        return f"{first} It is the same in every layer." if len(layers) > 1 else first
    kinds = dict.fromkeys(others.values())
    groups = [f"{kind} in layers {', '.join(str(n) for n in others if others[n] == kind)}" for kind in kinds]
    return f"{first} Over all layers: {'; '.join(groups)}."


def _mixer_words(trace: Trace, stream: str) -> str:
    """Explain a mask in layers without a softmax."""
    others = "softmax layers" if trace.attention_streams else "other layers"
    return (
        f"A mask here acts on the {stream}’s layers. They have no softmax: a blocked cell becomes 0, and nothing is "
        f"shared out again. The {others} change only because their input changes."
    )


def other_layers_words(trace: Trace, stream: str) -> str:
    """Explain what a softmax mask does to layers without one; empty if there are none."""
    if not trace.mixers or stream in trace.mixers:
        return ""
    numbers = sorted({number for name in trace.mixers for number in trace.layer_numbers(name)})
    there = layers_in_words(numbers)
    return (
        f"The mask acts on softmax attention only. {there[:1].upper()}{there[1:]}, without a softmax, get another "
        "input. To mask these, choose the mixer as the stream."
    )


def mask_words(choice: MaskChoice, *, looks_back: bool = False) -> str:
    """Explain a mask with its number."""
    if choice.mask == "window":
        seen = window_words(choice.window, looks_back=looks_back)
        return f"With a window of {choice.window}, each token may attend to {seen}."
    if choice.mask == "prefix" and choice.prefix > 0:
        first = "first token" if choice.prefix == 1 else f"first {choice.prefix} tokens"
        return f"Every token may attend to the {first}; the rest of the mask is causal."
    return "" if choice.mask == "drawn" else MASKS[choice.mask][1]


def slide_words(choice: MaskChoice, *, looks_back: bool = False) -> str:
    """Explain a mask for slides without controls."""
    said = ["Some cells are blocked by hand." if choice.mask == "drawn" else mask_words(choice, looks_back=looks_back)]
    places = (("layer", choice.in_layer), ("head", choice.in_head))
    if only := [f"{name} {number}" for name, number in places if number is not None]:
        said.append(f"The mask acts in {' and '.join(only)} only.")
    return " ".join(said)


def blocked_words(
    before: Trace, after: Trace, layer: int, head: int, choice: MaskChoice, stream: str | None = None
) -> str:
    """Count the shown head's blocked cells, and name other affected heads."""
    stream = stream or before.streams[0]
    own, now = allowed_of(before, layer, head, stream), allowed_of(after, layer, head, stream)
    added, total = int((own & ~now).sum()), now.numel()
    if choice.mask == "none":
        return ""
    kept = KeptLayers.all_of(after.layer_numbers(stream)) if stream in after.mixers else after.kept[stream]
    there = f"0 to {kept.of - 1}" if kept.counts else kept.listed
    depth = "every layer" if choice.in_layer is None else f"layer {choice.in_layer} only (of {there})"
    wide = "every head" if choice.in_head is None else f"head {choice.in_head} only"
    if choice.in_layer not in (None, layer) or choice.in_head not in (None, head):
        return f"It acts in {depth}, {wide}, so it blocks nothing in the shown head."
    if not blocks_more(before, after, stream):
        return _nothing(after, choice)
    left = (
        f"{total:,} cells here" if bool(own.all()) else f"the {int(own.sum()):,} cells here that the model leaves open"
    )
    return f"It blocks {added:,} of {left} (hatched: their weight is exactly 0), and acts in {depth}, {wide}."


def _nothing(after: Trace, choice: MaskChoice) -> str:
    if choice.mask == "drawn" and not choice.cells:
        return "Nothing is drawn yet."
    if choice.mask == "padding" and not any(after.query_tokens(after.streams[0]).padding):
        return "This row has no padding, so the mask changes nothing here."
    return "But the model already blocks all these cells, so the mask changes nothing here."


def blocks_more(before: Trace, after: Trace, stream: str | None = None) -> bool:
    """Return whether the added mask alone blocks any head's cell."""
    stream = stream or before.streams[0]
    return any(
        bool((allowed_of(before, layer, head, stream) & ~allowed_of(after, layer, head, stream)).any())
        for layer in before.layer_numbers(stream)
        for head in range(before.head_count(layer, stream))
    )


def unfit_words(state: State, choice: MaskChoice) -> str:
    """Explain why a mask doesn't fit this stream; empty if it does."""
    if choice.mask == "none" or not takes_no_mask(state):
        return ""
    if not state.facts.is_encoder_decoder:
        return f"{CROSSING} This is the run without a mask."
    if choice.mask == "drawn":
        return (
            "You can draw for self-attention only; cross-attention has two texts. This is the run without a mask. In "
            'Python, attention_viz.Allow(cells, stream="cross") takes any cells.'
        )
    return (
        f"The mask “{choice.mask}” makes no sense for cross-attention: rows are target words and columns source words, "
        "so neither comes before or near the other. This is the run without a mask. Choose the encoder or decoder as "
        "the stream, or the mask none."
    )


def silent_rows_words(trace: Trace, layer: int, head: int, stream: str | None = None) -> str:
    """Name tokens with every key blocked; empty if none."""
    stream = stream or trace.streams[0]
    blind = (~allowed_of(trace, layer, head, stream)).all(dim=-1).nonzero().flatten().tolist()
    if not blind:
        return ""
    tokens = trace.query_tokens(stream)
    named = ", ".join(
        tokens.placed_at(position) or f"{token_named(tokens, position)} (row {position})"
        for position in blind[:_MOST_NAMED]
    )
    more = f" and {len(blind) - _MOST_NAMED} more" if len(blind) > _MOST_NAMED else ""
    have = "has" if len(blind) == 1 else "have"
    if stream in trace.mixers:
        return f"{named}{more} {have} no cell left: nothing arrives there."
    return (
        f"{named}{more} {have} no key left to attend to: the row is all 0, sums to 0 instead of 1, and reads no value."
    )
