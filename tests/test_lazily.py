"""Names that are imported when they are first asked for."""

import importlib
import subprocess
import sys

import pytest

import mercer.likelihoods
import mercer.posterior
from mercer import registry
from mercer.lazily import lazily


@pytest.mark.parametrize(
    "package", [mercer, mercer.estimators, mercer.likelihoods, mercer.posterior]
)
def test_every_public_name_is_found(package):
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match=r"has no attribute 'Nothing'"):
        package.Nothing  # noqa: B018


def test_a_name_is_looked_up_once(monkeypatch):
    monkeypatch.delattr(mercer.likelihoods, "Poisson", raising=False)
    first = lazily("mercer.likelihoods", {"Poisson": "mercer.likelihoods.poisson"})("Poisson")
    assert vars(mercer.likelihoods)["Poisson"] is first


def test_a_regression_waits_for_nothing_it_has_no_use_for():
    late = ("posterior.committee", "posterior.augmented", "likelihoods.poisson", "inference.ep")
    code = (
        "import sys, mercer; mercer.GPRegressor; "
        f"print([m for m in {late} if 'mercer.' + m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_every_storable_class_can_be_read_by_a_process_that_has_not_imported_it():
    for module in registry._ELSEWHERE:
        importlib.import_module(module)
    homes = {cls.__module__ for cls in registry._CLASSES.values()}
    homes = {home for home in homes if home.startswith("mercer.")}
    code = (
        "import importlib, sys\n"
        "from mercer import registry\n"
        "for module in registry._ELSEWHERE: importlib.import_module(module)\n"
        f"print(sorted(set({sorted(homes)}) - set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
