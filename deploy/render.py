"""Write each example's manifests to ``deploy/kubernetes/rendered`` with kustomize: ``python deploy/render.py``.

They lie in the repository so that a change of a manifest is seen whole, and so that the tests read them where there is
no kubectl. Each names the digest of the files that it was made from, and a test compares that.
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

KUBERNETES = Path(__file__).resolve().parent / "kubernetes"
RENDERED = KUBERNETES / "rendered"
_LIMIT_S = 60.0


def examples() -> list[str]:
    """Return the names of the examples."""
    return sorted(path.parent.name for path in KUBERNETES.glob("examples/*/kustomization.yaml"))


def sources_digest() -> str:
    """Return the SHA-256 of every file that an example is made from, with its name."""
    digest = hashlib.sha256()
    for path in sorted([*KUBERNETES.rglob("*.yaml"), *KUBERNETES.rglob("*.json")]):
        if RENDERED not in path.parents:
            digest.update(f"{path.relative_to(KUBERNETES).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def render(example: str) -> str:
    """Return an example's manifests, with a line about where they come from; needs a kubectl with kustomize 5."""
    command = ["kubectl", "kustomize", str(KUBERNETES / "examples" / example)]
    made = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=True).stdout
    return f"# Made by deploy/render.py from examples/{example}; sources {sources_digest()}\n{made}"


if __name__ == "__main__":
    RENDERED.mkdir(exist_ok=True)
    for name in examples():
        (RENDERED / f"{name}.yaml").write_text(render(name), encoding="utf-8")
