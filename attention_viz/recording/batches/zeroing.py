"""How far each layer's output turns with one key's value at zero.

Source: Mohebbi, Zuidema, Chrupała & Alishahi 2023, "Quantifying Context Mixing in Transformers", section 3. The
value is zero in all heads; the whole layer, feed-forward too, runs alone on its own input, a batch row per key.
"""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from attention_viz.edits.edit import edited
from attention_viz.edits.places import concerns
from attention_viz.errors import AttentionVizError, UnsupportedModel, first_line
from attention_viz.operation.attention import without_autocast
from attention_viz.operation.numerics import REORDERED, close
from attention_viz.recording.batches.batch import Batch
from attention_viz.recording.batches.turns import LayerTurn, layer_turns
from attention_viz.recording.gradients import ModelRun
from attention_viz.recording.interface import OURS
from attention_viz.recording.recorder import Call, heard_by, whole_output

# So many tokens run at a time, those of all rows of a batch together.
_TOKENS = 2048


@without_autocast()
def value_zeroing(run: ModelRun, stream: str) -> tuple[Float[Tensor, "query key"], ...]:
    """Return kept layers' turning by query and zeroed key: 1 - cos, 0 to 2."""
    if run.runner.windows.active:
        raise UnsupportedModel(f"{run.name} attends in windows, so its layers can't run in a batch")
    twin = run.runner.twin(frozen=True)
    calls = [number for number in run.numbers if run.anatomy.streams[number] == stream]
    turns = layer_turns(run, twin, stream)
    if missing := [run.anatomy.places[number][1] for number in calls if number not in turns]:
        raise UnsupportedModel(f"{run.name} has no module that computes the whole layer {missing[0]} of its {stream}")
    try:
        with twin.door, torch.no_grad(), twin.turned(OURS):
            return tuple(_turned(run, turns[number], number) for number in calls)
    except AttentionVizError:
        raise
    except Exception as error:
        raise UnsupportedModel(
            f"can't run a layer of {run.name} by itself: {type(error).__name__}: {first_line(error)}"
        ) from error


def _turned(run: ModelRun, turn: LayerTurn, number: int) -> Tensor:
    """(query, key)."""
    keys = run.layers[run.numbers.index(number)].attention.shape[-1]
    count = max(1, _TOKENS // turn.left.shape[1])
    columns = [_columns(run, turn, number, range(at, min(at + count, keys))) for at in range(0, keys, count)]
    return torch.cat(columns, dim=-1)


def _columns(run: ModelRun, turn: LayerTurn, number: int, keys: range) -> Tensor:
    places = run.anatomy.places

    def compute(here: int, call: Call) -> Tensor:
        """Each row but the first lacks a key's value."""
        if here == number:
            value = call.attention.value.clone()
            for row, key in enumerate(keys, start=1):
                value[row, :, key] = 0
            call = replace(call, attention=replace(call.attention, value=value))
        output = whole_output(call.attention)
        edits = [edit for edit in run.edits if concerns(edit, places[here])]
        for row in range(len(output)) if edits else ():
            output[row] = edited(edits, places[here], call.of_row(row).attention).output
        return output

    batch = Batch(places=places, rows=1 + len(keys), first=turn.first, compute_rows=compute)
    with heard_by(batch):
        whole, *others = turn.again(1 + len(keys)).double()
    expected = turn.left[0].double()
    if not close(whole, expected, REORDERED):
        raise UnsupportedModel(f"a layer of {run.name} gives another result when run by itself in a batch")
    # 1 - cos of two vectors is half the squared distance of their directions, which loses no digits.
    apart = normalize(torch.stack(others), dim=-1) - normalize(whole, dim=-1)
    return (apart.square().sum(dim=-1) / 2).float().T.cpu()
