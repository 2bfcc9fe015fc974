"""A process that scores single tokens after prompts, for whoever holds its pipes: ``python -m policy.scorer FOLDER``.

Owns ``main`` and its wire: a line of JSON a question (``{"id", "prompt", "tokens"}``), and one an answer (``{"id",
"logprobs"}``). Invariants: it ends with the pipe that it reads from, so that it never outlives its owner; what it reads
is data.
"""

from __future__ import annotations

import json
import sys

import torch

from policy.models import load_causal_lm


def main(folder: str, device: str, threads: str) -> None:
    """Answer every line with the policy folder ``folder``, until there are no more."""
    torch.set_num_threads(int(threads))
    model = load_causal_lm(folder, device=device)
    for line in sys.stdin:
        asked = json.loads(line)
        with torch.no_grad():
            ids = torch.tensor([asked["prompt"]], device=model.device)
            logits = model(input_ids=ids, use_cache=False, logits_to_keep=1).logits[0, -1]
            logprobs = torch.log_softmax(logits.float(), dim=-1)[asked["tokens"]].tolist()
        sys.stdout.write(json.dumps({"id": asked["id"], "logprobs": logprobs}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
