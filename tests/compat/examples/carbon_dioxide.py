"""A rising trend, seasons and irregularities, forecast (a stand-in for Mauna Loa)."""

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, RationalQuadratic, WhiteKernel

rng = np.random.RandomState(3)
months = np.arange(1960, 1972, 1 / 12)[:, np.newaxis]
years = months[:, 0] - 1960
parts_per_million = (
    316
    + 0.8 * years
    + 0.012 * years**2
    + 2.8 * np.sin(2 * np.pi * years)
    + 0.7 * np.cos(4 * np.pi * years)
    + 0.4 * np.sin(2 * np.pi * years / 3.7)
    + rng.normal(scale=0.15, size=years.size)
)

trend = 50.0**2 * RBF(length_scale=50.0)
seasons = (
    2.0**2
    * RBF(length_scale=100.0)
    * ExpSineSquared(length_scale=1.0, periodicity=1.0, periodicity_bounds="fixed")
)
irregularities = 0.5**2 * RationalQuadratic(length_scale=1.0, alpha=1.0)
noise = 0.1**2 * RBF(length_scale=0.1) + WhiteKernel(
    noise_level=0.1**2, noise_level_bounds=(1e-5, 1e5)
)
kernel = trend + seasons + irregularities + noise

level = parts_per_million.mean()
before = GaussianProcessRegressor(kernel=kernel, normalize_y=False, optimizer=None)
before.fit(months, parts_per_million - level)
model = GaussianProcessRegressor(kernel=kernel, normalize_y=False)
model.fit(months, parts_per_million - level)

forecast = np.linspace(start=1958, stop=1975, num=60)[:, np.newaxis]
mean_before, std_before = before.predict(forecast, return_std=True)
mean, std = model.predict(forecast, return_std=True)

results = {
    "evidence before": before.log_marginal_likelihood_value_,
    "mean before": mean_before,
    "std before": std_before,
    "evidence": model.log_marginal_likelihood_value_,
    "mean": mean + level,
    "std": std,
}
