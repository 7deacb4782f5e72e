"""Estimates by hand, by peers, and properties that hold for all of them; seeds are fixed."""

import math

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportion_confint

from evaluation.bridge.choice import against, holm, of_recipe, simultaneous_alpha
from evaluation.bridge.differences import Paired
from evaluation.bridge.estimate import ALPHA, Estimate, at_alpha, mean, p_beyond
from evaluation.bridge.paired import estimate_of, level_of
from evaluation.bridge.power import monotonicity, needed_units
from evaluation.metrics.layout import Layout, numbered
from evaluation.metrics.ratios import Ratio
from evaluation.metrics.variance import cosine_count, cosines, interval, ratio_influence
from tests.bridge.paired import of_text, paired_mean, paired_rate
from tests.bridge.worlds import mean_of


def of_changes(wins: int, losses: int, n: int) -> Estimate:
    d = np.array([1.0] * wins + [-1.0] * losses + [0.0] * (n - wins - losses))
    return paired_rate(d.clip(0), (-d).clip(0))


def test_a_mean_is_the_paired_t_test_where_nothing_is_skewed() -> None:
    half = np.random.default_rng(0).normal(0, 1, 20)
    ours, theirs = 0.3 + np.concatenate([half, -half]), np.zeros(40)
    found, known = paired_mean(ours, theirs), stats.ttest_rel(ours, theirs)
    bounds = known.confidence_interval(0.95)
    assert found.p == pytest.approx(known.pvalue)
    assert (found.low, found.high) == pytest.approx((bounds.low, bounds.high))


def test_hall_s_interval_by_hand() -> None:
    d = np.random.default_rng(3).lognormal(0, 1, 40) - 1.2
    found, se = paired_mean(d, 0 * d), stats.sem(d)
    u = (d - d.mean()) / 40 * math.sqrt(40 / 39)
    s, t = 1.5 * (u**3).sum() / se**3, stats.t.ppf(0.975, 39)
    reach = (found.high - d.mean()) / se
    assert -reach + s * reach**2 / 3 - s**2 * reach**3 / 27 + s / 6 == pytest.approx(-t)
    assert d.mean() - found.low == pytest.approx(se * t)


@pytest.mark.parametrize("seed", [1, 2])
def test_clusters_strata_and_ratios_are_regressions_of_statsmodels(seed: int) -> None:
    dice = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(30), 5)
    d = np.repeat(dice.normal(0, 1, 30), 5) + dice.normal(0, 1, 150)
    fit = sm.OLS(d, np.ones(150)).fit(
        cov_type="cluster", cov_kwds={"groups": cluster, "use_correction": False}
    )
    found = paired_mean(d, 0 * d, [str(name) for name in cluster])
    assert found.se == pytest.approx(float(fit.bse[0]) * math.sqrt(30 / 29))
    weights = dice.integers(30, 60, 150).astype(float)
    fit = sm.WLS(d, np.ones(150), weights=weights).fit(cov_type="HC0")
    influence = ratio_influence(weights * d, weights)
    assert np.linalg.norm(influence) == pytest.approx(float(fit.bse[0]))
    stratum = np.repeat(np.arange(6), 25)
    dummies = (stratum[:, None] == np.arange(6)).astype(float)
    fit = sm.OLS(d, dummies).fit(cov_type="HC2")
    shares = dummies.mean(axis=0)
    found = paired_mean(d, 0 * d, None, [str(name) for name in stratum])
    assert found.se**2 == pytest.approx(float(shares @ fit.cov_params() @ shares))


def test_few_changes_are_tested_by_mcnemar_and_bounded_by_tango() -> None:
    for wins, losses in np.random.default_rng(1).integers(0, 12, (20, 2)).tolist():
        found = of_changes(wins, losses, 50 + wins + losses)
        peer = mcnemar([[30, losses], [wins, 20]], exact=True).pvalue
        assert found.p == pytest.approx(min(1.0, peer))
        assert (found.p < ALPHA) == (found.low > 0 or found.high < 0)
    none, z2 = of_changes(0, 0, 100), stats.norm.ppf(0.975) ** 2
    assert (none.low, none.high) == pytest.approx((-z2 / (100 + z2), z2 / (100 + z2)))
    assert of_changes(5, 0, 5).p > ALPHA
    assert of_changes(5, 0, 5).mde is None
    clustered = paired_rate(np.ones(300), np.ones(300), [str(i // 10) for i in range(300)])
    assert clustered.high == of_changes(0, 0, 30).high


def test_fractions_count_changes() -> None:
    ours, theirs = np.array([0.5, 1, 0, 1] * 10), np.array([0.0, 1, 0, 1] * 10)
    found = paired_rate(ours, theirs)
    assert (found.df, found.counts) == (9, None)
    rare = np.array([9 / 16] * 17 + [0.0] * 3), np.array([8 / 16] * 17 + [12 / 16] * 3)
    assert paired_rate(*rare).p > 0.1


def rows_of(*names: str) -> Layout:
    return Layout(len(names[0]), sources=[list(column) for column in names])


def test_a_mean_adds_up_what_each_row_contributes() -> None:
    a, b = np.array([1.0, 0.0, 2.0, -1.0]), np.array([0.5, -0.5, 1.0, 3.0])
    groups = numbered((rows_of("pqrs"), rows_of("rstu")))
    parts = [
        estimate_of(Paired(amounts=d, groups=own)) for d, own in zip((a, b), groups, strict=True)
    ]
    by_row = dict.fromkeys("pqrstu", 0.0)
    for d, names in ((a, "pqrs"), (b, "rstu")):
        for value, name in zip(d - d.mean(), names, strict=True):
            by_row[name] += value / 4 / 2
    found = mean(dict(enumerate(parts)), {0: 0.5, 1: 0.5})
    assert found.se == pytest.approx(math.sqrt(4 / 3 * sum(x**2 for x in by_row.values())))


def test_rows_are_one_group_by_any_name_they_share() -> None:
    first = Layout(3, ["x", "x", "y"], None, [["a", None, "b"], [None, "r", None]])
    one, two = numbered((first, rows_of("cd", "rs")))
    assert one.labels[0] == one.labels[1] == two.labels[0]
    assert len({*one.labels, *two.labels}) == 3
    assert one.shared
    assert one.repeats
    assert not two.repeats
    assert not numbered((first, rows_of("cd")))[0].shared


def test_one_task_under_several_names_is_one_task() -> None:
    dice = np.random.default_rng(4)
    d, others = dice.integers(-1, 2, 60).astype(float), dice.integers(-1, 2, 60).astype(float)
    rows, more = ([f"{letter}{i}" for i in range(60)] for letter in "ab")
    alone, thrice = (mean_of([(d, rows)] * times) for times in (1, 3))
    assert (thrice.se, thrice.df) == pytest.approx((alone.se, alone.df))
    assert (thrice.low, thrice.high) == pytest.approx((alone.low, alone.high))
    apart = mean_of([(d, rows), (others, more)])
    assert apart.se == pytest.approx(math.hypot(alone.se, mean_of([(others, more)]).se) / 2)


def test_text_is_a_spectrum_at_zero() -> None:
    dice = np.random.default_rng(1)
    values = dice.normal(0, 1, 200)
    phase = np.pi * (np.arange(200) + 0.5) / 200
    wanted = [np.cos(j * phase) @ values for j in range(1, 5)]
    assert cosines(values, 4) == pytest.approx(np.sqrt(2 / 4) * np.array(wanted))
    noise = dice.normal(0, 1, 400)
    for i in range(1, 400):
        noise[i] += 0.9 * noise[i - 1]
    assert cosine_count(values) == 16
    assert (count := cosine_count(noise - noise.mean())) < 10
    found = of_text(np.tile([1.0, -1.0], 50))  # never below the error of independent blocks
    assert (found.se, found.df) == (pytest.approx(1 / math.sqrt(99)), 99)
    assert of_text(noise).se > 2 * stats.sem(noise)
    assert of_text(noise).df == count


def test_levels() -> None:
    credit = np.array([1.0] * 30 + [0.0] * 10)
    found = interval(credit)
    assert (found.low, found.high) == pytest.approx(proportion_confint(30, 40, method="wilson"))
    all_right = proportion_confint(20, 20, method="wilson")
    assert interval(np.ones(20)).low == pytest.approx(all_right[0])
    clustered = interval(credit, Layout(40, [str(i // 4) for i in range(40)]).groups)
    assert clustered.stderr > found.stderr
    assert interval(np.ones(1)).low is None
    even = level_of(Ratio(np.ones(20)), Layout(20).groups, is_share=True)
    assert even.se > 0
    assert (even.value, even.high) == (1, 1)


def test_holm_is_that_of_statsmodels() -> None:
    p_values = np.random.default_rng(3).beta(0.3, 1, 12)
    peer = sm.stats.multipletests(p_values, method="holm")[1]
    assert holm([None, *p_values]) == pytest.approx([None, *peer])


def test_many_steps_share_one_error_rate() -> None:
    dice = np.random.default_rng(5)
    bridge = dice.normal(0, 1, 400)
    alike = [paired_mean(dice.normal(0, 0.1, 400), bridge) for _ in range(5)]
    apart = [paired_mean(dice.normal(0, 1, 400), np.zeros(400)) for _ in range(5)]
    bonferroni = simultaneous_alpha(apart, awaited=1000)
    assert bonferroni == pytest.approx(ALPHA / 1005)
    assert simultaneous_alpha(apart) == pytest.approx(1 - 0.95 ** (1 / 5), rel=0.1)
    assert simultaneous_alpha(alike) > 0.03
    assert simultaneous_alpha(alike[:1]) == ALPHA
    pair = against(alike[0], alike[1])
    assert pair.se < alike[0].se / 3


def test_the_noise_of_recipes_is_one_number() -> None:
    one = paired_mean(np.random.default_rng(6).normal(0, 1, 4000), np.zeros(4000))
    found = of_recipe(one, [0.0, 0.1, -0.1])
    assert found.noise == pytest.approx(math.sqrt(2) * 0.1)
    reach = stats.t.ppf(0.975, 2) * found.noise
    assert found.high - one.value == pytest.approx(math.hypot(one.high - one.value, reach))
    assert of_recipe(one, [0.0, 0.1]) is None


def test_needed_questions_and_steadiness_are_those_of_peers() -> None:
    peer = sm.stats.TTestPower().solve_power(0.1, alpha=ALPHA, power=0.8)
    assert needed_units(1.0, 0.1) == pytest.approx(peer, abs=2)
    assert needed_units(0.0, 0.1) is None
    assert needed_units(0.001, 0.5, 0.01) == 600
    values = [0.1, 0.3, 0.2, 0.5, 0.5]
    assert monotonicity(values) == pytest.approx(stats.spearmanr(range(5), values).statistic)
    assert monotonicity([0.1, 0.1, 0.1]) is None


KINDS = ("passes", "fractions", "measure", "text")


def drawn(kind: str, n: int, shift: float, seed: int, clusters: bool) -> tuple[Estimate, Estimate]:
    """An estimate, and that of the sides swapped."""
    dice = np.random.default_rng(seed)
    chances = dice.beta(0.5, 0.5, n)
    moved = np.clip(chances + shift * (dice.random(n) < 0.3), 0, 1)
    names = [str(i // 3) for i in range(n)] if clusters else None
    if kind in ("passes", "fractions"):
        of = 1 if kind == "passes" else 16
        theirs = dice.binomial(of, chances) / of
        ours = np.where(dice.random(n) < 0.5, theirs, dice.binomial(of, moved) / of)
        return paired_rate(ours, theirs, names), paired_rate(theirs, ours, names)
    d = shift * dice.lognormal(0, 1, n) + dice.normal(0, 0.1, n)
    if kind == "measure":
        return paired_mean(d, 0 * d, names), paired_mean(0 * d, d, names)
    return of_text(d), of_text(-d)


@settings(max_examples=150, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    n=st.integers(2, 120),
    shift=st.sampled_from([-0.6, -0.2, 0.0, 0.05, 0.2, 0.6]),
    seed=st.integers(0, 10**6),
    clusters=st.booleans(),
)
def test_nothing_contradicts(kind: str, n: int, shift: float, seed: int, clusters: bool) -> None:
    found, swapped = drawn(kind, n, shift, seed, clusters)
    if found.low is None or found.high is None:
        return
    assert (swapped.low, swapped.high) == pytest.approx((-found.high, -found.low), abs=1e-9)
    assert swapped.p == pytest.approx(found.p)
    assert found.low <= found.value <= found.high
    widths = [ALPHA, 0.2, 0.01, 0.002]
    for alpha in widths:
        wide = at_alpha(found, alpha)
        above, below = (p_beyond(found, 0.0, above=side) for side in (True, False))
        assert (wide.low > 0) == (above < alpha / 2)
        assert (wide.high < 0) == (below < alpha / 2)
    nested = [at_alpha(found, alpha) for alpha in sorted(widths)]
    assert [one.low for one in nested] == sorted(one.low for one in nested)
    if found.mde is not None and found.mde < found.limit and (found.low > 0) != (found.high < 0):
        return
    assert found.mde is None or abs(found.value) <= found.mde + 1e-9
