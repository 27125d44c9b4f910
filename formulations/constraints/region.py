"""Every point of a box or a ball around the answer keeps the decision."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, final

import numpy as np
import pyomo.environ as pyo
from pyomo.core.base.block import ScalarBlock

from ceopt.formulations.constraints.region_adversary import Adversary, BadBox, Scenario, noises_of
from ceopt.formulations.constraints.rule import RULE_NAME, AbstractRule, Stated
from ceopt.formulations.content_hash import content_of
from ceopt.formulations.digits import digits
from ceopt.formulations.linear_form import LinearForm, Rows, total
from ceopt.formulations.predictors.embed import embed_predictor
from ceopt.formulations.predictors.pruned_leaves import pruned_trees
from ceopt.formulations.predictors.raw_trees import raw_trees
from ceopt.formulations.predictors.reaches import Reaches
from ceopt.formulations.predictors.read_model import ReadModel, read_model
from ceopt.formulations.predictors.representation import Affine, ReluNetwork
from ceopt.formulations.predictors.ties import above_level, right_side_of
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.predictors.worst_case import Noises, deepest_in_ball, lowered, moved, raw_slopes, worst_trees
from ceopt.formulations.space.reachable import Interval, Levels, Reach
from ceopt.formulations.space.space import warn
from ceopt.formulations.targets import DisagreementOf, Labels, Target, parse_target
from ceopt.formulations.tolerances import REGION_ROOM
from ceopt.solvers.checks import Choice, Flag, ListOf, OrNone, Real, Refusal, check_fields
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError, UnsupportedModelError
from ceopt.solvers.manifest import Manifest, describe

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ceopt.formulations.columns.columns_block import Factual
    from ceopt.formulations.constraints.rule import Point
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.predictors.pruned_leaves import PrunedTree
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.solvers.checks import Floats

_RADIUS: Final = Refusal("a finite radius of at least 0", "Give for example 0.1.")
_NO_NAMES: Final = Refusal("a column at least as {name}", "Leave columns out, or the rule.")
_NAMES: Final = Refusal("a list of column names as {name}", 'Write columns=["income"].', error=InvalidTypeError)
_CHECKS: Final = {
    "name": RULE_NAME,
    "columns": OrNone(ListOf(_NAMES, texts=True, empty=_NO_NAMES)),
    "radius": Real(at_least=0.0, finite=True, otherwise=_RADIUS),
    "norm": Choice(("linf", "l2")),
    "exact": Flag(),
}
_WIDTH: Final = Real(above=0.0, finite=True, otherwise=Refusal("a finite width above 0", "Leave the column out."))


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Region(AbstractRule):
    r"""Every point of a box or a ball around the answer keeps the decision.

    .. math:: h(x + s) \text{ reaches the target for all } s:\quad
        |s_j| \le r \sigma_j \ (\texttt{linf}) \quad\text{or}\quad \textstyle\sum_j (s_j / \sigma_j)^2 \le r^2 \
        (\texttt{l2}), \quad s_j = 0 \ (j \notin J)

    ============== ============================= =======================================================
    symbol         given as                      meaning
    ============== ============================= =======================================================
    r              ``radius``                    at least 0, in scales
    sigma_j        ``scale``                     one scale of column j, in its own unit
    J              ``columns``                   numbers that may move; ordinals, binaries, categories and
                                                 immutable columns are held
    ============== ============================= =======================================================

    The answer keeps its bounds, and x + s may leave them. Columns with steps, and whole numbers, take legal values
    alone: with less than a step they are held, which is said.

    Linear models: one row, ``score - r |(sigma_j w_j)_j| >= margin`` in the dual norm, exact (a MILP or LP as without).
    Trees and ``linf``: at a split :math:`\theta` the least leaf over the box is that of the left side where
    :math:`x \le \theta - r \sigma`, of the right side where :math:`x > \theta + r \sigma`, and else the lesser of both.
    That is a tree again, embedded as any (``worst``, ``kept``). Where it grows beyond 3,000 nodes, a variable for
    each value that the least leaf may be at least (``worst.least[t, v]``), and a row for each leaf:
    :math:`u_v \le` the number of columns in which the box is clear of a leaf of less than v. Exact for one tree. The
    least leaves of several need not be met at one point, so that these rows may refuse what keeps the rule.
    :func:`ceopt.explain` therefore branches for the cheapest answer whose box is clear of all maximal boxes (a, b] of
    points that are decided otherwise, as far as they are known,

    .. math:: \sum_f [x_f \le a_f - r \sigma_f] + [x_f > b_f + r \sigma_f] \ge 1,

    and finds more of them at each, until one keeps the rule. It falls back on the rows above where that takes too long.
    A program with the rows of all boxes found admits whatever keeps the rule, so that its bound holds: an answer that
    meets it is optimal. For ``exact=False`` this may take about as long as the search did, else until it is proved.

    Networks, and trees in ``l2``: the model again at x + s for each s that an adversary finds at the optimum so far,
    until it finds none (``scenario_k_0``, ``kept_k_0``). :func:`ceopt.explain` adds these; in a model of one's own that
    takes a loop.

    Programs use the radius times 1 + 1e-7, as in floats x just above :math:`\theta + r` may have :math:`x - r \le
    \theta`. An answer is checked by an exact search for a point that is decided otherwise, and not by samples.

    Parameters
    ----------
    radius
        In scales.
    norm
        "linf", a box, or "l2", a ball.
    scale
        "std", or a mapping from columns to widths in their own units.
    columns
        Columns of numbers that may move; by default all that are not immutable, or those in a mapping ``scale``.
    exact
        Whether the search over several trees goes on until an optimum is proved.
    name
        Name in exports and reports.
    model, target
        The model and the decision; by default those that :func:`ceopt.explain` is asked about. Needed in a model of
        your own, or there ``impose(rule, x, model=..., target=...)``.

    Raises
    ------
    InvalidValueError
        A radius below 0 or not finite; a column without scale, that may be missing or hold codes, or that is no number;
        a target of any of several labels, or one that counts trees.
    UnknownNameError
        A norm or column that does not exist.
    UnsupportedModelError
        The model is neither linear nor a network nor trees; of a network, in a model of one's own.

    References
    ----------
    Maragno, Kurtz, Roeber, Goedhart, Birbil & den Hertog (2024), Finding regions of counterfactual explanations via
    robust optimization, INFORMS Journal on Computing, (3) and algorithm 1.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import Factual, impose
    >>> from ceopt.formulations.predictors import Affine
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> space = FeatureSpace([Feature("wage", kind="continuous", lower=0, upper=8), Feature("age", kind="integer")])
    >>> model = Affine([1.0, 0.5], -4.0, labels=("no", "yes"))
    >>> rule = Region(0.5, scale={"wage": 1.0, "age": 4.0}, model=model, target="yes")
    >>> m = pyo.ConcreteModel()
    >>> m.x = Factual(space, {"wage": 1.0, "age": 2})
    >>> m.region = impose(rule, m.x)
    >>> print(m.region.kept.valid[True].expr)  # half a wage and two years of age take 1.5 off the score
    8.75...e-06  <=  -5.50000005... + x.x[wage] + 0.5*x.x[age]
    """

    radius: float
    norm: Literal["linf", "l2"] = field(default="linf", kw_only=True)
    scale: Literal["std"] | Mapping[str, float] = field(default="std", kw_only=True)
    columns: Sequence[str] | None = field(default=None, kw_only=True)
    exact: bool = field(default=False, kw_only=True)
    name: str | None = field(default=None, kw_only=True)
    model: Any = field(default=None, kw_only=True)
    target: Any = field(default=None, kw_only=True)
    _cuts: tuple[BadBox | Scenario, ...] | None = field(default=None, init=False)
    _known: dict[str, Any] = field(default_factory=dict, init=False)
    manifest: ClassVar[Manifest] = Manifest(
        title="every point near the answer keeps the decision",
        formula="h(x + s) reaches the target for all |s_j| <= radius scale_j, or in a ball",
        reference="Maragno et al. 2024, (3)",
        rule="Region",
    )
    needs_factual: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name, value in check_fields(self, _CHECKS).items():
            object.__setattr__(self, name, value)
        if isinstance(self.scale, Mapping):
            widths = {name: _WIDTH.require("Region", f"scale[{name!r}]", width) for name, width in self.scale.items()}
            object.__setattr__(self, "scale", widths)
        elif not isinstance(self.scale, str) or self.scale != "std":
            raise InvalidValueError(
                "Region", '"std" or a mapping from columns to widths as scale', f"scale is {self.scale!r}", "Write one."
            )

    # ---- what is asked about -----------------------------------------------------------------------------------------
    def check(self, space: FeatureSpace) -> None:
        """Refuse columns that do not fit the space, and a model or target of which there is no region."""
        if self.model is not None:
            content = content_of((self.model, self.target))
            if content is None or content != self._known.get("content"):  # it may have been fitted again since
                self._known.pop("asked", None)
            self._known["content"] = content
        widths = self._widths(space)
        if self._is_told:
            self._asked(space)
        if "said" not in self._known:
            self._known["said"] = True
            self._say_what_is_held(space, widths)

    @property
    def _is_told(self) -> bool:
        """Whether model and target are known."""
        has_target = self.target is not None or "target" in self._known
        return has_target and (self.model is not None or "predictor" in self._known)

    def about(self, predictor: Callable[[], Predictor]) -> Region:
        """Return the rule about the model that is explained, unless it has one of its own."""
        if self.model is not None:
            return self
        explained = predictor()
        if self._known.get("predictor") is explained:
            return self
        return self._told(predictor=explained)

    def aimed(self, target: Any) -> Region:
        """Return the rule about the decision that is asked for, unless it has one of its own."""
        if self.target is not None or self._known.get("target") == target:
            return self
        return self._told(target=target)

    def _told(self, **known: Any) -> Region:
        new = replace(self)
        object.__setattr__(new, "_cuts", self._cuts)
        new._known.update({key: value for key, value in self._known.items() if key != "asked"})  # noqa: SLF001
        new._known.update(known)  # noqa: SLF001 - of its own class
        return new

    def _asked(self, space: FeatureSpace) -> _KnownRegion:
        """Return model, decision and noise over the columns of a space; they are found out once."""
        known: _KnownRegion | None = self._known.get("asked")
        if known is not None and (known.space is space or known.space == space):
            return known
        if not self._is_told:
            raise InvalidValueError(
                "Region", "to know the model and the decision", "none is explained here",
                "Give both: impose(rule, x, model=..., target=...), or Region(..., model=..., target=...).",
            )  # fmt: skip
        predictor: Predictor
        if self.model is not None:
            predictor = read_model(self.model, space)
        else:
            predictor = self._known["predictor"]
        if not isinstance(predictor, ReadModel):
            predictor = ReadModel(predictor.core, predictor.encoding, predictor.model, predictor.space)
        target = self.target
        if target is None:
            target = self._known["target"]
        target = parse_target(target, predictor.labels)
        _require(predictor, target)
        adversary = Adversary(predictor, target, self._widths(space), is_ball=self.norm == "l2")
        found = _KnownRegion(space, predictor, target, adversary)
        self._known["asked"] = found
        return found

    def _widths(self, space: FeatureSpace) -> dict[str, float]:
        """Return by column how far points may lie from the answer, in its own unit."""
        widths = {}
        for name in self._names(space):
            feature = space[name]
            if feature.codes or feature.missing is not False:
                what = "hold codes" if feature.codes else "be missing"
                raise InvalidValueError(
                    "Region", "columns that always hold amounts", f"column {name!r} may {what}",
                    "Leave it out: columns=[...]; it is then held.",
                )  # fmt: skip
            scale = feature.std if isinstance(self.scale, str) else self.scale.get(name)
            if scale is None or not scale > 0.0:
                raise InvalidValueError(
                    "Region", "a scale of each column", f"column {name!r} has none",
                    "Give its width, scale={column: width}, or leave it out: columns=[...].",
                )  # fmt: skip
            widths[name] = self.radius * float(scale)
        return widths

    def _names(self, space: FeatureSpace) -> list[str]:
        if self.columns is not None:
            for name in self.columns:
                _require_column(space, name)
                if _is_held(space[name]):
                    why = "is immutable" if not space[name].is_finite else f"is {space[name].kind}"
                    raise InvalidValueError(
                        "Region", "numbers that may move as columns", f"column {name!r} {why}",
                        "Leave it out: it is held.",
                    )  # fmt: skip
            return list(dict.fromkeys(self.columns))
        names: Sequence[str] = space.names
        if isinstance(self.scale, Mapping):
            for name in self.scale:
                _require_column(space, name)
            names = tuple(self.scale)
        return [name for name in names if not _is_held(space[name])]

    def _say_what_is_held(self, space: FeatureSpace, widths: Mapping[str, float]) -> None:
        """Warn of columns with steps of which the radius is less than one."""
        if self.radius == 0.0:
            return
        noises = noises_of(space, widths, is_ball=self.norm == "l2")
        held = [name for name, noise in noises.items() if noise.step is not None and noise.steps == 0]
        if held:
            listed = ", ".join(map(repr, held))
            warn(f"Region holds {listed} where they are: the radius is less than one of their steps.")

    # ---- the program -------------------------------------------------------------------------------------------------
    @property
    def stated(self) -> Stated:  # type: ignore[override]
        """How the rows state the rule: exactly, or more strictly, or by rows that are found while solving."""
        asked = self._known.get("asked")
        if asked is None:
            if not self._is_told or self.model is not None:
                return "exactly"
            asked = self._asked(self._known["predictor"].space)
        core = asked.predictor.core
        if isinstance(core, Affine) or not asked.adversary.is_wide:
            return "exactly"
        if isinstance(core, ReluNetwork):
            return "by_cuts"
        assert isinstance(core, TreeEnsemble)  # noqa: S101 - nothing else is taken
        if len(core.trees) == 1 and self.norm == "linf":
            return "exactly"
        return "proved" if self.exact else "stricter"

    @property
    def implies_target(self) -> bool:  # type: ignore[override]
        """Whether it is about the model and the decision that are asked about: the answer is in its region."""
        return self.model is None and self.target is None

    @property
    def slow(self) -> bool:  # type: ignore[override]
        """Whether a check solves a program: of networks."""
        asked = self._known.get("asked")
        return asked is not None and isinstance(asked.predictor.core, ReluNetwork)

    def build(self, block: Any, x: Factual) -> None:
        """State the worst case, or what is known of points that are decided otherwise."""
        asked = self._asked(x.space)
        if self._cuts is not None:
            for k, cut in enumerate(self._cuts):
                if isinstance(cut, BadBox):
                    _avoid(block, k, cut, x, _roomier(asked.adversary.noises, x.reach))
                else:
                    _hold_at(block, k, cut, x, asked)
            return
        if self.stated == "by_cuts":
            raise UnsupportedModelError(
                "Region", "a linear model or trees in a model of one's own", "this one is a network",
                "Ask ceopt.explain, or add a scenario for each point that is decided otherwise, in a loop.",
            )  # fmt: skip
        noises = _roomier(asked.adversary.noises, x.reach)
        for k, (model, _) in enumerate(asked.adversary.conditions):
            _state_worst(block, "" if k == 0 else f"_{k + 1}", model, x, noises, is_ball=self.norm == "l2")

    def stand_ins(self, reach: Reach) -> tuple[Predictor, ...]:
        """Return the worst case of trees, whose splits are where answers lie; nothing of other models."""
        asked = self._known.get("asked")
        if asked is None or not isinstance(asked.predictor.core, TreeEnsemble):
            return ()
        noises = _roomier(asked.adversary.noises, reach)
        found = [worst_trees(model, noises, reach) for model, _ in asked.adversary.conditions]
        return tuple(worst for worst in found if worst is not None)

    def values_beside(self, reach: Reach) -> Mapping[str, Sequence[float]] | None:
        """Return the last values at which a box is left of a split of trees, and the first at which it is right."""
        asked = self._known.get("asked")
        if asked is None or asked.adversary.is_ball or not isinstance(asked.predictor.core, TreeEnsemble):
            return None
        noises = _roomier(asked.adversary.noises, reach)
        found: dict[str, set[float]] = {}
        for model, _ in asked.adversary.conditions:
            for name, lefts in raw_trees(model).lefts.items():
                part = reach[name]
                assert isinstance(part, Interval)  # noqa: S101 - a column of numbers
                if part.is_point:
                    continue
                for left in lefts.tolist():
                    ends = [_end(left, name, noises, part.anchor, side) for side in (-1, 1)]
                    beside = (part.floor(ends[0]), part.ceil(math.nextafter(ends[1], math.inf)))
                    found.setdefault(name, set()).update(value for value in beside if math.isfinite(value))
        return {name: sorted(values) for name, values in found.items()}

    def is_met(self, cut: Any, reach: Reach, values: Mapping[str, Floats]) -> Mapping[str, NDArray[np.bool_]]:
        """Return at which values of each column the box around a point meets one of points decided otherwise."""
        noises = _roomier(self._known["asked"].adversary.noises, reach)
        met = {name: np.asarray(values[name] == label) for name, label in cut.labels.items()}
        met |= {name: np.isin(values[name], list(ranks)) for name, ranks in cut.levels.items()}
        for name, (low, high) in cut.numbers.items():
            part, own = reach[name], values[name]
            assert isinstance(part, Interval)  # noqa: S101 - a column of numbers
            first = _end(math.nextafter(low, -math.inf), name, noises, part.anchor, -1)
            last = _end(high, name, noises, part.anchor, 1)
            met[name] = (own > first) & (own <= last)
            if part.labels:
                met[name] &= ~np.isin(own, list(part.labels))
        return met

    def counterexample(self, space: FeatureSpace, point: Point) -> tuple[Any, ...]:
        """Return what follows from a point near this one that is decided otherwise; nothing where there is none."""
        adversary = self._asked(space).adversary
        found = adversary.worst(point)
        if found is None:
            return ()
        if found.box is not None and not adversary.is_ball:
            return tuple(adversary.bad_boxes(point, found))
        return (adversary.scenario(point, found),)

    def with_cuts(self, cuts: Sequence[Any]) -> Region:
        """Return the rule as far as it follows from counterexamples."""
        new = self._told()
        if "asked" in self._known:
            new._known["asked"] = self._known["asked"]  # noqa: SLF001 - of its own class
        object.__setattr__(new, "_cuts", tuple(cuts))
        return new

    # ---- the same in plain numbers -----------------------------------------------------------------------------------
    def violation(self, space: FeatureSpace, factual: Point | None, point: Point) -> float:
        """Return by how much the score falls short at a point near this one that is decided otherwise; 0 if none is."""
        del factual
        asked = self._asked(space)
        key = tuple(float(point[name]) for name in space.names)
        if key not in asked.judged:
            if len(asked.judged) >= _MOST_KEPT:
                asked.judged.clear()
            found = asked.adversary.worst(point)
            asked.judged[key] = 0.0 if found is None else found.short
        return asked.judged[key]

    # ---- in words ----------------------------------------------------------------------------------------------------
    def sentence(self) -> str:
        """Return the rule in words and numbers."""
        shape = "box" if self.norm == "linf" else "ball"
        unit = "standard deviations" if isinstance(self.scale, str) else "widths"
        whose = ""
        if self.model is not None:
            whose = f" to {type(self.model).__name__}"
        return f"every point of a {shape} of {digits(self.radius)} {unit} around the answer keeps the decision{whose}"

    def __repr__(self) -> str:
        parts = [repr(self.radius)]
        for name, default in (("norm", "linf"), ("scale", "std"), ("columns", None), ("exact", False), ("name", None)):
            value = getattr(self, name)
            if value != default:
                parts.append(f"{name}={value!r}")
        if self.model is not None:
            parts.append(f"model={type(self.model).__name__}")
        if self.target is not None:
            parts.append(f"target={self.target!r}")
        return f"Region({', '.join(parts)})"


#: Points of which the judgement is kept.
_MOST_KEPT: Final = 100_000


@final
@dataclass(frozen=True, slots=True, eq=False)
class _KnownRegion:
    """What a region is about: model, decision, the adversary who looks for other decisions, and points judged."""

    space: FeatureSpace
    predictor: ReadModel
    target: Target
    adversary: Adversary
    judged: dict[tuple[float, ...], float] = field(default_factory=dict)


def _require(predictor: ReadModel, target: Target) -> None:
    """Refuse a model or a target of which there is no region."""
    if not isinstance(predictor.core, Affine | ReluNetwork | TreeEnsemble):
        raise UnsupportedModelError(
            "Region", "a linear model, a network or trees", f"{type(predictor.model).__name__} combines several models",
            "Impose a region of each of them: Region(..., model=..., target=...).",
        )  # fmt: skip
    is_any_of_several = isinstance(target, Labels) and len(target.wanted) > 1
    if is_any_of_several or isinstance(target, DisagreementOf):
        raise InvalidValueError(
            "Region", "a target of one label, a probability or values", f"the target is {target.text()}",
            "Ask for one label.",
        )  # fmt: skip


def _require_column(space: FeatureSpace, name: str) -> None:
    if name not in space:
        raise UnknownNameError.among("Region", "column", name, space.names)


def _is_held(feature: Feature) -> bool:
    return feature.is_finite or not feature.mutable


# ==== Rows ============================================================================================================


def _roomier(noises: Noises, reach: Reach) -> Noises:
    """Return the noises for a program, a little wider than where answers are checked."""
    found = {}
    for name, noise in noises.items():
        part = reach[name]
        assert isinstance(part, Interval)  # noqa: S101 - a column of numbers
        ends = [abs(end) for end in (part.lower, part.upper) if math.isfinite(end)]
        found[name] = noise.roomier(max(ends, default=1.0))
    return found


def _state_worst(block: Any, suffix: str, model: ReadModel, x: Factual, noises: Noises, *, is_ball: bool) -> None:
    """State that the worst score over the noise is reached."""
    worst: Predictor | None
    core = model.core
    if isinstance(core, Affine):
        slopes = dict(zip(noises, raw_slopes(model, core.weights[0], list(noises)).tolist(), strict=True))
        falls = sum(abs(slopes[name]) * noise.width for name, noise in noises.items())
        if is_ball:
            falls = deepest_in_ball(slopes, noises)[1] * (1.0 + REGION_ROOM)
        worst = lowered(model, falls)
    elif isinstance(core, TreeEnsemble):
        worst = worst_trees(model, noises, x.reach)
        if worst is None:
            _state_least_leaves(block, suffix, model, x, noises)
            return
    else:
        worst = model  # of a network only what cannot move
    embedded = embed_predictor(worst, x, cutoff=x.cutoff)
    block.add_component(f"worst{suffix}", embedded)
    x.also_place(embedded.place)
    block.add_component(f"kept{suffix}", Reaches(embedded, True))
    _keep_off_unseen(block, model, x)


def _keep_off_unseen(block: Any, model: Predictor, x: Factual) -> None:
    """Keep the person off levels that a step before the model fails on, which its worst case does not know."""
    if block.component("never_seen") is None:
        for name, ranks in model.unseen.items():
            Rows(block, "never_seen").add(name, x.coordinate(name).indicator(ranks), upper=0.0)


@final
class LeastLeaves(ScalarBlock):  # type: ignore[misc]  # Pyomo is untyped
    r"""The least values of the leaves that a box around the answer meets, tree by tree, from below.

    .. math:: w_t = v_{t0} + \sum_i (v_{ti} - v_{t,i-1})\, u_{ti}, \qquad u_{ti} \ge u_{t,i+1}, \qquad
        u_{ti} \le \sum_f [x_f \le a_{\ell f} - r_f] + [x_f > b_{\ell f} + r_f] \quad \forall \ell: v_\ell < v_{ti}

    with the values :math:`v_{t0} < v_{t1} < \dots` of the leaves and a box (a, b] for each. ``least[t, i]`` is u,
    continuous: with the cuts whole, the greatest that it may be is 0 or 1. A row for each leaf but the best.
    """

    def __init__(self, model: ReadModel, x: Factual, noises: Noises) -> None:
        super().__init__(concrete=True)
        core = model.core
        assert isinstance(core, TreeEnsemble)  # noqa: S101 - the caller has asked
        describe(self, _LEAST_MANIFEST)
        self.least = pyo.Var(pyo.Any, dense=False, bounds=(0.0, 1.0))
        self._steps: list[tuple[Any, list[Any]]] = []
        wide = _wider(x.reach, noises)
        constant = float(core.base[0])
        terms: list[tuple[float, Any]] = []
        for tree in pruned_trees(model, wide):
            values = sorted({leaf.value[0] for leaf in tree.leaves})
            constant += values[0] if values else 0.0
            for place, (before, value) in enumerate(pairwise(values), start=1):
                terms.append((value - before, self.least[tree.position, place]))
            self._bound(tree, values, x, noises, wide)
        self.form = LinearForm(constant, tuple(terms)).scaled(1.0 / core.divisor)

    def _bound(self, tree: PrunedTree, values: list[float], x: Factual, noises: Noises, wide: Reach) -> None:
        for place in range(2, len(values)):
            step = ((1.0, self.least[tree.position, place - 1]), (-1.0, self.least[tree.position, place]))
            Rows(self, "in_order").add((tree.position, place), LinearForm(0.0, step), lower=0.0)
        for leaf in tree.leaves:
            place = values.index(leaf.value[0]) + 1
            if place == len(values):
                continue
            clear = []
            for name, part in leaf.box.items():
                clear += _clear_of(x, name, part, noises, wide[name])
            form = LinearForm(0.0, ((1.0, self.least[tree.position, place]),)) + total(clear).scaled(-1.0)
            Rows(self, "is_clear").add((tree.position, leaf.node), form, upper=0.0)


_LEAST_MANIFEST: Final = Manifest(
    title="least leaves over a box",
    formula="least[t,i] <= number of columns in which the box is clear of a leaf of less than value i",
    reference="own",
)


def _state_least_leaves(block: Any, suffix: str, model: ReadModel, x: Factual, noises: Noises) -> None:
    core = model.core
    worst = LeastLeaves(model, x, noises)
    block.add_component(f"worst{suffix}", worst)
    accepts = above_level(0.0, ties=core.decision == "nonnegative")
    side = right_side_of(model, (1.0,), 0.0, accepts)
    Rows(block, f"kept{suffix}").add(True, worst.form, lower=side.least)


def _wider(reach: Reach, noises: Noises) -> dict[str, Interval | Levels]:
    """Return the reach of the points near answers in reach."""
    found = dict(reach)
    for name, noise in noises.items():
        part = reach[name]
        assert isinstance(part, Interval)  # noqa: S101 - a column of numbers
        lower, upper = part.lower - noise.width, part.upper + noise.width
        if noise.step is not None:
            grid = Interval(-math.inf, math.inf, noise.step, part.anchor)
            lower = noise.shifted(part.lower, part.anchor, -1) if math.isfinite(lower) else lower
            upper = noise.shifted(part.upper, part.anchor, 1) if math.isfinite(upper) else upper
            lower, upper = grid.floor(lower), grid.floor(upper)
        found[name] = Interval(lower, upper, noise.step, part.anchor)
    return found


def _clear_of(x: Factual, name: str, part: Any, noises: Noises, wide: Interval | Levels) -> list[LinearForm]:
    """Return forms whose sum is at least 1 where the box around the answer is clear of a part of a column, else 0."""
    coordinate = x.coordinate(name)
    if isinstance(part, frozenset):
        return [coordinate.indicator(part).complement()]
    assert isinstance(wide, Interval)  # noqa: S101 - a column of numbers
    low, high, labels = part
    if low > high:  # labels alone
        return [total(map(coordinate.label_form, labels)).complement()]
    forms = [coordinate.label_form(label) for label in x.reach[name].labels if label not in labels]
    if low > wide.lower:
        forms.append(coordinate.at_most(_end(math.nextafter(low, -math.inf), name, noises, wide.anchor, -1)))
    if high < wide.upper:
        forms.append(coordinate.above(_end(high, name, noises, wide.anchor, 1)))
    return forms


def _end(value: float, name: str, noises: Noises, anchor: float, side: int) -> float:
    noise = noises.get(name)
    return value if noise is None else noise.shifted(value, anchor, side)


def _avoid(block: Any, k: int, box: BadBox, x: Factual, noises: Noises) -> None:
    """State that the box around the answer misses a box of points that are decided otherwise."""
    clear: list[LinearForm] = []
    for name, label in box.labels.items():
        clear.append(x.coordinate(name).equals(label).complement())
    for name, ranks in box.levels.items():
        clear.append(x.coordinate(name).indicator(ranks).complement())
    for name, (low, high) in box.numbers.items():
        part = x.reach[name]
        assert isinstance(part, Interval)  # noqa: S101 - a column of numbers
        clear += [x.coordinate(name).label_form(label) for label in part.labels]
        anywhere = Interval(-math.inf, math.inf, part.step, part.anchor)
        clear += _clear_of(x, name, (low, high, frozenset(part.labels)), noises, anywhere)
    Rows(block, "avoids").add(k, total(clear), lower=1.0)


def _hold_at(block: Any, k: int, scenario: Scenario, x: Factual, asked: _KnownRegion) -> None:
    """State that the decision is kept after some moves."""
    for place, (model, _) in enumerate(asked.adversary.conditions):
        embedded = embed_predictor(moved(model, scenario.moves, x.reach), x, cutoff=x.cutoff)
        block.add_component(f"scenario_{k}_{place}", embedded)
        x.also_place(embedded.place)
        block.add_component(f"kept_{k}_{place}", Reaches(embedded, True))
