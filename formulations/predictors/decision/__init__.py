"""Decisions: targets as rows over a model's scores, margins and ties."""
