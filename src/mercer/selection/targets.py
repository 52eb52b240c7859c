"""Rows chosen one after the other by what they say of the targets.

Both choices here know the targets and the noise, and keep the regression on the rows chosen so
far: the mean of SoR and DTC (UV 16b, 20b). They draw some rows each time and add the best. What
they differ in is what is best: that which changes the posterior most, judged in O(1) a candidate,
or that which reduces the loss most, in O(n).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.compute import executor_for
from mercer.kernels import Kernel
from mercer.selection.checks import require_kernel, whole_number
from mercer.selection.partial import PartialCholesky
from mercer.selection.regression import Regression, noise_variances, target_columns

__all__ = ["TargetSelection", "information_gain", "information_scores", "matching_pursuit"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Entries of a block of columns of K, of the size that the sparse engine takes.
_ENTRIES = 1_000_000


class TargetSelection(NamedTuple):
    """The rows that were chosen, the approximation of K that they make, and how they fit.

    indices : (k,) numbers of the rows, in the order in which they were chosen
    V : (n, k) the factor, K is about V V'; its rows `indices` are a lower triangle
    residual : (n,) the diagonal of K - V V', never negative
    traces : (k + 1,) the trace of K - V V' with 0, 1, ..., k rows
    losses : (k + 1,) sum_i (y_i - f_i)^2 / noise_i + alpha' K_II alpha at its minimum over alpha,
        f = K_I alpha, with 0, 1, ..., k rows: y'(V V' + noise)^-1 y, added up over the outputs
    """

    indices: Indices
    V: Floats
    residual: Floats
    traces: Floats
    losses: Floats


def information_gain(
    kernel: Kernel,
    X: Any,
    y: ArrayLike,
    m: int,
    noise: ArrayLike,
    n_candidates: int | None = 59,
    rng: np.random.Generator | int | None = None,
) -> TargetSelection:
    """Choose each time, of some rows drawn by chance, that which changes the posterior most.

    The change is the divergence KL(new || old) of the posteriors of DTC, the values f at all rows
    given y. To have it exactly takes O(n k) for a candidate. It is therefore approximated, as if
    no observation but the candidate's own saw the new inducing variable: y_i is then about f_i
    itself, rather than about what the chosen rows say of f_i, and every other y_j as before. What
    is left of the formula needs the mean and two variances at the row.

    Parameters
    ----------
    kernel : Kernel
        A covariance.
    X : inputs
        n rows.
    y : array of shape (n,) or (n, P)
        Targets, less the mean of the prior. Outputs are independent, and their gains add up.
    m : int
        How many to choose at the most. Fewer are, where nothing but rounding is left of any row.
    noise : float or array of shape (n,)
        Noise variance, of all rows or of each: noise / w for a row of weight w.
    n_candidates : int or None, default 59
        How many rows to draw each time; None takes all, which costs little more here.
    rng : Generator, int or None
        Where the randomness comes from.

    Returns
    -------
    TargetSelection

    Notes
    -----
    O(n m^2) time, a few passes over the factor for each row whatever the number of candidates;
    O(n m) memory, two arrays of that size; n m values of the kernel.

    The gain grows with the variance that the chosen rows leave and with the squared error at the
    row, so it takes rows that are predicted badly: where the function is rough, and where y is an
    outlier. It takes two or three times as long as `pivoted_cholesky` and knows the targets;
    `matching_pursuit` looks at what a row does for all the others, and takes longer still. As in
    `sparse_greedy_matrix`, rows with less than 1e-4 of the largest variance left are not drawn.

    References
    ----------
    Seeger, Williams and Lawrence, *Fast forward selection to speed up sparse Gaussian process
    regression*, 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.selection import information_gain
    >>> X = np.linspace(0.0, 1.0, 101)[:, None]
    >>> y = np.where(X[:, 0] > 0.5, np.sin(40.0 * X[:, 0]), 0.0)  # nothing happens on the left
    >>> chosen = information_gain(RBF(0.05), X, y, 8, noise=0.01, n_candidates=None)
    >>> int(np.sum(chosen.indices > 50))
    7
    """

    def gains(partial: PartialCholesky, fit: Regression, rows: Indices) -> Floats:
        return information_scores(
            partial.residual[rows] / fit.root[rows] ** 2,
            fit.leverage[rows],
            fit.residual[rows],
        )

    return _choose(kernel, X, y, m, noise, n_candidates, rng, gains)


def information_scores(left: Floats, leverage: Floats, error: Floats) -> Floats:
    """Return KL(new || old) where one observation alone comes to see its own f.

    Parameters
    ----------
    left : (c,) a = var(f_i given the inducing variables) / noise
    leverage : (c,) q = var(g | y) / noise, g the mean of f_i given the inducing variables
    error : (c, P) r = (y_i - E(g | y)) / noise^1/2

    Notes
    -----
    The old posterior has g ~ N(mean, q noise) and f_i = g + e, e ~ N(0, a noise), and the new is
    the old times N(y_i | f_i, noise) / N(y_i | g, noise) / Z. In units of noise^1/2, without the
    old factor g has the variance q/(1 - q) and y_i - g the mean r/(1 - q). With
    b = 1 + a (1 - q), y_i has then the variance 1/(1 - q) if it is about g and b/(1 - q) if it is
    about f_i, so that

        -log Z                    = log(b)/2 - a r^2 / (2 b).

    Under the new posterior y_i - f_i has mean r/b and variance 1 - (1 - q)/b; y_i - g has mean
    (1 + a) r/b and variance (1 + a) q/b. Half the difference of their mean squares is the
    expectation of the logarithm of the two factors' ratio, and added to -log Z gives

        KL = [log b + (1 + a q)/b - 1 + a (1 + a q) r^2 / b^2] / 2.

    This is the paper's Delta_i, where a = l^2 / sigma^2, xi = a/b and kappa = (a + 2)/b.
    """
    b = 1.0 + left * (1.0 - leverage)
    joined = (1.0 + left * leverage) / b
    squares = np.einsum("ij,ij->i", error, error)
    gains = error.shape[1] * (np.log(b) + joined - 1.0) + left / b * joined * squares
    return np.asarray(0.5 * gains)


def matching_pursuit(
    kernel: Kernel,
    X: Any,
    y: ArrayLike,
    m: int,
    noise: ArrayLike,
    n_candidates: int | None = 59,
    rng: np.random.Generator | int | None = None,
) -> TargetSelection:
    """Choose each time, of some rows drawn by chance, that whose kernel section fits best.

    The loss is sum_i (y_i - f_i)^2 / noise_i + alpha' K_II alpha with f = K_I alpha: -2 times the
    logarithm of SoR's posterior, but for a constant. A candidate j is judged by how far it falls
    when alpha_j alone is optimised, (k_j' e - f_j)^2 / (k_j' D^2 k_j + k_jj), with D^2 = 1/noise
    and e = D^2 (y - f). Once it is chosen all coefficients are.

    Parameters
    ----------
    kernel : Kernel
        A covariance.
    X : inputs
        n rows.
    y : array of shape (n,) or (n, P)
        Targets, less the mean of the prior. Losses of several outputs are added up.
    m : int
        How many to choose at the most. Fewer are, where nothing but rounding is left of any row.
    noise : float or array of shape (n,)
        Noise variance, of all rows or of each: noise / w for a row of weight w.
    n_candidates : int or None, default 59
        How many rows to draw each time; None takes all, in O(n^2 m).
    rng : Generator, int or None
        Where the randomness comes from.

    Returns
    -------
    TargetSelection

    Notes
    -----
    O(n m^2 + n m n_candidates) time and O(n m) memory, two arrays of that size; n m n_candidates
    values of the kernel, in blocks of rows. Most of the time goes into these.

    It wants the rows that matter for the mean: fewer where the function is smooth, more where it
    varies, none where y is only noise. It leaves the variance of f where y is small; if that
    matters more than the mean, `sparse_greedy_matrix` and `pivoted_cholesky` look at it alone. As
    there, rows with less than 1e-4 of the largest variance left are not drawn.

    References
    ----------
    Keerthi and Chu, *A matching pursuit approach to sparse Gaussian process regression*, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.selection import matching_pursuit
    >>> X = np.linspace(0.0, 1.0, 101)[:, None]
    >>> y = np.exp(-50.0 * (X[:, 0] - 0.3) ** 2)  # a section of the kernel, at row 30
    >>> chosen = matching_pursuit(RBF(0.1), X, y, 2, noise=0.01, n_candidates=None)
    >>> chosen.indices[0], chosen.losses.astype(int)
    (np.int64(30), array([1772,    0,    0]))
    """
    require_kernel(kernel)
    rows_of = kernel.inputs(X)
    executor = executor_for(rows_of)
    Y = target_columns(y, len(rows_of))

    def decreases(partial: PartialCholesky, fit: Regression, rows: Indices) -> Floats:
        points = partial.X[rows]

        def products(X: Any, residual: Floats, root: Floats) -> Floats:
            columns = kernel(X, points) / root[:, None]
            squares = np.einsum("ij,ij->j", columns, columns)
            return np.vstack([squares, residual.T @ columns])

        block = max(1, _ENTRIES // len(rows))
        sums = executor.sum(products, partial.X, fit.residual, fit.root, block=block)
        fitted = Y[rows] - fit.residual[rows] * fit.root[rows, None]
        slopes = sums[1:].T - fitted
        squares = np.einsum("ij,ij->i", slopes, slopes)
        return np.asarray(squares / (sums[0] + partial.diagonal[rows]))

    return _choose(kernel, rows_of, y, m, noise, n_candidates, rng, decreases)


def _choose(
    kernel: Kernel,
    X: Any,
    y: ArrayLike,
    m: int,
    noise: ArrayLike,
    n_candidates: int | None,
    rng: np.random.Generator | int | None,
    score: Callable[[PartialCholesky, Regression, Indices], Floats],
) -> TargetSelection:
    """Add the candidate of the largest score until there are m rows, or nothing is left."""
    partial = PartialCholesky(kernel, X, whole_number("m", m))
    n = len(partial.diagonal)
    number = n if n_candidates is None else whole_number("n_candidates", n_candidates)
    rng = np.random.default_rng(rng)
    fit = Regression(target_columns(y, n), noise_variances(noise, n), partial.most)
    while partial.goes_on():
        rows = partial.candidates(number, rng)
        partial.add(int(rows[np.argmax(score(partial, fit, rows))]))
        fit.add(partial.V[:, -1])
    return TargetSelection(*partial.selection(), np.array(fit.losses))
