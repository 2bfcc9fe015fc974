"""The judge ``trained``: an outcome model labels recorded episodes.

Owns ``TrainedJudge``. Invariants: an episode is judged from its record alone; a label names the model by its checksum,
and a server has proven that it serves that one; what goes wrong is a failure of kind judge. The model runs in a process
of the judge's own, which ends with it, or on a vLLM server that somebody else started; neither is waited for beyond the
label's deadline. Imports no torch.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType

import numpy as np

from judges.trained.kind import TrainedSettings
from judges.trained.model import OutcomeModel, read_outcome_model
from judges.trained.prompt import OutcomePrompt
from judges.trained.scorer_process import ScorerProcess
from judges.trained.server import OutcomeServer
from policy.client import ServerUnreachable
from policy.prompts import PromptTooLong
from policy.tokenizer import TextTokenizer
from policy.vllm.places import read_token
from records import failure_codes as codes
from records.deadline import Deadline
from records.episodes import Task, Trajectory
from records.failures import EpisodeFailed, Failure
from records.labels import Label, LabelSubject


class TrainedJudge:
    """Labels outcomes with an outcome model. Use as an async context manager, within one event loop.

    Raises:
        ValueError: there is no such model, its files have changed, or its server cannot be asked.
    """

    subject = LabelSubject.OUTCOME

    def __init__(self, settings: TrainedSettings) -> None:
        if not settings.folder:
            raise ValueError("judges.trained.folder: expected the folder of an outcome model, found none")
        self._folder = Path(settings.folder).expanduser()
        self._settings = settings
        self._model: OutcomeModel = read_outcome_model(self._folder)
        self._prompt = OutcomePrompt(
            TextTokenizer.load(self._folder), self._model.max_prompt_tokens, page=self._model.page
        )
        own = ScorerProcess(self._folder, settings.device, settings.threads)
        self._scorer: OutcomeServer | ScorerProcess = own
        if settings.url:
            token = read_token(settings.token_variable)
            try:
                self._scorer = OutcomeServer(settings, token, self._model, self._prompt.probes(), own)
            except ServerUnreachable as error:
                raise ValueError(f"judges.trained.url: {error}") from error

    async def __aenter__(self) -> TrainedJudge:
        """Start nothing yet: the first question does."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what serves the model."""
        await self._scorer.close()

    async def label(self, episode: Trajectory, task: Task, deadline: Deadline) -> Label:
        """Return the model's probability that the episode did its task."""
        try:
            prompt = self._prompt.ids(episode).tolist()
        except PromptTooLong as error:
            raise EpisodeFailed(Failure(codes.JUDGE_ERROR, str(error))) from error
        with deadline.waiting_for(codes.JUDGE_TIMEOUT, f"outcome model {self._folder.name}"):
            yes, no = await deadline.run(self._scorer.logprobs(prompt, (self._model.yes, self._model.no)))
        log_odds = yes - no
        return Label(
            episode_id=episode.episode_id,
            subject=self.subject,
            judge="trained",
            model=self._folder.name,
            prompt=self._model.checksum,
            values=np.array([self._model.probability(log_odds)], dtype=np.float32),
            decision_threshold=self._model.threshold,
            evidence=json.dumps({"log_odds": round(log_odds, 6)}),
        )
