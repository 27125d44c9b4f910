"""The command ``ceopt``: results on standard output, notes on standard error, and an exit code that scripts can trust.

0: every row is answered or favourable already. 1: some row is without an answer, the table is printed all the same.
2: wrong use or unreadable input, said in one sentence.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import numpy as np
import pandas as pd
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from ceopt.cli import completion
from ceopt.cli.inputs import Move, read_inputs, says_of_surrogate, surrogate_named
from ceopt.datasets import loans
from ceopt.formulations.constraints import MaxChanges
from ceopt.recourse import Recourse
from ceopt.result.cohort import FORMAT, Cohort
from ceopt.result.shown import rows
from ceopt.result.solution_set import SolutionSet
from ceopt.solvers.errors import CeoptError, InvalidValueError, UnsupportedModelError, counted, printable
from ceopt.solvers.whole_files import json_document, read_text, require_place
from ceopt.status import Status

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["app"]

# ==== Answers of a file: a result, a cohort, or the lines that ``ceopt explain --json`` prints ========================

_WHO: Final = "ceopt report"


def read_answers(path: Path) -> SolutionSet | Cohort:
    """Read one result, a cohort, or a cohort of results that stand a line each.

    Raises
    ------
    UnreadableFileError
        No such file, or no JSON in it.
    InvalidValueError
        JSON of another format, or results of several spaces.
    """
    lines = [line for line in read_text(_WHO, path).split("\n") if line.strip()]  # a text may hold U+2028
    if len(lines) > 1 and all(line.startswith("{") and line.rstrip().endswith("}") for line in lines):
        return _cohort_of([SolutionSet.from_json(line) for line in lines])
    _, document = json_document(_WHO, path)
    if isinstance(document, dict) and document.get("format") == FORMAT:
        return Cohort.from_json(path)
    return SolutionSet.from_json(path)


def _cohort_of(results: list[SolutionSet]) -> Cohort:
    space = results[0].space
    if space is None or any(result.space != space for result in results):
        but = "some line has another or none"
        raise InvalidValueError(_WHO, "results of one space", but, "Write them anew with explain --json.")
    queries = pd.concat([result.factual for result in results])
    queries.index = pd.Index([result.query_id for result in results])
    return Cohort(
        results=tuple(results),
        queries=queries,
        space=space,
        options=results[0].options,
        finished=(True,) * len(results),
    )


# ==== Output of a command: results as tables on standard output, notes on standard error ==============================


def note(text: str) -> None:
    """Write one line or, where the parts of a text were escaped before, several to standard error."""
    sys.stderr.write(printable(text, keep="\n") + "\n")
    sys.stderr.flush()


def print_line(text: str) -> None:
    """Write a line to standard output."""
    sys.stdout.write(f"{printable(text)}\n")


def print_results(results: Iterable[SolutionSet]) -> None:
    """Write one line of JSON per result; who reads it gets every text as it is."""
    sys.stdout.writelines(f"{printable(result.to_json(), as_json=True)}\n" for result in results)


def print_answers(results: Sequence[SolutionSet], space: FeatureSpace) -> None:
    """Print one line per change that a person would make, then one per person without an answer."""
    table = _table("row", "answer", "column", numbers=("from", "to", "cost"))
    without = []
    for result in results:
        who = str(result.query_id)
        for rank, name, old, new, _, cost, _ in rows(result):
            unit = space[name].unit
            column = f"{name} ({unit})" if unit else name
            table.add_row(*map(_text, (who, rank, column, old, new, cost)))
            who = ""
        if len(result):
            table.add_section()
        else:
            without.append(result)
    console = Console()
    if table.row_count:
        console.print(table)
    for result in without:
        status = str(result.status).replace("_", " ")
        console.print(_text(f"row {result.query_id}: {status}. {result.reason}".strip()), soft_wrap=True)
    verified = sum(answer.verified for result in results for answer in result)
    if verified:
        count = counted(verified, "answer")
        console.print(
            _text(f"{count}, each predicted again by the model itself and held against every rule."), soft_wrap=True
        )
    for status, proof in ((Status.OPTIMAL, "Proved"), (Status.FEASIBLE, "Not proved")):
        people = ", ".join(str(result.query_id) for result in results if result.status is status)
        if people:
            console.print(_text(f"{proof} to be the least change: row {people}."), soft_wrap=True)


def print_solvers(frame: pd.DataFrame) -> None:
    """Print one line per solver, and below why one cannot be used, or up to which size."""
    table = _table("solver", "version", "solves", "by cuts")
    notes = []
    for row in frame.to_dict("records"):
        cuts = row["by_cuts"].split(", ")
        itself = [name for name in row["supports"].split(", ") if name not in cuts]
        itself += ["nonconvex"] * row["nonconvex"]
        version = row["version"] if row["installed"] else "-"
        table.add_row(*map(_text, (row["solver"], version, " ".join(itself), " ".join(cuts))))
        if row["why_not"]:
            notes.append(f"{row['solver']}: {row['why_not']}")
        elif row["limits"]:
            notes.append(f"{row['solver']}: licence for {row['limits']}.")
    usable = ", ".join(frame.loc[frame["licensed"], "solver"])
    notes.append(f"Can be used here: {usable or 'none'}. Without a name, the first that solves the program does.")
    console = Console()
    console.print(table)
    for line in notes:
        console.print(_text(line), soft_wrap=True)


def print_frame(frame: pd.DataFrame) -> None:
    """Print a frame as a table."""
    table = _table(*frame.columns)
    for row in frame.itertuples(index=False):
        table.add_row(*(_text(_cell(cell)) for cell in row))
    Console().print(table)


def _cell(value: object) -> str:
    """Return a value as text, truth values as yes and no."""
    if value is True:
        return "yes"
    if value is False:
        return "no"
    return str(value)


def _text(text: str) -> Text:
    """Return data as they are shown: neither a terminal nor Rich finds anything in them to obey."""
    return Text(printable(text))


def _table(*titles: str, numbers: Iterable[str] = ()) -> Table:
    """Return an empty table, with columns of numbers after the others."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in titles:
        table.add_column(_text(str(title)), overflow="fold")
    for title in numbers:
        table.add_column(title, overflow="fold", justify="right")
    return table


# ==== The command ``ceopt`` ===========================================================================================

_MAY_STAY = 'If they may stay or come nearer, add "beyond": "no_further" to it in the file of --rules.'
_AS_BLACK_BOX = "As a black box it is answered for: add --surrogate fisher_rao."


class _Group(TyperGroup):
    """A command whose every misuse is one sentence on standard error and exit code 2."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: ARG002 - the parser's own way to fail is what is replaced here
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command, and end the process with its exit code."""
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except CeoptError as error:
            _fail(str(error))
        except typer.Abort:
            _fail("Aborted.")
        except Exception as error:  # the parser's own errors have no public base class
            if not hasattr(error, "format_message"):
                raise
            context = getattr(error, "ctx", None)
            path = context.command_path if context is not None else "ceopt"
            _fail(f"{error.format_message().rstrip('.')}. See {path} --help.")
        sys.exit(code or 0)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; after an option of completion a shell's name counts, and is not guessed."""
        if len(args) > 1 and args[0] in {"--show-completion", "--install-completion"}:
            shell = completion.shell_named(args[0], args[1])
            option = next(option for option in self.params if args[0] in option.opts)
            option.callback(ctx, option, shell)  # type: ignore[misc]  # typer gives both one, which ends the process
        return super().parse_args(ctx, args)


def _fail(sentence: str) -> NoReturn:
    note(" ".join(sentence.split()))
    sys.exit(2)


app = typer.Typer(
    name="ceopt",
    cls=_Group,
    help="What would have to be different for a model's decision to change? Every answer is checked against the model.",
    pretty_exceptions_enable=False,
)

Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="A saved model: .onnx, .json or .ubj of XGBoost, .txt of LightGBM, or as joblib.dump writes it.",
    ),
]
Data = Annotated[Path, typer.Argument(metavar="DATA", help="People in raw units: a .csv or .parquet file.")]
Target = Annotated[
    str,
    typer.Option(
        metavar="LABEL", help="The class wanted, or 'a|b', '!a', 'a>=0.6'; of a regressor '>=5', '<=5' or '5..8'."
    ),
]
Space = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The space as FeatureSpace.to_json wrote it. Default: inferred from DATA."),
]
Cost = Annotated[
    str,
    typer.Option(help="l0, l1, l2, l2_squared, linf, mahalanobis or few_changes.", autocompletion=completion.costs),
]
MaxChanged = Annotated[int | None, typer.Option("--max-changes", help="At most so many columns may change.")]
Rules = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help='Rules as a JSON list, such as [{"rule": "MaxChanges", "k": 2}]; see docs/how_to/rules.md.'
    ),
]
ShowSpace = Annotated[bool, typer.Option("--show-space", help="Print what each column is and how it may move.")]
Fixed = Annotated[list[str] | None, typer.Option(metavar="COL", help="A column that may not change; may be repeated.")]
Up = Annotated[list[str] | None, typer.Option(metavar="COL", help="A column that may only rise; may be repeated.")]
Down = Annotated[list[str] | None, typer.Option(metavar="COL", help="A column that may only fall; may be repeated.")]
Categorical = Annotated[
    list[str] | None,
    typer.Option(metavar="COL", help="A column whose numbers are names, such as a code; may be repeated."),
]
LabelColumn = Annotated[
    list[str] | None, typer.Option(metavar="COL", help="A column of DATA that is no feature; may be repeated.")
]
AllowPickle = Annotated[
    bool,
    typer.Option(
        "--allow-pickle", help="Load MODEL although loading a pickle runs code that is in it. Only for files you trust."
    ),
]


@app.command()
def demo(
    *, report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a report too: a .html file.")] = None
) -> None:
    """Reject loans with a random forest and say what a few of the people could do."""
    if report is not None:
        require_place("--report", report)
    cohort = run_demo()
    if report is not None:
        cohort.report(report)
        note(f"The report is {report}.")
    raise typer.Exit(int(not all(result.status.is_settled for result in cohort)))


@app.command()
def explain(
    model: Model,
    data: Data,
    *,
    row: Annotated[list[int], typer.Option(metavar="N", help="Position of a row of DATA, from 0; may be repeated.")],
    target: Target,
    space: Space = None,
    n: Annotated[int, typer.Option("--n", help="Answers per row.")] = 1,
    cost: Cost = "l1",
    max_changes: MaxChanged = None,
    rules: Rules = None,
    solver: Annotated[
        str, typer.Option(help="A solver that 'ceopt solvers' lists, or auto.", autocompletion=completion.solvers)
    ] = "auto",
    time_limit: Annotated[float, typer.Option(help="Seconds per row.")] = 60.0,
    why: Annotated[bool, typer.Option(help="Look for the rules in conflict where there is no answer.")] = True,
    surrogate: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            autocompletion=completion.surrogates,
            help="Take MODEL as a black box, through a local linear surrogate: fisher_rao, nominal, quadratic, bures, "
            "logdet, svm, lime, clime or limels.",
        ),
    ] = None,
    fixed: Fixed = None,
    up: Up = None,
    down: Down = None,
    categorical: Categorical = None,
    label_column: LabelColumn = None,
    show_space: ShowSpace = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON per row instead of a table.")] = False,
    allow_pickle: AllowPickle = False,
) -> None:
    """Say what would have to be different in rows of DATA for MODEL to decide otherwise."""
    from ceopt.formulations.space import RuleWarning
    from ceopt.words.language import language_of
    from ceopt.words.sentences import beyond_lines

    options: dict[str, Any] = {"why": why}
    if surrogate is not None:
        if not why:
            but = "both are given"
            raise InvalidValueError("--surrogate", "no --no-why beside it", but, "Leave --no-why out.")
        options = {"surrogate": surrogate_named(surrogate)}
    given = read_inputs(
        model, data, rows=row, target=target, space_path=space, moves=_moves(fixed, up, down),
        categorical=categorical or (), label_columns=label_column or (), allow_pickle=allow_pickle,
        may_be_function=surrogate is not None, show_space=show_space,
    )  # fmt: skip
    for sentence in given.notes:
        note(sentence)
    recourse = Recourse(
        given.model, given.space, target=given.target, n=n, cost=cost,
        constraints=_rules(max_changes, rules, given.space), solver=solver, time_limit_s=time_limit, **options,
    )  # fmt: skip
    fitted = _fitted(recourse, given.data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuleWarning)  # said below, in the command's own words
        cohort = fitted.explain(given.rows, progress=sys.stderr.isatty())
    for line in beyond_lines(cohort.results, language_of("explain", "en", {"beyond_line": _MAY_STAY})):
        note(line)
    if as_json:
        print_results(cohort)
    else:
        print_answers(tuple(cohort), given.space)
        for line in filter(None, map(says_of_surrogate, cohort)):
            print_line(line)
    raise typer.Exit(int(not all(result.status.is_settled for result in cohort)))


@app.command()
def export(
    model: Model,
    data: Data,
    *,
    row: Annotated[int, typer.Option(metavar="N", help="Position of the row of DATA, from 0.")],
    target: Target,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write: a .lp, .mps, .cbf or .ptf file.")],
    space: Space = None,
    cost: Cost = "l1",
    max_changes: MaxChanged = None,
    rules: Rules = None,
    formulation: Annotated[
        str,
        typer.Option(help="Of a model of trees: auto, ordered, misic or leaf.", autocompletion=completion.formulations),
    ] = "auto",
    fixed: Fixed = None,
    up: Up = None,
    down: Down = None,
    categorical: Categorical = None,
    label_column: LabelColumn = None,
    show_space: ShowSpace = False,
    allow_pickle: AllowPickle = False,
) -> None:
    """Write the program of one row for any solver, and beside it what each name in it stands for."""
    from ceopt.formulations.recourse_program import recourse_program
    from ceopt.search.prepare import prepare
    from ceopt.settings import Settings
    from ceopt.solvers import write

    require_place("--out", out)
    given = read_inputs(
        model, data, rows=[row], target=target, space_path=space, moves=_moves(fixed, up, down),
        categorical=categorical or (), label_columns=label_column or (), allow_pickle=allow_pickle,
        show_space=show_space,
    )  # fmt: skip
    for sentence in given.notes:
        note(sentence)
    asked = Settings(
        target=given.target, cost=cost, constraints=_rules(max_changes, rules, given.space), formulation=formulation
    )
    prepared = prepare(given.model, given.space, asked, data=given.data)
    checked = prepared.settings
    program = recourse_program(
        prepared.predictor, given.rows, target=checked.target, cost=checked.cost, rules=checked.rules,
        formulation=checked.formulation,
    )  # fmt: skip
    write(program.model, out)
    print_line(str(out))
    print_line(f"{out}.names.json")


@app.command()
def report(
    answers: Annotated[
        Path, typer.Argument(metavar="ANSWERS", help="JSON: of to_json of a result or a cohort, or of explain --json.")
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Where to write: a .html file.")],
    *,
    title: Annotated[str | None, typer.Option(help="Its heading.")] = None,
    language: Annotated[str, typer.Option(help="en or de.", autocompletion=completion.languages)] = "en",
) -> None:
    """Write answers as one page of HTML that needs nothing else, and prints."""
    require_place("OUT", out)
    read_answers(answers).report(out, title=title, language=language)
    print_line(str(out))


@app.command()
def solvers() -> None:
    """List the solvers: what each solves, and why it cannot be used here."""
    from ceopt.solvers import available

    print_solvers(available())


@app.command()
def models(*, markdown: Annotated[bool, typer.Option(help="As the table of docs/reference.")] = False) -> None:
    """List the models that are read, library by library, and how each is embedded."""
    from ceopt.formulations.predictors.read import table_of_models

    if markdown:
        sys.stdout.write(table_of_models.markdown() + "\n")
    else:
        print_frame(table_of_models.supported().drop(columns="names"))


@app.command()
def version() -> None:
    """Print the version."""
    from importlib.metadata import version as version_of

    sys.stdout.write(f"ceopt {version_of('ceopt')}\n")


def _fitted(recourse: Any, data: Any) -> Any:
    """Fit, or say in the command's own words what to do with a model that cannot be stated as a program."""
    from ceopt.search.prepare import AS_BLACK_BOX

    try:
        return recourse.fit(data)
    except UnsupportedModelError as error:
        raise UnsupportedModelError(str(error).replace(AS_BLACK_BOX, _AS_BLACK_BOX)) from error


def _moves(fixed: list[str] | None, up: list[str] | None, down: list[str] | None) -> dict[str, Move]:
    """Return how each column that is named may move.

    Raises
    ------
    InvalidValueError
        A column of two options.
    """
    moves: dict[str, Move] = {}
    options: tuple[tuple[Move, list[str] | None], ...] = (("fixed", fixed), ("up", up), ("down", down))
    for move, names in options:
        for name in dict.fromkeys(names or ()):
            if name in moves:
                but = f"{name!r} has --{moves[name]} too"
                raise InvalidValueError(f"--{move}", "a column that no other option moves", but, "Leave one out.")
            moves[name] = move
    return moves


def _rules(max_changes: int | None, path: Path | None, space: Any) -> tuple[Any, ...]:
    from ceopt.cli.rules_file import read_rules

    rules: tuple[Any, ...] = ()
    if max_changes is not None:
        rules = (MaxChanges(max_changes),)
    if path is not None:
        rules += read_rules(path, space)
    return rules


# ==== The demonstration: a loan book, a forest that decides, and what a few people who were rejected could do =========

_PEOPLE = 4
_RULES = (MaxChanges(1),)


def run_demo() -> Cohort:
    """Fit, explain and print; the answers are the same on every machine."""
    note("Drawing 2,000 loan applications and fitting a random forest to the decisions ...")
    book = loans(n=2000, random_state=0)
    space = book.space
    for name in ("age", "years_employed", "employment"):
        space = space.update(name, mutable=False)  # advice for today, not for the years to come
    model = _pipeline(space).fit(book.data, book.target)
    rejected = book.data[model.predict(book.data) != book.favourable]
    note(f"{len(rejected):,} people are rejected. Single changes that turn the decision, for {_PEOPLE} near the line:")
    chances = model.predict_proba(rejected)[:, model.classes_.tolist().index(book.favourable)]
    near = rejected.iloc[np.argsort(-chances, kind="stable")[: len(rejected) // 2]].sort_index()
    some = near.iloc[:: len(near) // _PEOPLE].head(_PEOPLE)
    recourse = Recourse(
        model, space, target=book.favourable, n=3, diversity="support", constraints=_RULES, time_limit_s=10
    )
    cohort = recourse.fit(book.data, book.target).explain(some, progress=True)
    print_answers(tuple(cohort), space)
    return cohort


def _pipeline(space: Any) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

    numbers = [feature.name for feature in space if not feature.is_finite]
    ordinal = [feature.name for feature in space if feature.kind == "ordinal"]
    others = [feature.name for feature in space if feature.kind in {"categorical", "binary"}]
    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), numbers),
            ("ordinal", OrdinalEncoder(categories=[list(space[name].levels) for name in ordinal]), ordinal),
            ("categories", OneHotEncoder(handle_unknown="ignore"), others),
        ]
    )
    forest = RandomForestClassifier(n_estimators=50, max_depth=6, random_state=0)
    return Pipeline([("columns", columns), ("forest", forest)])
