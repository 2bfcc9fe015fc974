"""The judge ``trained``: an outcome model labels recorded episodes.

Owns ``TrainedJudge``. Invariants: an episode is judged from its record alone; a label names the
model by its checksum; what goes wrong is a failure of kind judge. The model runs in a process of the judge's own, which
ends with it, or on a vLLM server that somebody else started; neither is waited for beyond the label's deadline. Imports
no torch.
"""

from __future__ import annotations

import asyncio
import json
import sys
from itertools import count
from pathlib import Path
from types import TracebackType

import numpy as np

from judges.trained.kind import TrainedSettings
from judges.trained.model import OutcomeModel, read_outcome_model
from judges.trained.prompt import OutcomePrompt
from policy.client import RequestRefused, ServerUnreachable
from policy.prompts import PromptTooLong
from policy.tokenizer import TextTokenizer
from policy.vllm.api import VllmApi
from records import failure_codes as codes
from records.deadline import Deadline
from records.episodes import Task, Trajectory
from records.failures import EpisodeFailed, Failure
from records.labels import Label, LabelSubject

_SCORER = "policy.scorer"
"""A process of its own, so that nothing here imports torch."""
_END_S = 5.0
"""Fixed: a scorer that is killed is gone at once."""


class TrainedJudge:
    """Labels outcomes with an outcome model. Use as an async context manager, within one event loop.

    Raises:
        ValueError: there is no such model, or its files have changed.
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
        self._scorer: _OnServer | _OwnProcess = self._made()

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
            log_odds = await deadline.run(self._scorer.log_odds(prompt, self._model.yes, self._model.no))
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

    def _made(self) -> _OnServer | _OwnProcess:
        if self._settings.url:
            return _OnServer(self._settings.url)
        folder, settings = str(self._folder.resolve()), self._settings
        return _OwnProcess([sys.executable, "-m", _SCORER, folder, settings.device, str(settings.threads)])


class _OnServer:
    """A model that a vLLM server serves."""

    def __init__(self, url: str) -> None:
        self._api = VllmApi(url, "")

    async def close(self) -> None:
        """Close the connections to it."""
        await self._api.close()

    async def log_odds(self, prompt: list[int], yes: int, no: int) -> float:
        """Return log p(yes) - log p(no)."""
        try:
            return (await self._api.score(prompt, [yes]))[0] - (await self._api.score(prompt, [no]))[0]
        except (ServerUnreachable, RequestRefused) as error:
            raise EpisodeFailed(Failure(codes.JUDGE_UNREACHABLE, str(error))) from error


class _OwnProcess:
    """A model in a process that answers one question after the other; one that died is started again."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._numbers = count()
        self._turn = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None

    async def log_odds(self, prompt: list[int], yes: int, no: int) -> float:
        """Return log p(yes) - log p(no)."""
        async with self._turn:
            process = self._process = self._process or await self._started()
            number = next(self._numbers)
            line = json.dumps({"id": number, "prompt": prompt, "tokens": [yes, no]})
            try:
                return await self._asked(process, number, line + "\n")
            except OSError as error:
                await self.close()
                said = f"the process of the outcome model ended: {error}; its own words are in the log above"
                raise EpisodeFailed(Failure(codes.JUDGE_UNREACHABLE, said)) from error

    async def _asked(self, process: asyncio.subprocess.Process, number: int, line: str) -> float:
        """Ask and return the answer, past those to questions that nobody waits for any more."""
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line.encode("ascii"))
        await process.stdin.drain()
        while True:
            reply = await process.stdout.readline()
            if not reply:
                raise BrokenPipeError("no answer")
            said = json.loads(reply)
            if said["id"] == number:
                return float(said["logprobs"][0] - said["logprobs"][1])

    async def _started(self) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(*self._command, stdin=pipe, stdout=pipe)

    async def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            process.kill()
        async with asyncio.timeout(_END_S):
            await process.wait()
