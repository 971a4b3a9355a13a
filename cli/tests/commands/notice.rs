//! NOTICE lists every crate that the programs contain, under its licence.

use std::collections::BTreeSet;
use std::process::Command;

/// Crates as `name version`, each with its licence.
type Crates = BTreeSet<(String, String)>;

/// The licences to choose from, sorted. Crates separate them by `OR` or `/`.
fn choices(licence: &str) -> String {
    let licence = licence.replace('/', " OR ");
    let choices: BTreeSet<&str> = licence.split(" OR ").map(str::trim).collect();
    choices.into_iter().collect::<Vec<_>>().join(" OR ")
}

/// The crates that cargo builds into the programs.
fn built() -> Crates {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline"])
        .args(["--target", "x86_64-unknown-linux-gnu"])
        .args(["-p", "unfuse-cli", "-p", "unfuse-agent"])
        .args(["-e", "normal,no-proc-macro", "--prefix", "none"])
        .args(["--format", "{p}|{l}"])
        .output()
        .expect("cargo runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    let lines = String::from_utf8(output.stdout).expect("text");
    let of_line = |line: &str| {
        let (package, licence) = line.split_once('|')?;
        let (name, version) = package.split_once(" v")?;
        let version = version.split_whitespace().next()?;
        // The project's own crates have a path.
        let ours = package.contains('(') && name.starts_with("unfuse");
        let licence = choices(licence.trim_end_matches(" (*)"));
        (!ours).then(|| (format!("{name} {version}"), licence))
    };
    lines.lines().filter_map(of_line).collect()
}

/// The crates that NOTICE lists in paragraphs that begin with a licence.
fn listed(notice: &str) -> Crates {
    let mut crates = Crates::new();
    let (_, crates_part) = notice
        .split_once("\nRust: crates by licence")
        .expect("a part on crates");
    for paragraph in crates_part.split("\n\n") {
        let mut lines = paragraph.lines();
        let licence = choices(lines.next().unwrap_or_default());
        for line in lines.filter(|line| line.starts_with("    ")) {
            let names = line
                .split(',')
                .map(str::trim)
                .filter(|name| !name.is_empty());
            let names = names.filter(|name| *name != "see above");
            crates.extend(names.map(|name| (name.to_owned(), licence.clone())));
        }
    }
    crates
}

#[test]
fn every_crate_is_listed_under_its_licence() {
    let notice = include_str!("../../../NOTICE");
    let (built, listed) = (built(), listed(notice));
    assert!(built.len() > 100, "{built:?}");
    let missing: Vec<_> = built.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&built).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "missing: {missing:?}; not built: {gone:?}"
    );
}
