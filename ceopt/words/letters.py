"""The words of a letter to a person: what is said otherwise than to an auditor, and what is said to nobody else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ceopt.words.language import Language, language_of

_ENGLISH: Final = {
    # ---- what other sentences say otherwise
    "column": "your {column}",
    "articles": "a an the your this these all",
    "missing": "no record",
    "for_rule": "{change}",
    "rises": "{column} would have to rise from {before} to {after}",
    "falls": "{column} would have to fall from {before} to {after}",
    "rises_part": "{column} would have to rise by {done}; with what follows it goes from {before} to {after}",
    "falls_part": "{column} would have to fall by {done}; with what follows it goes from {before} to {after}",
    "any_between": "between {low} and {high}",
    "fill": "Tell us {column}, if it is {after} (we have no record of it; other answers may do as well)",
    "fill_code": "Tell us {column}, if it is {after} (so far: {before}; other answers may do as well)",
    "fill_any": "Tell us {column}: {after} (we have no record of it)",
    "fill_code_any": "Tell us {column}: {after} (so far: {before})",
    "max_feature": "no way changes more than one thing",
    "max_features": "no way changes more than {k} things",
    "max_column": "no way changes more than one thing",
    "max_columns": "no way changes more than {k} things",
    # ---- the letter
    "title": "What could change the decision",
    "reference": "Reference: {reference}",
    "ways_one": "There is a way to a decision in your favour.",
    "ways_many": "There are {count} ways to a decision in your favour. Each of them is enough.",
    "way": "Way {rank}",
    "all_of_it": "Whatever a way lists is needed together.",
    "untold_one": "One more way would also change something that this letter does not name. Please ask us about it.",
    "untold_many": "{count} more ways would also change something that this letter does not name. Please ask us about "
    "them.",
    "untold_alone": "There is a way to a decision in your favour, but it would also change something that this letter "
    "does not name. Please ask us about it.",
    "untold_alone_many": "There are ways to a decision in your favour, but each would also change something that this "
    "letter does not name. Please ask us about them.",
    "infeasible": "There is no way to a decision in your favour within what could be asked of you. We went through all "
    "of it, so this is certain as long as decisions are made as they are today.",
    "time_limit": "We found no way to a decision in your favour in the time that we took. There may be one.",
    "rejected": "We found no way to a decision in your favour that we could confirm. There may be one.",
    "unbounded": "We found no way to a decision in your favour that we could confirm. There may be one.",
    "error": "We could not work out what would change the decision. There may be a way.",
    "already_favourable": "The decision is in your favour already. Nothing has to change.",
    "not_asked": "What was not asked of you",
    "limits": "Limits that were kept",
    "fixed": "a change of {columns}",
    "contact": "Whom to turn to",
    "holds": "Each way was checked with the procedure that decides. It holds for what we know of you and for that "
    "procedure as they are today.",
    "today": "Today",
    "as_today": "as today",
}
_GERMAN: Final = {
    # ---- what other sentences say otherwise
    "column": "{column}",
    "articles": "",
    "missing": "ohne Angabe",
    "for_rule": "{change}",
    "rises": "{column}: Anstieg von {before} auf {after}",
    "falls": "{column}: Rückgang von {before} auf {after}",
    "rises_part": "{column}: Anstieg um {done}; mit dem, was daraus folgt, von {before} auf {after}",
    "falls_part": "{column}: Rückgang um {done}; mit dem, was daraus folgt, von {before} auf {after}",
    "any_between": "{low} bis {high}",
    "fill": "{column} angeben, wenn der Wert {after} ist (uns liegt dazu nichts vor; auch andere Angaben können "
    "genügen)",
    "fill_code": "{column} angeben, wenn der Wert {after} ist (bisher: {before}; auch andere Angaben können genügen)",
    "fill_any": "{column} angeben: {after} (uns liegt dazu nichts vor)",
    "fill_code_any": "{column} angeben: {after} (bisher: {before})",
    "max_feature": "kein Weg ändert mehr als eines",
    "max_features": "kein Weg ändert mehr als {k} Dinge",
    "max_column": "kein Weg ändert mehr als eines",
    "max_columns": "kein Weg ändert mehr als {k} Dinge",
    # ---- the letter
    "title": "Was die Entscheidung ändern könnte",
    "reference": "Aktenzeichen: {reference}",
    "ways_one": "Es gibt einen Weg zu einer Entscheidung zu Ihren Gunsten.",
    "ways_many": "Es gibt {count} Wege zu einer Entscheidung zu Ihren Gunsten. Jeder von ihnen genügt.",
    "way": "Weg {rank}",
    "all_of_it": "Was ein Weg nennt, ist zusammen nötig.",
    "untold_one": "Ein weiterer Weg würde auch etwas ändern, das dieser Brief nicht nennt. Bitte fragen Sie uns "
    "danach.",
    "untold_many": "{count} weitere Wege würden auch etwas ändern, das dieser Brief nicht nennt. Bitte fragen Sie uns "
    "danach.",
    "untold_alone": "Es gibt einen Weg zu einer Entscheidung zu Ihren Gunsten, aber er würde auch etwas ändern, das "
    "dieser Brief nicht nennt. Bitte fragen Sie uns danach.",
    "untold_alone_many": "Es gibt Wege zu einer Entscheidung zu Ihren Gunsten, aber jeder würde auch etwas ändern, das "
    "dieser Brief nicht nennt. Bitte fragen Sie uns danach.",
    "infeasible": "Mit dem, was von Ihnen verlangt werden könnte, gibt es keinen Weg zu einer Entscheidung zu Ihren "
    "Gunsten. Wir sind alles davon durchgegangen; das ist also sicher, solange so entschieden wird wie "
    "heute.",
    "time_limit": "Wir haben in der Zeit, die wir uns genommen haben, keinen Weg zu einer Entscheidung zu Ihren "
    "Gunsten gefunden. Es kann einen geben.",
    "rejected": "Wir haben keinen Weg zu einer Entscheidung zu Ihren Gunsten gefunden, den wir bestätigen konnten. Es "
    "kann einen geben.",
    "unbounded": "Wir haben keinen Weg zu einer Entscheidung zu Ihren Gunsten gefunden, den wir bestätigen konnten. Es "
    "kann einen geben.",
    "error": "Wir konnten nicht ermitteln, was die Entscheidung ändern würde. Es kann einen Weg geben.",
    "already_favourable": "Die Entscheidung ist schon zu Ihren Gunsten. Nichts muss sich ändern.",
    "not_asked": "Was nicht von Ihnen verlangt wurde",
    "limits": "Grenzen, die eingehalten sind",
    "fixed": "eine Änderung bei {columns}",
    "contact": "An wen Sie sich wenden können",
    "holds": "Jeder Weg wurde mit dem Verfahren geprüft, das entscheidet. Er gilt für das, was wir von Ihnen "
    "wissen, und für dieses Verfahren, wie beides heute ist.",
    "today": "Heute",
    "as_today": "wie heute",
}
#: Language -> name -> text.
LETTERS: Final[Mapping[str, Mapping[str, str]]] = {"en": _ENGLISH, "de": _GERMAN}
#: What a person does -> what happens to them.
_HAPPENS: Final = {"raise": "rises", "lower": "falls", "raise_part": "rises_part", "lower_part": "falls_part"}


def letter_language(who: str, language: str) -> Language:
    """Return a language that speaks to a person."""
    return Language({**language_of(who, language).templates, **LETTERS[language]})


def happening(language: Language) -> Language:
    """Return a letter's language in which numbers rise and fall, and nobody raises or lowers them."""
    templates = language.templates
    return Language({**templates, **{done: templates[happens] for done, happens in _HAPPENS.items()}})
