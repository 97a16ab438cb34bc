"""5,000 handwritten digits that come with the package (see `symconv/data/mnist_5k.md` for origin and licence)."""
from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
_TEST_OF_EACH_CLASS = 100


@dataclass(frozen=True)
class Digits:
    """Images float32 (n, 1, 28, 28) between 0 and 1, labels int64 (n,): 4,000 to learn from and 1,000 held out."""

    train_images: Array
    train_labels: Array
    test_images: Array
    test_labels: Array


def load_digits() -> Digits:
    """The digits; the last 100 of each class are held out."""
    with (resources.files("symconv") / "data" / "mnist_5k.npz").open("rb") as file, np.load(file, allow_pickle=False) as data:
        images = data["images"].astype(np.float32)[:, None] / 255
        labels = data["labels"].astype(np.int64)
    held_out = np.zeros(len(labels), bool)
    for digit in range(10):
        held_out[np.flatnonzero(labels == digit)[-_TEST_OF_EACH_CLASS:]] = True
    return Digits(images[~held_out], labels[~held_out], images[held_out], labels[held_out])


def shifted(images: Array, generator: np.random.Generator, distance: int = 2) -> Array:
    """Every image moved by up to `distance` pixels in each direction, zeros coming in: more data to learn from."""
    padded = np.pad(images, ((0, 0), (0, 0), (distance, distance), (distance, distance)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, images.shape[2:], axis=(2, 3))
    down, right = generator.integers(0, 2 * distance + 1, (2, len(images)))
    return np.ascontiguousarray(windows[np.arange(len(images)), :, down, right])
