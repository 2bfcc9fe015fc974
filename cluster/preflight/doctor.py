"""What is there and what is missing on this machine: the checks behind ``waymark doctor`` and ``waymark check``.

Owns the checks; each states what was found and, where that is not enough, what to do. A check belongs to the roles that
need what it looks for. Nothing is started and nothing heavy is imported: packages are looked up, not loaded.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path

from cluster.errors import RunError
from cluster.placement import DRIVER, EVERYWHERE, SERVER, WORKER
from cluster.preflight.machine import Machine
from cluster.preflight.packages import check_packages, check_python, opens_first_pages, uses_browser
from cluster.preflight.plan import Plan, planned
from cluster.preflight.start import check_devices, check_start
from cluster.recipe.recipe import Recipe
from curriculum.settings import TFIDF
from environments.kinds import KINDS, Wanted
from judges.kinds import JUDGES
from judges.llm.settings import named_model
from judges.of_milestones.encoder import DEFAULT, what_lacks
from learner.algorithms import resolve
from policy.backend import backend_of
from records.checks import Check, Status
from records.episodes import Task

MIN_MEMORY_MB = 6 * 1024
MIN_SHARED_MEMORY_MB = 256
_TASKS_LOOKED_FOR = 300
"""Fixed: of each set; drawing more takes longer than a look should."""


def machine_checks(
    recipe: Recipe,
    out: Path,
    machine: Machine | None = None,
    plan: Plan | None = None,
    roles: Collection[str] | None = None,
    *,
    learns: bool = True,
) -> list[Check]:
    """Return every check for what runs here of ``recipe`` (``roles``) into ``out``, on this machine or on ``machine``.

    Without ``roles`` that is all of it, or, where a cluster is joined, the driver: what else there is runs elsewhere.
    An evaluation, which ``learns`` nothing, asks for no judges of what would be learned from, and for no learner.
    """
    machine = machine or Machine.here()
    here = roles or ((DRIVER,) if recipe.run.resources.address else EVERYWHERE)
    checks = [
        check_python(sys.version_info[:2]),
        *check_packages(recipe, here),
        check_cores(machine),
        check_memory(machine),
        check_shared_memory(machine),
        check_threads(os.environ.get("OMP_NUM_THREADS")),
    ]
    if uses_browser(recipe, here):
        checks += [check_browser(recipe.browser.executable), *check_sandbox(recipe)]
    if DRIVER in here:
        checks += [check_writable(out), *check_start(recipe)]
    checks += check_devices(recipe, machine, here)
    if SERVER in here:
        checks += check_server(recipe)
    if DRIVER in here:
        checks += check_servers_reached(recipe)
        checks += [*check_environment_of(recipe, learns=learns), *check_language_models(recipe)]
    if WORKER in here:
        checks += check_planning(recipe)
    if DRIVER in here:
        checks += check_labels(recipe) if learns else []
        checks += check_plan(plan or planned(recipe, machine, learns=learns))
    return checks


def check_browser(executable: str) -> Check:
    """A Chromium is there: the one set, Playwright's, headless-shell or an installed one."""
    from environments.browser import chromium

    try:
        return Check("browser", Status.OK, str(chromium.find(executable)))
    except chromium.BrowserMissing as error:
        return Check("browser", Status.FAIL, "none that can be used", str(error))


def check_sandbox(recipe: Recipe) -> list[Check]:
    """Chromium has its own sandbox, where the recipe leaves that open or insists on it; nothing without a Chromium."""
    from environments.browser import chromium
    from environments.browser.sandbox import why_none

    name, wanted = "browser.sandbox", recipe.browser.sandbox
    if wanted == "never":
        return [Check(name, Status.OK, "off, as the recipe says")]
    try:
        lacks = why_none(chromium.find(recipe.browser.executable))
    except chromium.BrowserMissing:
        return []
    if not lacks:
        return [Check(name, Status.OK, "on")]
    advice = "docs/environments.md says what gives Chromium one, and what keeps pages apart without it"
    if wanted == "always":
        return [Check(name, Status.FAIL, f"always, but there is none: {lacks}", advice)]
    return [Check(name, Status.WARN, f"off: {lacks}", f"{advice}; pages of your own need none")]


def check_cores(machine: Machine) -> Check:
    """There are two cores to run on."""
    found = f"{machine.cores:g} usable" + (f", {machine.gpus} GPU" if machine.gpus else "")
    return (
        Check("cores", Status.OK, found) if machine.cores >= 2 else Check("cores", Status.WARN, found, "two are better")
    )


def check_memory(machine: Machine) -> Check:
    """There is memory for the laptop recipe."""
    found = f"{machine.memory_mb} MiB, {machine.available_mb} MiB free"
    if machine.memory_mb >= MIN_MEMORY_MB:
        return Check("memory", Status.OK, found)
    return Check("memory", Status.WARN, found, f"the laptop recipe wants {MIN_MEMORY_MB} MiB")


def check_shared_memory(machine: Machine) -> Check:
    """/dev/shm holds Ray's object store; Docker's default of 64 MiB does not."""
    if machine.shared_memory_mb is None:
        return Check("/dev/shm", Status.OK, "not used on this system")
    found = f"{machine.shared_memory_mb} MiB"
    if machine.shared_memory_mb >= MIN_SHARED_MEMORY_MB:
        return Check("/dev/shm", Status.OK, found)
    advice = f"at least {MIN_SHARED_MEMORY_MB} MiB keep the object store off the disk; with Docker: --shm-size=1g"
    return Check("/dev/shm", Status.WARN, found, advice)


def check_threads(setting: str | None) -> Check:
    """One OpenMP thread a process; more make small torch loops many times slower on a shared machine."""
    if setting == "1":
        return Check("OMP_NUM_THREADS", Status.OK, "1")
    return Check("OMP_NUM_THREADS", Status.OK, f"{setting or 'not set'}; the run sets 1 for each of its processes")


def check_writable(out: Path) -> Check:
    """The run folder, or the nearest folder above it that exists, can be written to."""
    folder = out.absolute()
    while not folder.exists():
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            return Check("write access", Status.OK, str(out))
    except OSError as error:
        found = f"no file can be made in {folder} ({error.strerror})"
        return Check("write access", Status.FAIL, found, "choose another --out")


def check_server(recipe: Recipe) -> list[Check]:
    """What serves the policy can run here."""
    backend, options = backend_of(recipe.policy)
    return backend.preflight(recipe.policy, options)


def check_servers_reached(recipe: Recipe) -> list[Check]:
    """Rollout workers on any node of a cluster reach the policy's servers; nothing where no cluster is joined."""
    backend, options = backend_of(recipe.policy)
    return backend.reached(options) if recipe.run.resources.address else []


def check_environment_of(recipe: Recipe, *, learns: bool = True) -> list[Check]:
    """The environment that the recipe names can play its tasks, and its judges can judge them."""
    name, rollout = recipe.run.environment, recipe.rollout
    try:
        recipe.judges_of_run.of_milestones(rollout.milestone_judge)
        kind, settings = KINDS.find(name), recipe.environment_settings(name)
        JUDGES.find(rollout.trajectory_judge)
        judged = partial(recipe.judges_of_run.preflight, rollout.trajectory_judge)
    except ValueError as error:
        return [Check("environment", Status.FAIL, str(error), "correct run.environment, rollout or judges")]
    evaluation = recipe.run.evaluation
    wanted = Wanted(
        tasks={"train": recipe.run.training_tasks, **{split: evaluation.count(split) for split in evaluation.splits}},
        judged=judged,
        reset_s=rollout.reset_deadline_s,
        episode_s=rollout.episode_deadline_s,
        stall_s=rollout.stall_timeout_s,
        elsewhere=bool(recipe.run.resources.address),
        first_pages=opens_first_pages(recipe, learns=learns),
    )
    checks = [*kind.preflight(settings, wanted), *check_pages(recipe, browser=kind.browser)]
    if any(check.status is Status.FAIL for check in checks):
        return checks
    try:
        recipe.judges_of_run.of_trajectories(rollout.trajectory_judge)
    except ValueError as error:
        return [*checks, Check("rollout.trajectory_judge", Status.FAIL, str(error), "name a judge of trajectories")]
    return [*checks, *check_tasks(recipe)]


def check_pages(recipe: Recipe, *, browser: bool) -> list[Check]:
    """Pages are written down alike for who learns from them and for who plays, in a ``browser`` or without one."""
    settings, checks = recipe.browser, []
    if browser and settings.observation_format != "webrl" and recipe.policy.prompt_format == "webrl":
        found = f"{settings.observation_format}, but the policy is taught on WebRL's pages"
        checks.append(Check("browser.observation_format", Status.WARN, found, "set it to webrl, to play on such pages"))
    if browser and not recipe.demonstrates:
        return checks
    who = "demonstrations are" if browser else f"{recipe.run.environment} is"
    if settings.observation_format != "waymark":
        found = f"{settings.observation_format}, and {who} played without a browser, which has pages as waymark alone"
        checks.append(Check("browser.observation_format", Status.FAIL, found, "set it to waymark"))
    if settings.viewport_only:
        found = f"true, and {who} played without a browser, which shows whole pages"
        checks.append(Check("browser.viewport_only", Status.WARN, found, "set it to false for pages that are alike"))
    return checks


def check_language_models(recipe: Recipe) -> list[Check]:
    """The language models that judges may ask have their keys and clients here; none is asked."""
    player = recipe.rollout.planning.model
    if player and player not in recipe.llm.models:
        found = f"{player} is none of judges.llm.models"
        return [Check("rollout.planning.model", Status.FAIL, found, "describe it there, or leave this empty")]
    if not recipe.llm.models:
        return []
    from judges.llm.preflight import look

    return look(recipe.llm)


def check_planning(recipe: Recipe) -> list[Check]:
    """The critic that tells an agent's progress is there, whole, and can be run."""
    folder = recipe.rollout.planning.potential
    if not folder:
        return []
    from policy.potential import PotentialModel

    try:
        critic = PotentialModel(Path(folder).expanduser())
    except (ValueError, ImportError) as error:
        return [Check("rollout.planning.potential", Status.FAIL, str(error), "export one with `waymark critic export`")]
    return [Check("rollout.planning.potential", Status.OK, f"{critic.exported.critic} of {critic.exported.checkpoint}")]


def ask_language_models(recipe: Recipe) -> list[Check]:
    """Each language model that has its key answers a cheap question; it costs next to nothing."""
    if not recipe.llm.models:
        return []
    from judges.llm.preflight import answers

    return answers(recipe.llm)


def check_labels(recipe: Recipe) -> list[Check]:
    """The judges that label episodes are there, and label what they are asked for."""
    checks: list[Check] = []
    for subject, name in recipe.replay.judges.items():
        try:
            found = recipe.judges_of_run.of_episodes(name).subject
            checks += recipe.judges_of_run.preflight(name, {})
        except ValueError as error:
            return [Check("labels", Status.FAIL, str(error), "correct replay or judges")]
        if found is not subject:
            wrong = f"judge {name!r} labels {found}, and is asked for {subject}"
            checks.append(Check("labels", Status.FAIL, wrong, "correct replay"))
    return checks


def check_tasks(recipe: Recipe) -> list[Check]:
    """The environment has the tasks that the recipe asks for, and they have the milestones that it learns from."""
    from cluster.task_sets import TaskSets

    try:
        found = TaskSets(recipe).look(_TASKS_LOOKED_FOR)
    except (LookupError, ValueError, RunError) as error:
        return [Check("tasks", Status.FAIL, str(error.args[0]), "see run.evaluation and run.training_tasks")]
    counts = ", ".join(f"{len(tasks)} of {split}" for split, tasks in found.items())
    checks = [Check("tasks", Status.OK, counts), *check_milestones(recipe, found["train"])]
    return [*checks, *check_encoder(recipe.curriculum.encoder)]


def check_encoder(name: str) -> list[Check]:
    """What compares instructions for the curriculum is installed; a model on the hub is asked for when a run starts."""
    if name == TFIDF:
        return []
    if advice := what_lacks(name):
        return [Check("curriculum.encoder", Status.FAIL, f"{name}: not installed", advice)]
    if name != DEFAULT and not Path(name).expanduser().is_dir():
        found = f"{name} is no folder here, so it is taken for a model on the Hugging Face hub"
        return [Check("curriculum.encoder", Status.WARN, found, "the hub is asked when the run starts")]
    return []


def check_milestones(recipe: Recipe, training: Sequence[Task]) -> list[Check]:
    """Tasks have milestones, or get some from a model that there is, where the algorithm learns from them."""
    try:
        if recipe.milestones.model:
            named_model(recipe.llm, recipe.milestones.model)
    except ValueError as error:
        return [Check("milestones.model", Status.FAIL, str(error), "name one of judges.llm.models")]
    without = sum(not task.milestones for task in training)
    learns = recipe.run.phases and resolve(recipe.learner).needs_milestones
    if not (without and learns):
        return []
    if recipe.milestones.model:
        if recipe.milestones.checks == "declared" or recipe.replay.milestones:
            return []
        found = "none, and replay.milestones names no judge: nobody says when a milestone that is written is reached"
        advice = "name one there, such as autorater or milestone_checker, or let milestones bring conditions: declared"
        return [Check("milestones.checks", Status.FAIL, found, advice)]
    found = f"{without} of {len(training)} training tasks have none, and {recipe.learner.algorithm!r} learns from them"
    advice = "name a language model that writes them in milestones.model, choose an algorithm without milestones"
    if recipe.milestones.absent == "warn":
        return [Check("milestones", Status.WARN, found, f"{advice}; such tasks teach nothing of progress")]
    return [Check("milestones", Status.FAIL, found, f"{advice}, or set milestones.absent to warn")]


def check_plan(plan: Plan) -> list[Check]:
    """The recipe's processes fit on the machine."""
    checks = [Check("plan", Status.FAIL, problem) for problem in plan.missing]
    checks += [Check("plan", Status.WARN, warning) for warning in plan.warnings]
    if not checks:
        checks.append(Check("plan", Status.OK, f"{plan.memory_mb} MiB, {plan.ray_cpus:g} cores declared to Ray"))
    return checks
