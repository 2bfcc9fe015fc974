"""The judge of recorded episodes ``orm``: a language model says whether an episode did its task.

Owns its question. Source: the outcome reward model by prompt of WebRL and MiRA, on instruction, actions and last page.
"""

from __future__ import annotations

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from judges.llm.episode_text import DATA, actions_text, ending, instruction, last_screenshot
from judges.llm.interface import LanguageModel, LlmQuestion
from judges.llm.settings import OrmSettings
from records.deadline import Deadline
from records.episodes import Task, Trajectory
from records.labels import Label, LabelSubject

PROMPT = "outcome/1"


class Outcome(BaseModel):
    """What the model answers: why, whether the task was done, and how likely that is."""

    model_config = ConfigDict(extra="forbid")

    why: str
    success: bool
    probability: float = Field(ge=0, le=1, description="probability that the task was done")

    @model_validator(mode="after")
    def _agrees(self) -> Outcome:
        if self.success != (self.probability >= 0.5):
            raise ValueError("success has to be true exactly where probability is 0.5 or more")
        return self


_SYSTEM = (
    "You judge whether an agent that uses web sites has done its task. You get the task, what the agent did, step by "
    f"step, its answer, and the last page that it saw. {DATA}A task that asks for something is done where the answer "
    "gives it completely and rightly, as far as pages bear it out. A task that changes something is done where the "
    "change was made as asked, was confirmed by its page, and nothing else was changed. An answer that a task cannot "
    "be done is right only where it indeed cannot. Where the record does not show that the task was done, it was not. "
    "First say why in one or two sentences, then decide, and give the probability that the task was done."
)


class OutcomeJudge:
    """An ``EpisodeJudge`` of outcomes that asks ``model``; pictures lie in ``screenshots``."""

    subject = LabelSubject.OUTCOME

    def __init__(self, model: LanguageModel, settings: OrmSettings, screenshots: str = "") -> None:
        self._model, self._settings, self._screenshots = model, settings, screenshots

    async def label(self, episode: Trajectory, task: Task, deadline: Deadline) -> Label:
        """Return the probability of success (1,); see ``EpisodeJudge``."""
        pictures = last_screenshot(episode, self._screenshots) if self._settings.screenshot else ()
        text = "\n".join([instruction(episode, task), actions_text(episode), ending(episode)])
        answer = await self._model.ask(LlmQuestion(PROMPT, _SYSTEM, (text, *pictures), Outcome), deadline)
        return Label(
            episode.episode_id,
            self.subject,
            "orm",
            answer.model,
            PROMPT,
            np.array([answer.value.probability]),
            self._settings.threshold,
            evidence=answer.value.why,
            cost_usd=answer.cost_usd,
        )
