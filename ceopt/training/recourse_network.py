"""CounterNet and RoCourseNet: estimators about a predictor and a generator of recourse, and the check of their advice.

The two networks are trained together (``training.py``); ``polish`` has the exact engine check what the generator says
and replace what is wrong or dearer than proved bounds allow; ``recourse(..., refine=True)`` searches on from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ceopt.base.parallel import Lost, completed, whole_jobs
from ceopt.base.results import Status
from ceopt.base.said import said, together
from ceopt.formulations.constraints.rule import nearest_cluster
from ceopt.formulations.digits import digits, rounded
from ceopt.formulations.space.reachable import reach_of
from ceopt.formulations.space.space import FeatureSpace, require_space
from ceopt.oracle.model import broken_rules
from ceopt.population import answered, cohort_of
from ceopt.result.cohort import Cohort
from ceopt.result.solution_set import SolutionSet
from ceopt.search.build_answer import answer_of, with_printed
from ceopt.search.prepare import Prepared, fingerprints_of, prepare, put_in_reach
from ceopt.settings import Settings
from ceopt.solvers.checks import (
    LENGTH,
    Choice,
    Flag,
    Floats,
    Instance,
    ListOf,
    OrNone,
    Real,
    Refusal,
    Whole,
    check_arguments,
    check_fields,
)
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnwritableFileError
from ceopt.tolerances import POLISH_GAP, ROUNDED_GAP
from ceopt.training.networks import (
    DEVICE,
    Design,
    GeneratorNetwork,
    PredictorNetwork,
    TrainingFrame,
    moved_frame,
    on_device,
    place_of,
    require_jax,
)
from ceopt.training.to_onnx import onnx_bytes
from ceopt.training.training import SCHEDULES, ShiftAttack, Trained, TrainingPlan, TrainingProgram, trained

# ==== Recourse that a generator made ==================================================================================

_WHO: Final = "polish"
_REFINE_CHECKS: Final = {"refine": Flag()}
_POLISH_CHECKS: Final = {"max_ratio": Real(at_least=1.0, finite=True)}
#: What an audit says of each person, with the dtype of each column.
_AUDIT: Final = {
    "source": object,
    "advised_cost": np.float64,
    "valid": bool,
    "broken": object,
    "cost": np.float64,
    "bound": np.float64,
    "gap": np.float64,
    "excess": np.float64,
}

Point = Mapping[str, float]


#: What a person's advice came to: the checked answer, and a line of the audit.
Audited: TypeAlias = tuple[SolutionSet, dict[str, Any]]


def polished(
    model: Any,
    space: FeatureSpace,
    X: pd.DataFrame,
    advice: pd.DataFrame,
    targets: Sequence[Any],
    *,
    cost: Any = "l1",
    constraints: Any = (),
    max_ratio: float = 1.5,
    time_limit_s: float = 10.0,
    n_jobs: int = 1,
    progress: bool = False,
) -> Cohort:
    r"""Keep advice that passes every check at a proved price, and replace what does not by answers of the engine.

    For each person the engine bounds the least cost from below, with the advice as the point to begin with,

    .. math::
        b \le \min_x\ \text{cost}(x, x^0) \quad\text{s.t.}\quad f(x) = t, \quad x \in \text{reach}(x^0), \quad
        \text{constraints},

    and stops as soon as the cheapest point in hand costs at most ``max_ratio`` times b. Advice that the model and every
    rule accept, and that costs no more than that, is the answer as it stands; else the engine's point is.

    Parameters
    ----------
    model
        What :func:`ceopt.explain` reads, and what has the last word.
    space, X, advice
        The columns; the people (n, d) and what each was advised (n, d), in raw units. Rules and costs that learn from
        rows learn from X.
    targets
        The label (n,) that each person should get.
    cost, constraints
        As for :func:`ceopt.explain`.
    max_ratio
        How many times the proved bound advice may cost, at least 1.
    time_limit_s
        Seconds for each person.
    n_jobs
        Processes.
    progress
        Whether to show a bar on standard error.

    Returns
    -------
    Cohort
        One answer per person, with an ``audit``: ``source`` ("generator": the advice as it stands, or a person who
        needs none; "repaired": the engine began with the advice; "engine": it could not be begun with), the advice's
        ``advised_cost``, whether the model accepts it (``valid``) and which rules it has ``broken``, then cost, bound
        and gap of the answer, and ``excess``: by what share the advice costs more than the bound. "optimal" is said of
        answers that are proved best, "feasible" of those that are within the ratio, whoever found them.

    Raises
    ------
    CeoptError
        An option, cost or rule that does not exist or does not fit; a model that cannot be stated as a program.
    """
    checked = check_arguments(_WHO, _POLISH_CHECKS, {"max_ratio": max_ratio})
    jobs = whole_jobs(_WHO, n_jobs)
    queries = X[list(space.names)]
    points = space.coordinates(advice[list(space.names)])
    settings = Settings(
        target=None,
        cost=cost,
        constraints=constraints,
        time_limit_s=time_limit_s,
        relative_gap=max(1.0 - 1.0 / checked["max_ratio"], POLISH_GAP),
        why=False,
    )
    prepared: dict[Any, Prepared] = {}
    fingerprints = fingerprints_of(model, queries)
    for label in dict.fromkeys(targets):
        of_label = replace(settings, target=label)
        prepared[label] = prepare(model, space, of_label, data=queries, fingerprints=fingerprints)
    found = completed(
        _WHO,
        _audited,
        lambda k: (prepared[targets[k]], queries.iloc[[k]], points[k], checked["max_ratio"]),
        count=len(queries),
        n_jobs=jobs,
    )
    lines: list[dict[str, Any]] = [_line("engine") for _ in range(len(queries))]
    options = _options(prepared, checked["max_ratio"])
    done: list[SolutionSet | None] = [None] * len(queries)
    cohort = cohort_of(_results(found, lines), queries, space, options, done=done, progress=progress)
    return replace(cohort, audit=_table(lines, queries.index))


def refined(
    model: Any,
    space: FeatureSpace,
    X: pd.DataFrame,
    advice: pd.DataFrame,
    targets: Sequence[Any],
    *,
    cost: Any = "l1",
    constraints: Any = (),
    time_limit_s: float = 10.0,
) -> pd.DataFrame:
    """Return for each person the cheapest point that the search for a start finds from the advice, as raw rows.

    The model and every rule accept it, and it costs no more than advice that they accept; where none is found, the
    advice stays as it is. The parameters are those of :func:`polished`.
    """
    queries = X[list(space.names)]
    points = space.coordinates(advice[list(space.names)])
    settings = Settings(
        target=None, cost=cost, constraints=constraints, time_limit_s=time_limit_s, why=False, proof=False
    )
    data = pd.concat([queries, advice[list(space.names)]], ignore_index=True)
    prepared = {
        label: prepare(model, space, replace(settings, target=label), data=data) for label in dict.fromkeys(targets)
    }
    found = points.copy()
    for k, label in enumerate(targets):
        person = replace(prepared[label], starts=points[[k]])
        result = answered(person, queries.iloc[[k]])
        if result.counterfactuals:
            found[k] = space.coordinates(result[0].frame)[0]
    return moved_frame(X, space, found, space.coordinates(queries))


def _results(found: Iterator[tuple[int, Any]], lines: list[dict[str, Any]]) -> Iterator[tuple[int, SolutionSet | Lost]]:
    """Give the results as they come in, and note their lines."""
    for place, one in found:
        if isinstance(one, Lost):
            yield place, one
        else:
            result, lines[place] = one
            yield place, result


def _options(prepared: Mapping[Any, Prepared], max_ratio: float) -> dict[str, Any]:
    options: dict[str, Any] = {}
    targets = []
    for one in prepared.values():
        options = one.options()
        targets.append(options["target"])
    return options | {"target": " or ".join(targets), "max_ratio": max_ratio}


def _table(lines: Sequence[dict[str, Any]], index: pd.Index[Any]) -> pd.DataFrame:
    labels: pd.Index[Any] = pd.Index(index, name="query_id", tupleize_cols=False)
    columns = {}
    for word, dtype in _AUDIT.items():
        columns[word] = pd.Series([line[word] for line in lines], index=labels, dtype=dtype)
    return pd.DataFrame(columns)


# ---- one person ------------------------------------------------------------------------------------------------------
def _audited(prepared: Prepared, row: pd.DataFrame, advised: Floats, max_ratio: float) -> Audited:
    """Check one person's advice, bound the least cost, and take the advice or the engine's answer."""
    result = answered(replace(prepared, starts=advised[None, :]), row)
    if result.status is Status.ERROR:
        return result, _line("engine")
    space = prepared.space
    factual = space.row(row)
    if result.status is Status.ALREADY_FAVOURABLE:
        return result, _line("generator", advised_cost=0.0, valid=True, cost=0.0, bound=0.0, gap=0.0)
    point = dict(zip(space.names, advised.tolist(), strict=True))
    prediction, is_valid = _said(prepared, point)
    broken = broken_rules(prepared.settings.rules, space, factual, point)
    advised_cost = prepared.settings.cost.value(space, factual, point)
    passes = is_valid and not broken
    source = "engine"
    if passes and _is_kept(result, point, space, advised_cost, max_ratio):
        source = "generator"
        result = _with_advice(prepared, result, factual, point, prediction)
    elif result.counterfactuals and (passes or _can_be_begun_with(prepared, factual, advised)):
        source = "repaired"
    result = _as_proved(result, max_ratio)
    line = _line(source, advised_cost=advised_cost, valid=is_valid, broken=broken, bound=result.bound, gap=result.gap)
    if result.counterfactuals:
        line["cost"] = result[0].cost
    if passes and result.bound:
        line["excess"] = advised_cost / result.bound - 1.0
    return result, line


def _line(source: str, **known: Any) -> dict[str, Any]:
    """Return a line of the audit, with missing values where nothing is given."""
    line: dict[str, Any] = dict.fromkeys(_AUDIT, np.nan) | {"source": source, "valid": False, "broken": ()}
    return line | {word: value for word, value in known.items() if value is not None}


def _said(prepared: Prepared, point: Point) -> tuple[Any, bool]:
    """Return what the user's own model says of a point, and whether that is the target."""
    predicted, met = prepared.judge([point])
    return predicted[0], bool(met[0])


def _is_kept(result: SolutionSet, point: Point, space: FeatureSpace, advised_cost: float, max_ratio: float) -> bool:
    """Return whether passing advice is within the proved ratio, or the engine's own answer up to its digits."""
    if result.bound is not None and advised_cost <= max_ratio * result.bound:
        return True
    if not result.counterfactuals:
        return True
    found = space.row(result[0].frame)
    is_rounded = all(found[name] == point[name] or space[name].decimals is not None for name in space.names)
    return is_rounded and abs(advised_cost - result[0].cost) <= ROUNDED_GAP * advised_cost


def _can_be_begun_with(prepared: Prepared, factual: Point, advised: Floats) -> bool:
    """Return whether advice passes once it is put where the person can be and mended by the rules that can."""
    space = prepared.space
    rules = prepared.settings.rules
    reach = reach_of(space, factual)
    for coordinates in put_in_reach(advised[None, :], space, factual, reach, rules).tolist():
        point = dict(zip(space.names, coordinates, strict=True))
        if _said(prepared, point)[1] and not broken_rules(rules, space, factual, point):
            return True
    return False


def _with_advice(prepared: Prepared, result: SolutionSet, factual: Point, point: Point, prediction: Any) -> SolutionSet:
    """Return a result with the advice as its answer."""
    answer = answer_of(
        prepared,
        factual,
        point,
        prediction=prediction,
        bound=result.bound,
        rank=1,
        cluster=nearest_cluster(prepared.settings.rules, prepared.space, point),
    )
    assert answer.gap is not None  # noqa: S101 - made by the line above

    def accepts(points: list[dict[str, float]]) -> list[bool]:
        met: list[bool] = prepared.judge(points)[1].tolist()
        return met

    (answer,) = with_printed([(answer, point)], prepared.settings.rules, prepared.space, factual, accepts)
    reason = result.reason
    if not result.counterfactuals:
        passes = said(f"The advice passes every check; the engine ended {result.status}.", "advice_kept")
        reason = together(passes, result.reason)
    return replace(
        result,
        status=Status.FEASIBLE,
        counterfactuals=(answer,),
        bound=answer.bound,
        gap=answer.gap,
        complete=True,
        reason=reason,
    )


def _as_proved(result: SolutionSet, max_ratio: float) -> SolutionSet:
    """Return a result that says "optimal" where its answer is proved best, "feasible" where it is within the ratio."""
    if not result.counterfactuals:
        return result
    gap = result[0].gap
    if gap is not None and gap <= POLISH_GAP:
        return replace(result, status=Status.OPTIMAL, reason="")
    reason = result.reason
    if not reason and gap is not None:
        percent = rounded(100.0 * gap, 2, "up")
        lower = f"The least cost may be lower by up to {digits(percent)}%"
        text = f"{lower}: within {digits(max_ratio)} times the bound is near enough."
        reason = said(text, "gap_open", percent=percent)
    return replace(result, status=Status.FEASIBLE, reason=reason)


# ==== What CounterNet and RoCourseNet share ===========================================================================

_UNITS: Final = Refusal("numbers of units as {name}", "Give a tuple of whole numbers.", error=InvalidTypeError)
_NO_UNITS: Final = Refusal("a layer in {name}", "Give the units of one layer at least.")
_WEIGHTS: Final = Refusal(
    "three numbers as weights, of prediction, validity and proximity", "Give a tuple.", error=InvalidTypeError
)
_PATH: Final = Refusal("a path as {name}", "Name a file.", error=InvalidTypeError)
_PATH_OR_NONE: Final = OrNone(Instance((str, Path), _PATH))
_FIT_CHECKS: Final = {
    "encoder": ListOf(_UNITS, Whole(at_least=1), _NO_UNITS),
    "predictor": ListOf(_UNITS, Whole(at_least=1)),
    "generator": ListOf(_UNITS, Whole(at_least=1)),
    "shared": Flag(),
    "residual": Flag(),
    "activation": Choice(("relu", "leaky_relu")),
    "dropout": Real(at_least=0.0, below=1.0),
    "weights": ListOf(_WEIGHTS, LENGTH),
    "learning_rate": Real(above=0.0, finite=True),
    "batch_size": Whole(at_least=1),
    "epochs": Whole(at_least=1),
    "patience": OrNone(Whole(at_least=1)),
    "label_smoothing": Flag(),
    "device": DEVICE,
    "checkpoint": _PATH_OR_NONE,
    "progress": Flag(),
    "random_state": Whole(at_least=0),
}
#: Settings that change nothing about what is trained.
_BESIDE: Final = ("checkpoint", "progress", "device")


class AbstractRecourseNetwork(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """A predictor and a generator of recourse, trained together on raw rows.

    A subclass lists its parameters in ``__init__``, stores them by ``_store`` and names its attacker, if it has one.
    """

    @final
    def _store(self, given: Mapping[str, Any]) -> None:
        """Set each parameter of ``__init__`` under its name, as scikit-learn asks."""
        for name in self._get_param_names():
            setattr(self, name, given[name])

    # ---- what differs ------------------------------------------------------------------------------------------------
    def _attack(self) -> ShiftAttack | None:
        """Return the attacker, by default None, or refuse its options."""
        return None

    def _radius(self) -> tuple[float, str]:
        """Return the full radius of the attacker's ball, and the schedule."""
        return 0.0, "constant"

    # ---- training ----------------------------------------------------------------------------------------------------
    @final
    def fit(self, X: pd.DataFrame, y: Sequence[Any] | pd.Series[Any]) -> Self:
        """Train both networks; with ``checkpoint``, from where an interrupted training ended.

        Parameters
        ----------
        X
            Raw rows (n, d): numbers, texts, truth values. Those with missing cells are left out with a warning, and
            their labels with them.
        y
            Labels (n,), of two classes or more.

        Raises
        ------
        MissingLibraryError
            JAX or optax is not installed.
        InvalidValueError, InvalidTypeError, UnknownNameError
            An argument of the constructor out of its range; labels that are missing, no classes or one class alone;
            columns without width; several classes without ``desired``; a device that is absent; a checkpoint of
            another model, of other settings or of other data.
        UnreadableFileError, UnwritableFileError
            A checkpoint that is none, or that cannot be written.
        """
        who = type(self).__name__
        require_jax(who)
        settings = check_fields(self, _FIT_CHECKS)
        if len(settings["weights"]) != 3:
            raise _WEIGHTS.of(who, "weights", self.weights)
        if self.space is not None:
            require_space(who, self.space)
        attack = self._attack()
        frame = TrainingFrame.of(who, self.space, X, y)
        program = self._program(settings, frame, attack)
        plan = self._plan(who, settings, program.desired)
        with on_device(who, settings["device"]):
            self._keep(program, frame, trained(who, program, frame, plan))
        self.n_features_in_ = len(frame.columns.space)
        self.feature_names_in_ = np.array(frame.columns.space.names, dtype=object)
        return self

    def _program(self, settings: dict[str, Any], frame: TrainingFrame, attack: ShiftAttack | None) -> TrainingProgram:
        who = type(self).__name__
        n_classes = len(frame.classes)
        desired = None
        if self.desired is not None:
            desired = place_of(who, "desired", self.desired, frame.classes)
        elif n_classes > 2:
            but = "desired is None"
            then = "Name the class that people should get."
            raise InvalidValueError(who, f"a desired class with {n_classes} classes", but, then)
        design = Design(
            n_columns=len(frame.columns.names),
            n_scores=1 if n_classes == 2 else n_classes,
            encoder=settings["encoder"],
            predictor=settings["predictor"],
            generator=settings["generator"],
            shared=settings["shared"],
            activation=settings["activation"],
            groups=frame.columns.groups,
            residual=settings["residual"],
        )
        batch = min(settings["batch_size"], len(frame.codes))
        return TrainingProgram(design, settings["dropout"], batch, settings["label_smoothing"], desired, attack)

    def _plan(self, who: str, settings: dict[str, Any], desired: int | None) -> TrainingPlan:
        radius, schedule = self._radius()
        known = {}
        for name in self.get_params(deep=False):
            if name not in _BESIDE and name != "space":
                known[name] = settings.get(name, getattr(self, name))
        checkpoint = settings["checkpoint"]
        if checkpoint is not None:
            checkpoint = Path(checkpoint)
        return TrainingPlan(
            epochs=settings["epochs"],
            patience=settings["patience"],
            weights=settings["weights"],
            learning_rate=settings["learning_rate"],
            perturbation=radius,
            schedule=schedule,
            random_state=settings["random_state"],
            progress=settings["progress"],
            checkpoint=checkpoint,
            settings={"model": who, **known, "desired": desired},
        )

    def _keep(self, program: TrainingProgram, frame: TrainingFrame, found: Trained) -> None:
        """Set the fitted attributes, as arrays of NumPy."""
        import jax

        predictor = jax.tree.map(np.asarray, program.predictor_of(found.best[0]))
        generator = jax.tree.map(np.asarray, program.generator_of(found.best[1]))
        self.classes_ = frame.classes
        self.space_ = frame.columns.space
        self.predictor_ = PredictorNetwork(frame.columns, predictor, program.design.activation, frame.classes)
        self.generator_ = GeneratorNetwork(self.predictor_, generator, program.design)
        self.history_ = found.frame()
        self._desired = program.desired

    # ---- the predictor -----------------------------------------------------------------------------------------------
    @final
    def predict(self, X: pd.DataFrame) -> NDArray[Any]:
        """Return the label of each raw row, (n,)."""
        check_is_fitted(self)
        return self.predictor_.predict(X)

    @final
    def predict_proba(self, X: pd.DataFrame) -> Floats:
        """Return the probabilities of ``classes_`` for raw rows, (n, K)."""
        check_is_fitted(self)
        return self.predictor_.predict_proba(X)

    @final
    def to_onnx(self, path: str | Path | None = None) -> bytes:
        """Write the predictor as an ONNX file, which any runtime reads, and return its bytes.

        There is one input (n, 1) for each raw column, named as it is: double for numbers; string, int64, bool or float
        for levels. The encoding is inside. The outputs are ``label`` (n,), as in y, and ``probabilities`` (n, K).

        Parameters
        ----------
        path
            The file; None: the bytes alone.

        Raises
        ------
        UnsupportedModelError
            Labels or levels that are neither text nor numbers nor truth values.
        UnwritableFileError
            A folder that is not there or takes no more.
        """
        check_is_fitted(self)
        who = f"{type(self).__name__}.to_onnx"
        content = onnx_bytes(who, self.predictor_)
        if path is not None:
            _PATH_OR_NONE.require(who, "path", path)
            try:
                Path(path).write_bytes(content)
            except OSError as error:
                but = f"path is {str(path)!r} ({error.strerror})"
                then = "Name a file in a folder of yours."
                raise UnwritableFileError(who, "a file that can be written", but, then) from error
        return content

    # ---- the generator -----------------------------------------------------------------------------------------------
    @final
    def recourse(
        self,
        X: pd.DataFrame,
        *,
        target: Any = None,
        refine: bool = False,
        cost: Any = "l1",
        constraints: Any = (),
    ) -> pd.DataFrame:
        """Return what people are advised to become, as raw rows that each of them may reach.

        Index, columns and types are those of X. Numbers are on their steps and within their bounds, levels are legal,
        directions are kept, and what is fixed stays as it was given. That the model says the target of a row is not
        promised: check it with ``predict``.

        With ``refine`` each person's advice is where :func:`ceopt.explain` begins its search for cheap points, and the
        cheapest that the model and every rule accept is the answer. It costs no more than advice that they accept, and
        nothing is proved: :meth:`polish` does that.

        Parameters
        ----------
        X
            Raw rows (n, d).
        target
            A label; rows of which the model says so already stay. None: ``desired``, or without one of two classes the
            one that the model does not say of the row.
        refine
            Whether to search on from the generator's advice; a tenth of a second a person, or more.
        cost, constraints
            As for :func:`ceopt.explain`, of the search. Rules that learn from rows learn from X and the advice.

        Raises
        ------
        InvalidValueError, InvalidTypeError, UnknownNameError
            Rows that do not fit the space; a target that is no class, or not the one that was trained for; ``refine``
            that is not True or False; a cost or rule that does not exist or does not fit.
        """
        check_is_fitted(self)
        who = f"{type(self).__name__}.recourse"
        check_arguments(who, _REFINE_CHECKS, {"refine": refine})
        place = self._target(who, target)
        advice = self.generator_.advised(who, X, place)
        if not refine or not len(X):
            return advice
        targets = self._targets(X, place)
        return refined(self, self.space_, X, advice, targets, cost=cost, constraints=constraints)

    def _targets(self, X: pd.DataFrame, place: int | None) -> list[Any]:
        """Return the label that each person should get."""
        labels = self.classes_.tolist()
        if place is not None:
            return [labels[place]] * len(X)
        codes = self.predictor_.codes(self.predictor_.columns.encode(X))
        return [labels[1 - code] for code in codes.tolist()]

    @final
    def polish(
        self,
        X: pd.DataFrame,
        *,
        target: Any = None,
        cost: Any = "l1",
        constraints: Any = (),
        max_ratio: float = 1.5,
        time_limit_s: float = 10.0,
        n_jobs: int = 1,
        progress: bool = False,
    ) -> Cohort:
        r"""Return recourse that is checked and has a proved price: the generator's, or the exact engine's.

        For each person the engine bounds the least cost over the trained predictor from below, and begins with what
        :meth:`recourse` says:

        .. math::
            b \le \min_x\ \text{cost}(x, x^0) \quad\text{s.t.}\quad f(x) = t, \quad x \in \text{reach}(x^0), \quad
            \text{constraints}

        Advice that the predictor and every rule accept, at a cost of at most ``max_ratio`` times b, stays as it is. The
        rest is replaced by what the engine found.

        Parameters
        ----------
        X
            Raw rows (n, d).
        target
            As of :meth:`recourse`.
        cost, constraints
            As for :func:`ceopt.explain`. Rules that learn from rows learn from X.
        max_ratio
            How many times the proved bound advice may cost, at least 1.
        time_limit_s
            Seconds for each person.
        n_jobs
            Processes.
        progress
            Whether to show a bar on standard error.

        Returns
        -------
        Cohort
            One checked answer a person, with column ``source`` ("generator", "repaired": the engine began with the
            advice, or "engine"), ``audit`` (a frame of price, bound, gap and excess a person) and ``repaired`` (the
            share of people whose advice the engine began with). An answer that is within the ratio and not proved best
            is "feasible", with its gap.

        Raises
        ------
        CeoptError
            What :meth:`recourse` refuses; an option, cost or rule that does not exist or does not fit.
        """
        check_is_fitted(self)
        who = f"{type(self).__name__}.polish"
        place = self._target(who, target)
        advice = self.generator_.advised(who, X, place)
        targets = self._targets(X, place)
        return polished(
            self,
            self.space_,
            X,
            advice,
            targets,
            cost=cost,
            constraints=constraints,
            max_ratio=max_ratio,
            time_limit_s=time_limit_s,
            n_jobs=n_jobs,
            progress=progress,
        )

    def _target(self, who: str, target: Any) -> int | None:
        """Return the place of the class that people should get; None: of two classes the other one."""
        place = self._desired
        if target is None:
            return place
        asked = place_of(who, "target", target, self.classes_)
        if place not in {None, asked}:
            but = f"target is {target!r}"
            needs = f"the target that it was trained for, {self.classes_.tolist()[place]!r}"
            raise InvalidValueError(who, needs, but, "Train one with that class as desired.")
        return asked


# ==== CounterNet: predictor and recourse from one network =============================================================


@final
class CounterNet(AbstractRecourseNetwork):
    r"""A predictor f and a generator g of recourse, trained together by block-wise coordinate descent.

    .. math::
        &\theta \leftarrow \text{step on}\ \lambda_1 L(f(x; \theta), y) \\
        &\theta_g \leftarrow \text{step on}\ \lambda_2 L\big(f(x^{cf}; \theta), t\big) + \lambda_3 L(x, x^{cf}), \quad
        x^{cf} = g(x; \theta_g)

    ============ ====== ====== ==================================================================================
    symbol       shape  unit   meaning
    ============ ====== ====== ==================================================================================
    x, x^cf      (n, p) range  rows and recourse: numbers by their range, a column a level, its share as softmax
    y, t         (n, K)        classes, and those that recourse should get: of two the other, or ``desired``
    theta        ()            encoder and predictor, which end in ReLU units and a sigmoid or softmax
    theta_g      ()            generator; it reads encoder and predictor, fixed in its step, or has its own encoder
    lambda       (3,)   none   ``weights``
    L            ()     none   mean squared error; of x and x^cf over rows and columns
    ============ ====== ====== ==================================================================================

    Numbers are cut to what a person may reach, and what is fixed has its own value already in training. A row takes
    one pass through the network; whether the model says the target of it is to be checked.

    Parameters
    ----------
    space
        The columns, their bounds, steps and directions; None: inferred from the rows.
    encoder, predictor, generator
        Units of each hidden layer.
    shared
        Whether the generator reads the predictor's hidden units; False: it has an encoder of its own (the general
        framework).
    residual
        Whether the generator says by how much a row changes; False, as in the paper: what it becomes. The generator
        knows a person by the predictor's few last units, so without people get nearly the same advice: on German Credit
        (100 epochs, validity 0.99 both) categories take 2 to 8 combinations for 66 people, with it 63, at a proximity
        of 5.5 and not 9.3.
    activation
        "relu", or "leaky_relu" of slope 0.01 as in the paper.
    dropout
        Share of hidden units that are left out in training.
    weights
        Of prediction, validity and proximity.
    learning_rate, batch_size
        Of Adam, one for each block; gradients are cut to a length of 0.5.
    epochs, patience
        Epochs at most, and how many may pass without a better loss on a tenth of the rows, held out; the best weights
        are kept. ``patience=None``: all epochs on all rows, and the last weights.
    label_smoothing
        Whether the true class of a row counts as 0.8 to 0.95, drawn anew in each batch.
    desired
        The label that everybody should get. Needed with several classes; None: of two classes the other one.
    device
        "cpu" or "gpu"; None: what JAX prefers.
    checkpoint
        A file, written after each epoch: the next ``fit`` with the same settings and data goes on from it, to the same
        result.
    progress
        Whether a bar is shown.
    random_state
        The seed.

    Attributes
    ----------
    classes_
        The labels (K,), ascending.
    predictor_, generator_
        The networks, as arrays of NumPy.
    history_
        Losses by epoch: ``prediction``, ``validity``, ``proximity`` (means over batches), ``epsilon`` (0),
        ``held_out`` (the weighted sum on rows held out; NaN without).
    space_, n_features_in_, feature_names_in_
        The columns.

    References
    ----------
    Guo, Nguyen & Yadav (2023), "CounterNet: End-to-end training of prediction aware counterfactual explanations".

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from ceopt.training import CounterNet
    >>> people = pd.DataFrame(np.random.default_rng(0).uniform(size=(200, 2)), columns=["income", "age"])
    >>> granted = np.where(people["income"] > 0.5, "yes", "no")
    >>> model = CounterNet(dropout=0.0).fit(people, granted)
    >>> refused = people[model.predict(people) == "no"]
    >>> bool((model.predict(model.recourse(refused)) == "yes").mean() > 0.9)
    True
    """

    def __init__(
        self,
        *,
        space: FeatureSpace | None = None,
        encoder: tuple[int, ...] = (50, 10),
        predictor: tuple[int, ...] = (10,),
        generator: tuple[int, ...] = (50, 50),
        shared: bool = True,
        residual: bool = True,
        activation: Literal["relu", "leaky_relu"] = "relu",
        dropout: float = 0.3,
        weights: tuple[float, float, float] = (1.0, 0.2, 0.1),
        learning_rate: float = 3e-3,
        batch_size: int = 128,
        epochs: int = 100,
        patience: int | None = 10,
        label_smoothing: bool = False,
        desired: Any = None,
        device: str | None = None,
        checkpoint: str | Path | None = None,
        progress: bool = False,
        random_state: int = 0,
    ) -> None:
        self._store(locals())


# ==== RoCourseNet: predictor and recourse from one network, trained against the worst shift of the data ===============

_ROCOURSENET_CHECKS: Final = {
    "attack_steps": Whole(at_least=1),
    "unroll": Whole(at_least=1),
    "perturbation": LENGTH,
    "norm": Choice(("linf", "l2")),
    "schedule": Choice(SCHEDULES),
    "inner_rate": Real(above=0.0, finite=True),
    "restart": Flag(),
    "attacked": Choice(("all", "head")),
}
#: Lists of layers that the attacker retrains.
_ATTACKED: Final = {"all": ("encoder", "head"), "head": ("head",)}


@final
class RoCourseNet(AbstractRecourseNetwork):
    r"""A predictor f and a generator g of recourse, trained so that recourse outlasts retraining on shifted data.

    For each batch, with an attacker (:func:`virtual_data_shift`) between the two steps of :class:`CounterNet`:

    .. math::
        &\theta \leftarrow \text{step on}\ \lambda_1 L(f(x; \theta), y) \\
        &(\theta', \delta) = \text{VDS}(x, y, x^{cf}, t; \theta, \varepsilon), \qquad
        \lVert \delta_i \rVert \le \varepsilon \\
        &\theta_g \leftarrow \text{step on}\ \lambda_2 L\big(f(x^{cf}; \theta'), t\big) + \lambda_3 L(x, x^{cf}), \quad
        x^{cf} = g(x; \theta_g)

    The radius grows from epoch to epoch. Losses on rows held out are always taken at the full radius, so that epochs
    can be compared and the best weights are the best against the full attack; and training ends early only by epochs
    that were trained at the full radius: with "constant" after ``patience`` of them, with "linear" and "log", whose
    last epoch is the only one, never.

    Parameters
    ----------
    space, encoder, predictor, generator, shared, residual, activation, dropout, weights, learning_rate, batch_size
        As of :class:`CounterNet`.
    epochs, patience, label_smoothing, desired, device, checkpoint, progress, random_state
        As of :class:`CounterNet`.
    attack_steps, unroll
        Steps T of the attack, and steps K of retraining in each.
    perturbation
        The full radius E, a share of each column's range; columns of numbers shift.
    norm
        The ball of each row's shift, "linf" or "l2".
    schedule
        How the radius reaches E after N epochs: "linear" :math:`E (e + 1) / N`, "constant", or "log"
        :math:`E \log(e + 2) / \log(N + 1)`.
    inner_rate
        Step of retraining, by plain gradients. The attack grows with it: on Loan 0.1 suffices against attackers of up
        to 5; with 1 validity under them grows no more, at twice the proximity, and with 3 retraining overshoots.
    restart
        Whether each step of the attack retrains from the predictor, and not from where the last one ended.
    attacked
        Whether the attacker retrains "all" layers, or the "head" behind the encoder.

    Attributes
    ----------
    classes_, predictor_, generator_, history_, space_, n_features_in_, feature_names_in_
        As of :class:`CounterNet`; ``epsilon`` of ``history_`` is the radius of each epoch.

    References
    ----------
    Guo, Jia, Chen, Squicciarini & Yadav (2023), "RoCourseNet: Robust training of a prediction aware recourse model",
    problem (4), Algorithms 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from ceopt.training import RoCourseNet
    >>> people = pd.DataFrame(np.random.default_rng(0).uniform(size=(200, 2)), columns=["income", "age"])
    >>> granted = np.where(people["income"] > 0.5, "yes", "no")
    >>> model = RoCourseNet(dropout=0.0).fit(people, granted)
    >>> refused = people[model.predict(people) == "no"]
    >>> bool((model.predict(model.recourse(refused)) == "yes").mean() > 0.9)
    True
    """

    def __init__(
        self,
        *,
        space: FeatureSpace | None = None,
        encoder: tuple[int, ...] = (50, 10),
        predictor: tuple[int, ...] = (10,),
        generator: tuple[int, ...] = (50, 50),
        shared: bool = True,
        residual: bool = True,
        activation: Literal["relu", "leaky_relu"] = "relu",
        dropout: float = 0.3,
        weights: tuple[float, float, float] = (1.0, 0.2, 0.1),
        learning_rate: float = 3e-3,
        batch_size: int = 128,
        epochs: int = 100,
        patience: int | None = 10,
        label_smoothing: bool = False,
        desired: Any = None,
        device: str | None = None,
        checkpoint: str | Path | None = None,
        progress: bool = False,
        random_state: int = 0,
        attack_steps: int = 7,
        unroll: int = 2,
        perturbation: float = 0.1,
        norm: Literal["linf", "l2"] = "linf",
        schedule: Literal["linear", "constant", "log"] = "linear",
        inner_rate: float = 0.1,
        restart: bool = False,
        attacked: Literal["all", "head"] = "all",
    ) -> None:
        self._store(locals())

    def _attack(self) -> ShiftAttack | None:
        given = check_fields(self, _ROCOURSENET_CHECKS)
        return ShiftAttack(
            steps=given["attack_steps"],
            unroll=given["unroll"],
            norm=given["norm"],
            learning_rate=given["inner_rate"],
            restart=given["restart"],
            retrained=_ATTACKED[given["attacked"]],
        )

    def _radius(self) -> tuple[float, str]:
        return float(self.perturbation), self.schedule
