"""A scikit-learn kernel, as it is, behind Mercer's interface."""

from __future__ import annotations

import inspect
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.compute import row_blocks
from mercer.kernels.base import BlockGradient, Kernel
from mercer.kernels.tiles import contract, numeric_rows
from mercer.linalg.differences import STEP, pull_rows
from mercer.params import Parameter, positive
from mercer.registry import storable

__all__ = ["SklearnKernel", "parameter_of"]

Floats = NDArray[np.float64]


@storable
class SklearnKernel(Kernel):
    """A scikit-learn kernel, evaluated by calling it.

    For kernels that Mercer has no form of its own for: `PairwiseKernel`, and those that users
    write. :func:`from_sklearn` converts the others, which are faster then.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        The kernel, copied. Its hyperparameters are this kernel's parameters, with their values,
        bounds and fixedness.
    is_mercer : bool, default True
        Your word that every Gram matrix is positive semi-definite.

    Notes
    -----
    Derivatives in the parameters come from the kernel's ``eval_gradient``, which scikit-learn
    defines for a single set of rows, so the rows of two are stacked: each tile costs four times its
    share. `PairwiseKernel`, and kernels without ``eval_gradient``, are differentiated by central
    differences, as is every kernel in its inputs. Only scikit-learn's own classes can be saved.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import PairwiseKernel
    >>> from mercer.kernels import SklearnKernel
    >>> SklearnKernel(PairwiseKernel(gamma=2.0, metric="laplacian"))
    SklearnKernel(PairwiseKernel(gamma=2.0, metric=laplacian))
    """

    def __init__(self, kernel: Any, is_mercer: bool = True) -> None:
        from sklearn.gaussian_process import kernels as skl

        if not isinstance(kernel, skl.Kernel) or isinstance(kernel, skl.CompoundKernel):
            raise ValueError(f"SklearnKernel takes one scikit-learn kernel, got {kernel!r}")
        self._mercer = bool(is_mercer)
        self._sk = _clone(kernel)
        hyper = self._sk.hyperparameters
        values = self._sk.get_params()
        self._set(**{h.name: parameter_of(h, values[h.name]) for h in hyper})
        logs = [p.theta for h in hyper if not h.fixed for p in [self._parameters[h.name]]]
        if not np.allclose(np.concatenate([*logs, np.empty(0)]), self._sk.theta):
            raise ValueError(
                f"theta of {kernel!r} is not the logarithm of its hyperparameters; write a kernel "
                "of mercer.kernels.Kernel instead"
            )

    @property
    def kernel(self) -> Any:
        """The scikit-learn kernel at the current parameters (a copy)."""
        return _clone(self._sk)

    @property
    def is_mercer(self) -> bool:
        """What the constructor was told."""
        return self._mercer

    @property
    def is_numeric(self) -> bool:  # type: ignore[override]
        """Whether the kernel takes rows of numbers, which scikit-learn's kernels say themselves."""
        return bool(self._sk.requires_vector_input)

    def _options(self) -> dict[str, Any]:
        return {"kernel": self._sk, "is_mercer": self._mercer}

    def _with(self, parameters: dict[str, Parameter], children: tuple[Any, ...]) -> Self:
        new = super()._with(parameters, children)
        new._sk = _clone(self._sk)
        new._sk.set_params(**{name: _plain(p.value) for name, p in parameters.items()})
        return new

    def with_parameters(self, **parameters: Any) -> Self:
        """Return a new kernel with some of its parameters replaced, by numbers or others."""
        unknown = set(parameters) - set(self._parameters)
        if unknown:
            raise ValueError(f"{self!r} has no parameter {sorted(unknown)}")
        return self._with({n: positive(n, p) for n, p in parameters.items()}, ())

    def to_state(self) -> dict[str, Any]:
        """Return the class and arguments of a kernel that is scikit-learn's own."""
        return {
            "kernel": _describe(self._sk),
            "is_mercer": self._mercer,
            "parameters": self.parameters,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild from `to_state`."""
        return cls(_rebuild(state["kernel"]), state["is_mercer"])._with(state["parameters"], ())

    def _check_columns(self, d: int) -> None:
        pass  # what a vector's components stand for is known to the kernel alone

    # --- one tile -----------------------------------------------------------------------------

    def _block(self, A: Any, B: Any) -> Floats:
        # never with one argument, where a WhiteKernel would add its noise
        return np.array(self._sk(A, B), dtype=float)

    def _diag(self, A: Any) -> Floats:
        return _diagonal(self._sk, A)

    def _gives_gradient(self) -> bool:
        from sklearn.gaussian_process.kernels import PairwiseKernel

        # PairwiseKernel's own gradient is a one-sided difference with a step of 1e-10
        arguments = inspect.signature(self._sk.__call__).parameters
        return "eval_gradient" in arguments and not isinstance(self._sk, PairwiseKernel)

    def _log_gradient(self, values: Any, G: Floats) -> Floats:
        """Return by central differences d sum(G * values(kernel)) / d(the kernel's theta)."""
        theta = self._sk.theta
        out = np.empty(theta.size)
        for k in range(theta.size):
            step = np.zeros(theta.size)
            step[k] = STEP
            up, down = (self._sk.clone_with_theta(t) for t in (theta + step, theta - step))
            out[k] = contract(G, values(up) - values(down)) / (2.0 * STEP)
        return out

    def _theta(self, logs: Floats) -> Floats:
        """Pick the derivatives in the free parameters from those in scikit-learn's theta."""
        gradients: dict[str, ArrayLike] = {}
        start = 0
        for h in self._sk.hyperparameters:
            if h.fixed:
                continue
            p = self._parameters[h.name]
            if p.is_free:
                gradients[h.name] = logs[start : start + p.size] / np.atleast_1d(p.value)
            start += p.size
        return self._own_gradient(**gradients)

    def _block_pullback(self, A: Any, B: Any, G: Floats, inputs: bool) -> BlockGradient:
        a = len(A)
        if self.theta.size and self._gives_gradient():
            K, dK = self._sk(np.concatenate([A, B]), eval_gradient=True)
            inner = contract(G, K[:a, a:])
            theta = self._theta(np.einsum("ij,ijk->k", G, dK[:a, a:]))
        else:
            inner = contract(G, self._block(A, B))
            theta = self._theta(self._log_gradient(lambda sk: sk(A, B), G))
        if not inputs:
            return BlockGradient(theta, None, None, inner)
        numeric_rows(A, "SklearnKernel")
        dA = pull_rows(lambda moved: self._block(moved, B), A, G)
        dB = pull_rows(lambda moved: self._block(A, moved).T, B, G.T)
        return BlockGradient(theta, dA, dB, inner)

    def _diag_pullback(self, A: Any, g: Floats, inputs: bool) -> BlockGradient:
        inner = contract(g, self._diag(A))
        if self.theta.size and self._gives_gradient():
            logs = np.zeros(self._sk.theta.size)
            for s in row_blocks(len(A), 32):  # all but the diagonal is thrown away
                dK = self._sk(A[s], eval_gradient=True)[1]
                logs += np.einsum("i,iik->k", g[s], dK)
            theta = self._theta(logs)
        else:
            theta = self._theta(self._log_gradient(lambda sk: _diagonal(sk, A), g))
        if not inputs:
            return BlockGradient(theta, None, None, inner)
        numeric_rows(A, "SklearnKernel")
        return BlockGradient(theta, pull_rows(self._diag, A, g), None, inner)

    def __repr__(self) -> str:
        extra = "" if self._mercer else ", is_mercer=False"
        return f"SklearnKernel({self._sk!r}{extra})"


def _diagonal(kernel: Any, A: Any) -> Floats:
    # some of scikit-learn's kernels cannot be given no rows
    return np.array(kernel.diag(A), dtype=float) if len(A) else np.empty(0)


def parameter_of(hyperparameter: Any, value: Any) -> Parameter:
    """Make the `Parameter` of a scikit-learn hyperparameter and its value."""
    array = np.asarray(value, dtype=float)
    value = float(array.reshape(-1)[0]) if array.size == 1 else array
    if hyperparameter.fixed:
        return positive(hyperparameter.name, Parameter(value, fixed=True), zero=True)
    limits = np.atleast_2d(np.asarray(hyperparameter.bounds, dtype=float))
    # scikit-learn permits a bound of 0, of which there is no logarithm
    low = np.where(limits[:, 0] > 0, limits[:, 0], 1e-10)
    high = limits[:, 1]
    if np.all(low == high):
        return positive(hyperparameter.name, Parameter(value, fixed=True), zero=True)
    bounds = (low, high) if array.size > 1 else (float(low[0]), float(high[0]))
    return positive(hyperparameter.name, Parameter(value, bounds=bounds), zero=True)


def _plain(value: float | Floats) -> float | Floats:
    return value if isinstance(value, float) else np.array(value)


def _clone(kernel: Any) -> Any:
    from sklearn.base import clone

    return clone(kernel)


def _describe(kernel: Any) -> dict[str, Any]:
    from sklearn.gaussian_process import kernels as skl

    name = type(kernel).__name__
    if getattr(skl, name, None) is not type(kernel):
        raise ValueError(
            f"{kernel!r} cannot be saved: {name} is not one of scikit-learn's own kernels; write "
            "it as a kernel of Mercer's, registered with mercer.registry.storable"
        )
    arguments = {
        k: _describe(v) if isinstance(v, skl.Kernel) else v
        for k, v in kernel.get_params(deep=False).items()
    }
    return {"sklearn": name, "arguments": arguments}


def _rebuild(description: dict[str, Any]) -> Any:
    from sklearn.gaussian_process import kernels as skl

    cls = getattr(skl, description["sklearn"], None)
    if not (isinstance(cls, type) and issubclass(cls, skl.Kernel)):
        raise ValueError(f"scikit-learn has no kernel {description['sklearn']!r}")
    arguments = {}
    for name, value in description["arguments"].items():
        if isinstance(value, dict) and "sklearn" in value:
            value = _rebuild(value)
        elif isinstance(value, list):  # a pair of bounds: what is saved as a list was a tuple
            value = tuple(value)
        arguments[name] = value
    return cls(**arguments)
