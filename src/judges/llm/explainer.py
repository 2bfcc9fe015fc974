"""Why an episode failed, in the words of a language model.

Owns its question. Invariants: the model gets what the rules found and may disagree with it; its words are kept beside
the rules' finding and change none of it. Source: MiRA's failure analyzer (s. 4), whose explanations are a model's.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from judges.llm.asking import Read, ask_until_read
from judges.llm.episode_text import DATA, actions_text, ending, quoted
from judges.llm.interface import LanguageModel, LlmQuestion
from records.deadline import Deadline
from records.episodes import Trajectory
from records.terminal import printable

PROMPT = "failure/1"
_ATTEMPTS = 2
_WORDS = 600
"""Characters of an explanation."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an episode failed, and the step (from 0) that the model calls the first wrong one; None where it names none.

    ``model`` is what answered.
    """

    why: str
    step: int | None
    model: str


class FailureReason(BaseModel):
    """What the model answers: the first wrong step, and why the task was not done."""

    model_config = ConfigDict(extra="forbid")

    step: int | None = Field(description="number of the first step that was wrong; null where there is none")
    why: str = Field(min_length=1)


_SYSTEM = (
    "You explain why an agent that uses web sites failed its task, to the people who train it. You get the task, what "
    "the agent did, step by step, how it ended, what rules found, and, where there is one, how a task of the same kind "
    f"was done. {DATA}The verdict that the task was not done is certain. Name the first step that was wrong, by its "
    "number, and say in one or two sentences what the agent should have done there and what it did instead. The rules "
    "may be wrong about the step; say what you see."
)


async def explain_failure(
    model: LanguageModel, episode: Trajectory, found: str, success: Trajectory | None, deadline: Deadline
) -> Read[Explanation]:
    """Return why ``episode`` failed; ``found`` is what rules say, ``success`` an episode of the same kind that did not.

    Raises:
        EpisodeFailed: of kind judge, where there is no answer that names a step of the episode or none.
    """
    parts = [f"The task: {quoted(episode.intent)}", actions_text(episode), ending(episode), f"Rules say: {found}"]
    if success is not None:
        parts += [f"A success at the task {quoted(success.intent)}:", actions_text(success)]
    question = LlmQuestion(PROMPT, _SYSTEM, ("\n".join(parts),), FailureReason)

    def read(said: FailureReason) -> Explanation:
        if said.step is not None and not 1 <= said.step <= len(episode.steps):
            raise ValueError(f"expected a step from 1 to {len(episode.steps)}, found {said.step}")
        return Explanation(
            printable(said.why.strip())[:_WORDS], None if said.step is None else said.step - 1, model.name
        )

    return await ask_until_read(
        model, question, read, attempts=_ATTEMPTS, what="explanation of a failure", deadline=deadline
    )
