"""The next phase's tasks: shares, neighbours, the critic's band, perturbation, and no evaluation task ever."""

import dataclasses
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curriculum.resample import EmptyBandError, Origin, next_tasks
from curriculum.settings import CurriculumSettings
from curriculum.training_tasks import EvaluationLeakError, HeldOut, TrainingTasks
from records.episodes import Task

COLOURS = ("blue", "red", "green", "white", "black", "brown")
KINDS = {"shop.buy": "Buy the {} kettle", "shop.review": "Review the {} chair", "forum.post": "Post on {} birds"}


def task(template: str, colour: str, prefix: str = "train") -> Task:
    intent = KINDS.get(template, "Do {} things").format(colour)
    site = template.split(".")[0]
    return Task(f"{prefix}.{template}.{colour}", (site,), intent, "", {}, template, {"colour": colour})


TRAINING = TrainingTasks([task(template, colour) for template in KINDS for colour in COLOURS], HeldOut())


def ids(phase_tasks, origin: Origin) -> Counter:
    return Counter(t.task_id for t, o in zip(phase_tasks.tasks, phase_tasks.origins, strict=True) if o is origin)


def test_neighbours_of_a_failure_are_of_its_kind_and_not_itself():
    chosen = next_tasks(
        TRAINING, [task("shop.buy", "blue")], CurriculumSettings(20, neighbours=5, replayed_share=0), seed=0, phase=1
    )
    assert ids(chosen, Origin.SIMILAR) == {f"train.shop.buy.{c}": 1 for c in COLOURS if c != "blue"}
    assert chosen.counts() == {"similar": 5, "perturbed": 0, "replayed": 0, "coverage": 15}


def test_overlap_plays_a_task_once_for_every_failure_near_it():
    failures = [task("shop.buy", "blue"), task("shop.buy", "red")]
    options = {"neighbours": 5, "replayed_share": 0, "coverage_share": 0}
    both = next_tasks(TRAINING, failures, CurriculumSettings(10, **options), seed=0, phase=1)
    assert ids(both, Origin.SIMILAR)["train.shop.buy.green"] == 2
    once = next_tasks(TRAINING, failures, CurriculumSettings(10, overlap=False, **options), seed=0, phase=1)
    assert set(ids(once, Origin.SIMILAR).values()) == {1}
    assert once.counts() == {"similar": 6, "perturbed": 0, "replayed": 0, "coverage": 4}


def test_under_a_small_quota_every_failure_gets_its_nearest_first():
    class Ranked:
        def scores(self, queries, candidates):
            return np.tile(np.linspace(1, 0, len(candidates)), (len(queries), 1))

    failures = [task("shop.buy", c) for c in COLOURS[:4]]
    options = CurriculumSettings(4, neighbours=3, replayed_share=0, coverage_share=0)
    chosen = next_tasks(TRAINING, failures, options, seed=0, phase=1, similarity=Ranked())
    # All four agree that the first training task is nearest: it is chosen four times, not one failure's top three.
    assert ids(chosen, Origin.SIMILAR) == {TRAINING.tasks[0].task_id: 4}


def test_shares_are_kept():
    failures = [task(template, c) for template in KINDS for c in COLOURS]
    options = CurriculumSettings(40, coverage_share=0.25, replayed_share=0.2, perturbed_share=0)
    assert next_tasks(TRAINING, failures, options, seed=3, phase=2).counts() == {
        "similar": 22, "perturbed": 0, "replayed": 8, "coverage": 10,
    }  # fmt: skip


def test_without_failures_templates_are_covered_evenly_and_nothing_repeats_early():
    chosen = next_tasks(TRAINING, [], CurriculumSettings(15), seed=0, phase=0)
    assert Counter(t.template for t in chosen.tasks) == {template: 5 for template in KINDS}
    assert len({t.task_id for t in chosen.tasks}) == 15
    more = next_tasks(TRAINING, [], CurriculumSettings(40), seed=0, phase=0)
    assert set(Counter(t.task_id for t in more.tasks).values()) <= {2, 3}


@given(
    st.lists(st.sampled_from(TRAINING.tasks), max_size=12),
    st.integers(1, 60),
    st.integers(0, 5),
    st.floats(0, 0.5),
    st.floats(0, 0.5),
    st.randoms(),
)
@settings(max_examples=50, deadline=None)
def test_the_number_is_exact_and_the_order_of_failures_does_not_matter(
    failures, count, seed, coverage, replayed, random
):
    options = CurriculumSettings(count, coverage_share=coverage, replayed_share=replayed, perturbed_share=0)
    chosen = next_tasks(TRAINING, failures, options, seed=seed, phase=1)
    assert len(chosen.tasks) == len(chosen.origins) == count
    shuffled = list(failures)
    random.shuffle(shuffled)
    assert next_tasks(TRAINING, shuffled, options, seed=seed, phase=1) == chosen
    assert set(ids(chosen, Origin.REPLAYED)) <= {t.task_id for t in failures}


def test_seed_and_phase_change_the_draw():
    draws = {
        tuple(t.task_id for t in next_tasks(TRAINING, [], CurriculumSettings(10), seed=s, phase=p).tasks)
        for s in (0, 1) for p in (0, 1)
    }  # fmt: skip
    assert len(draws) == 4


def test_the_critics_band_leaves_out_the_hopeless_and_the_easy():
    values = {t.task_id: {"blue": 0.01, "red": 0.05, "green": 0.75, "white": 0.9}.get(t.parameters["colour"], 0.5)
              for t in TRAINING if t.parameters["colour"] != "brown"}  # fmt: skip
    options = CurriculumSettings(60, value_band=True, replayed_share=0)
    chosen = next_tasks(TRAINING, [task("shop.buy", "red")], options, seed=0, phase=1, values=values)
    assert {t.parameters["colour"] for t in chosen.tasks} == {"red", "green", "black"}, "brown has no value"
    assert chosen.outside_band == 9
    with pytest.raises(ValueError, match="pass values"):
        next_tasks(TRAINING, [], options, seed=0, phase=1)
    with pytest.raises(EmptyBandError, match=r"none among 18; of 18 it is known, from 0.99 to 0.99; widen the band"):
        next_tasks(TRAINING, [], options, seed=0, phase=1, values={t.task_id: 0.99 for t in TRAINING})


def recolour(failed: Task, rng: np.random.Generator) -> Task | None:
    """A variation in one of five new colours, or in an old one, or none."""
    colour = ["pink", "grey", "gold", "lime", "teal", "held", "blue", None][rng.integers(8)]
    return None if colour is None else task(failed.template, colour)


def test_failures_of_thin_sites_are_varied_and_others_are_not():
    failures = [task("forum.post", "blue"), task("shop.buy", "blue")]
    options = CurriculumSettings(40, perturbed_share=0.1, thin_site_tasks=10, perturbation_attempts=50)
    chosen = next_tasks(TRAINING, failures, options, seed=0, phase=1, perturb=recolour)
    made = ids(chosen, Origin.PERTURBED)
    assert len(made) == sum(made.values()) == 4
    assert all(task_id.startswith("train.forum.post.") for task_id in made)
    assert not set(made) & {t.task_id for t in TRAINING}
    assert chosen.rejected > 0


def test_a_variation_that_is_an_evaluation_task_is_turned_away():
    training = TrainingTasks(TRAINING.tasks, HeldOut.of(tasks=[task("forum.post", "held", "test")]))
    options = CurriculumSettings(40, perturbed_share=0.5, thin_site_tasks=100, perturbation_attempts=100)
    chosen = next_tasks(training, [task("forum.post", "blue")], options, seed=1, phase=1, perturb=recolour)
    assert ids(chosen, Origin.PERTURBED) == {
        f"train.forum.post.{c}": 1 for c in ("pink", "grey", "gold", "lime", "teal")
    }
    assert len(chosen.tasks) == 40


def test_no_variation_is_asked_for_where_tasks_are_many():
    def never(failed, rng):
        raise AssertionError("asked for a variation")

    options = CurriculumSettings(20, thin_site_tasks=3)
    chosen = next_tasks(TRAINING, [task("forum.post", "blue")], options, seed=0, phase=1, perturb=never)
    assert chosen.counts()["perturbed"] == 0


def test_a_failure_from_an_evaluation_set_is_an_error():
    unseen = task("shop.refund", "blue", "test")
    training = TrainingTasks(TRAINING.tasks, HeldOut.of(with_templates=[unseen]))
    for leak in (unseen, dataclasses.replace(unseen, task_id="new", intent="x", parameters={"colour": "pink"})):
        with pytest.raises(EvaluationLeakError):
            next_tasks(training, [leak], CurriculumSettings(10), seed=0, phase=1)


@pytest.mark.parametrize(
    "changes",
    [
        {"coverage_share": 0.9, "replayed_share": 0.2},
        {"coverage_share": -0.1},
        {"tasks_per_phase": 0},
        {"neighbours": 0},
        {"value_low": 0.8},
    ],
)
def test_settings_reject_nonsense(changes):
    with pytest.raises(ValueError, match=f"{next(iter(changes))} must be"):
        CurriculumSettings(**changes)
