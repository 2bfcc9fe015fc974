"""The wall between training and evaluation."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curriculum.training_tasks import EvaluationLeakError, HeldOut, TrainingTasks
from records.episodes import Task


def task(task_id: str, template: str = "shop.buy", item: str = "", intent: str = "", site: str = "shop") -> Task:
    item = item or task_id
    return Task(task_id, (site,), intent or f"Buy {item}", "__SHOP__/", {}, template, {"item": item})


def test_training_tasks_are_ordered_by_id_whatever_the_order_given():
    assert [t.task_id for t in TrainingTasks([task("b"), task("a")], HeldOut())] == ["a", "b"]


@pytest.mark.parametrize("tasks", [[], [task("a"), task("a")]])
def test_no_tasks_or_a_repeated_id_is_refused(tasks):
    with pytest.raises(ValueError, match="training tasks: expected tasks with distinct ids"):
        TrainingTasks(tasks, HeldOut())


@pytest.mark.parametrize(
    ("leak", "reason"),
    [
        (task("test-1", item="other"), "its id is an evaluation task's"),
        (task("train-9", item="kettle", intent="Get it"), "template shop.buy with its parameters"),
        (task("train-9", "shop.order", item="z", intent="  buy   KETTLE "), "the same instruction"),
        (task("train-9", "shop.refund"), "its template shop.refund is held out"),
    ],
)
def test_every_kind_of_leak_is_an_error(leak, reason):
    held_out = HeldOut.of(tasks=[task("test-1", item="kettle")], with_templates=[task("unseen-1", "shop.refund")])
    with pytest.raises(EvaluationLeakError, match=rf"task {leak.task_id}: .*{reason}"):
        TrainingTasks([task("train-1"), leak], held_out)


def test_a_shared_template_with_other_parameters_is_no_leak():
    held_out = HeldOut.of(tasks=[task("test-1", item="kettle")])
    assert len(TrainingTasks([task("train-1", item="chair")], held_out)) == 1


def test_parameters_are_compared_whatever_their_order():
    base = task("test-1")
    other = dataclasses.replace(base, parameters={"a": 1, "b": 2})
    same = dataclasses.replace(base, task_id="x", intent="Other words", parameters={"b": 2, "a": 1})
    assert HeldOut.of(tasks=[other]).conflict(same)


def test_tasks_without_parameters_are_told_apart_by_their_wording():
    def plain(task_id: str, intent: str) -> Task:
        return dataclasses.replace(task(task_id, intent=intent), parameters={})

    held_out = HeldOut.of(tasks=[plain("test-1", "Open the cart")])
    assert held_out.conflict(plain("x", "Open the orders")) is None
    assert held_out.conflict(plain("x", "Open the cart"))


@given(st.sets(st.integers(0, 30)), st.sets(st.integers(0, 30), min_size=1))
def test_training_tasks_are_made_exactly_when_they_are_apart(evaluation, training):
    held_out = HeldOut.of(tasks=[task(f"test-{i}", item=f"item{i}") for i in evaluation])
    tasks = [task(f"train-{i}", item=f"item{i}") for i in training]
    if evaluation & training:
        with pytest.raises(EvaluationLeakError, match=f"found {len(evaluation & training)} that are not"):
            TrainingTasks(tasks, held_out)
    else:
        assert len(TrainingTasks(tasks, held_out)) == len(training)


def test_thin_sites_are_those_with_few_tasks():
    training = TrainingTasks([task("a"), task("b"), task("c", site="forum")], HeldOut())
    assert training.thin_sites(2, ["shop", "forum", "map"]) == {"forum", "map"}
