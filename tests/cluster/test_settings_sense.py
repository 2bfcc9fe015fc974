"""Every setting of a recipe either has a meaning for a value or refuses it by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from cluster.errors import RecipeError
from cluster.recipe.recipe import Recipe, build_recipe, flatten, resolved
from policy.settings import SMALLEST_VOCABULARY, TinyShape
from policy.tokenizer_training import train_tokenizer
from records.bounds import LARGEST

MAY_BE_ZERO = {
    "run.phases", "run.seed", "run.recoveries", "run.evaluation.seed", "run.evaluation.temperature",
    "run.evaluation.screenshots", "policy.options.cpus", "policy.options.gpus", "run.resources.learner_cpus",
    "run.resources.learner_gpus", "run.resources.ray_memory_mb", "run.resources.object_store_mb",
    "warm_start.value_demonstrations", "warm_start.habits_seed", "warm_start.long_share", "warm_start.faulty_low",
    "warm_start.detours", "warm_start.habitual", "warm_start.rollout_tasks",
    "environments.embedded.seed",
    "environments.embedded.faults.error_share", "environments.embedded.faults.slow_share",
    "environments.embedded.faults.slow_s", "environments.embedded.faults.expiry_share",
    "environments.embedded.faults.seed", "rollout.prefetch_per_worker", "rollout.worker_cpus",
    "rollout.worker_memory_mb", "rollout.temperature", "rollout.retry_delay_s", "rollout.infra_failure_share",
    "rollout.task_failure_share", "rollout.policy_failure_share", "rollout.judge_failure_share",
    "rollout.failure_floor", "rollout.max_staleness", "rollout.max_repeats", "rollout.max_unread",
    "rollout.shard_linger_s", "rollout.planning.tries", "rollout.planning.thinking_tokens",
    "policy.options.kept_prompts",
    "milestones.count", "milestones.examples_seed",
    "replay.pack_above",
    "replay.cap_per_rollout", "curriculum.coverage_share", "curriculum.replayed_share", "curriculum.perturbed_share",
    "curriculum.thin_site_tasks", "curriculum.value_low", "learner.gamma", "learner.alpha", "learner.lam",
    "learner.adapters.rank", "learner.seed", "learner.potential.learning_rate", "learner.potential.epochs",
    "learner.potential.pretrain_learning_rate", "learner.potential.pretrain_epochs", "learner.potential.weight_decay",
    "learner.value.learning_rate", "learner.value.epochs", "learner.value.pretrain_learning_rate",
    "learner.value.pretrain_epochs", "learner.value.weight_decay", "learner.instruction_filter.keep",
    "learner.losses.hard_filter.threshold", "learner.actor.learning_rate", "learner.actor.epochs",
    "learner.actor.weight_decay", "learner.actor.probe_steps", "learner.clone.learning_rate", "learner.clone.updates",
    "learner.clone.prompt_weight", "learner.clone.prompt_share", "learner.clone.warmup_share",
    "learner.clone.final_share", "learner.clone.weight_decay", "learner.losses.mgrpo.kl_weight",
    "learner.potential_data.max_horizons", "learner.value.max_states", "learner.potential.max_states",
    "learner.actor.max_decisions", "replay.critic_phases", "judges.milestone_steps.within",
    "learner.rewards.format_weight", "learner.rewards.judged_weight", "learner.rewards.admire.weight",
    "learner.rewards.admire.decay", "learner.rewards.admire.hit_bonus", "environments.webarena.login_margin_s",
}  # fmt: skip
"""Numbers for which 0 means something: none of them, none at random, at once."""

OPEN_SECTIONS = {
    "run.evaluation.tasks", "environments.webarena.task_files", "environments.webarena.writes",
    "environments.webarena.sites", "environments.webarena.login_forms", "judges.llm.models",
}  # fmt: skip
"""Mappings whose keys are the user's."""

CHAINS = "environments.embedded.chains"
MAY_HAVE_NO_ITEMS = {"learner.adapters.modules", f"{CHAINS}.long", f"{CHAINS}.trained"}
"""Lists without which something is the usual or left out."""

ANY_NUMBER = "learner.losses.hard_filter.threshold"
"""An advantage has no bounds."""

LOOKED_UP = {
    "policy.weights_store",
    "judges.evaluators.otherwise", "judges.orm.model", "judges.process.model",
    "run.resources.rollout_nodes", "run.resources.policy_nodes", "run.resources.learner_nodes",
    "run.environment", "warm_start.checkpoint", "warm_start.data", "browser.executable", "policy.model",
    "policy.backend", "policy.revision",
    "rollout.trajectory_judge", "rollout.milestone_judge", "judges.evaluators.answer_judge",
    "environments.webarena.credentials_file", "judges.llm.cache", "judges.llm.cache_password_variable",
    "milestones.model", "judges.autorater.model",
    "replay.outcomes", "replay.milestones", "replay.step_rewards",
    "judges.trained.folder", "judges.trained.token_variable",
    "judges.milestone_checker.folder", "judges.milestone_matching.encoder", "curriculum.encoder",
    "rollout.planning.potential",
}  # fmt: skip
"""Texts that only the machine can tell to be wrong; ``waymark check`` does (tests/cluster/test_plan_and_doctor.py)."""
FREE_TEXTS = {"run.name", *LOOKED_UP}
MAY_BE_EMPTY = {
    "run.resources.address", "judges.llm.model", "rollout.planning.model", "judges.trained.url", *LOOKED_UP,
} - {
    "policy.model", "policy.backend", "judges.llm.cache", "judges.milestone_matching.encoder", "curriculum.encoder",
}  # fmt: skip


def sections() -> Iterator[tuple[str, Any]]:
    """Every settings object of the default recipe with its dotted path."""
    waiting = [(name, getattr(Recipe(), name)) for name in Recipe.model_fields]
    while waiting:
        path, section = waiting.pop()
        if isinstance(section, Mapping):
            waiting += [(f"{path}.{name}", value) for name, value in section.items()]
        elif dataclasses.is_dataclass(section):
            yield path, section
            waiting += [(f"{path}.{f.name}", getattr(section, f.name)) for f in dataclasses.fields(section)]


def leaves(*types: type) -> list[Any]:
    """Parameters (section, name) of each setting whose default is of one of these types."""
    return [
        pytest.param(section, field.name, id=f"{path}.{field.name}")
        for path, section in sections()
        for field in dataclasses.fields(section)
        if type(getattr(section, field.name)) in types
    ]


def refuses(section: Any, name: str, value: object) -> bool:
    """Whether the setting refuses the value; the message must name the setting."""
    try:
        dataclasses.replace(section, **{name: value})
    except ValueError as error:
        found = str(error)
    else:
        return False
    assert name in found
    return True


@pytest.mark.parametrize(("section", "name"), leaves(int, float))
def test_no_number_is_negative_or_larger_than_anything_can_hold(
    section: Any, name: str, request: pytest.FixtureRequest
) -> None:
    for value in (-1, -1e-9, 1e30, 10**30, LARGEST + 1):
        assert refuses(section, name, value) or request.node.callspec.id == ANY_NUMBER, value


@pytest.mark.parametrize(("section", "name"), leaves(int, float))
def test_zero_is_refused_where_it_means_nothing(section: Any, name: str, request: pytest.FixtureRequest) -> None:
    leaf = request.node.callspec.id
    assert refuses(section, name, 0) != (leaf in MAY_BE_ZERO)


@pytest.mark.parametrize(("section", "name"), leaves(str))
def test_a_text_is_one_of_a_few_or_looked_up_on_the_machine(
    section: Any, name: str, request: pytest.FixtureRequest
) -> None:
    leaf = request.node.callspec.id
    assert refuses(section, name, "nonsense") != (leaf in FREE_TEXTS)
    assert refuses(section, name, "") != (leaf in MAY_BE_EMPTY)


WRONG = (-1, 10**400, -(10**30), 1e300, [], {}, None, "nonsense", [[]], {"a": 1}, "\x1b[2J")


@pytest.mark.parametrize("value", WRONG, ids=lambda value: repr(value)[:20])
def test_a_wrong_setting_is_refused_by_name_and_shown_without_control_characters(value: Any) -> None:
    for leaf in flatten(resolved(Recipe())):
        *parents, last = leaf.split(".")
        raw: dict[str, Any] = {last: value}
        for parent in reversed(parents):
            raw = {parent: raw}
        try:
            found = flatten(resolved(build_recipe(raw)))
        except RecipeError as error:
            message = str(error)
        else:
            assert makes_sense(leaf, value), f"{leaf} takes {value!r}"
            for name, expected in flatten({leaf: value}).items():  # an open section takes keys of its own
                assert found[name] == (float(expected) if leaf == ANY_NUMBER else expected) or value is None, leaf
            continue
        assert last in message, leaf
        assert "\x1b" not in message


def makes_sense(leaf: str, value: object) -> bool:
    """Whether the setting may have one of the values that are wrong nearly everywhere."""
    if isinstance(value, str):
        return leaf in FREE_TEXTS
    no_options = value == {} and leaf.startswith("monitors.")
    no_items = value == [] and leaf in MAY_HAVE_NO_ITEMS
    return value is None or leaf == ANY_NUMBER or leaf in OPEN_SECTIONS or no_options or no_items


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"rollout": {"workers": 0}}, "rollout.workers must be at least 1, found 0"),
        ({"policy": {"device": "cuda:x"}}, "policy.device must be cpu, cuda, cuda:N or mps, found 'cuda:x'"),
        ({"policy": {"tiny": {"heads": 3}}}, "policy.tiny.width must be a multiple of twice heads (3)"),
        ({"policy": {"tiny": {"key_value_heads": 3}}}, "policy.tiny.key_value_heads must be a divisor of heads (4)"),
        ({"browser": {"observation_format": "html"}}, "browser.observation_format must be 'waymark' or 'webrl'"),
        (
            {"environments": {"embedded": {"names": ["shop", "shop"]}}},
            "environments.embedded.names must be at least one site, each once",
        ),
        (
            {"run": {"resources": {"address": "head"}}},
            "run.resources.address must be 'auto' or HOST:PORT, of a node that the driver runs on",
        ),
        ({"run": {"evaluation": {"splits": ["test", "test"]}}}, "run.evaluation.splits must be different ones of"),
    ],
)
def test_what_two_settings_say_together_makes_sense(raw: Any, message: str) -> None:
    with pytest.raises(RecipeError, match="recipe: ") as caught:
        build_recipe(raw)
    assert f"recipe: {message}" in str(caught.value)


def test_the_smallest_vocabulary_is_what_the_tokenizer_needs(tmp_path: Any) -> None:
    TinyShape(vocab_size=SMALLEST_VOCABULARY)
    assert train_tokenizer(["a page"], SMALLEST_VOCABULARY, tmp_path).is_dir()
    with pytest.raises(ValueError, match="vocab_size must be at least"):
        train_tokenizer(["a page"], SMALLEST_VOCABULARY - 1, tmp_path)
