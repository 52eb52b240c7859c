"""One curve from a few of its points: without noise, and with noise of a known size."""

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

X = np.linspace(start=0, stop=10, num=300).reshape(-1, 1)
y = np.squeeze(X * np.sin(X))

rng = np.random.RandomState(1)
chosen = rng.choice(np.arange(y.size), size=6, replace=False)
X_train, y_train = X[chosen], y[chosen]

kernel = 1 * RBF(length_scale=1.0, length_scale_bounds=(1e-2, 1e2))
exact = GaussianProcessRegressor(kernel=kernel, n_restarts_optimizer=9, random_state=0)
exact.fit(X_train, y_train)
mean, std = exact.predict(X, return_std=True)

width = 0.75
y_noisy = y_train + rng.normal(loc=0.0, scale=width, size=y_train.shape)
noisy = GaussianProcessRegressor(
    kernel=kernel, alpha=width**2, n_restarts_optimizer=9, random_state=0
)
noisy.fit(X_train, y_noisy)
noisy_mean, noisy_std = noisy.predict(X, return_std=True)

results = {
    "theta": exact.kernel_.theta,
    "evidence": exact.log_marginal_likelihood_value_,
    "mean": mean,
    "std": std,
    "noisy theta": noisy.kernel_.theta,
    "noisy evidence": noisy.log_marginal_likelihood_value_,
    "noisy mean": noisy_mean,
    "noisy std": noisy_std,
}
