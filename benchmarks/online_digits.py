"""Ten handwritten digits in one pass over USPS, beside a sparse classifier that has all at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits

from benchmarks.report import Options, Result, Verdict, table
from benchmarks.timing import Contender, race
from mercer import OnlineGPClassifier, SparseGPClassifier
from mercer.datasets import load_table
from mercer.kernels import RBF

ONLINE, MEAN = "on-line, one pass, criterion kl", "on-line, one pass, criterion mean"
BATCH = "batch: FITC with EP, inducing inputs by k-means"
NEAR, MINUTES = 0.7, 2.0


def _rows(options: Options) -> tuple[Any, Any, Any, Any]:
    if options.quick:
        X, y = load_digits(return_X_y=True)
        return X[:60] / 8 - 1, y[:60].astype(int), X[60:100] / 8 - 1, y[60:100].astype(int)
    X, y, X_test, y_test = load_table("usps").split(0)
    return X, y.astype(int), X_test, y_test.astype(int)


def _small(model: Any) -> Any:
    """Return the like with few basis vectors, by whose fit all loops are compiled."""
    size = "max_basis" if isinstance(model, OnlineGPClassifier) else "n_inducing"
    return clone(model).set_params(**{size: 5})


def _log_loss(P: Any, y: Any) -> float:
    return float(-np.mean(np.log(P[np.arange(len(y)), y])))


def run(options: Options) -> Result:
    """Fit each once, and score it on the test images."""
    X, y, X_test, y_test = _rows(options)
    size = 12 if options.quick else 500
    kernel = RBF(np.sqrt(X.shape[1]))
    common: dict[str, Any] = {"optimizer": None, "random_state": 0}
    models = {
        ONLINE: OnlineGPClassifier(kernel, "probit", max_basis=size, **common),
        MEAN: OnlineGPClassifier(kernel, "probit", max_basis=size, criterion="mean", **common),
        BATCH: SparseGPClassifier(kernel, "probit", inference="ep", n_inducing=size, **common),
    }
    times = race(
        [
            Contender(
                name,
                lambda m=model: m.fit(X, y),  # type: ignore[misc]
                lambda m=model: _small(m).fit(X[:60], y[:60]),  # type: ignore[misc]
                most=1,
            )
            for name, model in models.items()
        ],
        1,
        warm_up=False,
    )
    errors, lines = {}, []
    for name, model in models.items():
        P = model.predict_proba(X_test)
        errors[name] = float(100 * np.mean(np.argmax(P, axis=1) != y_test))
        loss = _log_loss(P, y_test)
        each = f"{1e6 * times[name] / len(y):,.0f}"
        lines.append([name, f"{times[name]:.1f}", each, f"{errors[name]:.2f}", f"{loss:.4f}"])
    away = errors[ONLINE] - errors[BATCH]
    return Result(
        "On-line: ten digits",
        f"USPS, {len(y)} images of {X.shape[1]} pixels in the order of the file, {len(y_test)} to "
        f"test; probit, one latent function for each digit and {size} basis vectors that they "
        f"share; RBF({np.sqrt(X.shape[1]):g}), fixed. One run of each.",
        [table(["classifier", "s", "us an image", "test error, %", "log loss"], lines)],
        [
            Verdict(
                "one pass, criterion kl (the default)",
                f"{times[ONLINE]:.1f} s",
                f"below {60 * MINUTES:g} s",
                times[ONLINE] < 60 * MINUTES,
            ),
            Verdict(
                "its test error less that of the batch classifier",
                f"{away:+.2f} points",
                f"at most {NEAR}",
                away <= NEAR,
            ),
        ],
    )
