"""What every rule is as an object: kept, copied and stored, read by people, and shown with its rows."""

from __future__ import annotations

import copy
import doctest
import pickle
import sys
from dataclasses import is_dataclass
from typing import Any

import pyomo.environ as pyo
import pytest
from rules.found import by_name, kept
from rules.small import FACTUAL, POINTS, ROW, SPACE
from sklearn.base import clone

from ceopt.formulations import Factual, impose
from ceopt.solvers import Manifest, model_summary


def check_object(rule: Any) -> None:
    """It is a final frozen dataclass that can be copied, stored and read by people."""
    kind = type(rule)
    assert is_dataclass(rule)
    assert not hasattr(rule, "__dict__"), "slots=True"
    with pytest.raises((AttributeError, TypeError)):
        rule.name = "another"
    assert getattr(kind, "__final__", False), "@final"
    assert repr(rule).startswith(f"{kind.__name__}(")
    assert isinstance(kind.manifest, Manifest)
    assert kind.manifest.title
    assert kind.manifest.rule == kind.__name__
    text = rule.sentence()
    assert text, f"{kind.__name__} has no sentence"
    assert "\n" not in text
    assert not text.endswith("."), "a sentence follows 'name: '"
    some, home = POINTS[::15], by_name(SPACE, FACTUAL)
    expected = kept([rule], SPACE, FACTUAL, some)
    for copied in (pickle.loads(pickle.dumps(rule)), copy.deepcopy(rule), clone(rule, safe=False)):
        assert type(copied) is kind
        assert copied.sentence() == text
        own = [copied.violation(SPACE, home, by_name(SPACE, point)) <= 0.0 for point in some]
        assert own == expected.tolist()
    model = pyo.ConcreteModel()
    model.x = Factual(SPACE, ROW)
    model.rule = impose(rule, model.x)
    assert pickle.loads(pickle.dumps(model)).rule.local_name == "rule"
    assert "rule" in model_summary(model).to_string()


def check_documentation(kind: type) -> None:
    """The docstring holds an example that runs and prints rows."""
    text = kind.__doc__ or ""
    assert "Examples\n" in text, f"{kind.__name__} has no Examples in its docstring"
    module = sys.modules[kind.__module__]
    test = doctest.DocTestParser().get_doctest(text, dict(vars(module)), kind.__name__, module.__file__, 0)
    printed = "".join(example.want for example in test.examples)
    assert any(sign in printed for sign in ("<=", ">=", "==")), f"the example of {kind.__name__} prints no row"
    report: list[str] = []
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(optionflags=options, verbose=False).run(test, out=report.append)
    assert not report, "".join(report)
