"""Tests that the checker finds planted errors and reports their places. `make grammar` runs it."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).parent
GOOD = "# A title\n\nThe writer copies a segment every five seconds.\n"


class Planted(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.TemporaryDirectory()
        self.root = Path(self.home.name) / "project"
        self.root.mkdir()
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        self.write("README.md", GOOD)

    def tearDown(self):
        self.home.cleanup()

    def write(self, name, text):
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def check(self):
        command = [sys.executable, HERE / "check.py", HERE / "target/classpath", HERE / "target/classes", self.root]
        environment = {**os.environ, "XDG_CACHE_HOME": self.home.name}
        run = subprocess.run(command, env=environment, capture_output=True, text=True)
        self.assertIn("texts", run.stderr)
        return run.returncode, run.stdout

    def test_errors_of_each_kind_of_file_fail(self):
        self.assertEqual(self.check(), (0, ""))
        planted = {
            "docs/page.md": ("Good text.\n\nThe writers copies a segment\nof the the profile.\n", 4, "ENGLISH_WORD_REPEAT_RULE"),
            "docs/percent.md": ("It takes 5 % of the time.\n", 1, "style"),
            "cli/src/help.rs": ("\n/// Show the operaters of a query.\nstruct Top;\n", 2, "MORFOLOGIK_RULE_EN_GB"),
            "a/src/text.rs": ('fn f() {\n  say("the runs of {} has no {} in it");\n}\n', 2, "NNS_IN_NNP_VBZ"),
            "a/src/Log.java": ('class Log {\n  String a = "the samples were put down to " + x() + " of the JVM";\n}\n', 2, "style"),
            "page/text.tsx": ("<p>\n  This are the {n} operators of <b>one</b> query.\n</p>\n", 2, "THIS_NNS"),
            "a/snap.snap": ("---\n---\nnote: 1 runs of this query were left out\n", 3, "style"),
        }
        for name, (text, _, _) in planted.items():
            self.write(name, text)
        code, found = self.check()
        self.assertEqual(code, 1)
        for name, (_, line, rule) in planted.items():
            self.assertRegex(found, rf"(?m)^{name}:{line}: {rule}:")


if __name__ == "__main__":
    unittest.main()
