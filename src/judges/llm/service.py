"""Language models as a run asks them: known answers first, one request for equal questions, one account for all.

Owns ``JudgeService``. One service stands for all workers of a run (``cluster.judging`` makes an actor of it); tests and
commands without Ray have one in their own process. Invariants: equal questions under way are one request; an answer is
kept before it is given; one asker who goes away takes nothing from the others.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from judges.llm.accounts import FILE_NAME, Accounts, ModelAccount
from judges.llm.cache import AnswerCache, make_cache, question_key
from judges.llm.endpoint import Endpoint, MakeClient, OutOfTime, make_client
from judges.llm.interface import A, LanguageModel, LlmAnswer, LlmQuestion
from judges.llm.settings import LlmSettings, named_model
from records import failure_codes as codes
from records.deadline import Deadline
from records.failures import EpisodeFailed, Failure
from records.supervision import end_tasks

logger = logging.getLogger(__name__)
_TOLD_S = 1.0
"""Fixed: within it an endpoint whose time is over has written its failure down and told it."""


class JudgeService:
    """The models of ``settings``; accounts and answers are kept in ``folder`` (None: in memory alone).

    Lives in one event loop. Raises ``OSError`` where the folder cannot be used.
    """

    def __init__(self, settings: LlmSettings, folder: Path | None = None, make: MakeClient = make_client) -> None:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        self._settings = settings
        self._accounts = Accounts(None if folder is None else folder / FILE_NAME, settings)
        self._cache: AnswerCache = make_cache(settings, folder)
        self._endpoints = {name: Endpoint(name, model, self._accounts, make) for name, model in settings.models.items()}
        self._under_way: dict[str, asyncio.Task[LlmAnswer[Any]]] = {}

    def model(self, name: str) -> LanguageModel:
        """Return the model called ``name``; raise ``ValueError`` where there is none."""
        return _Named(self, name, named_model(self._settings, name))

    async def ask(self, name: str, question: LlmQuestion[A], deadline: Deadline) -> LlmAnswer[A]:
        """Return an answer of the model called ``name``; raise ``EpisodeFailed`` of kind judge where there is none."""
        model = self._settings.models[name]
        key, kept = question_key(model, question), ModelAccount(name, questions=1, cached=1)
        while True:
            task, mine = self._under_way.get(key), False
            if task is None or task.done():
                mine, task = True, asyncio.create_task(self._answer(name, key, question, deadline))
                self._under_way[key] = task
                task.add_done_callback(lambda done: self._forget(key, done))
            try:
                with deadline.waiting_for(codes.JUDGE_TIMEOUT, f"model {name} ({model.model})"):
                    answer: LlmAnswer[A] = await deadline.run(asyncio.shield(task))
            except EpisodeFailed as error:
                # Whoever asked first had less time; this one has some left.
                if not mine and isinstance(error, OutOfTime) and deadline.left() > 0:
                    continue
                if not mine:
                    raise
                # The endpoint had the same time, and may have heard more than that it is over.
                await asyncio.wait({task}, timeout=_TOLD_S)
                if not task.done():
                    raise
                answer = await task
            if not mine:
                await asyncio.to_thread(self._accounts.add, kept)
                return LlmAnswer(answer.value, answer.model, cached=True)
            return answer

    def accounts(self) -> tuple[ModelAccount, ...]:
        """Return what each model was asked and paid, over all starts of the run."""
        return self._accounts.all()

    async def close(self) -> None:
        """End what is under way, and close connections and files."""
        if self._under_way:
            await end_tasks(*self._under_way.values())
        for endpoint in self._endpoints.values():
            await endpoint.close()
        self._cache.close()
        self._accounts.close()

    def _forget(self, key: str, done: asyncio.Task[LlmAnswer[Any]]) -> None:
        if self._under_way.get(key) is done:
            del self._under_way[key]
        if not done.cancelled():
            done.exception()  # its askers have it, or have gone

    async def _answer(self, name: str, key: str, question: LlmQuestion[A], deadline: Deadline) -> LlmAnswer[A]:
        """Look the question up, or ask it and keep the answer; count it either way."""
        try:
            known = await self._known(key, question)
            if known is not None:
                await asyncio.to_thread(self._accounts.add, ModelAccount(name, questions=1, cached=1))
                return LlmAnswer(known, self._settings.models[name].model, cached=True)
            answer = await self._endpoints[name].ask(question, deadline)
            await self._keep(key, answer.value)
            await asyncio.to_thread(self._accounts.add, ModelAccount(name, questions=1))
            return answer
        except EpisodeFailed:
            await asyncio.to_thread(self._accounts.add, ModelAccount(name, questions=1, failures=1))
            raise
        except OSError as error:  # what is paid cannot be written down: nothing more is to be paid
            raise EpisodeFailed(Failure(codes.JUDGE_ERROR, f"the accounts of language models: {error}")) from error

    async def _known(self, key: str, question: LlmQuestion[A]) -> A | None:
        try:
            kept = await asyncio.to_thread(self._cache.get, key)
            return None if kept is None else question.schema.model_validate_json(kept, strict=True)
        except OSError as error:
            logger.warning("answers that are known cannot be looked up, so questions are paid for again: %s", error)
        except ValidationError:
            logger.warning("a known answer does not fit its schema; its question is asked again")
        return None

    async def _keep(self, key: str, value: BaseModel) -> None:
        try:
            await asyncio.to_thread(self._cache.put, key, value.model_dump_json())
        except OSError as error:
            logger.warning("an answer cannot be kept: %s", error)


class _Named:
    """A ``LanguageModel`` of a service."""

    def __init__(self, service: JudgeService, alias: str, name: str) -> None:
        self.name = name
        self._service, self._alias = service, alias

    async def ask(self, question: LlmQuestion[A], deadline: Deadline) -> LlmAnswer[A]:
        return await self._service.ask(self._alias, question, deadline)
