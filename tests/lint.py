"""Checks of `make lint` beyond formatters and compilers; see lint.toml. They only read files and take a second.

Each check returns the faults that it finds. Before the sources, each gets a planted fault: a check that misses it is broken.
"""
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEPENDENCIES = {"dependencies": "src", "build-dependencies": "build.rs", "dev-dependencies": "src tests benches hostile"}
FUNCTION = re.compile(r'^( *)(?:pub(?:\([a-z: ]+\))? )?(?:const |async |unsafe |extern "[A-Za-z]+" )*fn (\w+)')


def files():
    """The tracked files, and new files that git does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return sorted(name for name in set(listed.stdout.split()) if (ROOT / name).is_file())


def is_test(name):
    return bool(re.search(r"(^|/)tests?(/|\.)|/generated/|^tests/", name))


def long_files(texts, most):
    """Files with more lines than they may have. Unit tests at the end of a file do not count."""
    for name, text in texts.items():
        lines = text.split("\n#[cfg(test)]\nmod ")[0].count("\n")
        if lines > most:
            yield f"{name} has {lines} lines; the limit is {most}. Move a part of it to a file of its own"


def long_functions(texts, most):
    """Functions with more lines than they may have, from the name to the closing brace, which rustfmt indents alike."""
    for name, text in texts.items():
        lines = text.split("\n")
        for start, line in enumerate(lines):
            found = FUNCTION.match(line)
            if not found:
                continue
            body = next((at for at in range(start, len(lines)) if lines[at].endswith(("{", "}", ";"))), start)
            if not lines[body].endswith("{"):
                continue
            end = next((at for at in range(body, len(lines)) if lines[at] == found[1] + "}"), start)
            if end - start + 1 > most:
                yield f"{name}:{start + 1}: fn {found[2]} has {end - start + 1} lines; the limit is {most}"


def unused_dependencies(manifest, accepted, read):
    """Dependencies that no source of the crate names. `read` returns the text of the sources in a folder."""
    crate = manifest["package"]["name"]
    for table, folders in DEPENDENCIES.items():
        for name in manifest.get(table, {}):
            text = "\n".join(read(folder) for folder in folders.split())
            is_named = re.search(rf"\b{name.replace('-', '_')}\b", text)
            if not is_named and name not in accepted.get(crate, {}):
                yield f"{crate}: {table} has {name}, which no file in {folders} names: remove it"


def duplicates(lock, accepted):
    """Crates in several versions that are not accepted, and accepted crates in only one version."""
    versions = defaultdict(set)
    for package in lock["package"]:
        versions[package["name"]].add(package["version"])
    several = {name for name, found in versions.items() if len(found) > 1}
    for name in sorted(several - set(accepted)):
        yield (
            f"Cargo.lock has {name} in versions {', '.join(sorted(versions[name]))}: use one, or add it with the reason to "
            "tests/lint.toml (`cargo tree --invert NAME@VERSION` says who needs it)"
        )
    for name in sorted(set(accepted) - several):
        yield f"tests/lint.toml accepts several versions of {name}, and there is one: remove the line"


def one_sided_properties(agent, jar):
    """System properties that only one of the agent and its jar names. The agent sets them and the jar reads them."""
    # unfuse.json is a file.
    named = [set(re.findall(r'"(unfuse\.(?!json")[a-z.]+)"', text)) for text in (agent, jar)]
    for name in sorted(named[0] ^ named[1]):
        yield f"the system property {name} is named only in {'the agent' if name in named[0] else 'the jar'}: correct its name, or remove it"


def try_checks():
    """Asserts that each check finds a planted fault, and reports nothing without a fault."""
    long = {"a.rs": "x\n" * 6 + "\n#[cfg(test)]\nmod tests {\n}\n"}
    assert list(long_files(long, 5)) and not list(long_files(long, 7))
    function = {"a.rs": "impl A {\n    pub(crate) fn of(\n        a: u8,\n    ) {\n        a;\n    }\n}\n"}
    assert list(long_functions(function, 4)) and not list(long_functions(function, 5))
    manifest = {"package": {"name": "a"}, "dependencies": {"is-used": "1", "is-not": "1"}}
    assert len(list(unused_dependencies(manifest, {}, lambda folder: "use is_used::A;"))) == 1
    assert not list(unused_dependencies(manifest, {"a": {"is-not": "why"}}, lambda folder: "use is_used::A;"))
    assert len(list(one_sided_properties('"unfuse.a" "unfuse.b"', '"unfuse.b" "unfuse.c.d"'))) == 2
    assert not list(one_sided_properties('"unfuse.a" "io.unfuse.b"', '"unfuse.a"'))
    lock = {"package": [{"name": "a", "version": "1"}, {"name": "a", "version": "2"}, {"name": "b", "version": "1"}]}
    assert len(list(duplicates(lock, {}))) == 1 and not list(duplicates(lock, {"a": "why"}))
    assert len(list(duplicates(lock, {"a": "why", "b": "why"}))) == 1


def main():
    try_checks()
    settings = tomllib.loads((ROOT / "tests/lint.toml").read_text())
    names = files()
    read = {}
    for name in names:
        if name.endswith((".rs", ".java", ".ts", ".tsx")):
            read[name] = (ROOT / name).read_text()
    shipped = {name: text for name, text in read.items() if not is_test(name)}
    rust = {name: text for name, text in read.items() if name.endswith(".rs")}
    faults = list(long_files(shipped, settings["most_lines"]["file"]))
    faults += long_functions(rust, settings["most_lines"]["function"])
    for name in names:
        if name.endswith("Cargo.toml") and name != "Cargo.toml":
            home = name.removesuffix("Cargo.toml")
            of = lambda folder, home=home: "\n".join(
                text for file, text in rust.items() if file == home + folder or file.startswith(f"{home}{folder}/")
            )
            manifest = tomllib.loads((ROOT / name).read_text())
            faults += unused_dependencies(manifest, settings["features"], of)
    jar = "".join(text for name, text in shipped.items() if name.startswith("spark-patches/"))
    faults += one_sided_properties(shipped["jvmti-agent/src/properties.rs"], jar)
    faults += duplicates(tomllib.loads((ROOT / "Cargo.lock").read_text()), settings["duplicates"])
    for fault in faults:
        print(fault, file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
