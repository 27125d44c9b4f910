"""Reports: one page of HTML that needs nothing else, of a person's answers or of many people's.

What stands in a report is said beside each result, as plain texts and pictures; the page alone is made here.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from ceopt.base.libraries import require_library
from ceopt.pictures.svg import svg
from ceopt.solvers.checks import AbstractCheck, Choice, OrNone, Text, check_arguments
from ceopt.solvers.errors import printable
from ceopt.solvers.whole_files import write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# ==== Headings of a report in each language that is shipped ===========================================================

_ENGLISH: Final = {
    "report_of_person": "What would have to be different",
    "report_of_people": "What would have to be different, for {count} people",
    "person": "The person",
    "column": "Column",
    "called": "Label",
    "value": "Value",
    "ways": "Ways out",
    "way": "Way {rank}",
    "cost": "Cost",
    "costs": "cost {cost}",
    "checked": "Checked against the model itself and every rule.",
    "picture": "Pictures",
    "conflict": "Rules that leave no way",
    "rules": "Rules that were kept",
    "no_rules": "None beside the limits of the columns.",
    "limits": "Limits that were kept",
    "limits_of_columns": "Columns, and their limits that were kept",
    "no_limit": "none",
    "bound_rules": "Which rules and limits bound",
    "bound_none": "None: no way stands at one.",
    "out_of_reach": "Out of reach from the start",
    "proof": "What was proved",
    "status": "Ended as",
    "bound": "Nothing costs less than",
    "gap": "Gap of the first way",
    "margin": "Margin of the decision",
    "proved_by": "Proved by",
    "proved_by_bound": "a lower bound, without a program",
    "proved_by_cells": "the cells of the trees, without a program",
    "proved_by_program": "a solver",
    "solver": "Solver",
    "seconds": "Seconds",
    "sources": "Model, data and program",
    "model": "Fingerprint of the model",
    "data": "Fingerprint of the data",
    "size": "Size of the program",
    "size_of": "{variables} variables, {integers} of them whole, {rows} rows",
    "lp": "The program as a file",
    "lp_how": "ceopt export writes it as LP, MPS or CBF for any solver; in Python, recourse_program of "
    "ceopt.formulations states it, and ceopt.solvers.write writes it.",
    "versions": "Versions",
    "options": "Settings",
    "summary": "In short",
    "people": "People",
    "count_people": "{count} people",
    "answered": "With a way out, of those who need one",
    "median_cost": "Median cost of the first way",
    "label": "Person",
    "first_way": "First way",
    "further": "{count} more",
    "proved_none": "Proved to have no way out",
    "no_answer": "No answer, and nothing proved",
    "why": "Why",
    "nobody": "Nobody.",
    "sort": "Press a title to sort by it.",
    "made_by": "Written by ceopt {version}.",
    "optimal": "way out, proved best",
    "feasible": "way out",
    "infeasible": "proved: none",
    "time_limit": "time was up",
    "rejected": "checks not passed",
    "already_favourable": "goal met already",
    "unbounded": "no least cost",
    "error": "could not be asked",
}
_GERMAN: Final = {
    "report_of_person": "Was anders sein müsste",
    "report_of_people": "Was anders sein müsste, für {count} Personen",
    "person": "Die Person",
    "column": "Spalte",
    "called": "Bezeichnung",
    "value": "Wert",
    "ways": "Wege",
    "way": "Weg {rank}",
    "cost": "Kosten",
    "costs": "Kosten {cost}",
    "checked": "Am Modell selbst und an jeder Regel geprüft.",
    "picture": "Bilder",
    "conflict": "Regeln, die keinen Weg lassen",
    "rules": "Regeln, die eingehalten sind",
    "no_rules": "Keine außer den Grenzen der Spalten.",
    "limits": "Grenzen, die eingehalten sind",
    "limits_of_columns": "Spalten und ihre Grenzen, die eingehalten sind",
    "no_limit": "keine",
    "bound_rules": "Welche Regeln und Grenzen gebunden haben",
    "bound_none": "Keine: An keiner steht ein Weg.",
    "out_of_reach": "Von vornherein nicht möglich",
    "proof": "Was bewiesen ist",
    "status": "Ergebnis",
    "bound": "Nichts kostet weniger als",
    "gap": "Lücke des ersten Weges",
    "margin": "Abstand der Entscheidung",
    "proved_by": "Bewiesen durch",
    "proved_by_bound": "eine untere Schranke, ohne Programm",
    "proved_by_cells": "die Zellen der Bäume, ohne Programm",
    "proved_by_program": "einen Löser",
    "solver": "Löser",
    "seconds": "Sekunden",
    "sources": "Modell, Daten und Programm",
    "model": "Fingerabdruck des Modells",
    "data": "Fingerabdruck der Daten",
    "size": "Größe des Programms",
    "size_of": "{variables} Variablen, davon {integers} ganzzahlig, {rows} Zeilen",
    "lp": "Das Programm als Datei",
    "lp_how": "ceopt export schreibt es als LP, MPS oder CBF für jeden Löser; in Python stellt "
    "recourse_program aus ceopt.formulations es auf, und ceopt.solvers.write schreibt es.",
    "versions": "Versionen",
    "options": "Einstellungen",
    "summary": "In Kürze",
    "people": "Personen",
    "count_people": "{count} Personen",
    "answered": "Mit einem Weg, von denen, die einen brauchen",
    "median_cost": "Median der Kosten des ersten Weges",
    "label": "Person",
    "first_way": "Erster Weg",
    "further": "{count} weitere",
    "proved_none": "Bewiesen: kein Weg",
    "no_answer": "Keine Antwort, und nichts bewiesen",
    "why": "Warum",
    "nobody": "Niemand.",
    "sort": "Ein Klick auf einen Titel sortiert danach.",
    "made_by": "Geschrieben von ceopt {version}.",
    "optimal": "Weg, bewiesen der beste",
    "feasible": "Weg",
    "infeasible": "bewiesen: keiner",
    "time_limit": "Zeit war um",
    "rejected": "Prüfung nicht bestanden",
    "already_favourable": "Ziel schon erreicht",
    "unbounded": "keine kleinsten Kosten",
    "error": "konnte nicht gefragt werden",
}
#: Language -> name -> text.
HEADINGS: Final[Mapping[str, Mapping[str, str]]] = {"en": _ENGLISH, "de": _GERMAN}


# ==== A page of HTML that stands alone: styles, pictures and the script that sorts are inside; all text is escaped ====

_CHECKS: Final[dict[str, AbstractCheck]] = {"title": OrNone(Text()), "language": Choice(tuple(HEADINGS))}
_TEMPLATES: Final = "ceopt.report"


def require_report(who: str, *, title: Any, language: Any) -> Mapping[str, str]:
    """Return the headings of a report, or refuse it before any of its pictures is drawn.

    Raises
    ------
    MissingLibraryError
        jinja2 or matplotlib is not installed.
    UnknownNameError, InvalidTypeError
        A language that is not shipped; a title that is no text.
    """
    require_library(who, "jinja2")
    require_library(who, "matplotlib")
    return HEADINGS[check_arguments(who, _CHECKS, {"title": title, "language": language})["language"]]


def picture(draw: Callable[..., Axes], prefix: str) -> dict[str, Any]:
    """Return a picture for a light page and for a dark one, as SVG in which matplotlib has escaped every text.

    Parameters
    ----------
    draw
        Draws it, given ``dark``.
    prefix
        Begins the ids within it, so that no two pictures of a page share one.
    """
    return {
        "light": svg(draw(dark=False), prefix=f"{prefix}-light"),
        "dark": svg(draw(dark=True), prefix=f"{prefix}-dark"),
    }


def write_page(who: str, path: Any, template: str, *, title: str, language: str, **content: Any) -> None:
    """Write one file of HTML.

    Parameters
    ----------
    template
        Its name.
    content
        What the template puts in; text is escaped, and shows control characters as they are written.

    Raises
    ------
    UnwritableFileError
        The file cannot be written.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=_shown,
    )  # fmt: skip
    script = _file("sort.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = environment.get_template(template).render(
        title=title,
        language=language,
        say=HEADINGS[language],
        version=version("ceopt"),
        style=_file("style.css"),
        letter_style=_file("letter.css"),
        script=script,
        script_hash=f"sha256-{digest}",
        **content,
    )
    write_text(who, path, page)


def _shown(value: Any) -> Any:
    """Return what a template puts in; markup of ours, such as a picture, as it is."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return printable(value)
    return value


def _file(name: str) -> str:
    return files(_TEMPLATES).joinpath("templates", name).read_text(encoding="utf-8")
