"""Rows of whole networks: inference and training steps."""
from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from networks import in_symconv
from networks.parameters import make_batch, make_parameters

from . import symconv_side
from .contender import SYMCONV, Contender, Row
from .peers import Peers

LEARNING_RATE = 0.01
MOMENTUM = {"lenet": 0.0, "resnet18": 0.9, "resnet50": 0.9, "resnet50_tiny": 0.9, "mobilenet_v2": 0.9}
CHECKED_STEPS = 2  # the second loss depends on the gradients of all layers; later ones drift apart by rounding alone


def network_rows(network: str, inference: tuple[int, ...], training: tuple[int, ...], peers: Peers) -> list[Row]:
    """A row for each batch size."""
    rows = []
    for work, batches in (("inference", inference), ("step", training)):
        for batch in batches:
            builders: dict[str, Any] = {SYMCONV: partial(symconv_network, network, work, batch)}
            for name, peer in peers.of(f"network_{work}"):
                builders[name] = partial(getattr(peer, f"network_{work}"), name, network, batch)
            checked = 1 if work == "inference" else CHECKED_STEPS
            tolerance = 1e-4 if work == "inference" else 2e-3
            rows.append(Row(network, f"{network} {work}, batch {batch}", builders, tolerance=tolerance, checked_calls=checked))
    return rows


def symconv_network(network: str, work: str, batch: int) -> Contender:
    """symconv's contender of a row."""
    images, labels = make_batch(network, batch)
    parameters = make_parameters(network)
    if work == "inference":
        function = in_symconv.inference(network, parameters, batch)
        arguments: tuple[Any, ...] = (images,)
    else:
        function = in_symconv.training_step(network, parameters, batch, LEARNING_RATE, MOMENTUM[network])
        arguments = (images, labels.astype(np.int64))
    return Contender(SYMCONV, lambda: function(*arguments), symconv_side.read)
