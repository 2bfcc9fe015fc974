"""What vLLM's server answers over HTTP: completions by token ids, and new weights.

Owns ``VllmApi``. Invariants: token ids in and out; a reply comes from one version of the weights or is refused; no
error of the HTTP library leaves this module. ``/inference/v1/generate`` is asked, because it names the weights that
answered.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from policy.client import Completion, RequestRefused, Sampling, ServerUnreachable, WrongVersion
from policy.published_weights import PublishedWeights, TransferBroken, WeightsRejected
from policy.vllm.places import Place

UNPUBLISHED = -1
"""Version of the weights that a server was started with."""
_FORGET_S = 10.0
"""Fixed: a worker removes a folder in milliseconds; past it the next adapter, or the next worker's start, does."""
_LABEL = re.compile(r"(\d+)-([0-9a-f]{64})")
_LOG = logging.getLogger(__name__)
_Reply = TypeVar("_Reply", bound=BaseModel)


def reply_token(token: str) -> str:
    """Return the token that opens a server's path of replies alone; the server's own does not follow from it."""
    return hmac.new(token.encode(), b"replies", "sha256").hexdigest() if token else ""


class NoAnswer(ServerUnreachable):
    """Nobody answers at all, or nobody whose certificate is accepted."""


class TokenRefused(ServerUnreachable):
    """The server asks for another token than it was sent, or for one at all."""


class _BadRequest(ServerUnreachable):
    """The server does not take what it was sent."""


class _Logprob(BaseModel):
    logprob: float


class _Token(_Logprob):
    token_id: int


class _Content(BaseModel):
    content: list[_Token]


class _Span(BaseModel):
    version: str


class _Choice(BaseModel):
    token_ids: list[int]
    finish_reason: str
    logprobs: _Content | None
    weight_versions: list[_Span]


class _Generated(BaseModel):
    choices: list[_Choice]
    prompt_logprobs: list[dict[int, _Logprob] | None] | None


class _WeightInfo(BaseModel):
    weight_version: str


class _Taken(BaseModel):
    refused: str
    broken_off: bool = False
    folder: str = ""
    device: str = ""


class _Results(BaseModel):
    results: list[_Taken]


class _Success(BaseModel):
    success: bool


class VllmApi:
    """A server at ``place``; use as an async context manager, within one event loop.

    Args:
        place: where it is, or its URL, such as ``http://127.0.0.1:8000``.
        token: what the server asks for; empty sends none.
        adapters: whether published weights are adapters on the model that the server started with, one name each.

    Raises:
        ServerUnreachable: the URL is one of ``https``, and the authorities of ``SSL_CERT_FILE`` cannot be read.
    """

    def __init__(self, place: str | Place, token: str, *, adapters: bool = False) -> None:
        self.place = place if isinstance(place, Place) else Place(place)
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        # Deadlines are the callers': asyncio's, so that a slow trickle of bytes does not outlive them.
        try:
            self._http = httpx.AsyncClient(**self.place.client(token), timeout=None, limits=limits)
        except OSError as error:
            raise ServerUnreachable(f"SSL_CERT_FILE cannot be read, {self.place} is not asked: {error}") from error
        self._token = token
        self._adapters = adapters

    async def __aenter__(self) -> VllmApi:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close its connections; what is asked of it afterwards finds nobody."""
        await self._http.aclose()

    async def complete(
        self, prompt_ids: Sequence[int], sampling: Sampling, *, stop_ids: Sequence[int], seeds: bool
    ) -> Completion:
        """Return one completion.

        Raises:
            RequestRefused: the server cannot serve it, or it asks for ``top_p`` below 1: the log-probabilities would
                be those of the cut distribution.
            WrongVersion: other weights answered than ``sampling.version``.
            ServerUnreachable: no answer, one that a publication interrupted, or one of several versions.
        """
        if sampling.top_p != 1.0:
            raise RequestRefused(f"top_p must be 1 with vLLM, found {sampling.top_p:g}")
        parameters: dict[str, Any] = {
            "temperature": sampling.temperature,
            "max_tokens": sampling.max_new_tokens,
            "stop_token_ids": list(stop_ids),
            "logprobs": 0,
        }
        if seeds:
            parameters["seed"] = sampling.seed
        body = self._request(prompt_ids, parameters) | await self._model(sampling.version)
        if sampling.version is not None:
            body["cache_salt"] = f"version-{sampling.version}"  # no keys and values of other weights
        reply = await self._generate(body)
        if len(reply.choices) != 1 or reply.choices[0].logprobs is None:
            raise ServerUnreachable(f"{self.place} gave {len(reply.choices)} replies, or no log-probabilities")
        choice, scored = reply.choices[0], reply.choices[0].logprobs.content
        version = _version_of(choice)
        if sampling.version is not None and version != sampling.version:
            raise WrongVersion(f"expected version {sampling.version}, version {version} answered")
        if choice.finish_reason not in ("stop", "length"):
            raise ServerUnreachable(f"{self.place} broke a reply off ({choice.finish_reason})")
        logprobs = tuple(token.logprob for token in scored)
        if not choice.token_ids or [token.token_id for token in scored] != choice.token_ids:
            raise ServerUnreachable(f"{self.place} gave log-probabilities of other tokens than the reply's")
        return Completion(tuple(choice.token_ids), logprobs, version, choice.finish_reason)

    async def score(self, prompt_ids: Sequence[int], action_ids: Sequence[int]) -> list[float]:
        """Return the log-probabilities (A,) of ``action_ids`` at temperature 1, computed without cached keys.

        Raises:
            RequestRefused: the server cannot score them, as where they exceed its context.
            ServerUnreachable: no answer, one about other tokens, or without the adapter that is said to be served.
        """
        whole = [*prompt_ids, *action_ids]
        body = self._request(whole, {"temperature": 1.0, "max_tokens": 1, "prompt_logprobs": 0})
        try:
            reply = await self._generate(body | await self._model(None))
        except WrongVersion as error:
            raise ServerUnreachable(str(error)) from error
        found = (reply.prompt_logprobs or [])[len(prompt_ids) :]
        try:
            return [(scored or {})[token].logprob for scored, token in zip(found, action_ids, strict=True)]
        except (KeyError, ValueError) as error:
            raise ServerUnreachable(f"{self.place} gave log-probabilities of other tokens than asked for") from error

    async def served(self) -> PublishedWeights:
        """Return version and checksum of what is served; version ``UNPUBLISHED`` for what the server started with."""
        label = (await self._ask(_WeightInfo, "GET", "/weight_info")).weight_version
        found = _LABEL.fullmatch(label)
        return PublishedWeights(int(found[1]), found[2], "") if found else PublishedWeights(UNPUBLISHED, "", "")

    async def take_weights(self, weights: PublishedWeights, *, drain_timeout_s: float) -> PublishedWeights:
        """Let the server drain, take new weights and forget what it cached under the old ones; return what it serves.

        A server that fails in between stays paused, so that nobody hears half of its weights.

        Raises:
            WeightsRejected: they are not what was published; the old ones serve on.
            ServerUnreachable: no answer, or the server cannot take weights.
        """
        await self._pause(drain_timeout_s)
        if self._adapters:
            refused = await self._take_adapter(weights)
        else:
            taken = await self._tell_workers("waymark_take_weights", weights.path, weights.checksum)
            refused = _refusal(taken)
        if refused is None:
            label = f"{weights.version}-{weights.checksum}"
            await self._send("POST", "/update_weight_version", json={"new_version": label})
            if not (await self._ask(_Success, "POST", "/reset_prefix_cache")).success:
                raise ServerUnreachable(f"{self.place} keeps what it cached under the old weights")
        await self._send("POST", "/resume")
        if refused is not None:
            raise refused
        return await self.served()

    async def devices(self) -> tuple[str, ...]:
        """Return the kind of device of each of the server's workers, such as ``cuda``; raise ``ServerUnreachable``."""
        return tuple(worker.device for worker in await self._tell_workers("waymark_device"))

    async def _take_adapter(self, weights: PublishedWeights) -> WeightsRejected | None:
        """Let the server load an adapter in the place of the one that it has; return why not, or nothing."""
        before = (await self.served()).version
        laid_out = await self._tell_workers("waymark_lay_out_adapter", weights.path, weights.checksum)
        folders = [worker.folder for worker in laid_out if worker.folder]
        try:
            if (refused := _refusal(laid_out)) is None:
                await self._load_adapter(weights.version, before, folders[0])
            return refused
        finally:
            await self._forget(folders)

    async def _load_adapter(self, version: int, before: int, folder: str) -> None:
        for name in map(_adapter_name, {before, version}):  # the same version, too: it may have been another file
            with suppress(ServerUnreachable):  # says that it has none of this name
                await self._send("POST", "/v1/unload_lora_adapter", json={"lora_name": name})
        named = {"lora_name": _adapter_name(version), "lora_path": folder}
        await self._send("POST", "/v1/load_lora_adapter", json=named)

    async def _forget(self, folders: Sequence[str]) -> None:
        """Let the workers remove adapters that they laid out, also where nobody waits for the publication any more."""
        if not folders:
            return
        try:
            async with asyncio.timeout(_FORGET_S):
                await self._tell_workers("waymark_forget_folders", list(folders))
        except (TimeoutError, ServerUnreachable) as error:
            _LOG.warning("%s has not said that it removed %s: %s", self.place, ", ".join(folders), error)

    async def _tell_workers(self, method: str, *args: object) -> list[_Taken]:
        """Call a method of ``waymark_worker``; return what each of the workers says."""
        taken = await self._ask(_Results, "POST", "/collective_rpc", json={"method": method, "args": list(args)})
        if not taken.results:
            raise ServerUnreachable(f"{self.place} has no worker that takes weights")
        return taken.results

    async def _model(self, version: int | None) -> dict[str, str]:
        """Return what names the adapter of ``version`` (None: the one served) in a request, where there are any."""
        if not self._adapters:
            return {}
        asked = (await self.served()).version if version is None else version
        return {} if asked == UNPUBLISHED else {"model": _adapter_name(asked)}

    async def disown(self) -> None:
        """Let replies name no version from now on."""
        await self._send("POST", "/update_weight_version", json={"new_version": "refused"})

    async def is_up(self) -> bool:
        """Whether the server says that it is ready."""
        try:
            await self._send("GET", "/health")
        except ServerUnreachable:
            return False
        return True

    async def _pause(self, drain_timeout_s: float) -> None:
        try:
            async with asyncio.timeout(drain_timeout_s):
                await self._send("POST", "/pause", params={"mode": "wait"})
        except TimeoutError:
            await self._send("POST", "/pause", params={"mode": "abort"})

    @staticmethod
    def _request(prompt_ids: Sequence[int], parameters: Mapping[str, Any]) -> dict[str, Any]:
        plain = {"top_p": 1.0, "top_k": 0, "min_p": 0.0, "detokenize": False, "skip_special_tokens": False}
        return {"token_ids": list(prompt_ids), "sampling_params": {**plain, **parameters}}

    async def _generate(self, body: dict[str, Any]) -> _Generated:
        """Ask for tokens; of all that a server is asked, this alone can be refused for what it says."""
        try:
            return await self._ask(_Generated, "POST", "/inference/v1/generate", json=body)
        except _BadRequest as error:
            raise RequestRefused(str(error)) from error

    async def _ask(self, kind: type[_Reply], method: str, path: str, **content: Any) -> _Reply:
        response = await self._send(method, path, **content)
        try:
            return kind.model_validate_json(response.content)
        except ValidationError as error:
            raise ServerUnreachable(f"{self.place.of(path)} answered something else than expected: {error}") from error

    async def _send(self, method: str, path: str, **content: Any) -> httpx.Response:
        if self._http.is_closed:
            raise ServerUnreachable(f"{self.place} is no longer where the server is")
        try:
            response = await self._http.request(method, path, extensions=dict(self.place.extensions), **content)
        except httpx.HTTPError as error:
            raise NoAnswer(f"{self.place.of(path)} does not answer: {error!r}") from error
        if response.status_code == httpx.codes.UNAUTHORIZED:  # with 403 vLLM says that it was started without a path
            said = f"status {response.status_code}, {self._said(response)}"
            raise TokenRefused(f"{self.place.of(path)} refuses this token: {said}")
        if response.status_code == httpx.codes.BAD_REQUEST:
            raise _BadRequest(f"{self.place.of(path)}: status 400, {self._said(response)}")
        if response.status_code == httpx.codes.NOT_FOUND and "model" in content.get("json", {}):
            raise WrongVersion(f"expected the adapter {content['json']['model']}: {self._said(response)}")
        if response.status_code == httpx.codes.NOT_FOUND:
            raise ServerUnreachable(f"{self.place} knows no {path}; how to start it: docs/guides/vllm.md")
        if not response.is_success:
            raise ServerUnreachable(f"{self.place.of(path)}: status {response.status_code}, {self._said(response)}")
        return response

    def _said(self, response: httpx.Response) -> str:
        """Return what a message repeats of an answer; a server that repeats the token is not repeated."""
        said = response.text.replace(self._token, "…") if self._token else response.text
        return said[:300].replace("\n", " ")


def _refusal(taken: Sequence[_Taken]) -> WeightsRejected | None:
    """Return why a worker refused what all were told to take, None where none did."""
    for worker in taken:
        if worker.refused:
            return TransferBroken(worker.refused) if worker.broken_off else WeightsRejected(worker.refused)
    return None


def _adapter_name(version: int) -> str:
    return f"version-{version}"


def _version_of(choice: _Choice) -> int:
    versions = {span.version for span in choice.weight_versions}
    if len(versions) != 1:
        raise ServerUnreachable(f"a reply of several versions of the weights: {sorted(versions)}")
    found = _LABEL.fullmatch(versions.pop())
    return int(found[1]) if found else UNPUBLISHED
