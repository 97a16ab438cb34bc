"""LeNet, ResNet-18, ResNet-50 and MobileNetV2 in words (`conv`, `batch_norm`, …) that a library's module gives a meaning to.

`words` is an instance of `ShapeWords` (which makes the parameters), `SymconvWords`, `TorchWords` or `JaxWords`; every tensor
is whatever that library computes with.  Names of layers are the keys of the parameters.
"""
from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

RESNET18_STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))  # width, stride of the first of two blocks
MOBILENET_STAGES = (  # expansion, width, blocks, stride of the first
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
RESNET50_STAGES = ((64, 1, 3), (128, 2, 4), (256, 2, 6), (512, 2, 3))  # width, stride of the first block, blocks
TINY_STAGES = ((8, 1, 1), (16, 2, 1))
N_CLASSES = {"lenet": 10, "resnet18": 1000, "resnet50": 1000, "resnet50_tiny": 10, "mobilenet_v2": 1000}
IMAGE = {"lenet": (1, 28, 28), "resnet18": (3, 224, 224), "resnet50": (3, 224, 224), "resnet50_tiny": (3, 32, 32),
         "mobilenet_v2": (3, 224, 224)}


def lenet(words: Any, x: Any) -> Any:
    """The convolutional network of the Deep Learning Tutorials: 20 and 50 filters of 5×5, 500 hidden units, tanh."""
    for name, filters in (("conv1", 20), ("conv2", 50)):
        x = words.conv(x, name, filters, 5, bias=True)
        x = words.tanh(words.max_pool(x, 2, 2))
    x = words.tanh(words.dense(words.flatten(x), "hidden", 500))
    return words.dense(x, "scores", N_CLASSES["lenet"])


def resnet18(words: Any, x: Any) -> Any:
    """He et al. 2016, "Deep residual learning for image recognition", arXiv:1512.03385, with 18 layers."""
    x = words.relu(words.batch_norm(words.conv(x, "conv1", 64, 7, 2, 3), "bn1"))
    x = words.max_pool(x, 3, 2, 1)
    for stage, (width, stride) in enumerate(RESNET18_STAGES, 1):
        for block, step in enumerate((stride, 1)):
            x = _basic_block(words, x, f"layer{stage}.{block}", width, step)
    return words.dense(words.mean_of_pixels(x), "fc", N_CLASSES["resnet18"])


def _basic_block(words: Any, x: Any, name: str, width: int, stride: int) -> Any:
    h = words.relu(words.batch_norm(words.conv(x, f"{name}.conv1", width, 3, stride, 1), f"{name}.bn1"))
    h = words.batch_norm(words.conv(h, f"{name}.conv2", width, 3, 1, 1), f"{name}.bn2")
    if stride != 1:
        x = words.batch_norm(words.conv(x, f"{name}.shortcut", width, 1, stride), f"{name}.shortcut_bn")
    return words.relu(h + x)


def resnet50(words: Any, x: Any, stages: Sequence[tuple[int, int, int]] = RESNET50_STAGES, network: str = "resnet50") -> Any:
    """The same with 50 layers; strides stand at the 3×3 convolutions, as in torchvision ("version 1.5")."""
    x = words.relu(words.batch_norm(words.conv(x, "conv1", stages[0][0], 7, 2, 3), "bn1"))
    x = words.max_pool(x, 3, 2, 1)
    for stage, (width, stride, blocks) in enumerate(stages, 1):
        for block in range(blocks):
            x = _bottleneck(words, x, f"layer{stage}.{block}", width, stride if block == 0 else 1, block == 0)
    return words.dense(words.mean_of_pixels(x), "fc", N_CLASSES[network])


def _bottleneck(words: Any, x: Any, name: str, width: int, stride: int, has_shortcut: bool) -> Any:
    h = words.relu(words.batch_norm(words.conv(x, f"{name}.conv1", width, 1), f"{name}.bn1"))
    h = words.relu(words.batch_norm(words.conv(h, f"{name}.conv2", width, 3, stride, 1), f"{name}.bn2"))
    h = words.batch_norm(words.conv(h, f"{name}.conv3", 4 * width, 1), f"{name}.bn3")
    if has_shortcut:
        x = words.batch_norm(words.conv(x, f"{name}.shortcut", 4 * width, 1, stride), f"{name}.shortcut_bn")
    return words.relu(h + x)


def mobilenet_v2(words: Any, x: Any) -> Any:
    """Sandler et al. 2018, "MobileNetV2: inverted residuals and linear bottlenecks", arXiv:1801.04381; no dropout."""
    x = words.relu6(words.batch_norm(words.conv(x, "stem", 32, 3, 2, 1), "stem_bn"))
    number = 0
    for expansion, width, blocks, stride in MOBILENET_STAGES:
        for block in range(blocks):
            x = _inverted_residual(words, x, f"block{number}", expansion, width, stride if block == 0 else 1)
            number += 1
    x = words.relu6(words.batch_norm(words.conv(x, "head", 1280, 1), "head_bn"))
    return words.dense(words.mean_of_pixels(x), "scores", N_CLASSES["mobilenet_v2"])


def _inverted_residual(words: Any, x: Any, name: str, expansion: int, width: int, stride: int) -> Any:
    channels = words.channels(x)
    h, inner = x, channels * expansion
    if expansion != 1:
        h = words.relu6(words.batch_norm(words.conv(h, f"{name}.expand", inner, 1), f"{name}.expand_bn"))
    h = words.relu6(words.batch_norm(words.conv(h, f"{name}.depthwise", inner, 3, stride, 1, groups=inner), f"{name}.depthwise_bn"))
    h = words.batch_norm(words.conv(h, f"{name}.project", width, 1), f"{name}.project_bn")
    return h + x if stride == 1 and channels == width else h


NETWORKS = {"lenet": lenet, "resnet18": resnet18, "resnet50": resnet50, "mobilenet_v2": mobilenet_v2,
            "resnet50_tiny": partial(resnet50, stages=TINY_STAGES, network="resnet50_tiny")}
