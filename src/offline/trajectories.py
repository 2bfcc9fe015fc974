"""Offline episodes as trajectories: the prompts that a policy would have seen, and the actions as its tokens.

Owns ``TrajectoryMaker``. Invariants: prompts and actions are made by the prompt format and tokenizer by which the
policy is served, within the same limits, so that a policy learns from what it will see; an action is what the grammar
reads as one, in a reply of the format's form; what cannot be made is left out and counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from environments.interface.grammar import GrammarError, parse
from offline.episodes import OfflineEpisode, OfflineStep
from offline.left_out import LeftOuts, Reason
from policy.prompts import PastAction, PromptFormat, PromptTooLong
from policy.replies import ReplyError
from policy.settings import PolicySettings
from policy.tokenizer import TextTokenizer
from records.environment import Action
from records.episodes import NO_POLICY, Source, Step, Termination, Trajectory

ID_PREFIX = "offline-"
"""What every offline episode's id begins with, and no other's."""
_SPLIT, _SITE, _TEMPLATE = "train", "offline", "offline"


@dataclass(frozen=True, slots=True)
class _Said:
    """What an agent said in one step: the reply's ids, and the text of its action with what that does."""

    ids: list[int]
    text: str
    action: Action


class TrajectoryMaker:
    """Makes trajectories of one source's episodes.

    Args:
        tokenizer: the policy's.
        prompt_format: the policy's.
        settings: whose limits on prompts and actions count.
        held_out: instructions of tasks that the policy is evaluated on.
        left_out: is told of what is left out.
    """

    def __init__(
        self,
        tokenizer: TextTokenizer,
        prompt_format: PromptFormat,
        settings: PolicySettings,
        held_out: Collection[str],
        left_out: LeftOuts,
    ) -> None:
        self._tokenizer = tokenizer
        self._format = prompt_format
        self._settings = settings
        self._held_out = frozenset(_plain(instruction) for instruction in held_out)
        self._left_out = left_out
        self._seen: set[tuple[str, ...]] = set()

    def trajectory(self, episode: OfflineEpisode) -> Trajectory | None:
        """Return the episode with those of its steps that can be used; None where there are none.

        Log-probabilities are 0, as those of every demonstration: nobody sampled these actions.
        """
        outcome = self._outcome(episode)
        if outcome is None:
            return None
        steps: list[Step] = []
        action: Action | None = None
        for step in episode.steps:
            said = self._said(step)
            made = None if said is None else self._step(episode, step, said, len(steps))
            if said is not None and made is not None:
                steps.append(made)
                action = said.action
        if action is None:
            return None
        ended = action.kind == "exit"
        return Trajectory(
            episode_id=f"{ID_PREFIX}{_digest(episode)}",
            task_id=episode.task_id or f"offline-{hashlib.sha256(episode.instruction.encode()).hexdigest()[:12]}",
            template=_TEMPLATE,
            site=_SITE,
            split=_SPLIT,
            intent=episode.instruction,
            source=Source.DEMONSTRATION,
            phase=0,
            seed=0,
            steps=tuple(steps),
            termination=Termination.EXIT if ended else Termination.MAX_STEPS,
            answer=action.argument if ended else None,
            outcome=outcome,
            failure=None,
            policy_version=NO_POLICY,
        )

    def _outcome(self, episode: OfflineEpisode) -> float | None:
        """Return the episode's outcome; None where it is left out as a whole."""
        place, steps = episode.steps[0].place, len(episode.steps)
        if _plain(episode.instruction) in self._held_out:
            self._left_out.add(Reason.HELD_OUT, place, episode.instruction, steps)
        elif episode.said in self._seen:
            self._left_out.add(Reason.DUPLICATE, place, episode.instruction, steps)
        elif episode.outcome is None:
            self._left_out.add(Reason.NO_OUTCOME, place, episode.instruction, steps)
        else:
            self._seen.add(episode.said)
            return episode.outcome
        return None

    def _said(self, step: OfflineStep) -> _Said | None:
        ids = self._format.response_ids(self._tokenizer, step.response)
        try:
            text = self._format.action_text(self._tokenizer, ids) if self._format.thinking else step.response
            return _Said(ids, text, parse(text))
        except (GrammarError, ReplyError) as error:
            self._left_out.add(Reason.NO_ACTION, step.place, str(error))
            return None

    def _step(self, episode: OfflineEpisode, step: OfflineStep, said: _Said, index: int) -> Step | None:
        limits, action_ids = self._settings, said.ids
        if len(action_ids) > limits.max_new_tokens:
            found = f"{len(action_ids)} tokens, policy.max_new_tokens is {limits.max_new_tokens}"
            self._left_out.add(Reason.ACTION_TOO_LONG, step.place, found)
            return None
        try:
            prompt = self._format.build(
                self._tokenizer,
                intent=episode.instruction,
                history=[PastAction(self._format.response_ids(self._tokenizer, past)) for past in step.past],
                observation=step.page,
                feedback=None,
                max_prompt_tokens=limits.max_prompt_tokens,
            )
        except PromptTooLong as error:
            self._left_out.add(Reason.PROMPT_TOO_LONG, step.place, str(error))
            return None
        return Step(
            index=index,
            url="",
            observation=step.page,
            prompt_ids=prompt.ids,
            action_ids=np.asarray(action_ids, dtype=np.int32),
            logprobs=np.zeros(len(action_ids), dtype=np.float32),
            policy_version=NO_POLICY,
            temperature=0.0,
            action_text=said.text,
            truncated_tokens=prompt.truncated_tokens,
        )


def _plain(instruction: str) -> str:
    return " ".join(instruction.split()).casefold()


def _digest(episode: OfflineEpisode) -> str:
    digest = hashlib.sha256()
    for text in episode.said:
        digest.update(len(text).to_bytes(8, "big") + text.encode())
    return digest.hexdigest()[:20]
