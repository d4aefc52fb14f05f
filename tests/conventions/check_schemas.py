# SPDX-License-Identifier: Apache-2.0
"""check_schemas.py - the published JSON Schemas are schemas, and their examples are accepted or refused as named.

Usage: check_schemas.py                        the schemas and their examples
       check_schemas.py NAME FILE...           these documents against docs/schema/NAME.json ('-' is standard input)
Exit 0: all well, 1: not, 77: python3-jsonschema is not installed.
"""

import json
import pathlib
import sys

try:
    import jsonschema
except ImportError:
    print("python3-jsonschema is not installed")
    sys.exit(77)

FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "schema"


def complaints(name, document):
    schema = json.loads((FOLDER / f"{name}.json").read_text())
    validator = jsonschema.Draft202012Validator
    validator.check_schema(schema)
    return [f"{error.json_path}: {error.message}" for error in validator(schema).iter_errors(document)]


def check_examples():
    bad = 0
    names = sorted(path.stem for path in FOLDER.glob("*.json"))
    for name in names:
        examples = sorted((FOLDER / "examples").glob(f"{name}.*.json"))
        kinds = {"bad" in path.name for path in examples}
        if kinds != {True, False}:
            print(f"{name}: wants at least one good and one bad example")
            bad = 1
        for path in examples:
            found = complaints(name, json.loads(path.read_text()))
            if bool(found) != ("bad" in path.name):
                print(f"{path.name}: {'; '.join(found) or 'accepted, though it is named bad'}")
                bad = 1
    print(f"{len(names)} schemas")
    return bad or not names


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
