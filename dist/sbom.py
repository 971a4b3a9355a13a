#!/usr/bin/env python3
"""Prints a CycloneDX list of the Rust crates in a release, from Cargo.lock. Usage: dist/sbom.py VERSION MACHINE…"""
import json
import subprocess
import sys


def metadata(machines):
    """Cargo's metadata of the crates for the platforms of the release."""
    platforms = [f"--filter-platform={machine}-unknown-linux-gnu" for machine in machines]
    command = ["cargo", "metadata", "--format-version", "1", "--locked", *platforms]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def linked(known, roots):
    """Ids of the roots and all their normal dependencies, without those of build scripts and tests."""
    nodes = {node["id"]: node for node in known["resolve"]["nodes"]}
    seen, left = set(), list(roots)
    while left:
        package = left.pop()
        if package not in seen:
            seen.add(package)
            for needed in nodes[package]["deps"]:
                if any(kind["kind"] is None for kind in needed["dep_kinds"]):
                    left.append(needed["pkg"])
    return seen


def component(package):
    """A crate as CycloneDX describes it."""
    return {
        "type": "library",
        "name": package["name"],
        "version": package["version"],
        "purl": f"pkg:cargo/{package['name']}@{package['version']}",
        "licenses": [{"expression": package["license"]}] if package["license"] else [],
    }


def main(version, *machines):
    known = metadata(machines)
    packages = {package["id"]: package for package in known["packages"]}
    roots = [key for key, package in packages.items() if package["name"] in ("unfuse-cli", "unfuse-agent")]
    crates = [packages[key] for key in linked(known, roots) if packages[key]["source"]]
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "unfuse", "version": version}},
        "components": [component(crate) for crate in sorted(crates, key=lambda crate: (crate["name"], crate["version"]))],
    }
    print(json.dumps(bom, indent=1))


main(*sys.argv[1:])
