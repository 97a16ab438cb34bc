"""ONNX Runtime's contenders: sessions of models whose weights are initializers (inference only)."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from symconv.ops.conv_problem import ConvProblem

from .contender import Array, Contender

NAMES = ("onnxruntime",)
_threads = 2


def prepare(threads: int) -> None:
    """Threads of the sessions made later."""
    global _threads
    _threads = threads


def read(result: Any) -> list[Array]:
    """The outputs of a session."""
    return [np.asarray(each) for each in result]


def session(model: bytes) -> Any:
    """A session on the CPU with all of its graph optimizations."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = _threads, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def contender(name: str, model: bytes, image: Array) -> Contender:
    """A model of one input."""
    made = session(model)
    feeds = {made.get_inputs()[0].name: image}
    return Contender(name, lambda: made.run(None, feeds), read)


def model_bytes(nodes: Sequence[Any], image_shape: Sequence[int], rank: int, weights: dict[str, Array]) -> bytes:
    """A model from "image" to "result", of which only the rank is told."""
    graph = helper.make_graph(
        list(nodes), "network", [helper.make_tensor_value_info("image", TensorProto.FLOAT, list(image_shape))],
        [helper.make_tensor_value_info("result", TensorProto.FLOAT, [f"size{axis}" for axis in range(rank)])],
        [numpy_helper.from_array(array, weight) for weight, array in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def layer(name: str, problem: ConvProblem, arrays: Sequence[Array]) -> Contender:
    """A single forward convolution."""
    spec = problem.spec
    node = helper.make_node("Conv", ["image", "filters"], ["result"], strides=list(spec.stride), dilations=list(spec.dilation),
                            pads=[*spec.pad_lo, *spec.pad_hi], group=spec.groups)
    return contender(name, model_bytes([node], problem.x_shape, len(problem.x_shape), {"filters": arrays[1]}), arrays[0])


def network_inference(name: str, network: str, batch: int) -> Contender:
    """Scores of a batch of images."""
    from networks.architectures import IMAGE, NETWORKS
    from networks.in_onnx import OnnxWords
    from networks.parameters import make_batch, make_parameters

    parameters = make_parameters(network)
    words = OnnxWords(parameters)
    words.rename(NETWORKS[network](words, words.image(IMAGE[network][0])))
    model = model_bytes(words.nodes, (batch, *IMAGE[network]), 2, {**parameters.trained, **parameters.statistics})
    return contender(name, model, make_batch(network, batch)[0])
