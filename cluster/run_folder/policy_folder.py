"""The policy that a run starts from: copied from a checkpoint, or built and its tokenizer trained.

Owns ``OUT/policy``. Invariants: the folder appears whole or not at all; a shipped checkpoint is used
only when its files are those that its ``checksums.json`` names. Imports torch only where a model is built.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path, PurePosixPath

from cluster.demonstrated import demonstrated_sites
from cluster.errors import ManifestError, MissingError
from cluster.recipe.recipe import Recipe
from cluster.run_folder.durable import put_folder, scratch_folder, sha256_file
from environments.browserless.environment import BrowserlessEnvironment
from environments.interface.grammar import format_action
from policy.replies import TAGS
from records.durable import read_text
from records.episodes import Task
from sites.app import create_app
from sites.experts import resolve
from sites.tasks import expert_of

CHECKSUMS = "checksums.json"


def copy_checkpoint(source: Path, target: Path) -> None:
    """Copy a policy folder after checking it against its checksums.

    Raises:
        MissingError: it is not there, or its files are not those that were shipped.
    """
    wrong = _wrong_files(source)
    if wrong == [CHECKSUMS]:
        raise MissingError(
            f"warm_start.checkpoint {source}: cannot read {CHECKSUMS}; name a folder that Waymark exported, "
            "or set warm_start.clone to always to clone a policy here"
        )
    if wrong:
        raise MissingError(
            f"warm_start.checkpoint {source}: {', '.join(wrong)} are missing or have changed; restore them "
            "(git checkout), or set warm_start.clone to always to clone a policy here"
        )
    scratch = scratch_folder(target)
    shutil.copytree(source, scratch)
    put_folder(scratch, target)


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


def check_policy(folder: Path) -> None:
    """Raise ``ManifestError`` where a run's own policy folder is not what it was when the run began."""
    wrong = _wrong_files(folder)
    if wrong:
        raise ManifestError(
            f"{folder}: {', '.join(wrong)} are missing or have changed, and the run depends on them; restore them from "
            "a copy, or start again in a new --out"
        )


async def read_along(tasks: list[Task], site_seed: int) -> list[str]:
    """Return the instructions, observations and actions of experts on ``tasks``, as a policy would see them."""
    environment = BrowserlessEnvironment(create_app(site_seed))
    texts: list[str] = []
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
    await environment.close()
    return texts


def write_checksums(folder: Path) -> None:
    """Write the SHA-256 of every file of a policy folder into it; its model card may change."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    digests = {name: sha256_file(folder / name) for name in names if name not in (CHECKSUMS, "README.md")}
    (folder / CHECKSUMS).write_text(json.dumps(digests, indent=1) + "\n", encoding="utf-8")


def _wrong_files(folder: Path) -> list[str]:
    """Return the files of a policy folder that are not what its checksums say, these themselves included."""
    try:
        expected: dict[str, str] = json.loads(read_text(folder / CHECKSUMS))
    except (OSError, ValueError, RecursionError):
        return [CHECKSUMS]
    if not isinstance(expected, dict):
        return [CHECKSUMS]
    return [name for name, digest in expected.items() if not _is(folder, name, digest)]


def _is(folder: Path, name: str, digest: str) -> bool:
    """Whether a file lies within the folder and has this SHA-256; a name that can be none has not."""
    try:
        inner = PurePosixPath(name)
        within = inner.as_posix() == name and not inner.is_absolute() and ".." not in inner.parts
        return within and (folder / name).is_file() and sha256_file(folder / name) == digest
    except (OSError, ValueError):
        return False
