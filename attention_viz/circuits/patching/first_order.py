"""Estimate all effects at once: (put minus present) times the number's gradient."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.circuits.asked import Direction, Logit, Probability
from attention_viz.circuits.opened import is_output_of
from attention_viz.circuits.patching.bench import Bench, Change
from attention_viz.recording.gradients import slopes_of
from attention_viz.recording.weights.unchanged import changed
from attention_viz.trace.trace import Trace


def numbers_of(
    output: Float[Tensor, "row position width"],
    of: Logit | Probability | Direction,
    padding: Sequence[bool],
    *,
    limited: bool = False,
) -> Float[Tensor, " row"]:
    """Return rows' numbers, float64; `padding` has one entry per position."""
    if of.position is None:
        real = [at for at in range(output.shape[1]) if len(padding) != output.shape[1] or not padding[at]]
        row = output[:, real].mean(dim=1)
    else:
        row = output[:, 0 if limited and output.shape[1] == 1 else of.position]
    row = row.double()
    if isinstance(of, Direction):
        return row @ of.vector.to(row)
    assert isinstance(of.token, int)
    if isinstance(of, Probability):
        return row.softmax(dim=-1)[:, of.token]
    return row[:, of.token] - row[:, of.against] if isinstance(of.against, int) else row[:, of.token]


def same(output: Tensor, trace: Trace) -> Tensor:
    """Return a run's output; refuse it if it differs from the trace's."""
    if not is_output_of(output[0], trace):
        raise changed(trace.provenance.model)
    return output


def keeping(kept: dict[int, Tensor], sites: Sequence[int], *, slopes: bool = False) -> Change:
    """Return a change that alters nothing but keeps some sites' outputs."""

    def keep(site: int, output: Tensor) -> Tensor:
        if site in sites:
            if slopes and not output.requires_grad:  # nothing before it does, as parameters are frozen
                output = output.detach().requires_grad_()
            kept[site] = output
        return output

    return keep


def with_slopes(
    bench: Bench, text: Trace, of: Logit | Probability | Direction
) -> tuple[float, dict[int, Tensor], dict[int, Tensor]]:
    """Return the number, each site's output and its gradient."""
    there: dict[int, Tensor] = {}
    with torch.inference_mode(False), torch.enable_grad(), bench.run.runner.door:
        output = bench.outputs(bench.run.inputs, 1, keeping(there, bench.sites, slopes=True), slopes=True)
        number = numbers_of(same(output, text), of, bench.run.tokens.padding)[0]
        slopes = slopes_of(bench.run.name, number, [there[site] for site in bench.sites])
    kept = {site: output.detach() for site, output in there.items()}
    return float(number.detach()), kept, dict(zip(bench.sites, slopes, strict=True))


def to_first_order(mine: Tensor, yours: Tensor, slope: Tensor, spots: Sequence[tuple[int, int]]) -> Tensor:
    """Return (put minus present) times gradient, (head, position), float64."""
    at, to = (list(side) for side in zip(*spots, strict=True))
    found = torch.zeros(mine.shape[1:3], dtype=torch.float64)
    gap = yours[0, :, to].double() - mine[0, :, at].double()
    found[:, at] = (gap * slope[0, :, at].double()).sum(dim=-1).cpu()
    return found
