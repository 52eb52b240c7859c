"""scikit-learn's regressor and Mercer's drop-in for it: the same code, with one import changed."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor as Original
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from benchmarks.fit import D, friedman
from benchmarks.report import Options, Result, Verdict, table
from benchmarks.timing import Contender, milliseconds, race
from mercer.compat import GaussianProcessRegressor

CLASSES = {"scikit-learn": Original, "Mercer": GaussianProcessRegressor}
FIT, EVALUATION, MEAN, STD, SAMPLE = (
    "fit",
    "evidence and gradient",
    "predict",
    "predict with std",
    "sample_y, 10 draws",
)
# What is to be reached, in times faster.
WANTED = {FIT: 5.0, EVALUATION: 5.0, MEAN: 1.0, STD: 1.0, SAMPLE: 1.0}


def run(options: Options) -> Result:
    """Race the two classes over what their users call, and compare what they find."""
    n, points, draws, rounds = (60, 100, 40, 1) if options.quick else (1000, 10_000, 1000, 3)
    X, y = friedman(n)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X_new = np.random.default_rng(2).normal(size=(points, D))
    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(np.full(D, 2.0), (1e-2, 1e3))
    kernel = kernel + WhiteKernel(0.1, (1e-6, 1e1))
    fitted: dict[str, Any] = {}

    def fit(name: str) -> None:
        fitted[name] = CLASSES[name](kernel, alpha=0.0, normalize_y=True).fit(X, y)

    # a fit of scikit-learn's is long: it is run once
    most = {"scikit-learn": 1, "Mercer": 4}
    times = {FIT: race([_contender(name, fit, most[name]) for name in CLASSES], rounds)}
    # what follows is timed at the same hyperparameters
    theta = fitted["scikit-learn"].kernel_.theta
    held = {
        name: cls(kernel.clone_with_theta(theta), alpha=0.0, normalize_y=True, optimizer=None)
        for name, cls in CLASSES.items()
    }
    for model in held.values():
        model.fit(X, y)
    calls = {
        EVALUATION: lambda name: held[name].log_marginal_likelihood(theta, eval_gradient=True),
        MEAN: lambda name: held[name].predict(X_new),
        STD: lambda name: held[name].predict(X_new, return_std=True),
        SAMPLE: lambda name: held[name].sample_y(X_new[:draws], 10),
    }
    for what, call in calls.items():
        times[what] = race([_contender(name, call, 4) for name in CLASSES], rounds)

    rows, verdicts = [], []
    for what, seconds in times.items():
        theirs, ours = seconds["scikit-learn"], seconds["Mercer"]
        faster = theirs / ours
        rows.append([what, milliseconds(theirs), milliseconds(ours), f"{faster:.2f}"])
        wanted = f"at least {WANTED[what]:g} times"
        verdicts.append(Verdict(what, f"{faster:.1f} times", wanted, faster >= WANTED[what]))
    evidence = {name: float(m.log_marginal_likelihood_value_) for name, m in fitted.items()}
    above = evidence["Mercer"] - evidence["scikit-learn"]
    verdicts.append(Verdict("evidence reached", f"{above:+.2g}", "no lower", above >= -1e-3))
    a, b = (m.predict(X_new, return_std=True) for m in held.values())
    apart = max(float(np.max(np.abs(p - q))) for p, q in zip(a, b, strict=True)) / float(y.std())
    verdicts.append(Verdict("predictions apart", f"{apart:.1g}", "at most 1e-6", apart <= 1e-6))
    return Result(
        "Drop-in for scikit-learn's regressor",
        f"`GaussianProcessRegressor` of both, the same code: Friedman's function, n = {n}, {D} "
        f"columns, constant * RBF with {D} length scales + white noise, the default optimizer. "
        f"Predictions at {points} points, samples at {draws}, all at the same hyperparameters.",
        [table(["call", "scikit-learn, ms", "Mercer, ms", "faster"], rows)],
        verdicts,
    )


def _contender(name: str, call: Any, most: int) -> Contender:
    return Contender(name, lambda: call(name), most=most)
