"""Rules for all that has parameters: kernels, likelihoods and means."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.means import Mean
from mercer.params import LogNormal, Parametrised
from mercer.registry import from_json, to_json
from mercer.testing.compare import close, expect, identical, refused, slope
from mercer.testing.rules import Rules

__all__ = ["PARAMETRISED", "ParametrisedCase", "functions_of", "subject_of"]

Floats = NDArray[np.float64]


class ParametrisedCase(Protocol):
    """What these rules need of a case."""

    @property
    def subject(self) -> Parametrised:
        """The object."""

    @property
    def objects(self) -> dict[str, Callable[..., Any]]:
        """Functions by name, which a stored object is given back."""

    def values(self, subject: Any) -> Floats:
        """Return numbers that tell one object from another, in an array of their own."""


PARAMETRISED: Rules[ParametrisedCase] = Rules()


def subject_of(thing: Any) -> str:
    """Name an object in a message."""
    text = re.sub(r" at 0x[0-9a-f]+", "", " ".join(repr(thing).split()))
    return text if len(text) <= 80 else f"{text[:77]}..."


def functions_of(thing: Parametrised) -> dict[str, Callable[..., Any]]:
    """Return the functions that an object and its children hold, by name."""
    found = {
        value.__name__: value
        for value in thing.to_state().values()
        if callable(value) and hasattr(value, "__name__")
    }
    for child in thing._children:
        found |= functions_of(child)
    return found


def _has_theta(case: ParametrisedCase) -> str:
    return "" if case.subject.theta.size else "it has no free parameters"


def _has_parameters(case: ParametrisedCase) -> str:
    return "" if case.subject.parameters else "it has no parameters of its own"


def _can_be_fixed(case: ParametrisedCase) -> str:
    return (
        "a mean's coefficients are held by estimate=None" if isinstance(case.subject, Mean) else ""
    )


@PARAMETRISED.add()
def rule_theta(case: ParametrisedCase) -> None:
    """`theta` (p,), `bounds` (p, 2) and `parameter_names` describe the same p numbers."""
    it = case.subject
    theta, bounds, names = it.theta, it.bounds, it.parameter_names
    expect(theta.ndim == 1 and theta.dtype == np.float64, "a flat theta of doubles", theta)
    expect(np.all(np.isfinite(theta)), "a finite theta", theta)
    expect(bounds.shape == (theta.size, 2), f"bounds of shape {(theta.size, 2)}", bounds)
    expect(np.all(bounds[:, 0] < bounds[:, 1]), "lower bounds below upper bounds", bounds)
    plain = all(isinstance(name, str) for name in names)
    expect(
        plain and len(set(names)) == len(names) == theta.size, f"{theta.size} unique names", names
    )


@PARAMETRISED.add()
def rule_with_theta(case: ParametrisedCase) -> None:
    """`with_theta` returns a new object with that theta and leaves the old one alone."""
    it = case.subject
    theta, before = it.theta.copy(), case.values(it)
    moved = theta + 0.1 * np.cos(np.arange(theta.size))
    new = it.with_theta(moved)
    expect(type(new) is type(it), f"a {type(it).__name__}", new)
    close("theta of with_theta(theta)", new.theta, moved, rtol=1e-12, atol=1e-12)
    identical("theta of the old object", it.theta, theta)
    identical("the old object's values", case.values(it), before)
    back = new.with_theta(theta)
    size = float(np.max(np.abs(before), initial=0.0))
    close("values after theta went there and back", case.values(back), before, 1e-9, 1e-9 * size)


@PARAMETRISED.add(_has_theta)
def rule_theta_is_a_copy(case: ParametrisedCase) -> None:
    """Writing into `theta`, `bounds` or what `with_theta` was given changes no object."""
    it = case.subject
    theta, bounds, before = it.theta.copy(), it.bounds.copy(), case.values(it)
    it.theta[:] = 7.0
    it.bounds[:] = 7.0
    identical("theta after writing into a returned one", it.theta, theta)
    identical("bounds after writing into returned ones", it.bounds, bounds)
    given = theta.copy()
    new = it.with_theta(given)
    kept = new.theta.copy()
    given[:] = 7.0
    identical("theta after writing into the array given to with_theta", new.theta, kept)
    identical("values after all that", case.values(it), before)


@PARAMETRISED.add()
def rule_bad_theta(case: ParametrisedCase) -> None:
    """A theta of the wrong length, or with NaN, and an unknown parameter are refused."""
    it = case.subject
    refused("a theta too long", lambda: it.with_theta(np.zeros(it.theta.size + 1)), "theta")
    if it.theta.size:
        refused("a theta with NaN", lambda: it.with_theta(np.full(it.theta.size, np.nan)), "theta")
    refused("an unknown parameter", lambda: it.with_parameters(no_such_parameter=1.0), "no_such")


@PARAMETRISED.add()
def rule_immutable(case: ParametrisedCase) -> None:
    """Attributes can be neither set nor deleted, and arrays cannot be written into."""
    it, before = case.subject, case.values(case.subject)
    for name in [*it.parameters, "colour"]:
        refused(f"setting {name}", partial(setattr, it, name, 1.0), error=AttributeError)
    for name, parameter in it.parameters.items():
        refused(f"deleting {name}", partial(delattr, it, name), error=AttributeError)
        value = parameter.value
        if isinstance(value, np.ndarray):
            expect(not value.flags.writeable, f"a read-only array {name}", value)
    identical("values afterwards", case.values(it), before)


@PARAMETRISED.add(_has_parameters)
def rule_with_parameters(case: ParametrisedCase) -> None:
    """`with_parameters` replaces one parameter and keeps all else."""
    it = case.subject
    for name, parameter in it.parameters.items():
        same = it.with_parameters(**{name: parameter})
        expect(same == it, f"an equal object after putting {name} back", same)


@PARAMETRISED.add(_has_parameters, _can_be_fixed)
def rule_fixed_parameters(case: ParametrisedCase) -> None:
    """A parameter that is fixed leaves theta, and the values stay as they are."""
    it = case.subject
    for name, parameter in it.parameters.items():
        held = it.with_parameters(**{name: parameter.replace(fixed=True)})
        left = it.theta.size - (parameter.size if parameter.is_free else 0)
        expect(held.theta.size == left, f"{left} free numbers with {name} fixed", held.theta)
        identical(f"values with {name} fixed", case.values(held), case.values(it))


@PARAMETRISED.add(_has_theta)
def rule_hyperprior(case: ParametrisedCase) -> None:
    """`log_prior_gradient` is the derivative of `log_prior` in theta."""
    it = case.subject
    for name, parameter in it.parameters.items():
        if parameter.is_free and parameter.transform == "log":
            it = it.with_parameters(**{name: parameter.replace(prior=LogNormal(0.3, 0.8))})
    wanted = slope(lambda theta: it.with_theta(theta).log_prior(), it.theta)
    close("log_prior_gradient", it.log_prior_gradient(), wanted, rtol=1e-6, atol=1e-7)


@PARAMETRISED.add()
def rule_equality(case: ParametrisedCase) -> None:
    """Objects rebuilt from their state are equal with equal hashes; others differ."""
    it = case.subject
    again = type(it).from_state(it.to_state())
    expect(again == it, "an object rebuilt from to_state() to be equal", again)
    expect(hash(again) == hash(it), "equal objects to have equal hashes", (hash(again), hash(it)))
    expect((it == "something else") is False, "a string to be unequal", True)
    if it.theta.size:
        moved = it.with_theta(it.theta + 0.5)
        expect(moved != it, "an object with another theta to be unequal", moved)


@PARAMETRISED.add()
def rule_repr(case: ParametrisedCase) -> None:
    """The repr is one line that names parameters by their values."""
    text = repr(case.subject)
    expect(text and "\n" not in text, "one line of text", text)
    expect(" object at 0x" not in text, "a repr without memory addresses", text)
    expect(len(text) <= 500, "at most 500 characters", text)


@PARAMETRISED.add()
def rule_json(case: ParametrisedCase) -> None:
    """The JSON description brings back an equal object with the same values, bit for bit."""
    it = case.subject
    text = to_json(it)
    back = from_json(text, case.objects)
    expect(type(back) is type(it), f"a {type(it).__name__} from its description", back)
    expect(back == it, "the object from its description to be equal", back)
    identical("values of the object from its description", case.values(back), case.values(it))
    expect(to_json(back) == text, "the same description again", to_json(back))


@PARAMETRISED.add()
def rule_pickle(case: ParametrisedCase) -> None:
    """Pickles and copies are equal, with the same values, bit for bit."""
    it = case.subject
    for what, twin in {
        "a pickle": pickle.loads(pickle.dumps(it)),
        "a copy": copy.copy(it),
        "a deep copy": copy.deepcopy(it),
    }.items():
        expect(twin == it, f"{what} to be equal", twin)
        identical(f"values of {what}", case.values(twin), case.values(it))
