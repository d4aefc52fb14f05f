# SPDX-License-Identifier: Apache-2.0
"""check_schemas.py - the published JSON Schemas are schemas, and accept their examples and nothing near them.

Usage: check_schemas.py                        the schemas and their examples
       check_schemas.py NAME FILE...           these documents against docs/schema/NAME.json ('-' is standard input)
Exit 0: all well, 1: not, 77: python3-jsonschema is not installed.
"""

import functools
import json
import pathlib
import sys

try:
    import jsonschema
except ImportError:
    print("python3-jsonschema is not installed")
    sys.exit(77)

import bad_examples  # noqa: E402

FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "schema"


class Wrong(Exception):
    pass


@functools.cache
def validator(name):
    schema = json.loads((FOLDER / f"{name}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def complaints(name, document):
    return [f"{error.json_path}: {error.message}" for error in validator(name).iter_errors(document)]


def check_good(name):
    """Every good example is accepted, and what `changes` makes of it is not. Gives how many were refused."""
    refused = 0
    examples = sorted((FOLDER / "examples").glob(f"{name}.*.json"))
    if not examples:
        raise Wrong(f"{name}: has no example")
    for path in examples:
        document = json.loads(path.read_text())
        found = complaints(name, document)
        if found:
            raise Wrong(f"{path.name}: {'; '.join(found)}")
        for what, bad in bad_examples.changes(name, document):
            if not complaints(name, bad):
                raise Wrong(f"{path.name}: {what}: accepted")
            refused += 1
    return refused


def check_bad():
    """Every row of the table is refused with its words. Gives the names of the schemas that the table covers."""
    for example, path, value, words in bad_examples.ROWS:
        document = bad_examples.changed(bad_examples.load(FOLDER, example), path, value)
        found = complaints(example.split(".")[0], document)
        if not any(words in line for line in found):
            raise Wrong(f"{example}: {path}: '{words}' is not in: {'; '.join(found) or 'accepted'}")
    return {row[0].split(".")[0] for row in bad_examples.ROWS}


def check_examples():
    names = sorted(path.stem for path in FOLDER.glob("*.json"))
    try:
        refused = sum(check_good(name) for name in names)
        bare = set(names) - check_bad()
    except Wrong as wrong:
        print(wrong)
        return True
    if bare:
        print(f"bad_examples.py has no row for {', '.join(sorted(bare))}")
    print(f"{len(names)} schemas, {len(bad_examples.ROWS)} rows, {refused} other changes refused")
    return bool(bare) or not refused


def main():
    if len(sys.argv) == 1:
        return int(check_examples())
    bad = 0
    for name in sys.argv[2:]:
        text = sys.stdin.read() if name == "-" else pathlib.Path(name).read_text()
        for line in complaints(sys.argv[1], json.loads(text)):
            print(f"{name}: {line}")
            bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
