"""scikit-learn's classes and Mercer's drop-ins for them: the same code, with one import changed."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier as OriginalClassifier
from sklearn.gaussian_process import GaussianProcessRegressor as Original
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from benchmarks.classification import rows as labelled
from benchmarks.fit import D, friedman
from benchmarks.report import Options, Result, Verdict, table
from benchmarks.timing import Contender, milliseconds, race
from mercer.compat import GaussianProcessClassifier, GaussianProcessRegressor

CLASSES = {"scikit-learn": Original, "Mercer": GaussianProcessRegressor}
CLASSIFIERS = {"scikit-learn": OriginalClassifier, "Mercer": GaussianProcessClassifier}
FIT, EVALUATION, MEAN, STD, SAMPLE = (
    "fit",
    "evidence and gradient",
    "predict",
    "predict with std",
    "sample_y, 10 draws",
)
# What is to be reached, in times faster.
WANTED = {FIT: 5.0, EVALUATION: 5.0, MEAN: 1.0, STD: 1.0, SAMPLE: 1.0}
PROBA = "predict_proba"
WANTED_OF_LABELS = {FIT: 6.0, EVALUATION: 6.0, MEAN: 1.0, PROBA: 1.0}


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

    times = {FIT: race([_contender(name, fit) for name in CLASSES], rounds)}
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
        times[what] = race([_contender(name, call) for name in CLASSES], rounds)

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
    of_labels, more = _classifiers(options)
    return Result(
        "Drop-ins for scikit-learn's regressor and classifier",
        f"`GaussianProcessRegressor` of both, the same code: Friedman's function, n = {n}, {D} "
        f"columns, constant * RBF with {D} length scales + white noise, the default optimizer. "
        f"Predictions at {points} points, samples at {draws}, all at the same hyperparameters. "
        f"`GaussianProcessClassifier` likewise: two classes, n = {n}, {D} columns, constant * RBF "
        f"with {D} length scales, predictions at {points} points; the evidence is evaluated a step "
        "of 0.3 away from where the model was fitted.",
        [table(["call", "scikit-learn, ms", "Mercer, ms", "faster"], rows), of_labels],
        [*verdicts, *more],
    )


def _classifiers(options: Options) -> tuple[str, list[Verdict]]:
    """Race the two classifiers; return a table, and what was reached."""
    n, points, rounds = (60, 100, 1) if options.quick else (1000, 10_000, 3)
    X, y = labelled(n)
    X_new, _ = labelled(points, 1)
    lengths = RBF(np.full(D, np.sqrt(D)), (1e-2, 1e3))
    kernel = ConstantKernel(1.0, (1e-3, 1e4)) * lengths
    fitted: dict[str, Any] = {}

    def fit(name: str) -> None:
        fitted[name] = CLASSIFIERS[name](kernel).fit(X, y)

    times = {FIT: race([_contender(name, fit) for name in CLASSIFIERS], 1, warm_up=False)}
    theta = fitted["scikit-learn"].kernel_.theta
    held = {
        name: cls(kernel.clone_with_theta(theta), optimizer=None).fit(X, y)
        for name, cls in CLASSIFIERS.items()
    }
    away = theta + 0.3
    calls = {
        EVALUATION: lambda name: held[name].log_marginal_likelihood(away, eval_gradient=True),
        MEAN: lambda name: held[name].predict(X_new),
        PROBA: lambda name: held[name].predict_proba(X_new),
    }
    for what, call in calls.items():
        times[what] = race([_contender(name, call) for name in CLASSIFIERS], rounds)
    rows, verdicts = [], []
    for what, seconds in times.items():
        theirs, ours = seconds["scikit-learn"], seconds["Mercer"]
        faster, least = theirs / ours, WANTED_OF_LABELS[what]
        rows.append([what, milliseconds(theirs), milliseconds(ours), f"{faster:.2f}"])
        wanted = f"at least {least:g} times"
        verdicts.append(Verdict(f"labels: {what}", f"{faster:.1f} times", wanted, faster >= least))
    evidence = {name: float(m.log_marginal_likelihood_value_) for name, m in fitted.items()}
    above = evidence["Mercer"] - evidence["scikit-learn"]
    verdicts.append(
        Verdict("labels: evidence reached", f"{above:+.2g}", "no lower", above >= -1e-3)
    )
    a, b = (m.predict_proba(X_new) for m in held.values())
    apart = float(np.max(np.abs(a - b)))
    verdicts.append(
        Verdict("labels: probabilities apart", f"{apart:.1g}", "at most 1e-3", apart <= 1e-3)
    )
    return table(["call on labels", "scikit-learn, ms", "Mercer, ms", "faster"], rows), verdicts


def _contender(name: str, call: Any) -> Contender:
    return Contender(name, lambda: call(name))
