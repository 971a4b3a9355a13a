"""Runs the command `unfuse`, which the wheel installs beside Python's own programs."""

import json
import os
import shutil
import subprocess
import sysconfig


class ProgramError(Exception):
    """The command failed; the text is what it said."""


def run(*arguments):
    """What the command prints, as text.

    Raises:
        ProgramError: if it fails or is missing.
    """
    try:
        done = subprocess.run([_path(), *arguments], capture_output=True, encoding="utf-8", errors="replace")
    except OSError as error:
        raise ProgramError(f"the command unfuse cannot be run: {error}") from error
    if done.returncode != 0:
        raise ProgramError(done.stderr.strip() or f"unfuse {arguments[0]} ended with exit code {done.returncode}")
    return done.stdout


def answer(*arguments):
    """What the command prints with `--json`.

    Raises:
        ProgramError: if it fails or is missing.
    """
    return json.loads(run(*arguments, "--json"))


def _path():
    beside = os.path.join(sysconfig.get_path("scripts"), "unfuse")
    return beside if os.access(beside, os.X_OK) else shutil.which("unfuse") or "unfuse"
