"""The continuous ranked probability score of any predictive distribution, by its definition.

The integral of (F(x) - [x >= y])^2 over x is cut at y and at a few quantiles. What is left between
is smooth as a rule, and is integrated by Gauss and Kronrod's rules on panels that are halved where
the two disagree, in t with x = median + width sinh(t): by lengths near the median, by orders of
magnitude in the tails. All terms are positive, so that nothing cancels; and it is finite where
tails are too heavy for a mean (E|X - y| - E|X - X'|/2, the same otherwise, is then no number).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mercer.compute import row_blocks
from mercer.likelihoods import Likelihood

__all__ = ["crps_under"]

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
# (rows (k,), x (k,)) -> F of these rows at x (k,)
Distribution = Callable[[Rows, Floats], Floats]

# Rows handled together: some 10 MB of nodes.
_BLOCK = 256
# Tails at whose quantiles the line is cut: one beyond which a power law stands for the rest, and
# one that tells the width.
_FAR, _TAILS = 1e-6, np.array([1e-6, 0.1])
# The two rules must agree to this part of the score; Kronrod's is kept, the better by far.
_TOLERANCE = 1e-5
# So many halvings leave of a jump a millionth of a millionth.
_HALVINGS = 40
# Whole numbers between two cuts are summed one by one up to so many, and near the cuts, where
# atoms are; the others scatter so widely that they are as good as a continuum.
_FEW, _NEAR = 256, 16

# Kronrod's 15 nodes, of which every second is one of Gauss's 7, and the weights of both rules.
_NODES = np.array(
    [0.991455371120812640, 0.949107912342758525, 0.864864423359769073, 0.741531185599394440,
     0.586087235467691130, 0.405845151377397167, 0.207784955007898468, 0.0]
)  # fmt: skip
_KRONROD = np.array(
    [0.022935322010529225, 0.063092092629978553, 0.104790010322250184, 0.140653259715525919,
     0.169004726639267903, 0.190350578064785410, 0.204432940075298892, 0.209482141084727828]
)  # fmt: skip
_GAUSS = np.zeros(8)
_GAUSS[1::2] = (
    0.129484966168869693, 0.279705391489276668, 0.381830050505118945, 0.417959183673469388
)  # fmt: skip
_INNER = np.concatenate([-_NODES, _NODES[-2::-1]])
# Just inside the two ends there are nodes of weight 0, to see what hides there.
_NODES = np.concatenate([[-1.0 + 1e-6], _INNER, [1.0 - 1e-6]])
_KRONROD, _GAUSS = (np.concatenate([[0.0], w, w[-2::-1], [0.0]]) for w in (_KRONROD, _GAUSS))
# The values there of the polynomial through the others.
_ENDS = np.linalg.solve(
    np.polynomial.legendre.legvander(_INNER, 14).T,
    np.polynomial.legendre.legvander(_NODES[[0, -1]], 14).T,
)


def crps_under(likelihood: Likelihood, y: Floats, mean: Floats, var: Floats) -> Floats:
    """Return the continuous ranked probability score of each y, to five digits or so.

    It is infinite where a tail falls no faster than the square root of the distance rises.

    Parameters
    ----------
    likelihood : Likelihood
        What new observations are made by, counts or continuous ones.
    y, mean, var : arrays of one shape
        The targets, and the latent function's mean and variance.
    """
    flat = y.ravel(), mean.ravel(), var.ravel()
    out = np.empty(y.size)
    for block in row_blocks(y.size, _BLOCK):
        out[block] = _block(likelihood, *(a[block] for a in flat))
    return out.reshape(y.shape)


def _block(likelihood: Likelihood, y: Floats, mean: Floats, var: Floats) -> Floats:
    def cdf(row: Rows, x: Floats) -> Floats:
        return likelihood.predictive_cdf(x, mean[row], var[row])

    cuts = _quantiles(likelihood, mean, var)
    whole = _is_whole(cdf, cuts)
    # counts are summed some way beyond the far quantiles: all there is, if it is little
    total = np.where(whole, 0.0, _beyond(cdf, cuts))
    cuts = np.where(whole[:, None], np.round(cuts), cuts)
    near = _NEAR * whole[:, None]
    edges = np.sort(np.column_stack([cuts - near, cuts, cuts + near, y]), axis=1)
    row = np.repeat(np.arange(y.size), edges.shape[1] - 1)
    a, b = edges[:, :-1].ravel(), edges[:, 1:].ravel()
    some = b > a
    row, a, b = row[some], a[some], b[some]

    def square(row: Rows, x: Floats, F: Floats) -> Floats:
        return np.asarray((F - (x >= y[row])) ** 2)

    # The widths below and above the median. Where an atom takes all of one, any will do.
    centre, span = cuts[:, 2], 1e-6 * (edges[:, -1] - edges[:, 0])
    widths = np.maximum([centre - cuts[:, 1], cuts[:, 3] - centre], span)

    def to_t(row: Rows, x: Floats) -> Floats:
        away = x - centre[row]
        return np.asarray(np.arcsinh(away / widths[(away > 0).astype(int), row]))

    def curve(row: Rows, t: Floats) -> Floats:
        width = widths[(t > 0).astype(int), row]
        x = centre[row] + width * np.sinh(t)
        return np.asarray(square(row, x, _continuous(cdf, whole, row, x)) * width * np.cosh(t))

    few = whole[row] & (np.ceil(b) - np.floor(a) <= _FEW)
    part, k, left, length = _steps(a[few], b[few])
    owner = row[few][part]
    total += _sums(owner, length * square(owner, left, cdf(owner, k)), y.size)
    row, a, b = row[~few], a[~few], b[~few]
    return _integrated(curve, row, to_t(row, a), to_t(row, b), total)


def _quantiles(likelihood: Likelihood, mean: Floats, var: Floats) -> Floats:
    """Return the quantiles of the lower tails, the median, and those of the upper (n, 5)."""
    m, v = mean[:, None], var[:, None]
    if likelihood.is_symmetric:
        low = likelihood.quantile(m, v, _TAILS)
        return np.column_stack([low, m, 2.0 * m - low[:, ::-1]])
    return likelihood.quantile(m, v, np.array([*_TAILS, 0.5, *(1.0 - _TAILS[::-1])]))


def _beyond(cdf: Distribution, cuts: Floats) -> Floats:
    """Return the integrals of F^2 and (1 - F)^2 beyond the far quantiles, as if of powers of x.

    The power is the larger of those on the way there and from there on: an atom or a few outliers
    may imitate a small one on either way, heavy tails have it on both.
    """
    rows, median = np.arange(len(cuts)), cuts[:, 2]
    total = np.zeros(len(cuts))
    for side, far in ((-1.0, median - cuts[:, 0]), (1.0, cuts[:, -1] - median)):
        before, after = (cdf(rows, median + side * far * ratio) for ratio in (0.125, 8.0))
        if side > 0:
            before, after = 1.0 - before, 1.0 - after
        fall = np.maximum(before / _FAR, _FAR / np.maximum(after, 1e-15))
        excess = 2.0 * np.log(fall) / np.log(8.0) - 1.0
        with np.errstate(divide="ignore"):
            rest = np.where(excess > 1e-3, _FAR**2 * far / excess, np.inf)
        total += np.where(far > 0, rest, 0.0)
    return total


def _is_whole(cdf: Distribution, cuts: Floats) -> NDArray[np.bool_]:
    """Return which rows are distributions of whole numbers: where F has jumps and is flat between.

    Should a continuous one pass, whose numbers are so large that all are whole, then it is so wide
    that it makes no difference.
    """
    nearest = np.round(cuts)
    whole = np.all(np.abs(cuts - nearest) <= 1e-9 * (1.0 + np.abs(cuts)), axis=1)
    rows, median = np.flatnonzero(whole), nearest[whole, 2]
    whole[rows] = np.abs(cdf(rows, median + 0.5) - cdf(rows, median)) <= 1e-9
    return np.asarray(whole)


def _continuous(cdf: Distribution, whole: NDArray[np.bool_], row: Rows, x: Floats) -> Floats:
    """Return F; of whole numbers the line through the middles of its steps."""
    steps = whole[row]
    k = np.where(steps, np.floor(x - 0.5), x)
    out = cdf(row, k)
    if steps.any():
        rise = cdf(row[steps], k[steps] + 1.0) - out[steps]
        out[steps] += (x[steps] - 0.5 - k[steps]) * rise
    return out


def _steps(a: Floats, b: Floats) -> tuple[Rows, Floats, Floats, Floats]:
    """Cut intervals at whole numbers: for each piece its interval, number, left end and length."""
    first = np.floor(a)
    count = (np.ceil(b) - first).astype(np.intp)
    part = np.repeat(np.arange(a.size), count)
    k = first[part] + np.arange(part.size) - (np.cumsum(count) - count)[part]
    left = np.maximum(k, a[part])
    return part, k, left, np.minimum(k + 1.0, b[part]) - left


def _integrated(curve: Distribution, row: Rows, a: Floats, b: Floats, total: Floats) -> Floats:
    """Add to the total of each row the integrals of its curve over intervals."""
    for halving in range(_HALVINGS + 1):
        if not row.size:
            break
        half, middle = 0.5 * (b - a), 0.5 * (a + b)
        x = middle[:, None] + half[:, None] * _NODES
        values = curve(np.repeat(row, _NODES.size), x.ravel()).reshape(x.shape)
        fine, coarse = half * (values @ _KRONROD), half * (values @ _GAUSS)
        hidden = np.abs(values[:, [0, -1]] - values[:, 1:-1] @ _ENDS).max(axis=1)
        error = np.maximum(np.abs(fine - coarse), half * _KRONROD[1] * hidden)
        enough = _TOLERANCE * (total + _sums(row, fine, total.size))
        rough = error > enough[row]
        if halving == _HALVINGS:
            rough[:] = False
        total = total + _sums(row[~rough], fine[~rough], total.size)
        row = np.tile(row[rough], 2)
        a, b = np.append(a[rough], middle[rough]), np.append(middle[rough], b[rough])
    return total


def _sums(row: Rows, values: Floats, n: int) -> Floats:
    return np.asarray(np.bincount(row, values, minlength=n), dtype=float)
