"""The driver names the classes of its actors, but what they need to compute with is imported in their own processes."""

from __future__ import annotations

import subprocess
import sys


def test_a_driver_imports_neither_torch_nor_transformers(child_env: dict[str, str]) -> None:
    code = (
        "import sys, cluster.train, cluster.controller, cluster.system, cluster.run_report;"
        "import policy.torch_service, cluster.evaluation;"
        "sys.exit(','.join(sorted({'torch', 'transformers', 'learner.trainer', 'policy.engine'} & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=child_env)
    assert done.stderr.strip() == ""
