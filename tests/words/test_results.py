"""A whole result in sentences: how it ended, why, the rules in conflict, and the same once it was read from JSON."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace

import pytest
from faulty import faulty

import ceopt
from ceopt import Feature, FeatureSpace, Linear, MaxChanges, SolutionSet, Status
from ceopt.base.said import Phrase, Said, said, together
from ceopt.formulations.predictors import Affine
from ceopt.solvers.problem import Stop
from ceopt.words import in_words
from ceopt.words.language import FIELDS, language_of

SPACE = FeatureSpace(
    [
        Feature("savings", kind="continuous", lower=0, upper=90_000, step=100, unit="euros"),
        Feature("owner", kind="binary", levels=(False, True)),
    ]
)
MODEL = Affine([1.0, 1000.0], -23_350.0, labels=("bad", "good"))
ROW = {"savings": 21_200.0, "owner": False}
CAP = Linear({"savings": 1.0}, "<=", 22_500, name="cap")


def ask(space=SPACE, model=MODEL, **options):
    return ceopt.explain(model, ROW, space, target="good", **options)


@pytest.fixture(scope="module")
def results():
    """One result a way to end."""
    fixed = SPACE.update("savings", upper=22_500).update("owner", mutable=False)
    return {
        "several": ask(n=2, diversity="pool"),  # the second changes a column more
        "one": ask(),
        "all there are": ask(n=2, constraints=[MaxChanges(1)], diversity="support"),
        "conflict": ask(constraints=[CAP, MaxChanges(1)], why=30),
        "space": ask(fixed, why=30),
        "not asked why": ask(fixed, why=False),
        "met": ask(model=Affine([1.0, 1000.0], 0.0, labels=("bad", "good"))),
        "late": ask(time_limit_s=1e-9),
    }


EXPECTED = {
    "several": [
        "There are 2 ways to the goal (good); none asks for less than the first.",
        "Way 1: Raise savings from 21,200 to 23,400 euros.",
        "Way 2: Raise savings from 21,200 to 22,400 euros. Change owner from no to yes.",
    ],
    "one": [
        "There is a way to the goal (good), and none asks for less.",
        "Way 1: Raise savings from 21,200 to 23,400 euros.",
    ],
    "all there are": [
        "There is a way to the goal (good), and none asks for less.",
        "It is proved that there are no more.",
        "Way 1: Raise savings from 21,200 to 23,400 euros.",
    ],
    "conflict": [
        "There is no way to the goal (good) within what may change.",
        "It is proved that nothing that may change meets the goal and every rule.",
        "These rules together leave no way:",
        "cap: savings is at most 22,500 euros (there is a way if this is wider by 900 euros)",
        "at most 1 feature may change (there is a way if this is wider by 1)",
    ],
    "space": [
        "There is no way to the goal (good) within what may change.",
        "It is proved that nothing that may change meets the goal and every rule.",
        "These rules together leave no way:",
        "owner stays at no",
        "savings is at most 22,500 euros (there is a way if this is wider by 900 euros)",
    ],
    "not asked why": [
        "There is no way to the goal (good) within what may change.",
        "It is proved that nothing that may change meets the goal and every rule.",
    ],
    "met": ["Nothing has to change: the goal (good) is met.", "The goal is met, and so is every rule."],
    "late": [
        "No way to the goal (good) was found. There may be one.",
        "The time limit of 0.000000001 seconds is used up.",
    ],
}


@pytest.mark.parametrize("case", EXPECTED)
def test_a_result_is_told_in_english(results, case):
    assert sorted(results[case].sentences()) == sorted(EXPECTED[case])


def test_a_result_is_told_in_german(results):
    assert results["conflict"].sentences("de")[:4] == [
        "Mit dem, was sich ändern darf, gibt es keinen Weg zum Ziel (good).",
        "Es ist bewiesen, dass nichts, was sich ändern darf, das Ziel erreicht und jede Regel einhält.",
        "Diese Regeln zusammen lassen keinen Weg:",
        "cap: savings ist höchstens 22.500 euros (um 900 euros weiter gäbe es einen Weg)",
    ]
    assert results["several"].sentences("de")[-1] == (
        "Weg 2: savings von 21.200 auf 22.400 euros erhöhen. owner von Nein auf Ja ändern."
    )


@pytest.mark.parametrize("case", EXPECTED)
def test_nothing_that_ceopt_says_stays_english(results, case):
    assert not set(results[case].sentences("de")) & set(EXPECTED[case])


@pytest.mark.parametrize("case", EXPECTED)
@pytest.mark.parametrize("language", ["en", "de"])
def test_a_result_read_from_json_says_the_same(results, case, language):
    result = results[case]
    again = SolutionSet.from_json(result.to_json())

    assert again.sentences(language) == result.sentences(language)
    assert in_words(again, language) == in_words(result, language)
    assert [answer.sentences(language) for answer in again] == [answer.sentences(language) for answer in result]
    assert again.to_json() == result.to_json()


def test_pickles_and_copies_say_the_same(results):
    for result in results.values():
        for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
            assert again.sentences("de") == result.sentences("de")
            assert again.space == result.space


def test_the_parts_are_there_one_by_one(results):
    words = in_words(results["conflict"], "de")

    assert words.status == words.lines()[0]
    assert words.conflict_head == "Diese Regeln zusammen lassen keinen Weg:"
    assert len(words.conflict) == 2
    assert words.answers == words.ways == ()
    assert words.rules == ("cap: savings ist höchstens 22.500 euros", "höchstens 1 Merkmal darf sich ändern")
    assert in_words(results["space"], "de").out_of_reach == ("owner bleibt bei Nein",)
    assert in_words(results["several"]).answers[1] == tuple(results["several"][1].sentences())


def test_a_language_made_once_serves_many_results(results):
    language = language_of("test", "de", {"way": "{rank}. {changes}"})

    assert in_words(results["one"], language).ways == ("1. savings von 21.200 auf 23.400 euros erhöhen",)


def test_reason_and_conflict_are_the_english_text_that_they_were(results):
    result = results["conflict"]

    assert result.reason.startswith("Proved: nothing in reach meets the target and every rule. In conflict: cap (")
    assert ("cap", "savings <= 22500", 900.0) in result.conflict
    assert result.rules == {"cap": "savings <= 22500", "MaxChanges_2": "at most 1 feature may change"}
    assert json.loads(result.to_json())["reason"] == result.reason


def test_json_of_an_earlier_version_is_told_as_far_as_it_goes(results):
    for case in ("several", "conflict"):
        document = json.loads(results[case].to_json())
        for field in ("space", "rules", "phrases"):
            del document[field]
        old = SolutionSet.from_json(json.dumps(document))
        lines = old.sentences("de")

        assert old.space is None
        if case == "several":
            assert lines[1] == "Weg 1: savings von 21.200 auf 23.400 erhöhen."
        else:
            assert "cap: savings <= 22500 (um 900 weiter gäbe es einen Weg)" in lines
            assert results[case].reason in lines


def test_a_phrase_of_a_later_version_is_said_in_english(results):
    text = results["not asked why"].to_json().replace('"proved_none"', '"proved_by_oracle"')

    assert "Proved: nothing in reach meets the target and every rule." in SolutionSet.from_json(text).sentences("de")[1]


def test_a_damaged_phrase_is_refused_or_its_text_is_said(results):
    document = json.loads(results["one"].to_json())
    document["phrases"]["target"] = [{"phrase": "target_between", "fields": {"low": 1}}]

    assert "(good)" in SolutionSet.from_json(json.dumps(document)).sentences()[0]
    document["phrases"]["target"] = [{"phrase": 5, "fields": {}}]
    with pytest.raises(ceopt.CeoptError, match="is damaged"):
        SolutionSet.from_json(json.dumps(document))


def test_what_a_solver_or_an_error_says_stays_as_it_is():
    result = SolutionSet(
        status="error", counterfactuals=(), factual=ask().factual, target="good", reason="Column 'x' needs a number."
    )

    assert result.sentences("de")[1] == "Column 'x' needs a number."


@pytest.mark.parametrize("status", Status)
def test_every_status_has_its_sentence(status):
    answers = ask().counterfactuals if status.has_answers else ()
    result = SolutionSet(status=status, counterfactuals=answers, factual=ask().factual, target="good")

    assert result.sentences()[0] != result.sentences("de")[0]


@pytest.mark.parametrize("has_point", [False, True])
@pytest.mark.usefixtures("by_program")
def test_where_the_time_ended_the_solver_no_sentence_has_its_words(has_point):
    def late(told, _):
        ended = replace(told, status=Stop.TIME_LIMIT, bound=0.0, message="HiGHS stopped: time limit.")
        return ended if has_point else replace(ended, x=None, objective=None, incumbents=())

    with faulty(late) as solver:
        result = ask(solver=solver)
    assert result.status == "feasible"  # by the point of the solver, or by a start that was known
    assert result.reason == "HiGHS stopped: time limit."
    for one in (result, SolutionSet.from_json(result.to_json())):
        assert "The time ended before more was proved." in one.sentences()
        assert "Die Zeit endete, bevor mehr bewiesen war." in one.sentences("de")
        assert "HiGHS" not in " ".join((*one.sentences(), *one.sentences("de")))


# ---- texts that know what they say -----------------------------------------------------------------------------------
def test_a_said_text_is_text_and_survives_pickles():
    text = said("it breaks few", "breaks_rules", rules=("few",))
    again = pickle.loads(pickle.dumps(text))

    assert text == "it breaks few"
    assert hash(text) == hash("it breaks few")
    assert type(str(text)) is str
    assert again.phrases == text.phrases == copy.deepcopy(text).phrases


def test_texts_come_together_with_their_phrases():
    late = said("It is late.", "time_ended")
    reason = together(late, "", "HiGHS stopped.", late)

    assert reason == "It is late. HiGHS stopped. It is late."
    assert [phrase.name for phrase in reason.phrases] == ["time_ended", "verbatim", "time_ended"]
    assert together("", "") == ""
    assert together("", late) is late


def test_a_text_inside_another_is_translated_too():
    german = language_of("test", "de")
    failure = said("it breaks few", "breaks_rules", rules=("few",))
    nested = said("No more, as: ...", "no_more_as", why=together(said("x", "time_ended"), "HiGHS stopped."))

    assert german.say(said("...", "point_failed", failure=failure)) == (
        "Der Punkt des Lösers hat die Prüfung nicht bestanden: er verletzt few."
    )
    assert german.say(nested) == "Ein weiterer Weg wurde nicht gefunden. Die Zeit ist verbraucht. HiGHS stopped."
    assert german.say(Said("as it is", (Phrase("no such", {}),))) == "as it is"


def test_every_template_can_be_said():
    for language in ("en", "de"):
        spoken = language_of("test", language)
        for name, fields in FIELDS.items():
            assert "{" not in spoken.phrase(Phrase(name, dict.fromkeys(fields, "x")))
