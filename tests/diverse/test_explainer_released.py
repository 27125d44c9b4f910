"""With the networks that the paper's authors released, the numbers of the confirmation runs come out (seeds-code 8).

The weights are not part of the repository: ``CEOPT_NN003`` names the file, or they stand beside the repository.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split

from ceopt.diverse import DiverseRobustExplainer
from ceopt.formulations.predictors import ReluNetwork

#: Mean k-distance, k-diversity, set distance (sum) and (max), over 54 to 59 pairs of a row and a noisy copy.
PUBLISHED = [
    ("diabetes", "l1", 0.1, 59, (1.1356, 1.3891, 0.2100, 0.5193)),
    ("diabetes", "l2", 0.1, 59, (0.5214, 0.6299, 0.0966, 0.2385)),
    ("diabetes", "l1", None, 59, (1.3892, 1.7118, 0.2236, 0.6325)),
    ("no2", "l1", 0.1, 54, (0.6196, 0.7878, 0.1624, 0.3350)),
    ("no2", "l2", 0.1, 54, (0.3049, 0.3854, 0.0774, 0.1601)),
    ("no2", "l1", None, 54, (0.8675, 1.1079, 0.1507, 0.3897)),
]


@pytest.fixture(scope="module")
def networks() -> Any:
    beside = Path(__file__).resolve().parents[3] / "shared" / "reference" / "nn003.json"
    path = Path(os.environ.get("CEOPT_NN003") or beside)
    if not path.is_file():
        pytest.skip("no released weights: set CEOPT_NN003 to the file that holds them")
    return json.loads(path.read_text())["networks"]


def distances(a: np.ndarray, b: np.ndarray, norm: str) -> np.ndarray:
    moves = np.abs(a[:, None, :] - b[None, :, :])
    return moves.sum(axis=2) if norm == "l1" else np.sqrt((moves**2).sum(axis=2))


def measured(x: np.ndarray, one: np.ndarray, other: np.ndarray, norm: str) -> tuple[float, ...]:
    inside, across = distances(one, one, norm), distances(one, other, norm)
    pairs = inside[np.triu_indices(len(one), 1)]
    return (
        float(distances(x[None, :], one, norm).mean()),
        float(pairs.mean()) if len(pairs) else 0.0,
        0.5 * float(across.min(axis=1).mean() + across.min(axis=0).mean()),
        0.5 * float(across.min(axis=1).max() + across.min(axis=0).max()),
    )


@pytest.mark.long
@pytest.mark.parametrize(("name", "norm", "tolerance", "pairs", "expected"), PUBLISHED)
def test_the_rows_of_the_released_experiments(data_dir, networks, name, norm, tolerance, pairs, expected):
    frame = pd.read_csv(data_dir / name / f"{name}.csv")
    X, y = frame.iloc[:, :-1].to_numpy(dtype=float), frame.iloc[:, -1].to_numpy()
    X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    train, test, _, _ = train_test_split(X, y, test_size=0.2, stratify=y, random_state=0)
    layers = networks[name]
    network = ReluNetwork(
        [np.array(layer["W"]).T for layer in layers], [np.array(layer["b"]) for layer in layers], labels=(0, 1)
    )
    made = DiverseRobustExplainer(distance=norm, tolerance=tolerance, variant="released").fit(train)

    def explained(row: np.ndarray, label: int) -> np.ndarray:
        result = made.explain(network, row, target=1 - label)
        assert result.status == "feasible"
        return result.to_frame().to_numpy()

    low, high = train.min(axis=0), train.max(axis=0)
    noise, found = np.random.RandomState(42), []  # the release draws so
    for row in test[50:70]:
        (label,) = network.predict(row[None, :]).tolist()
        answers = explained(row, label)
        copies = np.clip(noise.multivariate_normal(row, np.diag(0.08 * (high - low) / 100), 3), low, high)
        same = copies[network.predict(copies) == label]
        found += [measured(row, answers, explained(copy, label), norm) for copy in same]

    assert len(found) == pairs
    assert np.mean(found, axis=0) == pytest.approx(expected, abs=5e-4)
