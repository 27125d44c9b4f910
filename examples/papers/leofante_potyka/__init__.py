"""Experiments of Leofante & Potyka (AAAI 2024): protocol, networks, published tables and dice-ml."""
