"""Estimates from the values of both sides, by the functions that take their differences."""

from evaluation.bridge.estimate import Estimate
from evaluation.bridge.statistics import mean_difference, measure_difference
from evaluation.metrics.differences import Differences
from evaluation.metrics.layout import Layout, Names
from evaluation.metrics.variance import Floats


def of_sides(ours: Floats, theirs: Floats, clusters: Names, strata: Names) -> Differences:
    layout = Layout(len(ours), clusters, strata)
    return Differences(kind="measure", amounts=ours - theirs, layout=layout)


def paired_mean(
    ours: Floats, theirs: Floats, clusters: Names = None, strata: Names = None
) -> Estimate:
    return mean_difference(of_sides(ours, theirs, clusters, strata))


def paired_measure(
    ours: Floats, theirs: Floats, clusters: Names = None, strata: Names = None
) -> Estimate:
    return measure_difference(of_sides(ours, theirs, clusters, strata))
