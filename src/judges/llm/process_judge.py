"""The judge of recorded episodes ``process``: a language model says of each step whether it was right.

Owns its two questions, one for a whole episode and one for a step. Invariant: there is one value for each step; an
answer with another number of them is worth nothing, and each step is then asked for by itself.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

from judges.llm.episode_text import DATA, actions_text, ending, instruction, page_text, step_text
from judges.llm.interface import LanguageModel, LlmAnswer, LlmQuestion
from judges.llm.settings import ProcessSettings
from records.deadline import Deadline
from records.episodes import Task, Trajectory
from records.labels import Label, LabelSubject

PROMPT, PROMPT_OF_STEP = "process/1", "process-step/1"


class StepVerdict(BaseModel):
    """Of one step: why, and whether it was right."""

    model_config = ConfigDict(extra="forbid")

    why: str
    right: bool


class StepVerdicts(BaseModel):
    """Of each step, in order."""

    model_config = ConfigDict(extra="forbid")

    steps: list[StepVerdict]


_RIGHT = (
    f"{DATA}A step is right where it brings the task forward from what the agent knew then: it reaches or prepares "
    "something that the task needs, or finds out something that it has to know. It is wrong where it repeats what came "
    "to nothing, leads away, cannot be carried out, or ends the episode too early or with a wrong answer. "
)
_SYSTEM = (
    "You judge the steps of an agent that uses web sites. You get its task, what it did, step by step, and how it "
    f"ended. {_RIGHT}Say of every step, in order, why in a few words and whether it was right."
)
_SYSTEM_OF_STEP = (
    "You judge one step of an agent that uses web sites. You get its task, the steps before, the page that it was on, "
    f"the step, and the page that it came to. {_RIGHT}Say why in a few words and whether the step was right."
)


class ProcessJudge:
    """An ``EpisodeJudge`` of steps that asks ``model``."""

    subject = LabelSubject.STEPS

    def __init__(self, model: LanguageModel, settings: ProcessSettings) -> None:
        self._model, self._settings = model, settings

    async def label(self, episode: Trajectory, task: Task, deadline: Deadline) -> Label:
        """Return whether each step was right (T,); see ``EpisodeJudge``."""
        said: Sequence[StepVerdict] = ()
        usd, prompt = 0.0, PROMPT
        if self._settings.per == "episode" and episode.steps:
            whole = await self._of_episode(episode, task, deadline)
            said, usd = whole.value.steps, whole.cost_usd
        if len(said) != len(episode.steps):
            each = await asyncio.gather(*(self._of_step(episode, task, i, deadline) for i in range(len(episode.steps))))
            said, prompt = [answer.value for answer in each], PROMPT_OF_STEP
            usd += sum(answer.cost_usd for answer in each)
        return Label(
            episode.episode_id,
            self.subject,
            "process",
            self._model.name,
            prompt,
            np.array([float(step.right) for step in said]),
            evidence=json.dumps([step.why for step in said], ensure_ascii=False),
            cost_usd=usd,
        )

    async def _of_episode(self, episode: Trajectory, task: Task, deadline: Deadline) -> LlmAnswer[StepVerdicts]:
        text = "\n".join([instruction(episode, task), actions_text(episode), ending(episode)])
        room = 100 * (len(episode.steps) + 2)
        return await self._model.ask(LlmQuestion(PROMPT, _SYSTEM, (text,), StepVerdicts, max_tokens=room), deadline)

    async def _of_step(self, episode: Trajectory, task: Task, at: int, deadline: Deadline) -> LlmAnswer[StepVerdict]:
        steps = episode.steps
        came_to = f"It came to: {page_text(steps[at + 1])}" if at + 1 < len(steps) else ending(episode)
        lines = [
            instruction(episode, task),
            "The steps before: " + ("; ".join(map(step_text, steps[:at])) or "none"),
            f"It was on: {page_text(steps[at])}",
            f"The step: {step_text(steps[at])}",
            came_to,
        ]
        question = LlmQuestion(PROMPT_OF_STEP, _SYSTEM_OF_STEP, ("\n".join(lines),), StepVerdict)
        return await self._model.ask(question, deadline)
