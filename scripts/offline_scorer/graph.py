# ruff: noqa: T201
"""Write the graph of the offline scorer's layers for ONNX Runtime, without its weights.

    python -m scripts.offline_scorer.graph    # needs `pip install onnx`

Only when the layers change: their shapes are those of the weights that ship.
"""

from collections.abc import Mapping

import numpy as np
from onnx import NodeProto, StringStringEntryProto, TensorProto, ValueInfoProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info
from onnx.numpy_helper import from_array

from evenhand.scorers.offline.network import WEIGHTS, Floats, ScorerWeights, read_weights
from evenhand.scorers.offline.onnx_layers import GRAPH, graph_arrays

MICROSOFT = "com.microsoft"  # the operators that ONNX Runtime brings itself
EPSILON, NEVER = 1e-12, -1e4  # as `evenhand.scorers.offline.network` has them
NUMBERS = {
    "first": np.array([0]),
    "second": np.array([1]),
    "one": np.array(1, dtype=np.int32),
}


def nodes(layers: int, heads: int) -> list[NodeProto]:
    """From `pieces`, rows of numbers filled up with 0, to `means`."""
    steps = [
        make_node("Gather", ["words", "pieces"], ["word"]),
        make_node("Shape", ["pieces"], ["shape"]),
        make_node("Gather", ["shape", "second"], ["length"]),
        make_node("Slice", ["places", "first", "length"], ["place"]),
        make_node("Add", ["word", "place"], ["sum"]),
        make_node("LayerNormalization", ["sum", "norm.weight", "norm.bias"], ["x"], axis=-1,
                  epsilon=EPSILON),
        make_node("Cast", ["pieces"], ["narrow"], to=TensorProto.INT32),
        make_node("Min", ["narrow", "one"], ["there"]),
    ]  # fmt: skip
    x = "x"
    for i in range(layers):
        steps += _layer(f"layer{i}", x, heads)
        x = f"layer{i}.x"
    return [
        *steps,
        make_node("Cast", ["there"], ["share"], to=TensorProto.FLOAT),
        make_node("Unsqueeze", ["share", "second"], ["row"]),
        make_node("MatMul", ["row", x], ["total"]),
        make_node("Squeeze", ["total", "second"], ["totals"]),
        make_node("ReduceSum", ["share", "second"], ["count"], keepdims=1),
        make_node("Div", ["totals", "count"], ["means"]),
    ]


def _layer(name: str, x: str, heads: int) -> list[NodeProto]:
    def of(part: str) -> list[str]:
        return [f"{name}.{part}.weight", f"{name}.{part}.bias"]

    def added(what: str, to: str, norm: str, bias: str, out: str) -> NodeProto:
        operands = [f"{name}.{what}", to, *of(norm), f"{name}.{bias}.bias"]
        return make_node("SkipLayerNormalization", operands, [f"{name}.{out}"], domain=MICROSOFT,
                         epsilon=EPSILON)  # fmt: skip

    return [
        make_node("Attention", [x, *of("qkv"), "there"], [f"{name}.mixed"], domain=MICROSOFT,
                  num_heads=heads, mask_filter_value=NEVER),
        make_node("MatMul", [f"{name}.mixed", of("o")[0]], [f"{name}.out"]),
        added("out", x, "n1", "o", "flat"),
        make_node("MatMul", [f"{name}.flat", of("up")[0]], [f"{name}.up"]),
        make_node("FastGelu", [f"{name}.up", of("up")[1]], [f"{name}.wide"], domain=MICROSOFT),
        make_node("MatMul", [f"{name}.wide", of("down")[0]], [f"{name}.down"]),
        added("down", f"{name}.flat", "n2", "down", "x"),
    ]  # fmt: skip


def elsewhere(arrays: Mapping[str, Floats]) -> list[TensorProto]:
    """The names, kinds and shapes of the weights; whoever opens the graph hands them over."""
    at = StringStringEntryProto(key="location", value="weights")
    return [
        TensorProto(name=name, dims=array.shape, data_type=TensorProto.FLOAT,
                    data_location=TensorProto.EXTERNAL, external_data=[at])
        for name, array in arrays.items()
    ]  # fmt: skip


def graph(weights: ScorerWeights) -> bytes:
    """The file's bytes."""
    arrays = graph_arrays(weights)
    width = arrays["words"].shape[1]

    def value(name: str, kind: int, shape: list[str | int]) -> ValueInfoProto:
        return make_tensor_value_info(name, kind, shape)

    made = make_graph(
        nodes(int(weights.metadata["layers"]), int(weights.metadata["heads"])),
        "layers",
        [value("pieces", TensorProto.INT64, ["rows", "length"])],
        [value("means", TensorProto.FLOAT, ["rows", width])],
        [*(from_array(array, name) for name, array in NUMBERS.items()), *elsewhere(arrays)],
    )
    opsets = [make_opsetid("", 20), make_opsetid(MICROSOFT, 1)]
    return bytes(make_model(made, opset_imports=opsets, ir_version=10).SerializeToString())


if __name__ == "__main__":
    GRAPH.write_bytes(graph(read_weights(WEIGHTS)))
    print(f"{GRAPH}: {GRAPH.stat().st_size:,} bytes")
