"""The judge service of a run: one actor that every worker and the driver ask about language models.

Owns the actor's start and end, and the way there. Invariants: it runs on the driver's node, where the run folder is and
where keys are looked for: what travels is the name of a key's variable or file; a recipe that names no model starts
none. What a worker needs of this module is light: no torch, no recipe.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from records import failure_codes as codes
from records.deadline import Deadline
from records.failures import EpisodeFailed, Failure
from telemetry import meter, ray_sink

if TYPE_CHECKING:
    from cluster.recipe.recipe import Recipe
    from cluster.run_folder.layout import RunFolders
    from judges.kinds import Judges
    from judges.llm.interface import A, LanguageModel, LlmAnswer, LlmQuestion
    from judges.llm.service import JudgeService
    from judges.llm.settings import LlmSettings

_BACK_S = 0.3
"""Fixed: the service ends a question so much earlier than its asker, so that its reason is heard."""
_QUESTIONS = 10_000
"""More than there are slots; the limits of each model hold questions back, not the actor."""


class JudgeActor:
    """A ``JudgeService`` in a process of its own; what it cannot answer is a failure, not an exception."""

    def __init__(self, settings: LlmSettings, folder: str, metrics: str = "") -> None:
        ray_sink.install(metrics)
        self._settings, self._folder = settings, folder
        self._service: JudgeService | None = None

    async def ask(self, name: str, question: LlmQuestion[A], limit_s: float) -> LlmAnswer[A] | Failure:
        """Answer a question within ``limit_s`` seconds."""
        from judges.llm.service import JudgeService

        try:
            if self._service is None:
                self._service = JudgeService(self._settings, Path(self._folder))
            return await self._service.ask(name, question, Deadline(limit_s, codes.JUDGE_TIMEOUT, what=f"model {name}"))
        except EpisodeFailed as error:
            return error.failure
        except OSError as error:
            return Failure(codes.JUDGE_ERROR, f"the judge service cannot work in {self._folder}: {error}")


class ActorModels:
    """Returns the language models of an actor by their names; can be pickled, and goes to every worker."""

    def __init__(self, actor: Any, models: Mapping[str, str]) -> None:
        self._actor, self._models = actor, dict(models)

    def __call__(self, name: str) -> LanguageModel:
        """Return the model called ``name``."""
        return _ActorModel(self._actor, name, self._models[name])


class _ActorModel:
    """A ``LanguageModel`` behind the actor."""

    def __init__(self, actor: Any, alias: str, name: str) -> None:
        self.name = name
        self._actor, self._alias = actor, alias

    async def ask(self, question: LlmQuestion[A], deadline: Deadline) -> LlmAnswer[A]:
        """Return an answer; see ``LanguageModel``."""
        limit_s = max(0.0, deadline.left() - _BACK_S)
        try:
            with deadline.waiting_for(codes.JUDGE_UNREACHABLE, "the judge service"):
                said = await deadline.run(self._actor.ask.remote(self._alias, question, limit_s))
        except RayError as error:
            detail = f"the judge service: {str(error).strip().splitlines()[0]}"
            raise EpisodeFailed(Failure(codes.JUDGE_UNREACHABLE, detail)) from error
        if isinstance(said, Failure):
            raise EpisodeFailed(said)
        answer: LlmAnswer[A] = said
        return answer


@contextmanager
def judging(recipe: Recipe, folders: RunFolders) -> Iterator[Judges]:
    """Run what the recipe's judges need, with accounts and answers in the run folder; yield the judges."""
    settings, judges = recipe.llm, replace(recipe.judges_of_run, screenshots=str(folders.screenshots.resolve()))
    if not settings.models:
        yield judges
        return
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    options: dict[str, Any] = {
        "name": f"waymark-{recipe.run.name}-{secrets.token_hex(3)}-judges",
        "num_cpus": 0,
        "max_restarts": -1,
        "max_task_retries": -1,  # a question that is asked again is answered from the cache, or paid for once more
        "max_concurrency": _QUESTIONS,
        "scheduling_strategy": here,
    }
    place = str(folders.judging.resolve())
    actor: Any = ray.remote(JudgeActor).options(**options).remote(settings, place, meter.run_name())
    try:
        yield replace(judges, models=ActorModels(actor, {name: m.model for name, m in settings.models.items()}))
    finally:
        ray.kill(actor)
