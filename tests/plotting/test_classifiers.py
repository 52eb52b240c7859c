"""Plots of numbers refuse classifiers, in words."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import GPClassifier
from mercer.plotting import (
    plot_calibration,
    plot_conditional,
    plot_fit,
    plot_pit,
    plot_residuals,
    plot_samples,
)

X = np.linspace(-2, 2, 20)[:, None]
LABELS = (X[:, 0] > 0).astype(int)
PLOTS = [plot_fit, plot_samples, plot_calibration, plot_pit, plot_residuals]


@pytest.mark.parametrize(
    "model",
    [
        GPClassifier(),
        GPClassifier(optimizer=None).fit(X, LABELS),
        LogisticRegression().fit(X, LABELS),
        make_pipeline(StandardScaler(), LogisticRegression()).fit(X, LABELS),
    ],
    ids=["unfitted", "ours", "scikit-learn", "pipeline"],
)
@pytest.mark.parametrize("plot", [*PLOTS, plot_conditional])
def test_a_classifier_is_refused(plot, model):
    rest = [] if plot in PLOTS else [0.0]
    # error bars are looked at another way than predictions
    instead = "CalibrationDisplay" if plot in PLOTS[2:] else "decision surfaces"
    text = f"^{type(model).__name__} is a classifier.*predict_proba.*{instead}"
    with pytest.raises(ValueError, match=text):
        plot(model, *rest)
    if plot in PLOTS[2:]:
        with pytest.raises(ValueError, match=text):
            plot(model, X, LABELS)
    assert plt.get_fignums() == []


def test_a_model_without_tags_is_none(one, ax):
    class Plain:
        def __init__(self):
            self.fitted_ = True

        def predict(self, X, return_std=False):
            return one[0].predict(X, return_std=return_std)

    assert plot_residuals(Plain(), one[1], one[2], ax=ax) is ax
