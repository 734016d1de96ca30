"""Load a model from a folder: safetensors only, no code, with a plain message for each error."""

import contextlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, cast

from torch import nn

from attention_viz.errors import AttentionVizError, LoadCancelled, ModelNotFound, TraceError
from attention_viz.models.loading.dry_run import Verdict
from attention_viz.models.loading.placement import Placement, place, stored_dtype
from attention_viz.models.loading.reading import check_tokenizer, of_both, own_reader, prepare_texts, read_tokenizer
from attention_viz.models.loading.verdicts import verdict_of
from attention_viz.models.model import AttentionModel
from attention_viz.recording.recorder import asked
from attention_viz.sources.building import (
    build,
    in_turn,
    loading_failure,
    quietly,
    read_config,
    refuse_misfits,
    taking_turns,
)
from attention_viz.sources.declarations import NO_ADAPTER, notes_on
from attention_viz.sources.folders import CheckedFolder, check_folder, keep_apart, state_of, unchanged
from attention_viz.sources.huggingface import PreTrainedModel, transformers
from attention_viz.sources.load_options import LoadOptions, check_options
from attention_viz.sources.size import building, check_config, check_size, refuse_larger, size_of
from attention_viz.trace.memory import give_back
from attention_viz.trace.trace import Provenance

_DEFAULT = LoadOptions()
# Read by transformers at each load.
_NO_THREADS = "HF_DEACTIVATE_ASYNC_LOAD"


def load_folder(
    folder: Path,
    name: str,
    *,
    options: LoadOptions = _DEFAULT,
    sha256: str | None = None,
    compared: str | None = None,
    revision: str | None = None,
    largest: int | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    alone: bool = True,
    shipped: bool = False,
) -> AttentionModel:
    """Load a model and its tokenizer from a folder, and wrap it.

    Args:
        largest: bytes of memory; None for no limit.
    """
    check = _asking(name, cancelled)
    check_options(options)
    with unchanged(folder, name), _asked_while_probing(check):
        checked = check_folder(folder, name)
        check_config(checked)
        # What ships was looked at; whatever else there is may be anybody's.
        apart = prepare_texts(ships=shipped)
        verdict = _built(checked, check) if shipped else verdict_of(checked, check)
        where = place(checked, options, check)
        refuse_larger(name, where.bytes_of(verdict.size), largest)
        found = compared or _sha256(checked, sha256, check)
        with quietly():
            with building(check):
                hf_model = _read_model(checked, verdict.kind, where, check)
            tokenizer = read_tokenizer(checked, check, apart=apart)
            reader = own_reader(checked, hf_model, check, apart=apart)
        check()
        check_tokenizer(checked, hf_model, tokenizer)
        if sha256 is None and compared is None and revision is None:
            keep_apart(hf_model)
        if where.parts is None:
            # A module is moved in place; what `to` returns is the same object, only without its type.
            nn.Module.to(hf_model, where.device)
        if where.parts is not None:
            _load_apart(hf_model)
        if where.offloads:
            _watch(hf_model, folder)
        give_back()
        provenance = Provenance(model=name, revision=revision, sha256=found, notes=notes_on(folder))
        if alone or reader is not None:
            return AttentionModel.of(hf_model, tokenizer, provenance, reader)
        return of_both(checked, hf_model, tokenizer, provenance, verdict.why_alone, check, apart=apart)


def _asking(name: str, cancelled: Callable[[], bool]) -> Callable[[], None]:
    def check() -> None:
        if cancelled():
            raise LoadCancelled(f"loading {name} was cancelled")

    return check


@contextlib.contextmanager
def _asked_while_probing(check: Callable[[], None]) -> Generator[None]:
    token = asked.set(check)
    try:
        yield
    finally:
        asked.reset(token)


def _sha256(folder: CheckedFolder, expected: str | None, check: Callable[[], None]) -> str:
    found = folder.sha256(check)
    if expected not in (None, found):
        raise ModelNotFound(
            f"the weights of {folder.name} have sha256 {found}, not {expected}; the file is damaged or another model's"
        )
    check()
    return found


def _built(folder: CheckedFolder, check: Callable[[], None]) -> Verdict:
    """Return the class and size of a model with known files, without a dry run."""
    config = read_config(folder)
    with quietly(), in_turn(check):
        model = check_size(folder, lambda: build(folder, config))
    return Verdict(type(model).__name__, size_of(model))


def _read_model(folder: CheckedFolder, kind: str, where: Placement, check: Callable[[], None]) -> PreTrainedModel:
    found = cast(type[PreTrainedModel], getattr(transformers, kind))
    spread: dict[str, Any] = {} if where.parts is None else {"device_map": dict(where.parts)}
    rest = tempfile.mkdtemp() if where.offloads else None
    converted = where.dtype not in ("auto", stored_dtype(folder))
    try:
        with _without_threads() if converted else contextlib.nullcontext():
            model, report = taking_turns(found, check).from_pretrained(
                str(folder.path),
                config=read_config(folder),
                local_files_only=True,
                use_safetensors=True,
                trust_remote_code=False,
                dtype=where.dtype,
                quantization_config=where.quantizer,
                offload_folder=rest,
                output_loading_info=True,
                adapter_kwargs=NO_ADAPTER,
                ignore_mismatched_sizes=True,  # told below, by name and with both shapes
                **spread,
            )
    except AttentionVizError:
        _remove(rest)
        raise
    except Exception as error:
        _remove(rest)
        raise loading_failure(folder, error) from error
    weakref.finalize(model, _remove, rest)
    model.__class__ = found
    refuse_misfits(folder.name, report, model)
    return model


def _load_apart(model: PreTrainedModel) -> None:
    """Have each module load its own weights as it runs.

    Accelerate shares tied ones by their address, which another matrix can have once theirs is free.
    """
    for module in model.modules():
        hook: Any = getattr(module, "_hf_hook", None)
        for one in getattr(hook, "hooks", (hook,)):
            if getattr(one, "offload", False) and getattr(one, "tied_params_map", None) is not None:
                one.tied_params_map, one.tied_params_names = {}, set()


def _watch(model: PreTrainedModel, folder: Path) -> None:
    """Have a model that reads weights from its folder while it runs refuse files that changed."""

    def state() -> dict[str, tuple[int, ...]]:
        return {name: one for name, one in state_of(folder).items() if name.endswith(".safetensors")}

    loaded = state()

    def check(_module: nn.Module, _inputs: Any) -> None:
        if state() != loaded:
            raise TraceError(
                f"the weights in {folder} changed since the model was loaded, which reads parts of them as it runs; "
                "load it again"
            )

    _ = model.register_forward_pre_hook(check)


@contextlib.contextmanager
def _without_threads() -> Generator[None]:
    """Have transformers read one tensor at a time: its threads hold several in the stored dtype meanwhile."""
    before = os.environ.get(_NO_THREADS)
    os.environ[_NO_THREADS] = "1"
    try:
        yield
    finally:
        if before is None:
            _ = os.environ.pop(_NO_THREADS, None)
        else:
            os.environ[_NO_THREADS] = before


def _remove(folder: str | None) -> None:
    """Remove the folder for offloaded parts."""
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
