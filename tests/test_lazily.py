"""Names that are imported when they are first asked for."""

import subprocess
import sys

import pytest

import mercer.likelihoods
import mercer.posterior
from mercer.lazily import lazily


@pytest.mark.parametrize(
    "package", [mercer, mercer.estimators, mercer.likelihoods, mercer.posterior]
)
def test_every_public_name_is_found(package):
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert set(package.__all__) <= set(dir(package))
    for name in ("Nothing", "_nothing"):
        with pytest.raises(AttributeError, match=rf"has no attribute '{name}'"):
            getattr(package, name)


def test_a_name_is_looked_up_once(monkeypatch):
    monkeypatch.delattr(mercer.likelihoods, "Poisson", raising=False)
    get, _ = lazily("mercer.likelihoods", {"Poisson": "mercer.likelihoods.poisson"})
    first = get("Poisson")
    assert vars(mercer.likelihoods)["Poisson"] is first


def test_a_regression_waits_for_nothing_it_has_no_use_for():
    late = ("posterior.committee", "posterior.augmented", "likelihoods.poisson", "inference.ep")
    code = (
        "import sys, mercer; mercer.GPRegressor; "
        f"print([m for m in {late} if 'mercer.' + m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_names_are_listed_before_they_are_imported():
    code = (
        "from mercer import likelihoods, posterior\n"
        "print([n for p in (likelihoods, posterior) for n in p.__all__ if n not in dir(p)])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
