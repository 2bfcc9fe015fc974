"""Names: what a recipe may choose, and that each name has its function."""

from __future__ import annotations

import pytest

from learner.advantages import ADVANTAGES
from learner.algorithms import ADVANTAGE_ASKS, ALGORITHMS, DATA, LOSS_NEEDS, REWARD_ASKS, resolve
from learner.credit import CREDIT
from learner.critic_kinds import CRITICS
from learner.data_choices import MASKS
from learner.losses import POLICY_LOSSES
from learner.rewards import REWARDS
from learner.settings import LearnerSettings


def test_every_name_has_its_function() -> None:
    assert list(REWARD_ASKS) == list(REWARDS)
    assert list(ADVANTAGE_ASKS) == list(CREDIT)
    assert set(ADVANTAGES) <= set(CREDIT)
    assert list(LOSS_NEEDS) == list(POLICY_LOSSES)
    assert list(DATA) == list(MASKS)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_resolves_and_asks_critics_that_exist(name: str) -> None:
    algorithm = resolve(LearnerSettings(algorithm=name))
    assert set(algorithm.critics) <= set(CRITICS)
    assert (algorithm.reference is not None) == LOSS_NEEDS[algorithm.policy_loss].reference


def test_critics_have_numbers_of_their_own_apart_from_cloning_and_the_actor() -> None:
    numbers = [kind.number for kind in CRITICS.values()]
    assert len({0, 3, *numbers}) == len(numbers) + 2


def test_names_are_checked() -> None:
    with pytest.raises(ValueError, match="unknown algorithm 'ppo'"):
        LearnerSettings(algorithm="ppo")
    with pytest.raises(ValueError, match="unknown reward 'dense'"):
        LearnerSettings(reward="dense")
    with pytest.raises(ValueError, match="needs an advantage"):
        LearnerSettings(algorithm="filtered_bc", policy_loss="squared_regression")
    with pytest.raises(ValueError, match="unknown reference 'last_week': choose one of phase_start, warm_start"):
        LearnerSettings(reference="last_week")
    with pytest.raises(ValueError, match="policy loss 'awr' compares with no reference"):
        LearnerSettings(algorithm="awr", reference="warm_start")
    for choices in ({"algorithm": "mira"}, {"algorithm": "webagent_r1"}, {"data": "rollouts"}):
        with pytest.raises(ValueError, match="clones what it is given, failures too.*filtered_bc"):
            LearnerSettings(**{"algorithm": "filtered_bc", "policy_loss": "cross_entropy", **choices})
    for source in ("clock", "milestones"):
        with pytest.raises(ValueError, match="asks whether the critic is"):
            LearnerSettings(algorithm="mira", potential_source=source, better_than_clock=True)
    explicit = resolve(LearnerSettings(algorithm="mira", reward="outcome"))
    assert explicit.critics == ("value",)
    assert explicit.policy_loss == "squared_regression"
    clones = LearnerSettings(algorithm="mira", policy_loss="cross_entropy", data="successful_rollouts")
    assert resolve(clones).critics == (), "what is cloned needs no critic"
