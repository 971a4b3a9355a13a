#!/usr/bin/env python3
"""Runs the examples of the documents on real Spark and writes their output into the documents.

Usage: record.py UNFUSE [NAME]...

examples.json lists groups of commands: those to run first, and those to show with their output. In a document, the
output is between `<!--example NAME-->` and `<!--/example-->`. All commands of a group run in one directory, in the
order of the file. `unfuse`, `spark-submit` and the JDK are on the PATH.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = Path("/tmp/unfuse-examples")
WIDTH = 120


def main(unfuse, *names):
    groups = json.loads((HERE / "examples.json").read_text())
    unknown = set(names) - {group["name"] for group in groups}
    if unknown:
        sys.exit(f"no example {', '.join(sorted(unknown))}; there are: {', '.join(group['name'] for group in groups)}")
    environment = environment_of(Path(unfuse).resolve())
    for group in groups:
        if not names or group["name"] in names:
            record(group, environment)


def environment_of(unfuse):
    home = subprocess.run([unfuse, "setup", "--spark", "4.3"], check=True, capture_output=True, text=True)
    spark = Path(home.stdout.splitlines()[0]) / "venv" / "bin"
    path = f"{unfuse.parent}:{spark}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "COLUMNS": str(WIDTH), "EXAMPLES": str(HERE), "ROOT": str(ROOT)}


def record(group, environment):
    folder = WORK / group["name"]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for command in group.get("before", []):
        print(f"{group['name']}: {command}", file=sys.stderr)
        run(command, folder, environment)
    text = ""
    for shown in group["shown"]:
        print(f"{group['name']}: {shown['command']}", file=sys.stderr)
        output = run(shown.get("run", shown["command"]), folder, environment)
        text += f"$ {shown['command']}\n{shortened(output, shown)}"
    for document in group["documents"]:
        replace(ROOT / document, group["name"], text)
    shutil.rmtree(folder)


def run(command, folder, environment):
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def shortened(output, shown):
    """The first lines of the output, without the lines to leave out; ` …` stands for the rest."""
    lines = [cut(line.rstrip()) for line in output.splitlines()]
    if "without" in shown:
        lines = [line for line in lines if not re.search(shown["without"], line)]
    while lines and not lines[-1]:
        lines.pop()
    most = shown.get("lines", len(lines))
    if most == 0:
        return ""
    if len(lines) > most:
        lines = [*lines[:most], " …"]
    return "\n".join(lines) + "\n"


def cut(line):
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"


def replace(document, name, text):
    old = document.read_text()
    block = f"<!--example {name}-->\n```\n{text}```\n<!--/example-->"
    new, count = re.subn(rf"<!--example {re.escape(name)}-->.*?<!--/example-->", lambda _: block, old, flags=re.S)
    if count != 1:
        sys.exit(f"{document} has {count} blocks <!--example {name}-->, and one is expected")
    document.write_text(new)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
