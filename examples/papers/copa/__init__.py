"""Experiments of COPA (Bui, Nguyen & Nguyen 2022): tables 1 and 4, figures 3 and 4."""
