"""``python -m cluster.rayjob JOB train RECIPE …``: a run that a RayJob of Kubernetes starts.

Owns what the RayJob is told. KubeRay starts a job that failed once more, with a cluster of its own, as often as
``spec.backoffLimit`` says, and knows no exit codes; it reads the limit when the job has failed. So a run that was
refused lowers it to 0 first, and the RayJob ends as failed at once. What the run can go on from is tried again.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cluster.errors import ExitCode
from records.terminal import printable

if TYPE_CHECKING:
    import httpx

NEEDS_A_PERSON = frozenset({ExitCode.USAGE, ExitCode.MISSING})
"""Codes of a refusal: the same recipe in the same image is refused again."""


def main() -> None:
    """Do what ``waymark`` does with the words after the RayJob's name, and let a refusal not be tried again."""
    from cluster.cli import main as waymark

    job, sys.argv = sys.argv[1], ["waymark", *sys.argv[2:]]
    try:
        waymark()
    except SystemExit as ended:
        if said := try_no_more(job, ended.code):
            sys.stderr.write(f"waymark: {printable(said)}\n")
        raise


def try_no_more(
    job: str, code: object, account: Path | None = None, transport: httpx.AsyncBaseTransport | None = None
) -> str | None:
    """Let the RayJob called ``job`` not be tried again after a refusal; return what is to be said of it.

    ``account`` and ``transport`` are those of ``PodAccount``.
    """
    if code not in NEEDS_A_PERSON:
        return None
    try:
        asyncio.run(_lower(job, account, transport))
    except (OSError, RuntimeError, ValueError) as error:
        return f"RayJob {job} may be tried again, although that is of no use: {error}"
    return f"RayJob {job} is not tried again: the same recipe in the same image would be refused again."


async def _lower(job: str, folder: Path | None, transport: httpx.AsyncBaseTransport | None) -> None:
    from records.pod_account import ACCOUNT, PodAccount, change

    account = PodAccount(folder or ACCOUNT, transport)
    path = f"/apis/ray.io/v1/namespaces/{account.namespace}/rayjobs/{job}"
    async with account.asking() as client:
        await change(client, path, {"spec": {"backoffLimit": 0}})


if __name__ == "__main__":
    main()
