"""Kernels as values: they never change; equality, text and storage."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from mercer.errors import StorageError
from mercer.kernels import (
    RBF,
    ArcSine,
    Callable,
    Categorical,
    Constant,
    EquivalentGP,
    Features,
    Flipped,
    Kernel,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Tanh,
)
from mercer.params import LogNormal, Parameter

from .cases import A2, CASES, FUNCTIONS, SIGMA, TABLE, bumps, inputs, shared_letters
from .marks import every

# --- immutable, and never an alias ----------------------------------------------------------------


@every
def test_kernels_do_not_change(case):
    k = case.kernel
    for name in [*k.parameters, *k._options(), "anything"]:
        with pytest.raises(AttributeError):
            setattr(k, name, 3.0)
    rows = inputs(case, 5, 0)
    K, theta = k(rows), k.theta
    kept = np.array(rows, copy=True) if not isinstance(rows, list) else list(rows)
    for array in (k.theta, k.bounds, k(rows), k.diag(rows), k.gram_lower(rows)):
        array[...] = 7.0
    k.with_theta(k.theta + 1.0)
    np.testing.assert_array_equal(k(rows), K)
    np.testing.assert_array_equal(k.theta, theta)
    np.testing.assert_array_equal(rows, kept)


def test_arguments_are_copied():
    scales, points, table, sigma = np.ones(2), A2.copy(), TABLE.copy(), SIGMA.copy()
    kernels = [
        RBF(scales),
        Linear(length_scale=scales),
        EquivalentGP(RBF(), points),
        Flipped(RBF(), points),
        Precomputed(table),
        Features(bumps, sigma),
    ]
    rows = [TABLE[:2, :1] * 0 if isinstance(k, Precomputed) else A2[:2] for k in kernels]
    before = [k(r) for k, r in zip(kernels, rows, strict=True)]
    for array in (scales, points, table, sigma):
        array += 1.0
    for k, r, K in zip(kernels, rows, before, strict=True):
        np.testing.assert_array_equal(k(r), K)
    for array in (kernels[0].length_scale, kernels[2].points, kernels[3].anchors, kernels[4].K):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0


@every
def test_copies_and_pickles(case):
    rows = inputs(case, 5, 0)
    K = case.kernel(rows)
    for other in (
        copy.copy(case.kernel),
        copy.deepcopy(case.kernel),
        pickle.loads(pickle.dumps(case.kernel)),
    ):
        assert other == case.kernel
        np.testing.assert_array_equal(other(rows), K)


# --- equality, text, storage ----------------------------------------------------------------------


def test_equality():
    kernels = [case.kernel for case in CASES.values()]
    for i, a in enumerate(kernels):
        for j, b in enumerate(kernels):
            assert (a == b) == (i == j), (a, b)
    assert RBF(1.0) != RBF([1.0]) and RBF() != Matern() and RBF() != "RBF" and RBF() != 1.0
    assert RBF() != RBF(Parameter(1.0, fixed=True))
    assert Matern(1.0, nu=1.5) != Matern(1.0, nu=2.5)
    assert EquivalentGP(RBF(), A2) != EquivalentGP(RBF(), A2[:3])
    assert len({RBF(), RBF(1.0), RBF(2.0)}) == 2


REPRS = {
    "RBF(length_scale=2)": RBF(2.0),
    "RBF(length_scale=[1, 2])": RBF([1.0, 2.0]),
    "Matern(length_scale=1, nu=2.5)": Matern(nu=2.5),
    "RationalQuadratic(length_scale=1, alpha=0.5)": RationalQuadratic(alpha=0.5),
    "2 * RBF(length_scale=1) + Constant(variance=3)": 2.0 * RBF() + 3.0,
    "(RBF(length_scale=1) + Linear(offset=0)) * Periodic(length_scale=1, periodicity=2)": (
        RBF() + Linear()
    )
    * Periodic(periodicity=2.0),
    "2 * (RBF(length_scale=1) + Linear(offset=0))": 2.0 * (RBF() + Linear()),
    "Linear(offset=0.5, length_scale=2) ** 3": Linear(0.5, 2.0) ** 3,
    "(2 * RBF(length_scale=1)) ** 0.5": (2.0 * RBF()) ** 0.5,
    "RBF(length_scale=1).on([0, 2])": RBF().on([0, 2]),
    "(RBF(length_scale=1) + Linear(offset=0)).on([1])": (RBF() + Linear()).on(1),
    "Polynomial(offset=1, degree=3)": Polynomial(3),
    "Tanh(scale=1, offset=-2)": Tanh(offset=-2.0),
    "ArcSine(scale=1)": ArcSine(),
    "Categorical(correlation=0.5)": Categorical(),
    "Features(bumps, Sigma=<array of shape (3, 3)>)": Features(bumps, SIGMA),
    "EquivalentGP(Tanh(scale=1, offset=0), points=<array of shape (5, 2)>)": EquivalentGP(
        Tanh(), A2
    ),
    "Flipped(Tanh(scale=1, offset=0), anchors=None)": Flipped(Tanh()),
    "Flipped(Tanh(scale=1, offset=0), anchors=<array of shape (5, 2)>)": Flipped(Tanh(), A2),
    "Callable(shared_letters)": Callable(shared_letters),
    "Callable(shared_letters, is_mercer=False, vectorised=True)": Callable(
        shared_letters, is_mercer=False, vectorised=True
    ),
    "Precomputed(<array of shape (4, 4)>)": Precomputed(TABLE),
}


@pytest.mark.parametrize("text", REPRS)
def test_repr(text):
    assert repr(REPRS[text]) == text


@every
def test_repr_fits_a_screen(case):
    assert 0 < len(repr(case.kernel)) < 400 and "object at 0x" not in repr(case.kernel)


@every
def test_json_goes_there_and_back(case):
    text = case.kernel.to_json()
    again = Kernel.from_json(text, objects=FUNCTIONS)
    assert again == case.kernel and again.to_json() == text
    rows = inputs(case, 5, 0)
    np.testing.assert_array_equal(again(rows), case.kernel(rows))
    np.testing.assert_array_equal(again.bounds, case.kernel.bounds)


def test_json_keeps_bounds_priors_and_fixedness():
    k = Parameter(2.0, bounds=(1.0, np.inf)) * RBF(
        Parameter([1.0, 2.0], bounds=([0.1, 0.2], [10.0, 20.0]), prior=LogNormal(0.0, 1.0))
    ) + Constant(Parameter(0.5, fixed=True))
    assert Kernel.from_json(k.to_json()) == k


def test_functions_are_saved_by_name():
    text = Callable(shared_letters).to_json()
    with pytest.raises(StorageError, match="shared_letters"):
        Kernel.from_json(text)
    with pytest.raises(ValueError, match="no name"):
        Callable(lambda a, b: 1.0).to_json()
    with pytest.raises(ValueError, match="not of a kernel"):
        from mercer.registry import to_json

        Kernel.from_json(to_json(Parameter(1.0)))
