"""What a phase of learning costs: the learner beside a plain Hugging Face loop, measure by measure, in one run.

Both get the rollouts of one phase of a laptop run and do the same: score them, train both critics, ask them, train the
actor. From the plain loop (padded batches, every token's logits) one measure after the other is put in, up to the
learner as it is; a measure's gain is the ratio of two neighbours. The first arm is there twice: its ratio to itself
shows what a ratio is worth here. In float32 all end with the same numbers; that bfloat16 and whole episodes in a batch
teach as well is held against held-out episodes, over seeds, with a control that learns less and must be told apart.

With ``--shape`` it is one update at the size of real models instead (``benchmarks.learner_at_size``).
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from analysis.intervals import student95
from benchmarks.critic_quality import value_quality
from benchmarks.learner_at_size import SHAPES, alone, run_at_size
from benchmarks.plain_learner import Numbers, PlainLearner
from benchmarks.recording import Recording, met, option_parser
from benchmarks.runs import FOLDER, LAPTOP, RecordedRun, train
from learner.dataset import decisions, with_verdict
from learner.matmul_rate import matmul_rate
from learner.pace import ACHIEVED, PhaseData, phase_work
from learner.settings import LearnerSettings
from learner.trainer import Learner
from policy.model_size import size_in_folder
from records.episodes import Source, Trajectory

NAME = "learner"
TARGET = 3.5
SAME = 1e-3
WORSE = 0.01
ROWS = (4, 8, 16)
"""Samples in a plain batch; the fastest is taken."""
OVERRIDES = ("run.phases=1", "run.evaluation.tasks={test: 12, test_templates: 4}", "curriculum.tasks_per_phase=96")

Arm = Callable[[], Callable[[Sequence[Trajectory]], Numbers]]
"""Builds fresh models, and returns what does a phase with them."""


def main() -> None:
    """Train a little for data, measure, and write ratios and verdicts."""
    options = _options()
    if options.shape:
        run_at_size(options)
        return
    recording = Recording(NAME, options.results)
    run = RecordedRun(options.run) if options.run else train(LAPTOP, FOLDER / NAME, OVERRIDES)
    episodes = with_verdict([run.buffer.trajectory(i) for i in run.buffer.ids(sources=[Source.ROLLOUT], phases=[1])])
    settings = replace(run.recipe.learner, threads=options.threads)
    timed = episodes[: options.episodes]
    arms, rows = _arms(settings, run.model, timed)
    cells = _measure(arms, timed, options.rounds)
    numbers = _summary(cells, timed)
    share = _achieved(settings, run.model, timed, numbers["packed rows"]["cpu_s"])
    found = {"rounds": options.rounds, "plain rows": rows, "episodes": len(timed), "arms": numbers, "achieved": share}
    verdicts = _verdicts(numbers, share)
    recording.write({**found, "verdicts": verdicts})  # what follows takes as long again
    learning = _learning(settings, run.model, episodes, options.seeds)
    _tell(recording, numbers, learning)
    recording.write({**found, "learning": learning, "verdicts": verdicts + _verdicts_of_learning(learning)})


def _arms(settings: LearnerSettings, model: str, episodes: Sequence[Trajectory]) -> tuple[dict[str, Arm], int]:
    # What only measures is left out: the plain loop does without it.
    actor = replace(settings.actor, probe_steps=0)
    whole = replace(settings, actor=actor, shuffle="episodes", precision="float32")
    few = episodes[: max(len(episodes) // 8, 2)]

    def plain(rows: int, every_logit: bool = True) -> Arm:
        return lambda: lambda data: PlainLearner(whole, model, rows, every_logit).phase(data, 1)

    seconds = {rows: _timed(plain(rows), few)["cpu_s"] for rows in ROWS}
    rows = min(seconds, key=lambda rows: seconds[rows])
    return {
        "plain": plain(rows),
        "plain again": plain(rows),
        "logits of actions alone": plain(rows, every_logit=False),
        "packed rows": lambda: alone(_phase(whole, model)),
        "shared heads": lambda: _phase(whole, model),
        "bfloat16": lambda: _phase(replace(whole, precision="bfloat16"), model),
        "steps shuffled": lambda: _phase(replace(whole, shuffle="steps"), model),
    }, rows


def _phase(settings: LearnerSettings, model: str) -> Callable[[Sequence[Trajectory]], Numbers]:
    learner = Learner(settings, model)

    def phase(episodes: Sequence[Trajectory]) -> Numbers:
        scored = learner.score(episodes)
        critics = learner.update_critics(episodes, [], 1, settings.seed).critics
        actor = learner.update_actor(episodes, [], 1, settings.seed).actor
        numbers = {"score": float(sum(step.sum() for steps in scored for step in steps))}
        for name, found in (*critics.items(), ("actor", actor)):
            assert found.loss is not None
            assert found.grad_norm is not None
            numbers |= {f"{name} loss": found.loss, f"{name} gradient": found.grad_norm}
        return numbers

    return phase


def _timed(arm: Arm, episodes: Sequence[Trajectory]) -> dict[str, Any]:
    phase = arm()
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    numbers = phase(episodes)
    return {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu, "numbers": numbers}


def _measure(arms: dict[str, Arm], episodes: Sequence[Trajectory], rounds: int) -> dict[str, list[dict[str, Any]]]:
    cells: dict[str, list[dict[str, Any]]] = {name: [] for name in arms}
    for turn in range(rounds):
        for name in _turned(list(arms), turn):
            cells[name].append(_timed(arms[name], episodes))
    return cells


def _turned(names: list[str], turn: int) -> Iterator[str]:
    yield from names[turn % len(names) :] + names[: turn % len(names)]


def _summary(cells: dict[str, list[dict[str, Any]]], episodes: Sequence[Trajectory]) -> dict[str, Any]:
    tokens = sum(sample.length for sample in decisions(episodes))
    found: dict[str, Any] = {}
    before = "plain"
    for name, rounds in cells.items():
        expected, numbers = cells["plain"][0]["numbers"], rounds[0]["numbers"]
        found[name] = {
            "wall_s": median(cell["wall_s"] for cell in rounds),
            "cpu_s": median(cell["cpu_s"] for cell in rounds),
            "tokens_per_s": tokens / median(cell["wall_s"] for cell in rounds),
            "numbers": numbers,
            "largest relative difference": max(abs(numbers[k] / expected[k] - 1) for k in expected),
            "times plain": _ratio(cells["plain"], rounds),
            "times the arm before": _ratio(cells[before], rounds),
        }
        if name not in ("plain again", "bfloat16"):
            before = name
    return found


def _ratio(slow: list[dict[str, Any]], fast: list[dict[str, Any]]) -> dict[str, float]:
    """Return the ratio of CPU seconds, and that of seconds by the clock, over the rounds."""
    ratios = sorted(a["cpu_s"] / b["cpu_s"] for a, b in zip(slow, fast, strict=True))
    walls = [a["wall_s"] / b["wall_s"] for a, b in zip(slow, fast, strict=True)]
    return {"median": median(ratios), "lowest": ratios[0], "highest": ratios[-1], "by wall": median(walls)}


def _achieved(settings: LearnerSettings, model: str, episodes: Sequence[Trajectory], cpu_s: float) -> float:
    """Return the share of plain matrix products' rate that a phase without shared heads reaches."""
    size = size_in_folder(Path(model))
    samples = decisions(episodes)
    mean = round(float(np.mean([sample.length for sample in samples])))
    data = PhaseData(len(episodes), 0, len(episodes), 1)
    work = phase_work(settings, size, data, mean)
    of_all_steps = work.operations * len(samples) / len(episodes)
    rate = matmul_rate("cpu", "float32", settings.threads, size.width, size.mlp // size.layers)
    return of_all_steps / cpu_s / rate


def _learning(settings: LearnerSettings, model: str, episodes: Sequence[Trajectory], seeds: int) -> dict[str, Any]:
    """Teach on two thirds of the episodes and rate on the others; differences from float32 and shuffled steps."""
    base = replace(settings, precision="float32", shuffle="steps")
    value, actor = base.value, base.actor
    less = replace(
        base,
        value=replace(value, learning_rate=value.learning_rate / 20),
        actor=replace(actor, learning_rate=actor.learning_rate / 20),
    )
    arms = {
        "float32, steps": base,
        "float32, episodes": replace(base, shuffle="episodes"),
        "bfloat16, episodes": replace(base, shuffle="episodes", precision="bfloat16"),
        "a twentieth of the rate": less,
    }
    rated: dict[str, list[dict[str, float]]] = {name: [] for name in arms}
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(episodes))
        cut = 2 * len(order) // 3
        taught, held_out = ([episodes[i] for i in part] for part in (order[:cut], order[cut:]))
        for name, chosen in arms.items():
            rated[name].append(_rate(replace(chosen, seed=seed), model, taught, held_out))
    first = rated["float32, steps"]
    return {
        name: {
            measure: {
                "mean": float(np.mean([r[measure] for r in ratings])),
                "difference": _interval([r[measure] - f[measure] for r, f in zip(ratings, first, strict=True)]),
            }
            for measure in first[0]
        }
        for name, ratings in rated.items()
    }


def _interval(differences: Sequence[float]) -> dict[str, float]:
    """Return the mean of paired differences by seed, with Student's 95 % interval."""
    mean = float(np.mean(differences))
    error = float(np.std(differences, ddof=1)) / len(differences) ** 0.5 if len(differences) > 1 else np.inf
    half = student95(len(differences) - 1) * error if np.isfinite(error) else np.inf
    return {"mean": mean, "low": mean - half, "high": mean + half}


def _rate(
    settings: LearnerSettings, model: str, taught: Sequence[Trajectory], held_out: Sequence[Trajectory]
) -> dict[str, float]:
    learner = Learner(settings, model)
    learner.update_critics(taught, [], 1, settings.seed)
    values = learner.ask("value", held_out)
    quality = value_quality(held_out, values)
    ratio = learner.update_actor(taught, [], 1, settings.seed).actor.ratio
    assert ratio is not None
    return {"auc of V, held out": float(quality["auc"] or 0.5), "asked and achieved": float(ratio.correlation or 0.0)}


def _verdicts(numbers: dict[str, Any], share: float) -> list[str]:
    best = max(("shared heads", "bfloat16"), key=lambda name: numbers[name]["times plain"]["median"])
    ratio, control = numbers[best]["times plain"], numbers["plain again"]["times plain"]
    verdicts = [
        f"The learner ({best}) does a phase {ratio['median']:.2f} times [{ratio['lowest']:.2f}, {ratio['highest']:.2f}]"
        f" as fast as a plain loop by CPU, {ratio['by wall']:.2f} by the clock (the plain loop against itself: "
        f"{control['median']:.2f}); target {TARGET} {met(ratio['median'] >= TARGET)}"
    ]
    verdicts.append(
        f"A phase in float32 reaches {share:.0%} of the rate of plain matrix products, where waymark check counts "
        f"{ACHIEVED:.0%}; target within a third of it {met(abs(share / ACHIEVED - 1) <= 1 / 3)}"
    )
    gap = max(
        numbers[name]["largest relative difference"]
        for name in ("logits of actions alone", "packed rows", "shared heads")
    )
    verdicts.append(
        f"Losses, gradient norms and scores of the float32 arms differ by {gap:.1e} of their size at most; target "
        f"{SAME:g} {met(gap <= SAME)}"
    )
    return verdicts


def _verdicts_of_learning(learning: dict[str, Any]) -> list[str]:
    verdicts = []
    for arm in ("float32, episodes", "bfloat16, episodes"):
        for measure, found in learning[arm].items():
            gap = found["difference"]
            control = learning["a twentieth of the rate"][measure]["difference"]
            verdicts.append(
                f"{measure}, {arm}: {gap['mean']:+.3f} [{gap['low']:+.3f}, {gap['high']:+.3f}] against float32 and "
                f"shuffled steps (a twentieth of the rate: {control['mean']:+.3f} [{control['low']:+.3f}, "
                f"{control['high']:+.3f}]); target no lower than -{WORSE} {met(gap['low'] >= -WORSE)}"
            )
    return verdicts


def _tell(recording: Recording, numbers: dict[str, Any], learning: dict[str, Any]) -> None:
    recording.table(
        "A phase of learning",
        ["arm", "CPU s", "wall s", "tokens/s", "times plain", "times the arm before", "numbers differ by"],
        [[name, f["cpu_s"], f["wall_s"], f["tokens_per_s"], f["times plain"]["median"],
          f["times the arm before"]["median"], f"{f['largest relative difference']:.1e}"]
         for name, f in numbers.items()],
    )  # fmt: skip
    recording.table(
        "What is learned, over seeds",
        ["arm", *(f"{m}: {part}" for m in learning["float32, steps"] for part in ("mean", "difference"))],
        [[name, *(x for f in found.values() for x in (f["mean"], f["difference"]["mean"]))]
         for name, found in learning.items()],
    )  # fmt: skip


def _options() -> argparse.Namespace:
    parser = option_parser(NAME, "The learner beside a plain loop over Hugging Face models.")
    parser.add_argument(
        "--shape", choices=sorted(SHAPES), help="one update of a model of this shape with random weights"
    )
    parser.add_argument("--prompt-tokens", type=int, default=3072, help="with --shape: of each step")
    parser.add_argument("--plain-rows", type=int, default=2, help="with --shape: samples in a plain batch")
    parser.add_argument("--tflops", type=float, help="with --shape: TFLOP/s of the device, as its maker says")
    parser.add_argument("--folder", type=Path, help="with --shape: where the model is written for a while")
    parser.add_argument("--rounds", type=int, default=5, help="how often each arm works")
    parser.add_argument("--seeds", type=int, default=8, help="seeds of what is learned")
    parser.add_argument("--episodes", type=int, default=96, help="rollouts that are timed")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of both")
    parser.add_argument("--run", type=Path, help="a laptop run whose first rollouts are learned from")
    return parser.parse_args()


if __name__ == "__main__":
    main()
