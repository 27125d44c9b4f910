"""Training that is interrupted goes on to the same result; what is no checkpoint of it is refused."""

from __future__ import annotations

import io
import json
import math
import tracemalloc
import zipfile

import numpy as np
import pytest
from damage import cut, edited, flipped
from loan_people import loan_people, small

pytest.importorskip("jax")

from ceopt.solvers.errors import InvalidValueError, UnreadableFileError, UnwritableFileError
from ceopt.training import CounterNet, RoCourseNet
from ceopt.training import training as training_loop
from ceopt.training.training import restored, saved


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


# ---- damage ----------------------------------------------------------------------------------------------------------
ARRAYS = [np.arange(6, dtype=np.float32).reshape(2, 3), np.float32(2.5), np.asfortranarray(np.eye(3, dtype=np.float32)),
          np.arange(4, dtype=np.int32)]  # fmt: skip
MADE_BY = {"model": "CounterNet", "epochs": 9, "data": "abc", "weights": [1.0, 0.2]}
HEAD = {"made_by": MADE_BY, "history": [[0.5, 0.25, 1e-3, 0.0, math.nan]] * 2, "best_loss": math.inf, "waited": 0}


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "training.npz"
    saved("fit", found, HEAD, ARRAYS)
    return found


def read(path):
    return restored("fit", path, MADE_BY, [np.asarray(array) for array in ARRAYS])


def assert_refused_or_the_same(path, content):
    """Read it; return whether it was refused, which is a sentence of ours."""
    path.write_bytes(content)
    try:
        head, arrays = read(path)
    except (UnreadableFileError, InvalidValueError):
        return True
    assert repr(head["history"]) == repr(HEAD["history"])
    assert all(np.array_equal(one, other) for one, other in zip(arrays, ARRAYS, strict=True))
    return False


def written(entries, **options):
    """Return an .npz of entries that numpy may not write itself: names with the bytes of each."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", **options) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return held.getvalue()


def entries_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def array_bytes(array):
    held = io.BytesIO()
    np.save(held, array)
    return held.getvalue()


def headed(text):
    """Return an array of this header, with nothing behind it."""
    text = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def test_a_checkpoint_that_is_cut_anywhere_or_of_which_a_byte_flips_is_refused_or_the_same(path):
    whole = path.read_bytes()
    assert not assert_refused_or_the_same(path, whole)
    refused = [assert_refused_or_the_same(path, content) for content in cut(whole, every=17)]
    assert all(refused)
    refused = [assert_refused_or_the_same(path, content) for content in flipped(whole, every=29)]
    assert sum(refused) > len(refused) // 2


def test_every_field_of_a_checkpoint_is_checked(path):
    entries = entries_of(path.read_bytes())
    head = json.loads(entries["head.npy"][128:])
    refused = 0
    for document in edited(head, most=80):
        text = np.frombuffer(json.dumps(document).encode(), dtype=np.uint8)
        path.write_bytes(written(entries | {"head.npy": array_bytes(text)}))
        try:
            found, _ = read(path)
        except (UnreadableFileError, InvalidValueError):
            refused += 1
            continue
        training_loop.LossesByEpoch(*(found["history"] or [[0.0] * 5])[0])
        assert float(found["best_loss"]) <= math.inf
        assert int(found["waited"]) >= 0
    assert refused > 30


def test_what_a_header_claims_is_held_against_what_is_expected_before_anything_is_read(path):
    entries = entries_of(path.read_bytes())
    claims = [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 999999999999), }",  # 7 TiB
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 3), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",  # and no values
        "{'descr': '|O', 'fortran_order': False, 'shape': (2, 3), }",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3), }",
        "(" * 5000,
        "{'descr': '<f4'}",
        "",
    ]
    damaged = [written(entries | {"array0.npy": headed(claim)}) for claim in claims]
    damaged += [written(entries | {"head.npy": headed(claim)}) for claim in claims]
    damaged.append(written(entries | {"head.npy": array_bytes(np.frombuffer(b"[" * 100_000, dtype=np.uint8))}))
    bomb = array_bytes(np.zeros((1 << 25,), dtype=np.uint8))  # 32 MiB, packed to some KiB
    damaged.append(written(entries | {"head.npy": bomb}, compression=zipfile.ZIP_DEFLATED))
    damaged.append(written(entries, compression=zipfile.ZIP_BZIP2))
    damaged.append(written(entries, compression=zipfile.ZIP_LZMA))
    damaged.append(written(entries | {"array4.npy": entries["array0.npy"]}))
    damaged.append(written(entries | {"array0.npy": array_bytes(np.full((2, 3), np.nan, dtype=np.float32))}))
    damaged.append(written(entries | {"array0.npy": array_bytes(np.zeros((2, 3)))}))
    damaged.append(written({name: part for name, part in entries.items() if name != "array1.npy"}))
    del bomb
    tracemalloc.start()
    refused = [assert_refused_or_the_same(path, content) for content in damaged]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert all(refused)
    assert peak < 16 << 20


def test_what_is_no_file_is_refused(path, tmp_path):
    with pytest.raises(UnreadableFileError, match="needs a checkpoint"):
        read(tmp_path)
    with pytest.raises((UnreadableFileError, UnwritableFileError)):
        read(tmp_path / ("long" * 100) / "x.npz")
    path.unlink()
    assert read(path) is None
