"""``waymark critic export``: the critic of a run, for inference beside an agent.

Owns which checkpoint and which states are taken, and the folder that is made. Invariants: the folder appears whole or
not at all; a critic whose export answers otherwise than itself, by more than is allowed, is not exported.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import numpy as np

from cluster.errors import ManifestError, MissingError, RunError
from cluster.failure_analysis import episodes_of
from cluster.run_folder.durable import put_folder, require_new, scratch_folder, sha256_file, write_atomic
from cluster.run_folder.layout import RunFolders
from cluster.run_folder.manifest import RunManifest, changed_files
from cluster.run_folder.stage_results import WithCheckpoint
from learner.errors import CheckpointError
from policy.potential import FILES, FORMAT, MANIFEST, ExportedCritic, PotentialModel
from policy.tokenizer import TOKENIZER_FILE
from records.episodes import IntArray

STATES = 64
"""States on which the export is compared with the critic."""


def export_critic(run: Path, out: Path, critic: str, max_error: float) -> ExportedCritic:
    """Export a critic of the run's newest checkpoint to the folder ``out``, and return the manifest.

    Raises:
        RecipeError: ``out`` is there already.
        ManifestError: the run's manifests or checkpoint cannot be used.
        MissingError: what the export needs is not installed.
        RunError: an answer of the export is further than ``max_error`` from the critic's own.
    """
    require_new(out)
    try:
        from learner.critic_export import answers_of, export_onnx, load_critic
    except ImportError as error:
        raise MissingError(f"{error}: from the checkout, pip install -e '.[onnx]'") from error
    manifest, folders = RunManifest.read(run), RunFolders(run)
    checkpoint = _newest_checkpoint(manifest)
    prompts = recorded_prompts(run, STATES)
    scratch = scratch_folder(out)
    scratch.mkdir()
    try:
        whole = load_critic(critic, folders.policy, folders.checkpoint(checkpoint))
        export_onnx(whole, scratch)
    except CheckpointError as error:
        raise ManifestError(str(error)) from error
    except ImportError as error:
        raise MissingError(f"{error}: from the checkout, pip install -e '.[onnx]'") from error
    own = answers_of(whole, prompts)
    files = {name: sha256_file(scratch / name) for name in FILES.values()}
    tokenizer = sha256_file(folders.policy / TOKENIZER_FILE)
    exported = ExportedCritic(FORMAT, critic, manifest.config_hash, checkpoint, tokenizer, files, len(prompts), {}, {})
    write_atomic(scratch / MANIFEST, json.dumps(asdict(exported)))
    for precision in FILES:
        model = PotentialModel(scratch, precision)
        gaps = np.abs(np.concatenate([model.ask([prompt]) for prompt in prompts]) - own)
        exported.largest_error[precision], exported.mean_error[precision] = float(gaps.max()), float(gaps.mean())
    write_atomic(scratch / MANIFEST, json.dumps(asdict(exported), indent=1) + "\n")
    worst = max(exported.largest_error, key=exported.largest_error.__getitem__)
    if exported.largest_error[worst] > max_error:
        raise RunError(
            f"the {critic} critic in {worst} answers up to {exported.largest_error[worst]:.4f} otherwise than itself, "
            f"and {max_error} is allowed (--max-error); nothing was exported"
        )
    put_folder(scratch, out)
    return exported


def recorded_prompts(run: Path, count: int) -> list[IntArray]:
    """Return the prompts of so many states of the run's episodes, at even distances; all where there are fewer."""
    buffer = episodes_of(run)
    ids = buffer.ids()
    chosen = ids[:: max(1, len(ids) // count)]
    steps = (episode.steps[number % len(episode.steps)] for number, episode in enumerate(
        episode for start in range(0, len(chosen), 16) for episode in buffer.trajectories(chosen[start : start + 16])
        if episode.steps
    ))  # fmt: skip
    return [step.prompt_ids for step in islice(steps, count)]


def _newest_checkpoint(manifest: RunManifest) -> str:
    """Return the name of the newest checkpoint, once its files are those that were recorded."""
    entries = [entry for entry in manifest.entries() if isinstance(entry.result, WithCheckpoint)]
    if not entries:
        raise ManifestError(f"{manifest.out}: has no checkpoint yet")
    newest = entries[-1]
    assert isinstance(newest.result, WithCheckpoint)
    if wrong := changed_files(manifest.out, newest):
        raise ManifestError(f"{manifest.out}: {wrong[0]}; `waymark audit` lists everything that is wrong")
    return newest.result.checkpoint
