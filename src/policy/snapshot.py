"""The weights of a policy folder as a published version, where no learner has them.

Owns ``take_snapshot``, which runs in a process of its own for as long as it takes: it imports torch, whoever names it
does not.
"""

from __future__ import annotations

from collections.abc import Sequence

from policy.publication import Ids, Probe
from policy.published_weights import PublishedWeights
from records.folder_mark import require_mark


def take_snapshot(
    model: str, file: str, version: int, asked: Sequence[tuple[Ids, Ids]], device: str, mark: str
) -> tuple[PublishedWeights, list[Probe]]:
    """Write the weights of ``model`` (a policy folder) to ``file``; return what names them, and probes.

    The probes hold the model's own log-probabilities of the actions ``asked`` (after their prompts), for servers to be
    held against.

    Raises:
        FolderNotShared: the process does not see the folder that has ``mark`` (``records.folder_mark``).
        OSError: there is no such model, or the file cannot be written.
    """
    from policy.checkpoint_names import other_names
    from policy.engine import GenerationEngine
    from policy.models import load_causal_lm
    from policy.tokenizer import TextTokenizer
    from policy.weights import own_tensors, write_weights

    require_mark(mark)
    loaded = load_causal_lm(model, device=device)
    own = own_tensors(loaded)
    weights = write_weights(own, file, version, views=other_names(loaded, own))
    engine = GenerationEngine(loaded, TextTokenizer.load(model).stop_ids)
    return weights, [Probe(prompt, action, tuple(engine.score(prompt, action))) for prompt, action in asked]
