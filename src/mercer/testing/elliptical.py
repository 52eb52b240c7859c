"""An elliptical slice sampler: the posterior of latent values itself, up to chance.

The approximate engines are held against it where there are too many rows for a grid.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.linalg import semidefinite_root

__all__ = ["elliptical_slice"]

Floats = NDArray[np.float64]


def elliptical_slice(
    log_likelihood: Callable[[Floats], float],
    covariance: ArrayLike,
    n_samples: int,
    *,
    mean: ArrayLike | None = None,
    start: ArrayLike | None = None,
    n_burn: int = 200,
    thin: int = 1,
    rng: np.random.Generator | int | None = None,
) -> Floats:
    """Draw latent values from the density proportional to N(f; mean, covariance) exp(l(f)).

    Murray, Adams and MacKay's sampler (2010): a step goes along an ellipse through the present
    state and a draw from the prior, to a random place on it where l is above a random level.
    There is nothing to tune and no step is rejected. Draws follow each other closely where the
    likelihood says much more than the prior; then `thin` them, and count fewer in error bars.

    Parameters
    ----------
    log_likelihood : callable
        l: takes (n,) latent values, returns a number. -inf and NaN stand for likelihood 0.
    covariance : array of shape (n, n)
        Of the prior; it may be singular.
    n_samples : int
        How many draws to return.
    mean : array of shape (n,), optional
        Of the prior; zero without it.
    start : array of shape (n,), optional
        The first state, of likelihood above 0; the prior mean without it.
    n_burn : int, default 200
        How many steps to take before the first draw is kept.
    thin : int, default 1
        How many steps lead from one kept draw to the next.
    rng : Generator, int or None
        Where the randomness comes from.

    Returns
    -------
    samples : array of shape (n_samples, n)

    Notes
    -----
    A step costs one product with a root of the covariance, O(n^2), and a handful of evaluations
    of l.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.testing import elliptical_slice
    >>> observed = lambda f: -0.5 * np.sum((1.0 - f) ** 2) / 0.25
    >>> samples = elliptical_slice(observed, [[1.0]], 4000, rng=0)
    >>> bool(abs(samples.mean() - 0.8) < 0.05)
    True
    """
    K = np.asarray(covariance, dtype=float)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or not np.all(np.isfinite(K)):
        raise ValueError(f"covariance must be a finite square matrix, got shape {K.shape}")
    for name, value, least in (
        ("n_samples", n_samples, 1),
        ("n_burn", n_burn, 0),
        ("thin", thin, 1),
    ):
        if value != int(value) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    n = len(K)
    m = _vector("mean", mean, np.zeros(n))
    f = _vector("start", start, m) - m
    rng = np.random.default_rng(rng)
    root = semidefinite_root(K)

    def height(g: Floats) -> float:
        with np.errstate(all="ignore"):
            value = float(log_likelihood(m + g))
        return -np.inf if np.isnan(value) else value

    now = height(f)
    if now == -np.inf:
        raise ValueError("the likelihood is 0 at the first state; give a `start` where it is not")
    samples = np.empty((n_samples, n))
    for step in range(-n_burn, n_samples * thin):
        f, now = _step(height, f, now, root @ rng.standard_normal(n), rng)
        if step >= 0 and (step + 1) % thin == 0:
            samples[step // thin] = m + f
    return samples


def _step(
    height: Callable[[Floats], float],
    f: Floats,
    now: float,
    other: Floats,
    rng: np.random.Generator,
) -> tuple[Floats, float]:
    """Return the next state and its height; `other` is a draw from the prior about 0."""
    level = now - rng.exponential()
    angle = rng.uniform(0.0, 2.0 * np.pi)
    low, high = angle - 2.0 * np.pi, angle
    while high - low > 1e-14:
        g = f * np.cos(angle) + other * np.sin(angle)
        value = height(g)
        if value > level:
            return g, value
        # the present state, at angle 0, stays inside
        low, high = (angle, high) if angle < 0 else (low, angle)
        angle = rng.uniform(low, high)
    return f, now


def _vector(name: str, given: ArrayLike | None, default: Floats) -> Floats:
    if given is None:
        return default
    out = np.array(given, dtype=float)
    if out.shape != default.shape or not np.all(np.isfinite(out)):
        raise ValueError(f"{name} must be {default.size} finite numbers, got shape {out.shape}")
    return out
