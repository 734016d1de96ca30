"""A scan's method, from its manifest."""

from collections.abc import Mapping
from typing import Any


def facts_of_scan(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return a scan's facts by name."""
    model, done, settings = manifest["model"], manifest["done"], manifest["settings"]
    revision = f", revision {model['revision']}" if model.get("revision") else ""
    rows, cut = settings["rows"], f"the ends of {done['cut']:,} texts beyond {settings['length']:,} tokens"
    return [
        ("Model", f"{model['name']}{revision}, in {model['dtype']}"),
        ("Weights’ sha256", str(model["sha256"])),
        ("Corpus", f"{manifest['corpus']}: {done['texts']:,} texts, {done['tokens']:,} tokens"),
        ("Corpus fingerprint", str(manifest.get("fingerprint", ""))),
        ("Left out", f"{cut}; {done['skipped']:,} empty texts"),
        ("Measured", "every query of a text" if rows is None else f"at most {rows:,} queries per text"),
        ("Versions", ", ".join(f"{name} {version}" for name, version in manifest["versions"].items())),
    ]
