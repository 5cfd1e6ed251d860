"""The layers of the network in ONNX Runtime: the numbers of numpy in half of the time.

The graph ships without weights (`scripts/offline_scorer/graph.py` writes it); they come from the
same file as those of numpy.
"""

from pathlib import Path

import numpy as np
import onnxruntime

from evenhand.scorers.offline.network import Floats, ScorerWeights, Whole

GRAPH = Path(__file__).with_name("layers.onnx")


class OnnxLayers:
    """Runs on the thread that calls it and lets go of the interpreter while it does."""

    def __init__(self, weights: ScorerWeights) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_mem_pattern = False  # lengths differ from call to call
        self._arrays = graph_arrays(weights)  # the session reads them where they are
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(a) for a in self._arrays.values()]
        options.add_external_initializers(list(self._arrays), values)
        graph = GRAPH.read_bytes()
        self._session = onnxruntime.InferenceSession(
            graph, options, providers=["CPUExecutionProvider"]
        )

    def __call__(self, pieces: Whole) -> Floats:
        [means] = self._session.run(None, {"pieces": pieces})
        return np.asarray(means, dtype=np.float32)


def graph_arrays(weights: ScorerWeights) -> dict[str, Floats]:
    """Give the weights by their names in the graph, in which a matrix stands on the right."""
    layers = range(int(weights.metadata["layers"]))
    dense = [f"layer{i}.{name}" for i in layers for name in ("qkv", "o", "up", "down")]
    norms = ["norm", *(f"layer{i}.{name}" for i in layers for name in ("n1", "n2"))]
    arrays = {name: weights.floats(name) for name in ("words", "places")}
    for name in (*dense, *norms):
        arrays[f"{name}.bias"] = weights.floats(f"{name}.bias")
        arrays[f"{name}.weight"] = weights.floats(f"{name}.weight")
    for name in dense:
        arrays[f"{name}.weight"] = np.ascontiguousarray(arrays[f"{name}.weight"].T)
    return arrays
