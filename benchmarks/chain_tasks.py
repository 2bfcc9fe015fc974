"""What are chains like? Their expert's actions, how long their prompts are, how many there are, and what they cost.

By number of atoms: actions of the expert, tokens of the instruction and of the prompts on the expert's way (with the
shipped policy's tokenizer, nothing cut), the share of prompts over the recipe's limit, seconds that drawing a chain
takes (the sites' data included) and that its expert plays without a browser. By split: how many combinations of atoms
there are.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections import Counter
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import mean, median
from typing import Any

from benchmarks.recording import Recording, option_parser
from cluster.recipe.recipe import Recipe, load_recipe
from environments.browserless.environment import BrowserlessEnvironment
from policy.formats import get_format
from policy.tokenizer import TextTokenizer
from records.episodes import Source
from rollout_workers.scripted_agent import record_demonstration
from rollout_workers.spec import EpisodeSpec
from sites.app import create_app
from sites.chains.atoms import ATOMS, HELD_OUT
from sites.chains.draws import MOST_SITES
from sites.chains.settings import ChainSettings
from sites.chains.source import ChainTasks
from sites.chains.splits import bucket_of
from sites.registry import SITES

NAME = "chain_tasks"
LENGTHS = tuple(range(1, 9))
ENUMERATED = 4
"""Combinations of up to so many atoms are counted one by one."""
_SEEDS = 3
_UNCUT = 8192


def main() -> None:
    """Draw, play, and write the table."""
    options = _options()
    recording = Recording(NAME, options.results)
    recipe = load_recipe(options.recipe)
    limit = recipe.policy.max_prompt_tokens
    rows = [asyncio.run(_survey(recipe, length, options.chains)) for length in LENGTHS]
    columns = ["atoms", "actions", "most", "instruction tok", "most", "prompt tok", "95 %", "most", f"over {limit}",
               "draw s", "play s"]  # fmt: skip
    names = ["actions", "most_actions", "instruction", "longest_instruction", "prompt", "prompt_95", "longest_prompt",
             "over_limit", "draw_s", "play_s"]  # fmt: skip
    recording.table("Chains", columns, [[str(row["atoms"]), *(row[name] for name in names)] for row in rows])
    built = {site: _build_s(site) for site in SITES}
    found = _combinations()
    recording.write(
        {"chains": options.chains, "limit": limit, "lengths": rows, "build_s": built, "combinations": found}
    )


async def _survey(recipe: Recipe, length: int, count: int) -> dict[str, Any]:
    """Return what chains of this length are like."""
    lengths = ChainSettings(lengths=(length,), long=(), demonstrated=(1,))
    tokenizer, limits = TextTokenizer.load(recipe.checkpoint_path), replace(recipe.policy, max_prompt_tokens=_UNCUT)
    began = time.perf_counter()
    tasks = ChainTasks(tuple(SITES), lengths).task_set(0, "train", count)
    drawn_s = (time.perf_counter() - began) / count
    environment = BrowserlessEnvironment(create_app(0))
    prompts, play_s = list[int](), list[float]()
    for task in tasks:
        await environment.reset(task)  # builds the data of the task's seed
        began = time.perf_counter()
        spec = EpisodeSpec(task.task_id, task, Source.DEMONSTRATION, 0, 0, temperature=0.0)
        prompt_format = get_format(recipe.policy.prompt_format)
        played = await record_demonstration(environment, prompt_format, tokenizer, spec, recipe.rollout, limits)
        play_s.append(time.perf_counter() - began)
        prompts += [len(step.prompt_ids) for step in played.steps]
    await environment.close()
    said = [len(tokenizer.encode(task.intent)) for task in tasks]
    ordered = sorted(prompts)
    return {
        "atoms": length,
        "actions": mean(task.horizon for task in tasks),
        "most_actions": max(task.horizon for task in tasks),
        "instruction": mean(said),
        "longest_instruction": max(said),
        "prompt": mean(prompts),
        "prompt_95": ordered[int(0.95 * len(ordered))],
        "longest_prompt": ordered[-1],
        "over_limit": sum(tokens > recipe.policy.max_prompt_tokens for tokens in prompts) / len(prompts),
        "draw_s": drawn_s,
        "play_s": median(play_s),
    }


def _build_s(site: str) -> float:
    """Return how long the data of a seed take to build, seconds."""
    taken = []
    for seed in range(1, _SEEDS + 1):
        began = time.perf_counter()
        SITES[site].build(seed)
        taken.append(time.perf_counter() - began)
    return median(taken)


def _combinations() -> dict[str, dict[str, int]]:
    """Count the combinations of several atoms of at most three sites, by number of atoms and split."""
    trained = [name for name in ATOMS if name not in HELD_OUT]
    found = {}
    for length in range(2, ENUMERATED + 1):
        seen = Counter(bucket_of(*names) for names in combinations(trained, length) if _near(names))
        with_unseen = sum(_near(names) for names in combinations(ATOMS, length)) - seen.total()
        found[str(length)] = {**seen, "test_atoms": with_unseen}
    return found


def _near(names: tuple[str, ...]) -> bool:
    return len({ATOMS[name].site for name in names}) <= MOST_SITES


def _options() -> argparse.Namespace:
    parser = option_parser(NAME, "What chains are like.")
    parser.add_argument("--recipe", type=Path, default=Path("cluster/recipes/laptop.yaml"), help="with a checkpoint")
    parser.add_argument("--chains", type=int, default=60, help="chains of each number of atoms")
    return parser.parse_args()


if __name__ == "__main__":
    main()
