"""What a regressor has after iterative inference, beside what every fit has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.iterative_options import Iterative, options_of
from mercer.estimators.resolve import named_engine
from mercer.evidence.guarded import Fitted
from mercer.evidence.optimum import Report, tell

if TYPE_CHECKING:
    from mercer.inference._variance_bounds import VarianceBounds

__all__ = ["CERTIFIED", "FittedIteratively", "tell_of_solve"]

#: What an iterative fit keeps, and no other one has.
CERTIFIED = (
    "gap_",
    "log_posterior_bounds_",
    "log_marginal_likelihood_std_error_",
    "n_solver_iter_",
    "_iterative",
    "_seed",
)


def _is_iterative(estimator: Any) -> bool:
    fitted = getattr(estimator, "inference_", None)
    return bool(named_engine(estimator.inference if fitted is None else fitted) == "iterative")


def tell_of_solve(objective: Any, report: Report | None) -> None:
    """Have the solve that a fit ends with told, where lines are written."""
    tell(report, f"solving for {len(objective.data.Y)} rows by conjugate gradients")
    objective.progress = lambda stage: tell(report, stage)


class FittedIteratively:
    """Adds a certificate, and bounds on variances, to a regressor that `inference` makes iterative.

    The engine is imported when it is asked for: an exact fit does not wait for it.
    """

    inference: str | Iterative
    status_: str
    _iterative: Iterative

    def _finish_iterative(self, objective: Any, fit: Fitted) -> None:
        """Keep the certificate of a fit, and say where it is not the one that was wanted."""
        from mercer.estimators.prepare_iterative import (
            certified_attributes,
            warn_of_descent,
        )

        self._iterative = options_of(self.inference)
        for name, value in certified_attributes(objective, fit).items():
            setattr(self, name, value)
        warn_of_descent(fit.solution, self._iterative)
        if fit.solution.status == "interrupted":
            self.status_ = "interrupted"

    @available_if(_is_iterative)  # type: ignore[untyped-decorator]
    def predict_variance_bounds(self, X: Any, tol: float = 1e-6) -> VarianceBounds:
        """Return what the variance of the latent function lies between, by solves of its own.

        With ``inference="iterative"``. `predict` has a variance from a low-rank solution that is
        never below the exact one; here conjugate gradients go on, for each row of X, until the
        bounds are close (BKM 81, 83).

        Parameters
        ----------
        X : array-like of shape (k, d)
            Where to predict.
        tol : float, default 1e-6
            How far the bounds may be apart, in units of the prior variance k(x, x).

        Returns
        -------
        VarianceBounds
            `lower` and `upper`, each of shape (k,), or (k, P) for several outputs, and `n_kernels`
            (k,), which is n here: the solves are over all rows.
        """
        from mercer.estimators.prepare_iterative import bounds_at

        check_is_fitted(self, "posterior_")
        return bounds_at(self, X, tol)
