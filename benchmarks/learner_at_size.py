"""One update of MiRA and one publication of a model of a real shape, with random weights, beside a plain loop.

Owns the mode ``--shape`` of ``benchmarks.learner``. Actor and critics are adapters on one frozen backbone, as in
``h200.yaml``; the plain loop has the same adapters, batches padded on the right and every token's logits. Told are
seconds, tokens a second, the share of the device's operations, the largest memory, and the seconds from the learner's
adapter to a server that proves it. On a machine without a GPU the shape is ``small`` and the verdicts say that nothing
was run at size. Prompts are random ids; consecutive steps of an episode share half of theirs.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from transformers import AutoModelForCausalLM, Gemma3TextConfig, LlamaConfig, PreTrainedConfig

from benchmarks.plain_learner import Numbers, PlainAdapters
from benchmarks.recording import Recording, met
from cluster.recipe.recipe import load_recipe
from learner.batching import Sample
from learner.dataset import decisions
from learner.matmul_rate import matmul_rate
from learner.pace import PhaseData, phase_work
from learner.settings import LearnerSettings
from learner.trainer import Learner
from policy.engine import GenerationEngine
from policy.engine_loop import EngineLoop
from policy.model_size import size_in_folder
from policy.models import load_causal_lm
from policy.publication import Probe, probe_limits, publish
from policy.published_weights import PublishedWeights
from policy.settings import PolicySettings
from records.episodes import Source, Step, Termination, Trajectory

NAME = "learner_at_size"
RECIPE = Path("cluster/recipes/h200.yaml")
MFU, PUBLISHED_S = 0.4, 10.0
STEPS, ACTION, MILESTONES = 8, 32, 4
_LIMIT_S = 600.0


def _llama(width: int, mlp: int, layers: int, heads: int, vocabulary: int) -> LlamaConfig:
    return LlamaConfig(
        hidden_size=width, intermediate_size=mlp, num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=heads // 4, vocab_size=vocabulary, max_position_embeddings=8192, tie_word_embeddings=False,
    )  # fmt: skip


SHAPES: dict[str, Callable[[], PreTrainedConfig]] = {
    "8b": lambda: _llama(4096, 14336, 32, 32, 128_256),
    "12b": lambda: Gemma3TextConfig(
        hidden_size=3840, intermediate_size=15360, num_hidden_layers=48, num_attention_heads=16, num_key_value_heads=8,
        head_dim=256, query_pre_attn_scalar=256, vocab_size=262_208, max_position_embeddings=8192,
    ),
    "small": lambda: _llama(256, 768, 4, 8, 4096),
}  # fmt: skip
"""Llama-3.1-8B, Gemma-3-12B without what sees, and one that a laptop computes in a minute."""


@dataclass
class _Server:
    """An engine of this process as a server that takes weights."""

    loop: EngineLoop
    device: str
    name: str = "engine"

    async def devices(self) -> Sequence[str]:
        return (self.device,)

    async def load_weights(self, weights: PublishedWeights) -> PublishedWeights:
        return await asyncio.wrap_future(await asyncio.to_thread(self.loop.load_weights, weights))

    async def score(self, prompt_ids: Sequence[int], action_ids: Sequence[int]) -> list[float]:
        return await asyncio.wrap_future(self.loop.score(prompt_ids, action_ids))


def run_at_size(options: argparse.Namespace) -> None:
    """Make the model, do the update in each way, publish, and write the numbers with their verdicts."""
    recording = Recording(NAME, options.results)
    on_gpu = torch.cuda.is_available()
    if not on_gpu and options.shape != "small":
        recording.note(f"--shape {options.shape} needs a GPU; here the shape is small")
    shape = options.shape if on_gpu else "small"
    settings = _settings("cuda" if on_gpu else "cpu", options.threads, options.episodes)
    tokens = options.prompt_tokens if on_gpu else min(options.prompt_tokens, 256)
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        folder = Path(scratch) / "model"
        _make(shape, folder, settings.device)
        episodes = _episodes(options.episodes, tokens, SHAPES[shape]().vocab_size)
        found: dict[str, Any] = {"shape": shape, "episodes": options.episodes, "prompt tokens": tokens}
        found["rate"] = _rates(settings, folder, options.tflops)
        found["arms"] = _arms(settings, folder, episodes, options.rounds, options.plain_rows)
        found["publication"] = _published(settings, folder, episodes, Path(scratch))
        found["work"] = _work(settings, folder, episodes, found)
    verdicts = _verdicts(found, on_gpu)
    recording.table(
        f"One update at the shape {shape}", ["arm", "seconds", "tokens/s", "largest memory, MiB"],
        [[name, arm["seconds"], arm["tokens_per_s"], arm["memory_mib"]] for name, arm in found["arms"].items()],
    )  # fmt: skip
    recording.write({**found, "verdicts": verdicts})


def _settings(device: str, threads: int, episodes: int) -> LearnerSettings:
    """Return those of the recipe, with one update of each model over all steps."""
    own, steps = load_recipe(RECIPE).learner, episodes * STEPS
    half = device == "cuda"
    return replace(
        own,
        device=device,
        threads=threads,
        precision="bfloat16" if half else "float32",
        adapters=replace(own.adapters, backbone_dtype="bfloat16" if half else "float32"),
        micro_batch_tokens=own.micro_batch_tokens if half else 2048,
        actor=replace(own.actor, epochs=1, batch_steps=steps, probe_steps=0),
        value=replace(own.value, epochs=1, batch_steps=steps),
        potential=replace(own.potential, epochs=1, batch_steps=steps),
    )


def _make(shape: str, folder: Path, device: str) -> None:
    """Write a model with random weights, which nobody holds afterwards."""
    torch.manual_seed(0)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    with torch.device(device):
        AutoModelForCausalLM.from_config(SHAPES[shape](), dtype=dtype).save_pretrained(folder, max_shard_size="8GB")
    for file in load_recipe(Path("cluster/recipes/laptop.yaml")).checkpoint_path.glob("*token*"):
        shutil.copy(file, folder)
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()


def _episodes(count: int, tokens: int, vocabulary: int) -> list[Trajectory]:
    """Return episodes of random ids, every other one a success, with milestones reached on the way."""
    generator = np.random.default_rng(0)

    def ids(length: int) -> np.ndarray[Any, np.dtype[np.int32]]:
        return generator.integers(10, vocabulary, length).astype(np.int32)

    made = []
    for number in range(count):
        head, reached = ids(tokens // 2), [k * MILESTONES // STEPS for k in range(STEPS + 1)]
        vectors = [tuple(m < k for m in range(MILESTONES)) for k in reached]
        steps = tuple(
            Step(index=t, url="", observation="", prompt_ids=np.concatenate([head, ids(tokens - len(head))]),
                 action_ids=ids(ACTION), logprobs=np.zeros(ACTION, np.float32), policy_version=0, temperature=1.0,
                 action_text=str(t), milestones=vectors[t])
            for t in range(STEPS)
        )  # fmt: skip
        made.append(
            Trajectory(episode_id=f"e{number}", task_id=f"t{number}", template="shop.t", site="shop", split="train",
                       intent="", source=Source.ROLLOUT, phase=1, seed=number, steps=steps,
                       termination=Termination.EXIT, answer=None, outcome=float(number % 2), failure=None,
                       final_milestones=vectors[-1], group="")
        )  # fmt: skip
    return made


def _rates(settings: LearnerSettings, folder: Path, tflops: float | None) -> dict[str, float]:
    """Return operations a second of the device: in plain matrix products here, and as its maker says where told."""
    size = size_in_folder(folder)
    dtype = settings.adapters.backbone_dtype
    measured = matmul_rate(settings.device, dtype, settings.threads, size.width, size.mlp // size.layers)
    return {"measured": measured, "peak": tflops * 1e12 if tflops else measured}


def _update(settings: LearnerSettings, folder: Path) -> Callable[[Sequence[Trajectory]], Numbers]:
    learner = Learner(settings, folder)

    def phase(episodes: Sequence[Trajectory]) -> Numbers:
        scored = learner.score(episodes)
        critics = learner.update_critics(episodes, [], 1, settings.seed).critics
        actor = learner.update_actor(episodes, [], 1, settings.seed).actor
        losses = {f"{name} loss": found.loss or 0.0 for name, found in (*critics.items(), ("actor", actor))}
        return {"score": float(sum(step.sum() for steps in scored for step in steps)), **losses}

    return phase


def alone(phase: Callable[[Sequence[Trajectory]], Numbers]) -> Callable[[Sequence[Trajectory]], Numbers]:
    """Return ``phase`` with packed rows in which no sample shares a head with another."""

    def without_sharing(episodes: Sequence[Trajectory]) -> Numbers:
        with patch.object(Sample, "shared_with", lambda self, other: 0):
            return phase(episodes)

    return without_sharing


def _arms(
    settings: LearnerSettings, folder: Path, episodes: Sequence[Trajectory], rounds: int, rows: int
) -> dict[str, dict[str, Any]]:
    """Return for each way of doing the update its seconds, the best of the rounds, its memory and its numbers."""
    make: dict[str, Callable[[], Callable[[Sequence[Trajectory]], Numbers]]] = {
        "packed rows": lambda: alone(_update(settings, folder)),
        "shared heads": lambda: _update(settings, folder),
        "plain": lambda: lambda data: PlainAdapters(settings, folder, rows).phase(data, 1),
    }
    tokens = sum(sample.length for sample in decisions(episodes))
    found: dict[str, dict[str, Any]] = {}
    for name, arm in make.items():
        times, numbers = [], Numbers()
        if settings.device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        for _ in range(rounds):
            phase = arm()
            gc.collect()
            began = time.perf_counter()
            numbers = phase(episodes)
            if settings.device == "cuda":
                torch.cuda.synchronize()
            times.append(time.perf_counter() - began)
            del phase
        held = torch.cuda.max_memory_allocated() if settings.device == "cuda" else 0
        held = held or 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        best = min(times)
        found[name] = {
            "seconds": best, "rounds": times, "tokens_per_s": tokens / best, "memory_mib": held >> 20,
            "numbers": numbers,
        }  # fmt: skip
    return found


def _published(
    settings: LearnerSettings, folder: Path, episodes: Sequence[Trajectory], scratch: Path
) -> dict[str, float]:
    """Bring the adapter that one update made to an engine on the same device, and prove it there."""
    learner = Learner(settings, folder)
    learner.update_actor(episodes[:2], [], 1, settings.seed)
    policy = PolicySettings(dtype=settings.adapters.backbone_dtype, device=settings.device, max_prompt_tokens=8000)
    loop = EngineLoop(
        GenerationEngine(load_causal_lm(folder, dtype=policy.dtype, device=policy.device), (0,), max_batch=2)
    )
    try:
        step = episodes[0].steps[0]
        prompt, action = tuple(step.prompt_ids.tolist()), tuple(step.action_ids.tolist())
        began = time.perf_counter()
        weights = learner.publish(scratch, 1)
        probe = Probe(prompt, action, tuple(learner.probe(step.prompt_ids, step.action_ids).tolist()))
        limits = probe_limits(policy, settings.computes_in)
        server = _Server(loop, policy.device)
        result = asyncio.run(publish([server], weights, [probe], limits=limits, timeout_s=_LIMIT_S))
        seconds = time.perf_counter() - began
    finally:
        loop.close()
    size = Path(weights.path).stat().st_size
    gap = result.probe_gaps.get(server.name, float("inf"))
    return {"seconds": seconds, "mib": size / 2**20, "accepted": float(bool(result.accepted)), "largest gap": gap}


def _work(
    settings: LearnerSettings, folder: Path, episodes: Sequence[Trajectory], found: dict[str, Any]
) -> dict[str, float]:
    """Return the update's operations, and the share of the device's that it reaches where no head is shared."""
    samples = decisions(episodes)
    mean = round(float(np.mean([sample.length for sample in samples])))
    work = phase_work(settings, size_in_folder(folder), PhaseData(len(episodes), 0, len(episodes), STEPS), mean)
    rate = work.operations / found["arms"]["packed rows"]["seconds"]
    return {"operations": work.operations, "mfu": rate / found["rate"]["peak"]}


def _verdicts(found: dict[str, Any], on_gpu: bool) -> list[str]:
    arms, published, shape = found["arms"], found["publication"], found["shape"]
    at_size = on_gpu and shape != "small"
    where = f"at the shape {shape}" if at_size else "at the shape small, without a GPU: it was not run at size"
    ours = arms["shared heads"]
    ratio = arms["plain"]["seconds"] / ours["seconds"]
    gap = max(
        abs(ours["numbers"][name] - value) / max(abs(value), 1e-6)
        for name, value in arms["plain"]["numbers"].items()
        if name in ours["numbers"]
    )
    share = found["work"]["mfu"]
    return [
        f"One update of actor and critics takes {ours['seconds']:.1f} s, {ours['tokens_per_s']:.0f} tokens a second, "
        f"{ours['memory_mib']} MiB at most, "
        f"{ratio:.2f} times as fast as a plain loop with the same adapters, {where}; target 3.5 "
        f"{met(at_size and ratio >= 3.5)}",
        f"Without shared heads it reaches {share:.0%} of the device's operations, {where}; target {MFU:.0%} "
        f"{met(at_size and share >= MFU)}",
        f"A publication of {published['mib']:.0f} MiB, proven within {published['largest gap']:.1e} nats, takes "
        f"{published['seconds']:.2f} s, {where}; target {PUBLISHED_S:.0f} s at 12b "
        f"{met(at_size and shape == '12b' and published['seconds'] < PUBLISHED_S and published['accepted'] == 1)}",
        f"Losses and scores differ from the plain loop's by {gap:.1e} of their size at most; target "
        f"{0.05 if at_size else 1e-3:g} {met(gap <= (0.05 if at_size else 1e-3))}",
    ]
