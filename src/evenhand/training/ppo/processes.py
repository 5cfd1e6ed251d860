"""The processes that train together, each on its share of every batch."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from accelerate import PartialState
from torch import Tensor, distributed, nn

from evenhand.training.weights import on_gpu


@dataclass(frozen=True, slots=True)
class Processes:
    rank: int
    count: int
    device: torch.device

    @property
    def first(self) -> bool:
        return self.rank == 0

    def share(self, batch: int) -> slice:
        """This process's rows of a batch of all."""
        size = batch // self.count
        return slice(self.rank * size, (self.rank + 1) * size)

    def summed(self, tensor: Tensor) -> Tensor:
        if self.count > 1:
            tensor = tensor.clone()
            distributed.all_reduce(tensor)
        return tensor

    def add_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """One message for all of them: a model has hundreds of small tensors."""
        if self.count == 1:
            return
        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = self.summed(torch.cat([gradient.flatten() for gradient in gradients]))
        start = 0
        for gradient in gradients:
            end = start + gradient.numel()
            gradient.copy_(flat[start:end].view_as(gradient))
            start = end

    def wait(self) -> None:
        if self.count > 1:
            distributed.barrier()


def joined() -> Processes:
    state = PartialState(cpu=not on_gpu())
    return Processes(state.process_index, state.num_processes, state.device)
