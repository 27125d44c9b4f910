"""Points and spans of time as JSON and back: what a row may be labelled with beside numbers and text."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pandas as pd

__all__ = ["is_time", "read_time", "write_time"]


def is_time(value: Any) -> bool:
    """Whether a value is one that :func:`write_time` writes."""
    return value is pd.NaT or isinstance(value, dt.date | pd.Timedelta | pd.Period)


def write_time(value: Any) -> Any:
    """Return a time as JSON has it: the text of a Timestamp, with the name of its zone if it has one; else its kind."""
    if value is pd.NaT:
        return "NaT"
    if isinstance(value, pd.Timestamp):
        if value.tz is None:
            return value.isoformat()
        return {"zone": str(value.tz), "at": value.isoformat()}
    if isinstance(value, pd.Timedelta):
        return {"span": value.isoformat()}
    if isinstance(value, pd.Period):
        return {"period": value.freqstr, "place": value.ordinal}
    if isinstance(value, dt.datetime):
        return {"datetime": value.isoformat()}
    return {"date": value.isoformat()}


def read_time(held: Any) -> Any:
    """Return what :func:`write_time` wrote."""
    match held:
        case {"zone": zone, "at": text}:
            return pd.Timestamp(text).tz_convert(zone)
        case {"span": text}:
            return pd.Timedelta(text)
        case {"period": freq, "place": place}:
            return pd.Period(ordinal=place, freq=freq)
        case {"datetime": text}:
            return dt.datetime.fromisoformat(text)
        case {"date": text}:
            return dt.date.fromisoformat(text)
    return pd.Timestamp(held)
