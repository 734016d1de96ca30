"""Build the documents as a site that needs no network: `make docs` runs it, in an environment with mkdocs.

Usage: python -m scripts.website [--out site] [--course DIR]
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from scripts.website.asking import asked_elsewhere
from scripts.website.staging import menu, stage

__all__ = ["main"]

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent


def main() -> int:
    """Build it; return 1 if a link is broken or a page would request something from another host."""
    parser = argparse.ArgumentParser(prog="python -m scripts.website", description="Build the documents as a site.")
    parser.add_argument("--out", type=Path, default=ROOT / "site", help="the folder of the site; it is replaced")
    parser.add_argument(
        "--course", type=Path, help="a folder that `attention-viz course` wrote, to be part of the site"
    )
    arguments = parser.parse_args()
    out, staged = arguments.out.resolve(), ROOT / "build" / "website"
    stage(ROOT, staged / "docs", arguments.course)
    shutil.copy(HERE / "iframe-worker.js", staged / "docs")
    configured = staged / "mkdocs.yml"
    configured.write_text(json.dumps(_configuration(staged, out), indent=2), encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--config-file", configured]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # news of another program
    if subprocess.run(command, cwd=ROOT, env=quiet, check=False).returncode:
        return 1
    if asked := sorted(asked_elsewhere(out)):
        print("The site would request these from other hosts:", *asked, sep="\n  ", file=sys.stderr)
        return 1
    print(f"The site is in {out}. Open {out / 'index.html'} in a browser, or put the folder on any web server.")
    return 0


def _configuration(staged: Path, out: Path) -> dict[str, object]:
    """Return the settings for mkdocs besides `mkdocs.yml`; JSON is valid YAML."""
    return {
        "INHERIT": str(HERE / "mkdocs.yml"),
        "docs_dir": str(staged / "docs"),
        "site_dir": str(out),
        "hooks": [str(HERE / "formulas.py")],
        "nav": menu(ROOT),
    }


if __name__ == "__main__":
    sys.exit(main())
