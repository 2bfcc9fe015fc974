"""What does keeping prompts save the torch engine? The steps of episodes, as experts play them, with and without.

Prompts are those of the embedded sites with the shipped policy's tokenizer, bare and with a description of the actions
before them. Each of 1, 3 or 6 episodes side by side asks for its next step when the one before is answered, in this
process and one thread. Told are new tokens a second of its CPU, on and off in turn, and the share of the prompts'
tokens that were not read again. Other work on the machine shows in the spread, not in the order.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.recording import Recording, met, option_parser
from cluster.recipe.recipe import Recipe, load_recipe
from cluster.task_sets import TaskSets
from environments.browserless.environment import BrowserlessEnvironment
from policy.client import Sampling
from policy.engine import GenerationEngine, GenerationRequest
from policy.formats import get_format
from policy.models import load_causal_lm
from policy.tokenizer import TextTokenizer
from rollout_workers.scripted_agent import record_demonstration
from sites.app import create_app

NAME = "kept_prompts"
Episode = list[list[int]]
"""The prompts of one episode's steps."""
SIDE_BY_SIDE = (1, 3, 6)
KEPT = 8
BARE = "as the recipe has them"
NO_LOSS, GAIN = 0.95, 1.1
"""What keeping must reach: of short prompts little is shared, of those with instructions more than half."""


def main() -> None:
    """Play, ask, and write the ratios."""
    options = _options()
    torch.set_num_threads(1)
    recording = Recording(NAME, options.results)
    recipe = load_recipe(options.recipe, ["policy.max_prompt_tokens=1500"])
    rows = []
    for instructions in (False, True):
        episodes = asyncio.run(_episodes(recipe, options.episodes, instructions))
        for count in SIDE_BY_SIDE:
            name = "with instructions" if instructions else BARE
            rows.append({"prompts": name, "episodes": count, **_compare(recipe, episodes, count, options.rounds)})
    columns = ["prompts, episodes side by side", "kept tok/CPU s", "not kept tok/CPU s", "ratio", "not read again"]
    recording.table(
        "Keeping prompts", columns,
        [[f"{row['prompts']}, {row['episodes']}", row["on"], row["off"],
          f"{row['ratio']['median']:.2f} [{row['ratio']['lowest']:.2f}, {row['ratio']['highest']:.2f}]", row["cached"]]
         for row in rows],
    )  # fmt: skip
    verdicts = _verdicts(rows)
    recording.write({"rounds": options.rounds, "kept_prompts": KEPT, "cells": rows, "verdicts": verdicts})


def _verdicts(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return a sentence for each cell: keeping prompts costs little where they are short, and pays elsewhere."""
    said = []
    for row in rows:
        ratio, target = row["ratio"], NO_LOSS if row["prompts"] == BARE else GAIN
        said.append(
            f"{row['episodes']} episodes side by side, prompts {row['prompts']}: {ratio['median']:.2f} times the new "
            f"tokens a CPU second [{ratio['lowest']:.2f}, {ratio['highest']:.2f}] over the rounds with prompts kept, "
            f"{row['cached']:.0%} of their tokens not read again; target {target:g} {met(ratio['median'] >= target)}"
        )
    return said


async def _episodes(recipe: Recipe, count: int, instructions: bool) -> list[Episode]:
    tokenizer = TextTokenizer.load(recipe.checkpoint_path)
    prompt_format = get_format(recipe.policy.prompt_format, instructions=instructions)
    environment = BrowserlessEnvironment(create_app(0))
    episodes = []
    for spec in TaskSets(recipe).demonstrations(NAME, count, flawless=True):
        played = await record_demonstration(environment, prompt_format, tokenizer, spec, recipe.rollout, recipe.policy)
        episodes.append([step.prompt_ids.tolist() for step in played.steps])
    await environment.close()
    return episodes


def _compare(recipe: Recipe, episodes: Sequence[Episode], count: int, rounds: int) -> dict[str, Any]:
    """Return new tokens a CPU second with prompts kept and not, and the ratios of the rounds."""
    arms = {name: _engine(recipe, kept) for name, kept in (("on", KEPT), ("off", 0))}
    for engine in arms.values():
        _play(engine, episodes[:count], count)
    rates: dict[str, list[float]] = {name: [] for name in arms}
    for turn in range(rounds):
        for name in list(arms) if turn % 2 else list(arms)[::-1]:
            rates[name].append(_play(arms[name], episodes, count))
    ratios = sorted(on / off for on, off in zip(rates["on"], rates["off"], strict=True))
    ratio = {"median": median(ratios), "lowest": ratios[0], "highest": ratios[-1]}
    cached = arms["on"].cached_tokens / arms["on"].prompt_tokens
    return {"on": median(rates["on"]), "off": median(rates["off"]), "ratio": ratio, "cached": cached}


def _engine(recipe: Recipe, kept: int) -> GenerationEngine:
    folder = recipe.checkpoint_path
    return GenerationEngine(load_causal_lm(folder), TextTokenizer.load(folder).stop_ids, kept_prompts=kept)


def _play(engine: GenerationEngine, episodes: Sequence[Episode], count: int) -> float:
    """Ask for every step of the episodes, ``count`` of them side by side; return new tokens a CPU second."""
    left, under_way = list(range(len(episodes))), {}
    new_tokens, began = engine.new_tokens, time.process_time()

    def ask(episode: int, step: int) -> None:
        number = episode * 1000 + step
        under_way[number] = (episode, step)
        sampling = Sampling(temperature=0.8, max_new_tokens=32, seed=number)
        engine.submit(GenerationRequest(number, episodes[episode][step], sampling))

    for _ in range(min(count, len(left))):
        ask(left.pop(), 0)
    while under_way:
        for result in engine.step():
            episode, step = under_way.pop(result.request_id)
            if step + 1 < len(episodes[episode]):
                ask(episode, step + 1)
            elif left:
                ask(left.pop(), 0)
    return (engine.new_tokens - new_tokens) / (time.process_time() - began)


def _options() -> argparse.Namespace:
    parser = option_parser(NAME, "What keeping prompts saves the torch engine.")
    parser.add_argument("--recipe", type=Path, default=Path("cluster/recipes/laptop.yaml"), help="with a checkpoint")
    parser.add_argument("--episodes", type=int, default=40, help="episodes of each round")
    parser.add_argument("--rounds", type=int, default=7, help="turns of on and off")
    return parser.parse_args()


if __name__ == "__main__":
    main()
