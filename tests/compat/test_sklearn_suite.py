"""scikit-learn's own tests of its regressor, collected here with Mercer's class in its place."""

from __future__ import annotations

import pytest
from sklearn.gaussian_process import GaussianProcessRegressor as Original

from mercer.compat import GaussianProcessRegressor

from .suite import check_collection, collect

# Deliberate differences: the name of a test, and the reason why it does not hold here. At most 5.
DIFFERENT: dict[str, str] = {}

# scikit-learn runs them without turning warnings into errors.
pytestmark = pytest.mark.filterwarnings("ignore")

_module = collect(
    "sklearn.gaussian_process.tests.test_gpr",
    Original,
    GaussianProcessRegressor,
    DIFFERENT,
    globals(),
)


def test_the_class_is_swapped_and_every_test_is_collected():
    check_collection(_module, Original, GaussianProcessRegressor, DIFFERENT, globals(), least=30)
