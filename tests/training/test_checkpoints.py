"""Training that is interrupted goes on to the same result; what is no checkpoint of it is refused."""

from __future__ import annotations

import numpy as np
import pytest
from loan_people import loan_people, small

pytest.importorskip("jax")

from ceopt.solvers.errors import InvalidValueError, UnreadableFileError, UnwritableFileError
from ceopt.training import CounterNet, RoCourseNet, training_loop


@pytest.fixture(scope="module")
def people():
    return loan_people()


def interrupted(monkeypatch, model, people, epoch):
    """Press Ctrl-C in an epoch, counted from 0."""
    usual = training_loop.radius_at

    def pressed(schedule, now, *sizes):
        if now == epoch:
            raise KeyboardInterrupt
        return usual(schedule, now, *sizes)

    with monkeypatch.context() as patched:
        patched.setattr(training_loop, "radius_at", pressed)
        with pytest.raises(KeyboardInterrupt):
            model.fit(*people)
    assert not hasattr(model, "classes_")


@pytest.mark.long
@pytest.mark.parametrize(("kind", "patience"), [(CounterNet, 2), (RoCourseNet, 4), (CounterNet, None)])
def test_an_interrupted_training_ends_as_if_it_were_not(people, tmp_path, monkeypatch, kind, patience):
    path = tmp_path / "training.npz"
    options = {"patience": patience, "learning_rate": 0.05, "epochs": 9}
    whole = small(kind, **options).fit(*people)
    for epoch in (0, 2, 3):
        interrupted(monkeypatch, small(kind, checkpoint=path, **options), people, epoch)
    assert [file.name for file in tmp_path.iterdir()] == ["training.npz"]
    resumed = small(kind, checkpoint=str(path), **options).fit(*people)

    assert resumed.history_.equals(whole.history_)
    np.testing.assert_array_equal(resumed.predict_proba(people[0]), whole.predict_proba(people[0]))
    assert resumed.recourse(people[0]).equals(whole.recourse(people[0]))

    def unwanted(*_):
        raise AssertionError

    monkeypatch.setattr(training_loop, "radius_at", unwanted)  # all is done: nothing is trained again
    again = small(kind, checkpoint=path, **options).fit(*people)
    assert again.recourse(people[0]).equals(whole.recourse(people[0]))


@pytest.mark.long
def test_a_checkpoint_of_another_training_is_refused(people, tmp_path):
    frame, labels = people
    path = tmp_path / "training.npz"
    options = {"checkpoint": path, "epochs": 2}
    small(**options).fit(frame, labels)
    cases = [
        (small(RoCourseNet, **options), labels, "model='CounterNet', not 'RoCourseNet'"),
        (small(**{**options, "epochs": 3}), labels, "epochs=2, not 3"),
        (small(weights=(1.0, 0.3, 0.1), **options), labels, "weights=[1.0, 0.2, 0.1], not [1.0, 0.3, 0.1]"),
        (small(random_state=1, **options), labels, "random_state=0, not 1"),
        (small(**options), labels.iloc[::-1], "is one of other data"),
    ]
    for model, given, says in cases:
        with pytest.raises(InvalidValueError) as caught:
            model.fit(frame, given)
        assert "needs a checkpoint of this model, with these settings and data" in str(caught.value)
        assert says in str(caught.value)
    small(progress=True, device="cpu", **options).fit(frame, labels)  # changes nothing about the training


@pytest.mark.long
def test_what_is_no_checkpoint_is_refused(people, tmp_path, monkeypatch):
    path = tmp_path / "training.npz"
    model = small(checkpoint=path, epochs=1)
    model.fit(*people)
    whole = path.read_bytes()
    np.savez(tmp_path / "other.npz", head=np.zeros(3))
    for content in (b"", b"nonsense", whole[: len(whole) // 2], (tmp_path / "other.npz").read_bytes()):
        path.write_bytes(content)
        with pytest.raises(UnreadableFileError, match="needs a checkpoint that ceopt wrote"):
            model.fit(*people)
    with pytest.raises(UnreadableFileError, match="needs a checkpoint that ceopt wrote"):
        small(checkpoint=tmp_path, epochs=1).fit(*people)
    with pytest.raises(UnwritableFileError, match="needs a file that can be written"):
        small(checkpoint=tmp_path / "absent" / "training.npz", epochs=1).fit(*people)
    monkeypatch.setattr(training_loop, "_order", lambda *_: pytest.fail("an epoch has begun"))
    with pytest.raises(UnwritableFileError, match="No such folder"):
        small(checkpoint=tmp_path / "absent" / "training.npz", epochs=1).fit(*people)
