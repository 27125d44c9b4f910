"""Origins and licences of the real data sets: said when a data set is missing, and kept with it."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SOURCES", "Source"]


class Source(NamedTuple):
    """Origin of a data set, as people know it."""

    title: str
    holder: str
    licence: str


_UCI = "the UCI Machine Learning Repository"
_CC = "CC BY 4.0"
_SBA = "the U.S. Small Business Administration (M. Li, A. Mickel & S. Taylor, Journal of Statistics Education, 2018)"
_PUBLIC = "U.S. government data, public"
_FICO = "the FICO Explainable Machine Learning Challenge (2018)"
_FICO_TERMS = "terms of the FICO challenge"
_GMSC = "the Kaggle competition Give Me Some Credit (2011)"
_CARLA = "in the variant of the CARLA recourse library"

SOURCES: dict[str, Source] = {
    "german": Source("Statlog (German Credit Data)", _UCI, _CC),
    "sba": Source("Should this loan be approved or denied, Californian case", _SBA, _PUBLIC),
    "sba_large": Source("Should this loan be approved or denied, national file, 60,000 loans sampled", _SBA, _PUBLIC),
    "student": Source("Student Performance, Portuguese course", _UCI, _CC),
    "adult": Source("Adult (Census Income)", _UCI, _CC),
    "adult_binary": Source(f"Adult (Census Income), {_CARLA}", _UCI, _CC),
    "compas": Source("COMPAS recidivism scores, two-year file", "ProPublica", "none stated (public records)"),
    "heloc": Source("Home Equity Line of Credit", _FICO, _FICO_TERMS),
    "heloc_imputed": Source(f"Home Equity Line of Credit, {_CARLA}", _FICO, _FICO_TERMS),
    "gmsc": Source(f"Give Me Some Credit, test rows {_CARLA}", _GMSC, "competition data, none stated"),
    "gmsc_raw": Source("Give Me Some Credit, first 9,999 training rows", _GMSC, "competition data, none stated"),
    "credit": Source(f"Give Me Some Credit, test rows {_CARLA}", _GMSC, "competition data, none stated"),
    "diabetes": Source(
        "Pima Indians Diabetes", "the National Institute of Diabetes and Digestive and Kidney Diseases", "CC0 as usual"
    ),
    "no2": Source("NO2 at Alnabru, Oslo, binarised by OpenML", "StatLib (M. Aldrin)", "none stated"),
    "spambase": Source("Spambase", _UCI, _CC),
    "news": Source("Online News Popularity, January to July 2013", _UCI, _CC),
    "heart": Source("Statlog (Heart)", _UCI, _CC),
}
