"""A pretended GPU: tensors that say cuda:0, and cannot be mixed with those of the CPU.

    with pretended_gpu():
        model.to(GPU)

Where tests run there is no GPU, and on a CPU a tensor that was left there is never missed. Here a
tensor of the GPU holds one of the CPU. A mode of torch sees every operation, also those of
autograd: it refuses what a GPU refuses, and computes the rest with what the tensors hold. Torch
itself takes them for tensors of the device "meta", which every build of it has.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing

GPU = torch.device("cuda:0")
MEMORY = SimpleNamespace(total_memory=2**37)
COPIES = torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default
INDEXES = torch.ops.aten.index.Tensor, torch.ops.aten.index_put_.default


class OnGpu(Tensor):
    """A tensor of the pretended GPU."""

    held: Tensor
    device = property(lambda _: GPU)
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, held: Tensor) -> "OnGpu":
        made: OnGpu = Tensor._make_wrapper_subclass(
            cls, held.shape, held.stride(), held.storage_offset(), dtype=held.dtype, device="meta"
        )
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, operation: Any, *_: Any) -> None:
        raise RuntimeError(f"{operation} on a tensor that outlives the pretended GPU")

    @property
    def data(self) -> Tensor:
        return Tensor.data.__get__(self)

    @data.setter
    def data(self, values: Tensor) -> None:
        Tensor.data.__set__(self, values)
        self.held = values.held

    # Of lists, torch would make tensors on the device meta.
    def __getitem__(self, at: Any) -> Tensor:
        return super().__getitem__(index_of(at))

    def __setitem__(self, at: Any, value: Any) -> None:
        super().__setitem__(index_of(at), value)

    def new_tensor(self, data: Any) -> Tensor:
        return torch.tensor(data, dtype=self.dtype, device=GPU)

    def tolist(self) -> Any:
        return self.cpu().tolist()


def index_of(at: Any) -> Any:
    if isinstance(at, tuple):
        return tuple(map(index_of, at))
    return torch.tensor(at, dtype=torch.long) if isinstance(at, list) else at


class Gpu(TorchDispatchMode):
    """Computes on both devices."""

    def __torch_dispatch__(self, operation: Any, _: Any, args: Any = (), named: Any = None) -> Any:
        named = named or {}
        tensors: list[Tensor] = []

        def held(tensor: Tensor) -> Tensor:
            assert isinstance(tensor, OnGpu) or not tensor.is_meta, "torch has lost the numbers"
            tensors.append(tensor)
            return tensor.held if isinstance(tensor, OnGpu) else tensor

        here = {key: mapped(held, value) for key, value in named.items()}
        args_here = mapped(held, args)
        on_gpu = any(isinstance(each, OnGpu) for each in tensors)
        if on_gpu and operation not in COPIES:
            refuse_mixed(operation, (args[0], *args[2:]) if operation in INDEXES else tensors)
        if here.get("device") is not None:
            on_gpu = here["device"].type != "cpu"
            here["device"] = torch.device("cpu")
        out = operation(*args_here, **here)
        if not on_gpu or any(out is each for each in tensors):
            return out
        return return_and_correct_aliasing(operation, args, named, mapped(OnGpu, out))


def mapped(change: Callable[[Tensor], Tensor], value: Any) -> Any:
    """The value with its tensors changed."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(mapped(change, each) for each in value)
    return value


def refuse_mixed(operation: Any, of: Any) -> None:
    """A GPU takes from the CPU single numbers and indices, and nothing else."""
    for each in of:
        if isinstance(each, Tensor) and each.dim() and not isinstance(each, OnGpu):
            raise RuntimeError(f"{operation} of a GPU got {list(each.shape)} of the CPU")


@contextmanager
def pretended_gpu() -> Iterator[None]:
    """Within, torch has one GPU."""
    known = {"_lazy_init": lambda: None, "get_device_properties": lambda _: MEMORY}
    with patch.multiple(torch.cuda, **known), Gpu():
        torch._C._set_only_lift_cpu_tensors(True)  # else torch.tensor(…, device=GPU) asks a driver
        try:
            yield
        finally:
            torch._C._set_only_lift_cpu_tensors(False)
