"""Parameters by path: `get_params` and `with_params`."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import PairwiseKernel

from mercer import means
from mercer.kernels import (
    RBF,
    Callable,
    Categorical,
    EquivalentGP,
    Features,
    Flipped,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    SklearnKernel,
    Tanh,
)
from mercer.likelihoods import Gaussian
from mercer.params import LogNormal, Parameter

POINTS = np.array([[0.1, 0.4], [1.2, -0.7], [-0.8, 0.3]])


def waves(X):
    return np.sin(X)


def inner(a, b):
    return float(np.dot(a, b))


THINGS = [
    RBF(),
    RBF([1.0, 2.0]),
    RBF(Parameter([1.0, 2.0], bounds=([0.1, 0.2], 10.0), prior=LogNormal())),
    Matern(2.0, nu=1.5),
    RationalQuadratic(1.0, alpha=Parameter(2.0, fixed=True)),
    Periodic(),
    Linear(),
    Linear(0.5, length_scale=2.0),
    Polynomial(3),
    Tanh(),
    Categorical(0.3),
    Features(waves, np.eye(2)),
    Callable(inner, vectorised=False),
    Precomputed(np.eye(3)),
    Flipped(Tanh()),
    Flipped(Tanh(), POINTS),
    EquivalentGP(RBF(), POINTS),
    SklearnKernel(PairwiseKernel(gamma=0.7, metric="laplacian")),
    2.0 * RBF() + RBF([1.0, 2.0]).on([0, 1]) * Linear().on("age") + 1.0,
    (RBF() + 0.5 * Matern()) ** 2,
    Gaussian(),
    Gaussian(0.1),
    Gaussian(Parameter(0.1, bounds=(0.01, 1.0))),
    Gaussian([0.1, 0.2]),
    Gaussian([0.1, 0.2], new_noise=0.3),
    means.Zero(),
    means.Constant(),
    means.Constant(2.0, estimate=None),
    means.Linear(1.0, [2.0, 3.0]),
    means.Linear([1.0, 2.0], [[2.0, 3.0], [4.0, 5.0]], estimate=None),
    means.Function(waves),
]


@pytest.mark.parametrize("thing", THINGS, ids=repr)
def test_what_get_params_says_changes_nothing(thing):
    before = thing.get_params()
    assert thing.with_params(**thing.get_params(deep=False)) == thing
    assert thing.with_params(**before) == thing
    assert thing.with_params() is thing
    assert set(thing.get_params(deep=False)) <= set(before)


@pytest.mark.parametrize("thing", THINGS, ids=repr)
def test_clones_are_the_thing_itself(thing):
    assert clone(thing) is thing
    assert clone([thing], safe=False)[0] is thing


def test_paths_are_those_of_parameter_names():
    for thing in THINGS:
        paths = {name.split("[")[0].replace(".", "__") for name in thing.parameter_names}
        assert paths <= set(thing.get_params())


def test_names_of_a_composite():
    kernel = 2.0 * RBF() + 3.0 * Matern([1.0, 2.0], nu=1.5).on([0, 1]) + Linear()
    assert list(kernel.get_params()) == [
        "Scaled1",
        "Scaled1__variance",
        "Scaled1__RBF",
        "Scaled1__RBF__length_scale",
        "Scaled2",
        "Scaled2__variance",
        "Scaled2__On",
        "Scaled2__On__columns",
        "Scaled2__On__Matern",
        "Scaled2__On__Matern__length_scale",
        "Scaled2__On__Matern__nu",
        "Linear",
        "Linear__offset",
        "Linear__length_scale",
    ]
    assert list(kernel.get_params(deep=False)) == ["Scaled1", "Scaled2", "Linear"]
    new = kernel.with_params(
        Scaled1__variance=5.0,
        Scaled2__On__Matern__nu=2.5,
        Scaled2__On__Matern__length_scale=7.0,
        Linear__length_scale=[1.0, 4.0],
    )
    assert new == 5.0 * RBF() + 3.0 * Matern(7.0, nu=2.5).on([0, 1]) + Linear(
        length_scale=[1.0, 4.0]
    )
    assert kernel == 2.0 * RBF() + 3.0 * Matern([1.0, 2.0], nu=1.5).on([0, 1]) + Linear()


def test_a_number_keeps_bounds_hyperprior_and_fixedness():
    given = Parameter(1.0, bounds=(0.1, 10.0), prior=LogNormal(), fixed=True)
    kept = (2.0 * RBF(given)).with_params(RBF__length_scale=3.0).kernel.parameters["length_scale"]
    assert kept == given.replace(value=3.0, transform="log")
    replaced = RBF(given).with_params(length_scale=Parameter(3.0))
    assert replaced == RBF(3.0)
    assert Linear(length_scale=given).with_params(length_scale=None) == Linear()
    assert Gaussian(0.1).with_params(noise=[0.1, 0.2]) == Gaussian([0.1, 0.2])
    assert Gaussian().with_params(noise=0.5) == Gaussian(0.5)
    assert means.Constant(1.0, estimate=None).with_params(value=2.0) == means.Constant(
        2.0, estimate=None
    )
    wrapped = SklearnKernel(PairwiseKernel(gamma=0.7, metric="laplacian"))
    assert wrapped.with_params(gamma=0.2).kernel.gamma == 0.2


def test_parts_can_be_replaced_and_then_varied():
    kernel = 2.0 * RBF() + Linear()
    assert kernel.with_params(Linear=Periodic()) == 2.0 * RBF() + Periodic()
    assert kernel.with_params(Scaled__RBF=Matern(), Scaled__RBF__nu=0.5) == (
        2.0 * Matern(nu=0.5) + Linear()
    )
    # sums within sums are one, as where they are written down
    assert kernel.with_params(Linear=RBF() + Linear()) == 2.0 * RBF() + RBF() + Linear()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"length": 1.0},
            "Sum has no parameter 'length'; its parameters: Scaled, Scaled__variance, Scaled__RBF",
        ),
        ({"RBF__length_scale": 1.0}, "Sum has no parameter 'RBF__length_scale'"),
        ({"Scaled__RBF__length": 1.0}, r"RBF has no parameter 'length'; its param.*: length_scale"),
        ({"Linear__offset__x": 1.0}, "Linear has no parameter 'offset__x'"),
        ({"Scaled__RBF__length_scale": -1.0}, "length_scale must be positive"),
        ({"Scaled": 3.0}, "Sum takes kernels, got 3.0"),
        ({"Scaled__RBF": None}, "Scaled takes a kernel, got None"),
    ],
)
def test_what_cannot_be_changed(change, text):
    with pytest.raises(ValueError, match=text):
        (2.0 * RBF() + Linear()).with_params(**change)
    with pytest.raises(ValueError, match="Zero has no parameter 'value'; its parameters: none"):
        means.Zero().with_params(value=1.0)


def test_equal_things_hash_alike_for_caches():
    for make in (lambda: 2.0 * RBF([1.0, 2.0]) + Linear().on("a"), lambda: Gaussian(0.1)):
        assert joblib.hash(make()) == joblib.hash(make())
        assert hash(make()) == hash(make())
    assert joblib.hash(RBF(1.0)) != joblib.hash(RBF(2.0))
