"""No invalid answer and no shirking: 32 models of other libraries on real data; embedding libraries asked the same."""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import answers
import common
import numpy as np
import pandas as pd
import peers
from exported import OnnxFile
from question import Question
from sklearn.ensemble import AdaBoostClassifier, GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

import ceopt
from ceopt.search.prepare import prepare
from ceopt.settings import Settings

TITLE = "Validity: models of other libraries"
MEASURES = ("ceopt/search", "formulations/predictors")

#: For everybody the same.
LIMIT_S = 20.0
#: Of peers where ceopt has none: of trees, which it states as they decide, and of models that it refuses.
PEER_MARGIN = 1e-5
PACKAGES = ("xgboost", "lightgbm", "onnx", "onnxruntime", "skl2onnx", "onnxmltools")


def _gradient_boosting(trees: int) -> Any:
    return GradientBoostingClassifier(n_estimators=trees, max_depth=3, random_state=common.SEED)


def _histogram_boosting(trees: int) -> Any:
    return HistGradientBoostingClassifier(
        max_iter=trees, max_leaf_nodes=8, early_stopping=False, random_state=common.SEED
    )


def _adaboost(trees: int) -> Any:
    return AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=trees, random_state=common.SEED)


def _xgboost(trees: int) -> Any:
    import xgboost

    return xgboost.XGBClassifier(n_estimators=trees, max_depth=3, n_jobs=1, random_state=common.SEED)


def _lightgbm(trees: int) -> Any:
    import lightgbm

    return lightgbm.LGBMClassifier(
        n_estimators=trees, num_leaves=8, n_jobs=1, random_state=common.SEED, deterministic=True, verbose=-1
    )


def _mlp(width: int) -> Any:
    return MLPClassifier((width, width), early_stopping=True, random_state=common.SEED)


@final
@dataclass(frozen=True, slots=True)
class Kind:
    """A library's model: its estimator by size (trees, or neurons a layer), the size, and a small one for licences.

    ``other_formulation`` confirms proofs; an ``exported`` pipeline is given to ceopt as an ONNX file.
    """

    make: Callable[[int], Any]
    size: int
    small: int
    other_formulation: str
    exported: bool = False


KINDS: dict[str, Kind] = {
    "gradient boosting": Kind(_gradient_boosting, 100, 10, "misic"),
    "histogram boosting": Kind(_histogram_boosting, 100, 10, "misic"),
    "AdaBoost": Kind(_adaboost, 50, 10, "misic"),
    "XGBoost": Kind(_xgboost, 100, 10, "misic"),
    "LightGBM": Kind(_lightgbm, 100, 10, "misic"),
    "MLP": Kind(_mlp, 20, 10, "partition"),
    "ONNX network": Kind(_mlp, 20, 10, "partition", exported=True),
    "ONNX trees": Kind(_gradient_boosting, 100, 10, "misic", exported=True),
}


@final
@dataclass(frozen=True, slots=True)
class Subject:
    """A fitted pipeline, what ceopt is given of it, and the predict that answers are put to."""

    pipeline: Pipeline
    given: Any
    judge: Any

    @classmethod
    def fitted(cls, task: common.Task, kind: Kind, size: int) -> Subject:
        """Fit a kind of model of some size."""
        pipeline = common.fit(task, kind.make(size))
        if not kind.exported:
            return cls(pipeline, pipeline, pipeline)
        file = OnnxFile.of(pipeline, task.train)
        return cls(pipeline, file.content, file)

    def for_peers(self, kind: Kind) -> Any:
        """Return the last estimator, as a file of its own where the kind is one of files."""
        estimator = self.pipeline[-1]
        if not kind.exported:
            return estimator
        return peers.as_onnx(estimator, estimator.n_features_in_)


def main() -> None:
    """Run all tasks and write the report."""
    logging.getLogger("pyomo").setLevel(logging.ERROR)  # OMLT sets values outside bounds
    options = common.arguments(
        "Validity of answers for models of other libraries.", rows=16, limit=int(LIMIT_S), peers=10
    )
    rows = 1 if options.quick else options.rows
    names = peers.available()
    settings = {
        "rows": rows,
        "limit_s": options.limit,
        "seed": common.SEED,
        "peer_rows": min(rows, options.peers),
        "peer_limit_s": float(options.limit),
        "peers": list(names),
        "libraries": common.installed([*PACKAGES, *(package for name in names for package in names[name].packages)]),
    }
    journal = common.Journal("libraries-quick" if options.quick else "libraries", settings)
    data_sets = common.DATA_SETS[:1] if options.quick else common.DATA_SETS
    with common.bar(None, len(data_sets) * len(KINDS)) as bar, threadpool_limits(1):
        for data_set in data_sets:
            task = common.as_amounts(common.load(data_set))  # which is how a peer has them
            for name in KINDS:
                bar.set_description(f"{data_set} {name}")
                if f"{data_set}/{name}" not in journal.done:
                    Cell(task, name, settings, journal).run()
                    journal.add(f"{data_set}/{name}", {"who": "done"})
                bar.update()
    write(journal, settings, quick=options.quick)


@final
@dataclass(frozen=True, slots=True)
class Cell:
    """A kind of model on a data set: ceopt is asked for its people, then each peer."""

    task: common.Task
    name: str
    settings: dict[str, Any]
    journal: common.Journal

    def run(self) -> None:
        """Run what is not in the journal yet."""
        full = Subject.fitted(self.task, KINDS[self.name], KINDS[self.name].size)
        margin = self.ask_ceopt(full, "full", self.settings["rows"])
        for peer in self.settings["peers"]:
            statuses = self.ask_peer(peer, full, "full", margin)
            if statuses <= {"over its licence", "time-out"}:
                small = Subject.fitted(self.task, KINDS[self.name], KINDS[self.name].small)
                margin_of_small = self.ask_ceopt(small, "small", self.settings["peer_rows"])
                self.ask_peer(peer, small, "small", margin_of_small)

    def people(self, subject: Subject, rows: int) -> pd.DataFrame:
        """Return the first of the people whom the model rejects."""
        return common.rejected(self.task, subject.judge, self.settings["rows"]).iloc[:rows]

    def ask_ceopt(self, subject: Subject, size: str, rows: int) -> float:
        """Ask for the first people; return the margin for peers: ceopt's, which of trees takes none, or a small one."""
        people = self.people(subject, rows)
        asked = Settings(target=self.task.target, time_limit_s=self.settings["limit_s"])
        try:
            prepared = prepare(subject.given, self.task.bunch.space, asked, data=self.task.train)
        except ceopt.CeoptError as refusal:
            refused = {"status": "refused", "reason": str(refusal), "seconds": 0.0, "programs": 0, "size": {}}
            for place in range(len(people)):
                self._once("ceopt", size, people.iloc[[place]], lambda _: refused)
            return PEER_MARGIN
        again = partial(answers.confirmed_by, KINDS[self.name].other_formulation, subject.given, task=self.task)
        for place in range(len(people)):
            self._once(
                "ceopt", size, people.iloc[[place]],
                lambda row: answers.one(prepared, row, subject.judge, self.task, confirm=again),
            )  # fmt: skip
        return PEER_MARGIN if prepared.margin is None else prepared.margin

    def ask_peer(self, peer: str, subject: Subject, size: str, margin: float) -> set[str]:
        """Ask a peer for the first people; return the statuses."""
        people = self.people(subject, self.settings["peer_rows"])
        estimator = subject.for_peers(KINDS[self.name])

        def answer(row: pd.DataFrame) -> dict[str, Any]:
            question = Question.of(subject.pipeline, row, self.task, margin=margin)
            record = peers.ask(peers.PEERS[peer].make(), estimator, question, self.settings["peer_limit_s"])
            if "values" in record:
                found = question.answer(record["values"]).reset_index(drop=True)
                codes = np.array([record.pop("codes")])
                record["faults"] = answers.faults(found, row.reset_index(drop=True), subject.judge, self.task)
                record["refused_at_its_own_codes"] = bool(subject.pipeline[-1].predict(codes)[0] != self.task.target)
            return record

        return {self._once(peer, size, people.iloc[[place]], answer)["status"] for place in range(len(people))}

    def _once(
        self, who: str, size: str, row: pd.DataFrame, answer: Callable[[pd.DataFrame], dict[str, Any]]
    ) -> dict[str, Any]:
        """Return the record of one row, from the journal if it is there."""
        about = {"who": who, "data": self.task.bunch.name, "model": self.name, "size_of_model": size}
        about["row"] = str(row.index[0])
        key = "/".join(about.values())
        if key not in self.journal.done:
            self.journal.add(key, about | answer(row))
        return next(r for r in self.journal.records if r["key"] == key)


# ---- report ----------------------------------------------------------------------------------------------------------
ABOUT = (
    "{rows} people per model whom it rejects, drawn with seed {seed}, {limit_s} s each, cost l1, HiGHS on one thread. "
    "Models: 100 trees of depth 3 (8 leaves for histogram boosting and LightGBM), AdaBoost of 50 trees of depth 2, "
    "networks of two layers of 20 ReLU neurons trained with early stopping, each at the end of a pipeline that encodes "
    "the raw columns; ONNX: the whole pipeline as one file, given to ceopt as bytes. Each answer is put to the "
    "pipeline's own `predict`, of a file to onnxruntime's, and to the rules of the data's schema, by code of this "
    "script. Infeasible rows are confirmed by Misic's form (trees) or the partition form (networks).\n\n"
)
ABOUT_PEERS = (
    "The first {peer_rows} people of each model, {peer_limit_s:g} s each: the nearest point in the same l1 cost and "
    "reach, stated once for all of them, with the same margin (of trees, which ceopt states as they decide, and of "
    "models that it refuses, {peer_margin:g}) or the library's own class output; the pipeline's last estimator "
    "embedded on the codes, by the library's default settings. Where the free licence or the time does not "
    "do, the same of small models (10 trees, 10 neurons a layer). Invalid: what the solution decodes to in raw units "
    "is refused by the pipeline's `predict`, or breaks a rule. Refused at its own codes: the last estimator at the "
    "numbers that the solver returned. Wrong proof: reported optimal at a cost that differs from ceopt's proved "
    "optimum by more than a thousandth, or infeasible where ceopt has an answer.\n\n"
)


def write(journal: common.Journal, settings: dict[str, Any], *, quick: bool) -> None:
    """Count, and keep what was found."""
    own, every, theirs = _parts(journal.records, settings["peers"])
    totals = {"ceopt": answers.totals(own), "peers": {name: peer_counts(theirs, every, name) for name in peers.PEERS}}
    record = {"settings": settings, "totals": totals, "records": journal.records}
    common.report("libraries", TITLE, MEASURES, text_of, record, quick=quick)
    journal.close()


def _parts(records: list[dict[str, Any]], asked: list[str]) -> tuple[list[dict[str, Any]], ...]:
    """Return ceopt's answers of full size, all of ceopt's, and the peers'."""
    every = [r for r in records if r["who"] == "ceopt"]
    own = [r for r in every if r["size_of_model"] == "full"]
    return own, every, [r for r in records if r["who"] in asked]


def text_of(record: dict[str, Any]) -> str:
    """Summarise ceopt's answers per task and in all, and the peers' per kind of model."""
    settings = record["settings"]
    own, every, theirs = _parts(record["records"], settings["peers"])
    missing = [name for name in peers.PEERS if name not in settings["peers"]]
    return (
        ABOUT.format(**settings)
        + answers.table(own, KINDS)
        + "\n\n## Libraries that embed models\n\n"
        + ABOUT_PEERS.format(peer_margin=PEER_MARGIN, **settings)
        + peer_table(theirs, every)
        + "".join(f"\n\n{name} could not be imported: not asked." for name in missing)
        + "\n\nVersions: "
        + ", ".join(f"{name} {version}" for name, version in settings["libraries"].items())
        + "."
    )


def peer_table(theirs: list[dict[str, Any]], own: list[dict[str, Any]]) -> str:
    """Return a line per peer, kind and size of model, and one in all per peer."""
    lines = []
    for peer in peers.PEERS:
        of_peer = [r for r in theirs if r["who"] == peer]
        for name, size in itertools.product(KINDS, ("full", "small")):
            part = [r for r in of_peer if (r["model"], r["size_of_model"]) == (name, size)]
            if part:
                reasons = dict.fromkeys(r["reason"] for r in part if r.get("reason"))
                lines.append([peer, name, size, *_peer_cells(part, own), "; ".join(reasons)])
        if of_peer:
            lines.append([f"**{peer}**", "**all**", "", *_peer_cells(of_peer, own), ""])
    head = ["library", "model", "size", "rows", "statuses", "answered", "invalid", "refused at its own codes",
            "wrong proof", "seconds: median / 90 % / worst", "why not"]  # fmt: skip
    return common.markdown_table(head, lines)


def peer_counts(theirs: list[dict[str, Any]], own: list[dict[str, Any]], peer: str) -> dict[str, Any]:
    """Count a peer's rows."""
    part = [r for r in theirs if r["who"] == peer]
    answered = [r for r in part if "faults" in r]
    about = ("data", "model", "size_of_model", "row")
    optima = {tuple(r[k] for k in about): r["cost"] for r in own if r["status"] == "optimal"}
    proofs = [(r, optima.get(tuple(r[k] for k in about))) for r in part if r["status"] in {"optimal", "infeasible"}]
    return {
        "rows": len(part),
        "statuses": dict(Counter(r["status"] for r in part)),
        "answered": len(answered),
        "invalid": sum(bool(r["faults"]) for r in answered),
        "refused_at_its_own_codes": sum(r["refused_at_its_own_codes"] for r in answered),
        "wrong_proofs": sum(
            known is not None and abs(r.get("cost", np.inf) - known) > 1e-3 * known for r, known in proofs
        ),
    }


def _peer_cells(part: list[dict[str, Any]], own: list[dict[str, Any]]) -> list[Any]:
    counts = peer_counts(part, own, part[0]["who"])
    statuses = ", ".join(f"{status} {count}" for status, count in counts["statuses"].items())
    seconds = [r["seconds"] for r in part if "faults" in r]
    found = [counts[key] for key in ("answered", "invalid", "refused_at_its_own_codes", "wrong_proofs")]
    return [counts["rows"], statuses, *found, common.spread(seconds, 2)]


if __name__ == "__main__":
    main()
