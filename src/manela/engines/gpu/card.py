"""Card: one NVIDIA GPU, with its memory and kernel launches."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from subprocess import CalledProcessError
from typing import Any

import numpy as np

from manela.errors import DeviceError, ParameterError, import_extra
from manela.settings.parameters import MOST_GPU_DIMENSIONS


class Card:
    """A GPU that Triton supports, or in tests Triton's interpreter."""

    def __init__(self) -> None:
        self.torch, self.device, self.name = open_device()
        self._compiled: dict[Any, Any] = {}

    @property
    def is_real(self) -> bool:
        """Whether this is a GPU rather than the interpreter."""
        return bool(self.device.type == "cuda")

    def send(self, array: Any) -> Any:
        """Copy an array to the card as a tensor; None stays None."""
        if array is None:
            return None
        if array.dtype == np.uint32:
            array = array.view(np.int32)
        with warnings.catch_warnings():
            # torch warns that the arrays of a network are read-only, but nothing writes to them
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            return self.torch.from_numpy(array).to(self.device)

    def empty(self, *shape: int, kind: str = "float32") -> Any:
        """Allocate a tensor on the card; `kind` is a dtype of torch."""
        return self.torch.empty(shape, dtype=getattr(self.torch, kind), device=self.device)

    def zeros(self, *shape: int, kind: str = "float32") -> Any:
        """Allocate a tensor of zeros on the card."""
        return self.torch.zeros(shape, dtype=getattr(self.torch, kind), device=self.device)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make this card the current device of the calling thread; report its lack of memory as DeviceError."""
        if not self.is_real:
            yield
            return
        try:
            with self.torch.cuda.device(self.device):
                yield
        except self.torch.OutOfMemoryError as error:
            raise DeviceError(f"the memory of {self.name} is full: fewer dimensions, or engine 'cpu'") from error

    def launch(
        self, kernel: Any, programs: int, *arguments: Any, warps: int = 4, stream: Any = None, **constants: Any
    ) -> None:
        """Run a kernel; a compiled one is reused without Triton's check of all arguments."""
        if programs == 0:
            return
        fixed = [constants[name] for name in kernel.arg_names[len(arguments) :]]
        key = (kernel, warps, *fixed, *(getattr(argument, "dtype", None) for argument in arguments))
        compiled = self._compiled.get(key)
        if compiled is not None:
            compiled[programs, 1, 1](*arguments, *fixed, stream=None if stream is None else stream.cuda_stream)
            return
        with self.torch.cuda.stream(stream) if stream is not None else nullcontext():
            compiled = kernel[programs,](*arguments, **constants, num_warps=warps)
        if self.is_real:
            self._compiled[key] = compiled

    def wait(self) -> None:
        """Wait until all kernels are done."""
        if self.is_real:
            self.torch.cuda.synchronize(self.device)

    @property
    def free_bytes(self) -> int:
        """Free memory in bytes, including torch's cache."""
        torch = self.torch
        cached = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return int(torch.cuda.mem_get_info(self.device)[0] + cached)

    def check(self, dimensions: int, need: int) -> None:
        """Raise an error for too many dimensions, or if the run does not fit into memory."""
        if dimensions > MOST_GPU_DIMENSIONS:
            raise ParameterError(f"dimensions must be at most {MOST_GPU_DIMENSIONS} on a GPU, got {dimensions}")
        if self.is_real:
            check_room(need, self.free_bytes, self.name)


def check_room(need: int, free: int, name: str) -> None:
    """Raise DeviceError if a run does not fit into the memory of a card."""
    if need > free:
        raise DeviceError(
            f"the run needs {need / 1e9:.1f} GB of GPU memory, and {name} has {free / 1e9:.1f} GB free: "
            "fewer dimensions, more rounds, or engine 'cpu'"
        )


def open_device() -> tuple[Any, Any, str]:
    """Return torch, the GPU and its name; raise DeviceError if there is none."""
    torch = import_extra("torch", "gpu", "engine 'gpu'")
    triton = import_extra("triton", "gpu", "engine 'gpu'")
    if torch.cuda.is_available():
        device = torch.device("cuda", torch.cuda.current_device())
        name = f"gpu, {torch.cuda.get_device_name(device)}"
        try:
            triton.runtime.driver.active.get_current_target()  # builds the launcher for all kernels
        except (RuntimeError, OSError, CalledProcessError) as error:
            why = f"{error.cmd[0]} failed" if isinstance(error, CalledProcessError) else str(error).partition("\n")[0]
            raise DeviceError(f"Triton cannot build for {name}; it needs a C compiler, such as gcc: {why}") from error
        return torch, device, name
    if triton.knobs.runtime.interpret:
        return torch, torch.device("cpu"), "gpu, interpreted"
    if torch.version.cuda is None:
        raise DeviceError(
            "engine 'gpu' needs a torch for NVIDIA GPUs, and the one installed is for CPUs only: "
            "reinstall torch, or use engine 'cpu'"
        )
    raise DeviceError("engine 'gpu' needs an NVIDIA GPU, and torch finds none: see `nvidia-smi`, or use engine 'cpu'")
