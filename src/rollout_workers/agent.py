"""Who chooses the next action: the one point where policies and demonstrators differ.

Owns the ``Agent`` protocol, the agent that asks a policy, and how an action that nobody sampled is written down.
Invariants: a decision carries the token ids that will be trained on, exactly as the policy produced them; a reply of
other weights than the spec names is refused. Must not import torch or ray.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from environments.interface.grammar import GrammarError, parse
from policy.client import PolicyClient, Sampling
from policy.prompts import MilestoneMark, PastAction, Prompt, PromptFormat
from policy.replies import ReplyError
from policy.settings import PolicySettings
from policy.tokenizer import TextTokenizer
from records import failure_codes as codes
from records.deadline import Deadline
from records.environment import Action, Observation
from records.episodes import NO_POLICY, FloatArray, IntArray, Task
from records.failures import EpisodeFailed, Failure
from rollout_workers.spec import EpisodeSpec


@dataclass(frozen=True, slots=True)
class Turn:
    """What there is to decide on: instruction, page, past actions, and what the agent is told about the last one.

    ``milestones`` (K,) says which of the task's milestones are reached.
    """

    index: int
    intent: str
    observation: Observation
    history: Sequence[PastAction]
    feedback: str | None
    milestones: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """One action as tokens: ``prompt_ids`` (P,), ``action_ids`` (A,), ``logprobs`` (A,) in nats; see ``Step``.

    ``malformed`` is what to tell an agent whose reply is not in its form; then ``action_text`` is empty.
    """

    prompt_ids: IntArray
    action_ids: IntArray
    logprobs: FloatArray
    action_text: str
    policy_version: int
    temperature: float
    truncated_tokens: int
    malformed: str | None = None

    def read(self) -> tuple[Action | None, str | None]:
        """Return the action, or None and what to tell the agent."""
        if self.malformed is not None:
            return None, self.malformed
        try:
            return parse(self.action_text), None
        except GrammarError as error:
            return None, str(error)


class Agent(Protocol):
    """Chooses the actions of one episode."""

    async def decide(self, turn: Turn) -> Decision:
        """Return the next action; raise ``EpisodeFailed`` if there is none, ``PromptTooLong`` if there is no room."""
        ...


def milestone_marks(task: Task, turn: Turn) -> list[MilestoneMark]:
    """Return the milestones of which it is known on this turn whether they are reached.

    One without a check is not: a judge says so of the recorded episode, unless the run's milestone judge just did.
    """
    known = zip(task.milestones, turn.milestones, strict=False)
    return [MilestoneMark(milestone.description, done) for milestone, done in known if milestone.check or done]


def prompt_of(
    turn: Turn, spec: EpisodeSpec, prompt_format: PromptFormat, tokenizer: TextTokenizer, limits: PolicySettings
) -> Prompt:
    """Return the prompt of a turn; raise ``PromptTooLong`` where it has no room."""
    return prompt_format.build(
        tokenizer,
        intent=turn.intent,
        history=turn.history,
        observation=turn.observation.text,
        feedback=turn.feedback,
        max_prompt_tokens=limits.max_prompt_tokens,
        milestones=milestone_marks(spec.task, turn),
    )


def read_reply(
    prompt_format: PromptFormat, tokenizer: TextTokenizer, action_ids: Sequence[int]
) -> tuple[str, str | None]:
    """Return the action's text and None, or an empty text and what is wrong with the reply's form."""
    try:
        return prompt_format.action_text(tokenizer, action_ids), None
    except ReplyError as error:
        return "", str(error)


@dataclass(frozen=True, slots=True)
class DecisionWriter:
    """Writes an action that no policy sampled down as a decision, for a policy to learn from.

    Log-probabilities are 0: whoever acts takes the action with certainty; the policy version is ``NO_POLICY``.
    """

    prompt_format: PromptFormat
    tokenizer: TextTokenizer
    spec: EpisodeSpec
    limits: PolicySettings

    def prompt(self, turn: Turn) -> Prompt:
        """Return the policy's prompt; raise ``PromptTooLong`` where it has no room."""
        return prompt_of(turn, self.spec, self.prompt_format, self.tokenizer, self.limits)

    def decision(self, turn: Turn, action_text: str) -> Decision:
        """Return the decision; raise ``PromptTooLong`` where its prompt has no room."""
        prompt = self.prompt(turn)
        ids = self.prompt_format.action_ids(self.tokenizer, action_text)
        malformed = None
        if self.prompt_format.thinking:  # its remarks are a thought now
            action_text, malformed = read_reply(self.prompt_format, self.tokenizer, ids)
        return Decision(
            prompt_ids=prompt.ids,
            action_ids=np.asarray(ids, dtype=np.int32),
            logprobs=np.zeros(len(ids), dtype=np.float32),
            action_text=action_text,
            policy_version=NO_POLICY,
            temperature=0.0,
            truncated_tokens=prompt.truncated_tokens,
            malformed=malformed,
        )


class PolicyAgent:
    """Asks a policy for every action, with a sampling seed that depends on episode and step only."""

    def __init__(
        self,
        policy: PolicyClient,
        prompt_format: PromptFormat,
        tokenizer: TextTokenizer,
        spec: EpisodeSpec,
        *,
        top_p: float = 1.0,
        limits: PolicySettings | None = None,
    ) -> None:
        self._policy = policy
        self._format = prompt_format
        self._tokenizer = tokenizer
        self._spec = spec
        self._top_p = top_p
        self._limits = limits or PolicySettings()

    @property
    def writer(self) -> DecisionWriter:
        """What writes this policy's prompts, and an action of another down as its own."""
        return DecisionWriter(self._format, self._tokenizer, self._spec, self._limits)

    async def decide(self, turn: Turn) -> Decision:
        """Return the policy's next action."""
        return await self.sample(turn, self._spec.temperature, self._spec.step_seed(turn.index))

    async def sample(self, turn: Turn, temperature: float, seed: int) -> Decision:
        """Return an action that is sampled in this way."""
        prompt = prompt_of(turn, self._spec, self._format, self._tokenizer, self._limits)
        sampling = Sampling(
            temperature=temperature,
            top_p=self._top_p,
            max_new_tokens=self._limits.max_new_tokens,
            seed=seed,
            version=self._spec.version,
        )
        limit = Deadline(self._limits.deadline_s, codes.DEADLINE, "policy.deadline_s", what="the policy's action")
        asked = self._policy.complete(prompt.ids.tolist(), sampling, episode=self._spec.episode_id)
        reply = await limit.run(asked)
        if self._spec.version not in (None, reply.version):
            detail = f"expected a reply of version {self._spec.version}, found one of version {reply.version}"
            raise EpisodeFailed(Failure(codes.WRONG_VERSION, detail))
        action_text, malformed = read_reply(self._format, self._tokenizer, reply.action_ids)
        return Decision(
            prompt_ids=prompt.ids,
            action_ids=np.asarray(reply.action_ids, dtype=np.int32),
            logprobs=np.asarray(reply.logprobs, dtype=np.float32),
            action_text=action_text,
            policy_version=reply.version,
            temperature=temperature,
            truncated_tokens=prompt.truncated_tokens,
            malformed=malformed,
        )
