"""What to know of a fit, as plain values that are stored with the model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from os.path import basename
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.columns import TableColumn
from mercer.evidence.defaults import deviation
from mercer.evidence.shares import NEGLIGIBLE, relevances_by_share, variance_over
from mercer.kernels import Kernel, Linear, Sum
from mercer.metrics import coverage
from mercer.metrics.gaussian import gaussian_interval

if TYPE_CHECKING:
    from mercer.cli.fitting import FitOptions

__all__ = ["summarise", "with_options"]

Floats = NDArray[np.float64]

# The weight of a row, of which 1 is the usual one, below which it counts as an outlier.
_OUTLIER = 0.1


def summarise(
    estimator: Any,
    columns: Sequence[TableColumn],
    options: FitOptions,
    X: Floats,
    y: NDArray[Any],
    weights: Floats | None,
    *,
    left_out: Sequence[str],
    constant: Sequence[str],
    notes: Sequence[str],
    source: str,
    seconds: float,
    warnings: Sequence[str],
) -> dict[str, Any]:
    """Return the summary of a fit; what a method has not is left out."""
    rows = len(y)
    kept_rows = slice(None) if weights is None else weights > 0
    if weights is not None:  # as the fit saw them: a row of weight 0 may hold anything
        X, y, weights = X[kept_rows], y[kept_rows], weights[kept_rows]
    of_classes = hasattr(estimator, "classes_")
    width = 1.0 if of_classes else float(deviation(y, weights))
    summary: dict[str, Any] = {
        "method": options.method,
        "kernel": options.kernel,
        "source": basename(source),
        "rows": rows,
        "seconds": seconds,
        "left_out": list(left_out),
        "constant": list(constant),
        "weights": options.weights,
        "notes": list(notes),
        "warnings": list(dict.fromkeys(with_options(text) for text in warnings)),
    }
    if of_classes:
        summary["classes"] = [[str(c), int(np.sum(y == c))] for c in estimator.classes_]
    else:
        summary["target_mean"] = float(np.average(y, weights=weights))
        summary["target_std"] = width
    for name in ("log_marginal_likelihood_value_", "log_evidence_"):
        if hasattr(estimator, name):
            summary["log_evidence"] = float(getattr(estimator, name))
    if hasattr(estimator, "kernel_"):
        summary["fitted_kernel"] = repr(estimator.kernel_)
        # coefficients of an expansion carry the units of the targets, its kernel has none
        kept = getattr(estimator, "n_active_", getattr(estimator, "n_relevance_", None))
        unit = width**2 if kept is None else 0.0
        terms = _terms_that_count(_in_use(estimator), X, unit, weights)
        if kept == 0:
            terms = []
        summary["explains_nothing"] = not terms
        summary["relevances"] = _relevances(terms, columns, X, weights)
    noise = getattr(getattr(estimator, "likelihood_", None), "new_variance", None)
    if noise is not None:
        summary["noise_std"] = float(np.sqrt(noise))
    if hasattr(estimator, "n_active_"):
        summary["expansion"] = _expansion(estimator)
    elif hasattr(estimator, "n_relevance_"):
        summary["relevance_vectors"] = int(estimator.n_relevance_)
        if hasattr(estimator, "outlier_weights_"):
            summary["likelihood"] = repr(estimator.likelihood_)
            own = estimator.outlier_weights_[kept_rows]
            summary["outliers"] = int(np.sum(own < _OUTLIER))
    elif hasattr(estimator, "gap_"):
        summary["gap"] = float(estimator.gap_)
        summary["basis"] = len(estimator.posterior_.basis.points)
    if hasattr(estimator, "loo"):
        try:
            summary["leave_one_out"] = _leave_one_out(estimator)
        except ValueError as reason:  # blocks of rows, or a row that all depends on
            summary["notes"].append(f"no leave-one-out: {reason}")
    return summary


def _expansion(estimator: Any) -> dict[str, Any]:
    """Return what there is to know of a Laplacian process."""
    priors = estimator.prior_ if isinstance(estimator.prior_, list) else [estimator.prior_]
    likelihood = repr(estimator.likelihood_)
    if getattr(estimator, "calibration_", None) is not None:
        likelihood = f"{estimator.likelihood}, calibrated to held-out rows by {likelihood}"
    return {
        "active": estimator.n_active_,
        "gap": float(estimator.gap_),
        "status": estimator.status_,
        "prior": estimator.prior,
        "scales": [float(prior.scale) for prior in priors],
        "likelihood": likelihood,
    }


def _leave_one_out(estimator: Any) -> dict[str, float]:
    left = estimator.loo()
    y, weights = estimator.y_train_[:, 0], estimator.sample_weight_
    error, ends = y - left.mean, gaussian_interval(left.mean, left.std, 0.95)
    return {
        "rmse": float(np.sqrt(np.average(error**2, weights=weights))),
        "nlpd": float(-np.average(left.log_density, weights=weights)),
        "coverage_95": coverage(y, *ends, sample_weight=weights),
    }


def _in_use(estimator: Any) -> Kernel | list[Kernel]:
    """Return the kernel, or of several those that functions were kept of."""
    kernels: Kernel | list[Kernel] = estimator.kernel_
    if not isinstance(kernels, list):
        return kernels
    found = estimator.relevance_indices_
    machines = found if isinstance(found[0], list) else [found]  # of each target or class
    return [k for j, k in enumerate(kernels) if any(len(own[j]) for own in machines)]


def _terms_that_count(
    kernel: Kernel | list[Kernel], X: Floats, variance: float, weights: Floats | None = None
) -> list[Kernel]:
    """Return the terms of a sum, or of several kernels, that have a share of the variance."""
    terms = kernel if isinstance(kernel, list) else [kernel]
    if isinstance(kernel, Sum):
        terms = list(kernel.kernels)
    return [term for term in terms if variance_over(term, X, weights) > NEGLIGIBLE * variance]


def _relevances(
    kernels: Sequence[Kernel],
    columns: Sequence[TableColumn],
    X: Floats,
    weights: Floats | None = None,
) -> list[list[Any]]:
    """Return [name, length scale or None, relevance] of each column, the most relevant first.

    Of several terms of the kernel that which lets the target change most along a column counts,
    each by its share of what they explain; where it is linear, "linear" stands for the length
    scale. The relevance of a category takes all its columns together. Empty if no term has any.
    """
    terms = relevances_by_share(kernels, X, weights)
    if not terms:
        return []
    every = np.nan_to_num([term.values for term in terms])
    closest, moved = np.argmax(every, axis=0), np.max(every, axis=0)
    start = 0
    rows: list[tuple[str, float | str | None, float]] = []
    for column in columns:
        own = slice(start, start + len(column.labels))
        scale: float | str | None = None
        if column.kind != "category":
            term = terms[closest[start]]
            straight = isinstance(term.kernel, Linear)
            scale = "linear" if straight else float(term.length_scales[start])
        rows.append((column.name, scale, float(np.linalg.norm(moved[own]))))
        start = own.stop
    return [list(row) for row in sorted(rows, key=lambda row: -row[2])]


# What advice to write Python becomes for those who do not.
_INSTEAD = [
    (r"n_restarts=(\d+) or a shorter length_scale", r"--restarts \1"),
    (r"n_restarts=(\d+), begin in .* take another kernel", r"--restarts \1, or another --kernel"),
    (r"n_restarts=(\d+)", r"--restarts \1"),
    (r"raise max_iter, or give starts and bounds that suit the data", "try --restarts 5"),
    (r", or the gradient of a kernel of your own is wrong", ""),
    (r"; fix a parameter, or give narrower bounds, noise a higher lower one", ""),
    (r"; inverse variances are best given .*?fixed=True\)\)", ""),
    (
        r" \(fix it then\)(.*) \(try StudentT\(\)\)(.*) \(give one length scale .* n_init\)",
        r"\1 (try --method relevance --robust)\2",
    ),
    (r"another kernel or wider bounds", "another --kernel"),
    (r", or widen the bounds", ""),
    (r"widen its bounds with Parameter\(.*?\)\), or fix it", "try another --kernel"),
    (r"wider bounds do not help then, a hyperprior does.*?1\.0\)\)", "try another --kernel"),
    (r"leave it out, or, if there is a signal, try", "if there is a signal, try"),
    (r"Give length scales .* chosen from the data", "Try --restarts 5, or another --kernel"),
    (r"; if the start is what you know, say so with .*", ""),
    (r" \(kept as `jitter_`\)", ""),
    (r"SparseGPRegressor and .* are made", "--method sparse is made"),
    (r"; fit again with warm_start=True to go on(?:, or raise tol)?", ""),
    (r": raise tol, or the noise$", ""),
    (r", and not tol=", ", and not "),
    (r"\btol is (\S+), and the gap that", r"a gap of \1 was wanted, and the one that"),
    (r"; raise tol$", ""),
    (r"\bmax_basis=(?=\d)", "--max-basis "),
    (
        r"(?:What was left open .*\. )?Else raise max_basis; (.*) give forget, such as 0\.01",
        r"Else fit with a larger --max-basis, or, \1 with --forget 0.01",
    ),
    (
        r"What was left open has been chosen by (.*) rows, and n_init=\S+ takes more\.",
        r"\1 rows have chosen kernel and noise: fit anew to more",
    ),
    (
        r"noise of heavy tails such as StudentT\(\)",
        "--method relevance --robust, gone on with by stream --continue-as,",
    ),
    (
        r"from_posterior\(\.\.\., lift='scaled', --max-basis 100\) goes on under the whole kernel",
        "where rows go elsewhere, begin with --method online",
    ),
    (r"\byet below tol=", "yet below "),
    (r"Where noise is next to none tol=1e-8 loses less\. ", ""),
    (r"Let the noise, which is next to none, be held .*?fixed=True\)\)\).*?\. ", ""),
    (
        r"(The noise that was found is next to none): let it be held .*?fixed=True\)\)\)",
        r"\1: fit anew to more rows",
    ),
    (r"for which there is forget;", "for which there is --forget;"),
    (r"choose them by more rows \(.*\)", "fit anew to more rows"),
    (r", or with more basis vectors, max_basis(?=$|\. )", ", or a larger --max-basis"),
    (
        r"(?:Give the noise if it is|Try a larger noise) \w+, or a wider kernel .* GPRegressor",
        "Try another --kernel, or --method gp",
    ),
    (r"a smaller max_basis(?:, n_sweeps=1, or recycle='heuristic')?", "a smaller --max-basis"),
    (r"; give `noise` if it is known", ""),
    (r"robust=True leaves these", "--robust leaves these"),
    (r"give `noise`, or try a wider kernel or GPRegressor", "try another --kernel or --method gp"),
    (
        r"raise their limit, `max_steps` of an estimator",
        "the estimator in Python has max_steps to raise",
    ),
    (r"raise max_iter", "the estimator in Python has max_iter to raise"),
    (
        r"A smaller prior_scale, another kernel, or noise of another size or kind",
        "A smaller --prior-scale, another --kernel or --likelihood",
    ),
    (r"another kernel, or a larger prior_scale", "another --kernel, or a larger --prior-scale"),
    (
        r"prior_scale is so large that there is less noise than a path of n_penalties=\d+ reaches",
        "--prior-scale is so large that there is less noise than any penalty compared allows for",
    ),
    (
        r"Give likelihood too, a smaller prior_scale or none, .*",
        "Give a smaller --prior-scale, or none",
    ),
    (
        r"a smaller prior_scale, or another kernel or likelihood",
        "a smaller --prior-scale, or another --kernel or --likelihood",
    ),
    (r", or give likelihood and prior_scale|\. Give likelihood and prior_scale$", ""),
    (r"\. Give kernel, likelihood and prior_scale to have it otherwise", ""),
    (r"; give epsilon$", "; try another --likelihood"),
    (r"which likelihood=Laplace\(\) tolerates", "which --likelihood laplace tolerates"),
    (r"likelihood=Laplace\(\) if they are", "--likelihood laplace if they are"),
    (r"; so does GPRegressor\(likelihood=Poisson\(\)\) of counts", ""),
    (r"likelihood='logistic' tells", "--likelihood logistic tells"),
    (r"\. augment=True has them grow.*", ""),
    (r"try another kernel\. A sum with a term .*", "try another --kernel"),
    (
        r"RelevanceVectorRegressor\(robust=True\), or .*StudentT\(\)\)",
        "--method relevance --robust",
    ),
    (r"Raise n_inducing, to (\d+) say", r"SparseGPRegressor(n_inducing=\1) in Python has more"),
]


def with_options(text: str) -> str:
    """Return a warning or an error with the command line's options in place of the estimator's."""
    for pattern, instead in _INSTEAD:
        text = re.sub(pattern, instead, text)
    return text
