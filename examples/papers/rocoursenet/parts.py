"""The parts of the study: what is computed for one seed of one data set."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ceopt.training import virtual_data_shift
from rocoursenet.judged import RIVALS, judged, rbr, roar
from rocoursenet.networks import KINDS, Fitted, as_printed, attacker_of, fitted
from rocoursenet.protocol import Case, load
from rocoursenet.simulated import simulated
from rocoursenet.sizes import Size

__all__ = ["AS_PRINTED", "DATA_OF", "PARTS", "computed"]

Found = dict[str, Any]
#: RoCourseNet against the attacker of the paper, where another was chosen: all layers retrained, E = 0.1.
AS_PRINTED = "RoCourseNet, attacked as printed"


def computed(part: str, name: str, protocol: str, seed: int, size: Size, *, quiet: bool) -> Found:
    """Return what a part finds with one seed on one data set."""
    case = simulated(name, seed, size.simulated) if part == "simulations" else load(name, protocol)
    return PARTS[part](case, seed, size, quiet=quiet)


def _rows(case: Case, size: Size) -> int:
    return size.loan_rows if case.name == "loan" else size.rows


def _slow_rows(case: Case, size: Size) -> int:
    return size.slow_loan_rows if case.name == "loan" else size.slow_rows


def _some(case: Case, size: Size) -> Any:
    """Return the parts that sweeps have: all, but of Loan some years within, where models know both sides."""
    return case.within(size.years)


# ---- table 1, and run times ------------------------------------------------------------------------------------------
def _table(case: Case, seed: int, size: Size, *, quiet: bool) -> Found:
    """Return every method's measures on the same rows, and the networks' on all test rows."""
    count = _rows(case, size)
    trained = {kind: fitted(case, kind, seed, size.epochs, quiet=quiet) for kind in KINDS}
    found: Found = {"parts": [part.name for part in case.parts], "methods": {}, "all rows": {}, "training": {}}
    for kind, models in trained.items():
        found["methods"][kind] = judged(case, models, seed, count=count)
        found["all rows"][kind] = judged(case, models, seed)
        found["training"][kind] = {"seconds": [round(one.seconds, 3) for one in models]}
    printed = as_printed(case)
    if printed:
        models = fitted(case, "RoCourseNet", seed, size.epochs, quiet=quiet, **printed)
        found["methods"][AS_PRINTED] = judged(case, models, seed, count=count)
    base = trained["CounterNet"]
    for name, adviser in RIVALS.items():
        given = count if name == "ROAR-LIME" else _slow_rows(case, size)
        found["methods"][name] = judged(case, base, seed, adviser, given)
    found["accuracy"] = [_accuracy(one) for one in base]
    found["favoured"] = [_favoured(one) for one in base]
    found["between"] = _between(base)
    found["agreement"] = _agreement(trained["CounterNet"], trained["RoCourseNet"])
    return found


def _accuracy(one: Fitted) -> float:
    return round(float(np.mean(one.model.predict(one.tested_rows()) == one.part.y[one.test])), 5)


def _favoured(one: Fitted) -> float:
    return round(float(np.mean(one.model.predict(one.tested_rows()))), 5)


def _between(models: Sequence[Fitted]) -> float:
    """Return on which share of the test rows of a part the model of another part says the same."""
    shares = []
    for one in models:
        X = one.tested_rows()
        said = one.model.predict(X)
        shares += [np.mean(other.model.predict(X) == said) for other in models if other is not one]
    return round(float(np.mean(shares)), 5)


def _agreement(first: Sequence[Fitted], second: Sequence[Fitted]) -> float:
    """Return on which share of the test rows two networks' predictors say the same."""
    shares = []
    for one, other in zip(first, second, strict=True):
        X = one.tested_rows()
        shares.append(np.mean(one.model.predict(X) == other.model.predict(X)))
    return round(float(np.mean(shares)), 5)


# ---- the attacker ----------------------------------------------------------------------------------------------------
#: Step of the attacker's retraining, chosen on a year and a seed that are not in the study.
ATTACK_RATE = 0.1


def _attack(case: Case, seed: int, size: Size, *, quiet: bool) -> Found:
    """Return the share of recourse that stays valid under attackers of several strengths, by part."""
    years = case.years(size.years)
    found: Found = {"parts": [part.name for part in years]}
    for kind in KINDS:
        models = fitted(case, kind, seed, size.epochs, parts=years, quiet=quiet)
        found[kind] = {
            "0": [_unattacked(one) for one in models],
            "T": _by(models, "steps", size.steps, {"perturbation": 0.1}),
            "T, l2": _by(models, "steps", size.steps, {"perturbation": 0.1, "norm": "l2"}),
            "E": _by(models, "perturbation", size.radii, {"steps": size.attacked}),
        }
    return found


def _unattacked(one: Fitted) -> float:
    X = one.tested_rows()
    return round(float(np.mean(one.model.predict(one.model.recourse(X)) != one.model.predict(X))), 5)


def _by(models: Sequence[Fitted], name: str, values: Sequence[float], others: Mapping[str, Any]) -> dict[str, Any]:
    """Return the shares of each part by one option of the attacker."""
    return {f"{value:g}": [_under_attack(one, {name: value, **others}) for one in models] for value in values}


def _under_attack(one: Fitted, options: Mapping[str, Any]) -> float:
    """Return the share of recourse for test rows that is valid on the model that the attacker shifts."""
    X = one.tested_rows()
    said = one.model.predict(X)
    advice = one.model.recourse(X)
    rows = one.trained_rows
    labels = one.part.y[one.train]
    shifted = virtual_data_shift(
        one.model, rows, labels, advice, targets=1 - said, learning_rate=ATTACK_RATE, **options
    )
    return round(float(np.mean(shifted.model.predict(advice) != said)), 5)


# ---- frontiers -------------------------------------------------------------------------------------------------------
def _frontiers(case: Case, seed: int, size: Size, *, quiet: bool) -> Found:
    """Return measures by the weight of proximity, or by RBR's radii, on the same rows."""
    count = _rows(case, size)
    found: Found = {kind: {} for kind in KINDS}
    for weight in size.proximity:
        for kind in KINDS:
            models = _trained(case, kind, seed, size, quiet=quiet, weights=(*case.settings["weights"][:2], weight))
            found[kind][f"{weight:g}"] = judged(case, models, seed, count=count)
    found["ROAR-LIME"] = {}
    for weight in size.roar_weights:
        found["ROAR-LIME"][f"{weight:g}"] = judged(case, models, seed, roar(weight=weight), count)
    found["RBR"] = {}
    for radius in size.rbr_radii:
        options = {"unfavourable_radius": radius, "favourable_radius": radius}
        found["RBR"][f"{radius:g}"] = judged(case, models, seed, rbr(**options), _slow_rows(case, size))
    return found


# ---- training --------------------------------------------------------------------------------------------------------
def _training(case: Case, seed: int, size: Size, *, quiet: bool) -> Found:
    """Return losses by epoch, and measures of networks that are trained with other options."""
    found: Found = {"losses": {}, "options": {}, "T": {}, "E": {}, "T, l2": {}}
    for kind in KINDS:
        models = _trained(case, kind, seed, size, quiet=quiet)
        history = models[0].model.history_
        found["losses"][kind] = {
            name: history[name].round(6).tolist() for name in ("prediction", "validity", "proximity")
        }
    known = _options(case)
    for name in size.options or known:
        options = known[name]
        kind = "CounterNet" if name == "CounterNet" else "RoCourseNet"
        found["options"][name] = judged(case, _trained(case, kind, seed, size, quiet=quiet, **options), seed)
    sweeps = {
        "T": ("attack_steps", size.trained_steps, {}),
        "T, l2": ("attack_steps", size.trained_steps, {"norm": "l2"}),
        "E": ("perturbation", size.trained_radii, {}),
    }
    for name, (option, values, others) in sweeps.items():
        for value in values:
            models = _trained(case, "RoCourseNet", seed, size, quiet=quiet, **others, **{option: value})
            found[name][f"{value:g}"] = judged(case, models, seed)
    for name, option in (("T", "attack_steps"), ("E", "perturbation")):
        swept = {**found[name], f"{attacker_of(case)[option]:g}": found["options"]["RoCourseNet"]}
        found[name] = dict(sorted(swept.items(), key=lambda one: float(one[0])))
    return found


def _options(case: Case) -> dict[str, dict[str, Any]]:
    """Return networks by what they have of their own: where the released code leaves the algorithm, and ours."""
    residual = case.protocol == "honest"
    return {
        "CounterNet": {},
        "RoCourseNet": {},
        "radius constant": {"schedule": "constant"},
        "radius by logarithms": {"schedule": "log"},
        "restart in each step": {"restart": True},
        "head alone attacked": {"attacked": "head"},
        "one step of retraining (K = 1)": {"unroll": 1},
        "retraining by steps of 0.1": {"inner_rate": 0.1},
        ("generator says what becomes" if residual else "generator says the change"): {"residual": not residual},
    }


def _trained(case: Case, kind: str, seed: int, size: Size, *, quiet: bool, **options: Any) -> list[Fitted]:
    return fitted(case, kind, seed, size.epochs, parts=_some(case, size), quiet=quiet, **options)


# ---- made-up shifts, and separate networks ---------------------------------------------------------------------------
def _simulations(case: Case, seed: int, size: Size, *, quiet: bool) -> Found:
    """Return the measures of both networks on a made-up data set and its shifted version."""
    found: Found = {}
    for kind in KINDS:
        models = fitted(case, kind, seed, size.epochs, quiet=quiet)
        found[kind] = judged(case, models, seed)
        found[f"{kind}, accuracy"] = [_accuracy(one) for one in models]
    return found


def _general(case: Case, seed: int, size: Size, *, quiet: bool) -> Found:
    """Return the measures of RoCourseNet, of one with separate networks, and of ROAR-LIME, on the same rows."""
    count = _rows(case, size)
    found: Found = {}
    for name, options in (("RoCourseNet", {}), ("separate networks", {"shared": False})):
        begun = time.perf_counter()
        models = _trained(case, "RoCourseNet", seed, size, quiet=quiet, **options)
        seconds = (time.perf_counter() - begun) / len(models)
        found[name] = {**judged(case, models, seed, count=count), "training_s": round(seconds, 3)}
    models = _trained(case, "CounterNet", seed, size, quiet=quiet, shared=False)
    found["CounterNet, separate networks"] = judged(case, models, seed, count=count)
    found["ROAR-LIME"] = judged(case, models, seed, roar(), count)
    return found


PARTS: Mapping[str, Callable[..., Found]] = {
    "table1": _table,
    "attack": _attack,
    "frontiers": _frontiers,
    "training": _training,
    "simulations": _simulations,
    "general": _general,
}
#: Part -> the data sets that it has; table 1, the frontiers and the general framework have all.
DATA_OF: Mapping[str, tuple[str, ...]] = {
    "attack": ("loan",),
    "training": ("loan",),
    "simulations": ("covariate shift", "label shift"),
}
