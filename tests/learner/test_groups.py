"""Groups of episodes: rewards of steps, advantages within a group, and the losses that learn from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from learner.algorithms import GROUP_ADVANTAGES, resolve
from learner.credit import CREDIT, assign_credit
from learner.group_relative import silent_steps
from learner.losses import clipped_actions, clipped_tokens, mgrpo
from learner.metrics import GroupCounts
from learner.objective import ActorData
from learner.phase_batch import PhaseBatch
from learner.policy_terms import TokenTerms
from learner.settings import (
    ActorSettings,
    AdmireSettings,
    ClipSettings,
    LearnerSettings,
    LossSettings,
    MGrpoSettings,
    RewardSettings,
)
from learner.step_totals import milestone_rewards
from learner.trainer import Learner
from records.episodes import Trajectory
from replay.progress import BoolMatrix, hit_in_order
from tests.learner.conftest import make_trajectory
from tests.learner.phases import run_phase

Make = Callable[..., Trajectory]


def steps(count: int) -> list[tuple[list[int], list[int]]]:
    return [([3, 4], [5 + t, 2]) for t in range(count)]


def batch_of(*episodes: Trajectory, phase: int = 1) -> PhaseBatch:
    return PhaseBatch(episodes, fresh=len(episodes), phase=phase)


def admire(**changes: object) -> LearnerSettings:
    return LearnerSettings(algorithm="admire_grpo", rewards=RewardSettings(admire=AdmireSettings(**changes)))  # type: ignore[arg-type]


def test_milestones_of_a_success_pay_where_they_are_reached(trajectory: Make) -> None:
    # ADMIRE eq. 10, K = 4: counts 0, 0, 1, 1 before the actions and 2 at the end: actions 1 and 3 hit.
    won = trajectory(steps(4), reached=[0, 0, 1, 1, 2])
    assert milestone_rewards(won, admire()).tolist() == [0, 1, 0, 1]
    assert milestone_rewards(won, admire(base_of_successes=True)).tolist() == [0.5, 1.5, 0.5, 1.5]


def test_milestones_of_a_failure_pay_in_every_step(trajectory: Make) -> None:
    # ADMIRE eq. 11, the same episode failed: k / K = 2 / 4 everywhere, and zeta = 0.5 more where one is reached.
    lost = trajectory(steps(4), outcome=0.0, reached=[0, 0, 1, 1, 2])
    assert milestone_rewards(lost, admire()).tolist() == [0.5, 1.0, 0.5, 1.0]
    assert milestone_rewards(lost, admire(base_of_failures=False)).tolist() == [0, 0.5, 0, 0.5]
    # ADMIRE alg. 1 counts as it goes: 0, 1, 1, 2 of 4 after each action.
    assert milestone_rewards(lost, admire(base="so_far")).tolist() == [0, 0.75, 0.25, 1.0]


def test_a_milestone_counts_in_its_turn_alone() -> None:
    # ADMIRE section 3.2.1, K = 3, one row a state. The second is reached before the first: no hit, then or later.
    assert hit_in_order(states("000", "010", "110", "111")).tolist() == [0, 0, 1, 1]
    # The first goes wrong and the rest is done: nothing was hit, where three of four are true in the end.
    assert hit_in_order(states("0000", "0100", "0110", "0111")).tolist() == [0, 0, 0, 0]
    # One action may reach two, in their order.
    assert hit_in_order(states("000", "110", "110", "111")).tolist() == [0, 2, 2, 3]
    # What holds from the start is passed over in its turn, since no action can reach it.
    assert hit_in_order(states("100", "110")).tolist() == [1, 2]
    assert hit_in_order(states("010", "110", "111")).tolist() == [0, 2, 3]
    assert hit_in_order(states("0101", "0101", "1101", "1111")).tolist() == [0, 0, 2, 4]
    assert hit_in_order(states("11", "11")).tolist() == [2, 2]


def test_a_hit_pays_as_much_as_the_action_is_like_its_milestone(trajectory: Make) -> None:
    # ADMIRE eq. 9 to 11, K = 4, r_mil 0.8 and 0.95: a success pays 0.8, 0, 0.95; a failure k / K = 2 / 4 and half.
    won, lost = (trajectory(steps(3), outcome=outcome, reached=[0, 1, 1, 2]) for outcome in (1.0, 0.0))
    won, lost = (
        replace(one, steps=tuple(replace(s, similarity=r) for s, r in zip(one.steps, (0.8, 0.3, 0.95), strict=True)))
        for one in (won, lost)
    )
    np.testing.assert_allclose(milestone_rewards(won, admire()), [0.8, 0, 0.95])
    np.testing.assert_allclose(milestone_rewards(lost, admire()), [0.9, 0.5, 0.975])


def test_a_failure_that_swaps_its_milestones_is_paid_for_those_in_order(trajectory: Make) -> None:
    before = states("00", "01", "11").tolist()
    lost = trajectory(steps(3), outcome=0.0, milestone_count=2)
    played = tuple(replace(step, milestones=tuple(row)) for step, row in zip(lost.steps, before, strict=True))
    swapped = replace(lost, steps=played, final_milestones=(True, True))
    # k = 1 of 2: the first one, which the second action reached.
    assert milestone_rewards(swapped, admire()).tolist() == [0.5, 1.0, 0.5]


def states(*rows: str) -> BoolMatrix:
    return np.asarray([[mark == "1" for mark in row] for row in rows])


def test_a_trajectory_without_milestones_reaches_none(trajectory: Make) -> None:
    assert milestone_rewards(trajectory(steps(2), outcome=0.0, milestone_count=0), admire()).tolist() == [0, 0]


def test_totals_of_admire_by_hand(trajectory: Make) -> None:
    # ADMIRE section 3.3 in phase 2: lambda = 0.3 * 0.99^2 = 0.29403, eta = 0.5; step 1 did not parse.
    # Success: 1, 1 + lambda - 0.5.  Failure, K = 4, counts 0, 0, 1: lambda / 4, lambda (1/4 + 1/2).
    won, lost = (trajectory(steps(2), outcome=o, reached=[0, 0, 1], group="a") for o in (1.0, 0.0))
    won = replace(won, steps=(won.steps[0], replace(won.steps[1], parse_error="no action")))
    settings, weight = admire(), 0.3 * 0.99**2
    found = assign_credit(batch_of(won, lost, phase=2), resolve(settings), settings)
    totals = np.array([1.0, 0.5 + weight, weight / 4, weight * 0.75])
    # ADMIRE eq. 13 over the four steps of the group.
    np.testing.assert_allclose(found.advantages.steps, (totals - totals.mean()) / totals.std())
    np.testing.assert_allclose(found.shaping, [0, weight, weight / 4, weight * 0.75], atol=1e-12)


def test_the_milestones_weight_decays_from_phase_to_phase(trajectory: Make) -> None:
    lost = trajectory(steps(1), outcome=0.0, reached=[0, 4], group="a")  # k / K + zeta = 1.5
    for settings, expected in ((admire(), 0.3 * 0.99**5 * 1.5), (admire(decay=1.0), 0.45)):
        found = assign_credit(batch_of(lost, phase=5), resolve(settings), settings)
        np.testing.assert_allclose(found.shaping, [expected])


def test_totals_of_judged_steps_by_hand(trajectory: Make) -> None:
    # R = outcome + 0.3 s: 1.3 and 1 against 0 and 0.3; the mean is 0.65.
    settings = LearnerSettings(algorithm="process_grpo")
    judged = [
        replace(played, steps=tuple(replace(s, reward=r) for s, r in zip(played.steps, right, strict=True)))
        for played, right in (
            (trajectory(steps(2), group="a"), (1.0, 0.0)),
            (trajectory(steps(2), outcome=0.0, group="a"), (0.0, 1.0)),
        )
    ]
    found = assign_credit(batch_of(*judged), resolve(settings), settings)
    spread = math.sqrt((0.65**2 + 0.35**2) / 2)
    np.testing.assert_allclose(found.advantages.steps, np.array([0.65, 0.35, -0.65, -0.35]) / spread)


def test_the_left_out_baseline_by_hand(trajectory: Make) -> None:
    # One success of 1 step, failures of 2 and 1 without milestones: baselines 0/3, 1/2 and 1/3.
    settings = LearnerSettings(algorithm="admire_rloo")
    made = [trajectory(steps(n), outcome=o, milestone_count=0, group="a") for n, o in ((1, 1.0), (2, 0.0), (1, 0.0))]
    found = assign_credit(batch_of(*made), resolve(settings), settings)
    np.testing.assert_allclose(found.advantages.steps, [1, -1 / 2, -1 / 2, -1 / 3])


@pytest.mark.parametrize("name", ["admire_grpo", "admire_rloo", "webagent_r1"])
def test_an_episode_alone_in_its_group_is_compared_with_nothing(trajectory: Make, name: str) -> None:
    """Its steps differ: the first reaches a milestone. The others have no verdict, and are not here."""
    settings = LearnerSettings(algorithm=name)
    batch = batch_of(trajectory(steps(2), outcome=0.0, reached=[0, 1, 1], group="a"))
    found = assign_credit(batch, resolve(settings), settings)
    assert found.advantages.steps.tolist() == [0, 0]
    assert silent_steps(batch, found.advantages)[1] == GroupCounts(groups=1, equal=1, single=1, skipped=2)


GROUPS = st.lists(st.lists(st.floats(-5, 5), min_size=1, max_size=6), min_size=1, max_size=6)


@given(GROUPS, GROUPS)
def test_advantages_of_a_group_balance(first: list[list[float]], second: list[list[float]]) -> None:
    """Whatever was earned: sums of 0 over trajectories or steps; of RLOO's, weighted by what was left in."""
    rewards = [np.asarray(earned) for earned in (*first, *second)]
    names = ["a"] * len(first) + ["b"] * len(second)
    batch = batch_of(*(make_trajectory(steps(len(r)), group=g) for r, g in zip(rewards, names, strict=True)))
    lengths = np.asarray([len(r) for r in rewards])
    found = {name: CREDIT[name](batch, rewards, LearnerSettings()).steps for name in GROUP_ADVANTAGES}
    starts = np.cumsum(lengths) - lengths
    for group in ("a", "b"):
        members = np.asarray([name == group for name in names])
        mine, total = batch.steps(members), lengths[members].sum()
        assert abs(found["group_relative"][starts[members]].sum()) < 1e-4
        assert abs(found["group_steps"][mine].sum()) < 1e-4
        left_in = 1 - batch.steps(lengths)[mine] / total
        assert abs((left_in * found["group_steps_left_out"][mine]).sum()) < 1e-6
        for name in ("group_relative", "group_steps"):
            spread = found[name][starts[members]] if name == "group_relative" else found[name][mine]
            assert spread.std() == pytest.approx(1) or not spread.any()


@pytest.mark.parametrize("name", GROUP_ADVANTAGES)
def test_the_last_bits_of_equal_rewards_are_no_signal(trajectory: Make, name: str) -> None:
    """0.1 + 0.2 and 0.3 differ by 6e-17; divided by their spread they would be 1 and -1."""
    rewards = [np.array([0.1 + 0.2]), np.array([0.3]), np.array([0.3])]
    assert len({r.item() for r in rewards}) == 2
    batch = batch_of(*(trajectory(steps(1), group="a") for _ in rewards))
    assert not CREDIT[name](batch, rewards, LearnerSettings()).steps.any()


def test_equal_groups_are_skipped_and_counted(trajectory: Make) -> None:
    played = [("a", 1.0), ("b", 1.0), ("a", 0.0), ("b", 1.0), ("c", 0.0)]
    batch = batch_of(*(trajectory(steps(2), outcome=outcome, group=group) for group, outcome in played))
    settings = LearnerSettings(algorithm="webagent_r1")
    silent, counts = silent_steps(batch, assign_credit(batch, resolve(settings), settings).advantages)
    assert silent.tolist() == np.repeat([False, True, False, True, True], 2).tolist()
    assert counts == GroupCounts(groups=3, equal=2, single=1, skipped=6)


def terms(
    ratios: Sequence[float], advantages: Sequence[float], rows: Sequence[int], **more: torch.Tensor
) -> TokenTerms:
    logprobs = torch.tensor(ratios).log()
    reference = more.get("reference", logprobs.clone())
    return TokenTerms(
        logprobs, torch.zeros(len(ratios)), reference, torch.tensor(advantages), torch.tensor(rows), more.get("weights")
    )


def test_the_loss_of_mgrpo_by_hand() -> None:
    # clip 0.2. Action 0, A = 1: tokens 1.5 -> 1.2 and 1: mean -1.1. Action 1, A = -1, ratio 0.5 -> 0.8.
    found = mgrpo(terms([1.5, 1.0, 0.5], [1.0, 1.0, -1.0], [0, 0, 1]), MGrpoSettings())
    assert found.tolist() == pytest.approx([-1.1, 0.8])
    # Trajectories of 1 and 3 decisions: weights 2 and 2/3 (below), the longer one's decisions count a third.
    weighted = terms([1.5, 1.0, 0.5], [1.0, 1.0, -1.0], [0, 0, 1], weights=torch.tensor([2.0, 2 / 3]))
    assert mgrpo(weighted, MGrpoSettings()).tolist() == pytest.approx([-2.2, 1.6 / 3])
    # The divergence: pi_ref is twice pi: d = log 2, 2 - log 2 - 1 = 0.306853; it is 0 where they agree.
    apart = terms([1.0], [0.0], [0], reference=torch.tensor([math.log(2)]))
    assert mgrpo(apart, MGrpoSettings(kl_weight=0.1)).tolist() == pytest.approx([0.0306853])
    with pytest.raises(ValueError, match="expected a reference policy"):
        mgrpo(replace(apart, reference=None), MGrpoSettings())


def test_every_trajectory_weighs_the_same_under_mgrpo() -> None:
    data = ActorData([None] * 4, np.array([7, 2, 2, 2]), [], np.ones(4, dtype=np.bool_), np.zeros(4))  # type: ignore[list-item]
    assert data.weights.tolist() == pytest.approx([2, 2 / 3, 2 / 3, 2 / 3])
    assert data.weights.mean() == pytest.approx(1)


def test_the_ratio_of_whole_actions_by_hand() -> None:
    # ADMIRE eq. 12: 1.1 * 1.15 = 1.265 is clipped to 1.2 where A = 1, though neither token alone would be.
    found = clipped_actions(terms([1.1, 1.15, 0.5], [1.0, 1.0, 2.0], [0, 0, 1]), ClipSettings())
    assert found.tolist() == pytest.approx([-1.2, -1.0])


def test_the_ratio_of_tokens_has_more_room_above() -> None:
    found = clipped_tokens(terms([1.25, 1.5, 0.5], [1.0, 1.0, -1.0], [0, 0, 1]), LossSettings().clipped_tokens)
    assert found.tolist() == pytest.approx([-1.25, -1.28, 0.8])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"algorithm": "admire_grpo", "advantage": "group_relative"}, "go together"),
        ({"algorithm": "webagent_r1", "advantage": "group_steps"}, "go together"),
        ({"algorithm": "webagent_r1", "data": "rollouts_and_replay"}, "which brings stored ones"),
        ({"algorithm": "mira", "policy_loss": "clipped_tokens"}, "brings what older ones sampled"),
        ({"algorithm": "awr", "policy_loss": "clipped_actions"}, "brings what older ones sampled"),
        ({"algorithm": "webagent_r1", "reward": "pbrs"}, "would count against progress"),
        ({"algorithm": "webrl", "reward": "pbrs"}, "would count against progress"),
    ],
)
def test_choices_that_say_nothing_together_are_refused(changes: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LearnerSettings(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("algorithm", ["webagent_r1", "outcome_grpo", "admire_grpo", "admire_rloo", "admire_dapo"])
def test_groups_raise_what_was_better_than_its_group(model_dir: Path, algorithm: str, trajectory: Make) -> None:
    """Half of a group solved its task by one action; the other half did another. A second group is all the same."""
    settings = LearnerSettings(algorithm=algorithm, actor=ActorSettings(learning_rate=1e-3, epochs=4, batch_steps=16))
    learner = Learner(settings, model_dir)
    assert not learner.critics

    def played() -> list[Trajectory]:
        made = [
            trajectory([([3, 4], action)], outcome=outcome, episode_id=f"{group}{i}{outcome}", group=group)
            for i in range(2)
            for group, action, outcome in (("a", [10, 11, 2], 1.0), ("a", [20, 21, 2], 0.0), ("b", [30, 2], 1.0))
        ]
        scores = learner.score(made)
        return [
            replace(t, steps=(replace(t.steps[0], logprobs=score[0].astype(np.float32)),))
            for t, score in zip(made, scores, strict=True)
        ]

    before = played()
    for phase in (1, 2):
        update = run_phase(learner, played(), [], phase).update
        assert update.groups == GroupCounts(groups=2, equal=1, single=0, skipped=2)
        assert update.actor.decisions == 4
    after = played()
    gained = [a.steps[0].logprobs.sum() - b.steps[0].logprobs.sum() for a, b in zip(after, before, strict=True)]
    assert gained[0] > 0.1
    assert gained[1] < -0.1
