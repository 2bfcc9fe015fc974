"""What a trained checker knows of a milestone and a state: how near the page and the actions are to what it says.

Owns ``FEATURES`` and ``Features``. Invariants: pure but for the encoder; only what an agent could know at that state
enters (no outcome, nothing later); each text is encoded once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from judges.of_milestones.actions import action_sentence, page_lines
from judges.of_milestones.encoder import Remembering, SentenceEncoder, Vectors
from judges.of_milestones.recorded import page_of
from records.episodes import FinalState, Step, Trajectory

FEATURES = (
    "likest line", "likest action", "last action", "title", "likest line to the task", "words on the page",
    "words in actions", "words in the address", "task words on the page", "task words in actions",
    "task words in the address", "task words in fields", "steps", "position", "ended", "address changed",
)  # fmt: skip
"""The features, in order; each pair of them enters as a product, too."""

_WORD = re.compile(r"[^\W_]+")
_SMALL = {"a", "an", "and", "are", "as", "at", "for", "from", "in", "is", "it", "of", "on", "the", "to", "with"}


class Features:
    """Computes features; keeps the vector of every text that it has seen."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        self.encoder = Remembering(encoder)

    def learn(self, episodes: Iterable[Trajectory], texts: Iterable[str]) -> None:
        """Encode everything that these episodes show, at once, and ``texts``."""
        told = list(episodes)
        steps = [step for episode in told for step in episode.steps]
        lines = {line for step in steps for line in (*page_lines(step), action_sentence(step))}
        lines |= {line for one in told if one.final_state is not None for line in page_lines(one.final_state)}
        self.encoder.encode([*texts, *lines])

    def of(self, episode: Trajectory, milestones: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return (T + 1, K, features) of the states before each of the T actions and after the last."""
        self.learn([episode], [*milestones, episode.intent])
        said = self.encoder.encode(milestones)
        task = self.encoder.encode([episode.intent])
        words = [_words(milestone) for milestone in milestones]
        # What makes the task this one: names and numbers, as they are written in it.
        own = {word.casefold() for word in _WORD.findall(episode.intent) if not word.islower()}
        rows = []
        for at, state in enumerate([*episode.steps, episode.final_state or episode.steps[-1]]):
            ended = at == len(episode.steps)
            rows.append(self._state(state, episode.steps[:at], ended, said, task, words, own))
        return np.array(rows)

    def _state(
        self,
        step: Step | FinalState,
        done: Sequence[Step],
        ended: bool,
        said: Vectors,
        task: Vectors,
        words: Sequence[set[str]],
        own: set[str],
    ) -> list[list[float]]:
        lines, actions = page_lines(step), [sentence for one in done if (sentence := action_sentence(one))]
        page, address = page_of(step), _words(step.url)
        shown, acted = _words(" ".join(lines)), _words(" ".join(actions))
        fields = _words(" ".join(element.value for element in page.elements))
        near_page, near_actions = said @ self.encoder.encode(lines).T, said @ self.encoder.encode(actions).T
        title = said @ self.encoder.encode([page.title])[0]
        task_line = float((task @ self.encoder.encode(lines).T).max(initial=0))
        of_task = [task_line, _share(own, shown), _share(own, acted), _share(own, address), _share(own, fields)]
        moved = float(bool(done) and done[-1].url != step.url)
        return [
            [
                float(near_page[k].max(initial=0)),
                float(near_actions[k].max(initial=0)),
                float(near_actions[k][-1]) if actions else 0.0,
                float(title[k]),
                of_task[0],
                _share(words[k], shown),
                _share(words[k], acted),
                _share(words[k], address),
                *of_task[1:],
                float(np.log1p(len(done))),
                (k + 1) / len(words),
                float(ended),
                moved,
            ]
            for k in range(len(words))
        ]


def _words(text: str) -> set[str]:
    """Return the words of a text that mean something, small and without a plural's s."""
    found = {word.casefold() for word in _WORD.findall(text)}
    return {word.removesuffix("s") if len(word) > 3 else word for word in found if word not in _SMALL}


def _share(wanted: set[str], found: set[str]) -> float:
    stems = {word.removesuffix("s") if len(word) > 3 else word for word in wanted}
    return len(stems & found) / len(stems) if stems else 0.0
