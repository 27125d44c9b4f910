"""What an answer is told with: here the line that a person may write who is beyond a rule today."""

from __future__ import annotations

import pandas as pd

from ceopt import AllowedRows
from ceopt.search.build_answer import line_without


def test_a_table_of_six_rows_is_written_out_and_a_longer_one_goes_by_its_name() -> None:
    rows = pd.DataFrame({"job": [1, 2, 3, 4, 5, 6, 7]})
    short = line_without(AllowedRows(["job"], rows[:6]))
    long = line_without(AllowedRows(["job"], rows))
    assert short == "AllowedRows(('job',), pandas.DataFrame({'job': [1, 2, 3, 4, 5, 6]}), beyond='no_further')"
    assert long == "AllowedRows(('job',), frame, beyond='no_further')"
