# SPDX-License-Identifier: Apache-2.0
"""test_processes.py - objects used from several threads and in forked processes: the right result or an exception."""

import os
import threading
import time
import traceback

import numpy as np
import pytest

import fedkt
from fedkt import _handle

CLASSES = ["a", "b", "c"]


def forked(function, seconds=120):
    """Runs it in a forked child; gives "" for True, what was raised, or how the child ended."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            words = "" if function() else "a wrong result"
        except BaseException:
            words = traceback.format_exc()
        os.write(write, words.encode()[-4000:])
        os._exit(0)
    os.close(write)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            with os.fdopen(read, "rb") as pipe:
                words = pipe.read().decode()
            return words if status == 0 else f"status {status}"
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return "it hangs"


@pytest.fixture(scope="module")
def task():
    return fedkt.Task.make(CLASSES, epsilon=8, delta=1e-5)  # the shipped networks


@pytest.fixture
def data(pixels):
    return fedkt.Dataset.from_arrays(*pixels, classes=CLASSES)


def test_a_forked_child_has_right_results(task, data):
    """The parent has encoded, decoded, trained and predicted before: threads of BLAS and OpenMP were there."""
    pipeline = fedkt.Pipeline(task)
    moments = pipeline.moments(data)
    release = fedkt.release(task, moments, ledger=None, insecure_seed=1)
    images, _ = release.images(2)
    small = {"network": "resnet8", "size": 16, "epochs": 1, "batch": 20, "pad": 2}
    model = fedkt.train(data, **small)
    logits, weight = model.logits(images[:, ::2, ::2]), model.tensors()["fc.weight"]

    def child():
        again = fedkt.train(data, **small)
        return (
            pipeline.moments(data).sha256 == moments.sha256
            and (release.images(2)[0] == images).all()
            and fedkt.moments(task, data).sha256 == moments.sha256
            and (model.logits(images[:, ::2, ::2]) == logits).all()
            and (again.tensors()["fc.weight"] == weight).all()
            and len(release.heads()) == 4
        )

    assert child()
    for _ in range(3):
        assert forked(child) == ""
    assert child()


def test_a_collection_may_end_an_array_while_its_handle_is_locked():
    """Python collects cycles at any function call, also at those inside a locked block of the same thread."""

    def child():
        data = fedkt.Dataset.open("demo:train", limit=10)
        loans = [_handle.Loan(data)]
        with data._lock:
            loans.clear()
        return data._loans == 0

    assert forked(child, 20) == ""


def test_a_child_forked_during_a_call_of_another_thread_refuses(task, data):
    begun, go_on = threading.Event(), threading.Event()

    def wait(what, done, total):
        begun.set()
        go_on.wait(60)

    thread = threading.Thread(target=lambda: fedkt.moments(task, data, progress=wait))
    thread.start()
    assert begun.wait(60)
    try:
        for use in (lambda: len(data), lambda: fedkt.Dataset.open("demo:train"), lambda: fedkt.moments(task, data)):
            assert "forked while another thread was in a call of fedkt" in forked(use)
        assert len(data) == 60  # the parent goes on
    finally:
        go_on.set()
        thread.join()
    assert forked(lambda: len(data) == 60) == ""


def test_many_threads_share_what_is_only_read(task, data, pixels):
    pipeline = fedkt.Pipeline(task)
    release = fedkt.release(task, pipeline.moments(data), ledger=None, insecure_seed=1)
    head, gaussians = release.heads()["lda"], release.gaussians()
    w, _ = release.sample(4)
    wanted = (pipeline.moments(data).sha256, release.images(1)[0], head.predict(w), gaussians.sample(1, 5))
    wrong = []

    def work():
        for _ in range(3):
            found = (pipeline.moments(data).sha256, release.images(1)[0], head.predict(w), gaussians.sample(1, 5))
            if found[0] != wanted[0] or any((f != g).any() for f, g in zip(found[1:], wanted[1:])):
                wrong.append(found)

    threads = [threading.Thread(target=work) for _ in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong


def test_threads_that_change_one_object_wait_for_each_other(task, data):
    moments = fedkt.moments(task, data)
    wanted = moments.sha256
    found = set()

    def work():
        for _ in range(50):
            found.add(moments.sha256)
            found.add(int(moments.counts.sum()))

    threads = [threading.Thread(target=work) for _ in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert found == {wanted, 60}


def test_closing_while_others_use_it(task, data, pixels):
    """Every call gives the right result or says that the object is closed."""
    images = np.zeros((2, 32, 32, 3), np.uint8)
    for _ in range(5):
        pipeline = fedkt.Pipeline(task)
        wanted = pipeline.vectors(images)[1]
        wrong = []

        def work():
            for _ in range(30):
                try:
                    if (pipeline.vectors(images)[1] != wanted).any():
                        wrong.append("numbers")
                except fedkt.ArgumentError as error:
                    if "the pipeline is closed" not in str(error):
                        wrong.append(error)

        threads = [threading.Thread(target=work) for _ in range(3)]
        [thread.start() for thread in threads]
        time.sleep(0.02)
        pipeline.close()
        [thread.join() for thread in threads]
        assert not wrong


def test_a_forked_child_frees_without_harm(task, data, pixels):
    def child():
        copy = fedkt.Dataset.from_arrays(*pixels, classes=CLASSES)
        copy.close()
        data.close()
        return data.closed

    assert forked(child) == ""
    assert len(data) == 60 and not data.closed
