"""Python and its packages, by what runs here: a rollout worker needs no torch, and a learner no browser.

Owns which role needs which package. Packages are looked up, not loaded.
"""

from __future__ import annotations

import importlib.util
import platform
import subprocess
import sys
from collections.abc import Collection

from cluster.milestones.writing import evaluates_with_milestones, writes_milestones
from cluster.placement import DRIVER, EVERYWHERE, LEARNER, WORKER
from cluster.recipe.recipe import Recipe
from cluster.run_folder.versions import package_version
from environments.kinds import KINDS
from records.checks import Check, Status

PYTHON_RANGE = ((3, 11), (3, 14))
IMPORT_TIMEOUT_S = 60.0
"""Fixed: a package that takes longer to load makes every process of a run late, which is worth a word."""
_PLAYWRIGHT = "playwright"
_NEEDED = {
    "torch": ("torch", (LEARNER,)),
    "transformers": ("transformers", (LEARNER,)),
    "tokenizers": ("tokenizers", EVERYWHERE),
    "safetensors": ("safetensors", (DRIVER, LEARNER)),
    "ray": ("ray", EVERYWHERE),
    "gymnasium": ("ray[rllib]", (DRIVER,)),
    "pyarrow": ("pyarrow", (DRIVER, WORKER, LEARNER)),
    _PLAYWRIGHT: ("playwright", (DRIVER, WORKER)),
    "lxml": ("lxml", (DRIVER, WORKER)),
    "starlette": ("starlette", (DRIVER, WORKER)),
    "uvicorn": ("uvicorn", (DRIVER, WORKER)),
    "jinja2": ("jinja2", (DRIVER, WORKER)),
    "matplotlib": ("matplotlib", (DRIVER,)),
    "tensorboard": ("tensorboard", (DRIVER,)),
}
"""By module: what to install, and the roles that import it. What serves the policy, its backend looks for."""


def check_packages(recipe: Recipe, roles: Collection[str]) -> list[Check]:
    """The packages that these roles import can be found."""
    browser = uses_browser(recipe, roles)
    return [
        check_package(module, requirement)
        for module, (requirement, of) in _NEEDED.items()
        if {*of} & {*roles} and (module != _PLAYWRIGHT or browser)
    ]


def uses_browser(recipe: Recipe, roles: Collection[str]) -> bool:
    """Whether one of these roles opens pages in a browser: a worker, or a driver that opens first pages itself."""
    try:
        played = KINDS.find(recipe.run.environment).browser
    except ValueError:
        return False  # where there is no such environment, its own check says so
    return played and (WORKER in roles or (DRIVER in roles and opens_first_pages(recipe)))


def opens_first_pages(recipe: Recipe, *, learns: bool = True) -> bool:
    """Whether the driver opens tasks' first pages itself: to have milestones written, or to ask the critic about them.

    An evaluation, which ``learns`` nothing, does so where milestones are shown or planned by.
    """
    if not learns:
        return evaluates_with_milestones(recipe)
    return writes_milestones(recipe) or recipe.curriculum.value_band


def check_python(version: tuple[int, ...]) -> Check:
    """Python is in the supported range."""
    low, high = PYTHON_RANGE
    found = f"{platform.python_version()} at {sys.executable}"
    if low <= version < high:
        return Check("python", Status.OK, found)
    wanted = f"{low[0]}.{low[1]} to {high[0]}.{high[1] - 1}"
    return Check("python", Status.FAIL, found, f"use Python {wanted}")


def check_package(module: str, requirement: str) -> Check:
    """A package can be found by the import system (it is not imported)."""
    distribution = requirement.partition("[")[0]
    if importlib.util.find_spec(module) is None:
        return Check(requirement, Status.FAIL, "not installed", f"run `make setup`, or pip install '{requirement}'")
    return Check(requirement, Status.OK, package_version(distribution) or "installed, version unknown")


def check_import(module: str, timeout_s: float = IMPORT_TIMEOUT_S) -> Check:
    """A package that is installed can also be loaded; tried in a child process, so that this one stays light."""
    name = f"import {module}"
    try:
        done = subprocess.run(
            [sys.executable, "-c", name], capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        return Check(name, Status.FAIL, f"not done after {timeout_s:g} s", "look for a busy or broken disk")
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"ended with {done.returncode}"]
        return Check(name, Status.FAIL, last[0], "run `make setup` in a fresh environment")
    return Check(name, Status.OK, "works")
