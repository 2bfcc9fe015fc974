"""``deploy/dashboard.py``, which is a script and no package's module."""

from __future__ import annotations

import importlib.util
from types import ModuleType

from tests.deploy.manifests import DEPLOY


def generator() -> ModuleType:
    """Return the script as a module."""
    spec = importlib.util.spec_from_file_location("deploy_dashboard", DEPLOY / "dashboard.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
