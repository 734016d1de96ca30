"""The source of a requested model, whether it fits, and its facts."""

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from attention_viz.errors import ModelNotFound, UnsupportedModel
from attention_viz.models import SNAPSHOTS, load
from attention_viz.models.loading.snapshots import revision_of, snapshot_name
from attention_viz.protocol.facts import ModelFacts
from attention_viz.serving import permissions as allowed
from attention_viz.serving.cache import discard_everywhere
from attention_viz.serving.door import FORWARDS
from attention_viz.serving.run import Request
from attention_viz.serving.settings import SETTINGS
from attention_viz.sources import CATALOGUE
from attention_viz.sources.load_options import LoadOptions, memory_of

if TYPE_CHECKING:
    from attention_viz.models.model import AttentionModel
    from attention_viz.protocol.model import Model
    from attention_viz.sources import Plan

_known = {name: entry.facts for name, entry in CATALOGUE.items()}
# Why a model that reads text with audio has no audio on the pages.
_WHY_NO_SOUND = "the pages don't show audio beside a text yet; in Python, use model.trace(text, sound=av.Sound(path))"
# Numbers are read in float32, whatever a file holds, unless the operator chose another form.
_BYTES_A_NUMBER = {"float64": 8, "bfloat16": 2, "float16": 2}


_MOMENTS = {snapshot_name(model, step): (model, step) for model, steps in SNAPSHOTS.items() for step in steps}
# Each read model folder's files at that time.
_states = dict[str, Mapping[str, tuple[int, ...]]]()


def facts_of(name: str) -> ModelFacts:
    """Return a model's facts; few before its first load."""
    return _known.get(name, ModelFacts({}))


def remember(name: str, facts: ModelFacts) -> None:
    """Store a model's facts."""
    _known[name] = facts


def forget_facts(name: str) -> None:
    """Forget the facts of a model outside the catalogue."""
    if name not in CATALOGUE:
        _known.pop(name, None)


@dataclass(frozen=True)
class ModelFiles:
    """A model's files: its folder (none for the catalogue), rough bytes, and the files' state before reading."""

    name: str
    folder: Path | None
    memory: int
    revision: str | None = None
    state: Mapping[str, tuple[int, ...]] | None = None


def find(name: str) -> ModelFiles:
    """Return the files of an allowed model."""
    if name in CATALOGUE:
        return ModelFiles(name, None, CATALOGUE[name].size)
    if name in _MOMENTS:
        model, step = _MOMENTS[name]
        return ModelFiles(model, None, CATALOGUE[model].size, revision_of(step))
    if (reason := allowed.refusal(name)) is not None:
        raise ModelNotFound(reason)
    if allowed.kind(name) == "folder":
        from attention_viz.sources.folders import state_of

        before = state_of(folder := allowed.folder(name))
        return replace(_checked(allowed.display_name(name), folder, None), state=before)
    plan = plan_of(name)
    if not plan.complete:
        raise ModelNotFound(f"{name} isn't on this machine; download it first")
    from attention_viz.sources import download

    return _checked(plan.name, download(plan), plan.commit)


def note(name: str, source: ModelFiles) -> None:
    """Remember a folder's files, by the requested name."""
    if source.state is not None:
        _states[name] = source.state


def refresh(name: str) -> None:
    """Forget a folder's model and results if its files changed; pages call this once, first."""
    if (seen := _states.get(name)) is None:
        return
    from attention_viz.sources.folders import state_of

    # Only the thread that removes the entry drops the model.
    if state_of(Path(allowed.canonical_name(name))) != seen and _states.pop(name, None) is not None:
        forget_facts(name)
        discard_everywhere(lambda key: _is_of(name, key))
        sweep()


def sweep() -> None:
    """Collect unused objects, even those frozen at model loads."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def _is_of(name: str, key: object) -> bool:
    parts: tuple[object, ...] = cast("tuple[object, ...]", key) if isinstance(key, tuple) else (key,)
    return any(one == name or (isinstance(one, Request) and one.model == name) for one in parts)


def plan_of(name: str) -> "Plan":
    """Return a hub model's contents by its name in a URL."""
    from attention_viz.sources import plan

    return plan(*allowed.split(name))


def open_source(source: ModelFiles, cancelled: "Callable[[], bool]" = lambda: False) -> "Model":
    """Load a source."""
    options = _options(source.name, source.folder)
    if source.folder is None:
        chosen = {one.name: getattr(options, one.name) for one in fields(options)}
        return load(source.name, revision=source.revision, cancelled=cancelled, **chosen).behind(FORWARDS)
    from attention_viz.models.loading.load_folder import load_folder

    largest = SETTINGS.model_memory * 1_000_000
    model = load_folder(
        source.folder,
        source.name,
        options=options,
        revision=source.revision,
        largest=largest,
        cancelled=cancelled,
        alone=False,
    )
    return _shown(model).behind(FORWARDS)


def _shown(model: "AttentionModel") -> "AttentionModel":
    """Return a model as pages show it: without audio beside its text."""
    from attention_viz.inputs.media.beside_sound import BesideSoundReader
    from attention_viz.models.model import AttentionModel

    if not isinstance(model.reader, BesideSoundReader):
        return model
    return AttentionModel.of(model.hf_model, model.tokenizer, model.origin, why_alone=_WHY_NO_SOUND)


def check_room(name: str, needed: int) -> None:
    """Refuse a model that wouldn't fit even alone."""
    if needed > SETTINGS.model_memory * 1_000_000:
        raise UnsupportedModel(
            f"{name} needs {needed / 1e6:,.0f} MB of memory; at most {SETTINGS.model_memory:,} MB are allowed here "
            "(ATTENTION_VIZ_MODEL_MEMORY)"
        )


def _checked(name: str, folder: Path, revision: str | None) -> ModelFiles:
    from attention_viz.sources.folders import check_folder

    memory = _rough_bytes(check_folder(folder, name).numbers, _options(name, folder))
    check_room(name, memory)
    return ModelFiles(name, folder, memory, revision)


def _options(name: str, folder: Path | None) -> LoadOptions:
    """Return the operator's options for a model, by its name on the pages or its folder's path."""
    found = SETTINGS.load_options
    return found.get(name) or found.get(str(folder)) or LoadOptions()


def _rough_bytes(numbers: int, options: LoadOptions) -> int:
    """Estimate the bytes of a model's numbers in memory, without the disk's share."""
    size = numbers * (1 if options.quantization else _BYTES_A_NUMBER.get(options.dtype, 4))
    return size if options.max_memory is None else min(size, sum(memory_of(options.max_memory).values()))
