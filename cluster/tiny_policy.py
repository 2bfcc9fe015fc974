"""A fresh tiny policy for a run that clones: a model of the recipe's size, its tokenizer trained on what experts see.

Owns its corpus. Invariant: the folder appears whole or not at all. Imports torch only where the model is built.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from cluster.demonstrated import demonstrated_sites
from cluster.recipe.recipe import Recipe
from cluster.run_folder.durable import put_folder, scratch_folder
from cluster.run_folder.policy_folder import write_checksums
from environments.browserless.environment import BrowserlessEnvironment
from environments.interface.grammar import format_action
from policy.replies import TAGS
from records.episodes import Task
from sites.app import create_app
from sites.experts import resolve
from sites.tasks import expert_of


def build_policy(recipe: Recipe, tasks: list[Task], target: Path) -> None:
    """Write a fresh policy to ``target``, its tokenizer trained on what experts see and say on ``tasks``."""
    from policy.presets import prepare_policy

    corpus = asyncio.run(read_along(tasks, demonstrated_sites(recipe).seed))
    if recipe.policy.shows_milestones:
        corpus += ["\n".join(["Milestones:", *(f"+ {m.description}" for m in task.milestones)]) for task in tasks]
    if recipe.policy.thinking:
        corpus += ["\n".join(TAGS)] * len(tasks)
    scratch = scratch_folder(target)
    prepare_policy(recipe.policy.tiny, scratch, corpus=corpus, seed=recipe.run.seed)
    write_checksums(scratch)
    put_folder(scratch, target)


async def read_along(tasks: list[Task], site_seed: int) -> list[str]:
    """Return the instructions, observations and actions of experts on ``tasks``, as a policy would see them."""
    texts: list[str] = []
    environment = BrowserlessEnvironment(create_app(site_seed))
    try:
        for task in tasks:
            observation = await environment.reset(task)
            texts.append(task.intent)
            expert = expert_of(task)
            intent = next(expert)
            while True:
                action = resolve(intent, observation)
                texts += [observation.text, format_action(action)]
                if action.kind == "exit":
                    break
                observation = await environment.step(action)
                intent = expert.send(observation)
    finally:
        await environment.close()
    return texts
