"""One server of vLLM on this machine, from its start to its end.

Owns the command line and the environment. Invariants: the process sees no secret but its own token and the hub's; it
ends with whoever started it, however that ends; what it printed last is told when it does not start; no two servers
of this machine share a port.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from policy.server_start import StartRefused
from policy.settings import PolicySettings
from policy.vllm import parallel
from policy.vllm.backend import VllmSettings

_INSIDE = Path(__file__).parent / "inside"
_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "XDG_CACHE_HOME", "http_proxy", "https_proxy")
_KEPT_PREFIXES = ("CUDA_", "NVIDIA_", "NCCL_", "HF_", "VLLM_", "TORCH", "LC_")
_PAUSE_S = 0.5
"""Fixed: a pace within ``policy.options.start_timeout_s``."""
_KILL_LIMIT_S = 10.0
"""Fixed: a killed process is gone at once, or its machine is."""
_LOG_TAIL_CHARS = 1500
_USAGE = 2
"""The status of a program that does not know what it was told on its command line."""
_LORA = "VLLM_ALLOW_RUNTIME_LORA_UPDATING"
VLLM_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""What vLLM takes as the largest rank."""


class NotReady(RuntimeError):
    """The process ended, or was not ready in time; the message ends with what it printed last."""


class VllmProcess:
    """Starts a server for ``model`` (a policy folder or hub name) in ``python``, at a free port of ``host``.

    What it prints is appended to ``log_file``. Adapters of up to ``adapter_rank`` are served; 0 serves whole models.
    Raises ``OSError`` where another server was given the same port, or nothing can be started.
    """

    def __init__(
        self,
        settings: PolicySettings,
        options: VllmSettings,
        model: str,
        *,
        python: str,
        host: str,
        token: str,
        log_file: Path,
        adapter_rank: int = 0,
    ) -> None:
        port = _free_port(host)
        self._claim = _claim(host, port)
        self.url = f"http://{host}:{port}"
        self._log = log_file
        log_file.parent.mkdir(parents=True, exist_ok=True)
        with log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [python, str(_INSIDE / "launch.py"), *_arguments(settings, options, model)]
                + [*_for_adapters(adapter_rank), "--host", host, "--port", str(port)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=_environment(options, token, os.environ) | ({_LORA: "True"} if adapter_rank else {}),
            )

    @property
    def process_id(self) -> int:
        """The server's process id, which is its group's."""
        return self._process.pid

    def wait(self, is_up: Callable[[], bool], timeout_s: float) -> None:
        """Wait until ``is_up`` says so.

        Raises:
            StartRefused: vLLM does not know what it was told.
            NotReady: the process ended, perhaps because its port was taken meanwhile, or takes longer.
        """
        deadline = time.monotonic() + timeout_s
        while not is_up():
            if (status := self._process.poll()) is not None:
                kind = StartRefused if status == _USAGE else NotReady
                raise kind(f"vLLM ended with status {status}: {self._last_words()}")
            if time.monotonic() > deadline:
                raise NotReady(
                    f"vLLM was not ready within policy.options.start_timeout_s ({timeout_s:g} s): " + self._last_words()
                )
            time.sleep(_PAUSE_S)

    def kill(self) -> None:
        """End the server and all that it started, also where they stand still."""
        if self._process.stdin is not None:
            self._process.stdin.close()  # a process that watches the pipe ends the server's group then
        self._process.wait(_KILL_LIMIT_S)
        self._claim.close()

    def _last_words(self) -> str:
        said = self._log.read_text(encoding="utf-8", errors="replace").strip()
        return f"see {self._log}, which ends: {said[-_LOG_TAIL_CHARS:]}"


def _arguments(settings: PolicySettings, options: VllmSettings, model: str) -> list[str]:
    # The model's own sampling defaults would change what a temperature means, and with it the log-probabilities.
    return [
        "--model",
        model,
        "--dtype",
        settings.dtype,
        "--max-model-len",
        str(settings.max_prompt_tokens + settings.max_new_tokens),
        "--max-num-seqs",
        str(options.max_batch),
        "--generation-config",
        "vllm",
        "--logprobs-mode",
        "processed_logprobs",
        "--enable-scale-out",
        "--worker-extension-cls",
        "waymark_worker.WorkerExtension",
        "--middleware",
        "waymark_guard.TokenGuard",
        "--disable-uvicorn-access-log",
        *options.args,
        *parallel.arguments(options.gpus),
    ]


def _for_adapters(rank: int) -> list[str]:
    if not rank:
        return []
    return ["--enable-lora", "--max-loras", "1", "--max-lora-rank", str(min(r for r in VLLM_RANKS if r >= rank))]


def _environment(options: VllmSettings, token: str, own: Mapping[str, str]) -> dict[str, str]:
    kept = {n: v for n, v in own.items() if n in _KEPT_VARIABLES or n.startswith(_KEPT_PREFIXES)}
    return {
        **kept,
        "PYTHONPATH": str(_INSIDE),
        "WAYMARK_VLLM_TOKEN": token,
        "VLLM_SERVER_DEV_MODE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": str(options.kv_cache_gib),
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": str(options.threads),
    }


def _free_port(host: str) -> int:
    with socket.socket() as taken:
        taken.bind((host, 0))
        port: int = taken.getsockname()[1]
        return port


def _claim(host: str, port: int) -> socket.socket:
    """Return what keeps other servers of ours from ``port`` until it is closed; raise ``OSError`` where one has it.

    vLLM shares its port with whoever asks for that (SO_REUSEPORT): two servers that were given the same one would both
    come up, and answer each other's requests. The UDP port of the same number is not shared.
    """
    claim = socket.socket(type=socket.SOCK_DGRAM)
    try:
        claim.bind((host, port))
    except OSError:
        claim.close()
        raise
    return claim
