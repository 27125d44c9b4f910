"""The statuses of one person's query, in one closed set of words."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """Why the search ended and what is in hand; each member equals its own text."""

    OPTIMAL = "optimal"
    """Verified answers, the first proved best within the relative gap."""
    FEASIBLE = "feasible"
    """Verified answers; how far from the best they can be is ``.gap``."""
    INFEASIBLE = "infeasible"
    """Proved: there is no recourse in this model."""
    TIME_LIMIT = "time_limit"
    """The time ended with nothing in hand, and nothing proved."""
    REJECTED = "rejected"
    """The solver's points failed the check against the user's own model, and repair ended."""
    ALREADY_FAVOURABLE = "already_favourable"
    """The row meets the target and every rule as it is."""
    UNBOUNDED = "unbounded"
    """The program has no least cost."""
    ERROR = "error"
    """The row could not be asked, or the solver failed; the reason says why."""

    @property
    def has_answers(self) -> bool:
        """Whether verified answers are in hand."""
        return self in {Status.OPTIMAL, Status.FEASIBLE}

    @property
    def is_settled(self) -> bool:
        """Whether the person has an answer or needs none."""
        return self.has_answers or self is Status.ALREADY_FAVOURABLE
