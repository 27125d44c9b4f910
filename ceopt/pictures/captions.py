"""What stands in pictures, in each language that is shipped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

__all__ = ["CAPTIONS", "ENGLISH", "Captions"]


@final
@dataclass(frozen=True, slots=True)
class Captions:
    """Texts by name, and how numbers are written.

    Parameters
    ----------
    texts
        Name -> text, with fields in curly brackets.
    marks
        What stands in place of the comma and the point of an English number, in this order.
    """

    texts: Mapping[str, str]
    marks: str = ",."

    def put(self, name: str, /, **fields: Any) -> str:
        """Return a text with its fields put in."""
        return self.texts[name].format_map(fields)

    def count(self, name: str, count: int, /, **fields: Any) -> str:
        """Return a text about a number of things, which differs for one."""
        if count == 1:
            name = f"{name}_one"
        return self.put(name, count=self.number(f"{count:,}"), **fields)

    def number(self, text: str) -> str:
        """Return an English number with the marks of the language."""
        return text.translate(str.maketrans(",.", self.marks))


ENGLISH: Final = Captions(
    {
        "answer": "Answer {rank} of {count}: {target}, cost {cost}",
        "answer_of_row": "Row {row}, answer {rank} of {count}: {target}, cost {cost}",
        "answers": "All answers: {target}; each axis from its least to its greatest value",
        "answers_of_row": "Row {row}, all answers: {target}; each axis from its least to its greatest value",
        "moves_foot": "move / scale, which is the column's median absolute deviation; another level moves 1",
        "moves_foot_short": "move / scale; another level moves 1",
        "moves_foot_least": "move / scale",
        "held": "held",
        "stays": "stays",
        "action": "action",
        "consequence": "consequence",
        "true": "True",
        "false": "False",
        "as_it_is": "as it is",
        "line": "answer {rank}, cost {cost}",
        "line_short": "answer {rank}",
        "not_drawn": "{count} columns stay as they are and are not drawn",
        "not_drawn_one": "1 column stays as it is and is not drawn",
        "surface": "What the model decides; {others}",
        "others_as_in_row": "other columns as in the row",
        "others_as_in_answer": "other columns as in answer {rank}",
        "others_named": "{others}: {values}",
        "meets_target": "meets the target",
        "misses_target": "misses the target",
        "model_says": "the model says {label}",
        "model_says_else": "the model says something else",
        "model_says_value": "the model says",
        "changes": "What the best answers change, of {count} people with an answer",
        "changes_one": "What the best answers change, of 1 person with an answer",
        "people": "people",
        "share_of_answered": "% of the group's people with an answer",
        "share_bar": "{group}: {share} %, {part} of {whole}",
        "all": "all",
        "raised": "raised",
        "lowered": "lowered",
        "another_level": "another level",
        "costs": "What the best answers cost",
        "costs_foot": "cost of the best answer",
        "costs_foot_logarithmic": "cost of the best answer (logarithmic)",
        "have_answer": "{part} of {whole} have an answer",
        "median": "median {cost}; {note}",
        "nobody_needs": "nobody needs one",
        "statuses": "Statuses of {count} rows",
        "statuses_one": "Statuses of 1 row",
        "rows": "rows",
        "share_of_rows": "% of the group's rows",
        "served": "{part} of {whole} served",
        "optimal": "optimal",
        "feasible": "feasible",
        "infeasible": "infeasible",
        "time_limit": "time limit",
        "rejected": "rejected",
        "already_favourable": "already favourable",
        "unbounded": "unbounded",
        "error": "error",
    },
)
_GERMAN: Final = Captions(
    {
        "answer": "Weg {rank} von {count}: {target}, Kosten {cost}",
        "answer_of_row": "Zeile {row}, Weg {rank} von {count}: {target}, Kosten {cost}",
        "answers": "Alle Wege: {target}; jede Achse vom kleinsten zum größten Wert",
        "answers_of_row": "Zeile {row}, alle Wege: {target}; jede Achse vom kleinsten zum größten Wert",
        "moves_foot": "Änderung / Median der absoluten Abweichungen der Spalte; eine andere Stufe zählt 1",
        "moves_foot_short": "Änderung / Abweichung; eine andere Stufe zählt 1",
        "moves_foot_least": "Änderung / Abweichung",
        "held": "wird gehalten",
        "stays": "bleibt",
        "action": "zu tun",
        "consequence": "folgt daraus",
        "true": "Ja",
        "false": "Nein",
        "as_it_is": "wie es ist",
        "line": "Weg {rank}, Kosten {cost}",
        "line_short": "Weg {rank}",
        "not_drawn": "{count} Spalten bleiben, wie sie sind, und sind nicht gezeichnet",
        "not_drawn_one": "1 Spalte bleibt, wie sie ist, und ist nicht gezeichnet",
        "surface": "Was das Modell entscheidet; {others}",
        "others_as_in_row": "andere Spalten wie in der Zeile",
        "others_as_in_answer": "andere Spalten wie in Weg {rank}",
        "others_named": "{others}: {values}",
        "meets_target": "erreicht das Ziel",
        "misses_target": "verfehlt das Ziel",
        "model_says": "das Modell sagt {label}",
        "model_says_else": "das Modell sagt etwas anderes",
        "model_says_value": "das Modell sagt",
        "changes": "Was die besten Wege ändern, bei {count} Personen mit einem Weg",
        "changes_one": "Was der beste Weg ändert, bei 1 Person mit einem Weg",
        "people": "Personen",
        "share_of_answered": "% der Personen der Gruppe mit einem Weg",
        "share_bar": "{group}: {share} %, {part} von {whole}",
        "all": "alle",
        "raised": "erhöht",
        "lowered": "gesenkt",
        "another_level": "andere Stufe",
        "costs": "Was die besten Wege kosten",
        "costs_foot": "Kosten des besten Weges",
        "costs_foot_logarithmic": "Kosten des besten Weges (logarithmisch)",
        "have_answer": "{part} von {whole} haben einen Weg",
        "median": "Median {cost}; {note}",
        "nobody_needs": "niemand braucht einen",
        "statuses": "Ergebnisse von {count} Zeilen",
        "statuses_one": "Ergebnis von 1 Zeile",
        "rows": "Zeilen",
        "share_of_rows": "% der Zeilen der Gruppe",
        "served": "{part} von {whole} beantwortet",
        "optimal": "Weg, bewiesen der beste",
        "feasible": "Weg",
        "infeasible": "bewiesen: keiner",
        "time_limit": "Zeit war um",
        "rejected": "Prüfung nicht bestanden",
        "already_favourable": "Ziel schon erreicht",
        "unbounded": "keine kleinsten Kosten",
        "error": "konnte nicht gefragt werden",
    },
    marks=".,",
)
#: Language -> what its pictures say.
CAPTIONS: Final[Mapping[str, Captions]] = {"en": ENGLISH, "de": _GERMAN}
