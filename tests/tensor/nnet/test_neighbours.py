"""Patches of images as rows, against plain loops."""
from __future__ import annotations

import numpy as np
import pytest
from support import check_gradient, evaluate, variable_for

import symconv as sc
from symconv.errors import ArgumentError, AssertionFailedError, GraphTypeError, ShapeError
from symconv.tensor.nnet.neighbours import images2neibs, neibs2images

IMAGES = np.random.default_rng(6).normal(size=(2, 3, 6, 8))


def patches(images, shape, step, mode):
    """Row by row, with loops."""
    high, wide = shape
    pads = {"half": [size // 2 for size in shape], "full": [size - 1 for size in shape]}.get(mode, [0, 0])
    images = np.pad(images, ((0, 0), (0, 0), (pads[0], pads[0]), (pads[1], pads[1])))
    height, width = images.shape[2:]
    if mode == "wrap_centered":
        tops, lefts = (range(-(length // 2), size - length // 2, apart)
                       for size, length, apart in zip((height, width), shape, step, strict=True))
    else:
        tops, lefts = range(0, height - high + 1, step[0]), range(0, width - wide + 1, step[1])
    return np.array([[channel[(top + i) % height, (left + j) % width] for i in range(high) for j in range(wide)]
                     for image in images for channel in image for top in tops for left in lefts])


@pytest.mark.parametrize("known", [True, False], ids=["static", "symbolic"])
@pytest.mark.parametrize(("shape", "step", "mode"), [
    ((2, 4), None, "valid"), ((2, 2), (1, 3), "valid"), ((4, 3), None, "ignore_borders"), ((4, 3), (1, 2), "ignore_borders"),
    ((3, 3), (1, 1), "half"), ((2, 4), (2, 2), "half"), ((3, 2), (1, 1), "full"), ((3, 5), (2, 3), "wrap_centered"),
    ((1, 3), (4, 1), "wrap_centered")])
def test_patches(shape, step, mode, known):
    x = variable_for(IMAGES, known)
    found = sc.compile([x], images2neibs(x, shape, step, mode))(IMAGES)
    np.testing.assert_array_equal(found, patches(IMAGES, shape, step or shape, mode))


@pytest.mark.parametrize(("shape", "step", "mode"), [((2, 2), (1, 2), "valid"), ((3, 3), (2, 2), "wrap_centered"),
                                                     ((3, 3), (2, 2), "half")])
def test_gradients_in_every_mode(shape, step, mode):
    check_gradient(lambda x: images2neibs(x, shape, step, mode), IMAGES[:1, :1, :3, :5 if mode == "half" else 4])


def test_back_to_images():
    sizes = (2, 3, 6, 8)
    np.testing.assert_array_equal(neibs2images(patches(IMAGES, (3, 4), (3, 4), "valid"), (3, 4), sizes).eval(), IMAGES)
    some = neibs2images(patches(IMAGES, (4, 3), (4, 3), "ignore_borders"), (4, 3), sizes, "ignore_borders").eval()
    wanted = IMAGES.copy()
    wanted[:, :, 4:], wanted[:, :, :, 6:] = 0, 0
    np.testing.assert_array_equal(some, wanted)
    x = variable_for(IMAGES, False)
    back = neibs2images(images2neibs(x, (3, 2)) * 2, (3, 2), x.shape)
    np.testing.assert_array_equal(evaluate([back], {x: IMAGES})[0], 2 * IMAGES)
    check_gradient(lambda x: neibs2images(x, (1, 2), (1, 1, 2, 5), "ignore_borders"), IMAGES[0, 0, :4, :2])


def test_mistakes():
    x = variable_for(IMAGES, False)
    with pytest.raises(AssertionFailedError, match="every 4 pixels do not cover axis 2"):
        sc.compile([x], images2neibs(x, (4, 4)))(IMAGES)
    with pytest.raises(ShapeError, match="do not cover axis 3"):
        images2neibs(IMAGES, (2, 3))
    for build in (lambda: images2neibs(IMAGES, (2, 2), mode="wrap_centered"), lambda: images2neibs(IMAGES, (2, 2), mode="same"),
                  lambda: images2neibs(IMAGES, 2), lambda: images2neibs(IMAGES, (2, 0)),
                  lambda: neibs2images(IMAGES[0, 0], (2, 2), (1, 1, 2, 2), "half")):
        with pytest.raises(ArgumentError):
            build()
    with pytest.raises(GraphTypeError):
        images2neibs(IMAGES[0], (2, 2))
