"""Every public kernel, likelihood, mean, engine and estimator, found by itself, keeps the rules.

Nothing here is a list of classes: `conformance/discovery.py` walks the package, and
`conformance/examples.py` has examples of what needs arguments.
"""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import compat, likelihoods
from mercer.estimators.classifier import BayesianClassifier
from mercer.estimators.regressor import BayesianRegressor
from mercer.kernels import Kernel
from mercer.likelihoods import Likelihood
from mercer.means import Mean
from mercer.params import Parametrised
from mercer.registry import storable
from mercer.testing import (
    classifier_rules,
    engine_rules,
    kernel_rules,
    likelihood_rules,
    mean_rules,
    regressor_rules,
)

from .conformance import discovery
from .conformance.coupled import coupled_rules
from .conformance.examples import (
    COUPLED,
    DEFECTS,
    ENGINES,
    ESTIMATORS,
    EXPECTED_FAILURES,
    KERNELS,
    LIKELIHOODS,
    MEANS,
    UNTESTED,
    Example,
)

REGISTRIES = {
    Kernel: ("KERNELS", KERNELS, kernel_rules),
    Likelihood: ("LIKELIHOODS", LIKELIHOODS, likelihood_rules),
    Mean: ("MEANS", MEANS, mean_rules),
}


@storable
class ByRulesNames(compat.GaussianProcessRegressor):
    """The drop-in under the names that the rules ask for; its kernel says what a spread is of."""

    @property
    def theta_(self):
        return self.kernel_.theta

    def predict(self, X, return_std=False, return_cov=False, latent=False):
        return super().predict(X, return_std, return_cov)

    def sample_y(self, X, n_samples=1, random_state=0, latent=False):
        # scikit-learn takes no generators, but a RandomState on one's bits
        bits = np.random.default_rng(random_state).bit_generator
        return super().sample_y(X, n_samples, np.random.RandomState(bits))


@storable
class ClassesByRulesNames(compat.GaussianProcessClassifier):
    """The drop-in for classes, likewise."""

    @property
    def theta_(self):
        return self.kernel_.theta


# Rules that the drop-ins break because scikit-learn's classes do, and why.
AS_SCIKIT_LEARN = {
    ("ByRulesNames(kernel=", "rule_predictive"): "spreads have the noise of the kernel in them",
    ("ByRulesNames", "rule_several_outputs"): "one column of targets is predicted without its axis",
    ("ByRulesNames", "rule_bad_arguments"): "two spreads at once are a RuntimeError",
    ("ClassesByRulesNames()", "rule_units_of_the_inputs"): "the default kernel is a unit RBF",
    ("ClassesByRulesNames()", "rule_evidence"): "of several classes it has no gradient",
    ("ClassesByRulesNames", "rule_types_of_labels"): "text as objects is predicted as text",
}
KNOWN = DEFECTS | AS_SCIKIT_LEARN
DROP_INS: dict[type, tuple[type, Any]] = {
    compat.GaussianProcessRegressor: (ByRulesNames, regressor_rules),
    compat.GaussianProcessClassifier: (ClassesByRulesNames, classifier_rules),
}


def examples_of(cls: type, registry: dict[type, list[Example]], name: str) -> list[Example]:
    """Return the examples of a class, or what its defaults build, there and a step away."""
    if cls in registry:
        return registry[cls]
    try:
        built = cls()
    except Exception as error:
        raise LookupError(
            f"{cls.__module__}.{cls.__name__} is public, has no example, and its defaults do not "
            f"build one ({type(error).__name__}: {error}): add "
            f"`{cls.__name__}: [Example({cls.__name__}(...))]` to {name} in "
            "tests/conformance/examples.py"
        ) from error
    if isinstance(built, Parametrised) and built.theta.size:
        step = 0.4 * np.cos(np.arange(built.theta.size))
        return [Example(built), Example(built.with_theta(built.theta + step))]
    return [Example(built)]


def marks(subject: str, rule: str) -> list[Any]:
    reasons = [
        why
        for (start, name), why in KNOWN.items()
        if (subject[: len(start)], rule) == (start, name)
    ]
    return [pytest.mark.xfail(strict=True, reason=reasons[0])] if reasons else []


def cases(
    subject: Any, make: Callable[..., Iterable[Any]], options: dict[str, Any]
) -> Iterator[Any]:
    """Yield a pytest parameter for each rule that applies."""
    for rule in make(subject, **options):
        name = f"{rule.subject}-{rule.name}".replace("::", ":")
        yield pytest.param(rule, id=name, marks=marks(rule.subject, rule.name))


def found(
    classes: Iterable[type], registry: dict[type, list[Example]], name: str, make: Any
) -> list[Any]:
    """Return the parameters of all classes; one without an example fails as a test, not here."""
    out: list[Any] = []
    for cls in classes:
        try:
            for example in examples_of(cls, registry, name):
                out += cases(example.subject, make, example.options)
        except LookupError as error:
            out.append(pytest.param(failing(str(error)), id=cls.__name__))
        except Exception as error:  # one class that fails to be built or fitted must not stop all
            text = f"{cls.__name__} cannot be tried: {type(error).__name__}: {error}"
            out.append(pytest.param(failing(text), id=cls.__name__))
    return out


def failing(text: str) -> Callable[[], None]:
    def rule() -> None:
        pytest.fail(text, pytrace=False)

    return rule


def components() -> list[Any]:
    return [
        case
        for base, (name, registry, make) in REGISTRIES.items()
        for case in found(discovery.subclasses_of(base), registry, name, make)
    ]


@pytest.mark.parametrize("rule", components())
def test_components(rule):
    rule()


def other_likelihoods() -> list[Any]:
    """Return the cases of what is public among likelihoods, but no scalar `Likelihood`."""
    out: list[Any] = []
    for name in discovery.names_of(likelihoods):
        cls = getattr(likelihoods, name)
        if not inspect.isclass(cls) or issubclass(cls, Likelihood):
            continue
        if cls in COUPLED:
            out += found([cls], COUPLED, "COUPLED", coupled_rules)
        else:
            text = (
                f"{name} is public in mercer.likelihoods and no Likelihood: derive it from that, "
                "or add an example to COUPLED in tests/conformance/examples.py, for which the "
                "rules for several latent values a row hold"
            )
            out.append(pytest.param(failing(text), id=name))
    return out


@pytest.mark.parametrize("rule", other_likelihoods())
def test_likelihoods_of_several_latent_values(rule):
    rule()


def test_a_likelihood_without_rules_fails(monkeypatch):
    class Ordinal:
        pass

    monkeypatch.setattr(likelihoods, "Ordinal", Ordinal, raising=False)
    monkeypatch.setattr(likelihoods, "__all__", [*likelihoods.__all__, "Ordinal"])
    last = other_likelihoods()[-1]
    with pytest.raises(pytest.fail.Exception, match=r"Ordinal is public .* no Likelihood"):
        last.values[0]()


# --- engines ----------------------------------------------------------------------------------


def engines() -> Iterator[Any]:
    for engine in discovery.engines():
        name = engine.__name__.rpartition(".")[2]
        try:
            yield from cases(engine, engine_rules, ENGINES.get(name, {}))
        except ValueError as error:
            text = (
                f"{engine.__name__} is a public module of mercer.inference but no engine ({error});"
                " give it these functions, or begin its name with an underscore"
            )
            yield pytest.param(failing(text), id=name)


@pytest.mark.parametrize("rule", list(engines()))
def test_engines(rule):
    rule()


# --- estimators -------------------------------------------------------------------------------


def estimators() -> list[type]:
    return discovery.subclasses_of(BaseEstimator, BayesianRegressor, BayesianClassifier)


def estimator_cases() -> Iterator[Any]:
    for cls in estimators():
        if issubclass(cls, BayesianRegressor):
            yield from found([cls], ESTIMATORS, "ESTIMATORS", regressor_rules)
        elif issubclass(cls, BayesianClassifier):
            yield from found([cls], ESTIMATORS, "ESTIMATORS", classifier_rules)
        elif cls in DROP_INS:
            named, rules = DROP_INS[cls]
            for example in examples_of(cls, ESTIMATORS, "ESTIMATORS"):
                drop_in = named(**example.subject.get_params(deep=False))
                yield from cases(drop_in, rules, example.options)
        else:
            text = (
                f"{cls.__name__} is a public estimator for which mercer.testing has no rules: "
                "derive it from BayesianRegressor or BayesianClassifier, or write rules for it"
            )
            yield pytest.param(failing(text), id=cls.__name__)


@pytest.mark.parametrize("rule", list(estimator_cases()))
def test_estimators(rule):
    rule()


def instances(place: int) -> list[Any]:
    """Return one example of each estimator: scikit-learn's checks fit it a hundred times."""
    out = []
    for cls in estimators():
        try:
            out += [e.subject for e in examples_of(cls, ESTIMATORS, "ESTIMATORS")[place:][:1]]
        except LookupError:
            continue  # a test of its own fails, above
    return out


def expected_failures(estimator: Any) -> dict[str, str]:
    return EXPECTED_FAILURES.get(type(estimator).__name__, {})


def quietly(check: Callable[[Any], None], estimator: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check(estimator)


@parametrize_with_checks(instances(0), expected_failed_checks=expected_failures)
def test_scikit_learns_checks(estimator, check):
    quietly(check, estimator)


@pytest.mark.slow
@parametrize_with_checks(instances(1), expected_failed_checks=expected_failures)
def test_scikit_learns_checks_of_another_example(estimator, check):
    quietly(check, estimator)


def test_estimators_have_a_kind():
    assert estimators()
    for cls in estimators():
        assert issubclass(cls, (RegressorMixin, ClassifierMixin)), cls


# --- the discovery itself, and what every public name has -------------------------------------


def test_discovery_finds_what_is_there():
    """A walk that finds nothing would pass every test above."""
    names = {str(p) for p in discovery.public()}
    for name in (
        "mercer.BayesianCommitteeRegressor",
        "mercer.GPClassifier",
        "mercer.GPRegressor",
        "mercer.SparseGPClassifier",
        "mercer.SparseGPRegressor",
        "mercer.certificate",
        "mercer.kernels.RBF",
        "mercer.likelihoods.Gaussian",
        "mercer.means.Linear",
        "mercer.errors.MercerError",
        "mercer.registry.storable",
        "mercer.inference.exact.ExactProblem",
        "mercer.testing.check_kernel",
    ):
        assert name in names
    assert "mercer.inference.exact" in {m.__name__ for m in discovery.engines()}


def test_registered_components_are_public():
    """A kernel that can be saved but not imported from its package would escape the rules."""
    from mercer.registry import _CLASSES

    offered = {p.value for p in discovery.public() if inspect.isclass(p.value)}
    for name, cls in _CLASSES.items():
        if cls.__module__.startswith("mercer.") and issubclass(cls, (Kernel, Likelihood, Mean)):
            assert cls in offered, f"{name} is in no __all__ of a package"


def test_defects_are_of_objects_that_exist():
    known = {
        (p.values[0].subject, p.values[0].name)
        for p in [*components(), *estimator_cases()]
        if hasattr(p.values[0], "subject")
    }
    names = {str(p) for p in discovery.public()}
    assert not set(UNTESTED) - names, "no longer public"
    for start, rule in KNOWN:
        assert any(s.startswith(start) and r == rule for s, r in known), (start, rule)


PUBLIC = [
    p for p in discovery.public() if callable(p.value) and not isinstance(p.value, ModuleType)
]


@pytest.mark.parametrize("name", PUBLIC, ids=str)
def test_public_names_have_docstrings(name):
    own = vars(name.value).get("__doc__") if inspect.isclass(name.value) else name.value.__doc__
    assert own and not discovery.is_generated(own, name.name), (
        f"{name} has no docstring: say in one line what it is"
    )


def names_in(code: str) -> set[str]:
    """Return the names that code uses, imports or takes as attributes; comments are no use."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Name():
                names.add(node.id)
            case ast.Attribute():
                names.add(node.attr)
            case ast.alias():
                names.update(node.name.split("."))
    return names


USED = set().union(
    *(
        names_in(path.read_text(encoding="utf-8"))
        for path in discovery.TESTS.rglob("*.py")
        if path not in discovery.EXAMPLES
    )
)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            p,
            id=str(p),
            marks=[pytest.mark.xfail(strict=True, reason=UNTESTED[str(p)])]
            if str(p) in UNTESTED
            else [],
        )
        for p in filter(discovery.stands_alone, discovery.public())
    ],
)
def test_public_names_are_tested(name):
    assert name.name in USED, f"{name} is public, but no test uses it"


def test_a_mention_is_no_use():
    code = 'import a.b\nfrom c import d as e\nf.g(h)  # i\nj = "k"\ndef l():\n    """m"""\n'
    assert names_in(code) == {"a", "b", "d", "f", "g", "h", "j"}


def test_a_class_without_an_example_is_told_what_to_add():
    class Needy:
        def __init__(self, argument):
            raise AssertionError

    (parameter,) = found([Needy], {}, "KERNELS", kernel_rules)
    with pytest.raises(pytest.fail.Exception, match=r"Needy.*add .*Example.*KERNELS"):
        parameter.values[0]()
