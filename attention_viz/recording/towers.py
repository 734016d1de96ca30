"""Finds each call's tower and layer number by its module's name."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.operation.masks import causal
from attention_viz.recording.mixers.listening import mixing_modules
from attention_viz.recording.mixers.record import MixerCall
from attention_viz.recording.recorder import Call
from attention_viz.trace.kept import LayerNumber, numbers_of
from attention_viz.trace.kind import STREAMS
from attention_viz.trace.layers import MixerLayer

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel

# What parts of a module's name say that it is of a tower that reads pictures, sounds or text.
_PICTURES = ("vision", "visual", "image", "pixel", "vit", "video", "segmentation")
_SOUNDS = ("audio", "speech", "sound", "acoustic")
_TEXTS = ("text", "language", "decoder")

# Kinds whose layers pass their values through their short convolution, if they have one.
_CONVOLVED = ("gated delta", "Kimi delta", "SSD", "selective scan", "RG-LRU")


def paths_of(model: "PreTrainedModel", calls: Sequence[Call]) -> list[str]:
    """Return each call's module name."""
    names = {id(module): name for name, module in model.named_modules()}
    return [names.get(id(call.module), "") for call in calls]


def streams_by_tower(
    model: "PreTrainedModel", calls: Sequence[Call], inputs: Mapping[str, Tensor], known: Sequence[str]
) -> tuple[str, ...]:
    """Return each call's stream; calls over other positions than their stream's first have one of their own.

    Args:
        known: the streams of slots; "" for other calls, or "seen" if only an image or audio moves them.
    """
    named = zip(paths_of(model, calls), calls, known, strict=True)
    every = [(path, call, own) for path, call, own in named if own in ("", "seen")]
    paths, others = [path for path, *_ in every], [call for _, call, _ in every]
    streams = _of_towers(paths, others, inputs)
    streams = tuple(_kind(inputs) if own else stream for stream, (*_, own) in zip(streams, every, strict=True))
    _check_own_positions(model, paths, inputs)
    target = inputs["decoder_input_ids"].shape[1] if "decoder_input_ids" in inputs else 0
    answers = any(
        stream == "decoder" and call.attention.shape[1] == target for call, stream in zip(others, streams, strict=True)
    )
    if answers and "cross" not in streams:
        raise UnsupportedModel(
            f"no cross-attention was found in {type(model).__name__}, only {' and '.join(dict.fromkeys(streams))}; use "
            "a decoder that attends to its encoder"
        )
    found = iter(_by_positions(type(model).__name__, others, streams, known))
    return tuple(next(found) if own in ("", "seen") else own for own in known)


def _by_positions(family: str, calls: Sequence[Call], streams: Sequence[str], taken: Sequence[str]) -> tuple[str, ...]:
    """Number streams whose calls attend over other positions than the first; `taken` are names of other calls."""
    found, names = list[str](), dict[tuple[str, object], str]()
    for call, stream in zip(calls, streams, strict=True):
        over = call.attention.shape[1:], None if call.order is None else call.order.positions
        if (stream, over) not in names:
            free = (stream, *(f"{stream} {number}" for number in range(2, 2 + len(calls) + len(taken))))
            names[stream, over] = next(one for one in free if one not in {*taken, *names.values()})
        found.append(names[stream, over])
    if unknown := set(found) - {*STREAMS}:
        raise UnsupportedModel(
            f"{family} attends over {len(names)} different sets of positions, of which {', '.join(sorted(unknown))} "
            "are too many to name; use a model with fewer"
        )
    return tuple(found)


def _of_towers(paths: Sequence[str], calls: Sequence[Call], inputs: Mapping[str, Tensor]) -> tuple[str, ...]:
    if "decoder_input_ids" in inputs:
        return tuple(_of_pair(path, call, inputs) for path, call in zip(paths, calls, strict=True))
    if "input_ids" in inputs:
        return _of_two(paths, calls, inputs)
    both = any(name.startswith("pixel") for name in inputs) and any(name.startswith("input_") for name in inputs)
    named = [(_read_by(path) if both else "") for path in paths]
    # A tower for both has the positions of one of them.
    shapes = {call.attention.shape[1:]: name for call, name in zip(calls, named, strict=True) if name}
    return tuple(
        name or shapes.get(call.attention.shape[1:], _kind(inputs)) for call, name in zip(calls, named, strict=True)
    )


def _check_own_positions(model: "PreTrainedModel", paths: Sequence[str], inputs: Mapping[str, Tensor]) -> None:
    """Refuse attention between learned queries, which aren't part of the input."""
    if any(name.endswith("input_ids") for name in inputs) or _kind(inputs) == "sound":  # a codec's decoder has frames
        return
    asking = next((path for path in paths if "decoder" in path.split(".")), None)
    if asking is not None:
        raise UnsupportedModel(
            f"{type(model).__name__} attends in {asking}, whose positions are learned queries, not parts of its input; "
            "use a model that attends over image patches or audio frames"
        )


def sampling_parts(model: "PreTrainedModel", streams: Sequence[str]) -> tuple[str, ...]:
    """Name modules that read an image at sampled points; refuse a model without other attention to its image."""
    paths = [path for path, module in model.named_modules() if hasattr(module, "sampling_offsets")]
    if paths and "picture" not in streams:
        raise UnsupportedModel(
            f"{type(model).__name__} reads its image at sampled points, as in {paths[0]}, so it has no keys to show; "
            "use a model that attends to all positions, such as DETR"
        )
    kinds = Counter(re.sub(r"\d+", "*", path) for path in paths)
    return tuple(f"{count} modules {kind} (at sampled points)" for kind, count in kinds.items())


def check_turns(parted: Sequence[nn.Module]) -> None:
    """Refuse modules that attend several times in one turn, but not over chunks of their positions one by one."""
    if parted:
        raise UnsupportedModel(
            f"{type(parted[0]).__name__} attends several times in one turn, and its calls aren't chunks of the same "
            "queries, keys and values in their order; use a model whose modules attend once per turn or in such chunks"
        )


def check_positions(name: str, streams: Sequence[str], calls: Iterable[tuple[int, Call]]) -> None:
    """Refuse layers of a stream over other positions than each other, as windows of another size may have."""
    known = dict[str, object]()
    for number, call in calls:
        stream = streams[number] if number < len(streams) else ""
        over = call.attention.shape[1:], None if call.order is None else call.order.positions
        if known.setdefault(stream, over) != over:
            raise UnsupportedModel(
                f"{name} attends over other positions in some layers of its {stream} than in others, but not in the "
                "example that it was wrapped with; wrap it with inputs of this size"
            )


def check_layers(name: str, mixed: int, probed: int) -> None:
    """Refuse a run with more or fewer layers without a softmax than the probe's."""
    if mixed != probed:
        raise UnsupportedModel(
            f"{name} mixed tokens without a softmax {mixed} times in this text, but {probed} times when probed; its "
            "layers can't be identified"
        )


def check_calls(name: str, made: Sequence[nn.Module], probed: Sequence[nn.Module]) -> None:
    """Refuse a run whose modules attended in another order or number than in the probe."""
    if [*map(id, made)] != [*map(id, probed)]:
        raise UnsupportedModel(
            f"{name} made {len(made)} attention calls for this text, but {len(probed)} when probed, or in another "
            "order; its layers can't be identified"
        )


def check_shape(family: str, call: Call, known: Sequence[tuple[int, int]]) -> None:
    """Refuse a call of other numbers of queries and keys than the text's."""
    if call.attention.shape[1:] not in known:
        queries, keys = call.attention.shape[1:]
        lengths = sorted({length for pair in known for length in pair})
        tokens = f"its text has {' and '.join(map(str, lengths))} tokens" if any(lengths) else "it reads no text here"
        raise UnsupportedModel(
            f"{family}: {type(call.module).__name__} attends from {queries} positions to {keys}, but {tokens}, so "
            "some positions aren't tokens; use a model whose queries and keys are its tokens"
        )


def check_heads(model: "PreTrainedModel", calls: Sequence[Call]) -> None:
    """Refuse head counts that the configuration doesn't have, such as windows."""
    known = _head_counts(model.config.to_dict())
    strange = next((call for call in calls if known and call.attention.shape[0] not in known | _own_heads(call)), None)
    if strange is not None:
        raise UnsupportedModel(
            f"{type(strange.module).__name__} attends in {strange.attention.shape[0]} parts, but its configuration has "
            f"{', '.join(map(str, sorted(known)))} heads, so the parts may be windows or several images; use a model "
            "whose heads each see all"
        )


def _own_heads(call: Call) -> set[int]:
    """Return the head count that the module itself has."""
    own = [vars(call.module).get(name) for name in ("num_heads", "num_attention_heads", "n_heads")]
    return {one for one in own if type(one) is int}


def _head_counts(metadata: Mapping[str, Any]) -> frozenset[int]:
    """Return all head counts in a configuration."""
    found = set[int]()
    for name, value in metadata.items():
        if isinstance(value, dict):
            found |= _head_counts(cast("Mapping[str, Any]", value))
        elif "head" in str(name) and "dim" not in str(name):
            several = cast("list[Any]", value) if isinstance(value, list | tuple) else [value]
            found |= {one for one in several if isinstance(one, int) and not isinstance(one, bool)}
    return frozenset(found)


def _kind(inputs: Mapping[str, Tensor]) -> str:
    return "picture" if any(name.startswith(("pixel", "visual")) for name in inputs) else "sound"


def _of_pair(path: str, call: Call, inputs: Mapping[str, Tensor]) -> str:
    if not any("decoder" in part for part in path.split(".")):
        return (_read_by(path) or "encoder") if "input_ids" in inputs else "encoder"
    queries, keys = call.attention.shape[1:]
    return "decoder" if queries == keys else "cross"


def _of_two(paths: Sequence[str], calls: Sequence[Call], inputs: Mapping[str, Tensor]) -> tuple[str, ...]:
    """Return the streams of text beside an image or audio; text that attends to it is "cross"."""
    found = [_read_by(path) for path in paths]
    words = inputs["input_ids"].shape[1]
    shapes = [tuple(call.attention.shape[1:]) for call in calls]
    texts = {shape for shape, stream in zip(shapes, found, strict=True) if not stream}
    if len(texts) > 1 and (words, words) in texts:
        for number, (shape, stream) in enumerate(zip(shapes, found, strict=True)):
            if not stream and shape != (words, words):
                found[number] = "cross" if shape[0] == words else _kind(inputs)
    own = [call for call, stream in zip(calls, found, strict=True) if not stream]
    text = "decoder" if all(looks_back(call) for call in own) else "encoder"
    return tuple(stream or text for stream in found)


def in_tower(path: str) -> bool:
    """Return whether a module's name says that it reads images or audio."""
    return bool(_read_by(path))


def _read_by(path: str) -> str:
    """Return "picture" or "sound" by the innermost part of a module's name that says so; "" if it reads text."""
    parts = path.lower().split(".")
    if any(word in part for part in parts for word in _TEXTS):
        return ""
    for part in reversed(parts):
        if any(word in part for word in _SOUNDS):  # video beside audio is put into the audio's frames
            return "sound"
        if any(word in part for word in _PICTURES):
            return "picture"
    return ""


def looks_back(call: Call) -> bool:
    """Return whether a mask blocks all later keys."""
    allowed = call.attention.allowed
    if allowed is None or call.attention.shape[-2] > call.attention.shape[-1]:
        return False
    closed = causal(*call.attention.shape[1:]).to(allowed.device)
    return not bool((allowed & ~closed).any())


def layer_numbers(model: "PreTrainedModel", calls: Sequence[Call], streams: Sequence[str]) -> tuple[LayerNumber, ...]:
    """Return each call's layer number within its stream, by module name; see `numbers_of`.

    A shared module with as many names as calls has another one each time.
    """
    names = _paths(model, calls)
    found = dict[str, Iterator[LayerNumber]]()
    for stream in dict.fromkeys(streams):
        own = [_number(name) for name, one in zip(names, streams, strict=True) if one == stream]
        found[stream] = iter(numbers_of(own))
    return tuple(next(found[stream]) for stream in streams)


def mixer_labels(model: nn.Module) -> dict[nn.Module, str]:
    """Return the numbers of the layers that mix tokens without a softmax, as text."""
    names = {module: name for name, module in model.named_modules()}
    return {module: _number(names[module]) for module in mixing_modules(model)}


def mixer_layers(calls: Sequence[MixerCall]) -> dict[str, tuple[MixerLayer, ...]]:
    """Return the layers without a softmax by stream."""
    streams = dict.fromkeys(call.stream for call in calls)
    return {
        stream: tuple(
            MixerLayer(call.of_row(), call.label, _convolved(call)) for call in calls if call.stream == stream
        )
        for stream in streams
    }


def mixer_places(calls: Sequence[MixerCall]) -> tuple[tuple[str, LayerNumber], ...]:
    """Return the stream and number of each call of a layer without a softmax, in order."""
    numbers = {
        stream: iter(numbers_of([call.label for call in calls if call.stream == stream]))
        for stream in dict.fromkeys(call.stream for call in calls)
    }
    return tuple((call.stream, next(numbers[call.stream])) for call in calls)


def _convolved(call: MixerCall) -> int:
    """Return over how many tokens a convolution mixes the values before the call; 0 if none does."""
    if call.mixer.kind not in _CONVOLVED:
        return 0
    sizes = [int(one.kernel_size[0]) for one in call.module.modules() if isinstance(one, nn.Conv1d)]
    return max(sizes, default=0)


def numbering_note(streams: Sequence[str], modules: Sequence[nn.Module]) -> tuple[str, ...]:
    """Return a note if layers are counted by calls, since some modules attend more often."""
    calls = Counter(zip(streams, map(id, modules), strict=True))
    if len(set(calls.values())) == 1:
        return ()
    return ("Layers are counted by attention calls, since the model calls some of its attention modules more often.",)


def _paths(model: "PreTrainedModel", calls: Sequence[Call]) -> list[str]:
    """Return each call's module name."""
    names = dict[int, list[str]]()
    for name, module in model.named_modules(remove_duplicate=False):
        names.setdefault(id(module), []).append(name)
    modules = [id(call.module) for call in calls]
    found, counts = list[str](), Counter(modules)
    seen = Counter[int]()
    for module in modules:
        several = names.get(module, [""])
        found.append(several[seen[module]] if len(several) == counts[module] else several[0])
        seen[module] += 1
    return found


def _number(name: str) -> str:
    """Return a name's first number: "3" for "model.layers.3.self_attn"; "" if none."""
    return next((part for part in name.split(".") if part.isdigit()), "")


def layers_without(
    model: "PreTrainedModel", calls: Sequence[Call], streams: Sequence[str]
) -> dict[str, tuple[int, ...]]:
    """Return by stream the layers without attention in lists where others attend.

    Streams numbered by order are omitted: those are other numbers.
    """
    paths, numbers = _paths(model, calls), layer_numbers(model, calls, streams)
    own = {stream for stream in streams}
    own -= {
        stream for path, number, stream in zip(paths, numbers, streams, strict=True) if _number(path) != str(number)
    }
    lists = {name: module for name, module in model.named_modules() if isinstance(module, nn.ModuleList)}
    found = dict[str, set[int]]()
    for name, layers in lists.items():
        # A list inside a layer is not a list of layers: the outermost one with a number of its own counts.
        if _number(name):
            continue
        inside = {number: path for number, path in enumerate(paths) if path.startswith(f"{name}.")}
        attending = {path[len(name) + 1 :].split(".")[0] for path in inside.values()}
        missing = {number for number in range(len(layers)) if str(number) not in attending}
        for stream in own & {streams[number] for number in inside}:
            found.setdefault(stream, set()).update(missing)
    return {stream: tuple(sorted(numbers)) for stream, numbers in found.items()}
