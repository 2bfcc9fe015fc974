"""An outcome model in a process of the judge's own.

Owns ``ScorerProcess``. Invariants: the process ends with the judge, however that ends; one that died is started again
by the next question. Imports no torch: the process does.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure

_SCORER = "policy.scorer"
"""A process of its own, so that nothing here imports torch."""
_END_S = 5.0
"""Fixed: a scorer that is killed is gone at once."""


class ScorerProcess:
    """A model in a process that answers one question after the other; one that died is started again."""

    def __init__(self, folder: Path, device: str, threads: int) -> None:
        self._command = [sys.executable, "-m", _SCORER, str(folder.resolve()), device, str(threads)]
        self._numbers = count()
        self._turn = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None

    async def logprobs(self, prompt: Sequence[int], tokens: Sequence[int]) -> list[float]:
        """Return the log-probabilities of each of ``tokens`` after ``prompt``; raise ``EpisodeFailed``."""
        async with self._turn:
            process = self._process = self._process or await self._started()
            number = next(self._numbers)
            line = json.dumps({"id": number, "prompt": list(prompt), "tokens": list(tokens)})
            try:
                return await self._asked(process, number, line + "\n")
            except OSError as error:
                await self.close()
                said = f"the process of the outcome model ended: {error}; its own words are in the log above"
                raise EpisodeFailed(Failure(codes.JUDGE_UNREACHABLE, said)) from error

    async def _asked(self, process: asyncio.subprocess.Process, number: int, line: str) -> list[float]:
        """Ask and return the answer, past those to questions that nobody waits for any more."""
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line.encode("ascii"))
        await process.stdin.drain()
        while True:
            reply = await process.stdout.readline()
            if not reply:
                raise BrokenPipeError("no answer")
            said = json.loads(reply)
            if said["id"] == number:
                return [float(logprob) for logprob in said["logprobs"]]

    async def _started(self) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(*self._command, stdin=pipe, stdout=pipe)

    async def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            process.kill()
        async with asyncio.timeout(_END_S):
            await process.wait()
