# SPDX-License-Identifier: Apache-2.0
"""test_examples.py - the examples in docstrings give what they say; every public object has a docstring."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import fedkt

MODULES = [name for _, name, _ in pkgutil.iter_modules(fedkt.__path__) if not name.startswith("_")]
OPTIONAL = {"torch": "torch", "sklearn": "sklearn"}


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, tmp_path, monkeypatch):
    if name in OPTIONAL:
        pytest.importorskip(OPTIONAL[name])
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(f"fedkt.{name}")
    found = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert found.failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    tests = [t for name in MODULES if name not in OPTIONAL
             for t in finder.find(importlib.import_module(f"fedkt.{name}"))]  # fmt: skip
    assert sum(len(test.examples) for test in tests) > 20


def test_every_public_name_is_documented():
    for name in fedkt.__all__:
        thing = getattr(fedkt, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert (thing.__doc__ or "").strip(), name
