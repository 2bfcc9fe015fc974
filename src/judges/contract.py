"""The contract of judges, as a check that runs one.

Owns ``check_judge``. Invariant: every judge passes it in the tests, whichever face it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from judges.interface import (
    AnswerJudge,
    AnswerQuestion,
    EndedEpisode,
    EpisodeJudge,
    MilestoneJudge,
    PageView,
    TrajectoryJudge,
)
from judges.milestones import Acted
from records.deadline import Deadline
from records.environment import Observation, Verdict
from records.episodes import Milestone, Source, Step, Task, Termination, Trajectory
from records.labels import Label, misfit

_EVALUATION = {"eval_types": ["string_match"], "reference_answers": {"exact_match": "two"}}
_ON_THE_PAGE = Milestone("the page of a lamp is open", {"url": "__SHOP__/lamp"})
_IN_THE_TEXT = Milestone("the page says thank you", {"text": ["thank you"]})


class JudgeContractBroken(AssertionError):
    """A judge does not keep its promises; the message lists them."""


async def check_judge(judge: object) -> None:
    """Ask ``judge`` what its face promises to answer.

    A judge of answers has a name and says yes or no; one of trajectories gives an outcome of 0 or 1 with evidence, to
    an episode with an answer and to one without; one of milestones returns one value for each, and none that was
    reached is lost; one of recorded episodes labels episodes of one step and of two, each with its own label.

    Raises:
        JudgeContractBroken: listing what is not kept.
    """
    broken: list[str] = []
    if isinstance(judge, AnswerJudge):
        broken += await _of_answers(judge)
    if isinstance(judge, TrajectoryJudge):
        broken += await _of_trajectories(judge)
    if isinstance(judge, MilestoneJudge):
        broken += await _of_milestones(judge)
    if isinstance(judge, EpisodeJudge):
        broken += await _of_episodes(judge)
    if not isinstance(judge, AnswerJudge | TrajectoryJudge | MilestoneJudge | EpisodeJudge):
        broken = ["expected matches and same_reason, or verdict, or reached, or label"]
    if broken:
        raise JudgeContractBroken("\n- ".join([f"{type(judge).__name__} breaks its contract:", *broken]))


async def _of_answers(judge: AnswerJudge) -> list[str]:
    broken = [] if judge.name and isinstance(judge.name, str) else [f"name: expected a text, found {judge.name!r}"]
    question = AnswerQuestion("How many lamps are there?", "two", "2")
    for what, ask in (("matches", judge.matches), ("same_reason", judge.same_reason)):
        said = await ask(question)
        if not isinstance(said, bool):
            broken.append(f"{what}: expected yes or no, found {said!r}")
    return broken


async def _of_trajectories(judge: TrajectoryJudge) -> list[str]:
    task = Task("t", ("shop",), "How many lamps are there?", "__SHOP__/", _EVALUATION, "contract")
    broken = []
    for answer in ("two", "three", None):
        verdict = await judge.verdict(EndedEpisode(task, answer, _Page()))
        if not isinstance(verdict, Verdict) or verdict.outcome not in (0.0, 1.0):
            broken.append(f"verdict on {answer!r}: expected an outcome of 0 or 1, found {verdict!r}")
        elif not verdict.evidence:
            broken.append(f"verdict on {answer!r}: expected evidence, found none")
    return broken


async def _of_milestones(judge: MilestoneJudge) -> list[str]:
    milestones, history = (_ON_THE_PAGE, _IN_THE_TEXT), [Acted("click", "Lamp")]
    start = Observation("@ Shop", "__SHOP__/", "Shop", "Shop", ())
    previous: Sequence[bool] = ()
    broken = []
    for earlier in ((), (False, True), (True, True)):
        said = await judge.reached(milestones, earlier, start, history)
        if not isinstance(said, tuple) or len(said) != len(milestones) or not all(isinstance(v, bool) for v in said):
            return [f"reached: expected {len(milestones)} times yes or no, found {said!r}"]
        previous = earlier or (False,) * len(milestones)
        if any(before and not now for before, now in zip(previous, said, strict=True)):
            broken.append(f"reached: expected what was reached to stay so, found {said} after {previous}")
    if await judge.reached((), (), start, history) != ():
        broken.append("reached: expected nothing for a task without milestones")
    return broken


async def _of_episodes(judge: EpisodeJudge) -> list[str]:
    task = Task("t", ("shop",), "How many lamps are there?", "__SHOP__/", _EVALUATION, "contract")
    broken = []
    for steps in (1, 2):
        episode = _recorded(task, steps)
        said = await judge.label(episode, task, Deadline())
        if not isinstance(said, Label):
            broken.append(f"label: expected a label, found {said!r}")
        elif wrong := misfit(said, episode, judge.subject):
            broken.append(f"label of an episode of {steps} steps: {wrong}")
    return broken


def _recorded(task: Task, steps: int) -> Trajectory:
    """Return an episode of ``steps`` steps that clicks about and ends with an answer."""
    nothing = np.zeros(0, dtype=np.int32)
    click = Step(0, "__SHOP__/", "@ Shop\nlink Lamp 0", nothing, nothing, np.zeros(0, np.float32), 0, 1.0,
                 'do(action="Click", element="0")')  # fmt: skip
    ends = replace(click, action_text='exit(message="two")')
    played = tuple(replace(click if i < steps - 1 else ends, index=i) for i in range(steps))
    return Trajectory(f"contract-{steps}", task.task_id, task.template, task.site, task.split, task.intent,
                      Source.ROLLOUT, 1, 0, played, Termination.EXIT, "two", 1.0, None)  # fmt: skip


class _Page(PageView):
    """A page that is empty."""

    async def url(self) -> str:
        return "__SHOP__/"

    async def open(self, url: str) -> None:
        return None

    async def content_text(self, locator: str) -> str:
        return ""
