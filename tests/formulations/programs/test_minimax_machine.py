"""The minimax probability machine as a cone program: rows, golden optima, closed forms, refusals."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rowtext import rows, text, variables

from ceopt import CeoptError
from ceopt.formulations import programs
from ceopt.formulations.programs.minimax import factor_of, logdet_factor
from ceopt.solvers import ProblemClass, compile_model, solve

GOLDEN = Path(__file__).parents[2] / "golden"
INSTANCES = json.loads((GOLDEN / "mpm_classifier.json").read_text())["instances"]
EYE = [[1.0, 0.0], [0.0, 1.0]]


def stated(inputs: Any) -> Any:
    return programs.minimax_machine(
        inputs["mu_neg"],
        inputs["Sigma_neg"],
        inputs["mu_pos"],
        inputs["Sigma_pos"],
        divergence=inputs["divergence"],
        radius=(inputs["rho_neg"], inputs["rho_pos"]),
    )


def cones(model: Any) -> list[str]:
    """The cones of a model by name, their entries as text; they are kept as arrays."""
    compiled = compile_model(model)
    names = [column.local_name for column in compiled.columns]
    found = []
    for cone in compiled.cones:
        entries = []
        for row in cone.matrix.toarray():
            terms = sorted((names[k], row[k]) for k in np.flatnonzero(row))
            entries.append(" ".join(f"{value:+.10g} {name}" for name, value in terms))
        assert not cone.constant.any()
        found.append(f"{cone.constraint.local_name}: " + " | ".join(entries))
    return found


# ---- rows ------------------------------------------------------------------------------------------------------------
def test_rows_of_the_nominal_machine() -> None:
    model = programs.minimax_machine([1, 0], [[4, 2], [2, 2]], [3, -1], EYE, radius=(7, 7))
    assert rows(model, "apart") == ["+2 w[0] -1 w[1] = 1"]
    assert cones(model) == [
        "near_neg: +1 spread_neg | +2 w[0] +1 w[1] | +1 w[1]",  # the factor is lower triangular
        "near_pos: +1 spread_pos | +1 w[0] | +1 w[1]",
    ]
    assert text(model.worst.expr) == "+1 spread_neg +1 spread_pos"
    assert variables(model)["w[0]"] == "Reals [-inf, inf]"
    assert variables(model)["spread_neg"] == "NonNegativeReals [0, inf]"
    assert compile_model(model).problem_class is ProblemClass.SOCP


def test_rows_of_each_divergence() -> None:
    def machine(divergence: str, **more: Any) -> Any:
        return programs.minimax_machine([0, 0], EYE, [1, 0], EYE, divergence=divergence, radius=(9, 4), **more)

    quadratic = machine("quadratic")
    assert cones(quadratic)[0] == "near_neg: +1 spread_neg | +2 w[0] | +2 w[1]"  # 1 + sqrt(9) = 2^2
    assert cones(quadratic)[1].startswith("near_pos: +1 spread_pos | +1.732050808 w[0]")
    bures = machine("bures")
    assert cones(bures)[2] == "size: +1 length | +1 w[0] | +1 w[1]"
    assert text(bures.worst.expr) == "+5 length +1 spread_neg +1 spread_pos"
    assert text(machine("bures", bures="paper").worst.expr) == "+13 length +1 spread_neg +1 spread_pos"
    rao = machine("fisher_rao")
    assert text(rao.worst.expr) == f"+1 spread_neg {math.exp(-2.5):+.10g} spread_pos"
    assert rao.unit_of_worst == pytest.approx(math.exp(4.5))
    logdet = machine("logdet")
    factors = [logdet_factor(rho) for rho in (9, 4)]
    assert text(logdet.worst.expr) == f"+1 spread_neg {math.sqrt(factors[1] / factors[0]):+.10g} spread_pos"


def test_regularization_is_added_to_both_diagonals() -> None:
    model = programs.minimax_machine([0, 0], np.zeros((2, 2)), [1, 0], EYE, regularization=3)
    assert cones(model)[0] == "near_neg: +1 spread_neg | +1.732050808 w[0] | +1.732050808 w[1]"
    assert cones(model)[1] == "near_pos: +1 spread_pos | +2 w[0] | +2 w[1]"


def test_a_class_without_covariance_has_no_cone() -> None:
    model = programs.minimax_machine([0], [[0]], [2], [[9]])
    assert cones(model) == ["near_pos: +1 spread_pos | +3 w[0]"]
    assert solve(model).objective == pytest.approx(1.5, abs=1e-7)


def test_a_factor_is_of_the_rank_of_the_covariance() -> None:
    singular = np.outer([1.0, -2.0, 3.0], [1.0, -2.0, 3.0])
    assert factor_of(singular).shape == (3, 1)
    for covariance in (singular, np.array([[4.0, 2.0], [2.0, 2.0]]), np.zeros((2, 2))):
        factor = factor_of(covariance)
        assert factor @ factor.T == pytest.approx(covariance, abs=1e-12)


# ---- optima ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("instance", INSTANCES, ids=lambda i: i["id"])
def test_golden_machines(instance: Any) -> None:
    expected, tolerance = instance["expected"], instance["tol"]
    if expected["status"] == "infeasible":
        with pytest.raises(CeoptError, match="two different means"):
            stated(instance["inputs"])
        return
    model = stated(instance["inputs"])
    result = solve(model, relative_gap=1e-9)
    assert str(result.status) == expected["status"]
    worst = result.objective * model.unit_of_worst
    assert worst == pytest.approx(expected["objective"], abs=tolerance["objective"], rel=0)
    found = [model.w[k].value for k in model.w]
    assert found == pytest.approx(expected["w"], abs=1e-4)  # the optimum is flat: section 15 of the specification


@pytest.mark.parametrize("radius", [0.0, 1.0, 26.0, 600.0])
def test_great_factors_are_divided_out(radius: float) -> None:
    """Fisher-Rao with equal radii is the nominal machine, however great the factor."""
    model = programs.minimax_machine(
        [0, 0], EYE, [3, 4], [[4, 0], [0, 4]], divergence="fisher_rao", radius=(radius, radius)
    )
    assert solve(model).objective == pytest.approx(0.6, abs=1e-7)  # (1 + 2) / 5
    assert model.unit_of_worst == pytest.approx(math.exp(radius / 2))


# ---- bad input -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mean_pos": [0, 0]}, "two different means, but the means of both classes are equal"),
        ({"mean_neg": []}, "at least one column, but mean_neg is empty"),
        ({"mean_pos": [1, 0, 0]}, "mean_pos of shape 2"),
        ({"mean_neg": [0, math.nan]}, r"mean_neg\[1\] is nan"),
        ({"cov_pos": [[1.0]]}, "cov_pos of shape 2 by 2"),
        ({"cov_neg": [[1, 0.5], [0, 1]]}, r"a symmetric covariance, but cov_neg\[0, 1\] is 0.5"),
        ({"cov_pos": [[1, 2], [2, 1]]}, "the least eigenvalue of cov_pos is -1"),
        ({"divergence": "kl"}, "a known divergence, but divergence is 'kl'"),
        ({"bures": "root"}, "a known bures"),
        ({"radius": 1.0}, r"a pair \(unfavourable, favourable\) as radius, but radius is 1.0"),
        ({"radius": (1.0, 2.0, 3.0)}, "a pair"),
        ({"radius": "ab"}, "a pair"),
        ({"radius": (-1.0, 0.0)}, r"radius\[0\] to be a number from 0 to 1e\+150, but radius\[0\] is -1.0"),
        ({"radius": (0.0, math.nan)}, r"radius\[1\] is nan"),
        (
            {"radius": (0.0, math.inf), "divergence": "quadratic"},
            r"radius\[1\] is inf. .* MinimaxProbabilityMachine knows the limit",
        ),
        ({"radius": (0.0, 701.0), "divergence": "fisher_rao"}, r"a number from 0 to 700"),
        ({"regularization": -1.0}, "regularization to be a number at least 0"),
    ],
)
def test_what_makes_no_machine_is_refused(change: dict[str, Any], message: str) -> None:
    given = {"mean_neg": [0, 0], "cov_neg": EYE, "mean_pos": [1, 0], "cov_pos": EYE, **change}
    with pytest.raises(CeoptError, match=message):
        programs.minimax_machine(**given)
