"""What the Dockerfile installs for rollout workers is installed here, step by step, in a virtual environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.manifests import DEPLOY, ROOT

pytestmark = [pytest.mark.slow, pytest.mark.lengthy]

PYTHON = re.compile(r"^ARG PYTHON=python:(3\.\d+)", re.MULTILINE)
DOCKERFILE = (DEPLOY / "images" / "Dockerfile").read_text(encoding="utf-8")


def steps(target: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the files that a target copies and the pip commands that it runs, in their order."""
    (found,) = re.findall(rf"^FROM \S+ AS {target}$(.*?)^(?:FROM|\Z)", DOCKERFILE, re.MULTILINE | re.DOTALL)
    for line in found.replace("\\\n", " ").splitlines():
        word, _, rest = line.partition(" ")
        if word == "COPY":
            yield word, rest.split()
        elif word == "RUN":
            for command in rest.split("&&"):
                if command.split()[0] == "pip":
                    yield word, command.split()[1:]


def test_a_rollout_pod_is_installed_and_passes_its_own_look(tmp_path: Path) -> None:
    wanted = PYTHON.search(DOCKERFILE)
    assert wanted is not None
    if wanted[1] != f"{sys.version_info.major}.{sys.version_info.minor}":
        pytest.skip(f"the image has Python {wanted[1]}")
    venv.create(tmp_path / "python", with_pip=True)
    image, tools = tmp_path / "image", tmp_path / "python" / "bin"
    image.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_", "RAY_"))}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, capture_output=True, text=True, timeout=900, check=False, cwd=image, env=environment
        )

    done = list(steps("base"))
    assert sum(word == "RUN" for word, _ in done) == 3
    for word, arguments in done:
        if word == "COPY":
            copy(arguments, image)
        else:
            installed = run(str(tools / "python"), "-m", "pip", *arguments)
            assert installed.returncode == 0, installed.stdout + installed.stderr
    look = [str(tools / "waymark"), "doctor", "--set", "run.environment=browserless", "--role"]
    as_worker, as_learner = run(*look, "worker"), run(*look, "learner")
    assert as_worker.returncode == 0, as_worker.stdout + as_worker.stderr
    assert as_learner.returncode == 3, "the control: it is no learner's"
    assert re.search(r"torch +not installed", as_learner.stdout)


def copy(arguments: list[str], image: Path) -> None:
    """Copy as the Dockerfile says, below the image's folder of work."""
    *sources, target = arguments
    if target.startswith("/"):
        return  # a program beside Waymark
    for name in sources:
        source, place = ROOT / name, image / target
        if source.is_dir():
            shutil.copytree(source, place, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(source, place / source.name)
