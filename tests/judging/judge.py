"""What ``explain`` says, held against every point of a question: status, cost, bound, and each further rank."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import enumeration
import numpy as np
from judging.columns import Floats, coordinates_of, frame_of, is_lattice, lattice, raw, reach, step_of
from judging.narrow import NarrowQuestion, compare_narrow
from judging.question import TREES, Asked, PolishQuestion, Question, clear_of_ties, draw, least_moves
from judging.wide import Halfspace
from judging.wishes import keeps, meets
from numpy.typing import NDArray

import ceopt
from ceopt.training.recourse_network import polished

#: What counts as equal: ``relative_gap`` lets an optimum be dearer by 1e-6.
GAP = 1e-6
#: By how much an answer of a model that is no tree may lie above the infimum (design/api.md, ``margin``).
OPEN = 1e-5
ROUNDING = 1e-9
#: What is said where a score that is missed by its rounding proves nothing.
_OF_ROUNDING = ("Whether a tie does is not settled", "which may let a point through")


@dataclass(frozen=True)
class Verdict:
    """What came back and what is wrong with it."""

    status: str
    expected: str
    wrong: tuple[str, ...]
    seconds: float
    cost: float | None = None
    best: float | None = None
    ranks: int = 0
    reason: str = ""
    #: Fewer answers than asked for, and no claim that there are no more.
    open_ranks: bool = False


def ask(question: Asked) -> Any:
    """Put a question to the package, as a user does."""
    if isinstance(question, PolishQuestion):
        return _polished(question)
    if isinstance(question, NarrowQuestion):
        return ceopt.explain(
            question.model, question.row, question.space, target=question.target, cost=question.cost,
            **question.options,
        )  # fmt: skip
    is_whole = isinstance(question, Question)
    return ceopt.explain(
        question.model.given,
        raw(question.space, question.home),
        question.space,
        target=question.target,
        cost=question.cost.given if is_whole else question.cost,
        constraints=question.rules if is_whole else (),
        **question.options,
    )


def _polished(question: PolishQuestion) -> Any:
    asked = question.asked
    rows = frame_of(asked.space, np.stack([asked.home, question.advice]))
    (result,) = polished(
        asked.model.given, asked.space, rows.iloc[[0]], rows.iloc[[1]], [asked.target], cost=asked.cost.given,
        constraints=asked.rules, max_ratio=question.max_ratio, time_limit_s=30.0,
    )  # fmt: skip
    return result


def judge(question: Asked) -> Verdict:
    """Ask and compare."""
    began = time.perf_counter()
    if isinstance(question, NarrowQuestion):
        wish, best = "", None
    elif isinstance(question, PolishQuestion):
        wish, best = expected(question.asked), question.asked.best
    else:
        wish, best = expected(question), question.best
    try:
        result = ask(question)
    except ceopt.CeoptError as error:
        said, wrong = f"{type(error).__name__}: {error}", () if known_refusal(error) else ("refused",)
        return Verdict("refused", wish, wrong, time.perf_counter() - began, best=best, reason=said)
    except Exception as error:  # noqa: BLE001 - a bare exception is what is looked for
        bare = f"bare {type(error).__name__}: {error}"
        return Verdict("raised", wish, (bare,), time.perf_counter() - began, best=best, reason=bare)
    seconds = time.perf_counter() - began
    match question:
        case Question():
            wrong = compare(question, result)
        case NarrowQuestion():
            wrong = compare_narrow(question, result)
        case PolishQuestion():
            wrong = compare_polished(question, result)
        case _:
            wrong = compare_halfspace(question, result)
    cost = result[0].cost if len(result) else None
    is_open = 0 < len(result) < question.options["n"] and not result.complete
    status = "unproved" if is_unproved(question, result) else str(result.status)
    return Verdict(status, wish, tuple(wrong), seconds, cost, best, len(result), result.reason, is_open)


def is_unproved(question: Asked, result: Any) -> bool:
    """Tell whether nothing is claimed and the reason says why: counted apart.

    Coefficients of one row span more than 1e10; or there is nothing, and the relaxation of wide whole numbers has
    points by the solver's tolerance, of which none in whole numbers keeps the program; or nothing but points that miss
    the target by what rounds in a score.
    """
    if str(result.status) not in {"error", "rejected"} or isinstance(question, NarrowQuestion):
        return False
    asked = question.asked if isinstance(question, PolishQuestion) else question
    if isinstance(asked, Question) and any(words in result.reason for words in _OF_ROUNDING):
        return expected(asked) == "infeasible" and _is_missed_by_rounding(asked)
    if isinstance(question, PolishQuestion):
        return False
    is_empty = expected(question) == "infeasible" and "No point in whole numbers was found near" in result.reason
    return is_empty or "Coefficients of one row span" in result.reason


def _is_missed_by_rounding(question: Question) -> bool:
    """Tell whether some point lies at a tie but for rounding, so that a batch may say otherwise than one row does."""
    model = question.model
    if model.labels is not None and model.chance is None:
        score = np.abs(model.given.decision_function(model.seen(question.points)))
        return bool((score <= 1e-12 * score.max()).any())
    return not clear_of_ties(model, question.target, question.points).all()


def known_refusal(error: Exception) -> bool:
    """Tell whether an error names an option that the documentation says is not read or not stated."""
    text = str(error)
    licence = "licence" in text and "2,000" in text  # Gurobi's, which comes with its package
    without_bounds = "A target of several labels needs finite bounds" in text  # where no point of one label is found
    return licence or without_bounds or "probabilities that are linear in a member's score" in text


def expected(question: Question | Halfspace) -> str:
    """Return the status that enumeration proves."""
    if isinstance(question, Halfspace):
        if meets(question.model, question.target, question.home[None, :])[0]:
            return "already_favourable"
        return "infeasible" if question.best is None else "optimal"
    if _home_is_good(question):
        return "already_favourable"
    return "infeasible" if question.best is None else "optimal"


def _home_is_good(question: Question) -> bool:
    home = question.home[None, :]
    if question.model.unordered:
        return bool(question.good[0])
    kept = keeps(question.rules, question.space, question.home, home)
    return bool(meets(question.model, question.target, home)[0] and kept[0])


def compare(question: Question, result: Any) -> list[str]:
    """Return what is wrong, in words."""
    wish, status = expected(question), str(result.status)
    if status == "time_limit" or is_unproved(question, result):
        return []
    if status == "feasible" and wish == "optimal":
        return _answers(question, result, proved=False)
    if status == "optimal" and wish == "infeasible" and question.open_end:
        # What is enumerated along a line steps over ties: at kinks, and where the model says otherwise in a batch.
        points = [coordinates_of(question.space, answer.values) for answer in result]
        return [complaint for k, point in enumerate(points) for complaint in _invalid(question, result[k], point, k)]
    if status != wish:
        return [f"status {status}, by enumeration {wish} (best {question.best}); {result.reason}"]
    return _answers(question, result, proved=True) if status == "optimal" else []


def _answers(question: Question, result: Any, *, proved: bool) -> list[str]:
    points = [coordinates_of(question.space, answer.values) for answer in result]
    found = [complaint for k, point in enumerate(points) for complaint in _invalid(question, result[k], point, k)]
    if found:
        return found
    best = question.best
    assert best is not None
    cost = result[0].cost
    found += _compared(question, cost, 1, best=best, most=best if proved else None)
    share = GAP + (OPEN if question.open_end else 0.0)
    if result.bound is not None and result.bound > best * (1 + share) + ROUNDING:
        found.append(f"bound {result.bound!r} above the best {best!r}")
    if question.options["n"] > 1:
        found += _ranks(question, result, points)
    return found


def _compared(question: Question, cost: float, rank: int, *, best: float, most: float | None) -> list[str]:
    """Hold a cost against the least of all, and, where that is claimed, the most that the least may be."""
    share = GAP + (OPEN if question.open_end else 0.0)
    if cost < best - ROUNDING * max(1.0, abs(best)) - 1e-9 * abs(best):
        # A point of the enumeration that the model accepts alone and not in a batch is a tie like any other.
        same = np.isclose(question.costs, cost, rtol=1e-12, atol=0.0) & ~question.good
        if question.kind not in TREES[:3] and (same.any() or question.open_end):  # it has been checked by itself
            return []
        return [f"rank {rank}: cost {cost!r} below the best {best!r} of enumeration"]
    if most is not None and cost > most * (1 + share) + ROUNDING * max(1.0, abs(most)):
        return [
            f"rank {rank}: cost {cost!r}, by enumeration {most!r} ({cost / most - 1 if most else cost:.2e} too dear)"
        ]
    return []


def _invalid(question: Question, answer: Any, point: Floats, k: int) -> list[str]:
    """Check one answer apart from the package: the model itself, reach, rules, and the cost."""
    found, space, row = [], question.space, point[None, :]
    if not meets(question.model, question.target, row)[0]:
        found.append(f"rank {k + 1}: the model says {question.model.predict(row)[0]!r}")
    if not keeps(question.rules, space, question.home, row)[0]:
        found.append(f"rank {k + 1}: a rule is broken")
    for j, feature in enumerate(space):
        low, high = reach(feature, float(question.home[j]))
        whole = not is_lattice(feature) or any(
            abs(point[j] - v) <= 1e-9 for v in lattice(feature, float(question.home[j]))
        )
        if not (low <= point[j] <= high and whole and (feature.kind != "integer" or point[j] == np.floor(point[j]))):
            found.append(f"rank {k + 1}: column {feature.name} at {point[j]!r} is out of reach")
    own = float(question.cost.price(enumeration.Moves(space, row - question.home), row)[0])
    if abs(own - answer.cost) > ROUNDING * max(1.0, abs(own)):
        found.append(f"rank {k + 1}: cost {answer.cost!r}, by hand {own!r}")
    return found


def compare_polished(question: PolishQuestion, result: Any) -> list[str]:
    """Hold what polish says against enumeration: "optimal" is the best, "feasible" within the ratio of the bound."""
    asked, status = question.asked, str(result.status)
    if status == "rejected" and expected(asked) == "infeasible":
        return []  # nothing is claimed
    is_dearer = (
        bool(result.bound) and len(result) > 0 and result[0].cost > question.max_ratio * result.bound * (1 + GAP)
    )
    if status == "feasible" and is_dearer and "within" in result.reason:
        return [f"said to be within {question.max_ratio} of {result.bound!r}, but costs {result[0].cost!r}"]
    return compare(asked, result)


def compare_halfspace(question: Halfspace, result: Any) -> list[str]:
    """Compare with the closed form; whole moves may cost more than real ones."""
    wish, status = expected(question), str(result.status)
    if status == "time_limit" or is_unproved(question, result):
        return []
    if status != wish and not (status == "feasible" and wish == "optimal"):
        return [f"status {status}, by closed form {wish} (best {question.best}); {result.reason}"]
    if not len(result):
        return []
    best, most = question.best, question.most
    assert best is not None
    assert most is not None
    point, cost = coordinates_of(question.space, result[0].values)[None, :], result[0].cost
    found = []
    if not meets(question.model, question.target, point)[0]:
        found.append(f"the model says {question.model.predict(point)[0]!r}")
    if cost < best * (1 - GAP) - 1e-12:
        found.append(f"cost {cost!r} below the best {best!r} of the closed form")
    if status == "optimal" and cost > most * (1 + OPEN + GAP) + 1e-12:
        found.append(
            f"cost {cost!r}, by closed form {best!r} to {most!r} ({cost / most - 1 if most else cost:.2e} too dear)"
        )
    if result.bound is not None and result.bound > most * (1 + OPEN + GAP) + 1e-12:
        found.append(f"bound {result.bound!r} above the best {most!r}")
    return found


# ---- further ranks ---------------------------------------------------------------------------------------------------
def _ranks(question: Question, result: Any, points: list[Floats]) -> list[str]:
    """Each further answer is the cheapest of those that differ from all before it, as enumeration finds them."""
    how, found = question.options["diversity"], []
    costs = [answer.cost for answer in result]
    if how == "incumbents":
        repeats = len({tuple(point.tolist()) for point in points}) < len(points)
        return ["an incumbent repeats"] if repeats else []
    # Some points of a distance may be taken as far enough or not: those that surely are bound the cost from above.
    left, sure = question.good.copy(), question.good.copy()
    if isinstance(how, str):
        left &= (question.points == question.home)[:, list(question.stays)].all(axis=1)
        sure &= left
    for k in range(1, question.options["n"]):
        left &= differs(question, points[k - 1])
        sure &= differs(question, points[k - 1], surely=True)
        best, most = question.least(left), question.least(sure)
        if k == len(points):
            if result.complete and most is not None:
                found.append(f"complete with {k} answers, by enumeration another costs {most!r}")
            break
        if best is None:
            found.append(f"rank {k + 1}: cost {costs[k]!r}, by enumeration there is none")
            break
        gap = result[k].gap  # each answer says how far it is proved
        found += _compared(question, costs[k], k + 1, best=best, most=most if gap is not None and gap <= GAP else None)
        if found:
            break
    return found


def differs(question: Question, earlier: Floats, *, surely: bool = False) -> NDArray[np.bool_]:
    """Return which points are another answer than an earlier one, as the public interface words it.

    A distance that is missed by at most 1e-6 of it may pass as kept (``ceopt.Apart``), but ``surely`` is not.
    """
    how, home, points = question.options["diversity"], question.home, question.points
    if isinstance(how, ceopt.Apart):
        return _far(question, how, earlier, ROUNDING if surely else 1e-6)
    if how == "distinct":
        return enumeration.distinct(question.space, home, earlier, points)
    before = (earlier != home)[None, :]
    apart = np.where(before, points == home, _has_moved(question))
    if how == "support":
        return np.asarray(apart.any(axis=1))
    differ = apart[:, list(question.counted)].any(axis=1)
    for j, feature in enumerate(question.space):
        if feature.is_finite:
            differ |= points[:, j] != earlier[j]
        else:
            cuts = question.cells[j]
            differ |= np.searchsorted(cuts, points[:, j], "right") != np.searchsorted(cuts, earlier[j], "right")
    return np.asarray(differ)


def _has_moved(question: Question) -> NDArray[np.bool_]:
    """Return which columns of which points have changed: a number without a step by the least move, or into a cell."""
    found = np.asarray(question.points != question.home)
    for j, feature in enumerate(question.space):
        if not feature.is_finite and step_of(feature) is None:
            (low, _), values, x0 = least_moves(feature, 0.0), question.points[:, j], question.home[j]
            cuts = question.cells[j]
            leaves = np.searchsorted(cuts, values, "right") != np.searchsorted(cuts, x0, "right")
            found[:, j] = leaves | (np.abs(values - x0) >= -low * (1 - 1e-6))
    return found


def _far(question: Question, how: Any, earlier: Floats, off: float) -> NDArray[np.bool_]:
    moves = enumeration.Moves(question.space, question.points - earlier)
    price = {"l1": enumeration.l1(), "l0": enumeration.l0, "linf": enumeration.linf()}[how.cost]
    return np.asarray(np.broadcast_to(price(moves), len(question.points)) >= how.least * (1 - off))


def described(question: Asked) -> str:
    """Return a question in words, for a report."""
    if isinstance(question, NarrowQuestion):
        return f"{question.title}, {question.row.iloc[0].to_dict()}, {question.options!r}"
    if isinstance(question, PolishQuestion):
        return f"{described(question.asked)}, advice {question.advice.tolist()}, max_ratio {question.max_ratio}"
    cost, rules = (question.cost.given, question.rules) if isinstance(question, Question) else (question.cost, ())
    row = frame_of(question.space, question.home[None, :]).iloc[0].to_dict()
    return (
        f"{question.model.title}, {row}, target {question.target!r}, cost {cost!r}, rules {list(rules)!r}, "
        f"{question.options!r}"
    )


def describe_all(kind: str, number: int, *, seed: int, solvers: tuple[str, ...]) -> dict[str, Any]:
    """Draw one question, ask it, and return everything about it in plain values."""
    question = draw(kind, number, seed=seed, solvers=solvers)
    verdict = judge(question)
    options = question.options
    target = question.asked.target if isinstance(question, PolishQuestion) else question.target
    redrawn: tuple[str, ...] = ()
    match question:
        case Question():
            tags, cost, redrawn = [*question.tags], question.cost.name, question.redrawn
        case NarrowQuestion():
            tags, cost = [*question.tags], question.cost
        case PolishQuestion():
            tags, cost, redrawn = [*question.asked.tags], question.asked.cost.name, question.asked.redrawn
        case _:
            tags, cost = ["wide", "closed form"], question.word
    if options["n"] > 1:
        how = options["diversity"]
        tags.append(f"n > 1, {how if isinstance(how, str) else 'apart'}")
    if verdict.open_ranks:
        tags.append("further ranks left open")
    tags.append(f"cost {cost}")
    word = type(target).__name__
    tags.append(f"target {word if word in _TARGETS else 'label'}")
    return {
        "question": f"{kind}-{number}: {described(question)}",
        "solver": options["solver"],
        "form": options["formulation"],
        "n": options["n"],
        "tags": tags,
        "redrawn": list(redrawn),
        **asdict(verdict),
        "wrong": list(verdict.wrong),
    }


_TARGETS = ("AtLeast", "AtMost", "Between", "Disagreement", "OtherThan", "Probability", "set")
