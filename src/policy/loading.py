"""A model and its engine, ready to serve the weights that were published last.

Owns what a server builds when it starts. Imports torch; ``policy.server``, whose class the driver names, does not.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from policy.engine import GenerationEngine
from policy.engine_loop import EngineLoop
from policy.models import load_causal_lm
from policy.published_weights import current_weights, on_this_node
from policy.server_start import StartRefused
from policy.settings import PolicySettings
from policy.tokenizer import TextTokenizer
from policy.torch_backend import TorchSettings
from policy.weights import put_weights, read_weights


def load_engine(
    settings: PolicySettings,
    options: TorchSettings,
    model_dir: str,
    published_file: str | Path | None,
    on_failure: Callable[[], None],
) -> EngineLoop:
    """Return a running engine of the model in ``model_dir``, with the weights of ``published_file`` if it is there.

    ``on_failure`` is called in the engine's thread once it has failed.

    Raises:
        StartRefused: the model or its tokenizer cannot be read.
        WeightsRejected: the published weights cannot be had, or are not this model's.
    """
    torch.set_num_threads(options.threads)
    try:
        model = load_causal_lm(model_dir, dtype=settings.dtype, device=settings.device)
        stop_ids = TextTokenizer.load(model_dir).stop_ids
    except (OSError, ValueError) as error:
        raise StartRefused(f"{model_dir} cannot be read: {error}") from error
    version, checksum = 0, ""
    weights = None if published_file is None else current_weights(published_file)
    if weights is not None:
        put_weights(model, read_weights(on_this_node(weights)))
        version, checksum = weights.version, weights.checksum
    engine = GenerationEngine(
        model,
        stop_ids,
        max_batch=options.max_batch,
        max_prefill_tokens=options.max_prefill_tokens,
        batch_invariant=options.batch_invariant,
        kept_prompts=options.kept_prompts,
    )
    return EngineLoop(engine, version=version, checksum=checksum, on_failure=on_failure)
