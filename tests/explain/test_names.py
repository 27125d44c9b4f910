"""What ``import ceopt`` offers."""

from __future__ import annotations

import inspect

import pytest

import ceopt
from ceopt.settings import Settings


def test_every_public_name_exists_once_and_has_words():
    assert len(set(ceopt.__all__)) == len(ceopt.__all__) <= 58
    for name in ceopt.__all__:
        assert getattr(ceopt, name).__doc__, name


def test_dir_lists_the_public_names_alone():
    assert dir(ceopt) == sorted(ceopt.__all__)
    with pytest.raises(AttributeError, match="module 'ceopt' has no attribute 'explian'"):
        ceopt.explian  # noqa: B018 - the attribute is what is asked for


def test_calls_are_callable_though_files_bear_their_names():
    import ceopt.recourse
    import ceopt.result.verify

    assert inspect.isfunction(ceopt.explain)
    assert inspect.isfunction(ceopt.verify)


@pytest.mark.parametrize(("call", "others"), [(ceopt.explain, {}), (ceopt.Recourse.__init__, {})])
def test_keywords_and_defaults_are_the_same_everywhere(call, others):
    keywords = {
        name: parameter.default
        for name, parameter in inspect.signature(call).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    settings = {name: parameter.default for name, parameter in inspect.signature(Settings).parameters.items()}

    assert keywords == settings | {"data": None, "surrogate": None, "starts": None} | others


def test_misuse_is_a_ceopt_error_and_a_built_in_one():
    space = ceopt.FeatureSpace([ceopt.Feature("x", kind="continuous")])
    with pytest.raises(ceopt.CeoptError, match="is none"):
        ceopt.explain("model.onnx", {"x": 1.0}, space, target="good")
    with pytest.raises(TypeError, match="fitted"):
        ceopt.explain(object(), {"x": 1.0}, space, target="good")
