"""Build a folder's model with transformers: find its class, take turns, and check that its weights fit."""

import contextlib
import re
import threading
from collections.abc import Callable, Generator, Mapping
from logging import ERROR, getLogger
from typing import Any, cast

from torch import nn

from attention_viz.errors import AttentionVizError, ModelNotFound
from attention_viz.sources.folders import CheckedFolder
from attention_viz.sources.huggingface import AutoConfig, AutoModel, PreTrainedConfig, PreTrainedModel, transformers

# While transformers builds it changes what holds for all threads, such as torch's default precision.
_building = threading.Lock()
# The log settings that each load found; muting also holds for all threads.
_silence = threading.Lock()
_silenced: list[tuple[bool, int]] = []
# Seconds between two checks whether to go on waiting.
_LOOK = 0.25


def read_config(folder: CheckedFolder) -> PreTrainedConfig:
    """Read a folder's configuration as transformers does."""
    try:
        return AutoConfig.from_pretrained(str(folder.path), local_files_only=True, trust_remote_code=False)
    except Exception as error:
        raise loading_failure(folder, error) from error


def build(folder: CheckedFolder, config: PreTrainedConfig) -> PreTrainedModel:
    """Build the model with its head, or the bare one if config.json names no class, on the current torch device."""
    kind = named_class(folder.config)
    try:
        return AutoModel.from_config(config) if kind is None else kind(config)
    except AttentionVizError:
        raise
    except Exception as error:
        raise loading_failure(folder, error) from error


def named_class(config: Mapping[str, Any]) -> type[PreTrainedModel] | None:
    """Return the transformers class that config.json names; None if it names none."""
    names = config.get("architectures")
    name = cast("list[object]", names)[0] if isinstance(names, list) and names else None
    found = getattr(transformers, str(name), None)
    return found if isinstance(found, type) and issubclass(found, PreTrainedModel) else None


def loading_failure(folder: CheckedFolder, error: Exception) -> ModelNotFound:
    """Return the error with another library's reason, with the folder's name instead of its path."""
    kind = str(folder.config["model_type"])[:100]
    return ModelNotFound(f"can't load {folder.name} as {kind}: {folder.reason(error)}")


def taking_turns(
    kind: type[PreTrainedModel],
    check: Callable[[], None],
    during: Callable[[nn.Module], contextlib.AbstractContextManager[object]] = contextlib.nullcontext,
) -> Any:
    """Return a subclass that waits for its turn before transformers changes process-wide state.

    Those are two short moments without file reads: while the empty model is built, and while tensors that no file holds
    are filled. An exception in `check` ends the wait.
    """

    def get_init_context(cls: Any, *args: Any, **options: Any) -> list[contextlib.AbstractContextManager[Any]]:
        return [in_turn(check), *super(found, cls).get_init_context(*args, **options)]

    def initialize_weights(self: Any) -> None:
        with in_turn(check):
            super(found, self).initialize_weights()

    def init(self: Any, config: Any) -> None:
        with during(self):
            super(found, self).__init__(config)

    methods = {"get_init_context": classmethod(get_init_context), "initialize_weights": initialize_weights}
    # Its name is looked up while weights are read, in the module that it claims to belong to.
    found: Any = type(kind.__name__, (kind,), {**methods, "__init__": init, "__module__": kind.__module__})
    return found


def refuse_misfits(name: str, report: Mapping[str, Any], model: nn.Module) -> None:
    """Refuse weights that leave parameters random or layers unused, by the report of `from_pretrained`."""
    wrong = sorted(report["mismatched_keys"])
    if wrong:
        key, found, wanted = wrong[0]
        raise ModelNotFound(
            f"the weights of {name} don't fit its config.json: {len(wrong)} have another shape, such as {key}, "
            f"{tuple(found)} in the file but {tuple(wanted)} in config.json"
        )
    # A pooler sums up a text beside the way to the last hidden state; many folders leave it out.
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key.split("."))
    if missing:
        raise ModelNotFound(
            f"the weights of {name} lack {len(missing)} tensors, such as {missing[0]}, which would be random; get the "
            "complete weights"
        )
    # A head for another task may stay unused; a layer may not, or the page would show a shorter model.
    alike = {re.sub(r"\d+", "#", key) for key in model.state_dict()}
    unused = sorted(key for key in report["unexpected_keys"] if re.sub(r"\d+", "#", key) in alike)
    if unused:
        raise ModelNotFound(
            f"the weights of {name} don't fit its config.json: the file has layers that config.json lacks, such as "
            f"{unused[0]}"
        )


@contextlib.contextmanager
def in_turn(check: Callable[[], None]) -> Generator[None]:
    """Wait for a turn with transformers; read nothing from a disk in it. An exception in `check` ends the wait."""
    while not _building.acquire(timeout=_LOOK):
        check()
    try:
        check()
        yield
    finally:
        _building.release()


@contextlib.contextmanager
def quietly() -> Generator[None]:
    """Mute transformers' logs, process-wide: the first load mutes them, the last restores them."""
    logging: Any = transformers.utils.logging
    # It warns of what was asked for: parts on a disk.
    getLogger("accelerate").setLevel(ERROR)
    with _silence:
        _silenced.append((logging.is_progress_bar_enabled(), logging.get_verbosity()))
        logging.disable_progress_bar()
        logging.set_verbosity_error()
    try:
        yield
    finally:
        with _silence:
            # Restore the first load's settings last, whichever load ends last.
            shown, verbosity = _silenced.pop()
            logging.set_verbosity(verbosity)
            if shown:
                logging.enable_progress_bar()
