# SPDX-License-Identifier: Apache-2.0
"""planted_setup.py - tools/setup.sh with stand-ins for apt-get and dpkg: it installs only what is missing, updates the
lists only when it must, and without the right to install it prints one command and fails."""

import sys

from planted import ROOT, PlantedFaults

LIST = "# head\n[build]\none  # first\ntwo\n\n[test]\nthree\n"
LAST = "#!/bin/sh\nfor n; do :; done\n"
HAVE = {
    "bin/dpkg-query": LAST + 'case " $INSTALLED " in *" $n "*) printf installed ;; *) exit 1 ;; esac\n',
    "bin/apt-cache": LAST + 'case " $KNOWN " in *" $n "*) echo yes ;; *) exit 100 ;; esac\n',
    "bin/apt-get": '#!/bin/sh\necho "apt-get $*" >>calls\n[ -z "${BROKEN:-}" ] || { echo no network; exit 100; }\n',
    "bin/id": '#!/bin/sh\necho "${FAKE_UID:-0}"\n',
    "bin/sudo": '#!/bin/sh\n[ -z "${NO_SUDO:-}" ] || exit 1\n[ "$1" != -n ] || exit 0\n[ "$1" != -v ] || exit 0\n'
    'echo "sudo" >>calls\nexec "$@"\n',
    "packages.txt": LIST,
}


def main():
    faults = PlantedFaults()

    def case(title, settings, sections, status, says, never=""):
        script = (
            f"set -eu; chmod +x bin/*; PATH={{tree}}/bin:$PATH; export PATH; {settings}; : >calls; "
            f". {ROOT}/tools/setup.sh; rc=0; ( install_packages {sections} ) || rc=$?; cat calls; "
            + (f"if grep -q '{never}' calls; then echo 'must not call {never}'; exit 9; fi; " if never else "")
            + "exit $rc"
        )
        faults.run(title, ["sh", "-c", script], HAVE, status, says)

    case("nothing missing", 'export INSTALLED="one two" KNOWN=""', "build", 0, "", "apt-get")
    case(
        "one missing",
        'export INSTALLED="one" KNOWN="two"',
        "build",
        0,
        "apt-get -q -y install --no-install-recommends two\n",
        "update",
    )
    case(
        "test packages too",
        'export INSTALLED="one" KNOWN="two three"',
        "build test",
        0,
        "install --no-install-recommends two three\n",
    )
    case("lists do not know it", 'export INSTALLED="one" KNOWN=""', "build", 0, "apt-get -q -y update\n")
    case("no network", 'export INSTALLED="" KNOWN="one two" BROKEN=1', "build", 1, "could not be installed")
    case("no network, retried after an update", 'export INSTALLED="" KNOWN="one two" BROKEN=1', "build", 1, "update")
    case("sudo", 'export INSTALLED="one" KNOWN="two" FAKE_UID=1000', "build", 0, "sudo\napt-get -q -y install")
    case(
        "neither root nor sudo",
        'export INSTALLED="one" KNOWN="two" FAKE_UID=1000 NO_SUDO=1',
        "build",
        1,
        "apt-get update && apt-get install -y --no-install-recommends two",
        "apt-get",
    )
    return faults.done()


if __name__ == "__main__":
    sys.exit(main())
