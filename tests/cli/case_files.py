# SPDX-License-Identifier: Apache-2.0
"""case_files.py - the cases of run_cases.py, which stand in one file per verb: cases/<verb>.toml."""

import pathlib
import tomllib

CASES = pathlib.Path(__file__).resolve().parent / "cases"
KEYS = {"name", "args", "exit", "stderr", "leaves", "changes", "copy", "full", "fsize", "disk", "classes"}


def read():
    """Gives (file name -> text, the cases of all files, each with the name of its "file")."""
    texts = {path.name: path.read_text() for path in sorted(CASES.glob("*.toml"))}
    return texts, [{**case, "file": name} for name, text in texts.items() for case in tomllib.loads(text)["case"]]


def misplaced(cases):
    """Complaints about names that are used twice, unknown keys, and cases outside the file of their verb."""
    files = {case["file"] for case in cases}
    seen = {}
    for case in cases:
        where, verb = f"{case['file']}: {case['name']}", case["args"].split()[0] + ".toml"
        if case["name"] in seen:
            yield f"{where}: the name stands in {seen[case['name']]} too"
        seen[case["name"]] = case["file"]
        for key in sorted(case.keys() - KEYS - {"file"}):
            yield f"{where}: unknown key '{key}'"
        if case["file"] != (verb if verb in files else "general.toml"):
            yield f"{where}: belongs into {verb}"
