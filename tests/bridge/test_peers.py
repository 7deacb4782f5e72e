"""The same numbers as statsmodels, where it has the method, on random input."""

import warnings

import numpy as np
import pytest

from evaluation.bridge.paired_binary import paired_rate
from evaluation.bridge.statistics import holm
from evaluation.metrics.layout import Layout
from evaluation.metrics.serial_dependence import ratio_influence
from evaluation.metrics.variance import influence_variance
from tests.bridge.paired import paired_mean

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    sm = pytest.importorskip("statsmodels.api")
    from statsmodels.stats.contingency_tables import mcnemar
    from statsmodels.stats.multitest import multipletests

SEEDS = range(5)


@pytest.mark.parametrize("seed", SEEDS)
def test_clustered_errors(seed: int) -> None:
    """A mean is a regression on a constant; statsmodels' correction also has (n-1)/(n-1) = 1."""
    rng = np.random.default_rng(seed)
    n, groups = 200, 25
    names = rng.integers(0, groups, n)
    values = rng.normal(0, 1, n) + rng.normal(0, 1, groups)[names]
    fit = sm.OLS(values, np.ones(n)).fit(cov_type="cluster", cov_kwds={"groups": names})
    own = paired_mean(values, np.zeros(n), [str(name) for name in names])
    assert own.units == len(set(names))
    assert own.se == pytest.approx(float(fit.bse[0]))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_ratio_is_a_weighted_regression(seed: int) -> None:
    """sum d / sum w is the slope of d / w on a constant with weights w, robust errors (HC0)."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(30, 60, 150).astype(float)
    amounts = weights * rng.normal(0.1, 0.3, 150)
    fit = sm.WLS(amounts / weights, np.ones(150), weights=weights).fit(cov_type="HC0")
    influence = ratio_influence(amounts, weights)
    assert np.sqrt(influence @ influence) == pytest.approx(float(fit.bse[0]))


@pytest.mark.parametrize("seed", SEEDS)
def test_few_discordant_items_are_tested_by_mcnemar(seed: int) -> None:
    """Exactly, below 25 of them."""
    for wins, losses in np.random.default_rng(seed).integers(0, 12, (20, 2)).tolist():
        d = np.array([1.0] * wins + [-1.0] * losses + [0.0] * 50)
        own = paired_rate(d.clip(0), (-d).clip(0))
        peer = min(1.0, mcnemar([[30, losses], [wins, 20]], exact=True).pvalue)
        assert own.p == pytest.approx(peer)
        assert own.low <= own.value <= own.high
        assert (own.p < 0.05) == (own.low > 0 or own.high < 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_holm(seed: int) -> None:
    p_values = np.random.default_rng(seed).beta(0.3, 1, 12)
    own = holm({"no test": None, **{str(i): p for i, p in enumerate(p_values)}})
    peer = multipletests(p_values, method="holm")[1]
    assert list(own.values()) == pytest.approx([None, *peer])


@pytest.mark.parametrize("seed", SEEDS)
def test_strata_are_the_residuals_of_their_means(seed: int) -> None:
    """sum_h n_h/(n_h-1) of squared residuals: HC2 of a regression on strata, summed over n."""
    rng = np.random.default_rng(seed)
    stratum = np.repeat(np.arange(6), rng.integers(5, 30, 6))
    n = len(stratum)
    values = rng.normal(0, 1, n) + stratum
    dummies = (stratum[:, None] == np.arange(6)).astype(float)
    fit = sm.OLS(values, dummies).fit(cov_type="HC2")
    shares = dummies.mean(axis=0)
    influence = (values - values.mean()) / n
    own = influence_variance(
        influence, Layout(len(influence), None, [str(name) for name in stratum])
    )
    assert own.value == pytest.approx(float(shares @ fit.cov_params() @ shares))
