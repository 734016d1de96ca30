"""A model from a folder: safetensors only, nothing executable, and a plain word about whatever is wrong with it."""

import contextlib
import re
import threading
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from attention_viz.errors import AttentionVizError, LoadCancelled, ModelNotFound, UnsupportedModel, first_line
from attention_viz.models.huggingface import (
    AutoConfig,
    AutoModel,
    PreTrainedModel,
    transformers,
)
from attention_viz.models.model import AttentionModel
from attention_viz.models.sources.changing import keep_apart, unchanged
from attention_viz.models.sources.folders import CheckedFolder, check_folder
from attention_viz.models.sources.reading import of_both, own_reader
from attention_viz.models.sources.size import building, check_config, check_size
from attention_viz.models.sources.tokenizers import check_tokenizer, prepare_texts, read_tokenizer
from attention_viz.trace.trace import Provenance

__all__ = ["load_folder"]

_DTYPES = ("float64", "float32", "bfloat16", "float16")
# While transformers builds it changes what holds for all threads, such as torch's default precision.
_loading = threading.Lock()
# What is silent meanwhile, for all threads as well: by load, what it found.
_silence = threading.Lock()
_silenced: list[tuple[bool, int]] = []
# How often who waits for that, in seconds, looks whether to go on.
_LOOK = 0.25


def load_folder(
    folder: Path,
    name: str,
    *,
    device: str = "auto",
    dtype: str = "auto",
    sha256: str | None = None,
    compared: str | None = None,
    revision: str | None = None,
    largest: int | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    alone: bool = True,
) -> AttentionModel:
    """Load a model and its tokenizer from a folder, and wrap it.

    Args:
        folder: where config.json, model.safetensors and the tokenizer's files are.
        name: what to call the model, in messages too.
        device: "cpu", "cuda" …; "auto" takes a GPU where there is one.
        dtype: "float32", "float16", "bfloat16"; "auto" is float32 on a CPU and the model's own on a GPU.
        sha256: what the weights have to have, where that is known; see `CheckedFolder.sha256`.
        compared: their sha256, where that was compared before and nothing changed since: they aren't read for it again.
        revision: which version of the model this is, where that is known.
        largest: how many bytes of memory it may take; None for no limit.
        cancelled: is asked again and again whether to stop.
        alone: whether a model that reads a text beside a picture is to read text alone.

    Raises:
        LoadCancelled: `cancelled` said so.
        ModelNotFound: the folder lacks something, something in it is broken, or it changes meanwhile.
        UnsupportedModel: the folder holds code or pickles, the model takes more memory than `largest`, or it can't be
            recorded exactly.
    """
    check = _asking(name, cancelled)
    precision = _dtype(dtype, place := _device(device))
    checked = check_folder(folder, name)
    check_config(checked)
    # What ships was looked at; whatever else there is may be anybody's.
    apart = prepare_texts(ships=sha256 is not None or compared is not None)
    with unchanged(checked):
        found = compared or checked.sha256(check)
        _check_sum(name, found, sha256)
        check()
        with _quietly():
            with _turn(check):
                built = check_size(checked, lambda: _build(checked), largest)
            with building(check):
                hf_model = _read_model(checked, type(built), precision, check)
            tokenizer = read_tokenizer(checked, check, apart=apart)
            reader = own_reader(checked, hf_model)
    check()
    check_tokenizer(checked, hf_model, tokenizer)
    if sha256 is None and compared is None and revision is None and place.type == "cpu":
        keep_apart(hf_model)
    # A module is moved in place; what `to` returns is the same object, only without its type.
    nn.Module.to(hf_model, place)
    provenance = Provenance(model=name, revision=revision, sha256=found)
    if alone or reader is not None:
        return AttentionModel.of(hf_model, tokenizer, provenance, reader)
    return of_both(checked, hf_model, tokenizer, provenance)


def _asking(name: str, cancelled: Callable[[], bool]) -> Callable[[], None]:
    def check() -> None:
        if cancelled():
            raise LoadCancelled(f"loading {name} was stopped: nobody waits for it")

    return check


def _check_sum(name: str, found: str, expected: str | None) -> None:
    if expected not in (None, found):
        raise ModelNotFound(
            f"the weights of {name} have sha256 {found}, expected {expected}: the file is damaged or another's"
        )


def _read_model(
    folder: CheckedFolder, kind: type[PreTrainedModel], dtype: torch.dtype | str, check: Callable[[], None]
) -> PreTrainedModel:
    try:
        model, report = _taking_turns(kind, check).from_pretrained(
            str(folder.path),
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=dtype,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # told below, by name and with both shapes
        )
    except AttentionVizError:
        raise
    except Exception as error:
        raise _not_loadable(folder, error) from error
    model.__class__ = kind
    _refuse_misfits(folder.name, report, model)
    return model


def _taking_turns(kind: type[PreTrainedModel], check: Callable[[], None]) -> Any:
    """The same class, but that it takes a turn where transformers changes what holds for all threads.

    Those are two short moments, in which no file is read: while the empty model is built, and while what no file holds
    is filled, such as tables of positions.
    """

    def get_init_context(cls: Any, *args: Any, **options: Any) -> list[contextlib.AbstractContextManager[Any]]:
        return [_turn(check), *super(found, cls).get_init_context(*args, **options)]

    def initialize_weights(self: Any) -> None:
        with _turn(check):
            super(found, self).initialize_weights()

    methods = {"get_init_context": classmethod(get_init_context), "initialize_weights": initialize_weights}
    # What it is called is looked up while weights are read, in the module that it says it is of.
    found: Any = type(kind.__name__, (kind,), {**methods, "__module__": kind.__module__})
    return found


def _build(folder: CheckedFolder) -> PreTrainedModel:
    """The model by its configuration alone, with whatever numbers the torch device in charge gives it."""
    kind = _kind(folder.config)
    try:
        config = AutoConfig.from_pretrained(str(folder.path), local_files_only=True, trust_remote_code=False)
        return kind.from_config(config) if kind is AutoModel else kind(config)
    except AttentionVizError:
        raise
    except Exception as error:
        raise _not_loadable(folder, error) from error


def _not_loadable(folder: CheckedFolder, error: Exception) -> ModelNotFound:
    return ModelNotFound(f"{folder.name} can't be loaded as {folder.config['model_type']}: {folder.reason(error)}")


def _refuse_misfits(name: str, report: Mapping[str, Any], model: nn.Module) -> None:
    """Refuse weights that leave some of the model to random numbers, or some of themselves unused."""
    wrong = sorted(report["mismatched_keys"])
    if wrong:
        key, found, wanted = wrong[0]
        raise ModelNotFound(
            f"the weights of {name} don't fit its config.json: {len(wrong)} have another shape, such as {key}, "
            f"{tuple(found)} in the file and {tuple(wanted)} by config.json"
        )
    # A pooler sums up a text beside the way to the last hidden state; many folders leave it out.
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key.split("."))
    if missing:
        raise ModelNotFound(
            f"the weights of {name} are incomplete: {len(missing)} are missing, such as {missing[0]}; "
            "what is missing would be random numbers"
        )
    # A head for another task may stay unused; a layer may not: the picture would be of a shorter model.
    alike = {re.sub(r"\d+", "#", key) for key in model.state_dict()}
    unused = sorted(key for key in report["unexpected_keys"] if re.sub(r"\d+", "#", key) in alike)
    if unused:
        raise ModelNotFound(
            f"the weights of {name} don't fit its config.json: the file has layers that config.json leaves out, such "
            f"as {unused[0]}"
        )


def _kind(config: Mapping[str, Any]) -> Any:
    """The class that the folder's model is of, so that it comes with its head; the bare model where none is told."""
    names = config.get("architectures")
    name = cast("list[object]", names)[0] if isinstance(names, list) and names else None
    found = getattr(transformers, str(name), None)
    return found if isinstance(found, type) and issubclass(found, PreTrainedModel) else AutoModel


def _device(asked: str) -> torch.device:
    if asked == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=asked).device
    except (RuntimeError, AssertionError) as error:
        raise UnsupportedModel(
            f"the device {asked!r} was asked for, which this machine doesn't have: {first_line(error)}"
        ) from None


def _dtype(asked: str, device: torch.device) -> torch.dtype | str:
    if asked == "auto":
        return torch.float32 if device.type == "cpu" else "auto"
    if asked not in _DTYPES:
        raise UnsupportedModel(f"the dtype {asked!r} was asked for; allowed are auto, {', '.join(_DTYPES)}")
    return cast(torch.dtype, getattr(torch, asked))


@contextlib.contextmanager
def _turn(check: Callable[[], None]) -> Generator[None]:
    """A turn with transformers, a short one: nothing absurd is built, and nothing read from a disk.

    Args:
        check: called again and again while another's lasts; what it raises ends the wait.
    """
    while not _loading.acquire(timeout=_LOOK):
        check()
    try:
        check()
        yield
    finally:
        _loading.release()


@contextlib.contextmanager
def _quietly() -> Generator[None]:
    """Without transformers' progress bars and reports: what matters of them is told in an error of ours.

    They are all threads', so the first load silences them and the last gives them back.
    """
    logging: Any = transformers.utils.logging
    with _silence:
        _silenced.append((logging.is_progress_bar_enabled(), logging.get_verbosity()))
        logging.disable_progress_bar()
        logging.set_verbosity_error()
    try:
        yield
    finally:
        with _silence:
            # What the first load found is given back last, whichever load that is.
            shown, verbosity = _silenced.pop()
            logging.set_verbosity(verbosity)
            if shown:
                logging.enable_progress_bar()
