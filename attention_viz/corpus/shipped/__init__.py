"""Scans that ship with the package, made by `make scans`, and their texts.

`austen.txt` has 300 passages, fifty from each of Jane Austen's six novels, which are in the public domain, as Debian's
package r-cran-janeaustenr has them: whole sentences put together up to 300 characters, spread evenly over each novel,
without headings and the marks of italics.
"""

from pathlib import Path

__all__ = ["CORPUS", "SHIPPED", "scans"]

_HERE = Path(__file__).parent
# The texts, and the models whose scans of them ship.
CORPUS = _HERE / "austen.txt"
SHIPPED = ("all-MiniLM-L6-v2", "SmolLM2-135M-Instruct")


def scans() -> dict[str, Path]:
    """Return each shipped scan's folder, by its model's name."""
    return {name: _HERE / name for name in SHIPPED if (_HERE / name / "manifest.json").is_file()}
