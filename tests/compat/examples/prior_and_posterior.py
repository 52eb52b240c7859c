"""What several kernels say before any data, and after a handful of points."""

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
)

rng = np.random.RandomState(4)
X_train = rng.uniform(0, 5, 10).reshape(-1, 1)
y_train = np.sin((X_train[:, 0] - 2.5) ** 2)
X = np.linspace(0, 5, 50).reshape(-1, 1)

kernels = {
    "rbf": 1.0 * RBF(length_scale=1.0, length_scale_bounds=(1e-1, 10.0)),
    "rational quadratic": 1.0
    * RationalQuadratic(length_scale=1.0, alpha=0.1, alpha_bounds=(1e-5, 1e15)),
    "periodic": 1.0
    * ExpSineSquared(
        length_scale=1.0,
        periodicity=3.0,
        length_scale_bounds=(0.1, 10.0),
        periodicity_bounds=(1.0, 10.0),
    ),
    "dot product": ConstantKernel(0.1, (0.01, 10.0))
    * (DotProduct(sigma_0=1.0, sigma_0_bounds=(0.1, 10.0)) ** 2),
    "matern": 1.0 * Matern(length_scale=1.0, length_scale_bounds=(1e-1, 10.0), nu=1.5),
}

results = {}
for name, kernel in kernels.items():
    units = name == "dot product"
    model = GaussianProcessRegressor(kernel=kernel, random_state=0, normalize_y=units)
    results[f"{name}: prior mean"], results[f"{name}: prior std"] = model.predict(
        X, return_std=True
    )
    results[f"{name}: prior draws, shape"] = np.array(model.sample_y(X, n_samples=5).shape)
    model.fit(X_train, y_train)
    results[f"{name}: evidence"] = model.log_marginal_likelihood(model.kernel_.theta)
    results[f"{name}: mean"], results[f"{name}: std"] = model.predict(X, return_std=True)
    results[f"{name}: draws, shape"] = np.array(model.sample_y(X, n_samples=5).shape)
