"""What does it cost to ask the potential critic beside an agent, and what do 8 bits cost in agreement?

The critic of a run's newest checkpoint answers for states of the run's own episodes: torch in float32, and its export
in float32 and 8 bits (`waymark critic export`), in one thread each and in turn, one state at a time and eight. Two
more ways to a quick answer are tried beside them, with what they cost in agreement: two threads, and states cut to
their first and last tokens. Other work on the machine shows in the spread, not in the order.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.recording import Recording, met, option_parser
from cluster.critic_export import export_critic, recorded_prompts
from cluster.run_folder.layout import RunFolders
from learner.critic_export import PlainCritic, load_critic
from policy.potential import PotentialModel
from records.episodes import FloatArray, IntArray

NAME = "critic_latency"
BATCHES = (1, 8)
GOAL_MS = 5.0
EIGHT = "ONNX, 8 bits"
CUT = 128
"""Tokens of a state that was cut."""
Ask = Callable[[Sequence[IntArray]], FloatArray]


def main() -> None:
    """Export, ask in turn, and write times and differences."""
    options = _options()
    torch.set_num_threads(1)
    recording = Recording(NAME, options.results)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "critic"
        exported = export_critic(options.run, folder, "potential", max_error=1.0)
        own = load_critic(
            "potential", RunFolders(options.run).policy, RunFolders(options.run).checkpoint(exported.checkpoint)
        )
        cut = PotentialModel(folder, "int8")
        arms: dict[str, Ask] = {
            "torch, float32": lambda prompts: _torch(own, prompts),
            "ONNX, float32": PotentialModel(folder, "float32").ask,
            EIGHT: PotentialModel(folder, "int8").ask,
            "ONNX, 8 bits, two threads": PotentialModel(folder, "int8", threads=2).ask,
            f"ONNX, 8 bits, {CUT} tokens": lambda prompts: cut.ask([_cut(prompt) for prompt in prompts]),
        }
        prompts = recorded_prompts(options.run, options.states)
        lengths = [len(prompt) for prompt in prompts]
        times = {batch: _times(arms, prompts, batch, options.rounds) for batch in BATCHES}
        agreement = _agreement(arms, prompts)
    rows = [
        [f"{arm}, {batch} at once", found["p50_ms"], found["p95_ms"]]
        for batch, of_arms in times.items() for arm, found in of_arms.items()
    ]  # fmt: skip
    recording.table("Milliseconds to ask the potential critic", ["", "p50", "p95"], rows)
    recording.table(
        "Differences from torch", ["", "largest", "mean", "correlation"],
        [[arm, found["largest"], found["mean"], found["correlation"]] for arm, found in agreement.items()],
    )  # fmt: skip
    whole = times[1][EIGHT]["p50_ms"]
    others = ", ".join(f"{arm} {of['p50_ms']:.2f}" for arm, of in times[1].items() if arm != EIGHT)
    verdict = (
        f"The potential of one state takes {whole:.2f} ms in the median with 8 bits and one thread ({others}); target "
        f"under {GOAL_MS:g} ms {met(whole < GOAL_MS)}"
    )
    recording.write({
        "states": len(prompts),
        "prompt_tokens": {"p50": float(np.median(lengths)), "p95": float(np.quantile(lengths, 0.95))},
        "parameters": sum(parameter.numel() for parameter in own.parameters()),
        "rounds": options.rounds,
        "milliseconds": {str(batch): of_arms for batch, of_arms in times.items()},
        "differences": agreement,
        "verdicts": [verdict],
    })  # fmt: skip


def _cut(prompt: IntArray) -> IntArray:
    """Return the first and the last tokens of a state: the task, and the end of the page with the question."""
    return prompt if len(prompt) <= CUT else np.concatenate([prompt[: CUT // 2], prompt[-CUT // 2 :]])


@torch.no_grad()
def _torch(critic: PlainCritic, prompts: Sequence[IntArray]) -> FloatArray:
    """Return the answers (B,) of the critic itself, padded as its export is."""
    last = torch.tensor([len(prompt) - 1 for prompt in prompts])
    ids = torch.zeros((len(prompts), int(last.max()) + 1), dtype=torch.int64)
    for row, prompt in enumerate(prompts):
        ids[row, : len(prompt)] = torch.from_numpy(np.asarray(prompt, np.int64))
    answers: FloatArray = critic(ids, last).numpy()
    return answers


def _times(arms: dict[str, Ask], prompts: Sequence[IntArray], batch: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return p50 and p95 of the milliseconds of one question; the arms take turns, in another order each round."""
    groups = [prompts[start : start + batch] for start in range(0, len(prompts) - batch + 1, batch)]
    taken: dict[str, list[float]] = {arm: [] for arm in arms}
    for ask in arms.values():
        ask(groups[0])
    for turn in range(rounds):
        for group in groups:
            for arm in list(arms)[:: 1 if turn % 2 else -1]:
                began = time.perf_counter()
                arms[arm](group)
                taken[arm].append(1e3 * (time.perf_counter() - began))
    return {
        arm: {"p50_ms": float(np.median(found)), "p95_ms": float(np.quantile(found, 0.95))}
        for arm, found in taken.items()
    }


def _agreement(arms: dict[str, Ask], prompts: Sequence[IntArray]) -> dict[str, dict[str, Any]]:
    answers = {arm: np.concatenate([ask([prompt]) for prompt in prompts]) for arm, ask in arms.items()}
    own = next(iter(answers.values()))
    return {
        arm: {
            "largest": float(np.abs(found - own).max()),
            "mean": float(np.abs(found - own).mean()),
            "correlation": float(np.corrcoef(found, own)[0, 1]),
        }
        for arm, found in list(answers.items())[1:]
    }


def _options() -> argparse.Namespace:
    parser = option_parser(NAME, "What it costs to ask the potential critic beside an agent.")
    parser.add_argument("--run", type=Path, default=Path("runs/laptop"), help="a finished run's folder")
    parser.add_argument("--states", type=int, default=200, help="states that are asked about")
    parser.add_argument("--rounds", type=int, default=5, help="times that each is asked about by each arm")
    return parser.parse_args()


if __name__ == "__main__":
    main()
