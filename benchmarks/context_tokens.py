"""What does dynamic context compression save (WebAgent-R1)? Tokens with the current page alone, and with all pages.

The rollouts of a finished run, in the words of its own policy's tokenizer. Compressed is what was sampled and is
trained: a prompt holds the task, every action and the current page. Whole is the same with every earlier page in its
place, so that an episode is one text that only grows. Told are, by the number of the step, the length of the context;
the tokens that a server reads for a step where it keeps the episode's last prompt; and the tokens that the learner
computes for an episode, which is one row where the context is whole, and a row a step, whose common beginning is
computed once, where it is compressed. Intervals are bootstraps over episodes. The control leaves the pages out of both:
nothing is left to compress.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.recording import Recording, met, option_parser
from cluster.errors import RunError
from cluster.recorded_run import RecordedRun
from policy.formats import format_of
from policy.kept_prompts import common_length
from policy.prompts import PromptFormat
from policy.tokenizer import TextTokenizer
from records.episodes import Source, Trajectory

NAME = "context_tokens"
STEPS = (1, 5, 10, 15, 20, 25, 30)
_RESAMPLES = 1000
CONTEXT, READ, TRAINED = "length of a step's context", "read for a step", "trained for a step"


@dataclass(frozen=True)
class EpisodeTokens:
    """Tokens of one episode of T steps.

    ``pages`` (T,), the ``compressed`` prompts (T,), what they ``share`` (T,) with the one before, and the replies'
    ``actions`` (T,).
    """

    pages: np.ndarray
    compressed: np.ndarray
    share: np.ndarray
    actions: np.ndarray

    @property
    def whole(self) -> np.ndarray:
        """Length (T,) of the prompts that hold every earlier page."""
        return self.compressed + np.concatenate([[0], np.cumsum(self.pages)[:-1]])

    @property
    def without_pages(self) -> EpisodeTokens:
        """The same with empty pages."""
        return EpisodeTokens(0 * self.pages, self.compressed - self.pages, self.share, self.actions)

    def per_step(self, *, whole: bool) -> dict[str, float]:
        """Return the mean over the steps of each measure."""
        if whole:
            context, trained = self.whole, float(self.whole[-1] + self.actions[-1])
            read = np.diff(context, prepend=0)
        else:
            context, read = self.compressed, self.compressed - self.share
            trained = float((read + self.actions).sum())
        return {CONTEXT: float(context.mean()), READ: float(read.mean()), TRAINED: trained / len(context)}


def main() -> None:
    """Count and write."""
    parser = option_parser(NAME, __doc__)
    parser.add_argument("--run", type=Path, default=Path("runs/laptop"), help="a finished run; it is only read")
    parser.add_argument("--episodes", type=int, default=400, help="episodes at most")
    options = parser.parse_args()
    recording = Recording(NAME, options.results)
    episodes = counted(options.run, options.episodes)
    if not episodes:
        sys.exit(f"{options.run}: expected rollouts, found none")
    measures = {name: _compared([(one.per_step(whole=False)[name], one.per_step(whole=True)[name]) for one in episodes])
                for name in (CONTEXT, READ, TRAINED)}  # fmt: skip
    empty = [one.without_pages for one in episodes]
    control = _compared([(one.per_step(whole=False)[CONTEXT], one.per_step(whole=True)[CONTEXT]) for one in empty])
    by_step = [_at(episodes, step) for step in STEPS if any(len(one.pages) >= step for one in episodes)]
    recording.table(
        "Tokens a step, mean over an episode's steps", ["measure", "compressed", "whole", "whole / compressed"],
        [[name, found["compressed"], found["whole"], _ratio(found)] for name, found in measures.items()],
    )  # fmt: skip
    recording.table(
        "Length of the context", ["step", "episodes", "compressed, median", "95 %", "whole, median", "95 %"],
        [[one["step"], one["episodes"], *one["compressed"], *one["whole"]] for one in by_step],
    )  # fmt: skip
    verdicts = [_verdict(name, found, len(episodes)) for name, found in measures.items()]
    nothing = "Without pages there is nothing to compress (control)"
    verdicts.append(f"{nothing}: {_ratio(control)}: {met(control['low'] == control['high'] == 1)}")
    numbers = {"episodes": len(episodes), "measures": measures, "control": control, "by_step": by_step}
    recording.write({**numbers, "verdicts": verdicts})


def _verdict(name: str, found: dict[str, float], episodes: int) -> str:
    tokens = f"{found['compressed']:.0f} tokens for {found['whole']:.0f}, whole / compressed {_ratio(found)}"
    return f"Compression saves tokens, {name}: {tokens}, {episodes} episodes: {met(found['low'] > 1)}"


def counted(run: Path, most: int) -> list[EpisodeTokens]:
    """Return the tokens of a run's rollouts, the first ``most`` by their ids.

    Raises:
        RunError: the folder holds no run.
    """
    finished = RecordedRun(run)
    if not finished.folders.policy.is_dir():
        raise RunError(f"{run}: expected a run folder with a policy, found none")
    tokenizer, prompt_format = TextTokenizer.load(finished.model), format_of(finished.recipe.policy)
    ids = sorted(finished.buffer.ids(sources=(Source.ROLLOUT,)))[:most]
    return [of_episode(one, tokenizer, prompt_format) for one in finished.buffer.trajectories(ids)]


def of_episode(episode: Trajectory, tokenizer: TextTokenizer, prompt_format: PromptFormat) -> EpisodeTokens:
    """Count one episode's tokens; a page that was cut counts as it was shown."""
    prompts = [step.prompt_ids for step in episode.steps]
    pages = [
        min(len(tokenizer.encode(prompt_format.as_page(step.observation.rstrip("\n")))), len(prompt))
        for step, prompt in zip(episode.steps, prompts, strict=True)
    ]
    share = [0, *(common_length(a, b) for a, b in zip(prompts, prompts[1:], strict=False))]
    actions = [len(step.action_ids) for step in episode.steps]
    return EpisodeTokens(*map(np.array, (pages, [len(one) for one in prompts], share, actions)))


def _compared(pairs: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Return the means over episodes and their ratio with a 95 % interval."""
    values, generator = np.array(pairs), np.random.default_rng(0)
    drawn = values[generator.integers(len(values), size=(_RESAMPLES, len(values)))].mean(axis=1)
    low, high = np.percentile(drawn[:, 1] / drawn[:, 0], [2.5, 97.5])
    compressed, whole = values.mean(axis=0).tolist()
    return {
        "compressed": compressed,
        "whole": whole,
        "ratio": whole / compressed,
        "low": float(low),
        "high": float(high),
    }


def _at(episodes: Sequence[EpisodeTokens], step: int) -> dict[str, Any]:
    there = [one for one in episodes if len(one.pages) >= step]
    lengths = {
        "compressed": [one.compressed[step - 1] for one in there],
        "whole": [one.whole[step - 1] for one in there],
    }
    told = {name: [float(np.percentile(found, share)) for share in (50, 95)] for name, found in lengths.items()}
    return {"step": step, "episodes": len(there), **told}


def _ratio(found: dict[str, float]) -> str:
    return f"{found['ratio']:.2f} [{found['low']:.2f}, {found['high']:.2f}]"


if __name__ == "__main__":
    main()
