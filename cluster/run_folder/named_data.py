"""The imported data that ``warm_start.data`` names: what a run notes of it, whether it fits, and the run's own copy.

Owns the record in the run's manifest and the copy of its shards in ``OUT/episodes``. Invariants: a run learns from its
copy alone; it goes on only while the named folder holds the very files that it began with; what was made for another
tokenizer or prompt format is refused; an episode of the data never takes the place of one that the run plays. Imports
no torch.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from cluster.errors import MissingError, RecipeError, RunStopped
from cluster.recipe.recipe import Recipe
from cluster.run_folder.durable import sha256_file
from cluster.run_folder.named_model import lay_out_model, require_unchanged
from offline.folder import REPORT_FILE, DataFolderError, DataReport, MadeFor, read_report
from offline.trajectories import ID_PREFIX
from policy.settings import TINY, PolicySettings
from policy.tokenizer import TextTokenizer
from records.durable import open_file, replace_file
from records.episodes import Source, Trajectory
from replay.shards import ShardError, read_shard


def data_record(recipe: Recipe) -> dict[str, str]:
    """Return each file that a run depends on with its SHA-256; nothing where the recipe names no data.

    Raises:
        MissingError: the folder was not imported, or a shard is not the one that was.
    """
    if not recipe.warm_start.data:
        return {}
    report = named_report(recipe)
    try:
        found = {name: sha256_file(recipe.data_path / name) for name in (REPORT_FILE, *sorted(report.shards))}
    except OSError as error:
        raise MissingError(f"warm_start.data {recipe.data_path}: {error}; import the data again") from error
    changed = sorted(name for name, digest in report.shards.items() if found[name] != digest)
    if changed:
        raise MissingError(
            f"warm_start.data {recipe.data_path}: {', '.join(changed)} changed since the import; import the data again"
        )
    return found


def require_same_data(recipe: Recipe, record: Mapping[str, str]) -> None:
    """Raise ``ManifestError`` where the folder holds other data than the run began with."""
    require_unchanged(f"warm_start.data {recipe.data_path}", data_record(recipe), record)


def named_report(recipe: Recipe) -> DataReport:
    """Return what was imported; raise ``MissingError`` where the folder does not say it."""
    try:
        return read_report(recipe.data_path)
    except DataFolderError as error:
        raise MissingError(f"warm_start.data: {error}") from error


def misfits(report: DataReport, recipe: Recipe, tokenizer: TextTokenizer | None) -> list[str]:
    """Return what keeps a run with this tokenizer (None: not known yet) from learning from the data."""
    policy = recipe.policy
    asked = report.made_for if tokenizer is None else MadeFor.of(tokenizer, policy)
    found = [f"made for {difference}" for difference in report.made_for.differences(asked)]
    if report.longest_prompt > policy.max_prompt_tokens:
        found.append(f"a prompt of {report.longest_prompt} tokens, policy.max_prompt_tokens {policy.max_prompt_tokens}")
    if recipe.clones and not report.successes:
        found.append("no success that could be cloned")
    return found


def require_fitting_data(recipe: Recipe, tokenizer: TextTokenizer) -> None:
    """Raise ``RecipeError`` where a run with this tokenizer cannot learn from the data that its recipe names."""
    if not recipe.warm_start.data:
        return
    found = misfits(named_report(recipe), recipe, tokenizer)
    if found:
        raise RecipeError(
            f"warm_start.data {recipe.data_path}: {'; '.join(found)}; import the data again with this recipe"
        )


def start_tokenizer(recipe: Recipe) -> TextTokenizer:
    """Return the tokenizer that a run of this recipe has; a model of the hub is fetched.

    Raises:
        RecipeError: the run makes its tokenizer itself, so that no data can have been made by it.
        MissingError: the model or the checkpoint is not there.
    """
    if recipe.policy.model != TINY:
        return _named_tokenizer(recipe.policy)
    if not recipe.warm_start.checkpoint:
        raise RecipeError(
            "a fresh tiny makes its own tokenizer when its run begins; name policy.model or warm_start.checkpoint, "
            "such as the folder OUT/policy or OUT/trained of a run"
        )
    try:
        return TextTokenizer.load(recipe.checkpoint_path)
    except (OSError, ValueError) as error:
        raise MissingError(f"warm_start.checkpoint {recipe.checkpoint_path}: {error}") from error


def _named_tokenizer(settings: PolicySettings) -> TextTokenizer:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "policy"
        try:
            lay_out_model(settings, folder, os.symlink)
            return TextTokenizer.load(folder)
        except (OSError, ValueError) as error:
            raise MissingError(f"policy.model {settings.model}: {error}") from error


def take_data(recipe: Recipe, record: Mapping[str, str], episodes: Path, tokenizer: TextTokenizer) -> tuple[str, ...]:
    """Copy the shards of ``record`` to the folder ``episodes`` of the run; return the ids of their episodes, sorted.

    Raises:
        RunStopped: a shard is not the recorded one, or holds what is no offline episode of this tokenizer.
    """
    ids: list[str] = []
    for name in sorted(record.keys() - {REPORT_FILE}):
        source, target = recipe.data_path / name, episodes / name
        try:
            with open_file(source) as file:
                replace_file(target, file.read())
            whole = sha256_file(target) == record[name]
            read = read_shard(target)
        except ShardError as error:
            raise RunStopped(f"warm_start.data: {error}") from error
        strange = [episode.episode_id for episode in read if not _is_usable(episode, tokenizer.vocab_size)]
        if not whole or strange:
            target.unlink()
            found = f"episode {strange[0]} is none that can be learned from" if strange else "it has changed"
            raise RunStopped(f"warm_start.data {source}: {found}; import the data again and start in a new --out")
        ids += [episode.episode_id for episode in read]
    return tuple(sorted(ids))


def _is_usable(episode: Trajectory, vocabulary: int) -> bool:
    """Whether this is an offline episode with a verdict, of tokens that the model has."""
    return (
        episode.episode_id.startswith(ID_PREFIX)
        and (episode.source, episode.phase, episode.outcome in (0.0, 1.0)) == (Source.DEMONSTRATION, 0, True)
        and len(episode.steps) > 0
        and episode.final_state is None
        and all(
            len(ids) > 0 and int(ids.min()) >= 0 and int(ids.max()) < vocabulary
            for step in episode.steps
            for ids in (step.prompt_ids, step.action_ids)
        )
    )
