"""Refuses a foreign model that breaks, with the module that fails and whether it runs at all.

The model's own error is the refusal's cause: it says what went wrong in the code, and seldom why it did.
"""

import contextlib
import inspect
import re
import traceback
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING

from torch import OutOfMemoryError, Tensor, nn

from attention_viz.errors import AttentionVizError, LoadCancelled, ShapeError, UnsupportedModel, first_line
from attention_viz.inputs.media.arrays import described
from attention_viz.inputs.module_tree import own_names

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel

    from attention_viz.recording.runner import Runner

# Inputs of models that aren't text.
SEEN = frozenset({"pixel_values", "pixel_values_videos", "input_features", "input_values", "visual_feats"})

# Inputs of a text alone.
_TEXT = frozenset({"input_ids", "attention_mask", "decoder_input_ids", "decoder_attention_mask"})
# Arguments that a model's error may name, but that aren't missing.
_OPTIONS = ("inputs_embeds", "labels", "past_key_values", "use_cache", "return_dict", "output_attentions")
# What a text model may need beside ids.
_BESIDE = ("bbox", "image", *sorted(SEEN), "context_input_ids", "query_embeds", "shared_kv_states")


# What such a model reads instead of one row of tensors, and what to do.
_NOT_ONE_ROW = {
    "context_input_ids": "it reads several retrieved texts as rows; wrap its writer alone: av.wrap(model.generator)",
    "shared_kv_states": "it reads its target's keys and values, which inputs= doesn't take; wrap the target instead",
}


class TooLargeError(UnsupportedModel):
    """Raised if a model's run takes all memory; it isn't tried again in another way."""


def family_of(model: "PreTrainedModel") -> str:
    """Return a model's family and class, for refusals."""
    return f"{model.config.model_type} ({type(model).__name__})"


@contextlib.contextmanager
def naming(runner: "Runner", inputs: Mapping[str, Tensor], *, shapes: bool = False) -> Generator[None]:
    """Turn a foreign model's errors into refusals that name it and say if it runs by itself.

    Args:
        shapes: whether a refusal has the inputs' shapes, for a model that ran on others.
    """
    family = family_of(runner.model)
    try:
        yield
    except TooLargeError:
        raise
    except UnsupportedModel as error:
        raise UnsupportedModel(f"{family}: {error}") from error.__cause__
    except LoadCancelled:
        raise
    except Exception as error:
        _refuse_too_large(runner, error)
        if runs_alone(runner, inputs):
            raise UnsupportedModel(f"{family} runs, but not with our attention: {failing(error)}") from error
        if shapes:
            what, why = described(inputs), f"{failing(error)}{_other_size(inputs, error)}"
        else:
            what = "text alone" if {*inputs} <= _TEXT else " and ".join(inputs)
            why = _needed(runner, inputs, error) or failing(error)
        raise UnsupportedModel(f"{family} doesn't run on {what}: {why}") from error


def _other_size(inputs: Mapping[str, Tensor], error: Exception) -> str:
    """Return what to pass to a model that ran on inputs of other sizes; "" if that is unknown."""
    if SEEN & {*inputs}:
        return "; pass inputs of the example's type, in a size that the model reads"
    return "; pass a shorter text" if isinstance(error, IndexError) else ""


def _refuse_too_large(runner: "Runner", error: Exception) -> None:
    """Refuse a run that took all memory; what failed so dearly isn't tried again."""
    if isinstance(error, MemoryError | OutOfMemoryError) or "can't allocate memory" in str(error):  # torch's way
        family = family_of(runner.model)
        raise TooLargeError(f"{family} takes more memory than there is; try a shorter input") from error


@contextlib.contextmanager
def naming_trial(runner: "Runner", problem: str, fix: str = "its own error is this error's cause") -> Generator[None]:
    """Turn errors of a model's own code, on inputs that it never reads, into refusals."""
    try:
        yield
    except Exception as error:
        if _is_ours(error):
            raise
        _refuse_too_large(runner, error)
        raise UnsupportedModel(f"{problem}, it raised {type(error).__name__}; {fix}") from error


def failing(error: BaseException) -> str:
    """Name the module whose own code failed; one of our own errors says it itself."""
    if _is_ours(error):
        return first_line(error)
    modules = _modules(error)
    if not modules:
        return first_line(error) if isinstance(error, ShapeError) else "its own code fails"
    path = next((name for name, module in modules[0].named_modules() if module is modules[-1]), "")
    why = f": {first_line(error)}" if isinstance(error, ShapeError) else "; its own error is this error's cause"
    return f"{path or 'its forward'} ({type(modules[-1]).__name__}) fails{why}"


def _is_ours(error: BaseException) -> bool:
    """Return whether an error gives its own reason; shapes that don't fit inside a model give none."""
    return isinstance(error, AttentionVizError) and not isinstance(error, ShapeError)


def _modules(error: BaseException) -> list[nn.Module]:
    """Return the modules that an error passed, outermost first."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return [one for frame in frames if isinstance(one := frame.f_locals.get("self"), nn.Module)]


def _needed(runner: "Runner", inputs: Mapping[str, Tensor], error: BaseException) -> str:
    """Name what a model needs beside its inputs: its forward's required arguments, and those that its error names."""
    named = inspect.signature(runner.model.forward).parameters
    others = {name: one for name, one in named.items() if name not in {*inputs, *_OPTIONS}}
    required = [name for name, one in others.items() if _is_required(one)]
    asked = [name for name in others if re.search(rf"\b{name}\b", str(error))]
    more = tuple(dict.fromkeys((*required, *asked)))
    beside = tuple(name for name in _BESIDE if name in runner.named - {*inputs})
    if alone := next((words for name, words in _NOT_ONE_ROW.items() if name in (*more, *beside[:1])), ""):
        return alone
    if more:
        return f"it also needs {' and '.join(more)}; {_example(inputs, more)}"
    if not beside or not {*inputs} <= _TEXT:
        return ""
    return f"it also reads {' or '.join(beside)}; {_example(inputs, beside[:1])}"


def _is_required(one: inspect.Parameter) -> bool:
    return one.default is one.empty and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)


def _example(inputs: Mapping[str, Tensor], more: tuple[str, ...]) -> str:
    names = [name for name in inputs if "mask" not in name]
    said = ", ".join(f'"{name}": …' for name in (*names, *more))
    return f"pass an example input, av.wrap(model, inputs={{{said}}})"


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
def naming_foreign(runner: "Runner", inputs: Mapping[str, Tensor], *, edited: bool) -> Generator[None]:
    """Turn a foreign model's errors on an input into refusals.

    Our own errors stay as they are, except shapes that don't fit inside the model.

    Args:
        edited: whether edits may have broken the run.
    """
    try:
        yield
    except _ReportError as stopped:
        raise stopped.error from None
    except Exception as error:
        inside = _modules(error) or (SEEN & {*inputs} and not isinstance(error, ShapeError))
        if _is_ours(error) or not inside or (edited and runs_alone(runner, inputs)):
            raise
        with naming(runner, inputs, shapes=True):
            raise


@contextlib.contextmanager
def restored(modules: Iterable[nn.Module]) -> Generator[None]:
    """Undo a failed run's changes to modules: Swin makes its windows smaller for good, even if it then fails."""
    before = [(module, _settings(module)) for module in modules]
    try:
        yield
    except Exception:
        for module, settings in before:
            vars(module).update(settings)
        raise


def _settings(module: nn.Module) -> dict[str, object]:
    own = vars(module)
    return {name: one for name in own_names(own) if type(one := own[name]) in (int, float, tuple)}


def runs_alone(runner: "Runner", inputs: Mapping[str, Tensor]) -> bool:
    """Return whether a model runs with its own attention."""
    try:
        _ = runner.twin().run(inputs)
    except Exception:  # whatever a family's own code raises
        return False
    return True
