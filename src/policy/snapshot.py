"""The weights of a policy folder as a published version, where no learner has them.

Owns ``take_snapshot``, which runs in a process of its own for as long as it takes: it imports torch, whoever names it
does not.
"""

from __future__ import annotations

from collections.abc import Sequence

from policy.publication import Probe
from policy.published_weights import PublishedWeights


def take_snapshot(
    model: str, file: str, version: int, prompt_ids: Sequence[int], action_ids: Sequence[int], device: str
) -> tuple[PublishedWeights, Probe]:
    """Write the weights of ``model`` (a policy folder or hub name) to ``file``; return what names them and their probe.

    The probe holds the model's own log-probabilities of the action, for servers to be held against.

    Raises:
        OSError: there is no such model, or the file cannot be written.
    """
    from policy.engine import GenerationEngine
    from policy.models import load_causal_lm
    from policy.tokenizer import TextTokenizer
    from policy.weights import write_weights

    loaded = load_causal_lm(model, device=device)
    weights = write_weights(loaded.state_dict(), file, version)
    engine = GenerationEngine(loaded, TextTokenizer.load(model).stop_ids)
    prompt, action = list(prompt_ids), list(action_ids)
    return weights, Probe(tuple(prompt), tuple(action), tuple(engine.score(prompt, action)))
