"""Terms of a kernel that nothing scales, where the targets are far larger than their functions.

k(x, x) of `RBF()` is 1, whatever the targets. Where these are in the thousands the evidence is the
highest with nearly all of them taken for noise, and the function is lost.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mercer.errors import ConvergenceWarning, warn
from mercer.evidence.guarded import Guarded
from mercer.evidence.latent import LatentObjective
from mercer.evidence.maximise import lbfgs
from mercer.evidence.optimum import Optimum, Recorder
from mercer.kernels import Constant, Kernel, Precomputed, Scaled, SklearnKernel, Sum
from mercer.kernels.dot import Dot
from mercer.likelihoods import Likelihood
from mercer.likelihoods.spread import spread_of

__all__ = ["unscaled_terms", "warn_if_too_small"]

Floats = NDArray[np.float64]

# By how many nats a model with a variance must do better; and one more for each of its parameters,
# since a search finds something in noise too.
_MUCH = 5.0
# What a model must gain at once, for a search from there to be worth its time.
_SOME = 1.0
# What part of what was taken for noise they are given in it: where there is a signal it gains with
# that little, and with more it loses if the length scales are not the right ones yet.
_PART = 0.3
# How many iterations a search from there may have.
_STEPS = 10


def unscaled_terms(kernel: Kernel) -> list[Kernel]:
    """Return the terms of a sum whose size no parameter tells, free or fixed.

    Examples
    --------
    >>> from mercer.evidence.unscaled import unscaled_terms
    >>> from mercer.kernels import RBF, Linear
    >>> unscaled_terms(RBF() + 0.5 * Linear())
    [RBF(length_scale=1)]
    """
    return [term for term in _terms(kernel) if not _is_scaled(term)]


def _terms(kernel: Kernel) -> tuple[Kernel, ...]:
    """Return the terms as they are written; `shares.terms_of` multiplies them out."""
    return kernel.kernels if isinstance(kernel, Sum) else (kernel,)


def _is_scaled(kernel: Kernel) -> bool:
    if isinstance(kernel, Scaled | Constant | SklearnKernel):  # the last has what it has
        return True
    if isinstance(kernel, Dot):
        return kernel.length_scale is not None
    inside = [k for k in kernel.get_params(deep=False).values() if isinstance(k, Kernel)]
    scaled = [_is_scaled(each) for each in inside]
    return bool(scaled) and (all(scaled) if isinstance(kernel, Sum) else any(scaled))


def warn_if_too_small(objective: Guarded, optimum: Optimum) -> None:
    """Warn of terms without a variance, where one would make the targets far more probable.

    It is looked for where these terms are smaller than the noise: one or two models are tried in
    which they share with it what was taken for noise (beside noise that is given they have a part
    of the targets' spread), and if one gains there is a short search from it. One that does better
    by several nats is proof, so that there is no alarm where the targets are noise indeed.

    The fit is finished by then: Ctrl-C and want of memory end this alone, without a word.
    """
    kernel, likelihood, *_ = objective.unpack(optimum.theta)
    noisy = isinstance(likelihood, Likelihood) and likelihood.adds_noise
    # "map" may have climbed another value
    known = objective.inference != "map" and optimum.status != "interrupted"
    if not (noisy and known and unscaled_terms(kernel)):
        return
    value = _without_priors(objective, optimum.theta, optimum.value)
    try:
        better = _better(objective, optimum, value)
    except (KeyboardInterrupt, MemoryError):
        return
    if better is None:
        return
    shown, remedy = "the kernel matrix", "multiply it by the variance of the targets"
    if not isinstance(kernel, Precomputed):
        terms = unscaled_terms(objective.kernel)  # as they were written, or a sample has left them
        shown = " + ".join(map(repr, terms))
        # sums are flat, so that none of their terms needs brackets
        remedy = "write " + " + ".join(f"1.0 * {term!r}" for term in terms)
    latent = isinstance(objective, LatentObjective)
    units = "divide y by its spread" if latent else "give normalize_y=True"
    what = "evidence" if objective.criterion == "evidence" else "leave-one-out density"
    lost = (
        "what of the targets is larger than its functions was taken for noise"
        if likelihood.theta.size
        else "the spread of the targets is far larger than the kernel and the given noise allow"
    )
    warn(
        f"{shown} has no variance that could be learned, and {lost}: the log {what} is "
        f"{value:.6g}, that with a variance {better:.6g} or more. For it {remedy}, or {units}",
        ConvergenceWarning,
    )


def _better(objective: Guarded, optimum: Optimum, value: float) -> float | None:
    """Return the value of a model whose terms are larger, None if none is much higher."""
    latent = isinstance(objective, LatentObjective)
    trials = (_latent_trials if latent else _gaussian_trials)(objective, optimum)
    best, start = value + _SOME, None
    for trial in trials:
        found = _without_priors(trial, trial.theta, trial.value(trial.theta))
        trial.release()
        if found > value + _MUCH + trial.theta.size:
            return found
        if found > best:
            best, start = found, trial
    if start is None:
        return None
    recorder = Recorder(start, start.bounds, directions=start.directions)
    end = lbfgs(recorder, start.theta, start.bounds, _STEPS)
    best = _without_priors(start, end.theta, end.value)
    return best if best > value + _MUCH + start.theta.size else None


def _without_priors(objective: Guarded, theta: Floats, value: float) -> float:
    return value - sum(float(part.log_prior()) for part in objective.unpack(theta))


def _gaussian_trials(objective: Guarded, optimum: Optimum) -> Iterator[Guarded]:
    """Give objectives in which the terms without a variance have a part of what was noise.

    Noise that is given stays as it is, and they have a part of the targets' spread beside it.
    """
    kernel, likelihood, *_ = objective.unpack(optimum.theta)
    if not likelihood.theta.size:
        weights = objective.data.weights
        variance = float(np.mean([spread_of(y, weights) ** 2 for y in objective.latent.T]))
        for grown in _grown_to(objective, kernel, variance):
            yield objective.under(grown, likelihood, optimum.theta)
        return
    noise = likelihood.parameters["noise"]
    variance = float(noise.value)
    less = (1.0 - _PART) * variance
    if noise.bounds is not None and less < noise.bounds[0]:
        return
    quieter = likelihood.with_parameters(noise=noise.replace(value=less))
    for grown in _grown_to(objective, kernel, variance):
        yield objective.under(grown, quieter, optimum.theta)


def _latent_trials(objective: Guarded, optimum: Optimum) -> Iterator[Guarded]:
    """Give objectives in which those terms have a part of the targets' spread beside the noise."""
    kernel, likelihood, *_ = objective.unpack(optimum.theta)
    variance = spread_of(objective.data.y, objective.data.weights) ** 2
    for grown in _grown_to(objective, kernel, variance):
        yield objective.under(grown, likelihood, optimum.theta)


def _grown_to(objective: Guarded, kernel: Kernel, variance: float) -> Iterator[Kernel]:
    """Give kernels in which the terms without a variance have a part of this one.

    They are that of the end of the search and, where its length scales are others, that of the
    start: the search may have led them astray, as they said next to nothing. None where the terms
    are large already.
    """
    X = objective.data.X
    rows = X[:: max(1, len(X) // 200)]
    same = np.allclose(kernel.theta, objective.kernel.theta, rtol=0.0, atol=0.1)
    for begun in (kernel,) if same else (kernel, objective.kernel):
        size = float(np.mean(sum(term.diag(rows) for term in unscaled_terms(begun))))
        if 0 < size < _PART * variance:
            yield _grown(begun, _PART * variance / size)


def _grown(kernel: Kernel, factor: float) -> Kernel:
    terms = [term if _is_scaled(term) else Scaled(factor, term) for term in _terms(kernel)]
    return Sum(*terms) if isinstance(kernel, Sum) else terms[0]
