"""The layers of a small network in numpy: forward, backward, and the parameters' places in one buffer.

Images are (batch, height, width, channels), so that one pixel's channels lie together and a convolution
is one large matrix product per block of images. What a layer returns is its own memory and valid until its
next forward; it may overwrite the gradient that it is given, but not its input unless documented.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating[Any]]
Shape = tuple[int, ...]

# Blocks of patches this large stay in the last-level cache that cores share; measured flat from 1 to 4 MiB.
_BLOCK_BYTES = 1 << 21


class Scratch:
    """Memory that is reused from step to step: new large arrays would cost a page fault per 4 KiB."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._dtype = np.dtype(dtype)
        self._arrays: dict[str, Array] = {}

    def array(self, name: str, shape: Shape) -> Array:
        """An uninitialised array of ``shape``; the next call with this name gives the same memory."""
        items = math.prod(shape)
        array = self._arrays.get(name)
        if array is None or array.size < items:
            array = self._arrays[name] = np.empty(items, self._dtype)
        return array[:items].reshape(shape)


class Layer(ABC):
    """One step of a network; without parameters unless it says so. ``forward`` before ``backward``."""

    parameter_shapes: tuple[Shape, ...] = ()
    """In the order in which `bind` gets the parameters."""

    def bind(self, parameters: Sequence[Array], gradients: Sequence[Array], scratch: Scratch) -> None:
        """Take this layer's views of the two flat buffers, and scratch memory."""
        self._scratch = scratch

    def initialise(self, generator: np.random.Generator) -> None:  # noqa: B027  (most have nothing to draw)
        """Draw the first values of the parameters."""

    @abstractmethod
    def forward(self, x: Array, generator: np.random.Generator | None) -> Array:
        """The output for a batch; ``generator`` draws what is random in training, None: evaluation."""

    @abstractmethod
    def backward(self, gradient: Array, *, need_input: bool = True) -> Array | None:
        """Write the parameters' gradients (summed over the batch); return the input's if needed."""


class _Affine(Layer):
    """A kernel, seen as the matrix (inputs, outputs), and a bias: what Dense and Conv2D share."""

    def __init__(self, kernel_shape: Shape, fan_in: int, fan_out: int) -> None:
        self._outputs = kernel_shape[-1]
        self.parameter_shapes = (kernel_shape, (self._outputs,))
        self._limit = math.sqrt(6 / (fan_in + fan_out))

    def bind(self, parameters: Sequence[Array], gradients: Sequence[Array], scratch: Scratch) -> None:
        """Take kernel and bias, and the places of their gradients."""
        kernel, self._bias = parameters
        kernel_gradient, self._bias_gradient = gradients
        self._kernel = kernel.reshape(-1, self._outputs)
        self._kernel_gradient = kernel_gradient.reshape(-1, self._outputs)
        self._scratch = scratch

    def initialise(self, generator: np.random.Generator) -> None:
        """Glorot and Bengio (2010): uniform in +-sqrt(6 / (fan in + fan out)); biases zero (Keras' rule)."""
        self._kernel[:] = generator.uniform(-self._limit, self._limit, self._kernel.shape)
        self._bias[:] = 0


class Dense(_Affine):
    """A fully connected layer; an input of more dimensions is flattened: (batch, ...) to (batch, outputs)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__((inputs, outputs), fan_in=inputs, fan_out=outputs)

    def forward(self, x: Array, generator: np.random.Generator | None) -> Array:
        """``x @ kernel + bias``."""
        self._input_shape = x.shape
        self._x = x.reshape(len(x), -1)
        y = self._scratch.array("y", (len(x), self._outputs))
        np.matmul(self._x, self._kernel, out=y)
        y += self._bias
        return y

    def backward(self, gradient: Array, *, need_input: bool = True) -> Array | None:
        """Gradients of kernel, bias and input by two matrix products and a sum."""
        np.matmul(self._x.T, gradient, out=self._kernel_gradient)
        np.sum(gradient, axis=0, out=self._bias_gradient)
        if not need_input:
            return None
        dx = self._scratch.array("dx", self._x.shape)
        np.matmul(gradient, self._kernel.T, out=dx)
        return dx.reshape(self._input_shape)


class Conv2D(_Affine):
    """A convolution without padding and with stride 1: (b, h, w, c) to (b, h-k+1, w-k+1, filters).

    Blocks of images are laid out as matrices of patches (im2col) and multiplied with the kernel as
    (k*k*c, filters). Patches are made again for the backward pass, which is cheaper than to store them.
    """

    def __init__(self, channels: int, filters: int, size: int = 3) -> None:
        kernel_shape = (size, size, channels, filters)
        super().__init__(kernel_shape, fan_in=size * size * channels, fan_out=size * size * filters)
        self._size = size

    def forward(self, x: Array, generator: np.random.Generator | None) -> Array:
        """The cross-correlation of ``x`` with the kernel, plus the bias."""
        self._x = x
        batch, height, width, _ = x.shape
        rows, columns = height - self._size + 1, width - self._size + 1
        y = self._scratch.array("y", (batch, rows, columns, self._outputs))
        for block in self._blocks(y):
            patches = self._patches(block)
            out = y[block].reshape(-1, self._outputs)
            np.matmul(patches, self._kernel, out=out)
            out += self._bias
        return y

    def backward(self, gradient: Array, *, need_input: bool = True) -> Array | None:
        """Gradients of kernel, bias and input, a block of images at a time."""
        self._kernel_gradient[:] = 0
        self._bias_gradient[:] = 0
        product = self._scratch.array("product", self._kernel.shape)
        dx = self._scratch.array("dx", self._x.shape) if need_input else None
        for block in self._blocks(gradient):
            dy = gradient[block].reshape(-1, self._outputs)
            self._kernel_gradient += np.matmul(self._patches(block).T, dy, out=product)
            self._bias_gradient += np.ones(len(dy), dy.dtype) @ dy
            if dx is not None:
                self._spread(dy, dx[block])
        return dx

    def _blocks(self, y: Array) -> list[slice]:
        """Slices of the batch whose patches fit the cache."""
        patch_bytes = math.prod(y.shape[1:3]) * self._kernel.shape[0] * y.itemsize
        images = max(1, _BLOCK_BYTES // patch_bytes)
        return [slice(start, start + images) for start in range(0, len(y), images)]

    def _patches(self, block: slice) -> Array:
        """The patches of a block of images as rows of a matrix (pixels of the output, k*k*c)."""
        x = self._x[block]
        batch, height, width, channels = x.shape
        b, h, w, c = x.strides
        shape = (batch, height - self._size + 1, width - self._size + 1, self._size, self._size * channels)
        # Every window, no copy; one row of it is contiguous: its pixels and their channels are neighbours.
        windows = np.lib.stride_tricks.as_strided(x, shape, (b, h, w, h, c), writeable=False)
        images, rows, columns = windows.shape[:3]
        patches = self._scratch.array("patches", windows.shape)
        np.copyto(patches, windows)
        return patches.reshape(images * rows * columns, -1)

    def _spread(self, dy: Array, dx: Array) -> None:
        """Write into ``dx`` what each patch's gradient adds to each pixel (col2im)."""
        images, height, width, channels = dx.shape
        rows, columns = height - self._size + 1, width - self._size + 1
        shape = (images, rows, columns, self._size, self._size, channels)
        patches = self._scratch.array("patches", shape)
        np.matmul(dy, self._kernel.T, out=patches.reshape(len(dy), -1))
        dx[:] = 0
        for i in range(self._size):
            for j in range(self._size):
                dx[:, i : i + rows, j : j + columns] += patches[:, :, :, i, j]


class ReLU(Layer):
    """max(x, 0), written over its input: the layers before it do not need their output."""

    def forward(self, x: Array, generator: np.random.Generator | None) -> Array:
        """Clip ``x`` at zero in place."""
        self._y = np.maximum(x, 0, out=x)
        return self._y

    def backward(self, gradient: Array, *, need_input: bool = True) -> Array | None:
        """Pass the gradient where the output is above zero."""
        return np.multiply(gradient, self._y > 0, out=gradient)


class MaxPool2(Layer):
    """The maximum of each 2 x 2 square; a last odd row or column is left out, as Keras does."""

    def forward(self, x: Array, generator: np.random.Generator | None) -> Array:
        """(b, h, w, c) to (b, h // 2, w // 2, c)."""
        self._x = x
        batch, height, width, channels = x.shape
        y = self._scratch.array("y", (batch, height // 2, width // 2, channels))
        first, second, third, fourth = _corners(x)
        np.maximum(first, second, out=y)
        np.maximum(y, third, out=y)
        np.maximum(y, fourth, out=y)
        self._y = y
        return y

    def backward(self, gradient: Array, *, need_input: bool = True) -> Array | None:
        """Pass the gradient to the first place of each square that holds its maximum."""
        dx = self._scratch.array("dx", self._x.shape)
        if self._x.shape[1] % 2 or self._x.shape[2] % 2:
            dx[:] = 0
        free = np.ones(self._y.shape, np.bool_)
        for x_corner, dx_corner in zip(_corners(self._x), _corners(dx), strict=True):
            chosen = x_corner == self._y
            chosen &= free
            free ^= chosen
            np.multiply(gradient, chosen, out=dx_corner)
        return dx


def _corners(x: Array) -> tuple[Array, Array, Array, Array]:
    """Views of the four pixels of each 2 x 2 square."""
    even = x[:, : x.shape[1] // 2 * 2, : x.shape[2] // 2 * 2]
    return even[:, ::2, ::2], even[:, ::2, 1::2], even[:, 1::2, ::2], even[:, 1::2, 1::2]


class Dropout(Layer):
    """In training, zero a share ``rate`` of the values and scale the rest by 1 / (1 - rate)."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def forward(self, x: Array, generator: np.random.Generator | None) -> Array:
        """Drop at random with ``generator``; None: pass ``x`` on unchanged."""
        if generator is None:
            return x
        self._factors = self._scratch.array("factors", x.shape)
        dropout_factors(generator, self.rate, self._factors)
        return np.multiply(x, self._factors, out=self._scratch.array("y", x.shape))

    def backward(self, gradient: Array, *, need_input: bool = True) -> Array | None:
        """The gradient with the same factors."""
        return np.multiply(gradient, self._factors, out=gradient)


def dropout_factors(generator: np.random.Generator, rate: float, out: Array) -> None:
    """Fill ``out`` with 0 for a share ``rate`` of the values (to 2^-16), with 1 / (1 - rate) elsewhere."""
    # Raw bits: a third of the time of drawing floating-point numbers.
    drawn = np.frombuffer(generator.bytes(2 * out.size), np.dtype("<u2")).reshape(out.shape)
    np.multiply(drawn >= round(rate * 65536), out.dtype.type(1 / (1 - rate)), out=out)


def softmax_cross_entropy(logits: Array, labels: npt.NDArray[np.uint8]) -> tuple[float, int, Array]:
    """Loss of a batch, how many it gets right, and the gradient of the loss with respect to ``logits``.

    ``logits`` (batch, classes), ``labels`` (batch,). Loss and gradient are sums over the batch, not means,
    so that they add up over ranks with shares of any size.
    """
    rows = np.arange(len(logits))
    shifted = logits - logits.max(axis=1, keepdims=True)
    exponentials = np.exp(shifted)
    sums = exponentials.sum(axis=1, keepdims=True)
    loss = float(np.sum(np.log(sums[:, 0]) - shifted[rows, labels], dtype=np.float64))
    correct = int(np.count_nonzero(logits.argmax(axis=1) == labels))
    gradient: Array = exponentials / sums
    gradient[rows, labels] -= 1
    return loss, correct, gradient
