#!/usr/bin/env python3
"""Checks the English of everything that people read, with LanguageTool and with the rules of docs/style.md.

Usage: check.py CLASSPATH-FILE CLASSES [ROOT]

Prints a line for each finding and exits with 1 if there is one. The user's cache directory keeps hashes of texts
without a finding, so that only changed texts are checked again.
"""

import hashlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from texts import ALL_NAMES, texts

HERE = Path(__file__).parent


def main(classpath, classes, root="."):
    off, words = [rule for rule, _ in pairs("rules-off.txt")], Words("words.txt")
    own = [(rule, re.compile(pattern)) for pattern, rule in pairs("style.txt")]
    found = list(texts(root))
    findings = [finding for text in found for finding in style(text, own)]
    cache = Cache([classpath, *HERE.glob("*.txt"), *HERE.glob("*.py"), *HERE.glob("src/**/*.java")])
    changed = [text for text in found if not cache.knows(text)]
    wrong = grammar(changed, off, words, classpath, classes)
    cache.add(text for number, text in enumerate(changed) if number not in wrong)
    findings += [finding for of_text in wrong.values() for finding in of_text]
    for finding in sorted(findings):
        print("{}:{}: {}: {}\n    {}".format(*finding))
    print(f"grammar: {len(found)} texts, {len(changed)} of them new, {len(findings)} findings", file=sys.stderr)
    return 1 if findings else 0


def lines(name):
    for line in (HERE / name).read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line.strip()


def pairs(name):
    """Lines of two fields, separated by two spaces or more."""
    return [tuple(re.split(r"\s{2,}", line, maxsplit=1)) for line in lines(name)]


def style(text, own):
    for rule, pattern in own:
        for match in pattern.finditer(text.text):
            yield finding(text, match.start(), match.end(), "style", rule)


def grammar(changed, off, words, classpath, classes):
    """Findings of LanguageTool by the index of the text. One run checks all texts."""
    wrong = {}
    if not changed:
        return wrong
    rules = Path(classes).parent / "rules-off"
    rules.write_text("\n".join(off))
    command = ["java", "-Xmx700m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
               "-cp", f"{classes}:{Path(classpath).read_text().strip()}", "io.unfuse.grammar.Checker", str(rules)]
    run = subprocess.run(command, input="\n".join(text.text for text in changed) + "\n",
                         capture_output=True, encoding="utf-8")
    if run.returncode != 0:
        sys.exit(f"LanguageTool failed: {run.stderr.strip()}")
    for line in run.stdout.splitlines():
        number, rule, begin, end, message, suggestion = line.split("\t")
        text, begin, end = changed[int(number)], int(begin), int(end)
        if words.accept(rule, text, begin, end):
            continue
        message += f" ({suggestion})" if suggestion and suggestion not in message else ""
        wrong.setdefault(int(number), []).append(finding(text, begin, end, rule, message))
    return wrong


class Words:
    """Words and phrases of the field, which are not errors."""

    def __init__(self, name):
        listed = list(lines(name))
        self.phrases = [line for line in listed if " " in line]
        self.words = {line for line in listed if " " not in line}

    def accept(self, rule, text, begin, end):
        if rule == "UPPERCASE_SENTENCE_START":
            # Cells, items after a colon and messages begin with a small letter. A name of code may begin a sentence.
            return text.message or begin == 0 or self.is_name(text.text[begin:].split()[0])
        word = text.text[begin:end]
        if " " not in word and self.is_name(word):
            return True
        if rule.startswith("MORFOLOGIK") and self.known(word):
            return True
        return any(start <= begin and end <= start + len(phrase)
                   for phrase in self.phrases for start in starts(phrase, text.text))

    @staticmethod
    def is_name(word):
        """Whether a word is a name of code, a version or an abbreviation rather than English."""
        return re.search(r"\d|[_./@$=+%]|[a-z][A-Z]|[A-Z]{2}", word.rstrip(".,:")) is not None

    def known(self, word):
        if word.startswith(ALL_NAMES) or word.endswith(ALL_NAMES):
            return True
        plain = word.replace("’", "'").removesuffix("'s").strip("'")
        return {plain, plain.lower()} & self.words or all(part in self.words for part in plain.lower().split("-"))


def starts(phrase, text):
    return [match.start() for match in re.finditer(re.escape(phrase), text, re.I)]


def finding(text, begin, end, rule, message):
    line = max(number for offset, number in text.lines if offset <= begin)
    context = text.text[max(0, begin - 50):begin] + "«" + text.text[begin:end] + "»" + text.text[end:end + 50]
    return text.file, line, rule, message, context


class Cache:
    """Hashes of texts without a finding, in a file for each version of the checker."""

    def __init__(self, inputs):
        version = hashlib.sha256(b"".join(Path(file).read_bytes() for file in sorted(map(str, inputs)))).hexdigest()
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        self.file = home / "unfuse" / "grammar" / version
        self.hashes = set(self.file.read_text().split()) if self.file.exists() else set()

    @staticmethod
    def key(text):
        return hashlib.sha256(f"{text.message} {text.text}".encode()).hexdigest()[:32]

    def knows(self, text):
        return self.key(text) in self.hashes

    def add(self, good):
        new = {self.key(text) for text in good} - self.hashes
        self.file.parent.mkdir(parents=True, exist_ok=True)
        for old in self.file.parent.iterdir():
            if time.time() - old.stat().st_mtime > 30 * 86400:
                old.unlink()
        with self.file.open("a") as file:
            file.writelines(key + "\n" for key in sorted(new))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
