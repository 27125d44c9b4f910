"""The command ``ceopt``: results on standard output, notes on standard error, and an exit code that scripts can trust.

0: every row is answered or favourable already. 1: some row is without an answer, the table is printed all the same.
2: wrong use or unreadable input, said in one sentence.

What a shell completes: values of options that are one of a list. Options and files it knows from the parser.

Each function gives the values that begin with what was typed. The lists are those of the package, which is too slow to
import while somebody waits for TAB: a test compares them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from ceopt.cli.inputs import Move

# ==== What a shell completes: values of options that are one of a list. Options and files it knows from the parser ====

#: Shells that typer has a script for.
_SHELLS: Final = ("bash", "zsh", "fish", "powershell", "pwsh")
_AUDIENCES: Final = ("auditor", "customer")
_COSTS: Final = ("l0", "l1", "l2", "l2_squared", "linf", "mahalanobis", "few_changes")
_FORMULATIONS: Final = ("auto", "affine", "bigm", "partition", "extended", "ordered", "misic", "leaf")
_LANGUAGES: Final = ("en", "de")
_SOLVERS: Final = ("auto", "highs", "clarabel", "scip", "gurobi", "scs", "mosek")
_SURROGATES: Final = ("fisher_rao", "nominal", "quadratic", "bures", "logdet", "lime", "clime", "limels", "svm")


def shell_named(option: str, name: str) -> str:
    """Return the shell of a name, or refuse it.

    Raises
    ------
    UnknownNameError
        No script for it.

    Examples
    --------
    >>> shell_named("--show-completion", "zsh")
    'zsh'
    """
    from ceopt.solvers.errors import UnknownNameError

    if name not in _SHELLS:
        raise UnknownNameError.among(option, "shell", name, _SHELLS)
    return name


def audiences(incomplete: str) -> list[str]:
    """Return names that ``--audience`` takes."""
    return _beginning(_AUDIENCES, incomplete)


def costs(incomplete: str) -> list[str]:
    """Return names that ``--cost`` takes.

    Examples
    --------
    >>> costs("l2")
    ['l2', 'l2_squared']
    """
    return _beginning(_COSTS, incomplete)


def formulations(incomplete: str) -> list[str]:
    """Return names that ``--formulation`` takes, of any kind of model."""
    return _beginning(_FORMULATIONS, incomplete)


def languages(incomplete: str) -> list[str]:
    """Return names that ``--language`` takes."""
    return _beginning(_LANGUAGES, incomplete)


def solver_names(incomplete: str) -> list[str]:
    """Return names that ``--solver`` takes, whether their library is here or not."""
    return _beginning(_SOLVERS, incomplete)


def surrogates(incomplete: str) -> list[str]:
    """Return names that ``--surrogate`` takes."""
    return _beginning(_SURROGATES, incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


# ==== The command ``ceopt`` ===========================================================================================

_MAY_STAY = 'If they may stay or come nearer, add "beyond": "no_further" to it in the file of --rules.'


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
        except typer.Abort:
            _fail("Aborted.")
        except Exception as error:  # the parser's own errors have no public base class
            from ceopt.solvers.errors import CeoptError

            if isinstance(error, CeoptError):
                _fail(str(error))
            if not hasattr(error, "format_message"):
                raise
            context = getattr(error, "ctx", None)
            path = getattr(context, "command_path", "ceopt")
            _fail(f"{error.format_message().rstrip('.')}. See {path} --help.")
        sys.exit(code or 0)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; after an option of completion a shell's name counts, and is not guessed."""
        if len(args) > 1 and args[0] in {"--show-completion", "--install-completion"}:
            shell = shell_named(args[0], args[1])
            option = next(option for option in self.params if args[0] in option.opts)
            option.callback(ctx, option, shell)  # type: ignore[misc]  # typer gives both one, which ends the process
        return super().parse_args(ctx, args)


def _fail(sentence: str) -> NoReturn:
    from ceopt.cli.output import note

    note(" ".join(sentence.split()))
    sys.exit(2)


app = typer.Typer(
    name="ceopt",
    cls=_Group,
    help="What would have to be different for a model's decision to change? Every answer is checked against the model.",
    pretty_exceptions_enable=False,
)


def _print_version(*, asked: bool) -> None:
    """Print the version and end, where it is asked for."""
    if asked:
        from ceopt import __version__

        sys.stdout.write(f"ceopt {__version__}\n")
        raise typer.Exit


_Version = Annotated[
    bool,
    typer.Option(
        "--version",
        help="Print the version.",
        is_eager=True,
        callback=lambda asked: _print_version(asked=asked),
    ),
]


@app.callback()
def _options(*, _version: _Version = False) -> None:
    """Take the options that stand before a command."""


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
    typer.Option(help="l0, l1, l2, l2_squared, linf, mahalanobis or few_changes.", autocompletion=costs),
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
MaxUp = Annotated[
    list[str] | None,
    typer.Option(metavar="COL=BY", help="How far a column may rise: income=20%, age=2; may be repeated."),
]
MaxDown = Annotated[
    list[str] | None,
    typer.Option(metavar="COL=BY", help="How far a column may fall: income=20%, age=0; may be repeated."),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(metavar="COL", help="A column whose numbers are names, such as a code; may be repeated."),
]
Codes = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COL=CODE,CODE",
        help="Values of a column that are no amounts, such as late=-9,-8 or 'late=-9:no record'; may be repeated.",
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(metavar="COL", help="A column that may be missing: it stays so, or is filled in; may be repeated."),
]
Stays = Annotated[
    list[str] | None,
    typer.Option(metavar="COL", help="A column whose missing cells and codes stay as they are; may be repeated."),
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
    from ceopt.cli.output import note, run_demo
    from ceopt.solvers.whole_files import require_place

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
        str, typer.Option(help="A solver that 'ceopt solvers' lists, or auto.", autocompletion=solver_names)
    ] = "auto",
    time_limit: Annotated[float, typer.Option(help="Seconds per row.")] = 60.0,
    why: Annotated[bool, typer.Option(help="Look for the rules in conflict where there is no answer.")] = True,
    proof: Annotated[
        bool, typer.Option(help="Prove answers by a program; else give near answers, found without one.")
    ] = True,
    surrogate: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            autocompletion=surrogates,
            help="Take MODEL as a black box, through a local linear surrogate: fisher_rao, nominal, quadratic, bures, "
            "logdet, svm, lime, clime or limels.",
        ),
    ] = None,
    fixed: Fixed = None,
    up: Up = None,
    down: Down = None,
    max_up: MaxUp = None,
    max_down: MaxDown = None,
    categorical: Categorical = None,
    codes: Codes = None,
    missing: Missing = None,
    stays: Stays = None,
    label_column: LabelColumn = None,
    show_space: ShowSpace = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON per row instead of a table.")] = False,
    allow_pickle: AllowPickle = False,
) -> None:
    """Say what would have to be different in rows of DATA for MODEL to decide otherwise."""
    from ceopt.cli.inputs import read_inputs, says_of_surrogate, surrogate_named
    from ceopt.cli.output import fitted, note, print_answers, print_line, print_results
    from ceopt.formulations.space import RuleWarning
    from ceopt.recourse import Recourse
    from ceopt.solvers.errors import InvalidValueError
    from ceopt.words.language import language_of
    from ceopt.words.sentences import beyond_lines

    options: dict[str, Any] = {"why": why, "proof": proof}
    if surrogate is not None:
        if not why:
            but = "both are given"
            raise InvalidValueError("--surrogate", "no --no-why beside it", but, "Leave --no-why out.")
        if not proof:
            but = "both are given"
            raise InvalidValueError("--surrogate", "no --no-proof beside it", but, "Leave --no-proof out.")
        options = {"surrogate": surrogate_named(surrogate)}
    given = read_inputs(
        model, data, rows=row, target=target, space_path=space, moves=_moves(fixed, up, down),
        limits={"max_up": max_up or (), "max_down": max_down or ()},
        categorical=categorical or (), label_columns=label_column or (), allow_pickle=allow_pickle,
        codes=codes or (), missing=missing or (), stays=stays or (),
        may_be_function=surrogate is not None, show_space=show_space,
    )  # fmt: skip
    for sentence in given.notes:
        note(sentence)
    recourse = Recourse(
        given.model, given.space, target=given.target, n=n, cost=cost,
        constraints=_rules(max_changes, rules, given.space, trusts=allow_pickle), solver=solver,
        time_limit_s=time_limit, **options,
    )  # fmt: skip
    ready = fitted(recourse, given.data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuleWarning)  # said below, in the command's own words
        cohort = ready.explain(given.rows, progress=sys.stderr.isatty())
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
        typer.Option(help="Of a model of trees: auto, ordered, misic or leaf.", autocompletion=formulations),
    ] = "auto",
    fixed: Fixed = None,
    up: Up = None,
    down: Down = None,
    max_up: MaxUp = None,
    max_down: MaxDown = None,
    categorical: Categorical = None,
    codes: Codes = None,
    missing: Missing = None,
    stays: Stays = None,
    label_column: LabelColumn = None,
    show_space: ShowSpace = False,
    allow_pickle: AllowPickle = False,
) -> None:
    """Write the program of one row for any solver, and beside it what each name in it stands for."""
    from ceopt.cli.inputs import read_inputs
    from ceopt.cli.output import note, print_line
    from ceopt.formulations.recourse_program import recourse_program
    from ceopt.search.prepare import prepare
    from ceopt.settings import Settings
    from ceopt.solvers import write
    from ceopt.solvers.whole_files import require_place

    require_place("--out", out)
    given = read_inputs(
        model, data, rows=[row], target=target, space_path=space, moves=_moves(fixed, up, down),
        limits={"max_up": max_up or (), "max_down": max_down or ()},
        categorical=categorical or (), label_columns=label_column or (), allow_pickle=allow_pickle,
        codes=codes or (), missing=missing or (), stays=stays or (),
        show_space=show_space,
    )  # fmt: skip
    for sentence in given.notes:
        note(sentence)
    asked = Settings(
        target=given.target,
        cost=cost,
        constraints=_rules(max_changes, rules, given.space, trusts=allow_pickle),
        formulation=formulation,
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
def space(
    data: Annotated[Path, typer.Argument(metavar="TABLE", help="People in raw units: a .csv or .parquet file.")],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where to write: a .json file.")],
    fixed: Fixed = None,
    up: Up = None,
    down: Down = None,
    categorical: Categorical = None,
    codes: Codes = None,
    missing: Missing = None,
    stays: Stays = None,
    max_up: MaxUp = None,
    max_down: MaxDown = None,
    label_column: LabelColumn = None,
) -> None:
    """Write what each column of TABLE is and how it may move, to edit and to give to --space."""
    from ceopt.cli.inputs import written_space
    from ceopt.cli.output import note, print_line
    from ceopt.solvers.whole_files import require_place

    require_place("--out", out)
    described, notes = written_space(
        data, moves=_moves(fixed, up, down), categorical=categorical or (), label_columns=label_column or (),
        codes=codes or (), missing=missing or (), stays=stays or (),
        limits={"max_up": max_up or (), "max_down": max_down or ()},
    )  # fmt: skip
    for sentence in notes:
        note(sentence)
    note(str(described))
    described.to_json(out)
    print_line(str(out))


@app.command()
def report(
    answers: Annotated[
        Path, typer.Argument(metavar="ANSWERS", help="JSON: of to_json of a result or a cohort, or of explain --json.")
    ],
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", help="Where to write: a .html file; for customers a folder too, which gets a file a person."
        ),
    ],
    *,
    title: Annotated[str | None, typer.Option(help="Its heading.")] = None,
    language: Annotated[str, typer.Option(help="en or de.", autocompletion=languages)] = "en",
    audience: Annotated[
        str, typer.Option(help="auditor: all that is known; customer: a letter.", autocompletion=audiences)
    ] = "auditor",
    hide: Annotated[
        list[str] | None,
        typer.Option(metavar="COL", help="A column of which a letter says nothing; may be repeated."),
    ] = None,
    contact: Annotated[str, typer.Option(metavar="TEXT", help="Whom a customer turns to.")] = "",
) -> None:
    """Write answers as one page of HTML that needs nothing else, and prints."""
    from ceopt.cli.output import note, print_line, read_answers
    from ceopt.solvers.whole_files import require_place

    if audience == "auditor" or not out.is_dir():
        require_place("OUT", out)
    found: Any = read_answers(answers)
    found.report(out, title=title, language=language, audience=audience, hide=hide or (), contact=contact)
    print_line(str(out))
    what = "The report is" if audience == "auditor" else "The letters are in" if out.is_dir() else "The letter is"
    note(f"{what} {out.resolve()}.")


@app.command()
def solvers() -> None:
    """List the solvers: what each solves, and why it cannot be used here."""
    from ceopt.cli.output import print_solvers
    from ceopt.solvers import available

    print_solvers(available())


@app.command()
def models(*, markdown: Annotated[bool, typer.Option(help="As the table of docs/reference.")] = False) -> None:
    """List the models that are read, library by library, and how each is embedded."""
    from ceopt.cli.output import print_frame
    from ceopt.formulations.predictors import readers

    if markdown:
        sys.stdout.write(readers.markdown() + "\n")
    else:
        print_frame(readers.supported().drop(columns="names"))


@app.command()
def version() -> None:
    """Print the version."""
    _print_version(asked=True)


def _moves(fixed: list[str] | None, up: list[str] | None, down: list[str] | None) -> dict[str, Move]:
    """Return how each column that is named may move.

    Raises
    ------
    InvalidValueError
        A column of two options.
    """
    from ceopt.solvers.errors import InvalidValueError

    moves: dict[str, Move] = {}
    options: tuple[tuple[Move, list[str] | None], ...] = (("fixed", fixed), ("up", up), ("down", down))
    for move, names in options:
        for name in dict.fromkeys(names or ()):
            if name in moves:
                but = f"{name!r} has --{moves[name]} too"
                raise InvalidValueError(f"--{move}", "a column that no other option moves", but, "Leave one out.")
            moves[name] = move
    return moves


def _rules(max_changes: int | None, path: Path | None, space: Any, *, trusts: bool) -> tuple[Any, ...]:
    from ceopt.cli.inputs import read_rules
    from ceopt.formulations.constraints import MaxChanges

    rules: tuple[Any, ...] = ()
    if max_changes is not None:
        rules = (MaxChanges(max_changes),)
    if path is not None:
        rules += read_rules(path, space, allow_pickle=trusts)
    return rules
