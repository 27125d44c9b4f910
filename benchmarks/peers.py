"""Libraries that embed models into programs, asked the question that ceopt is asked: the nearest accepted point.

A peer gets the pipeline's last estimator on the encoded columns, with the peer's own default settings.
"""

from __future__ import annotations

import contextlib
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, final

import numpy as np
from question import Choice, Number, Question
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.neural_network import MLPRegressor

__all__ = ["PEERS", "AbstractPeer", "Peer", "SkipError", "as_onnx", "ask", "available"]


# ---- a peer ----------------------------------------------------------------------------------------------------------
class SkipError(Exception):
    """A peer does not take this model."""

    status = "not supported"


class LicenceError(SkipError):
    """A peer's solver needs more than its free licence."""

    status = "over its licence"


class AbstractPeer(ABC):
    """One question in the peer's own modelling language: variables, rows, an embedded model, a solve."""

    @abstractmethod
    def variable(self, lower: float, upper: float, kind: str = "real") -> Any:
        """Return a new variable: "real", "integer" or "binary"."""

    @abstractmethod
    def row(self, relation: Any) -> None:
        """Add a constraint."""

    @abstractmethod
    def embed(self, estimator: Any, codes: Sequence[Any], question: Question) -> None:
        """Put the estimator on the codes and ask for the target.

        Raises
        ------
        SkipError
            The library does not take the estimator.
        """

    @abstractmethod
    def solve(self, cost: Any, limit_s: float) -> str:
        """Minimise; return "optimal", "infeasible", "time-out" (nothing in hand) or "time-out, answer"."""

    @abstractmethod
    def value(self, variable: Any) -> float:
        """Return the value of a variable in the solver's point."""

    def size(self) -> dict[str, int]:
        """Return variables, binaries and rows, where the library tells them."""
        return {}


def ask(peer: AbstractPeer, estimator: Any, question: Question, limit_s: float) -> dict[str, Any]:
    """Build and solve one question; return status, seconds and the answer in raw units and in codes.

    What the peer does not take, and what it fails at, is a status with the reason.
    """
    try:
        return _asked(peer, estimator, question, limit_s)
    except SkipError as skip:
        return {"status": skip.status, "reason": str(skip)}
    except Exception as error:  # noqa: BLE001  # whatever a library raises is its result here
        return {"status": "error", "reason": f"{type(error).__name__}: {_sentence(error)}"}


def _asked(peer: AbstractPeer, estimator: Any, question: Question, limit_s: float) -> dict[str, Any]:
    began = time.perf_counter()
    expressions: list[Any] = question.codes.tolist()
    cost: Any = 0.0
    held: list[tuple[Number | Choice, Any]] = []
    for part in question.parts:
        if isinstance(part, Choice):
            picks = [peer.variable(0.0, 1.0, "binary") for _ in part.values]
            peer.row(sum(picks) == 1)
            cost = cost + sum(c * u for c, u in zip(part.costs, picks, strict=True) if c)
            for code, change in part.codes.items():
                expressions[code] = expressions[code] + sum(c * u for c, u in zip(change, picks, strict=True) if c)
            held.append((part, picks))
        else:
            v = peer.variable(part.lower, part.upper, "integer" if part.integer else "real")
            move = peer.variable(0.0, max(part.upper - part.home, part.home - part.lower) / part.scale)
            peer.row(move >= (v - part.home) * (1.0 / part.scale))
            peer.row(move >= (part.home - v) * (1.0 / part.scale))
            cost = cost + move
            for code, slope in part.slope.items():
                expressions[code] = expressions[code] + slope * (v - part.home)
            held.append((part, v))
    codes = [peer.variable(low, high) for low, high in question.bounds()]
    for code, expression in zip(codes, expressions, strict=True):
        peer.row(code == expression)
    peer.embed(estimator, codes, question)
    built = time.perf_counter()
    status = peer.solve(cost, limit_s)
    done = time.perf_counter()
    record = {"status": status, "seconds": done - began, "build": built - began, "solve": done - built}
    if status in {"optimal", "time-out, answer"}:
        record |= {
            "values": {part.name: _decoded(peer, part, variable) for part, variable in held},
            "codes": [peer.value(code) for code in codes],
            "cost": _cost(peer, held),
        }
    return record


def _decoded(peer: AbstractPeer, part: Number | Choice, held: Any) -> Any:
    if isinstance(part, Choice):
        return part.values[int(np.argmax([peer.value(pick) for pick in held]))]
    value = peer.value(held)
    return round(value) if part.integer else min(max(value, part.lower), part.upper)


def _cost(peer: AbstractPeer, held: Sequence[tuple[Number | Choice, Any]]) -> float:
    total = 0.0
    for part, variable in held:
        value = _decoded(peer, part, variable)
        if isinstance(part, Choice):
            total += part.costs[part.values.index(value)]
        else:
            total += abs(value - part.home) / part.scale
    return total


# ---- the same scores as regressors, for libraries that take no classifier --------------------------------------------
def score_regressor(estimator: Any) -> Any:
    """Return a regressor of scikit-learn with the trees or layers of a classifier; its output is the raw score."""
    match type(estimator).__name__:
        case "GradientBoostingClassifier":
            regressor = GradientBoostingRegressor(n_estimators=estimator.n_estimators_)
            regressor.__dict__.update({k: v for k, v in vars(estimator).items() if k not in {"loss", "classes_"}})
            shares = estimator.init_.class_prior_
            level = float(np.log(shares[1] / shares[0]))
            regressor.init_ = DummyRegressor(strategy="constant", constant=level).fit([[0.0]], [level])
            return regressor
        case "MLPClassifier":
            regressor = MLPRegressor(hidden_layer_sizes=estimator.hidden_layer_sizes, activation=estimator.activation)
            own = {k: v for k, v in vars(estimator).items() if k.endswith("_") and k != "classes_"}
            regressor.__dict__.update(own | {"out_activation_": "identity"})
            return regressor
    raise SkipError(f"no {type(estimator).__name__}")


# ---- files that libraries read ---------------------------------------------------------------------------------------
def as_onnx(estimator: Any, n_codes: int) -> Any:
    """Return the raw score of a classifier as an ONNX model of one input (n, m) and one output (n, 1)."""
    match type(estimator).__name__:
        case "MLPClassifier":
            return _network_as_onnx(estimator, n_codes)
        case "LGBMClassifier":
            return _lightgbm_as_onnx(estimator, n_codes)
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType

    return to_onnx(score_regressor(estimator), initial_types=[("codes", FloatTensorType([None, n_codes]))])


def _network_as_onnx(estimator: Any, n_codes: int) -> Any:
    """Return the layers as Gemm and Relu, which every reader of networks takes."""
    from onnx import TensorProto, helper, numpy_helper

    plain = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}  # OMLT wants each of them written
    nodes, held, before = [], [], "codes"
    for k, (weights, biases) in enumerate(zip(estimator.coefs_, estimator.intercepts_, strict=True)):
        held += [
            numpy_helper.from_array(part.astype(np.float32), f"{name}{k}")
            for name, part in (("w", weights), ("b", biases))
        ]
        nodes.append(helper.make_node("Gemm", [before, f"w{k}", f"b{k}"], [f"sum{k}"], name=f"gemm{k}", **plain))
        before = f"sum{k}"
        if k < len(estimator.coefs_) - 1:
            nodes.append(helper.make_node("Relu", [before], [f"relu{k}"], name=f"relu{k}"))
            before = f"relu{k}"
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("codes", [None, n_codes]), (before, [None, 1]))
    ]
    return helper.make_model(helper.make_graph(nodes, "network", ends[:1], ends[1:], held))


def _lightgbm_as_onnx(estimator: Any, n_codes: int) -> Any:
    """Return LightGBM's booster, told that it is a regressor, by its own converter."""
    import lightgbm
    from onnxmltools import convert_lightgbm
    from onnxmltools.convert.common.data_types import FloatTensorType

    text = estimator.booster_.model_to_string()
    for told, so in (
        ("objective=binary sigmoid:1", "objective=regression"),
        ("[objective: binary]", "[objective: regression]"),
    ):
        text = text.replace(told, so)
    booster = lightgbm.Booster(model_str=text)
    return convert_lightgbm(booster, initial_types=[("codes", FloatTensorType([None, n_codes]))])


# ---- OMLT, with HiGHS through Pyomo ----------------------------------------------------------------------------------
@final
class Omlt(AbstractPeer):
    """Variables and rows of Pyomo, solved by HiGHS on one thread; trees as ONNX, networks by one of its formulations.

    Parameters
    ----------
    formulation
        Name of the class of ``omlt.neuralnet`` for networks.
    relative_gap
        Of HiGHS; None for its default.
    """

    def __init__(self, formulation: str = "ReluBigMFormulation", relative_gap: float | None = None) -> None:
        import pyomo.environ as pyo

        self.formulation, self.relative_gap = formulation, relative_gap
        self.model = pyo.ConcreteModel()
        self.model.variables, self.model.rows = pyo.VarList(), pyo.ConstraintList()

    def variable(self, lower: float, upper: float, kind: str = "real") -> Any:
        import pyomo.environ as pyo

        made = self.model.variables.add()
        made.domain = {"real": pyo.Reals, "integer": pyo.Integers, "binary": pyo.Binary}[kind]
        made.setlb(lower)
        made.setub(upper)
        return made

    def row(self, relation: Any) -> None:
        self.model.rows.add(relation)

    def embed(self, estimator: Any, codes: Sequence[Any], question: Question) -> None:
        from omlt import OmltBlock

        bounds = dict(enumerate(question.bounds()))
        self.model.block = OmltBlock()
        self.model.block.build_formulation(self._formulation(estimator, bounds))
        for inner, code in zip(self.model.block.inputs.values(), codes, strict=True):
            self.row(inner == code)
        (score,) = self.model.block.outputs.values()
        self.row((1.0 if question.target else -1.0) * score >= question.margin)

    def _formulation(self, estimator: Any, bounds: dict[int, tuple[float, float]]) -> Any:
        import omlt.neuralnet as nn
        from omlt.gbt import GBTBigMFormulation, GradientBoostedTreeModel
        from omlt.io import load_onnx_neural_network

        kind = type(estimator).__name__
        if kind == "MLPClassifier":
            return getattr(nn, self.formulation)(_network_of_omlt(estimator, bounds))
        if kind == "XGBClassifier":
            raise SkipError("reads splits by <= only, XGBoost's have <")
        file = estimator if kind == "ModelProto" else as_onnx(estimator, len(bounds))
        if any(node.op_type == "TreeEnsembleRegressor" for node in file.graph.node):
            return GBTBigMFormulation(GradientBoostedTreeModel(file, None, bounds))
        return getattr(nn, self.formulation)(load_onnx_neural_network(file, None, bounds))

    def solve(self, cost: Any, limit_s: float) -> str:
        import pyomo.environ as pyo
        from pyomo.contrib.solver.common.results import SolutionStatus, TerminationCondition
        from pyomo.contrib.solver.solvers.highs import Highs

        self.model.cost = pyo.Objective(expr=cost)
        result = Highs().solve(
            self.model,
            time_limit=limit_s,
            threads=1,
            rel_gap=self.relative_gap,
            load_solutions=False,
            raise_exception_on_nonoptimal_result=False,
        )
        held = result.solution_status in {SolutionStatus.feasible, SolutionStatus.optimal}
        if held:
            result.solution_loader.load_vars()
        match result.termination_condition:
            case TerminationCondition.convergenceCriteriaSatisfied:
                return "optimal"
            case TerminationCondition.provenInfeasible:
                return "infeasible"
        return "time-out, answer" if held else "time-out"

    def value(self, variable: Any) -> float:
        return float(variable.value)


def _network_of_omlt(estimator: Any, bounds: dict[int, tuple[float, float]]) -> Any:
    """Return the layers as OMLT's own definition of a network."""
    from omlt.neuralnet import NetworkDefinition
    from omlt.neuralnet.layer import DenseLayer, InputLayer

    network = NetworkDefinition(scaled_input_bounds=bounds)
    before: Any = InputLayer([len(bounds)])
    network.add_layer(before)
    for place, (weights, biases) in enumerate(zip(estimator.coefs_, estimator.intercepts_, strict=True)):
        layer = DenseLayer(
            [weights.shape[0]],
            [weights.shape[1]],
            activation="linear" if place == len(estimator.coefs_) - 1 else estimator.activation,
            weights=weights,
            biases=biases,
        )
        network.add_layer(layer)
        network.add_edge(before, layer)
        before = layer
    return network


# ---- gurobi-machinelearning ------------------------------------------------------------------------------------------
@final
class GurobiMl(AbstractPeer):
    """Regressors on raw scores (it takes no classifier but the logistic one), boosters of XGBoost and LightGBM.

    Parameters
    ----------
    relative_gap
        Of Gurobi; None for its default.
    """

    def __init__(self, relative_gap: float | None = None) -> None:
        import gurobipy

        self.environment = gurobipy.Env(params={"OutputFlag": 0, "Threads": 1})
        self.model = gurobipy.Model(env=self.environment)
        if relative_gap is not None:
            self.model.Params.MIPGap = relative_gap

    def variable(self, lower: float, upper: float, kind: str = "real") -> Any:
        return self.model.addVar(lb=lower, ub=upper, vtype={"real": "C", "integer": "I", "binary": "B"}[kind])

    def row(self, relation: Any) -> None:
        self.model.addConstr(relation)

    def embed(self, estimator: Any, codes: Sequence[Any], question: Question) -> None:
        import gurobipy
        from gurobi_ml import add_predictor_constr
        from gurobi_ml.exceptions import GurobiMLError

        self.model.update()
        inputs = gurobipy.MVar.fromlist(list(codes))
        score = self.model.addMVar((1, 1), lb=-gurobipy.GRB.INFINITY)
        level, least = 0.0, question.margin
        try:
            match type(estimator).__name__:
                case "GradientBoostingClassifier" | "MLPClassifier":
                    add_predictor_constr(self.model, score_regressor(estimator), inputs, score)
                case "XGBClassifier":  # its booster's output is the probability
                    add_predictor_constr(self.model, estimator.get_booster(), inputs, score)
                    level, least = 0.5, 1.0 / (1.0 + math.exp(-question.margin)) - 0.5
                case "LGBMClassifier":
                    from gurobi_ml.lightgbm import add_lgbm_booster_constr

                    add_lgbm_booster_constr(self.model, estimator.booster_, inputs, score)
                case _:
                    add_predictor_constr(self.model, estimator, inputs, score)
        except GurobiMLError as refusal:
            raise SkipError(_sentence(refusal)) from refusal
        self.row((1.0 if question.target else -1.0) * (score - level) >= least)

    def solve(self, cost: Any, limit_s: float) -> str:
        import gurobipy
        from gurobipy import GRB

        self.model.setObjective(cost, GRB.MINIMIZE)
        self.model.Params.TimeLimit = limit_s
        try:
            self.model.optimize()
        except gurobipy.GurobiError as error:
            if error.errno == GRB.Error.SIZE_LIMIT_EXCEEDED:
                raise LicenceError("2000 variables, 2000 rows") from None
            raise
        match self.model.Status:
            case GRB.OPTIMAL:
                return "optimal"
            case GRB.INFEASIBLE | GRB.INF_OR_UNBD:
                return "infeasible"
        return "time-out, answer" if self.model.SolCount else "time-out"

    def value(self, variable: Any) -> float:
        return float(variable.X)

    def size(self) -> dict[str, int]:
        """Its rows are the linear ones and Gurobi's general constraints, one a neuron."""
        model = self.model
        rows = model.NumConstrs + model.NumGenConstrs
        return {"variables": model.NumVars, "binaries": model.NumBinVars, "rows": rows}


# ---- PySCIPOpt-ML ----------------------------------------------------------------------------------------------------
@final
class PyScipOptMl(AbstractPeer):
    """Classifiers with the library's own class output."""

    def __init__(self) -> None:
        import pyscipopt

        self.model = pyscipopt.Model()
        self.model.hideOutput()

    def variable(self, lower: float, upper: float, kind: str = "real") -> Any:
        return self.model.addVar(lb=lower, ub=upper, vtype={"real": "C", "integer": "I", "binary": "B"}[kind])

    def row(self, relation: Any) -> None:
        self.model.addCons(relation)

    def embed(self, estimator: Any, codes: Sequence[Any], question: Question) -> None:
        from pyscipopt_ml.add_predictor import add_predictor_constr
        from pyscipopt_ml.exceptions import NoModel, NotRegistered

        of_file = type(estimator).__name__ == "ModelProto"  # has no class output
        output = self.model.addVar(vtype="C", lb=None, ub=None) if of_file else self.model.addVar(vtype="B")
        try:
            add_predictor_constr(self.model, estimator, np.array([codes]), np.array([[output]]))
        except (NotRegistered, NoModel) as refusal:
            raise SkipError(_sentence(refusal)) from refusal
        if of_file:
            self.row((1.0 if question.target else -1.0) * output >= question.margin)
        else:
            self.row(output == question.target)

    def solve(self, cost: Any, limit_s: float) -> str:
        self.model.setObjective(cost, "minimize")
        self.model.setParam("limits/time", limit_s)
        self.model.optimize()
        status = str(self.model.getStatus())
        if status in {"optimal", "infeasible"}:
            return status
        return "time-out, answer" if self.model.getNSols() else "time-out"

    def value(self, variable: Any) -> float:
        return float(self.model.getVal(variable))


def _sentence(error: Exception) -> str:
    return " ".join(str(error).split())[:120]


@final
@dataclass(frozen=True, slots=True)
class Peer:
    """A library: what is imported, what is installed, and how a question to it begins."""

    module: str
    packages: Sequence[str]
    make: Callable[..., AbstractPeer]


#: By the name in the report.
PEERS: Mapping[str, Peer] = {
    "gurobi-machinelearning": Peer("gurobi_ml", ("gurobi-machinelearning", "gurobipy"), GurobiMl),
    "PySCIPOpt-ML": Peer("pyscipopt_ml", ("PySCIPOpt-ML", "PySCIPOpt"), PyScipOptMl),
    "OMLT": Peer("omlt", ("omlt",), Omlt),
}


def available() -> dict[str, Peer]:
    """Return the peers that can be imported."""
    found = {}
    for name, peer in PEERS.items():
        with contextlib.suppress(ImportError):
            import_module(peer.module)
            found[name] = peer
    return found
