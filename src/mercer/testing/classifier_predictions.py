"""Rules for what a fitted classifier predicts."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from mercer.likelihoods import Softmax
from mercer.testing.classifier_case import ClassifierCase, hard_labels
from mercer.testing.compare import close, expect, identical, refused
from mercer.testing.estimator_case import offers
from mercer.testing.rules import Rules

__all__ = ["PREDICTIONS"]

PREDICTIONS: Rules[ClassifierCase] = Rules()

_DRAWS = 4000


@PREDICTIONS.add()
def rule_unfitted(case: ClassifierCase) -> None:
    """Before `fit`, predicting raises NotFittedError: there are no classes yet."""
    model = clone(case.estimator)
    for name, options in case.ways:
        if hasattr(type(model), name):
            call = partial(getattr(model, name), case.X_new, **options)
            refused(f"{name} before fit", call, "fit", NotFittedError)


@PREDICTIONS.add()
def rule_probabilities(case: ClassifierCase) -> None:
    """Rows of `predict_proba` add up to 1 to 1e-12, within 1e-15 of 0 and 1, near and far."""
    model = case.model
    X = np.concatenate([case.X_new, case.X, 1e6 * case.X_new])
    P = model.predict_proba(X)
    shape = (len(X), len(model.classes_))
    expect(P.shape == shape, f"probabilities of shape {shape}", P)
    expect(np.all((P >= 1e-15) & (P <= 1.0 - 1e-15)), "all within [1e-15, 1 - 1e-15]", P)
    close("sums", P.sum(axis=1), np.ones(len(X)), 0.0, 1e-12)


@PREDICTIONS.add()
def rule_predict(case: ClassifierCase) -> None:
    """`predict` is the class of the greatest probability, in the type of `classes_`."""
    model, X = case.model, np.concatenate([case.X_new, case.X])
    got, P = model.predict(X), model.predict_proba(X)
    identical("predictions", got, model.classes_[np.argmax(P, axis=1)])
    expect(got.dtype == model.classes_.dtype, f"labels of type {model.classes_.dtype}", got)


@PREDICTIONS.add(offers("predict_log_proba"))
def rule_log_probabilities(case: ClassifierCase) -> None:
    """`predict_log_proba` has the logarithms of `predict_proba`."""
    model, X = case.model, case.X_new
    close("log probabilities", model.predict_log_proba(X), np.log(model.predict_proba(X)), 1e-12)


@PREDICTIONS.add(offers("predict_proba_error"))
def rule_error_of_probabilities(case: ClassifierCase) -> None:
    """`predict_proba_error` is one number a row, positive and at most 1e-4."""
    error = case.model.predict_proba_error(case.X_new)
    expect(error.shape == (len(case.X_new),), f"shape {(len(case.X_new),)}", error)
    expect(np.all((error >= 0) & (error <= 1e-4)), "errors from 0 to 1e-4", error)


@PREDICTIONS.add()
def rule_predict_by_rows(case: ClassifierCase) -> None:
    """A row's prediction does not depend on the other rows."""
    model, X = case.model, np.concatenate([case.X_new, case.X[:3], 1e6 * case.X_new[:1]])
    P = model.predict_proba(X)
    for i in range(len(X)):
        close(f"row {i} alone", model.predict_proba(X[i : i + 1])[0], P[i], 0.0, 1e-6)


@PREDICTIONS.add(offers("predict_latent"))
def rule_latent(case: ClassifierCase) -> None:
    """Variants of `predict_latent` have the same mean, and std is the root of cov's diagonal."""
    model, X = case.model, case.X_new
    n = len(X)
    mean, std = model.predict_latent(X, return_std=True)
    close("the mean alone", model.predict_latent(X), mean, 1e-9, 1e-10)
    with_cov, cov = model.predict_latent(X, return_cov=True)
    close("the mean with return_cov", with_cov, mean, 1e-9, 1e-10)
    if mean.ndim == 1:
        variance = np.diagonal(cov)
    elif cov.ndim == 4:  # coupled
        variance = np.einsum("icic->ic", cov)
    else:
        variance = np.einsum("iic->ic", cov)
    shape = (n,) if len(model.classes_) == 2 and mean.ndim == 1 else (n, len(model.classes_))
    expect(mean.shape == std.shape == shape, f"mean and std of shape {shape}", mean)
    expect(np.all(std >= 0), "no negative std", std)
    close("std squared", std**2, variance, 1e-7, 1e-10)


@PREDICTIONS.add(offers("log_predictive_density"), hard_labels)
def rule_log_predictive_density(case: ClassifierCase) -> None:
    """`log_predictive_density` is the log of the label's probability; others are refused."""
    model, X, y = case.model, case.X[:6], case.y[:6]
    logs = np.log(model.predict_proba(X))
    wanted = logs[np.arange(6), np.searchsorted(model.classes_, y)]
    close("log densities", model.log_predictive_density(X, y), wanted, 1e-9, 1e-9)
    unknown = partial(model.log_predictive_density, X, np.array(["no such label"] * 6, object))
    refused("labels that were not seen", unknown, "label|class")


@PREDICTIONS.add(offers("sample_y"))
def rule_samples(case: ClassifierCase) -> None:
    """`sample_y` draws labels as often as `predict_proba` says, and functions if latent."""
    model, X = case.model, case.X_new[:3]
    draws = model.sample_y(X, _DRAWS, random_state=3)
    expect(draws.shape == (3, _DRAWS), f"draws of shape {(3, _DRAWS)}", draws)
    got = np.stack([np.mean(draws == label, axis=1) for label in model.classes_], axis=1)
    # 4.5 standard deviations of a frequency of one half. Where probabilities were made to add up
    # to 1, functions that give little to all classes count less in them than in draws.
    allowed = 2.25 / np.sqrt(_DRAWS) + (0.1 if case.is_normalised else 0.0)
    close("frequencies of labels", got, model.predict_proba(X), 0.0, allowed)
    latent = model.sample_y(X, _DRAWS, random_state=3, latent=True)
    mean, std = model.predict_latent(X, return_std=True)
    expect(latent.shape == (*mean.shape, _DRAWS), f"draws of shape {(*mean.shape, _DRAWS)}", latent)
    error = np.abs(latent.mean(axis=-1) - mean)
    off = error > 5.0 * std / np.sqrt(_DRAWS) + 1e-9
    expect(not np.any(off), "draws of the latent mean", error)
    spread = np.abs(latent.std(axis=-1) / np.maximum(std, 1e-12) - 1.0)
    expect(
        np.all(spread <= 5.0 / np.sqrt(2.0 * _DRAWS)), "draws of the latent std, relatively", spread
    )


@PREDICTIONS.add(offers("loo"))
def rule_leave_one_out(case: ClassifierCase) -> None:
    """`loo` is near to refits without the row, or refused with the reason."""
    model = case.hold(case.X, case.y)
    try:
        left = model.loo()
    except ValueError as error:
        expect("leave-one-out" in str(error), "a refusal that names leave-one-out", str(error))
        return
    n = len(case.X)
    expect(left.proba.shape == (n, len(model.classes_)), "a row for each row of X", left.proba)
    for row in (0, n // 2, n - 1):
        rest = np.arange(n) != row
        again = case.hold(case.X[rest], case.y[rest])
        wanted = again.predict_proba(case.X[row : row + 1])[0]
        close(f"row {row} left out", left.proba[row], wanted, 0.0, 0.05)
    if not hard_labels(case):
        codes = np.searchsorted(model.classes_, case.y)
        own = np.log(left.proba[np.arange(n), codes])
        close("log density of the labels left out", left.log_density, own, 1e-9, 1e-9)


@PREDICTIONS.add(offers("predict_latent", "likelihood_"))
def rule_averages(case: ClassifierCase) -> None:
    """Probabilities are averages of the link over the latent functions, not the link of their mean.

    Those of one class against the rest are averaged before they are made to add up to 1.
    """
    model, X = case.model, case.X_new
    got = model.predict_proba(X)
    if isinstance(model.likelihood_, Softmax):
        draws = model.sample_y(X, _DRAWS, random_state=1, latent=True)  # (t, C, draws)
        given = np.array([model.likelihood_.probabilities(row.T) for row in draws])
        allowed = 5.0 * float(given.std(axis=1).max()) / np.sqrt(_DRAWS)
        close("probabilities", got, given.mean(axis=1), 0.0, allowed)
        return
    mean, std = (np.reshape(part, (len(X), -1)) for part in model.predict_latent(X, True))
    shared = [model.likelihood_] * mean.shape[1]  # of functions that are not fitted one by one
    links = model.likelihood_ if isinstance(model.likelihood_, list) else shared
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    f = mean[:, :, None] + std[:, :, None] * nodes
    averages = [
        np.exp(getattr(link, "likelihood", link).log_density(1.0, f[:, p])) @ weights
        for p, link in enumerate(links)
    ]
    wanted = np.column_stack(averages) / weights.sum()
    if len(links) == 1:
        close("probabilities", got[:, 1], wanted[:, 0], 0.0, 1e-4)
    else:
        close("probabilities", got, wanted / wanted.sum(axis=1, keepdims=True), 0.0, 1e-4)
