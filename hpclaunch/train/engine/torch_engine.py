"""The same models computed by PyTorch, on the CPU or on one GPU (CUDA, ROCm) per rank.

Architecture, names, first parameters and the layout of the flat buffers are those of the numpy engine's
`Network`, so that checkpoints and results of the two engines can be compared, and exchanged. On the CPU the
tensors are views of numpy's buffers: the gradients can lie in memory that ranks share. A GPU has its own
buffers; what is ready there is copied to the host's.

Images go through the layers as (batch, channels, height, width) with the channels of a pixel together in
memory (torch calls it channels_last): numpy's layers have them so, and on CPUs it is 1.5 times as fast.
"""

import contextlib
import ctypes
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from ..launch_environment import launcher_local_rank, threads_per_rank
from ..run_options import Options
from . import Engine, Images, Labels, Ready, Sums, step_draws
from .layers import Array, Conv2D, Dense, Dropout, Layer, MaxPool2, ReLU, Shape, dropout_factors
from .models import NUMPY_MODELS, PIXEL_DEVIATION, PIXEL_MEAN, Network
from .optimizers import OPTIMIZERS

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h

Forward = Callable[[torch.Tensor], torch.Tensor]
"""From images to logits."""


class TorchEngine(Engine):
    """A `Network` whose layers are torch's, with an optimiser."""

    name = "torch"

    def __init__(
        self,
        model: str,
        optimizer: str,
        seed: int,
        rank: int,
        device: str = "cpu",
        dtype: npt.DTypeLike = np.float32,
        host_memory: bool | None = None,
    ) -> None:
        """Build ``model`` of `NUMPY_MODELS` with ``optimizer`` of `OPTIMIZERS`; all parameters still zero.

        ``host_memory``: whether the device computes in the host's memory; None: only the CPU does.
        """
        self._seed, self._rank = seed, rank
        self._device = torch.device(device)
        self._in_host_memory = self._device.type == "cpu" if host_memory is None else host_memory
        self.network = Network(NUMPY_MODELS[model](), dtype)
        self.network.parameters = self._aligned(dtype)
        self.network.place_gradients(self._aligned(dtype))
        self._parameters = self._place(self.network.parameters)
        self._gradients = self._place(self.network.gradients)
        self._optimizer = OPTIMIZERS[optimizer](self._parameters.numel(), dtype, self.network.parts)
        if not self._in_host_memory:
            self._optimizer.move(self._place)
        self._summed_on_device = False
        self._draws = step_draws(seed, rank, 0)
        ordered, given = _cheaper_order(self.network.layers), iter(self._views(self._parameters))
        self.modules = nn.Sequential(*[_module(layer, given, self._factors) for layer in ordered])
        """The layers, whose parameters are views of one flat tensor."""
        self._place_views()
        self._ready: Ready | None = None
        self._final: set[int] = set()
        self._first_final = len(self.tensors)
        for index, parameter in enumerate(self.modules.parameters()):
            parameter.register_post_accumulate_grad_hook(lambda _, index=index: self._is_final(index))

    @property
    def device(self) -> str:
        """Such as ``cpu``, or ``cuda:0 (NVIDIA H200)``."""
        if self._device.type == "cpu":
            return "cpu"
        return f"{self._device} ({torch.cuda.get_device_name(self._device)})"

    @property
    def peak_device_bytes(self) -> int | None:
        """The most memory that torch has reserved on its GPU; None on the CPU."""
        if self._device.type == "cpu":
            return None
        return int(torch.cuda.max_memory_reserved(self._device))

    @property
    def versions(self) -> Mapping[str, str]:
        """The version of torch, with the suffix that names its build."""
        return {"torch": torch.__version__}

    def place_gradients(self, buffer: Array) -> None:
        """Let torch accumulate into ``buffer``, or copy there what a GPU has."""
        super().place_gradients(buffer)
        if self._in_host_memory:
            self._gradients = self._place(buffer)
            self._place_views()

    def initialise(self) -> None:
        """Draw the first parameters from the seed: the numpy engine's, bit for bit."""
        super().initialise()
        self._parameters.copy_(torch.from_numpy(self.network.parameters))

    def compute_gradients(
        self, images: Images, labels: Labels, step: int, ready: Ready | None = None
    ) -> Sums:
        """One forward and backward pass in training mode."""

        def hand_over(part: slice) -> None:
            if not self._in_host_memory:
                torch.from_numpy(self.gradients[part]).copy_(self._gradients[part])
            if ready is not None:
                ready(part)

        self.clear()
        sums = self.accumulate(images, labels, step, hand_over)
        self._summed_on_device = False
        return sums

    def clear(self) -> None:
        """Set the gradients, where the device has them, to zero."""
        self._gradients.zero_()

    def accumulate(
        self,
        images: Images,
        labels: Labels,
        step: int,
        ready: Ready | None = None,
        scale: float = 1.0,
        forward: Forward | None = None,
    ) -> Sums:
        """Add the gradients, times ``scale``, to those that the device has.

        ``forward``: `modules` with something around it. With no images every layer still computes, on a blank
        one that counts nothing: what waits in hooks for the gradients of all ranks would wait forever.
        """
        count = len(images)
        if count == 0:
            images, labels, scale = np.zeros((1, 28, 28), np.uint8), np.zeros(1, np.uint8), 0.0
        self._draws = step_draws(self._seed, self._rank, step)
        logits = (forward or self.modules)(self._as_input(images))
        targets = self._as_targets(labels)
        loss = functional.cross_entropy(logits, targets, reduction="sum")
        self._ready, self._first_final = ready, len(self.tensors)
        self._final.clear()
        if ready is not None:
            ready(slice(self._gradients.numel(), self._gradients.numel()))
        # In this thread, so that MPI is called from no other, and what a hook raises comes out here.
        with torch.autograd.set_multithreading_enabled(False):
            (loss if scale == 1 else loss * scale).backward()
        return _sums(loss, logits, targets) if count else Sums()

    def fetch(self) -> None:
        """The sums over all ranks were made on the device: let `gradients` have them, too."""
        if not self._in_host_memory:
            torch.from_numpy(self.gradients).copy_(self._gradients)
            self._summed_on_device = True

    def update(self, lr: float, images: int) -> None:
        """Divide the summed gradients by ``images`` and take a step."""
        if self._in_host_memory:
            # Numpy's rules on blocks that fit a cache: as fast as torch's operations, often faster.
            self.gradients[:] /= images
            self._optimizer.step(self.network.parameters, self.gradients, lr)
            return
        if not self._summed_on_device:
            self._gradients.copy_(torch.from_numpy(self.gradients))
        self._gradients /= images
        self._optimizer.step(self._parameters, self._gradients, lr)

    def evaluate(self, images: Images, labels: Labels) -> Sums:
        """Without the gradients of autograd, too."""
        self.modules.eval()
        with torch.no_grad():
            total = super().evaluate(images, labels)
        self.modules.train()
        return total

    def _evaluate(self, images: Images, labels: Labels) -> Sums:
        logits, targets = self.modules(self._as_input(images)), self._as_targets(labels)
        return _sums(functional.cross_entropy(logits, targets, reduction="sum"), logits, targets)

    def state(self) -> dict[str, Array]:
        """The live arrays; copies of what a GPU has."""
        return {name: tensor.cpu().numpy() for name, tensor in self._live().items()}

    def _live(self) -> dict[str, Any]:
        optimizer = {name: torch.as_tensor(array) for name, array in self._optimizer.state.items()}
        return {"parameters": self._parameters, **optimizer}

    def _copy(self, live: Any, array: Array) -> None:
        live.copy_(torch.tensor(array))

    def _aligned(self, dtype: npt.DTypeLike) -> Array:
        """A zeroed buffer for all parameters that begins at a line of the cache, in every run.

        A library may choose other instructions, and round otherwise, for an array that begins elsewhere.
        """
        kind = torch.from_numpy(np.empty(0, dtype)).dtype
        array: Array = torch.zeros(len(self.network.parameters), dtype=kind).numpy()
        return array

    def _place(self, array: Array) -> torch.Tensor:
        """The tensor that stands for ``array``: a view, or a copy where the device has its own memory."""
        view = torch.from_numpy(array)
        return view if self._in_host_memory else view.to(self._device, copy=True)

    def _views(self, flat: torch.Tensor) -> list[torch.Tensor]:
        """The parameters, or their gradients, in their shapes."""
        return [flat[tensor.part].view(tensor.shape) for tensor in self.tensors]

    def _place_views(self) -> None:
        for parameter, view in zip(self.modules.parameters(), self._views(self._gradients), strict=True):
            parameter.grad = view

    def _is_final(self, index: int) -> None:
        """Report what is final from the last tensor's gradient on, without gaps."""
        self._final.add(index)
        old = self._first_final
        while self._first_final - 1 in self._final:
            self._first_final -= 1
        if self._ready is not None and self._first_final < old:
            self._ready(slice(self.tensors[self._first_final].part.start, self.tensors[old - 1].part.stop))

    def _factors(self, rate: float, shape: Shape) -> torch.Tensor:
        """A dropout's factors: on the CPU the numpy engine's, bit for bit; elsewhere drawn on the device."""
        kind = self._parameters.dtype
        if self._in_host_memory:
            factors = torch.empty(shape, dtype=kind)
            dropout_factors(self._draws, rate, factors.numpy())
            return factors
        generator = torch.Generator(self._device)
        generator.manual_seed(int(self._draws.integers(1 << 62)))
        factors = torch.empty(shape, dtype=kind, device=self._device)
        return factors.bernoulli_(1 - rate, generator=generator).mul_(1 / (1 - rate))

    def _as_input(self, images: Images) -> torch.Tensor:
        """Pixels as (n, 1, 28, 28), shifted and scaled to mean 0 and deviation 1 over MNIST."""
        x = torch.tensor(images, device=self._device).to(self._parameters.dtype)
        x.mul_(1 / (255 * PIXEL_DEVIATION)).sub_(PIXEL_MEAN / PIXEL_DEVIATION)
        return x.unsqueeze(-1).permute(0, 3, 1, 2)

    def _as_targets(self, labels: Labels) -> torch.Tensor:
        return torch.tensor(labels, device=self._device, dtype=torch.int64)


def _sums(loss: torch.Tensor, logits: torch.Tensor, targets: torch.Tensor) -> Sums:
    return Sums(float(loss.detach()), int((logits.argmax(dim=1) == targets).sum()), len(targets))


def torch_engine(options: Options, rank: int) -> TorchEngine:
    """The engine of a rank for ``options``, on the rank's GPU where torch sees one."""
    torch.set_num_threads(threads_per_rank() or 1)
    # The C library shall reuse what a step frees in the next one: otherwise it returns large arrays, and page
    # faults take a seventh of a step of the convolutional network.
    with contextlib.suppress(OSError, AttributeError):  # not the GNU C library
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, 1 << 30)
        library.mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1)
    if options.deterministic:
        # What CUDA's matrix products need for it, and torch checks; before the first of them.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.utils.deterministic.fill_uninitialized_memory = False  # nothing here reads such
        torch.use_deterministic_algorithms(True)
    device = "cpu"
    if torch.cuda.is_available():
        # The launcher may have bound the rank to its GPU; then there is one, the first.
        device = f"cuda:{(launcher_local_rank() or 0) % torch.cuda.device_count()}"
        torch.cuda.set_device(device)
    return TorchEngine(options.model, options.optimizer, options.seed, rank, device)


DrawFactors = Callable[[float, Shape], torch.Tensor]
"""Factors of a dropout of that rate, in the shape that numpy's layer would ask for."""


class TorchDense(nn.Module):
    """`Dense`; its weight is (inputs, outputs), and pixels are flattened with their channels last."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``x @ weight + bias``."""
        return torch.addmm(self.bias, _pixels_together(x).flatten(1), self.weight)


class TorchConv2D(nn.Module):
    """`Conv2D`; its weight is (size, size, channels, filters)."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The cross-correlation of ``x`` with the weight, plus the bias."""
        weight = self.weight.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
        return functional.conv2d(x, weight, self.bias)


class TorchDropout(nn.Module):
    """`Dropout` with factors that the engine draws."""

    def __init__(self, rate: float, draw: DrawFactors) -> None:
        super().__init__()
        self._rate, self._draw = rate, draw

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Drop in training mode; else pass ``x`` on unchanged."""
        if not self.training:
            return x
        factors = self._draw(self._rate, tuple(_pixels_together(x).shape))
        return x * (factors.permute(0, 3, 1, 2) if factors.dim() == 4 else factors)


def _pixels_together(x: torch.Tensor) -> torch.Tensor:
    """Images as (batch, height, width, channels); anything else unchanged."""
    return x.permute(0, 2, 3, 1) if x.dim() == 4 else x


def _module(layer: Layer, parameters: Iterator[torch.Tensor], draw: DrawFactors) -> nn.Module:
    own: list[Any] = [next(parameters) for _ in layer.parameter_shapes]
    if isinstance(layer, Dropout):
        return TorchDropout(layer.rate, draw)
    simple: dict[type, Callable[..., nn.Module]] = {
        Dense: TorchDense,
        Conv2D: TorchConv2D,
        ReLU: lambda: nn.ReLU(inplace=True),
        MaxPool2: lambda: nn.MaxPool2d(2),
    }
    return simple[type(layer)](*own)


def _cheaper_order(layers: Sequence[Layer]) -> list[Layer]:
    """With the ReLU after the pooling that follows it: the same numbers from a quarter of the values."""
    ordered = list(layers)
    for index in range(len(ordered) - 1):
        if isinstance(ordered[index], ReLU) and isinstance(ordered[index + 1], MaxPool2):
            ordered[index : index + 2] = ordered[index + 1], ordered[index]
    return ordered
