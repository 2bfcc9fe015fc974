"""The learner's ranks: one process, or several that train one model together.

Owns what ranks send each other. Invariants: every rank makes the same calls in the same order; what is sent is a text
or an array, never an object; a wait for others ends by the group's own limit; an expected error of one rank is raised
on all of them. Alone, nothing is sent and nothing is waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor
from torch.nn import Parameter

from learner.arrays import Array
from learner.errors import RankError

T = TypeVar("T")
Item = TypeVar("Item")


def join_group(meeting: Path, rank: int, size: int, device: str, limit_s: float) -> None:
    """Form a process group with the other ranks, which meet in the file ``meeting``; it must be new.

    No wait for another rank lasts longer than ``limit_s``.
    """
    backend = "nccl" if device.startswith("cuda") else "gloo"
    method, limit = f"file://{meeting}", timedelta(seconds=limit_s)
    dist.init_process_group(backend, init_method=method, rank=rank, world_size=size, timeout=limit)


class Ranks:
    """Rank ``rank`` of ``size``, whose part of a model is on ``device``; ``mesh`` is what a model is spread over.

    One rank alone has no mesh.
    """

    def __init__(
        self, rank: int = 0, size: int = 1, device: torch.device | str = "cpu", mesh: DeviceMesh | None = None
    ) -> None:
        self.rank, self.size, self.device, self.mesh = rank, size, torch.device(device), mesh

    @classmethod
    def of_group(cls, device: str) -> Ranks:
        """Return this process's place among those that it forms a process group with; alone, where there is none."""
        if not dist.is_initialized():
            return cls(device=device)
        rank, size = dist.get_rank(), dist.get_world_size()
        return cls(rank, size, device, init_device_mesh(torch.device(device).type, (size,)))

    @property
    def first(self) -> bool:
        """Whether this is rank 0, which writes what is written once."""
        return self.rank == 0

    def shard(self, items: Sequence[Item]) -> Iterator[tuple[Item, bool]]:
        """Yield this rank's items, as many on every rank, and whether each counts: one that fills up does not."""
        for start in range(0, len(items), self.size):
            mine = start + self.rank < len(items)
            yield items[start + self.rank if mine else start], mine

    def in_turn(self, work: Callable[[], T]) -> T:
        """Return what ``work`` gives here; one rank does it after the other, as what each needs is there once."""
        for rank in range(self.size):
            if rank == self.rank:
                result = work()
            self.all_gather_text("")
        return result

    def all_reduce_sum(self, values: Array) -> Array:
        """Return the sum of every rank's ``values``, of the same shape and type."""
        return self._reduced(values, dist.ReduceOp.SUM)

    def all_reduce_max(self, values: Array) -> Array:
        """Return the largest of every rank's ``values`` at each place."""
        return self._reduced(values, dist.ReduceOp.MAX)

    def broadcast_first(self, value: float) -> float:
        """Return rank 0's ``value``, such as a time on its clock."""
        return float(self.all_reduce_sum(np.asarray([value if self.first else 0.0]))[0])

    def all_gather_text(self, text: str) -> list[str]:
        """Return every rank's text, by rank."""
        if self.size == 1:
            return [text]
        content = torch.tensor(list(text.encode()), dtype=torch.uint8, device=self.device)
        lengths = [torch.zeros(1, dtype=torch.int64, device=self.device) for _ in range(self.size)]
        dist.all_gather(lengths, torch.tensor([len(content)], dtype=torch.int64, device=self.device))
        longest = int(max(lengths))
        padded = torch.zeros(longest, dtype=torch.uint8, device=self.device)
        padded[: len(content)] = content
        gathered = [torch.zeros_like(padded) for _ in range(self.size)]
        dist.all_gather(gathered, padded)
        return [bytes(one[: int(length)].tolist()).decode() for one, length in zip(gathered, lengths, strict=True)]

    def together(self, work: Callable[[], T], expected: tuple[type[Exception], ...]) -> T:
        """Return what ``work`` gives here, once every rank has done its own.

        Raises:
            Exception: what ``work`` raised here, where it is ``expected``.
            RankError: it succeeded here and not elsewhere.
        """
        failed: Exception | None = None
        try:
            result = work()
        except expected as error:
            failed = error
        said = self.all_gather_text("" if failed is None else f"{type(failed).__name__}: {failed}")
        if failed is not None:
            raise failed
        for rank, what in enumerate(said):
            if what:
                raise RankError(f"rank {rank}: {what}")
        return result

    @torch.no_grad()
    def share_gradients(self, parameters: Iterable[Parameter]) -> None:
        """Give each parameter that every rank has whole the mean of the ranks' gradients; spread ones have it already.

        Every rank calls this after passes of the same kind, so that the same parameters have gradients.
        """
        if self.size == 1:
            return
        mine = [p.grad for p in parameters if p.grad is not None and not isinstance(p, DTensor)]
        if not mine:
            return
        together = torch.cat([grad.reshape(-1) for grad in mine])
        dist.all_reduce(together)
        for grad, mean in zip(mine, together.div_(self.size).split([grad.numel() for grad in mine]), strict=True):
            grad.copy_(mean.view_as(grad))

    def full_tensor(self, tensor: Tensor) -> Tensor:
        """Return the whole of a tensor that is spread over the ranks; every rank calls this."""
        return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor

    def _reduced(self, values: Array, how: dist.ReduceOp.RedOpType) -> Array:
        if self.size == 1:
            return values
        tensor = torch.from_numpy(values.copy()).to(self.device)
        dist.all_reduce(tensor, how)
        return tensor.cpu().numpy()


ALONE = Ranks()
