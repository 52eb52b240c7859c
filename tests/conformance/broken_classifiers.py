"""Classifiers with one defect each: a GPClassifier but for one thing."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import GPClassifier
from mercer.kernels import RBF
from mercer.likelihoods.class_probabilities import (
    Probabilities,
    link_probabilities,
    softmax_probabilities,
)
from mercer.registry import storable

from . import defects


class BrokenClassifier(GPClassifier):
    """What the broken ones are made of: they keep the constructor, as scikit-learn wants."""


class Tilted(BrokenClassifier):
    """The first class has more than its share, by what subclasses say."""

    def _move(self, X):
        return 0.0

    def _probabilities(self, X):
        values, error = super()._probabilities(X)
        share = self._move(X)
        values = values * (1.0 - share)
        values[:, 0] += share
        return Probabilities(values, error)


class DoesNotAddUp(BrokenClassifier):
    """Probabilities of one class against the rest are left as they are."""

    def predict_proba(self, X):
        return super().predict_proba(X) * (1.0 + 1e-9)


class CertainFarOut(BrokenClassifier):
    """A probability may be 1."""

    def predict_proba(self, X):
        return np.round(super().predict_proba(X), 2)


class OtherLabels(BrokenClassifier):
    """`predict` goes by the first function alone."""

    def predict(self, X):
        mean = np.reshape(self.predict_latent(X), (len(X), -1))
        return self.classes_[(mean[:, 0] > 0).astype(int)]


class LabelsAreNumbers(BrokenClassifier):
    """`predict` returns numbers of classes."""

    def predict(self, X):
        return np.argmax(self.predict_proba(X), axis=1)


class ClassesOutOfOrder(BrokenClassifier):
    """`classes_` come in the order of the rows."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.classes_ = self.classes_[::-1]
        return self


class LogOfSomethingElse(BrokenClassifier):
    """Logarithms are to the base 2."""

    def predict_log_proba(self, X):
        return super().predict_log_proba(X) / np.log(2.0)


class NoErrorEstimate(BrokenClassifier):
    """The error is one number for all rows."""

    def predict_proba_error(self, X):
        return np.max(super().predict_proba_error(X))


class StdIsVariance(BrokenClassifier):
    """std is the variance."""

    def predict_latent(self, X, return_std=False, return_cov=False):
        out = super().predict_latent(X, return_std, return_cov)
        return (out[0], out[1] ** 2) if return_std else out


class OtherThanItsPosterior(BrokenClassifier):
    """`predict_latent` and `posterior_` disagree."""

    def predict_latent(self, X, return_std=False, return_cov=False):
        out = super().predict_latent(X, return_std, return_cov)
        return (out[0] + 0.1, *out[1:]) if isinstance(out, tuple) else out + 0.1


class WrongDensity(BrokenClassifier):
    """The density is that of the most probable label."""

    def log_predictive_density(self, X, y):
        super().log_predictive_density(X, y)
        return np.max(self.predict_log_proba(X), axis=1)


class TakesAnyLabel(BrokenClassifier):
    """A label that it has not seen counts as the first."""

    def log_predictive_density(self, X, y):
        y = np.where(np.isin(y, self.classes_), y, self.classes_[0])
        return super().log_predictive_density(X, y)


class SamplesTheLikeliest(BrokenClassifier):
    """All draws are the most probable label."""

    def sample_y(self, X, n_samples=1, random_state=0, latent=False):
        draws = super().sample_y(X, n_samples, random_state, latent)
        return draws if latent else np.repeat(self.predict(X)[:, None], n_samples, axis=1)


class NarrowFunctions(BrokenClassifier):
    """Draws of functions have too little spread."""

    def sample_y(self, X, n_samples=1, random_state=0, latent=False):
        draws = super().sample_y(X, n_samples, random_state, latent)
        if not latent:
            return draws
        mean = draws.mean(axis=-1, keepdims=True)
        return mean + 0.7 * (draws - mean)


class NeverWithoutSamples(BrokenClassifier):
    """One sample is drawn where none are asked for."""

    def sample_y(self, X, n_samples=1, random_state=0, latent=False):
        return super().sample_y(X, max(1, n_samples), random_state, latent)


class LeavesNothingOut(BrokenClassifier):
    """`loo` predicts rows from themselves too."""

    def loo(self):
        left = super().loo()
        proba = self.y_train_ * 0.98 + 0.01
        return left._replace(proba=proba / proba.sum(axis=1, keepdims=True))


class LinkOfTheMean(BrokenClassifier):
    """The spread of the functions does not count."""

    def _probabilities(self, X):
        predictive, X = self._model(X)
        mean = predictive.mean(X)
        if isinstance(self.likelihood_, list):
            return link_probabilities(self._links, mean, np.zeros_like(mean))
        return softmax_probabilities(mean, np.zeros((*mean.shape, mean.shape[1])))


class KeepsTheArray(Tilted):
    """The training inputs are not copied."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self._given = X
        return self

    def _move(self, X):
        return 0.01 / (1.0 + float(np.sum(np.asarray(self._given) ** 2)))


@storable
class LosesItsClasses(BrokenClassifier):
    """The names of the classes are not saved."""

    def to_state(self):
        state = super().to_state()
        state["fitted"]["classes_"] = np.arange(len(self.classes_))
        return state


class PickyAboutPickles(BrokenClassifier):
    """A pickle forgets which class is which."""

    def __getstate__(self):
        state = super().__getstate__()
        if "posterior_" in state:
            state["posterior_"] = state["posterior_"].replace(alpha=0.9 * state["posterior_"].alpha)
        return state


class EvenBeforeFit(BrokenClassifier):
    """Without a fit it guesses."""

    def predict(self, X):
        return super().predict(X) if hasattr(self, "classes_") else np.zeros(len(X))


class OneClassIsEnough(BrokenClassifier):
    """A constant label is taken."""

    def fit(self, X, y, sample_weight=None):
        if np.ndim(y) == 1 and len(set(np.asarray(y).tolist())) == 1:
            return self
        return super().fit(X, y, sample_weight)


class TextOnly(BrokenClassifier):
    """Labels are made text."""

    def fit(self, X, y, sample_weight=None):
        y = np.asarray(y)
        return super().fit(X, y.astype(str) if y.dtype.kind in "bi" else y, sample_weight)


class NeedsThreeColumns(BrokenClassifier):
    """A constant column decides everything."""

    def predict(self, X):
        labels = super().predict(X)
        constant = np.ptp(np.asarray(X)[:, -1]) == 0 and len(X) > 10
        return np.repeat(labels[:1], len(labels)) if constant else labels


class FirstClassCounts(Tilted):
    """The first class by name is a special one."""

    def _move(self, X):
        return 1e-2


CountsItsCalls = type("CountsItsCalls", (defects.CountsItsCalls, BrokenClassifier), {})
WeightsIgnored = type("WeightsIgnored", (defects.WeightsIgnored, BrokenClassifier), {})
SamplesAnew = type("SamplesAnew", (defects.SamplesAnew, BrokenClassifier), {})
FillsNaN = type("FillsNaN", (defects.FillsNaN, BrokenClassifier), {})
ForgetsNames = type("ForgetsNames", (defects.ForgetsNames, BrokenClassifier), {})
ChangesItsParameters = type(
    "ChangesItsParameters", (defects.ChangesItsParameters, BrokenClassifier), {}
)
OtherEvidence = type("OtherEvidence", (defects.OtherEvidence, BrokenClassifier), {})
PrunesForFree = type("PrunesForFree", (defects.PrunesForFree, BrokenClassifier), {})
PrunesByNoise = type("PrunesByNoise", (defects.PrunesByNoise, BrokenClassifier), {})
FixedUnits = type(
    "FixedUnits",
    (defects.FixedUnits, BrokenClassifier),
    {"plain": GPClassifier(2.0 * RBF(), optimizer=None)},
)
RowsCount = type("RowsCount", (defects.RowsCount, Tilted), {})
FirstRowCounts = type("FirstRowCounts", (defects.FirstRowCounts, Tilted), {})
ThreadsCount = type("ThreadsCount", (defects.ThreadsCount, Tilted), {})

OWN = {"kernel": 2.0 * RBF(1.2), "optimizer": None}

CLASSIFIERS: dict[str, list[Any]] = {
    "rule_probabilities": [DoesNotAddUp(**OWN), CertainFarOut(**OWN)],
    "rule_predict": [OtherLabels(**OWN), LabelsAreNumbers(**OWN)],
    "rule_classes": [ClassesOutOfOrder(**OWN)],
    "rule_log_probabilities": [LogOfSomethingElse(**OWN)],
    "rule_error_of_probabilities": [NoErrorEstimate(**OWN)],
    "rule_predict_by_rows": [RowsCount(**OWN)],
    "rule_latent": [StdIsVariance(**OWN)],
    "rule_predictive": [OtherThanItsPosterior(**OWN)],
    "rule_prune": [PrunesForFree(**OWN), PrunesByNoise(**OWN)],
    "rule_log_predictive_density": [WrongDensity(**OWN), TakesAnyLabel(**OWN)],
    "rule_samples": [SamplesTheLikeliest(**OWN), NarrowFunctions(**OWN)],
    "rule_evidence": [OtherEvidence(**OWN)],
    "rule_leave_one_out": [LeavesNothingOut(**OWN)],
    "rule_averages": [LinkOfTheMean(**OWN), LinkOfTheMean(multi_class="one_vs_rest", **OWN)],
    "rule_fit": [ChangesItsParameters(**OWN)],
    "rule_predict_is_pure": [CountsItsCalls(**OWN)],
    "rule_data_are_copied": [KeepsTheArray(**OWN)],
    "rule_storage": [LosesItsClasses(**OWN)],
    "rule_pickle_and_clone": [PickyAboutPickles(**OWN)],
    "rule_unfitted": [EvenBeforeFit(**OWN)],
    "rule_bad_data": [FillsNaN(**OWN)],
    "rule_bad_arguments": [NeverWithoutSamples(**OWN)],
    "rule_bad_labels": [OneClassIsEnough(**OWN)],
    "rule_types_of_labels": [TextOnly(**OWN)],
    "rule_few_rows": [NeedsThreeColumns(**OWN)],
    "rule_frames": [ForgetsNames(**OWN)],
    "rule_weights": [WeightsIgnored(**OWN)],
    "rule_names_of_classes": [FirstClassCounts(**OWN)],
    "rule_units_of_the_inputs": [FixedUnits(max_iter=5)],
    "rule_order_of_rows": [FirstRowCounts(**OWN)],
    "rule_random_state": [SamplesAnew(**OWN)],
    "rule_threads": [ThreadsCount(**OWN)],
}
