"""What shapes rewards: sources of the potential, their baseline, and the numbers that say whether it works."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from learner.advantages import Advantages
from learner.algorithms import resolve
from learner.credit import assign_credit
from learner.errors import NoBetterThanClock
from learner.mechanism import mechanism_of
from learner.metrics import Mechanism, ratio_metrics
from learner.phase_batch import PhaseBatch
from learner.potentials import RECORDED, clock, milestone_share, without_step_means
from learner.settings import ActorSettings, LearnerSettings
from learner.trainer import Learner
from records.episodes import Trajectory
from tests.learner.phases import run_phase

Make = Callable[..., Trajectory]


def steps(count: int) -> list[tuple[list[int], list[int]]]:
    return [([3, 4], [5 + t, 2]) for t in range(count)]


def test_recorded_potentials_by_hand(trajectory: Make) -> None:
    played = replace(trajectory(steps(4), reached=[0, 1, 1, 3, 4]), horizon=2)
    assert milestone_share(played).tolist() == [0, 0.25, 0.25, 0.75, 1]
    assert clock(played).tolist() == [0, 0.5, 1, 1, 1]
    assert clock(replace(played, horizon=0)).tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert milestone_share(trajectory(steps(2), milestone_count=0)).tolist() == [0, 0, 0]


@pytest.mark.parametrize(("name", "shaping"), [("mira_milestones", [0.3, 0.0]), ("mira_clock", [0.15, 0.0])])
def test_shaping_by_what_was_recorded(trajectory: Make, name: str, shaping: list[float]) -> None:
    # K = 2, both reached by the first action: alpha (1 - 0) = 0.3; the clock of two steps: alpha / 2.
    settings = LearnerSettings(algorithm=name)
    algorithm = resolve(settings)
    assert algorithm.critics == ("value",)
    assert algorithm.needs_milestones == (name == "mira_milestones")
    played = trajectory(steps(2), reached=[0, 2, 2], milestone_count=2)
    batch = PhaseBatch((played,), 1, 1, answers={"value": [np.array([0.4, 0.7])]})
    found = assign_credit(batch, algorithm, settings)
    np.testing.assert_allclose(found.shaping, shaping)
    # A_0 = 0.5 (s + 0.63 - 0.4) + 0.5 (s + 0.9 - 0.4) = s + 0.365.
    np.testing.assert_allclose(found.advantages.steps, [shaping[0] + 0.365, 0.3])


@pytest.mark.parametrize(("name", "shaping"), [("mira_milestones", [0.15, 0.15]), ("mira_clock", [0.075, 0.075])])
def test_a_recorded_final_state_has_a_potential_of_what_was_recorded(
    trajectory: Make, name: str, shaping: list[float]
) -> None:
    # K = 2, one reached by each action: alpha / 2 each. The clock runs to 2 of an expert's 4 steps.
    settings = LearnerSettings(algorithm=name)
    played = replace(trajectory(steps(2), reached=[0, 1, 2], milestone_count=2, final=[3, 9]), horizon=4)
    batch = PhaseBatch((played, replace(played, final_state=None)), 2, 1, answers={"value": [np.zeros(2)] * 2})
    found = assign_credit(batch, resolve(settings), settings)
    np.testing.assert_allclose(found.shaping, [*shaping, shaping[0], 0.0])


def test_a_source_without_a_shaped_reward_is_refused() -> None:
    with pytest.raises(ValueError, match="reward 'outcome' uses no potential, found potential_source='clock'"):
        LearnerSettings(algorithm="webrl", potential_source="clock")


def test_the_mean_by_step_is_taken_out_by_hand(trajectory: Make) -> None:
    found = without_step_means([np.array([0.3, 0.1]), np.array([0.1]), np.array([0.2, 0.3, 0.5])])
    assert [terms.tolist() for terms in found] == [
        pytest.approx([0.1, -0.1]), pytest.approx([-0.1]), pytest.approx([0.0, 0.1, 0.0])
    ]  # fmt: skip
    # One that only lasts earns what all earn: nothing is left of a clock where all are as long.
    settings = LearnerSettings(algorithm="mira_clock", shaping_baseline="step")
    batch = PhaseBatch(tuple(trajectory(steps(3)) for _ in range(2)), 2, 1, answers={"value": [np.zeros(3)] * 2})
    np.testing.assert_allclose(assign_credit(batch, resolve(settings), settings).shaping, 0, atol=1e-12)


@pytest.fixture
def batch(trajectory: Make) -> PhaseBatch:
    """A success and two failures; one failure reaches a milestone by its second action of four."""
    made = (
        trajectory(steps(2), reached=[0, 2, 4]),
        trajectory(steps(4), outcome=0.0, reached=[0, 0, 1, 1, 1]),
        trajectory(steps(4), outcome=0.0, reached=[0, 0, 0, 0, 0]),
    )
    return PhaseBatch(made, fresh=3, phase=1)


def test_a_potential_that_reacts_beats_the_clock(batch: PhaseBatch) -> None:
    found = mechanism_of(
        batch,
        [milestone_share(t)[:-1] for t in batch.trajectories],
        Advantages(np.array([1.0, 1, 1, -1, -1, -1, 1, -1, -1, -1])),
    )
    # One of six steps of failures reaches a milestone, and it alone rises; the clock rises alike everywhere.
    assert (found.auc_steps, found.auc_steps_clock) == (1.0, 0.5)
    # P at the end: 0.5 against 0.25 and 0. The success is shorter: 1/2 against 3/4. All templates are the same.
    assert (found.auc_outcome, found.auc_outcome_clock) == (1.0, 0.0)
    # Halves: first and last both know the second's outcome, 0, which tells them apart by nothing; the second is alone.
    assert found.auc_outcome_template == 0.5
    assert found.positive_share_of_failures == pytest.approx(2 / 8)
    assert found.final_states == 0.0
    found.require_better_than_clock()


def test_what_tells_templates_apart_is_worth_nothing_within_them(trajectory: Make) -> None:
    """Two of three easy ones and one of three hard ones succeed."""
    outcomes = {"easy": [1.0, 1.0, 0.0], "hard": [1.0, 0.0, 0.0]}
    made = [
        replace(trajectory(steps(1), outcome=outcome), template=name, episode_id=f"{name}{i}")
        for name, of_template in outcomes.items() for i, outcome in enumerate(of_template)
    ]  # fmt: skip

    def found(*at_end: float) -> Mechanism:
        batch = PhaseBatch(tuple(made), fresh=6, phase=1)
        return mechanism_of(batch, [np.array([p]) for p in at_end], Advantages(np.zeros(6)))

    difficulty = found(0.9, 0.9, 0.9, 0.1, 0.1, 0.1)
    # Of nine pairs it decides 2 * 2 rightly, 1 * 1 wrongly, and four ties: (4 + 2) / 9.
    assert difficulty.auc_outcome == pytest.approx(6 / 9)
    assert difficulty.auc_outcome_within == 0.5
    # Easy: 2 pairs, one won and one tied; hard: 2 pairs, both lost: 1.5 of 4.
    assert found(0.9, 0.8, 0.8, 0.1, 0.2, 0.3).auc_outcome_within == pytest.approx(1.5 / 4)
    assert found(0.9, 0.8, 0.1, 0.3, 0.2, 0.1).auc_outcome_within == 1.0
    alike = PhaseBatch(tuple(made[:2]), fresh=2, phase=1)
    assert mechanism_of(alike, [np.zeros(1)] * 2, Advantages(np.zeros(2))).auc_outcome_within is None


def test_the_last_state_is_the_one_after_the_last_action_where_it_is_known(trajectory: Make) -> None:
    """A success that reaches all by its last action, and a failure that reaches its one milestone by the last."""
    made = trajectory(steps(2), reached=[0, 0, 4]), trajectory(steps(3), outcome=0.0, reached=[0, 0, 0, 1])
    batch = PhaseBatch(made, fresh=2, phase=1)
    blind, seeing = (
        mechanism_of(batch, [milestone_share(t)[:end] for t in made], Advantages(np.zeros(5))) for end in (-1, None)
    )
    # Before their last actions both stand at 0 of 4, and no step of the failure reaches anything that is seen.
    assert (blind.auc_outcome, blind.auc_steps, blind.final_states) == (0.5, None, 0.0)
    # After them 1 stands against 1/4; of the failure's three steps the last one reaches and rises.
    assert (seeing.auc_outcome, seeing.auc_steps, seeing.auc_steps_clock) == (1.0, 1.0, 0.5)
    assert seeing.final_states == 1.0


def test_a_clock_for_a_potential_is_found_out(batch: PhaseBatch) -> None:
    found = mechanism_of(batch, [clock(t)[:-1] for t in batch.trajectories], Advantages(np.zeros(10)))
    assert found.auc_steps == found.auc_steps_clock
    assert found.clock_rank == pytest.approx(1)
    with pytest.raises(NoBetterThanClock, match=r"AUC 0.500 in failures\), found 0.500: let all episodes teach it"):
        found.require_better_than_clock()


def test_without_failures_that_reach_something_nothing_is_refused(trajectory: Make) -> None:
    alone = PhaseBatch((trajectory(steps(3)),), 1, 1)
    found = mechanism_of(alone, [np.zeros(3)], Advantages(np.zeros(3)))
    assert found.auc_steps is None
    assert found.positive_share_of_failures is None
    found.require_better_than_clock()


def test_replayed_episodes_are_no_part_of_it(batch: PhaseBatch, trajectory: Make) -> None:
    more = replace(batch, trajectories=(*batch.trajectories, trajectory(steps(2), outcome=0.0)))
    potentials = [milestone_share(t)[:-1] for t in more.trajectories]
    assert mechanism_of(more, potentials, Advantages(np.zeros(12))) == mechanism_of(
        batch, potentials[:3], Advantages(np.zeros(10))
    )


def test_how_much_of_the_achieved_ratio_was_asked_for() -> None:
    asked = np.array([1.0, -1.0, 1.0, -1.0])
    exact, none = ratio_metrics(asked, 0.1 * asked), ratio_metrics(asked, np.array([1.0, 1.0, -1.0, -1.0]))
    assert exact is not None
    assert none is not None
    assert (exact.r2, none.r2) == (pytest.approx(1), pytest.approx(0))


@pytest.mark.parametrize("name", ["mira", "mira_milestones", "mira_clock"])
def test_a_phase_tells_of_its_mechanism(model_dir: Path, batch: PhaseBatch, name: str) -> None:
    episodes = [replace(t, episode_id=f"e{i}") for i, t in enumerate(batch.trajectories)]
    learner = Learner(LearnerSettings(algorithm=name, actor=ActorSettings(batch_steps=16)), model_dir)
    for phase in (1, 2):
        found = run_phase(learner, episodes, [], phase).update.mechanism
        assert found is not None
        assert (found.auc_steps == 1.0) == (name == "mira_milestones")


def test_an_untaught_critic_is_refused_where_the_recipe_says_so(model_dir: Path, batch: PhaseBatch) -> None:
    """Fresh heads say 0.5 everywhere: their rises are all the same, as the clock's are here."""
    episodes = [replace(t, episode_id=f"e{i}") for i, t in enumerate(batch.trajectories)]
    for asked in (False, True):
        learner = Learner(LearnerSettings(better_than_clock=asked), model_dir)
        if asked:
            with pytest.raises(NoBetterThanClock):
                learner.update_actor(episodes, [], 1)
        else:
            assert learner.update_actor(episodes, [], 1).mechanism is not None


def test_sources_have_names_that_settings_know() -> None:
    for source in RECORDED:
        assert resolve(LearnerSettings(potential_source=source)).potential_source == source


def test_the_templates_mean_by_hand(trajectory: Make) -> None:
    """Halves go by the order of ids' checksums; each half knows the other, and its own pairs count."""
    made = [
        replace(trajectory(steps(1), outcome=outcome), template=name, episode_id=f"{name}{i}")
        for name, outcomes in {"easy": [1.0, 1.0, 1.0, 0.0], "hard": [0.0, 0.0]}.items()
        for i, outcome in enumerate(outcomes)
    ]
    easy = sorted(made[:4], key=lambda t: zlib.crc32(t.episode_id.encode()))
    # The half with the failure: one success and the failure know 1 each, hard's failure knows 0: 1.5 of 2 pairs.
    # The other half: two successes know 1/2 each, hard's failure knows 0: 2 of 2 pairs.
    batch = PhaseBatch(tuple(made), fresh=len(made), phase=1)
    found = mechanism_of(batch, [np.zeros(1)] * len(made), Advantages(np.zeros(len(made))))
    assert found.auc_outcome_template == pytest.approx(3.5 / 4), [t.success for t in easy]


def test_the_templates_mean_of_coins_is_chance_with_few_episodes_too(trajectory: Make) -> None:
    """Over 300 phases of two templates of four: with the halves compared to each other it was 0.42."""
    rng, found = np.random.default_rng(0), []
    for _ in range(300):
        made = [
            replace(trajectory(steps(1), outcome=float(rng.random() < 0.5)), template=f"t{i % 2}", episode_id=f"e{i}")
            for i in range(8)
        ]
        batch = PhaseBatch(tuple(made), fresh=len(made), phase=1)
        found.append(mechanism_of(batch, [np.zeros(1)] * 8, Advantages(np.zeros(8))).auc_outcome_template)
    known = [one for one in found if one is not None]
    assert np.mean(known) == pytest.approx(0.5, abs=3 * np.std(known) / np.sqrt(len(known)))


@pytest.mark.parametrize(("spread", "low", "high"), [(0.0, 0.45, 0.55), (0.5, 0.65, 0.8)])
def test_the_templates_mean_tells_what_the_template_knows_and_no_more(
    trajectory: Make, spread: float, low: float, high: float
) -> None:
    """300 templates of four episodes: coins are told at chance, rates that differ above it; a rate itself has 0.83."""
    rng, made = np.random.default_rng(0), []
    for number, rate in enumerate(0.5 + rng.uniform(-spread, spread, 300)):
        for attempt, drawn in enumerate(rng.random(4)):
            one = trajectory(steps(1), outcome=float(drawn < rate), reached=[0, 0], episode_id=f"e{number}-{attempt}")
            made.append(replace(one, template=f"shop.t{number}"))
    batch = PhaseBatch(tuple(made), fresh=len(made), phase=1)
    found = mechanism_of(batch, [np.zeros(1)] * len(made), Advantages(np.zeros(len(made))))
    assert found.auc_outcome_template is not None
    assert low < found.auc_outcome_template < high
