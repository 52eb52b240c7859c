"""Kernels with one defect each: an RBF but for one thing."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.kernels import RBF, Tanh
from mercer.registry import storable


@storable
class Asymmetric(RBF):
    """k(x, x') is not k(x', x)."""

    def _block(self, A, B):
        return super()._block(A, B) * (1.0 + 0.01 * (A[:, :1] - B[:, 0]))


@storable
class WrongShape(RBF):
    """The matrix comes out transposed."""

    def __call__(self, X, Z=None, out=None):
        return super().__call__(X, Z, out).T


@storable
class WrongDiagonal(RBF):
    """The diagonal forgets nothing but the truth."""

    def _diag(self, A):
        return np.full(len(A), 1.1)


@storable
class SeesOtherRows(RBF):
    """An entry depends on the other rows of its tile."""

    def _block(self, A, B):
        return super()._block(A, B) * (1.0 + 0.001 * len(A))

    def _diag(self, A):
        return super()._diag(A) * (1.0 + 0.001 * len(A))


@storable
class SeesTheTile(RBF):
    """Tiles of full size are a little off."""

    def _block(self, A, B):
        return super()._block(A, B) * (1.001 if len(A) == 256 else 1.0)


@storable
class WrongProduct(RBF):
    """The product with a vector leaves the last row out."""

    def _times(self, A, B, V):
        return super()._times(A, B[:-1], V[:-1])


@storable
class WrongSquares(RBF):
    """The product with the squares of the values is that with the values."""

    def _times_both(self, A, B, U, V, squared):
        return super()._times_both(A, B, U, V, False)


@storable
class Indefinite(Tanh):
    """Says it is a covariance, and is none."""

    @property
    def is_mercer(self):
        return True


@storable
class WrongParameterSlope(RBF):
    """dL/dtheta lacks a factor."""

    def _block_pullback(self, A, B, G, inputs):
        part = super()._block_pullback(A, B, G, inputs)
        return part._replace(theta=1.01 * part.theta)


@storable
class WrongInputSlope(RBF):
    """dL/dX has the wrong sign."""

    def _block_pullback(self, A, B, G, inputs):
        part = super()._block_pullback(A, B, G, inputs)
        return part._replace(A=None if part.A is None else -part.A)


@storable
class ForgetsTheSecondInput(RBF):
    """dL/dZ is 0."""

    def _block_pullback(self, A, B, G, inputs):
        part = super()._block_pullback(A, B, G, inputs)
        return part._replace(B=None if part.B is None else 0.0 * part.B)


@storable
class WrongDiagonalSlope(RBF):
    """The diagonal's derivative in theta is not 0, as it should be."""

    def _diag_pullback(self, A, g, inputs):
        part = super()._diag_pullback(A, g, inputs)
        return part._replace(theta=part.theta + np.sum(g))


@storable
class NotANumberAtZero(RBF):
    """Derivatives divide by the distance."""

    def _block_pullback(self, A, B, G, inputs):
        part = super()._block_pullback(A, B, G, inputs)
        near = np.any(np.all(A[:, None] == B[None], axis=2) & ~np.eye(len(A), len(B), dtype=bool))
        return part._replace(theta=part.theta * (np.nan if near else 1.0))


@storable
class WrongInner(RBF):
    """`inner` is not sum(G * K), which a factor in front of the kernel needs."""

    def _block_pullback(self, A, B, G, inputs):
        part = super()._block_pullback(A, B, G, inputs)
        return part._replace(inner=0.0)


@storable
class WritesIntoCotangent(RBF):
    """G is multiplied in place."""

    def _block_pullback(self, A, B, G, inputs):
        part = super()._block_pullback(A, B, G, inputs)
        G *= 2.0
        return part


@storable
class WritesIntoRows(RBF):
    """Rows are centred in place."""

    def _block(self, A, B):
        A -= 0.0
        return super()._block(A, B)


@storable
class RemembersItsResult(RBF):
    """The same array is returned each time."""

    def diag(self, X):
        if "_kept" not in self.__dict__:
            self.__dict__["_kept"] = super().diag(X)
        kept = self.__dict__["_kept"]
        return kept if len(kept) == len(X) else super().diag(X)


@storable
class Changeable(RBF):
    """Attributes can be set."""

    def __setattr__(self, name, value):
        self.__dict__[name] = value


@storable
class AliasedTheta(RBF):
    """theta is the kernel's own array."""

    @property
    def theta(self):
        return self.__dict__.setdefault("_flat", super().theta)

    def _with(self, parameters, children):
        new = super()._with(parameters, children)
        new.__dict__.pop("_flat", None)
        return new


@storable
class ForgetsItsOption(RBF):
    """An option that changes the values is not stored."""

    def __init__(self, length_scale=1.0, sharpness=1.0):
        self.sharpness = sharpness
        super().__init__(length_scale)

    def _block(self, A, B):
        return super()._block(A, B) ** self.sharpness


class NotRegistered(RBF):
    """No @storable."""


@storable
class PicklesItsDefaults(RBF):
    """A pickle has the default parameters."""

    def __reduce__(self):
        return (PicklesItsDefaults, ())


@storable
class NeverEqual(RBF):
    """Equality is identity."""

    def __eq__(self, other):
        return self is other

    __hash__ = RBF.__hash__


@storable
class TakesNaN(RBF):
    """Inputs are not checked."""

    def inputs(self, X, name="X"):
        return np.ascontiguousarray(X, dtype=float)


@storable
class UpperTriangle(RBF):
    """`gram_lower` fills the other triangle."""

    def gram_lower(self, X, out=None):
        return np.asfortranarray(np.triu(self(X)))


@storable
class IgnoresOut(RBF):
    """`out` is not filled."""

    def __call__(self, X, Z=None, out=None):
        return super().__call__(X, Z)


@storable
class CountsAsTrue(RBF):
    """A flag is a number."""

    is_infinitely_divisible = 1


@storable
class MovesItself(RBF):
    """Bounds from the data move the parameter."""

    def with_bounds_from(self, widths, variance):
        return super().with_bounds_from(widths, variance).with_theta(self.theta + 0.1)


@storable
class ArraysOnly(RBF):
    """A list is taken for its logarithm, or so it seems."""

    def inputs(self, X, name="X"):
        return super().inputs(X, name) * (1.0 if isinstance(X, np.ndarray) else 1.001)


@storable
class WantsRows(RBF):
    """No rows are too few, without a reason."""

    def diag(self, X):
        return super().diag(X) if len(X) else np.zeros(1)


@storable
class WrongDiagonalInputs(RBF):
    """The diagonal seems to depend on the inputs."""

    def _diag_pullback(self, A, g, inputs):
        part = super()._diag_pullback(A, g, inputs)
        return part._replace(A=None if part.A is None else part.A + 0.1)


@storable
class AlwaysInputs(RBF):
    """`inputs=False` is not heard."""

    def pullback_diag(self, X, g, *, inputs=True):
        return super().pullback_diag(X, g, inputs=True)


@storable
class TakesAnyCotangent(RBF):
    """A g of the wrong length is cut."""

    def pullback_diag(self, X, g, *, inputs=True):
        return super().pullback_diag(X, g[: len(X)], inputs=inputs)


@storable
class OneNameTooFew(RBF):
    """theta has parts without a name."""

    @property
    def parameter_names(self):
        return super().parameter_names[1:]


@storable
class ChangesInPlace(RBF):
    """`with_theta` changes the kernel itself."""

    def with_theta(self, theta):
        new = super().with_theta(theta)
        vars(self).update(vars(new))
        return self


@storable
class TakesAnyTheta(RBF):
    """A theta that is too long is cut."""

    def with_theta(self, theta):
        return super().with_theta(np.nan_to_num(theta)[: self.theta.size])


@storable
class ForgetsBounds(RBF):
    """`with_parameters` drops the parameters it is given."""

    def with_parameters(self, **parameters):
        super().with_parameters(**parameters)
        return type(self)(1.0)


@storable
class NeverFixed(RBF):
    """A fixed parameter stays in theta."""

    def __init__(self, length_scale=1.0):
        super().__init__(length_scale)
        own = {name: p.replace(fixed=False) for name, p in self._parameters.items()}
        self._parameters = own


@storable
class WrongPriorSlope(RBF):
    """The hyperprior's derivative is that in the length scale, not in theta."""

    def log_prior_gradient(self):
        return super().log_prior_gradient() / self.length_scale


@storable
class TwoLines(RBF):
    """The repr runs over two lines."""

    def __repr__(self):
        return f"TwoLines(\n{self.length_scale})"


KERNELS: dict[str, Any] = {
    "rule_symmetry": Asymmetric(1.3),
    "rule_shapes": WrongShape(1.3),
    "rule_diagonal": WrongDiagonal(1.3),
    "rule_pairwise": SeesOtherRows(1.3),
    "rule_tiles": SeesTheTile(1.3),
    "rule_times": WrongProduct(1.3),
    "rule_gram_times": WrongSquares(1.3),
    "rule_positive_semidefinite": Indefinite(0.7, -0.4),
    "rule_pullback_parameters": [WrongParameterSlope(1.3), 1e-9 * WrongParameterSlope(1.3)],
    "rule_pullback_parameters_of_one_set": WrongParameterSlope([1.3, 0.7]),
    "rule_pullback_inputs": [WrongInputSlope(1.3), 1e-9 * WrongInputSlope(1.3)],
    "rule_pullback_inputs_of_one_set": ForgetsTheSecondInput(1.3),
    "rule_pullback_diag_parameters": WrongDiagonalSlope(1.3),
    "rule_coincident_points": NotANumberAtZero(1.3),
    "rule_composition": WrongInner(1.3),
    "rule_cotangent_is_kept": WritesIntoCotangent(1.3),
    "rule_rows_are_only_read": WritesIntoRows(1.3),
    "rule_results_are_fresh": RemembersItsResult(1.3),
    "rule_immutable": Changeable(1.3),
    "rule_theta_is_a_copy": AliasedTheta(1.3),
    "rule_json": [NotRegistered(1.3), ForgetsItsOption(1.3, 2.0)],
    "rule_pickle": PicklesItsDefaults(1.3),
    "rule_equality": NeverEqual(1.3),
    "rule_bad_inputs": TakesNaN(1.3),
    "rule_gram_lower": UpperTriangle(1.3),
    "rule_out": IgnoresOut(1.3),
    "rule_flags": CountsAsTrue(1.3),
    "rule_bounds_from_data": MovesItself(1.3),
    "rule_input_forms": ArraysOnly(1.3),
    "rule_no_rows": WantsRows(1.3),
    "rule_pullback_diag_inputs": WrongDiagonalInputs(1.3),
    "rule_pullback_without_inputs": AlwaysInputs(1.3),
    "rule_bad_cotangents": TakesAnyCotangent(1.3),
    "rule_theta": OneNameTooFew(1.3),
    "rule_with_theta": ChangesInPlace(1.3),
    "rule_bad_theta": TakesAnyTheta(1.3),
    "rule_with_parameters": ForgetsBounds(1.3),
    "rule_fixed_parameters": NeverFixed(1.3),
    "rule_hyperprior": WrongPriorSlope(1.3),
    "rule_repr": TwoLines(1.3),
}
