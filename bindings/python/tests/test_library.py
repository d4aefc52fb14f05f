# SPDX-License-Identifier: Apache-2.0
"""test_library.py - loading, errors as exceptions, progress, Ctrl-C."""

import ctypes
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import fedkt
from fedkt import _declarations as c
from fedkt import _library, _values, _work


def python(code, **environment):
    """Another Python process; gives what it did."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )


def test_versions():
    assert fedkt.library_version() == fedkt.__version__
    root = os.path.join(os.path.dirname(__file__), "../../..")
    with open(os.path.join(root, "CMakeLists.txt"), encoding="utf-8") as file:
        assert f"project(fedkt VERSION {fedkt.__version__} " in file.read()


def test_a_library_that_is_not_there_is_an_import_error():
    done = python("import fedkt", FEDKT_LIBRARY="/no/such/libfedkt.so")
    assert done.returncode == 1
    assert "ImportError: cannot load the fedkt library: /no/such/libfedkt.so" in done.stderr
    assert "FEDKT_LIBRARY" in done.stderr


def test_blas_runs_on_the_kernels_that_the_library_advises():
    done = python(
        "import fedkt, os; from fedkt._library import lib; print(lib.fkt_blas_core_advice())",
        **{_library.CORE: os.environ.get(_library.CORE, "")} if _library.CORE in os.environ else {},
    )
    assert done.stdout.strip() == "None", done.stderr


def test_an_error_has_status_sentence_and_hint():
    with pytest.raises(fedkt.MachineError) as caught:
        fedkt.Dataset.open("no/such/folder")
    error = caught.value
    assert error.status is fedkt.Status.IO
    assert error.sentence == "cannot open 'no/such/folder': No such file or directory"
    assert str(error) == error.sentence and error.hint == ""
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.status, again.sentence) == (type(error), error.status, error.sentence)


def test_a_hint_has_words_a_code_and_values():
    spec = c.CodecSpec(name=b"taesd", size=32, settings=c.CodecSettings(weights=b"/nowhere"))
    with pytest.raises(fedkt.FedktError) as caught:
        _library.check(_library.lib.fkt_codec_open(ctypes.byref(ctypes.c_void_p()), spec))
    assert caught.value.hint
    assert str(caught.value).endswith("\nhint: " + caught.value.hint)
    assert isinstance(caught.value.hint_code, fedkt.Hint)


def test_each_family_has_its_class():
    from fedkt.errors import error_of

    wanted = {10: fedkt.ArgumentError, 11: fedkt.ArgumentError, 20: fedkt.MachineError, 24: fedkt.Stopped,
              31: fedkt.DataError, 42: fedkt.PeerError, 60: fedkt.BudgetError, 99: fedkt.FedktError}  # fmt: skip
    for status, kind in wanted.items():
        assert type(error_of(status, "x")) is kind
    assert error_of(99, "x").status == 99
    assert issubclass(fedkt.ArgumentError, ValueError)


def test_the_sentence_is_of_the_thread_that_failed():
    found = {}

    def fail(name):
        for _ in range(50):
            try:
                fedkt.Dataset.open(f"no/such/{name}")
            except fedkt.FedktError as error:
                found.setdefault(name, set()).add(error.sentence)

    threads = [threading.Thread(target=fail, args=(f"folder{i}",)) for i in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert found == {f"folder{i}": {f"cannot open 'no/such/folder{i}': No such file or directory"} for i in range(8)}


def waiting_call(work, seconds=20):
    """A function of C's shape that works until its progress hook stops it."""

    def function():
        end = time.monotonic() + seconds
        done = 0
        while time.monotonic() < end:
            if work.progress.step(None, b"waiting", done, 100):
                return fedkt.Status.STOPPED
            done += 1
            time.sleep(0.01)
        return fedkt.Status.OK

    return function


def test_ctrl_c_stops_a_long_call():
    work = _work.Work()
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    before = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        work.run(waiting_call(work))
    assert 0.2 < time.monotonic() - before < 10


def test_ctrl_c_while_the_thread_is_started_leaves_no_call_behind(monkeypatch):
    class Interrupted(threading.Thread):
        def start(self):
            super().start()
            raise KeyboardInterrupt

    called, before = [], threading.active_count()
    monkeypatch.setattr(threading, "Thread", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        _work.run(lambda: called.append(True) or fedkt.Status.OK)
    monkeypatch.undo()
    end = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() == before and not called
    assert _work.run(lambda: called.append(True) or fedkt.Status.OK) == fedkt.Status.OK and called


def test_an_exception_of_a_progress_function_comes_through():
    def report(what, done, total):
        if done == 3:
            raise ZeroDivisionError("mine")

    work = _work.Work(report)
    with pytest.raises(ZeroDivisionError, match="mine"):
        work.run(waiting_call(work))


def test_a_true_answer_of_a_progress_function_stops():
    seen = []
    work = _work.Work(lambda what, done, total: seen.append((what, done, total)) or done == 2)
    with pytest.raises(fedkt.Stopped):
        work.run(waiting_call(work))
    assert seen == [("waiting", 0, 100), ("waiting", 1, 100), ("waiting", 2, 100)]


def test_progress_must_be_callable():
    with pytest.raises(fedkt.ArgumentError, match="progress must be"):
        _work.Work(3)


def test_progress_true_draws_a_bar_where_tqdm_is_installed(capsys):
    pytest.importorskip("tqdm")
    work = _work.Work(True)
    assert work.progress.step(None, b"counting", 1, 2) == 0
    assert work.progress.step(None, b"counting", 2, 2) == 0
    work.report.close()
    assert "counting: 100%" in capsys.readouterr().err


def test_values_that_ctypes_would_cut_are_refused():
    for bad in (-1, 2**64, 1.5, "1", None):
        with pytest.raises(fedkt.ArgumentError):
            _values.whole("n", bad)
    for bad in (float("nan"), float("inf"), "x", None):
        with pytest.raises(fedkt.ArgumentError):
            _values.real("x", bad)
    with pytest.raises(fedkt.ArgumentError, match="NUL"):
        _values.text("name", "a\0b")
    with pytest.raises(fedkt.ArgumentError, match="NUL"):
        fedkt.Dataset.open("a\0b")
    with pytest.raises(fedkt.ArgumentError, match="must be a path"):
        fedkt.Dataset.open(3)
    assert _values.whole("n", np.uint8(3)) == 3
