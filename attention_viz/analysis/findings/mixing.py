"""What layers without a softmax carry farthest, and what their delta rules erase."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.findings.finding import Candidate
from attention_viz.analysis.findings.pairs import Pairs, between_words, standing_out
from attention_viz.analysis.findings.scene import StreamScene
from attention_viz.analysis.measured import RowWeights
from attention_viz.analysis.signed import mixer_of
from attention_viz.operation.shapes import with_heads
from attention_viz.operation.token_mixer import TokenMixer
from attention_viz.trace.trace import Trace

__all__ = ["erased", "mixing_of", "shares_of", "sizes_of"]

# A convolution reaches a few tokens, and Fourier's matrix is the same for every text.
_SAME_FOR_EVERY_TEXT = ("convolution", "Fourier")
# Numbers of several heads that are made at a time.
_AT_ONCE = 2**23


def mixing_of(scene: StreamScene) -> list[Candidate]:
    """Return what a stream's mixers carry and erase."""
    found = list[Candidate]()
    if not scene.asked:
        return found
    carrying, erasing = _carrying(scene), _erasing(scene)
    for layer, heads, mixer in _parts(scene):
        numbers = [("carried", carrying, sizes_of(mixer, scene.rows))]
        if mixer.erases:
            numbers.append(("erased", erasing, erased(mixer, scene.rows) / _pieces(scene)))
        for kind, factor, of_tokens in numbers:
            places = [(layer, head) for head in heads[: len(of_tokens)]]
            weights = between_words(scene, of_tokens.detach().float().cpu().nan_to_num(0))
            above = RowWeights(places, weights, torch.ones(weights.shape[:2], dtype=torch.int64)).above
            rows = (factor > 0).any(dim=1).nonzero()[:, 0]
            if len(rows):
                pairs = Pairs(kind, rows, factor[rows])
                found += pairs.best(scene, places, weights, standing_out(weights, above), torch.ones(len(places)))
    return found


def shares_of(trace: Trace, stream: str, layer: int, head: int, rows: Sequence[int]) -> Float[Tensor, "row key"]:
    """Return `sizes_of` in one head; of a layer with a matrix per channel, in all of them."""
    mixer = mixer_of(trace, stream, layer)
    return sizes_of(mixer, rows)[0] if mixer.per == "channel" else mixer.head(head).rows(rows).shares


def sizes_of(mixer: TokenMixer, rows: Sequence[int]) -> Float[Tensor, "head row key"]:
    """Return each key's share of its row's size; of a layer with a matrix per channel, of what arrives in all."""
    some = mixer.rows(rows)
    if mixer.per == "head":
        return some.shares
    arrived = some.layer_contributions
    return (arrived / arrived.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(arrived.dtype).tiny))[None]


def erased(mixer: TokenMixer, rows: Sequence[int]) -> Float[Tensor, "head row key"]:
    """Return the part of each earlier token's value that a delta rule erases as a token comes: β (k · k′)².

    A query equal to the earlier token's key reads so much less of its value afterwards; what decays isn't counted.
    """
    heads, asked = mixer.shape[0], list(rows)
    key = with_heads(mixer.key, heads)
    later = key[..., asked, :]
    alike = (later @ key.mT).square() / key.square().sum(dim=-1)[..., None, :].clamp_min(1e-12)
    strength = 1.0 if mixer.write is None else with_heads(mixer.write, heads)[..., asked, :]
    earlier = torch.tensor(asked, device=key.device)[:, None] > torch.arange(key.shape[-2], device=key.device)
    return (alike * strength * earlier).expand(heads, -1, -1)


def _parts(scene: StreamScene) -> Iterator[tuple[int, range, TokenMixer]]:
    """Yield layers' heads, few enough at a time."""
    for layer in scene.trace.layer_numbers(scene.stream):
        mixer = mixer_of(scene.trace, scene.stream, layer)
        # Of a file with weights alone, no vectors arrive.
        unknown = mixer.per == "channel" and mixer.value.shape[-1] == 0
        if mixer.kind in _SAME_FOR_EVERY_TEXT or unknown:
            continue
        heads, _, keys = mixer.shape
        together = max(1, _AT_ONCE // (len(scene.rows) * keys)) if mixer.per == "head" else heads
        for first in range(0, heads, together):
            chosen = range(first, min(heads, first + together))
            yield layer, chosen, mixer if len(chosen) == heads else mixer.heads(slice(chosen.start, chosen.stop))


def _carrying(scene: StreamScene) -> Float[Tensor, "asked word"]:
    """Weigh pairs by distance: a neighbour counts 0, a word far away nearly all."""
    asked, content = torch.tensor(scene.asked)[:, None], scene.queries.are("content")
    keys = scene.keys.are("content")
    keys[list(scene.resting)] = False
    reading = content[asked] | (asked == (-1 if scene.last is None else scene.last))
    return (1 - 1 / scene.apart(asked).clamp_min(1)) * (reading & keys)


def _erasing(scene: StreamScene) -> Float[Tensor, "asked word"]:
    asked, content = torch.tensor(scene.asked)[:, None], scene.queries.are("content")
    return 1.0 * (content[asked] & content & (asked > torch.arange(len(content))))


def _pieces(scene: StreamScene) -> Float[Tensor, " key"]:
    """Count the tokens of each token's word, so that a word counts as their mean."""
    counts = torch.tensor([float(len(pieces)) for pieces in scene.keys.pieces])
    return counts[scene.keys.index]
