"""Covariances through a kernel's sections at given points, whatever kernel that is."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.base import BlockGradient, Kernel
from mercer.kernels.features import shape_of
from mercer.kernels.of_one import OfOne
from mercer.kernels.tiles import contract
from mercer.params import Parameter
from mercer.registry import storable

__all__ = ["EquivalentGP", "Flipped"]

Floats = NDArray[np.float64]

# Eigenvalues below this fraction of the largest one count as 0 in `Flipped`. Derivatives have the
# product of two eigenvalues below the line: with 1e-10 they keep six digits, with 1e-13 three.
_RANK_TOLERANCE = 1e-10


def _frozen_rows(kernel: Kernel, points: Any, name: str) -> Any:
    """Return a read-only copy of points that the kernel can take, at least one."""
    rows = np.array(kernel.inputs(points, name))
    if len(rows) == 0:
        raise ValueError(f"{name} must have at least one row")
    rows.setflags(write=False)
    return rows


class _Through(OfOne):
    """A covariance that goes through the inner kernel's sections at given points."""

    _tiled = False
    is_infinitely_divisible = False

    def _at(self) -> Any:
        raise NotImplementedError

    @property
    def is_mercer(self) -> bool:
        """True, whatever the kernel inside."""
        return True

    def _check_columns(self, d: int) -> None:
        points = self._at()
        if points is not None and self.is_numeric and points.shape[1] != d:
            raise ValueError(
                f"{type(self).__name__} has points of {points.shape[1]} columns, but the inputs "
                f"have {d}"
            )
        self.kernel._check_columns(d)

    def _both(self, A: Any, B: Any) -> tuple[Floats, Floats]:
        """Return the inner kernel's sections U (a, m) and V (b, m)."""
        U = self.kernel(A, self._at())
        return U, U if B is A else self.kernel(B, self._at())

    def _pulled(self, A: Any, dU: Floats, inputs: bool) -> tuple[Floats, Floats | None]:
        gradient = self.kernel.pullback(A, self._at(), dU, inputs=inputs)
        return gradient.theta, gradient.X


@storable
class EquivalentGP(_Through):
    """1/m sum_i k(x, x_i) k(x_i, x') over m points (BKM 116): the process of a kernel expansion.

    The expansion m^(-1/2) sum_i theta_i k(x, x_i), with independent coefficients of mean 0 and
    variance 1 and whatever density, has this covariance, and tends to a Gaussian process with it as
    points are added (BKM 114). (The paper's last sum has k(x_j, x') for k(x_i, x').)

    Parameters
    ----------
    kernel : Kernel
        Any kernel; it need not be a Mercer kernel, the result always is.
    points : array of shape (m, d), or what the kernel takes
        The points x_i, copied: a sample of the inputs.

    Notes
    -----
    k(X, Z) with n and n' rows costs (n + n') m values of the inner kernel and a product of
    matrices, n n' m; memory for these values and twice the result. The covariance has rank m.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import EquivalentGP, Tanh
    >>> X = np.linspace(-1.0, 1.0, 3)[:, None]
    >>> EquivalentGP(Tanh(), points=X)(X).round(4)
    array([[ 0.3867,  0.    , -0.3867],
           [ 0.    ,  0.    ,  0.    ],
           [-0.3867,  0.    ,  0.3867]])
    """

    def __init__(self, kernel: Kernel, points: Any) -> None:
        if not isinstance(kernel, Kernel):
            raise ValueError(f"EquivalentGP takes a kernel, got {kernel!r}")
        self.points = _frozen_rows(kernel, points, "points")
        self._set(kernel)

    def _options(self) -> dict[str, Any]:
        return {"points": self.points}

    def _at(self) -> Any:
        return self.points

    # a kernel of its squares

    def _log_size(self, widths: Floats) -> float:
        return 2.0 * self.kernel._log_size(widths)

    def _variances_inside(self, widths: Floats, variance: float) -> list[float]:
        return [float(np.sqrt(variance))]

    def _block(self, A: Any, B: Any) -> Floats:
        U, V = self._both(A, B)
        return np.asarray(U @ V.T) / len(self.points)

    def _diag(self, A: Any) -> Floats:
        U = self.kernel(A, self.points)
        return np.asarray(np.einsum("ij,ij->i", U, U)) / len(self.points)

    def _block_pullback(self, A: Any, B: Any, G: Floats, inputs: bool) -> BlockGradient:
        U, V = self._both(A, B)
        dU, dV = G @ V / len(self.points), G.T @ U / len(self.points)
        theta_A, dA = self._pulled(A, dU, inputs)
        theta_B, dB = self._pulled(B, dV, inputs)
        return BlockGradient(theta_A + theta_B, dA, dB, contract(dU, U))

    def _diag_pullback(self, A: Any, g: Floats, inputs: bool) -> BlockGradient:
        U = self.kernel(A, self.points)
        dU = 2.0 / len(self.points) * g[:, None] * U
        theta, dA = self._pulled(A, dU, inputs)
        return BlockGradient(theta, dA, None, 0.5 * contract(dU, U))

    def __repr__(self) -> str:
        return f"EquivalentGP({self.kernel!r}, points={shape_of(self.points)})"


class _Spectrum(NamedTuple):
    """K_AA = E diag(values) E', with what `Flipped` makes of it."""

    values: Floats  # (m,)
    E: Floats  # (m, m)
    inverse: Floats  # (m,): 1/|values|, 0 where these count as 0
    root: Floats  # (m, r): R with |K_AA|^-1 = R R'


@storable
class Flipped(_Through):
    """k_A(x)' |K_AA|^-1 k_A(x') with anchors A: a covariance made from an indefinite kernel.

    |K_AA| is the matrix absolute value: the eigenvectors of K_AA with the absolute values of its
    eigenvalues. On the anchors the covariance is |K_AA| itself: the negative part of the spectrum
    is turned over. For a Mercer kernel it is k on the anchors and what they explain of it
    elsewhere.

    Parameters
    ----------
    kernel : Kernel
        Any kernel; the one that `is_mercer` says is not a covariance.
    anchors : array of shape (m, d), or what the kernel takes, optional
        The anchors, copied. Without them an estimator takes its training inputs when it is fitted;
        until then the kernel cannot be evaluated.

    Notes
    -----
    The eigenvalues of K_AA cost about 10 m^3 operations, once for each value of the parameters;
    k(X, Z) then costs a product of matrices, m^2 a row. Eigenvalues below 1e-10 of the largest
    count as 0. The parameters of the inner kernel can be learned: the derivative goes through the
    eigenvectors (Daleckii and Krein's formula). The covariance has rank m.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Flipped, Tanh
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> K = Tanh(offset=-1.0)(X)
    >>> bool(np.linalg.eigvalsh(K)[0] < -0.1)
    True
    >>> bool(np.linalg.eigvalsh(Flipped(Tanh(offset=-1.0), anchors=X)(X))[0] > 0.1)
    True
    """

    def __init__(self, kernel: Kernel, anchors: Any = None) -> None:
        if not isinstance(kernel, Kernel):
            raise ValueError(f"Flipped takes a kernel, got {kernel!r}")
        self.anchors = None if anchors is None else _frozen_rows(kernel, anchors, "anchors")
        self._cache: _Spectrum | None = None
        self._set(kernel)

    def _options(self) -> dict[str, Any]:
        return {"anchors": self.anchors}

    def _with(self, parameters: dict[str, Parameter], children: tuple[Any, ...]) -> Self:
        new = super()._with(parameters, children)
        new._cache = None  # the eigenvalues belong to the old parameters
        return new

    def anchored(self, X: Any) -> Self:
        """Return a copy with the rows of X for anchors; one that has anchors keeps them."""
        kernel = self.kernel.anchored(X)
        return type(self)(kernel, X if self.anchors is None else self.anchors)

    def _at(self) -> Any:
        return self.anchors

    def _log_size(self, widths: Floats) -> float:
        return self.kernel._log_size(widths)

    def _spectrum(self) -> _Spectrum:
        # Computed once for each object, or, harmlessly, by two threads at the same time.
        if self._cache is None:
            if self.anchors is None:
                raise ValueError(
                    "Flipped has no anchors yet: an estimator takes its training inputs at fit; "
                    "elsewhere give them as Flipped(kernel, anchors) or call anchored(X)"
                )
            values, E = np.linalg.eigh(self.kernel(self.anchors))
            size = np.abs(values)
            kept = size > _RANK_TOLERANCE * np.max(size)
            inverse = np.divide(1.0, size, out=np.zeros_like(size), where=kept)
            root = np.ascontiguousarray(E[:, kept] * np.sqrt(inverse[kept]))
            self._cache = _Spectrum(values, E, inverse, root)
        return self._cache

    def _block(self, A: Any, B: Any) -> Floats:
        R = self._spectrum().root
        U, V = self._both(A, B)
        Phi = U @ R
        return Phi @ (Phi if V is U else V @ R).T

    def _diag(self, A: Any) -> Floats:
        Phi = self._spectrum().root.T @ self.kernel(A, self.anchors).T
        return np.asarray(np.einsum("ij,ij->j", Phi, Phi))

    def _block_pullback(self, A: Any, B: Any, G: Floats, inputs: bool) -> BlockGradient:
        R = self._spectrum().root
        U, V = self._both(A, B)
        GV = G @ V  # (a, m)
        dU, dV = (GV @ R) @ R.T, (G.T @ (U @ R)) @ R.T
        theta_A, dA = self._pulled(A, dU, inputs)
        theta_B, dB = self._pulled(B, dV, inputs)
        theta = theta_A + theta_B + self._pull_anchors(U.T @ GV)
        return BlockGradient(theta, dA, dB, contract(dU, U))

    def _diag_pullback(self, A: Any, g: Floats, inputs: bool) -> BlockGradient:
        R = self._spectrum().root
        U = self.kernel(A, self.anchors)
        gU = g[:, None] * U
        dU = 2.0 * (gU @ R) @ R.T
        theta, dA = self._pulled(A, dU, inputs)
        theta = theta + self._pull_anchors(U.T @ gU)
        return BlockGradient(theta, dA, None, 0.5 * contract(dU, U))

    def _pull_anchors(self, dM: Floats) -> Floats:
        """Chain dL/dM, M = |K_AA|^-1, through the eigenvectors to the kernel's parameters.

        dM = E (F o E' dK E) E' (Daleckii and Krein), where F holds the divided differences of
        f(t) = 1/|t|: F_ij = -f_i f_j (|t_i| - |t_j|)/(t_i - t_j), in which the fraction is the
        common sign where signs agree and is free of cancellation where they do not. An eigenvalue
        that counts as 0 is one: f_j = 0 and F_ij = sign(t_i) f_i^2, the derivative of a
        pseudo-inverse of constant rank.
        """
        if self.kernel.theta.size == 0:
            return np.empty(0)
        values, E, f, _ = self._spectrum()
        sign, size = np.sign(values), np.abs(values)
        agree = np.equal.outer(sign, sign)
        sums = np.add.outer(size, size)
        ratio = np.divide(
            sign[:, None] * np.subtract.outer(size, size),
            sums,
            out=np.zeros_like(sums),
            where=sums > 0,
        )
        F = -np.multiply.outer(f, f) * np.where(agree, sign[:, None], ratio)
        one_sided = np.multiply.outer(sign * f**2, f == 0.0)
        F += one_sided + one_sided.T
        T = E.T @ dM @ E
        S = E @ (F * (0.5 * (T + T.T))) @ E.T
        return self.kernel.pullback(self.anchors, None, S, inputs=False).theta

    def __repr__(self) -> str:
        anchors = None if self.anchors is None else shape_of(self.anchors)
        return f"Flipped({self.kernel!r}, anchors={anchors})"
