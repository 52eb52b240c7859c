"""A noisy sine beyond its data: by kernel ridge, and by a Gaussian process."""

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ExpSineSquared, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import RandomizedSearchCV

rng = np.random.RandomState(0)
time = np.linspace(0, 30, num=300).reshape(-1, 1)
target = np.sin(time).ravel()
seen = rng.choice(np.arange(0, 120), size=40, replace=False)
X_train = time[seen]
y_train = target[seen] + 0.5 * rng.randn(len(seen))

ridge = RandomizedSearchCV(
    KernelRidge(kernel=ExpSineSquared()),
    param_distributions={
        "alpha": np.logspace(0, 3, 7),
        "kernel__length_scale": np.logspace(-2, 2, 9),
        "kernel__periodicity": np.linspace(5, 8, 7),
    },
    n_iter=20,
    random_state=0,
)
ridge.fit(X_train, y_train)

kernel = 1.0 * ExpSineSquared(1.0, 5.0, periodicity_bounds=(1e-2, 1e1)) + WhiteKernel(1e-1)
process = GaussianProcessRegressor(kernel=kernel)
process.fit(X_train, y_train)
mean, std = process.predict(time, return_std=True)

results = {
    "ridge": ridge.predict(time),
    "theta": process.kernel_.theta,
    "evidence": process.log_marginal_likelihood_value_,
    "mean": mean,
    "std": std,
}
