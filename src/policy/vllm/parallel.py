"""How one server of vLLM divides its model over the GPUs that it declares: by tensor parallelism, and in no other way.

Owns ``workers`` and what ``policy.options.args`` may say of it. Standard library only.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from records.bounds import SettingError, require

_TENSOR = ("--tensor-parallel-size", "-tp")
_OTHERS = (
    ("--pipeline-parallel-size", "-pp"),
    ("--data-parallel-size", "-dp"),
    ("--data-parallel-size-local", "-dpl"),
    ("--prefill-context-parallel-size", "-pcp"),
    ("--nnodes", "-n"),
)
"""What makes further workers, beside or instead of those of tensor parallelism."""


def workers(gpus: float) -> int:
    """Return how many processes hold a part of the model each: one for each whole GPU, one without any."""
    return max(1, int(gpus))


def arguments(gpus: float) -> list[str]:
    """Return what tells vLLM so; it stands last, where it holds whatever stands before it."""
    return [_TENSOR[0], str(workers(gpus))]


def check(gpus: float, args: Sequence[str]) -> None:
    """Refuse GPUs that a model cannot be divided over, and ``args`` that divide it otherwise.

    Raises:
        SettingError: says what to set instead.
    """
    require(gpus <= 1 or gpus % 1 == 0, "gpus", "at most 1, or the whole number of GPUs that share a server", gpus)
    said = _Said(args)
    tensor, count = said.of(_TENSOR[0]), workers(gpus)
    expected = f"without {_TENSOR[0]}, or with {count}: policy.options.gpus is {gpus:g} and is what vLLM is told"
    require(tensor in (None, count), "args", expected, tensor)
    for name, _ in _OTHERS:
        expected = f"without {name}: policy.options.gpus divides a server's model, policy.options.servers adds servers"
        require(said.of(name) in (None, 1), "args", expected, said.of(name))


class _Said(argparse.ArgumentParser):
    """What arguments of vLLM's say of its workers, read as its own parser reads them; the rest is passed over."""

    def __init__(self, args: Sequence[str]) -> None:
        super().__init__(add_help=False)
        for names in (_TENSOR, *_OTHERS):
            self.add_argument(*names, type=int)
        self._found = vars(self.parse_known_args([_with_dashes(argument) for argument in args])[0])

    def of(self, name: str) -> int | None:
        """Return the number that is said, None where none is."""
        found: int | None = self._found[name.removeprefix("--").replace("-", "_")]
        return found

    def error(self, message: str) -> NoReturn:
        """Raise ``SettingError``."""
        raise SettingError(f"args must be arguments of vLLM's server, found {message!r}")


def _with_dashes(argument: str) -> str:
    """Return an argument as vLLM reads it, which takes ``_`` in names for ``-``."""
    name, equals, value = argument.partition("=")
    return f"{name.replace('_', '-')}{equals}{value}" if argument.startswith("--") else argument
