"""Random questions of people with missing cells and codes, against enumeration by the model's own predict."""

from __future__ import annotations

import pytest
from gap_questions.draw import KINDS, draw
from gap_questions.judge import faults

import ceopt

NUMBERS = range(6)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_is_what_enumeration_finds(kind, number):
    question = draw(kind, number)
    if question is None:
        return
    result = ceopt.explain(
        question.model,
        question.row,
        question.space,
        target=question.target,
        cost=question.cost,
        constraints=question.rules,
    )

    assert faults(question, result) == []
