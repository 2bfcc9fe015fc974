"""``waymark analyze --explain``: a language model says why episodes failed, beside what the rules found.

Owns which failures are asked about, and how. Invariants: the newest failures first, so many and no more; what is asked
is paid for and kept by the run's own accounts, under its budget; a failure without an answer keeps the rules' finding
alone, and the reason is counted.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from analysis.failures import FailedEpisode, FailureReport, newest_failures
from cluster.errors import RecipeError, RunStopped
from cluster.failure_analysis import Explain
from cluster.recipe.recipe import Recipe, load_recipe
from cluster.recorded_run import RecordedRun
from cluster.run_folder.layout import RunFolders
from cluster.run_folder.manifest import FILE_NAME
from judges.llm.explainer import Explanation, explain_failure
from judges.llm.interface import LanguageModel
from judges.llm.service import JudgeService
from records import failure_codes as codes
from records.deadline import Deadline
from records.episodes import Source
from records.failures import EpisodeFailed
from records.supervision import some_at_once
from replay.buffer import ReplayBuffer

_EXPLAINING_S = 180.0
"""Fixed: for one failure with all attempts."""
_AT_ONCE = 8
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Asking:
    """Who is asked: the model called ``model`` in ``judges.llm.models``, about ``count`` failures of each folder.

    The models are those of ``recipe``; None: of the run's own.
    """

    model: str
    count: int
    recipe: Path | None = None

    def recipe_of(self, folder: Path) -> Recipe:
        """Return the recipe that describes the model; raise ``RecipeError`` where there is none that does."""
        if self.recipe is not None:
            recipe = load_recipe(self.recipe)
        elif (folder / FILE_NAME).exists():
            recipe = RecordedRun(folder).recipe
        else:
            raise RecipeError(f"{folder} is no run folder: name a recipe that describes the model, with --recipe")
        if self.model not in recipe.llm.models:
            there = ", ".join(sorted(recipe.llm.models)) or "there are none"
            raise RecipeError(
                f"--explain: expected one of judges.llm.models ({there}), found {self.model!r}; add it to a recipe and "
                "name that with --recipe"
            )
        return recipe


def explaining(asking: Asking, on_progress: OnProgress, say: Callable[[str], None]) -> Explain:
    """Return what adds the words of a language model about the newest failures to a report.

    ``on_progress`` is called with how many are done, out of how many; ``say`` with how many of a folder have no answer,
    and why. What is returned raises ``RecipeError`` where there is no such model, ``RunStopped`` where the budget is
    spent.
    """

    def explain(folder: Path, buffer: ReplayBuffer, report: FailureReport) -> FailureReport:
        chosen = newest_failures(report)[: asking.count]
        try:
            found = asyncio.run(_ask(folder, buffer, chosen, asking, on_progress))
        except EpisodeFailed as error:
            raise RunStopped(f"{folder}: {error}; what was answered is kept") from error
        lost = Counter(str(one.failure.code) for one in found.values() if isinstance(one, EpisodeFailed))
        for code, count in sorted(lost.items()):
            say(f"{count} of {len(chosen)} failures have no explanation: {code}")
        return replace(report, failed=tuple(_explained(one, found.get(one.episode_id)) for one in report.failed))

    return explain


async def _ask(
    folder: Path, buffer: ReplayBuffer, chosen: list[FailedEpisode], asking: Asking, on_progress: OnProgress
) -> dict[str, Explanation | EpisodeFailed]:
    service = JudgeService(asking.recipe_of(folder).llm, RunFolders(folder).judging)
    done = 0

    async def explain(failed: FailedEpisode) -> Explanation:
        nonlocal done
        try:
            return await _explain(service.model(asking.model), buffer, failed)
        finally:
            done += 1
            on_progress(done, len(chosen))

    try:
        found = await some_at_once(chosen, explain, _AT_ONCE)
    finally:
        await service.close()
    return {failed.episode_id: one for failed, one in zip(chosen, found, strict=True)}


async def _explain(model: LanguageModel, buffer: ReplayBuffer, failed: FailedEpisode) -> Explanation:
    episode = buffer.trajectory(failed.episode_id)
    won = (buffer.entry(i) for i in buffer.successes(sources=tuple(Source)))
    same = [entry for entry in won if (entry.site, entry.template) == (episode.site, episode.template)]
    near = sorted(same, key=lambda entry: (entry.task_id != episode.task_id, entry.episode_id))
    success = buffer.trajectory(near[0].episode_id) if near else None
    where = "" if failed.key_step is None else f"; went wrong at step {failed.key_step + 1}: {failed.reason}"
    deadline = Deadline(_EXPLAINING_S, codes.JUDGE_DEADLINE, what="the explanation")
    read = await deadline.run(
        explain_failure(model, episode, f"{failed.mode} ({failed.rule}){where}", success, deadline)
    )
    return read.value


def _explained(failed: FailedEpisode, found: Explanation | EpisodeFailed | None) -> FailedEpisode:
    if not isinstance(found, Explanation):
        return failed
    return replace(failed, explanation=found.why, explained_step=found.step, explained_by=found.model)
