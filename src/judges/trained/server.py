"""An outcome model on a vLLM server that somebody else started, and what is looked at there before a run.

Owns ``OutcomeServer`` and ``look``. Invariants: no answer is used unless the server has proven within ``_PROOF_S`` that
it serves the folder's model; one that serves another ends the run; the proof is what publications ask, its
log-probabilities of fixed prompts. Imports no torch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from judges.trained.kind import TrainedSettings
from judges.trained.model import OutcomeModel, OutcomeProbe
from judges.trained.scorer_process import ScorerProcess
from policy.client import RequestRefused, ServerUnreachable
from policy.publication import probe_fault, probe_gaps, probe_limits
from policy.settings import PolicySettings
from policy.vllm.api import NoAnswer, TokenRefused, VllmApi
from policy.vllm.places import UNTRUSTED, read_token, untrusted
from records import failure_codes as codes
from records.checks import Check, Status
from records.failures import EpisodeFailed, Failure

_PROOF_S = 60.0
"""Fixed: six scores of short prompts; a server that is started again with another model is found out by then."""
_LOOK_LIMIT_S = 60.0
"""Fixed: scoring a few short prompts takes seconds."""
_LIMITS = probe_limits(PolicySettings(dtype="bfloat16"))
"""Those of the coarser precision: a server does not say which one it computes in."""


class OutcomeServer:
    """The model of ``settings.folder`` at ``settings.url``, which is asked with ``token``.

    Where the folder has no probe, ``own`` says once what its weights answer to ``prompts``, and ends.
    """

    def __init__(
        self,
        settings: TrainedSettings,
        token: str,
        model: OutcomeModel,
        prompts: tuple[tuple[int, ...], ...],
        own: ScorerProcess,
    ) -> None:
        self._api = VllmApi(settings.url, token)
        self._settings, self._model = settings, model
        self._probe, self._prompts, self._own = model.probe, prompts, own
        self._turn = asyncio.Lock()
        self._proven_until = float("-inf")

    async def close(self) -> None:
        """Close the connections to it, and end what said what it must answer."""
        await self._api.close()
        await self._own.close()

    async def logprobs(self, prompt: Sequence[int], tokens: Sequence[int]) -> list[float]:
        """Return the log-probabilities of each of ``tokens`` after ``prompt``.

        Raises:
            EpisodeFailed: no answer, the token is refused, or the server serves another model.
        """
        try:
            async with self._turn:
                await self._prove()
            return await _scores(self._api, prompt, tokens)
        except TokenRefused as error:
            self._proven_until = float("-inf")
            said = f"{error}; set {self._settings.token_variable} to the token that the server was started with"
            raise EpisodeFailed(Failure(codes.JUDGE_REFUSED, said)) from error
        except (ServerUnreachable, RequestRefused) as error:
            self._proven_until = float("-inf")  # it may come back as another
            raise EpisodeFailed(Failure(codes.JUDGE_UNREACHABLE, str(error))) from error

    async def _prove(self) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._proven_until:
            return
        probe = self._probe or await self._own_answers()
        self._probe = probe
        fault = await _fault(self._api, self._model, probe)
        if fault is not None:
            said = f"{self._settings.url} does not serve the model of {self._settings.folder}: {fault}"
            raise EpisodeFailed(Failure(codes.JUDGE_OTHER_MODEL, said))
        self._proven_until = now + _PROOF_S

    async def _own_answers(self) -> OutcomeProbe:
        answers = (self._model.yes, self._model.no)
        found = [await self._own.logprobs(prompt, answers) for prompt in self._prompts]
        await self._own.close()
        return OutcomeProbe(self._prompts, tuple((yes, no) for yes, no in found))


async def _scores(api: VllmApi, prompt: Sequence[int], tokens: Sequence[int]) -> list[float]:
    return [(await api.score(prompt, [token]))[0] for token in tokens]


async def _fault(api: VllmApi, model: OutcomeModel, probe: OutcomeProbe) -> str | None:
    """Return what tells the server's model from the one that gave ``probe``, None where nothing does."""
    try:
        found = [await _scores(api, prompt, (model.yes, model.no)) for prompt in probe.prompts]
    except RequestRefused as error:  # its vocabulary or its context is another
        return f"it refuses a prompt of that model's: {error}"
    gaps = [gap for said, here in zip(probe.logprobs, found, strict=True) for gap in probe_gaps(said, here)]
    return probe_fault(gaps, _LIMITS)


def look(settings: TrainedSettings, model: OutcomeModel) -> Check:
    """Ask the server what the run will ask it first; where the folder has no probe, whether it answers at all."""
    name, url = "judges.trained.url", settings.url
    own_token = f"set {settings.token_variable} to the token that the server was started with"
    try:
        token = read_token(settings.token_variable)
        fault = asyncio.run(_asked(url, token, model))
    except ValueError as error:
        return Check(name, Status.FAIL, str(error), own_token)
    except TokenRefused as error:
        return Check(name, Status.FAIL, str(error), own_token)
    except (NoAnswer, TimeoutError) as error:
        if untrusted(error):
            return Check(name, Status.FAIL, f"{url} shows a certificate that is not accepted: {error}", UNTRUSTED)
        why = str(error) or f"no answer within {_LOOK_LIMIT_S:g} s"
        todo = "correct judges.trained.url, unless only the cluster reaches it"
        return Check(name, Status.WARN, f"{url} does not answer from here: {why}", todo)
    except ServerUnreachable as error:
        todo = "start it with the folder, as docs/guides/outcome-models.md says"
        return Check(name, Status.FAIL, f"{url} does not score: {error}", todo)
    if fault is not None:
        found = f"{url} does not serve the model of {settings.folder}: {fault}"
        return Check(name, Status.FAIL, found, codes.JUDGE_OTHER_MODEL.remedy)
    if model.probe is None:
        return Check(name, Status.OK, f"{url} answers; which model it serves is compared with the first label")
    return Check(name, Status.OK, f"{url} serves the model of {settings.folder}")


async def _asked(url: str, token: str, model: OutcomeModel) -> str | None:
    """Return what tells the server's model from the folder's; raise ``ServerUnreachable`` or ``TimeoutError``."""
    async with asyncio.timeout(_LOOK_LIMIT_S), VllmApi(url, token) as api:
        if model.probe is not None:
            return await _fault(api, model, model.probe)
        try:
            await _scores(api, [model.no], (model.yes, model.no))
        except RequestRefused as error:
            return f"it refuses tokens of that model's: {error}"
    return None
