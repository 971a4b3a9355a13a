"""Extracts the texts that people read from documents and sources: `texts(root)` yields one `Text` per paragraph."""

import ast
import re
import subprocess
from collections import namedtuple
from pathlib import Path

# `lines` holds pairs of an offset in `text` and the line of the file that begins there.
Text = namedtuple("Text", "file lines text message")

# Replacements for inline code and values: two in turn, so that the checker finds no repeated word.
NAMES = ("Foo", "Bar")
# The same for code that begins with a vowel, so that "an" before it is correct.
VOWEL_NAMES = ("Ada", "Eve")
# Replacements for code within a message, which differ from those for the value beside it.
CODE_NAMES = ("Baz", "Qux")
ALL_NAMES = NAMES + VOWEL_NAMES + CODE_NAMES

FILES = ["*.md", "*.rs", "*.java", "*.ts", "*.tsx", "*.snap", "analysis/provenance/src/spark/*.py", "postprocess/rules/*.toml", "report/rules/*.toml"]
# The doc comments below this folder are help texts.
HELP = "cli/src/"
# Tests, files that are generated from checked texts, and the page that lists the wrong words.
LEFT_OUT = re.compile(r"(^|/)(tests|test|fixtures|generated)/|/tests?\.rs$|build\.rs$|^docs/(style\.md|results/)")


def texts(root):
    for file in listed(root):
        if LEFT_OUT.search(file) and not file.endswith(".snap"):
            continue
        content = (Path(root) / file).read_text(encoding="utf-8")
        yield from READERS[Path(file).suffix](file, content)


def listed(root):
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *FILES]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    return sorted({file for file in found if file and (Path(root) / file).is_file()})


class Paragraph:
    """Collects the lines of one text."""

    def __init__(self, file, message=False):
        self.file, self.message, self.parts = file, message, []

    def add(self, line, text):
        text = " ".join(text.split())
        if text:
            self.parts.append((line, text))

    def take(self):
        parts, self.parts = self.parts, []
        text, lines = "", []
        for line, part in parts:
            text += " " if text else ""
            lines.append((len(text), line))
            text += part
        if re.search(r"[A-Za-z]{2,} [A-Za-z]{2,}", text):
            yield Text(self.file, lines, text, self.message)


class Names:
    def __init__(self, names=NAMES):
        self.names, self.count = names, 0

    def __call__(self, match=None):
        self.count += 1
        vowel = match is not None and re.match(r"`*[aeio]", match.group(0), re.I)
        return (VOWEL_NAMES if vowel else self.names)[self.count % 2]


def markdown(file, content):
    """Paragraphs, list items, headings and cells; no code, no figures, no output."""
    content = re.sub(r"<!--figures.*?<!--/figures-->|<!--made.*?-->", blank_lines, content, flags=re.S)
    content = re.sub(r"<!-- made by.*?<!-- until here -->", blank_lines, content, flags=re.S)
    content = re.sub(r"<!--.*?-->", blank_lines, content, flags=re.S)
    content = re.sub(r"^```.*?^```", blank_lines, content, flags=re.S | re.M)
    content = inline(content)
    paragraph = Paragraph(file)
    for number, line in enumerate(content.split("\n"), 1):
        plain = line.strip()
        if plain.startswith("|"):
            yield from paragraph.take()
            for cell in plain.strip("|").split("|"):
                paragraph.add(number, cell)
                yield from paragraph.take()
            continue
        item = re.match(r"(\s*)([*-]|\d+\.) +", line)
        if not plain or item or plain.startswith(("#", ">")):
            yield from paragraph.take()
        paragraph.add(number, plain[len(item.group(0).strip()):] if item else plain.lstrip("#>"))
        if plain.startswith("#"):
            yield from paragraph.take()
    yield from paragraph.take()


def inline(text):
    """Removes Markdown's inline marks and replaces code by names."""
    names = Names()
    text = re.sub(r"`+[^`]+`+", lambda code: names(code) + blank_lines(code), text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)\s]*\)", r"\1", text)
    text = re.sub(r"\[([^\]]*)\]\[[^\]]*\]", r"\1", text)
    text = re.sub(r"https?://\S+", lambda _: names(), text)
    text = re.sub(r"(?<![\w*])(\*{1,2}|_)(?=\S)(.+?)(?<=\S)\1(?![\w*])", r"\2", text, flags=re.S)
    return text.replace("\\", "")


def blank_lines(match):
    return "\n" * match.group(0).count("\n")


STRING = {
    ".rs": re.compile(
        r'(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<char>b?\'(?:\\[^\n]{1,8}?|[^\\\n])\')'
        r'|(?P<raw>b?r(?P<hash>#*)"(?P<rawbody>.*?)"(?P=hash))|b?"(?P<body>(?:\\.|[^"\\])*)"',
        re.S,
    ),
    ".java": re.compile(
        r'(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<char>\'(?:\\[^\n]{1,6}?|[^\\\n])\')'
        r'|"""(?P<rawbody>.*?)"""|"(?P<body>(?:\\.|[^"\\\n])*)"',
        re.S,
    ),
    ".ts": re.compile(
        r'(?P<comment>(?<![:\w])//[^\n]*|/\*.*?\*/)|`(?P<rawbody>(?:\\.|[^`\\])*)`'
        r'|"(?P<body>(?:\\.|[^"\\\n])*)"',
        re.S,
    ),
}
CONCATENATED = re.compile(r'\s*(?P<value>\+(?:[^;,{}"()]|\((?:[^()"]|\([^()"]*\))*\))*?\+|\+)\s*')


def strings(file, content):
    """String literals with prose. Names replace `{…}` and concatenated values."""
    suffix = Path(file).suffix
    if suffix == ".rs":
        content = re.sub(r"#\[cfg\(test\)\]\s*mod \w+ \{.*\Z", "", content, flags=re.S)
    paragraph = Paragraph(file, message=True)
    names, end, text, line = Names(), None, "", 0

    def finish():
        for part in re.split(r"\n\s*\n|\n(?=[ \t*#-])", text):
            if prose(part) and not part.lstrip().startswith("|") and not re.search(r"\S {2,}\S", part):
                paragraph.add(line, without_code(part))
                yield from paragraph.take()

    for literal in STRING[suffix].finditer(content):
        body = literal.groupdict().get("rawbody") or literal.group("body")
        if body is None:
            continue
        if literal.group("body") is not None:
            body = unescape(body)
        body = body.replace("{{", "(").replace("}}", ")")
        body = re.sub(r"\$?\{[^{}]*\}(%)?|%[sd]", lambda hole: "5%" if hole.group(1) else names(), body)
        joined = CONCATENATED.fullmatch(content, end, literal.start()) if end is not None and suffix != ".rs" else None
        if joined:
            text += (names() if len(joined.group("value")) > 1 else "") + body
        else:
            yield from finish()
            text, line = body, content.count("\n", 0, literal.start()) + 1
        end = literal.end()
    yield from finish()


def unescape(body):
    body = re.sub(r"\\\n\s*", "", body)
    body = re.sub(r"\\u\{?([0-9a-fA-F]{2,6})\}?|\\x([0-9a-fA-F]{2})", lambda m: chr(int(m.group(1) or m.group(2), 16)), body)
    return body.replace("\\n", "\n").replace("\\t", " ").replace('\\"', '"').replace("\\", "")


# Code within a message: quoted code, options, KEY=VALUE, paths, names with dots.
CODE = re.compile(r"`[^`]*`|(?<!\S)-{1,2}[A-Za-z][\w-]*(=\S+)?|[\w.]+=[^\s,;:)]*|(?<![\w/])[\w.:*…]*/[\w./*…-]+|\b[a-z]\w*(?:\.[a-z]\w*)+")
PROGRAM = re.compile(
    r"::|\[\]|=>|[{}<>|]|\(\)|==|&&|;\s*$|;\n|\w\([\w, ]*\)|\b(SELECT|CREATE|MATCH) |\bselect \w|^\s*[-/]|^unfuse [a-z]|L\w+/|\w\[\w+\]|\w#|\binstanceof\b"
)


def without_code(text):
    return CODE.sub(Names(CODE_NAMES), text)


def prose(text):
    """Whether a string is text for people: it consists mostly of words and contains no code."""
    text = without_code(text)
    if PROGRAM.search(text):
        return False
    words = [word for word in re.findall(r"(?<![\w-])[A-Za-z][a-z']*(?![\w-])", text) if word not in ALL_NAMES]
    return len(words) >= 3 and sum(map(len, words)) > len(text) / 3


def rust(file, content):
    yield from strings(file, content)
    if file.startswith(HELP):
        yield from doc_comments(file, content)


def doc_comments(file, content):
    """Doc comments of arguments and commands, which clap shows as help."""
    kept, names, found = Paragraph(file, message=True), Names(), []
    for number, line in enumerate(content.split("\n"), 1):
        comment = re.match(r"\s*///(.*)", line)
        if comment:
            if not comment.group(1).strip():
                found += kept.take()
            kept.add(number, inline_code(comment.group(1), names))
            continue
        found += kept.take()
        if not re.match(r"\s*#\[", line):
            # Doc comments of functions and constants are not help texts.
            if not re.match(r"\s*(pub(\([^)]*\))? )?(async |const )?(fn|const|static|type|mod|trait|impl)\b", line):
                yield from found
            found = []


def inline_code(text, names):
    text = re.sub(r"`[^`]+`", names, text)
    return re.sub(r"\[([^\]]*)\]", r"\1", text)


def page(file, content):
    """String literals, and the text between tags."""
    yield from strings(file, content.replace("\\`", "'"))
    if not file.endswith(".tsx"):
        return
    names = Names()
    paragraph = Paragraph(file, message=True)
    plain = re.sub(r"</?(b|em|i|strong|code|a|span)\b[^<>]*>", blank_lines, content)
    for found in re.finditer(r"(?<![=])>((?:[^<>{};]|\{[^{}<>]*\})+)<", plain):
        line = plain.count("\n", 0, found.end(1) - len(found.group(1).lstrip())) + 1
        text = re.sub(r'\{" "\}', " ", found.group(1))
        text = re.sub(r"\{[^{}]*\}", names, text)
        text = text.replace("&nbsp;", " ")
        if prose(text):
            paragraph.add(line, text)
            yield from paragraph.take()


def python(file, content):
    paragraph = Paragraph(file, message=True)
    names = Names()
    tree = ast.parse(content)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in docstrings:
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(v.value if isinstance(v, ast.Constant) else names() for v in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if prose(text):
            paragraph.add(node.lineno, text)
            yield from paragraph.take()


def snapshot(file, content):
    """Lines of the output that are sentences: no tables, no JSON."""
    paragraph = Paragraph(file, message=True)
    for number, line in enumerate(content.split("\n"), 1):
        if not line.startswith(("source:", "expression:", "---")) and sentence(line):
            paragraph.add(number, without_code(line))
        else:
            yield from paragraph.take()
    yield from paragraph.take()


def sentence(line):
    return "  " not in line.strip() and "|" not in line and prose(line) and len(line.split()) > 4


def toml(file, content):
    paragraph = Paragraph(file, message=True)
    for found in re.finditer(r'^\w+ = "((?:\\.|[^"\\\n])*)"', content, flags=re.M):
        if prose(found.group(1)):
            paragraph.add(content.count("\n", 0, found.start()) + 1, found.group(1))
            yield from paragraph.take()


READERS = {
    ".md": markdown,
    ".rs": rust,
    ".java": strings,
    ".ts": lambda file, content: page(file, content),
    ".tsx": lambda file, content: page(file, content),
    ".py": python,
    ".snap": snapshot,
    ".toml": toml,
}
STRING[".tsx"] = STRING[".ts"]
