"""Load a model by name: from the catalogue, a folder, or the hub."""

from collections.abc import Callable
from os import PathLike, fsdecode
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attention_viz.errors import LoadCancelled, ModelNotFound, UnsupportedModel
from attention_viz.models.loading.verdicts import prepare
from attention_viz.sources.catalogue import CATALOGUE
from attention_viz.sources.load_options import DeviceMap, LoadOptions, MaxMemory, check_options
from attention_viz.sources.packages.progress import shown

if TYPE_CHECKING:
    from attention_viz.models.model import AttentionModel
    from attention_viz.scratch.model import Scratch

__all__ = ["load"]


def load(
    name: str,
    *,
    revision: str | None = None,
    device: DeviceMap = "auto",
    dtype: str = "auto",
    quantization: Any = None,
    max_memory: MaxMemory | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    alone: bool = False,
) -> "AttentionModel | Scratch":
    """Load a model by its name in the catalogue, from a folder, or from the hub.

    `name` is looked up in this order. A hub model is downloaded if it isn't on this machine yet;
    `attention_viz.models.plan` returns the download's size beforehand. Without a network, the local hub cache is used.

    Args:
        name: a catalogue name; a folder with config.json, model.safetensors and a tokenizer; a folder with a PEFT LoRA
            adapter, whose base model ships, is in a folder beside it or on the hub; a GGUF file, or a folder with one;
            or a hub id, "owner/name" or "name".
        revision: for a hub model, a branch, tag or commit; None for the main branch. For `induction`, which ships with
            checkpoints of its training, "step-" and a step from `attention_viz.models.SNAPSHOTS`. Must be None for
            other shipped models and for folders.
        device: "cpu", "cuda:1" …; "auto" uses a GPU if there is one, and spreads a model over all devices if it doesn't
            fit. Or how to spread it: "balanced", "sequential", or a dict such as {"model.layers.0": "cuda:0",
            "lm_head": "disk"} with a device per part. Parts on "cpu" beside a GPU, and on "disk", are fetched whenever
            the model runs them. Needs accelerate, as do the next two.
        dtype: "float32", "float16" or "bfloat16"; "auto" is float32 on a CPU and the model's own dtype on a GPU.
        quantization: "int8" or "int4", by torchao or bitsandbytes; or a quantization configuration of transformers. It
            rounds the matrices of linear layers, and the trace is of the rounded model.
        max_memory: the most bytes of weights per device, such as {"cuda:0": "20GiB", "cpu": "60GiB"}; the rest stays on
            the disk. Only these devices are used.
        cancelled: called repeatedly from this thread; return True to stop. A running download finishes first.
        alone: make a model that reads text beside an image or audio read text only.

    Raises:
        LoadCancelled: `cancelled` returned True.
        ModelNotFound: the model doesn't exist, or its files are missing or broken.
        UnsupportedModel: the model contains code or pickles, its attention can't be recorded exactly, or it has no such
            revision.
    """
    if not isinstance(name, str | PathLike):  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
        raise ModelNotFound(f"the name of a model must be a str; got {type(name).__name__}")
    name = fsdecode(name)
    options = check_options(LoadOptions(device, dtype, quantization, max_memory))
    return _load(name, revision, options, cancelled, alone)


def _load(
    name: str, revision: str | None, options: LoadOptions, cancelled: Callable[[], bool], alone: bool
) -> "AttentionModel | Scratch":
    if name not in CATALOGUE and revision is None and (file := find_gguf(name)) is not None:
        from attention_viz.models.loading.gguf import load_gguf

        return load_gguf(file, name, options, lambda: _go_on(name, cancelled))
    if name not in CATALOGUE and not _is_folder(name):
        return _load_from_hub(name, revision, options, cancelled, alone)
    if revision is not None:
        from attention_viz.models.loading.snapshots import load_snapshot

        return load_snapshot(name, revision, options=options, cancelled=cancelled)
    # Loaded late: the catalogue can be listed without waiting for torch and transformers.
    if name == "scratch":
        from attention_viz.scratch.model import Scratch

        return Scratch()
    if name in CATALOGUE:
        return _load_from_catalogue(name, options, cancelled, alone)
    return _load_from_folder(name, options, cancelled, alone)


def _load_from_folder(name: str, options: LoadOptions, cancelled: Callable[[], bool], alone: bool) -> "AttentionModel":
    """Load a folder's whole model, or its adapter with the base model."""
    # Its process imports torch and transformers while this one does.
    prepare()
    from attention_viz.models.loading.adapters import is_adapter, load_adapter
    from attention_viz.models.loading.load_folder import load_folder

    if not is_adapter(Path(name)):
        return load_folder(Path(name), name, options=options, cancelled=cancelled, alone=alone)

    def base(found: str | Path, version: str | None) -> "AttentionModel | Scratch":
        if isinstance(found, Path):
            # A stranger's file may lead to one further model, not on from there.
            if is_adapter(found):
                raise UnsupportedModel(
                    f"{name} is an adapter around another adapter; load it with peft and pass it to av.wrap"
                )
            return load_folder(found, found.name, options=options, cancelled=cancelled, alone=alone)
        if found in CATALOGUE:
            return _load_from_catalogue(found, options, cancelled, True) if found != "scratch" else load(found)
        return _load_from_hub(found, version, options, cancelled, alone)

    return load_adapter(Path(name), str(name), base, lambda: _go_on(name, cancelled))


def _load_from_catalogue(
    name: str, options: LoadOptions, cancelled: Callable[[], bool], alone: bool
) -> "AttentionModel":
    from attention_viz.models.loading.load_folder import load_folder

    entry = CATALOGUE[name]
    if entry.conversion is not None:
        with shown(f"Converting {name}") as bar:

            def progress(done: int, of: int) -> None:
                _go_on(name, cancelled)
                bar(done, of)

            folder = entry.conversion.complete(entry.installed, entry.sha256, entry.size, progress)
        return load_folder(folder, name, options=options, compared=entry.sha256, cancelled=cancelled, shipped=True)
    if entry.path is None:
        raise ModelNotFound(f"{name} is not on this machine; run attention-viz models --install {name}")
    return load_folder(
        entry.path,
        name,
        options=options,
        sha256=entry.sha256,
        cancelled=cancelled,
        alone=alone,
        shipped=True,
    )


def _go_on(name: str, cancelled: Callable[[], bool]) -> None:
    if cancelled():
        raise LoadCancelled(f"loading {name} was cancelled")


def _load_from_hub(
    name: str, revision: str | None, options: LoadOptions, cancelled: Callable[[], bool], alone: bool
) -> "AttentionModel":
    check_path(name)
    from attention_viz.sources import hub

    try:
        wanted = hub.plan(name, revision)
    except ModelNotFound as error:
        raise ModelNotFound(
            f"no model {name[:100]!r} in the catalogue ({', '.join(CATALOGUE)}), and no such folder; {error}"
        ) from None
    from attention_viz.sources.download import download

    folder = download(wanted)
    prepare()
    from attention_viz.models.loading.load_folder import load_folder

    return load_folder(folder, name, options=options, revision=wanted.commit, cancelled=cancelled, alone=alone)


def check_path(name: str) -> None:
    """Refuse a path that leads to no folder and can't be a name."""
    if not (
        name.startswith(("/", "~", "./", "../"))
        or name.count("/") > 1
        or "\\" in name
        or name.lower().endswith(".gguf")
    ):
        return
    try:
        there = Path(name).is_file()
    except (OSError, ValueError):  # no path at all: too long, or with a zero byte
        there = False
    asked = repr(name[:200])
    if name.lower().endswith(".gguf"):
        raise ModelNotFound(f"the GGUF file {asked} doesn't exist; download it, and give its path")
    what = f"{asked} is a file, not a folder" if there else f"the folder {asked} doesn't exist"
    raise ModelNotFound(
        f"{what}; give a folder, an id on the hub (owner/name), or a name in the catalogue ({', '.join(CATALOGUE)})"
    )


def find_gguf(name: str) -> Path | None:
    """Return the GGUF file of a name, if it is one; without importing torch."""
    from attention_viz.sources.gguf_files import gguf_in

    try:
        return gguf_in(Path(name)) if name else None
    except (OSError, ValueError):  # no path at all: too long, or with a zero byte
        return None


def _is_folder(name: str) -> bool:
    try:
        return bool(name) and Path(name).is_dir()
    except (OSError, ValueError):  # no path at all: too long, or with a zero byte
        return False
