"""GPflow's SGPR in a Python of its own, since it brings TensorFlow: prints value and seconds.

Run as ``python gpflow_child.py problem.npz rounds`` by a Python that has GPflow and nothing of
Mercer; the file has X, y, Z, length_scales and noise.
"""

from __future__ import annotations

import json
import sys
import time

import gpflow
import numpy as np
import tensorflow as tf


def main(path: str, rounds: int) -> None:
    """Time the bound with its gradient in all parameters, inducing inputs included."""
    given = np.load(path)
    kernel = gpflow.kernels.SquaredExponential(1.0, given["length_scales"])
    model = gpflow.models.SGPR(
        (given["X"], given["y"][:, None]),
        kernel,
        inducing_variable=given["Z"],
        noise_variance=float(given["noise"]),
    )

    @tf.function
    def evaluate() -> tuple[tf.Tensor, list[tf.Tensor]]:
        with tf.GradientTape() as tape:
            value = model.maximum_log_likelihood_objective()
        return value, tape.gradient(value, model.trainable_variables)

    value = float(evaluate()[0].numpy())  # which compiles, too
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        found = evaluate()
        np.asarray(found[1][0])
        seconds.append(time.perf_counter() - start)
    print(json.dumps([value, min(seconds)]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
