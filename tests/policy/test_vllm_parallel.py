"""A server of vLLM uses the GPUs that it declares: it is told so, and nothing that contradicts it is started."""

from __future__ import annotations

import pytest

from cluster.errors import RecipeError
from cluster.recipe.recipe import build_recipe
from policy.settings import PolicySettings
from policy.vllm.backend import VllmSettings
from policy.vllm.process import _arguments
from records.bounds import SettingError


def told(options: VllmSettings) -> list[str]:
    """The last two words of the command line; vLLM takes the last of what is said twice."""
    return _arguments(PolicySettings(), options, "model")[-2:]


@pytest.mark.parametrize(("gpus", "workers"), [(0, 1), (0.5, 1), (1, 1), (2, 2), (8.0, 8)])
def test_vllm_is_told_to_divide_the_model_over_the_gpus_of_its_server(gpus: float, workers: int) -> None:
    assert told(VllmSettings(gpus=gpus)) == ["--tensor-parallel-size", str(workers)]


@pytest.mark.parametrize("args", [(), ("-tp", "2"), ("--tensor_parallel_size=2",), ("-pp", "1", "--seed", "3", "-O3")])
def test_arguments_that_say_the_same_or_something_else_are_taken(args: tuple[str, ...]) -> None:
    options = VllmSettings(gpus=2, args=args)
    assert told(options) == ["--tensor-parallel-size", "2"]
    assert set(args) <= set(_arguments(PolicySettings(), options, "model"))


@pytest.mark.parametrize(
    ("gpus", "args", "why"),
    [
        (1.5, (), "gpus must be at most 1, or the whole number of GPUs that share a server, found 1.5"),
        (2, ("--tensor-parallel-size", "4"), "policy.options.gpus is 2 and is what vLLM is told, found 4"),
        (2, ("--tensor_parallel_size=1",), "or with 2: .*found 1"),
        (2, ("--tensor-parallel", "1"), "or with 2: .*found 1"),  # vLLM's parser takes the beginning of a name, too
        (0, ("-tp", "2"), "or with 1: policy.options.gpus is 0"),
        (2, ("-pp", "2"), "args must be without --pipeline-parallel-size: .*found 2"),
        (1, ("--data-parallel-size=2",), "--data-parallel-size: .*policy.options.servers adds servers, found 2"),
        (1, ("-dpl=2",), "--data-parallel-size-local"),
        (1, ("-pcp", "2"), "--prefill-context-parallel-size"),
        (1, ("--nnodes", "2"), "--nnodes"),
        (2, ("--tensor-parallel-size", "two"), "arguments of vLLM's server, found .*invalid int value: 'two'"),
        (2, ("--tensor-parallel-size",), "expected one argument"),
    ],
)
def test_what_would_leave_gpus_idle_or_workers_unheard_is_refused(gpus: float, args: tuple[str, ...], why: str) -> None:
    with pytest.raises(SettingError, match=why):
        VllmSettings(gpus=gpus, args=args)


def test_a_recipe_that_contradicts_itself_is_refused_when_it_is_read() -> None:
    words = ["policy.backend=vllm", "policy.options.gpus=2", "policy.options.args=[--pipeline-parallel-size, '2']"]
    with pytest.raises(RecipeError, match=r"policy\.options\.args must be without --pipeline-parallel-size"):
        build_recipe({}, words)
