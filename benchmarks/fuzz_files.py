"""Binary files as fuzzing targets: shards, and what a policy folder holds.

Owns the sound files that are damaged. Each input is a whole file of its own; a reader that kills its process is seen
by ``fuzz``, which reads these in a child.
"""

from __future__ import annotations

import hashlib
import json
import random
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save

from benchmarks import fuzz_inputs as draw
from benchmarks.fuzzing import Target, require
from cluster.errors import ManifestError
from cluster.run_folder.policy_folder import require_unchanged
from policy.published_weights import PublishedWeights, WeightsRejected, read_published
from policy.weights import check_weights, read_weights
from records.episodes import Source, Step, Termination, Trajectory
from replay.buffer import ReplayBuffer
from replay.shards import ShardError, read_shard, write_shard


@cache
def _shard() -> bytes:
    """Return a sound shard of two episodes."""
    steps = tuple(
        Step(
            index=index, url="__SHOP__/", observation="@ Shop\nlink Lamp 0", prompt_ids=np.arange(9, dtype=np.int32),
            action_ids=np.arange(4, dtype=np.int32), logprobs=np.full(4, -0.5, np.float32), policy_version=1,
            temperature=1.0, action_text="go_backward()", milestones=(True, False), feedback="told",
            element="link Lamp",
        )
        for index in range(3)
    )  # fmt: skip
    episodes = [
        Trajectory(
            episode_id=f"e{number}", task_id="t", template="t", site="shop", split="train", intent="Buy", phase=1,
            seed=0, source=Source.ROLLOUT, steps=steps, termination=Termination.EXIT, answer="", outcome=1.0,
            failure=None, final_milestones=(True, True), evidence="[]",
        )
        for number in range(2)
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        return write_shard(folder, episodes).path.read_bytes()


def _read_shard(content: bytes, folder: Path) -> None:
    path = folder / "shard.arrow"
    path.write_bytes(content)
    buffer = ReplayBuffer(folder)  # a scan survives any file
    require(buffer.scan.shards + len(buffer.scan.skipped) == 1, "a scan uses a file or reports it")
    for episode in read_shard(path):
        require((episode.outcome is None) != (episode.failure is None), "an episode has a verdict or a failure")
        require(all(len(step.action_ids) == len(step.logprobs) for step in episode.steps), "a log-probability each")


@cache
def _weights() -> bytes:
    return save({"embed.weight": torch.arange(32.0).reshape(8, 4), "norm.weight": torch.ones(4)}, {"version": "3"})


def _make_policy(rng: random.Random) -> tuple[bytes, str, str]:
    """Return weights, the file that names them and a list of checksums, of which one or more are damaged."""
    published = {"version": 3, "checksum": "0" * 64, "path": "model.safetensors"}
    checksums = {"model.safetensors": "0" * 64, "config.json": "1" * 64}
    weights = draw.damaged(rng, _weights()) if rng.random() < 0.8 else _weights()
    said = json.dumps(draw.changed(rng, published) if rng.random() < 0.5 else published)
    listed = json.dumps(draw.changed(rng, checksums) if rng.random() < 0.5 else checksums)
    return weights, draw.mutated(rng, said) if rng.random() < 0.2 else said, listed


def _read_policy(files: tuple[bytes, str, str], folder: Path) -> None:
    weights, published, checksums = files
    path = folder / "model.safetensors"
    path.write_bytes(weights)
    (folder / "weights.json").write_text(published, encoding="utf-8", errors="replace")
    (folder / "checksums.json").write_text(checksums, encoding="utf-8", errors="replace")
    with suppress(ManifestError):
        require_unchanged(folder)
    with suppress(WeightsRejected):
        read_weights(read_published(folder / "weights.json"))
    # Whoever can write the weights can write their checksum, too.
    check_weights(_model(), read_weights(PublishedWeights(3, hashlib.sha256(weights).hexdigest(), str(path))))


@cache
def _model() -> torch.nn.Module:
    model = torch.nn.Module()
    model.embed, model.norm = torch.nn.Embedding(8, 4), torch.nn.RMSNorm(4)
    return model


def file_targets() -> list[Target]:
    """Return the targets that are binary files."""
    return [
        Target("shards", lambda rng: draw.damaged(rng, _shard()), _read_shard, (ShardError,)),
        Target("policy", _make_policy, _read_policy, (WeightsRejected,)),
    ]
