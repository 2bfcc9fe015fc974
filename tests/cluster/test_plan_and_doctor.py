"""The plan adds up, and the doctor says what is missing and what to do."""

from __future__ import annotations

import dataclasses
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster import task_sets
from cluster.errors import RecipeError
from cluster.placement import DRIVER, EVERYWHERE, LEARNER, SERVER, WORKER
from cluster.preflight import doctor
from cluster.preflight.doctor import (
    check_encoder,
    check_environment_of,
    check_memory,
    check_plan,
    check_shared_memory,
    check_tasks,
    check_writable,
    machine_checks,
)
from cluster.preflight.machine import Machine
from cluster.preflight.packages import check_import, check_package, check_python
from cluster.preflight.plan import make_plan
from cluster.preflight.start import check_devices, check_start
from cluster.recipe.recipe import Recipe, build_recipe, config_hash, load_recipe
from cluster.recipe.run_settings import RunSettings
from cluster.task_sets import TaskSets
from environments.task_sources import ListedTasks
from records.checks import Status
from records.episodes import Task
from sites.task_source import EmbeddedTasks
from sites.tasks import task_set

LAPTOP = Path(__file__).parents[2] / "cluster" / "recipes" / "laptop.yaml"

MACHINE = Machine(cores=2, memory_mb=8000, available_mb=7000, shared_memory_mb=4000, gpus=0)


def test_the_plan_adds_up() -> None:
    recipe = build_recipe({}, [
        "rollout.workers=3", "rollout.worker_cpus=1", "rollout.contexts_per_worker=4",
        "run.resources.memory_mb_per_rollout_worker=100", "run.resources.memory_mb_per_context=10",
    ])  # fmt: skip
    plan = make_plan(recipe, MACHINE)
    workers = next(part for part in plan.processes if part.name == "rollout worker")
    assert (workers.count, workers.cpus, workers.memory_mb) == (3, 1, 140)
    assert plan.memory_mb == sum(part.count * part.memory_mb for part in plan.processes)


def test_ray_is_given_at_least_what_the_processes_declare() -> None:
    recipe = build_recipe({}, ["rollout.workers=10", "rollout.worker_cpus=1"])
    plan = make_plan(recipe, MACHINE)
    assert plan.ray_cpus >= 10
    assert any("cores" in warning for warning in plan.warnings)
    assert make_plan(Recipe(), MACHINE).ray_cpus == 2


def test_the_default_recipe_fits_on_the_smallest_machine_we_promise() -> None:
    plan = make_plan(Recipe(), dataclasses.replace(MACHINE, memory_mb=6144, available_mb=6000))
    assert plan.missing == ()
    assert plan.warnings == ()


@pytest.mark.parametrize(
    ("override", "word"), [("run.resources.learner_memory_mb=9000", "memory"), ("run.resources.learner_gpus=1", "GPUs")]
)
def test_what_does_not_fit_is_missing(override: str, word: str) -> None:
    missing = make_plan(build_recipe({}, [override]), MACHINE).missing
    assert len(missing) == 1
    assert missing[0].startswith(word)


def test_what_fits_only_when_others_leave_is_a_warning() -> None:
    plan = make_plan(Recipe(), dataclasses.replace(MACHINE, available_mb=1000, shared_memory_mb=64))
    assert plan.missing == ()
    assert [warning.partition(":")[0] for warning in plan.warnings] == ["memory", "/dev/shm"]


def test_episodes_whose_prompts_no_server_keeps_are_a_warning() -> None:
    more = ["rollout.contexts_per_worker=5", "rollout.workers=2"]
    (warning,) = warned(*more)
    assert warning.startswith("policy.options.kept_prompts: 10 episodes")
    assert "of 8, " in warning
    assert "to 10, " in warning
    assert warned(*more, "policy.options.servers=3") == [], "three servers keep 24"
    assert "to 5, " in warned(*more, "policy.options.servers=2", "policy.options.kept_prompts=4")[0]
    for nothing_is_kept in ("policy.options.kept_prompts=0", "policy.options.batch_invariant=true"):
        assert warned(*more, nothing_is_kept) == [], "as it was asked for"
    assert warned("rollout.contexts_per_worker=4", "rollout.workers=2") == []
    on_a_cluster = "run.resources.address=head:6379"
    assert len(warned(*more, on_a_cluster)) == 1


def warned(*overrides: str) -> list[str]:
    plan = make_plan(build_recipe({}, list(overrides)), dataclasses.replace(MACHINE, cores=64.0))
    return [warning for warning in plan.warnings if "kept_prompts" in warning]


def test_an_address_of_rays_client_is_refused_and_submit_named() -> None:
    with pytest.raises(RecipeError, match=r"run\.resources\.address must be 'auto' or HOST:PORT.*`waymark submit`"):
        build_recipe({}, ["run.resources.address=ray://head:10001"])


def test_a_cluster_is_not_held_against_this_machine() -> None:
    recipe = build_recipe({}, ["run.resources.address=head:6379", "run.resources.learner_gpus=8"])
    plan = make_plan(recipe, MACHINE)
    assert plan.missing == ()
    assert "ray" not in [part.name for part in plan.processes]
    assert plan.ray_gpus == 8


@pytest.mark.parametrize(
    ("servers", "each", "learner", "gpus"),
    [
        (1, 0.5, 0.5, 1),
        (3, 0.6, 0.0, 3),  # 1.8 in all, but no two of them fit on one
        (3, 0.6, 0.4, 3),
        (2, 0.3, 0.7, 2),
        (10, 0.1, 0.0, 1),
        (3, 0.3333, 0.0, 1),
        (4, 0.3333, 1.0, 3),
        (2, 2.0, 1.0, 5),
        (1, 1.0, 0.1, 2),
    ],
)
def test_a_share_of_a_gpu_lies_on_one(servers: int, each: float, learner: float, gpus: int) -> None:
    words = [f"policy.options.servers={servers}", f"policy.options.gpus={each}"]
    recipe = build_recipe({}, [*words, f"run.resources.learner_gpus={learner}"])
    assert make_plan(recipe, dataclasses.replace(MACHINE, gpus=gpus)).ray_gpus == gpus
    enough, fewer = (
        [line for line in make_plan(recipe, dataclasses.replace(MACHINE, gpus=there)).missing if "GPUs" in line]
        for there in (gpus, gpus - 1)
    )
    assert enough == []
    assert fewer == [f"GPUs: the plan needs {gpus}, this machine has {gpus - 1}; see run.resources and policy.options"]


def test_more_than_one_gpu_and_a_part_of_another_is_given_to_nobody() -> None:
    said = "must be a share of one GPU, or a whole number of them, found 1.5"
    for name in ("run.resources.learner_gpus", "policy.options.gpus"):
        with pytest.raises(RecipeError, match=f"{name} {said}"):
            build_recipe({}, [f"{name}=1.5"])


def test_this_machine_can_be_read() -> None:
    machine = Machine.here()
    assert machine.cores > 0
    assert 0 < machine.available_mb <= machine.memory_mb


def test_python_outside_the_range_fails_with_advice() -> None:
    assert check_python((3, 12)).status is Status.OK
    for version in ((3, 10), (3, 14)):
        assert check_python(version).status is Status.FAIL
        assert "3.11 to 3.13" in check_python(version).advice


def test_a_missing_package_is_named_with_what_to_do() -> None:
    check = check_package("no_such_module_here", "no-such[extra]")
    assert check.status is Status.FAIL
    assert "no-such[extra]" in check.advice
    assert check_package("yaml", "PyYAML").status is Status.OK


def test_a_package_that_does_not_load_is_told_apart_from_one_that_does() -> None:
    assert check_import("json").status is Status.OK
    broken = check_import("no_such_module_here")
    assert broken.status is Status.FAIL
    assert "No module named 'no_such_module_here'" in broken.found
    assert "not done after" in check_import("time; time.sleep(30)", timeout_s=0.2).found


def test_little_memory_and_a_small_shared_memory_warn() -> None:
    assert check_memory(dataclasses.replace(MACHINE, memory_mb=2000)).status is Status.WARN
    assert check_shared_memory(dataclasses.replace(MACHINE, shared_memory_mb=64)).status is Status.WARN
    assert check_shared_memory(dataclasses.replace(MACHINE, shared_memory_mb=None)).status is Status.OK


def test_a_folder_that_cannot_be_written_fails(tmp_path: Path) -> None:
    assert check_writable(tmp_path / "a" / "b").status is Status.OK
    assert not (tmp_path / "a").exists()
    blocker = tmp_path / "file"
    blocker.write_text("")
    assert check_writable(blocker / "run").status is Status.FAIL
    refused = check_writable(Path("/proc/run"))
    assert re.fullmatch(r"no file can be made in /proc \(.+\)", refused.found)


def policy_folder(path: Path, *names: str) -> Path:
    path.mkdir()
    for name in names:
        (path / name).touch()
    return path


WHOLE = ("config.json", "tokenizer.json", "model-00001-of-00002.safetensors", "checksums.json")


def test_a_missing_warm_start_fails_unless_the_run_clones_anyway(tmp_path: Path) -> None:
    gone = [f"warm_start.checkpoint={tmp_path / 'none'}"]
    assert [check.status for check in check_start(build_recipe({}, gone))] == [Status.FAIL]
    assert check_start(build_recipe({}, [*gone, "warm_start.clone=always"])) == []
    whole = LAPTOP.with_name("tiny-cloned")
    assert [c.status for c in check_start(build_recipe({}, [f"warm_start.checkpoint={whole}"]))] == [Status.OK]
    empty = policy_folder(tmp_path / "empty", *WHOLE)
    there, read = check_start(build_recipe({}, [f"warm_start.checkpoint={empty}"]))
    assert (there.status, read.status, read.name) == (Status.OK, Status.FAIL, "warm_start.checkpoint")


def test_a_checkpoint_whose_files_have_changed_is_named_before_the_run_copies_it(tmp_path: Path) -> None:
    folder = tmp_path / "shipped"
    shutil.copytree(LAPTOP.with_name("tiny-cloned"), folder)
    (folder / "critics" / "COMPLETE").unlink()
    _, changed = check_start(build_recipe({}, [f"warm_start.checkpoint={folder}"]))
    assert (changed.name, changed.status) == ("warm_start.checkpoint", Status.FAIL)
    assert changed.found == f"{folder}: critics/COMPLETE are missing or have changed"
    assert "git checkout" in changed.advice


@pytest.mark.parametrize("missing", range(len(WHOLE)))
def test_a_folder_without_a_model_or_a_tokenizer_is_no_policy(tmp_path: Path, missing: int) -> None:
    folder = policy_folder(tmp_path / "part", *(name for i, name in enumerate(WHOLE) if i != missing))
    for setting in ("warm_start.checkpoint", "policy.model"):
        check, *of_what_it_holds = check_start(build_recipe({}, [f"{setting}={folder}"]))
        # A model that others made has no checksums of ours.
        fine = setting == "policy.model" and WHOLE[missing] == "checksums.json"
        assert check.status is (Status.OK if fine else Status.FAIL)
        assert check.name == setting
        assert fine or "safetensors" in check.found or WHOLE[missing] in check.found
        assert len(of_what_it_holds) == fine, "a tokenizer of no bytes is told only where the files are there"


def test_a_model_is_a_folder_or_may_be_a_name_on_the_hub(tmp_path: Path) -> None:
    def status(model: object) -> Status:
        return check_start(build_recipe({}, [f"policy.model={model}"]))[0].status

    assert status(policy_folder(tmp_path / "model", *WHOLE)) is Status.OK
    assert check_start(Recipe()) == []
    assert status("organisation/some-model-1.5b") is Status.WARN
    for path in (tmp_path / "none", "./none", "~/none", "a/b/c", "not a name", "cluster/none"):
        assert status(path) is Status.FAIL, path


@pytest.mark.parametrize(
    ("device", "gpus", "platform", "status"),
    [
        ("cuda", 0, "linux", Status.FAIL), ("cuda", 1, "linux", Status.OK), ("cuda:1", 1, "linux", Status.FAIL),
        ("cuda:1", 2, "linux", Status.OK), ("mps", 0, "linux", Status.FAIL), ("mps", 0, "darwin", Status.OK),
    ],
)  # fmt: skip
@pytest.mark.parametrize("setting", ["policy.device", "learner.device"])
def test_a_device_that_this_machine_has_not_is_named(
    setting: str, device: str, gpus: int, platform: str, status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    recipe = build_recipe({}, [f"{setting}={device}"])
    checks = check_devices(recipe, dataclasses.replace(MACHINE, gpus=gpus))
    assert [(check.name, check.status) for check in checks] == [(setting, status)]
    elsewhere = {*EVERYWHERE} - {SERVER if setting == "policy.device" else LEARNER}
    assert check_devices(recipe, MACHINE, elsewhere) == []


@pytest.mark.parametrize("place", [[], ["run.resources.address=auto"]])
@pytest.mark.parametrize(
    ("device", "declared"), [("policy.device", "policy.options.gpus"), ("learner.device", "run.resources.learner_gpus")]
)
def test_a_process_on_cuda_declares_its_gpu_where_ray_could_place_it_elsewhere(
    device: str, declared: str, place: list[str]
) -> None:
    def failed(gpus: int, *more: str) -> list[str]:
        recipe = build_recipe({}, [f"{device}=cuda", *place, *more])
        checks = check_devices(recipe, dataclasses.replace(MACHINE, gpus=gpus))
        return [check.advice for check in checks if check.status is Status.FAIL]

    (advice,) = failed(8)
    assert advice.startswith(f"set {declared} to 1")
    assert failed(8, f"{declared}=1") == failed(8, f"{declared}=0.5") == []
    assert bool(failed(1)) is bool(place), "on one machine with one GPU there is no other"


@pytest.mark.parametrize(
    ("override", "found"),
    [
        ("run.environment=nowhere", "expected an environment out of"),
        ("run.environment=''", "expected an environment out of"),
        ("run.environment=no.such.module:thing", "cannot import 'no'"),
        ("run.environment=json:nothing", "has no 'nothing'"),
        ("run.environment=json:loads", "found a function"),
        ("run.environment=..above:thing", "cannot import '..above'"),
        ("environments.embedded.names=[shop, nowhere]", "no site 'nowhere'"),
    ],
)
def test_an_environment_or_a_site_that_is_not_there_is_named(override: str, found: str) -> None:
    recipe = build_recipe({}, [override])
    (check,) = [check for check in check_environment_of(recipe) if check.status is Status.FAIL]
    assert found in check.found
    assert make_plan(recipe, MACHINE).memory_mb > 0


def test_tasks_are_looked_for_but_not_all_drawn() -> None:
    (check,) = check_tasks(build_recipe({}, ["run.training_tasks=1000000000", "run.evaluation.splits=[test]"]))
    assert check.status is Status.OK
    assert "120 of test, 300 of train" in check.found


@pytest.mark.parametrize(
    ("overrides", "found"),
    [
        (["rollout.trajectory_judge=autorater"], "autorater"),
        (
            ["warm_start.long_share=0", "environments.embedded.names=[shop, errands]", "warm_start.long_horizon=1"],
            "0 are",
        ),
        (["warm_start.demonstrations=1000000"], ""),
    ],
)
def test_what_cannot_be_judged_or_demonstrated_is_known_before(overrides: list[str], found: str) -> None:
    recipe = build_recipe({}, overrides)
    failed = [check.found for check in check_environment_of(recipe) if check.status is Status.FAIL]
    assert len(failed) == bool(found)
    assert found in "".join(failed)


@pytest.mark.parametrize("split", ["test", "test_templates"])
def test_training_tasks_that_belong_to_an_evaluation_are_known_before(
    split: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = EmbeddedTasks.task_set

    def leaking(self: EmbeddedTasks, seed: int, wanted: str, count: int, **more: Any) -> list[Task]:
        own = draw(self, seed, wanted, count, **more)
        return [*own[:-1], draw(self, RunSettings().evaluation.seed, split, 1)[0]] if wanted == "train" else own

    monkeypatch.setattr(EmbeddedTasks, "task_set", leaking)
    recipe = build_recipe({}, [f"run.evaluation.splits=[{split}]", "run.training_tasks=30"])
    (check,) = check_tasks(recipe)
    assert check.status is Status.FAIL
    assert "found 1 that are not" in check.found
    with pytest.raises(RecipeError, match="found 1 that are not"):
        TaskSets(recipe).prepare()


@pytest.mark.parametrize("count", [301, 10_000_000])
def test_more_training_tasks_than_there_are_are_refused_before_anything_starts(count: int) -> None:
    """The look draws 300 alone; a run draws all of them before it starts a process."""
    listed = ListedTasks([replace(task, split="train") for task in task_set(0, ("shop",), "train", 300)])
    tasks = TaskSets(build_recipe({}, [f"run.training_tasks={count}", "run.evaluation.splits=[test]"]))
    tasks._source = ListedTasks([*listed._tasks, *task_set(0, ("shop",), "test", 120)])
    with pytest.raises(RecipeError, match=f"split 'train' has 300 tasks, {count} were asked for"):
        tasks.prepare()


def test_prompts_that_the_tiny_policy_cannot_hold_are_refused(tmp_path: Path) -> None:
    def said(*overrides: str) -> list[str]:
        checks = check_start(build_recipe({}, ["warm_start.clone=always", *overrides]))
        return [check.found for check in checks if check.name == "policy.max_prompt_tokens"]

    assert said() == []
    assert said("policy.max_prompt_tokens=4000") == [
        f"{4000 + Recipe().policy.max_new_tokens} with policy.max_new_tokens, but policy.tiny.context_tokens holds "
        "2048 tokens"
    ]
    assert said("policy.max_prompt_tokens=4000", "policy.tiny.context_tokens=8192") == []
    shipped = check_start(load_recipe(LAPTOP, ["policy.max_prompt_tokens=9000"]))
    assert "the context of " in next(check.found for check in shipped if check.status is Status.FAIL)


@pytest.mark.parametrize(
    ("overrides", "failed", "warned"),
    [
        (["browser.observation_format=webrl"], ["browser.observation_format"], []),
        (["run.environment=browserless", "browser.observation_format=webrl"], ["browser.observation_format"], []),
        (["browser.viewport_only=true"], [], ["browser.viewport_only"]),
        (["run.environment=browserless", "browser.viewport_only=true"], [], ["browser.viewport_only"]),
        (
            ["run.environment=browserless", "environments.embedded.faults.error_share=0.1"],
            [],
            ["environments.embedded.faults"],
        ),
        (["environments.embedded.faults.error_share=0.1"], [], []),
        (["policy.model=org/model", "browser.observation_format=webrl", "browser.viewport_only=true"], [], []),
    ],
)
def test_pages_that_who_learns_and_who_plays_would_see_differently_are_told(
    overrides: list[str], failed: list[str], warned: list[str]
) -> None:
    checks = check_environment_of(build_recipe({}, overrides))
    assert [check.name for check in checks if check.status is Status.FAIL] == failed
    assert [check.name for check in checks if check.status is Status.WARN] == warned


def test_an_encoder_that_is_in_no_folder_is_taken_for_one_on_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "what_lacks", lambda name: "")
    (check,) = check_encoder("all-MiniLM-L6-v3")
    assert check.status is Status.WARN
    assert check_encoder("all-MiniLM-L6-v2") == check_encoder("tfidf") == []
    monkeypatch.setattr(task_sets, "encoder_named", lambda name: (_ for _ in ()).throw(ValueError(f"no {name}")))
    tasks = TaskSets(build_recipe({}, ["curriculum.encoder=all-MiniLM-L6-v3", "run.training_tasks=30"]))
    with pytest.raises(RecipeError, match=r"curriculum.encoder: no all-MiniLM-L6-v3"):
        tasks.prepare()


def test_a_plan_that_does_not_fit_fails_the_examination(tmp_path: Path) -> None:
    checks = check_plan(make_plan(build_recipe({}, ["run.resources.learner_gpus=1"]), MACHINE))
    assert [check.status for check in checks] == [Status.FAIL]


def test_a_browser_that_is_set_and_not_there_is_named(tmp_path: Path) -> None:
    recipe = build_recipe({}, [f"browser.executable={tmp_path / 'no-chromium'}"])
    browser = next(check for check in machine_checks(recipe, tmp_path, MACHINE) if check.name == "browser")
    assert browser.status is Status.FAIL
    assert "no-chromium" in browser.advice


@pytest.mark.parametrize(
    ("sandbox", "lacks", "status", "found"),
    [
        ("auto", "", Status.OK, "on"),
        ("auto", "no namespaces", Status.WARN, "off: no namespaces"),
        ("always", "no namespaces", Status.FAIL, "always, but there is none: no namespaces"),
        ("always", "", Status.OK, "on"),
        ("never", "no namespaces", Status.OK, "off, as the recipe says"),
    ],
)
def test_whether_chromium_has_its_sandbox_is_told(
    sandbox: str, lacks: str, status: Status, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("environments.browser.sandbox.why_none", lambda executable: lacks)
    recipe = build_recipe({}, [f"browser.sandbox={sandbox}", f"browser.executable={sys.executable}"])
    (check,) = doctor.check_sandbox(recipe)
    assert (check.name, check.status, check.found) == ("browser.sandbox", status, found)
    assert config_hash(recipe) == config_hash(build_recipe({}))


def test_without_a_browser_nothing_is_said_of_its_sandbox(tmp_path: Path) -> None:
    assert doctor.check_sandbox(build_recipe({}, [f"browser.executable={tmp_path / 'none'}"])) == []


LACKS = {
    DRIVER: {"matplotlib", "tensorboard", "ray[rllib]", "lxml"},
    WORKER: {"playwright", "lxml", "browser"},
    SERVER: {"policy.backend"},
    LEARNER: {"torch", "transformers", "learner.device"},
}
"""Of what a bare machine lacks, what a role needs and others do not all need."""


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No package can be found, and no browser."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)


@pytest.mark.parametrize("role", EVERYWHERE)
def test_a_machine_is_asked_for_what_its_role_needs(role: str, bare: None, tmp_path: Path) -> None:
    overrides = ["learner.device=cuda", f"browser.executable={tmp_path / 'none'}"]
    checks = machine_checks(build_recipe({}, overrides), tmp_path, MACHINE, roles=(role,))
    lacking = {check.name for check in checks if check.status is Status.FAIL}
    assert LACKS[role] <= lacking
    others = set().union(*(LACKS[other] for other in EVERYWHERE if other != role)) - LACKS[role] - {"lxml"}
    assert not others & lacking
    assert all(check.advice for check in checks if check.status is Status.FAIL and check.name in LACKS[role])


def test_a_driver_on_a_cluster_needs_no_browser_and_no_torch(bare: None, tmp_path: Path) -> None:
    def lacking(*overrides: str) -> set[str]:
        recipe = build_recipe({}, [f"browser.executable={tmp_path / 'none'}", *overrides])
        return {check.name for check in machine_checks(recipe, tmp_path, MACHINE) if check.status is Status.FAIL}

    assert {"torch", "browser", "policy.backend"} <= lacking()
    assert not {"torch", "browser", "playwright", "policy.backend"} & lacking("run.resources.address=auto")
    opening = lacking("run.resources.address=auto", "curriculum.value_band=true")
    assert {"browser", "playwright"} <= opening, "it opens first pages itself"


def test_on_a_cluster_vllm_is_refused_where_other_nodes_do_not_reach_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "check_server", lambda recipe: [])
    monkeypatch.setattr(doctor, "check_environment_of", lambda recipe, learns: [])

    def refused(*overrides: str) -> list[str]:
        recipe = build_recipe({"policy": {"backend": "vllm"}}, [*overrides])
        return [
            check.name
            for check in machine_checks(recipe, tmp_path, MACHINE, learns=False)
            if check.status is Status.FAIL
        ]

    joined, loopback = "run.resources.address=auto", "policy.options.bind=loopback"
    assert "policy.options.bind" in refused(joined, loopback)
    for fine in ([joined], [joined, "policy.options.bind=node"], [loopback], []):
        assert "policy.options.bind" not in refused(*fine), fine
    assert config_hash(build_recipe({"policy": {"backend": "vllm"}}, [loopback])) == config_hash(
        build_recipe({"policy": {"backend": "vllm"}})
    )


def test_what_plays_without_a_browser_needs_none(bare: None, tmp_path: Path) -> None:
    recipe = build_recipe({}, ["run.environment=browserless", f"browser.executable={tmp_path / 'none'}"])
    assert not {"browser", "playwright"} & {check.name for check in machine_checks(recipe, tmp_path, MACHINE)}


def test_an_evaluation_needs_no_judges_of_what_would_be_learned_from(tmp_path: Path) -> None:
    recipe = build_recipe({}, ["replay.outcomes=nobody"])

    def refused(*, learns: bool) -> set[str]:
        found = machine_checks(recipe, tmp_path, MACHINE, learns=learns)
        return {check.name for check in found if check.status is Status.FAIL}

    assert refused(learns=True) - refused(learns=False) == {"labels"}
