"""A scan's folder, complete or stopped."""

from os import PathLike
from pathlib import Path
from typing import Any

from attention_viz.analysis.roles import ROLES
from attention_viz.corpus.columns import with_columns
from attention_viz.corpus.folder import Folder
from attention_viz.corpus.one_text import Heads
from attention_viz.corpus.tables import REGIONS, STUDIED, tables_of
from attention_viz.errors import ScanError
from attention_viz.trace.kind import MIXER, InputKind, Unit

_TABLES = ("heads", "kinds", "examples", "texts")
_UNITS = {InputKind.PICTURE.value: Unit.PATCH.value}


def read_folder(out: str | PathLike[str]) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """Return folder, manifest and tables; partial ones if it was stopped."""
    import pandas

    folder = Folder(Path(out))
    manifest = folder.manifest()
    if manifest is None:
        raise ScanError(f"{out} contains no scan; name a folder written by av.scan or attention-viz scan")
    pictures = bool(manifest["settings"].get("pictures"))
    own = (*_TABLES, REGIONS) if pictures else _TABLES
    if manifest["complete"]:
        studied = [name for name in STUDIED if (folder.path / f"{name}.parquet").is_file()]
        try:
            tables: dict[str, Any] = {
                name: pandas.read_parquet(folder.path / f"{name}.parquet") for name in (*own, *studied)
            }
        except (OSError, ValueError) as error:
            raise ScanError(f"the scan in {out} is damaged: {error}") from None
    else:
        state = folder.state()
        if state is None:
            raise ScanError(f"the scan in {out} has no results yet; start it again")
        tables = dict(tables_of(state.part, heads_in(manifest), pictures=pictures))
        manifest |= state.summary
    heads = tables["heads"]
    # Files store the keys only, so that old scans get labels, too.
    heads.insert(heads.columns.get_loc("score") + 1, "label", _labels(heads))
    return folder.path, manifest, {name: with_columns(name, table) for name, table in tables.items()}


def _labels(heads: Any) -> list[str]:
    kinds = ["mixer" if stream.startswith(MIXER) else _UNITS.get(stream, "word") for stream in heads["stream"]]
    return [ROLES[role].head(kind) for role, kind in zip(heads["role"], kinds, strict=True)]


def heads_in(manifest: dict[str, Any]) -> Heads:
    """List the scanned heads by stream, layer and number."""
    return tuple((str(stream), int(layer), int(head)) for stream, layer, head in manifest["heads"])
