"""Ten classes of digits with a fixed kernel, beside scikit-learn's one-vs-rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.report import Options, Result, Verdict, table
from benchmarks.timing import Contender, race
from mercer import GPClassifier
from mercer.kernels import RBF

SOFTMAX, REST, SKLEARN = "Mercer, softmax", "Mercer, one-vs-rest", "scikit-learn, one-vs-rest"
LENGTH = 3.0
AMPLITUDE = 10.0


def run(options: Options) -> Result:
    """Fit all to the first rows and score them on the others."""
    from sklearn.datasets import load_digits
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF as SklearnRBF
    from sklearn.gaussian_process.kernels import ConstantKernel

    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    n = 120 if options.quick else 1000
    if options.quick:
        X, y = X[: n + 50], y[: n + 50]
    kernel = AMPLITUDE * RBF(LENGTH)
    models: dict[str, Any] = {
        SOFTMAX: GPClassifier(kernel, multi_class="softmax", optimizer=None),
        REST: GPClassifier(kernel, multi_class="one_vs_rest", optimizer=None),
        SKLEARN: GaussianProcessClassifier(
            ConstantKernel(AMPLITUDE) * SklearnRBF(LENGTH), optimizer=None
        ),
    }
    times = race(
        [
            Contender(name, lambda m=model: m.fit(X[:n], y[:n]), most=2 if name == SKLEARN else 5)  # type: ignore[misc]
            for name, model in models.items()
        ],
        1 if options.quick else 4,
    )
    accuracy, loss = {}, {}
    for name, model in models.items():
        P = model.predict_proba(X[n:])
        accuracy[name] = float(np.mean(model.classes_[np.argmax(P, axis=1)] == y[n:]))
        loss[name] = float(-np.mean(np.log(P[np.arange(len(P)), y[n:]])))
    rows = [
        [
            name,
            f"{times[name]:.2f}",
            f"{times[SKLEARN] / times[name]:.1f}",
            f"{accuracy[name]:.3f}",
            f"{loss[name]:.3f}",
        ]
        for name in models
    ]
    verdicts = []
    for name, wanted in ((SOFTMAX, 6), (REST, 12)):
        faster = times[SKLEARN] / times[name]
        verdicts.append(
            Verdict(f"{name}, speed", f"{faster:.1f} times", f"at least {wanted}", faster >= wanted)
        )
        verdicts.append(
            Verdict(
                f"{name}, accuracy",
                f"{accuracy[name]:.3f}",
                f"no worse than {accuracy[SKLEARN]:.3f}",
                accuracy[name] >= accuracy[SKLEARN],
            )
        )
    verdicts.append(
        Verdict(
            f"{SOFTMAX}, log loss",
            f"{loss[SOFTMAX]:.3f}",
            f"far below {loss[SKLEARN]:.3f}",
            loss[SOFTMAX] < 0.75 * loss[SKLEARN],
        )
    )
    return Result(
        "Ten classes",
        f"scikit-learn's digits, pixels from 0 to 1, the first {n} rows to fit and the other "
        f"{len(X) - n} to test; {AMPLITUDE:g} * RBF({LENGTH:g}), not optimised.",
        [table(["contender", "s", "faster", "accuracy", "log loss"], rows)],
        verdicts,
    )
