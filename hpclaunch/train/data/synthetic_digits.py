"""Digits that the package draws itself, for training where there is no network: not MNIST, but like it.

Each image is a digit of a few hand-laid strokes, stretched, slanted, turned, bent, shifted, drawn with a
pen of some width and brightness, with noise over it. The same bytes come out on every machine: all
arithmetic is on integers, and the randomness is raw PCG64 output, whose stream NumPy guarantees (NEP 19).

Lengths are in sixteenths of a pixel ("units"), factors in 256ths, positions relative to the image's centre.
"""

from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .idx_format import Bytes

Integers = npt.NDArray[np.int64]
Stroke = tuple[tuple[int, int], ...]

TRAIN_IMAGES = 12_000
TEST_IMAGES = 2_000
SEED = 20_090_209  # of the data alone: every run trains on the same images, with any --seed

SIDE = 28
UNITS = 16  # per pixel
CELL = 4  # units: the distance table has four cells a pixel in each direction
CELLS = SIDE * UNITS // CELL
_CHUNK = 512  # images drawn at a time: the temporaries stay in the cache


def _glyphs() -> tuple[tuple[tuple[Stroke, ...], ...], ...]:
    """The strokes of each way to write each digit: x,y in pixels of 28 x 28, from ``digit_strokes.txt``."""
    ways: list[list[tuple[Stroke, ...]]] = [[] for _ in range(10)]
    for line in Path(__file__).with_name("digit_strokes.txt").read_text().splitlines():
        digit, _, strokes = line.partition(": ")
        pairs = [[point.split(",") for point in points.split()] for points in strokes.split(" | ")]
        ways[int(digit)].append(tuple(tuple((int(x), int(y)) for x, y in stroke) for stroke in pairs))
    return tuple(map(tuple, ways))


GLYPHS = _glyphs()


def synthetic_digits(train: int, test: int, seed: int) -> tuple[Bytes, Bytes, Bytes, Bytes]:
    """Train images (train, 28, 28), train labels (train,), test images and test labels, all uint8.

    The test images are drawn from another stream. The same numbers give the same bytes on every machine.
    """
    return *_draw(train, np.random.SeedSequence([seed, 0])), *_draw(test, np.random.SeedSequence([seed, 1]))


def _draw(count: int, seed: np.random.SeedSequence) -> tuple[Bytes, Bytes]:
    """Images (count, 28, 28) and their labels (count,)."""
    random = np.random.PCG64(seed)
    tables = _distance_tables()
    ways = np.array([len(ways) for ways in GLYPHS])
    first_way = np.cumsum(ways) - ways
    images = np.empty((count, SIDE, SIDE), np.uint8)
    labels = np.empty(count, np.uint8)
    for start in range(0, count, _CHUNK):
        stop = min(start + _CHUNK, count)
        digits = _uniform(random, stop - start, 0, 9)
        glyphs = first_way[digits] + _uniform(random, stop - start, 0, 5) % ways[digits]
        labels[start:stop] = digits
        images[start:stop] = _images(random, tables, glyphs)
    return images, labels


def _images(random: np.random.PCG64, tables: Bytes, glyphs: Integers) -> Bytes:
    """One image (28, 28) for each glyph: look up, for each pixel, the distance to the nearest stroke."""
    count = len(glyphs)

    def between(low: int, high: int) -> npt.NDArray[np.int32]:
        return _uniform(random, count, low, high).astype(np.int32)[:, None, None]

    centres = (np.arange(SIDE, dtype=np.int32) * UNITS + UNITS // 2) - SIDE * UNITS // 2
    x, y = centres[None, None, :], centres[None, :, None]
    # From a pixel back to the place in the glyph: stretch, slant and turn, bend, shift. Right shifts of
    # negative integers round down in NumPy, everywhere alike.
    glyph_x = between(215, 360) * x + (between(-100, 100) * y + ((between(-64, 64) * y * y) >> 8))
    glyph_y = between(215, 340) * y + (between(-50, 50) * x + ((between(-50, 50) * x * x) >> 8))
    cell_x = _cells(glyph_x, between(-44, 44))
    cell_y = _cells(glyph_y, between(-44, 44))
    index = (glyphs.astype(np.int32)[:, None, None] * CELLS + cell_y) * CELLS + cell_x
    distance = tables.ravel().take(index).astype(np.int32)
    # Full ink up to half the pen's width, then an edge of one pixel.
    ink = np.clip((between(8, 26) + UNITS // 2 - distance) * UNITS, 0, 255)
    # Noise in -128..127; little-endian words on every machine, so that the bytes come in one order.
    words = random.random_raw(count * SIDE * SIDE // 8).astype("<u8")
    noise = words.view(np.uint8).reshape(count, SIDE, SIDE).astype(np.int32) - 128
    noise = noise * between(0, 96) >> 8
    image: Bytes = np.clip((ink * between(140, 256) >> 8) + noise, 0, 255).astype(np.uint8)
    return image


def _cells(places: npt.NDArray[np.int32], shift: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """The table's cell for each place (in 256ths of a unit), after a shift in units."""
    cells: npt.NDArray[np.int32] = ((places >> 8) + (shift + SIDE * UNITS // 2)) // CELL
    return cells.clip(0, CELLS - 1)


def _uniform(random: np.random.PCG64, count: int, low: int, high: int) -> Integers:
    """``count`` integers from ``low`` to ``high``, both included; the bias of the remainder is 1e-17."""
    words: npt.NDArray[np.uint64] = random.random_raw(count)
    offsets: Integers = (words % np.uint64(high - low + 1)).astype(np.int64)
    return offsets + low


def _distance_tables() -> Bytes:
    """For each way to write a digit, in order: the distance of each cell's centre to the strokes, in units.

    uint8 (ways, CELLS, CELLS), rows first; distances over 255 are cut to 255.
    """
    centres = np.arange(CELLS, dtype=np.int64) * CELL + CELL // 2
    squares = np.arange(256, dtype=np.int64) ** 2
    tables = []
    for strokes in (way for ways in GLYPHS for way in ways):
        segments = [segment for stroke in strokes for segment in pairwise(stroke)]
        nearest = np.minimum.reduce([_squared_distance(centres, *segment) for segment in segments])
        root = np.searchsorted(squares, nearest, side="right") - 1  # the integer square root, up to 255
        tables.append(root.astype(np.uint8))
    return np.stack(tables)


def _squared_distance(centres: Integers, start: tuple[int, int], end: tuple[int, int]) -> Integers:
    """The squared distance, in units, of each cell's centre to the segment from ``start`` to ``end``."""
    x0, y0 = start[0] * UNITS, start[1] * UNITS
    along_x, along_y = end[0] * UNITS - x0, end[1] * UNITS - y0
    length = along_x**2 + along_y**2
    x, y = centres[None, :] - x0, centres[:, None] - y0
    dot = x * along_x + y * along_y
    foot = dot.clip(0, length)
    squared: Integers = x * x + y * y + foot * (foot - 2 * dot) // length
    return squared
