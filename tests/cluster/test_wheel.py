"""A wheel holds whatever the sources hold: who installs it has the recipes and the shipped policy too."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.egg-info")


def test_a_wheel_holds_every_file_of_the_sources(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for part in ("src", "cluster"):
        shutil.copytree(ROOT / part, tree / part, ignore=LEFT_OUT)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree / name)
    own = [path for path in (tree / "src").rglob("*") if path.is_file()]
    expected = {path.relative_to(tree / "src").as_posix() for path in own}
    expected |= {path.relative_to(tree).as_posix() for path in (tree / "cluster").rglob("*") if path.is_file()}
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", tmp_path]
    subprocess.run([*map(str, command), "."], cwd=tree, check=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    with ZipFile(wheel) as file:
        found = {name for name in file.namelist() if ".dist-info/" not in name}
    assert expected - found == set()
    assert "cluster/recipes/tiny-cloned/critics/COMPLETE" in found
