"""The functions of relevance vectors at some of the rows, and at all."""

from __future__ import annotations

import numpy as np

from mercer.estimators.laplacian_rows import merged
from mercer.estimators.relevance_frame import Frame, Model
from mercer.evidence.relevance_engines import Numbers
from mercer.kernels import RBF, Tanh
from mercer.means import Constant
from mercer.priors import Flat

from .relevance_data import rows, waves


def test_models_of_some_rows_are_models_of_all():
    X, y = rows(40)
    X[5] = X[3]
    own = merged(X, y[:, None], None, np.arange(40), RBF(1.0))
    some = own.take(np.arange(0, 40, 3))
    engine = lambda r, offset, always: Numbers(r.Y, offset, None, Flat(), always)  # noqa: E731
    model = Model(own, None, Constant(), np.ones(1), False, engine)
    frame = Frame(model, (RBF(1.0), Tanh(0.5)), None, waves)
    beta = frame.coefficients(own)
    few = frame.dictionary(some)
    found = frame.engine(some, beta).solve(few.columns(), None, 0.1)
    carried = frame.carried(some, own, found)
    got = frame.dictionary(own).columns().take(carried[0].fit.indices)
    rows_of = np.flatnonzero(np.isin(own.first, some.first))
    wanted = few.columns().take(found[0].fit.indices)
    order = np.argsort(found[0].fit.precisions)
    same = np.argsort(carried[0].fit.precisions)
    np.testing.assert_allclose(got[rows_of][:, same], wanted[:, order], rtol=1e-12)
