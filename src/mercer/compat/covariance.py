"""The covariance that a scikit-learn kernel stands for: its evidence, and its process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.compat.translation import Translation, translate
from mercer.inference.exact import ExactProblem, Solution, evidence, solve
from mercer.kernels import Constant, Kernel
from mercer.linalg import mirror_lower

__all__ = ["Covariance", "covariance_of"]

Floats = NDArray[np.float64]
Pull = Callable[[Floats, float, float], Floats]


@dataclass(frozen=True)
class Covariance:
    """A scikit-learn kernel, as Mercer's engine takes it.

    given : the scikit-learn kernel, at the parameters to use
    kernel : the Mercer kernel of the process
    noise : the variance of white noise that is no part of `kernel`
    translation : how the one became the other; None where `kernel` calls what was given
    """

    given: Any
    kernel: Kernel
    noise: float
    translation: Translation | None

    @property
    def is_definite(self) -> bool:
        """Whether every matrix of the kernel is known to be positive semi-definite."""
        return self.translation is not None and bool(self.kernel.is_mercer)

    def solve(self, X: Any, Y: Floats, alpha: Floats) -> Solution:
        """Factorise K + diag(alpha) over the rows of X, for targets Y (n, P).

        Nothing is added to the diagonal beyond what was given.
        """
        return solve(ExactProblem(self.kernel, X, Y, alpha + self.noise, jitter=0.0))

    def evidence(self, X: Any, Y: Floats, alpha: Floats) -> tuple[float, Floats]:
        """Return the log evidence and its gradient, over the given kernel's theta."""
        kernel, pull = self.differentiable(X)
        solution, adjoints = evidence(ExactProblem(kernel, X, Y, alpha + self.noise, jitter=0.0))
        noise = float(np.sum(adjoints.noise))
        return solution.log_evidence, pull(adjoints.K, adjoints.factor, noise)

    def differentiable(self, X: Any) -> tuple[Kernel, Pull]:
        """Return the kernel for an engine, and what takes the engine's adjoints to theta.

        That is a function of dL/dK (its lower triangle), a factor of it, and dL/d(noise variance).
        """
        if self.translation is None:
            return self._given_with_gradient(X)
        translation = self.translation

        def pull(G: Floats, factor: float, noise: float) -> Floats:
            pulled = self.kernel.pullback(X, None, G, inputs=False).theta
            gradient = translation.gradient(factor * pulled, noise)
            # Where rows are too far apart for a length scale, NumPy's exponential and with it
            # scikit-learn's derivative is 0. Mercer's ends at 1e-304 and leaves a remnant, and
            # L-BFGS-B looks at the sign of a derivative at a bound, however small it is: it would
            # go another way. Here, since the tiles that add up to the derivative cannot know how
            # small it is.
            gradient[np.abs(gradient) < 1e-200] = 0.0
            return gradient

        return self.kernel, pull

    def _given_with_gradient(self, X: Any) -> tuple[Kernel, Pull]:
        K, dK = self.given(X, eval_gradient=True)

        def pull(G: Floats, factor: float, noise: float) -> Floats:
            return np.asarray(factor * np.einsum("ij,ijk->k", mirror_lower(G), dK))

        return AsGiven(self.given, K), pull


class AsGiven(Kernel):
    """A scikit-learn kernel that is called for whole matrices, as scikit-learn calls it.

    With one set of rows it has its white noise, with two it has none, and its diagonal is what its
    own `diag` says. Inputs are handed on as they come.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    gram : array of shape (n, n), optional
        Its matrix over the training rows, where that has been evaluated.
    """

    _tiled = False
    is_mercer = True

    def __init__(self, kernel: Any, gram: Any = None) -> None:
        self._given, self._gram = kernel, gram
        self._set()

    def inputs(self, X: Any, name: str = "X") -> Any:
        """Return X."""
        return X

    def _options(self) -> dict[str, Any]:
        return {"kernel": self._given}

    def _block(self, A: Any, B: Any) -> Floats:
        return np.array(self._given(A, B), dtype=float)

    def _diag(self, A: Any) -> Floats:
        return np.array(self._given.diag(A), dtype=float)

    def __call__(self, X: Any, Z: Any = None, out: Floats | None = None) -> Floats:
        """Return the matrix, with white noise on its diagonal when Z is left out."""
        if Z is not None:
            return super().__call__(X, Z, out)
        K = self._square(X, self._given(X))
        if out is None:
            return K
        out[...] = K
        return out

    def gram_lower(self, X: Any, out: Floats | None = None) -> Floats:
        """Return the matrix over the rows of X in Fortran order."""
        K = self._square(X, self._given(X) if self._gram is None else self._gram)
        if out is None:
            return np.array(K, order="F")
        out[...] = K
        return out

    def _square(self, X: Any, K: Any) -> Floats:
        matrix: Floats = np.asarray(K, dtype=float)
        if matrix.shape != (len(X), len(X)):
            raise ValueError(
                f"the kernel {self._given} must give a matrix of shape {(len(X), len(X))} for "
                f"{len(X)} rows, it gave shape {matrix.shape}"
            )
        return matrix


def covariance_of(kernel: Any, X: Any) -> Covariance:
    """Return the covariance of a scikit-learn kernel for inputs like X: translated if possible."""
    translation = None
    if kernel.requires_vector_input:
        translation = translate(kernel, X.shape[1])
    if translation is None:
        return Covariance(kernel, AsGiven(kernel), 0.0, None)
    process = Constant(0.0) if translation.kernel is None else translation.kernel
    return Covariance(kernel, process, translation.noise_variance, translation)
