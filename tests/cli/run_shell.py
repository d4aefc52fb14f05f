#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_shell.py - man pages and completions, which are made from the option tables, in a real groff, bash and zsh.

Usage: run_shell.py FEDKT BUILD_FOLDER

Every verb has a page with every option of its help, and groff formats it without a warning. In bash, every verb, every
word and every option is offered; choices give their words, file options names of files. zsh, where it is installed, is
typed to in a terminal. What is installed from BUILD_FOLDER is what the binary makes.
"""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time


class Trial:
    def __init__(self, fedkt, folder):
        self.fedkt, self.folder, self.bad, self.looks = fedkt, folder, 0, 0

    def run(self, *words, **more):
        return subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, **more)

    def ask(self, *words):
        return self.run(self.fedkt, *words).stdout

    def want(self, truth, what):
        self.looks += 1
        if not truth:
            print(f"wrong: {what[:2000]}")
            self.bad += 1


def names(trial):
    """Verbs, words that have a help of their own: [["demo"], ["task"], ["task", "new"], ...]"""
    found = []
    for verb in re.findall(r"(?m)^  ([a-z]+) +\S", trial.ask("--help")):
        found.append([verb])
        found += [[verb, word] for word in re.findall(rf"(?m)^  {verb} ([a-z]+) +\S", trial.ask(verb, "--help"))]
    return found


def options(trial, name):
    return re.findall(r"(?m)^  (?:-h, )?(--[a-z0-9-]+)", trial.ask(*name, "--help"))


def check_man(trial, verbs):
    pages = trial.folder / "man"
    trial.want(trial.run(trial.fedkt, "help", "--man", pages).returncode == 0, "help --man fails")
    wanted = {"fedkt.1"} | {f"fedkt-{'-'.join(name)}.1" for name in verbs}
    trial.want({path.name for path in pages.iterdir()} == wanted, f"pages are {sorted(pages.iterdir())}")
    for name in verbs:
        text = (pages / f"fedkt-{'-'.join(name)}.1").read_text().replace("\\-", "-")
        for option in options(trial, name):
            trial.want(option in text, f"{name}: {option} is not on its man page")
        trial.want(f"fedkt-{name[0]}" in (pages / "fedkt.1").read_text().replace("\\-", "-"), f"{name} not in fedkt.1")
    for page in sorted(pages.iterdir()):
        if not shutil.which("groff"):
            sys.exit("groff is not installed")
        done = trial.run("groff", "-man", "-Tutf8", "-ww", "-Kutf8", "-P-cbou", page)
        trial.want(done.returncode == 0 and not done.stderr, f"groff on {page.name}: {done.stderr}")
        for section in ("NAME", "SYNOPSIS", "DESCRIPTION"):
            trial.want(re.search(rf"(?m)^{section}$", done.stdout), f"{page.name} has no {section}")
        if shutil.which("mandoc"):
            done = trial.run("mandoc", "-Tlint", "-Werror", page)
            trial.want(done.returncode == 0, f"mandoc on {page.name}: {done.stdout}")
    return pages


def bash(trial, script, lines):
    """What bash offers at the end of each line (a list of words, the last one being typed)."""
    code = f"source {script}\n"
    for words in lines:
        quoted = " ".join("'" + word + "'" for word in words)
        code += f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _fedkt\n"
        code += "printf '%s\\n' \"${COMPREPLY[@]}\" '=='\n"
    done = trial.run("bash", "--norc", "-c", code, cwd=trial.folder)
    if done.stderr:
        trial.want(False, f"bash says: {done.stderr}")
    return [[line for line in part.splitlines() if line] for part in done.stdout.split("==\n")]


def check_bash(trial, verbs):
    script = trial.folder / "fedkt.bash"
    script.write_text(trial.ask("help", "--completion", "bash"))
    (trial.folder / "two words.tar").touch()
    (trial.folder / "deep").mkdir()
    offers = bash(trial, script, [["fedkt", *name, "--"] for name in verbs])
    for name, offered in zip(verbs, offers):
        trial.want(offered == (options(trial, name) or ["--help"]), f"{name}: bash offers {offered}")
    cases = [
        (["fedkt", "simu"], ["simulate"]),
        (["fedkt", "help", "simu"], ["simulate"]),
        (["fedkt", "task", ""], ["new", "show", "sign", "verify"]),
        (["fedkt", "codec", "cal"], ["calibrate"]),
        (["fedkt", "train", "--network", ""], ["resnet18", "resnet8"]),
        (["fedkt", "train", "--network", "=", "resnet1"], ["resnet18"]),
        (["fedkt", "task", "new", "--adjacency", "rep"], ["replace", "replace-any"]),
        (["fedkt", "train", "--data", "two"], ["two words.tar"]),
        (["fedkt", "generate", "--out", "d"], ["deep"]),
        (["fedkt", "generate", "--out", "two"], []),
        (["fedkt", "train", "--epochs", ""], []),
        (["fedkt", "enroll", "two"], ["two words.tar"]),
    ]
    for (words, want), got in zip(cases, bash(trial, script, [words for words, _ in cases])):
        trial.want(got == want, f"bash offers {got} after {words}, not {want}")
    plain = trial.run("bash", "--norc", "-c", f"source {script}; complete -p fedkt")
    trial.want(plain.stdout.strip() == "complete -F _fedkt fedkt", f"not registered: {plain.stdout}{plain.stderr}")
    return script


def type_to_zsh(folder, lines, seconds=20):
    """Types each line and a tab into a zsh; gives all that the terminal shows."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.environ.update(TERM="dumb", HOME=str(folder), ZDOTDIR=str(folder), LC_ALL="C")
        os.execvp("zsh", ["zsh", "-f", "-i"])
    seen = ""

    def until(text):
        nonlocal seen
        end = time.monotonic() + seconds
        while text not in seen and time.monotonic() < end:
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    seen += os.read(terminal, 65536).decode(errors="replace")
                except OSError:
                    break
        return text in seen

    os.write(terminal, b"fpath=($PWD/zsh $fpath); autoload -Uz compinit; compinit -u -D; unsetopt beep; echo rea''dy\n")
    answers = [until("ready")]
    for typed, want in lines:
        seen = ""
        os.write(terminal, typed.encode() + b"\t")
        answers.append(until(want))
        os.write(terminal, b"\x15\n")  # the line is thrown away
        answers[-1] = answers[-1] or seen
    os.write(terminal, b"exit\n")
    os.close(terminal)
    os.waitpid(child, 0)
    return answers


def check_zsh(trial):
    script = trial.folder / "zsh" / "_fedkt"
    script.parent.mkdir()
    script.write_text(trial.ask("help", "--completion", "zsh"))
    if not shutil.which("zsh"):
        return print("zsh is not installed: its completion is not tried") or script
    trial.want(trial.run("zsh", "-n", script).returncode == 0, "zsh does not read its script")
    lines = [
        ("fedkt simu", "fedkt simulate "),
        ("fedkt task ver", "fedkt task verify "),
        ("fedkt codec cal", "fedkt codec calibrate "),
        ("fedkt train --netw", "--network="),
        ("fedkt train --network resnet1", "resnet18 "),
        ("fedkt task new --rost", "--roster="),
        ("fedkt task new --roster two", "two\\ words.tar"),
        ("fedkt help perso", "fedkt help personalize "),
    ]
    ready, *answers = type_to_zsh(trial.folder, lines)
    trial.want(ready is True, "zsh does not start")
    for (typed, want), got in zip(lines, answers):
        trial.want(got is True, f"zsh makes {got!r} of {typed!r}, not {want!r}")
    return script


def check_installed(trial, build, pages, scripts):
    prefix = trial.folder / "installed"
    done = trial.run("cmake", "--install", build, "--prefix", prefix)
    trial.want(done.returncode == 0, f"cmake --install: {done.stderr}")
    share = prefix / "share"
    found = {p.name: p.read_text() for p in (share / "man" / "man1").glob("*")}
    trial.want(found == {p.name: p.read_text() for p in pages.iterdir()}, f"man pages installed: {sorted(found)}")
    places = ("bash-completion/completions/fedkt", "zsh/site-functions/_fedkt")
    for place, script in zip(places, scripts):
        same = (share / place).is_file() and (share / place).read_text() == script.read_text()
        trial.want(same, f"{place} is not installed, or not what the binary makes")


def main():
    fedkt, build = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory(prefix="fedkt-shell-") as folder:
        trial = Trial(fedkt, pathlib.Path(folder).resolve())
        verbs = names(trial)
        trial.want(len(verbs) > 20, f"verbs are {verbs}")
        pages = check_man(trial, verbs)
        scripts = [check_bash(trial, verbs), check_zsh(trial)]
        check_installed(trial, build, pages, scripts)
        print(f"{trial.looks} looks, {trial.bad} bad")
    return int(trial.bad > 0)


if __name__ == "__main__":
    sys.exit(main())
