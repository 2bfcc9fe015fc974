"""A real vLLM as a judge: held to the schema as an endpoint, and as outcome models' server beside their own process."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

import policy.vllm.inside as inside
from cluster.outcome_training import OutcomeTraining, train_outcome_model
from judges.llm.interface import LlmQuestion
from judges.llm.service import JudgeService
from judges.llm.settings import LlmSettings, ModelSettings
from judges.trained.judge import TrainedJudge
from judges.trained.kind import TRAINED, TrainedSettings
from policy.models import save_policy
from policy.presets import build_tiny, prepare_policy
from policy.settings import TinyShape
from policy.tokenizer import TextTokenizer
from policy.tokenizer_training import train_tokenizer
from records.checks import Status
from records.deadline import Deadline
from records.failures import EpisodeFailed
from tests.judges.test_trained_judge import PAGES, TASK, episodes, played
from tests.policy.vllm_python import VLLM_PYTHON, needs_vllm

pytestmark = [pytest.mark.slow, pytest.mark.lengthy, needs_vllm]

SHAPE = TinyShape(width=64, layers=2, heads=2, key_value_heads=2, mlp_width=64, context_tokens=1024)
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant: "
START_S = 400.0


class Same(BaseModel):
    model_config = ConfigDict(extra="forbid")

    same: bool


@contextmanager
def plain_vllm(model: Path, folder: Path, *more: str, **variables: str) -> Iterator[str]:
    """The address of a vLLM as anybody starts one, without what Waymark puts into its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [VLLM_PYTHON, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model), "--dtype", "float32"]
    words += ["--max-model-len", "1024", "--max-num-seqs", "4", "--enforce-eager", "--host", "127.0.0.1"]
    words += ["--port", str(port), *more]
    environment = {**os.environ, "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
    environment |= {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1", **variables}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, env=environment, start_new_session=True)
    try:
        ends = time.monotonic() + START_S
        while not _is_up(port):
            assert process.poll() is None, (folder / "log").read_text()[-4000:]
            assert time.monotonic() < ends, (folder / "log").read_text()[-4000:]
            time.sleep(0.5)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, 9)
        process.wait(30)


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """The address of a vLLM that serves an untrained model as ``judge``."""
    words = ['The task: "How many?" The answer: "2"', '{"same": true}', "You compare. yes no"] * 20
    tokenizer = train_tokenizer(words, 600, tmp_path / "tokenizer")
    model = save_policy(build_tiny(SHAPE, TextTokenizer.load(tokenizer), seed=0), tokenizer, tmp_path / "model")
    (tmp_path / "chat.jinja").write_text(TEMPLATE)
    more = ["--served-model-name", "judge", "--chat-template", str(tmp_path / "chat.jinja")]
    # An untrained model would fill its answer with the spaces that JSON allows.
    more += ["--structured-outputs-config", '{"backend": "xgrammar", "disable_any_whitespace": true}']
    with plain_vllm(model, tmp_path, *more) as address:
        yield f"{address}/v1"


def _is_up(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


async def test_vllm_answers_by_the_schema_and_counts_its_tokens(url: str, tmp_path: Path) -> None:
    service = JudgeService(
        LlmSettings({"m": ModelSettings("judge", base_url=url, usd_per_million_output=1.0)}), tmp_path
    )
    question = LlmQuestion("test/1", "You compare.", ('The task: "How many?"', 'The answer: "2"'), Same, max_tokens=48)
    answer = await service.ask("m", question, Deadline(200))
    assert isinstance(answer.value.same, bool)
    assert answer.input_tokens > 0
    assert answer.output_tokens > 0
    assert answer.cost_usd == pytest.approx(answer.output_tokens / 1e6)
    assert (await service.ask("m", question, Deadline(20))).cached
    (account,) = service.accounts()
    assert account.questions == 2
    await service.close()


GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "vllm.md").read_text(encoding="utf-8")


def as_the_guide_says() -> list[str]:
    """The arguments with which the guide starts servers that run already."""
    (told,) = re.findall(r"vllm serve MODEL \\\n(.*?)```", GUIDE, re.DOTALL)
    return str(told).replace("\\\n", " ").split()


async def test_an_outcome_model_is_served_as_the_guide_says_and_another_model_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = OutcomeTraining(updates=20, batch=8, learning_rate=1e-2, max_prompt_tokens=200, calibration_share=0.25)
    prepare_policy(SHAPE, tmp_path / "start", corpus=[*PAGES.values(), "Buy lamp", "yes no"], seed=0)
    train_outcome_model(episodes(), tmp_path / "start", tmp_path / "model", settings, lambda done, loss: None)
    again = replace(settings, seed=1)
    train_outcome_model(episodes(), tmp_path / "start", tmp_path / "another", again, lambda done, loss: None)
    monkeypatch.setenv("JUDGE_TOKEN", "a-token-of-this-test")
    variables = {"VLLM_SERVER_DEV_MODE": "1", "WAYMARK_VLLM_TOKEN": "a-token-of-this-test"}
    variables["PYTHONPATH"] = str(Path(inside.__file__).parent)
    with plain_vllm(tmp_path / "model", tmp_path, *as_the_guide_says(), **variables) as address:
        mine = TrainedSettings(str(tmp_path / "model"), address, "JUDGE_TOKEN")
        others = replace(mine, folder=str(tmp_path / "another"))
        statuses = []
        for asked in (mine, others, replace(mine, token_variable="NO_TOKEN")):
            checks = await asyncio.to_thread(TRAINED.preflight, asked, None, {})  # type: ignore[arg-type]
            statuses.append(checks[-1].status)
        assert statuses == [Status.OK, Status.FAIL, Status.FAIL]
        async with TrainedJudge(mine) as judge, TrainedJudge(TrainedSettings(mine.folder)) as own:
            said = [await one.label(played(0, solved=True), TASK, Deadline(200)) for one in (judge, own)]
        assert said[0].values == pytest.approx(said[1].values, abs=1e-4)
        async with TrainedJudge(others) as judge:
            with pytest.raises(EpisodeFailed, match="judge_other_model"):
                await judge.label(played(0, solved=True), TASK, Deadline(200))


async def test_an_outcome_model_says_the_same_on_a_server_of_somebody_elses(tmp_path: Path) -> None:
    settings = OutcomeTraining(updates=20, batch=8, learning_rate=1e-2, max_prompt_tokens=200, calibration_share=0.25)
    prepare_policy(SHAPE, tmp_path / "start", corpus=[*PAGES.values(), "Buy lamp", "yes no"], seed=0)
    train_outcome_model(episodes(), tmp_path / "start", tmp_path / "model", settings, lambda done, loss: None)
    asked = [played(0, solved=True), played(1, solved=False)]
    said: dict[str, list[float]] = {}
    with plain_vllm(tmp_path / "model", tmp_path, "--enable-scale-out") as address:
        for where in ("", address):
            async with TrainedJudge(TrainedSettings(folder=str(tmp_path / "model"), url=where)) as judge:
                labels = [await judge.label(episode, TASK, Deadline(200)) for episode in asked]
            said[where] = [float(label.values[0]) for label in labels]
    assert said[address] == pytest.approx(said[""], abs=1e-4)
    assert abs(said[""][0] - said[""][1]) > 0.01, "the model tells the pages apart"
