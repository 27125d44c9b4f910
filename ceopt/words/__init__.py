"""Words: what a result says, in sentences of a language, by templates that can be replaced and translated.

>>> from ceopt.words import templates
>>> templates("de")["raise"]
'{column} von {before} auf {after} erhöhen'
"""

from __future__ import annotations

from ceopt.words.language import LANGUAGES, templates
from ceopt.words.sentences import ResultInWords, in_words

__all__ = ["LANGUAGES", "ResultInWords", "in_words", "templates"]
