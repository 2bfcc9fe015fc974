"""The learner's process carries neither Ray nor pydantic."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import learner

PROBE = """
import importlib, pkgutil, sys
import learner
for module in pkgutil.iter_modules(learner.__path__):
    importlib.import_module(f"learner.{module.name}")
assert "learner.trainer" in sys.modules
print(",".join(sorted({"ray", "pydantic"} & set(sys.modules))))
"""


def test_no_module_of_the_learner_brings_ray_or_pydantic() -> None:
    source = str(Path(learner.__path__[0]).parent)
    result = subprocess.run(
        [sys.executable, "-c", PROBE],
        env={"PYTHONPATH": source, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == ""


def test_settings_need_no_torch() -> None:
    source = str(Path(learner.__path__[0]).parent)
    code = "import learner.settings, sys; assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": source},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert result.returncode == 0, result.stderr
