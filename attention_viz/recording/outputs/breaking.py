"""Refuses a foreign model that breaks, with its error and whether it runs at all."""

import contextlib
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attention_viz.errors import AttentionVizError, LoadCancelled, UnsupportedModel, first_line

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel

    from attention_viz.recording.runner import Runner

# Inputs of models that aren't text.
SEEN = frozenset({"pixel_values", "pixel_values_videos", "input_features", "input_values", "visual_feats"})

# What a text model may need beside ids.
_BESIDE = ("bbox", "image", *sorted(SEEN), "context_input_ids", "query_embeds", "shared_kv_states")


# What such a model reads instead of one row of tensors, and what to do.
_NOT_ONE_ROW = {
    "context_input_ids": "it reads several retrieved texts as rows; wrap its writer alone: av.wrap(model.generator)",
    "shared_kv_states": "it reads its target's keys and values, which inputs= doesn't take; wrap the target instead",
}


def family_of(model: "PreTrainedModel") -> str:
    """Return a model's family and class, for refusals."""
    return f"{model.config.model_type} ({type(model).__name__})"


@contextlib.contextmanager
def naming(runner: "Runner", inputs: Mapping[str, Tensor]) -> Generator[None]:
    """Turn a foreign model's errors into refusals that name it and say if it runs by itself."""
    family = family_of(runner.model)
    try:
        yield
    except UnsupportedModel as error:
        raise UnsupportedModel(f"{family}: {error}") from None
    except LoadCancelled:
        raise
    except Exception as error:
        what = " and ".join(inputs) if SEEN & {*inputs} else "text alone"
        raised = f"it raised {type(error).__name__}: {first_line(error)}"
        if isinstance(error, MemoryError) or "can't allocate memory" in str(error):  # torch's way of saying it
            # What failed so dearly isn't tried again.
            raise UnsupportedModel(f"{family} takes more memory than there is: {raised}") from error
        how = "runs, but not with our attention" if _runs(runner, inputs) else f"doesn't run on {what}"
        more = [name for name in _BESIDE if name in runner.named - {*inputs}]
        if how == "doesn't run on text alone" and more and more[0] in _NOT_ONE_ROW:
            raised = _NOT_ONE_ROW[more[0]]
        elif how == "doesn't run on text alone" and more:
            example = f'inputs={{"input_ids": …, "{more[0]}": …}}'
            raised = f"it also reads {' or '.join(more)}; pass an example input, av.wrap(model, {example})"
        raise UnsupportedModel(f"{family} {how}: {raised}") from error


def steady_refusal(runner: "Runner", inputs: Mapping[str, Tensor], refusal: UnsupportedModel) -> UnsupportedModel:
    """Return a refusal, or the better reason if two runs of the model itself differ."""
    one, other = runner.run_own(inputs), runner.run_own(inputs)
    if one is None or other is None or (one.shape == other.shape and torch.allclose(one, other, 1e-3, 1e-3)):
        return refusal
    return UnsupportedModel(
        f"two runs of {family_of(runner.model)} differ on the same input, so it draws random numbers, such as for the "
        "order of its patches; use a model whose runs agree"
    )


class _ReportError(AttentionVizError):
    """Carries an error of a user's progress callback past those of the model."""

    def __init__(self, error: Exception) -> None:
        """Keep it."""
        super().__init__(str(error))
        self.error = error


def reporting(report: Callable[[float], object]) -> Callable[[float], None]:
    """Return a progress callback whose errors stop a run, and leave `naming_foreign` as they are."""

    def guarded(share: float) -> None:
        try:
            report(share)
        except Exception as error:
            raise _ReportError(error) from error

    return guarded


@contextlib.contextmanager
def naming_foreign(runner: "Runner", inputs: Mapping[str, Tensor]) -> Generator[None]:
    """Turn a foreign model's errors on an image or sound into refusals; ours, and those on text, stay as they are."""
    try:
        yield
    except _ReportError as stopped:
        raise stopped.error from None
    except AttentionVizError:
        raise
    except Exception:
        if not SEEN & {*inputs}:
            raise
        with naming(runner, inputs):
            raise


def _runs(runner: "Runner", inputs: Mapping[str, Tensor]) -> bool:
    """Return whether a model runs with its own attention."""
    try:
        _ = runner.twin().run(inputs)
    except Exception:  # whatever a family's own code raises
        return False
    return True


def or_random(runner: "Runner", inputs: Mapping[str, Tensor], refusal: UnsupportedModel) -> UnsupportedModel:
    """Return a refusal, or the better reason if two runs of the model itself differ."""
    one, other = runner.run_own(inputs), runner.run_own(inputs)
    if one is None or other is None or (one.shape == other.shape and torch.allclose(one, other, 1e-3, 1e-3)):
        return refusal
    return UnsupportedModel(
        f"two runs of {family_of(runner.model)} differ on the same input, so it draws random numbers, such as for the "
        "order of its patches; use a model whose runs agree"
    )
