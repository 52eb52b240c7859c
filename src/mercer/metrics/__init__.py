"""How good predictions are that say how sure they are.

Functions take arrays, lower is better: Gaussian predictions as ``(y, mean, std)``, intervals as
``(y, lower, upper)``, calibration by the values of `pit`. Scorers, ``neg_...``, take fitted models
and are for `scoring` of scikit-learn's cross-validation and searches.
"""

from mercer.metrics.calibration import CalibrationCurve, calibration_curve, calibration_error
from mercer.metrics.gaussian import (
    crps,
    mean_standardised_log_loss,
    negative_log_predictive_density,
    pit,
)
from mercer.metrics.intervals import coverage, interval_score, interval_width
from mercer.metrics.scorers import (
    Scorer,
    get_scorer,
    get_scorer_names,
    neg_calibration_error,
    neg_crps,
    neg_log_predictive_density,
    neg_mean_standardised_log_loss,
)

__all__ = [
    "CalibrationCurve",
    "Scorer",
    "calibration_curve",
    "calibration_error",
    "coverage",
    "crps",
    "get_scorer",
    "get_scorer_names",
    "interval_score",
    "interval_width",
    "mean_standardised_log_loss",
    "neg_calibration_error",
    "neg_crps",
    "neg_log_predictive_density",
    "neg_mean_standardised_log_loss",
    "negative_log_predictive_density",
    "pit",
]
