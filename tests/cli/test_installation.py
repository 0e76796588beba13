"""Commands that install optional packages, in environments of several installers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codebatch.installation import extra_command, packages_command

METADATA = """Metadata-Version: 2.4
Name: {name}
Version: 9.8
Provides-Extra: sql
Provides-Extra: serve
Requires-Dist: msgspec
Requires-Dist: star>=1; extra == "serve"
Requires-Dist: duck>=1.2; extra == 'sql'
Requires-Dist: other; python_version < '99' and extra == 'sql'
"""

INSTALLERS = {
    "pip": "PYTHON -I -m pip install",
    "uv": "uv pip install --python PYTHON",
    "pipx": "pipx inject codebatch@9",
}


@pytest.fixture(params=INSTALLERS)
def installer(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make an environment of an installer. Return the beginning of its command."""
    for name in ("codebatch", "engines"):
        place = tmp_path / f"{name}-9.8.dist-info"
        place.mkdir()
        (place / "METADATA").write_text(METADATA.format(name=name))
    if request.param == "pip":
        (tmp_path / "pip.py").touch()
    prefix = tmp_path / "codebatch@9"
    prefix.mkdir()
    if request.param == "pipx":
        (prefix / "pipx_metadata.json").write_text("{}")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "pip", raising=False)
    monkeypatch.setattr(sys, "prefix", str(prefix))
    monkeypatch.setattr(sys, "executable", "/a b/python")
    return INSTALLERS[request.param].replace("PYTHON", "'/a b/python'")


def test_command_installs_the_packages_of_the_extra_with_the_installer_of_the_environment(installer: str) -> None:
    assert extra_command("sql") == f"{installer} 'duck>=1.2' other"
    assert extra_command("serve", "engines") == f"{installer} 'star>=1'"
    assert packages_command(["tree-sitter-x"]) == f"{installer} tree-sitter-x"


@pytest.mark.parametrize("distribution", ["engines", "unknown"])
def test_extra_without_known_packages_is_named_itself(installer: str, distribution: str) -> None:
    assert extra_command("mine", distribution) == f"{installer} '{distribution}[mine]'"


@pytest.mark.parametrize("extra", ["sql", "serve"])
def test_command_is_accepted_by_the_installer_of_this_environment(extra: str) -> None:
    """The packages are there already, so nothing is downloaded."""
    command = extra_command(extra)
    if command.startswith("uv ") and shutil.which("uv") is None:
        pytest.skip("this environment has no installer")
    environment = {**os.environ, "PIP_NO_INDEX": "1", "UV_OFFLINE": "1"}
    subprocess.run(command, shell=True, check=True, env=environment, capture_output=True)
