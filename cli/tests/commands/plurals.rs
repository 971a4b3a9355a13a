//! No recorded output has a plural after 1: `1 runs`, `1 bytes`.

use std::fs;
use std::path::Path;

/// Words that end in `s` in the singular, and units.
const SINGULAR: [&str; 5] = ["s", "ms", "ns", "process", "address"];

/// Plurals after a 1.
fn wrong(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_plural = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphabetic());
        word.len() > 1
            && word.ends_with('s')
            && word.chars().all(|c| c.is_ascii_lowercase())
            && !SINGULAR.contains(&word)
            && !word.ends_with("ss")
    };
    words
        .windows(2)
        .filter(|pair| pair[0] == "1" && is_plural(pair[1]))
        .map(|pair| pair.join(" "))
        .collect()
}

#[test]
fn plurals_behind_one_are_found() {
    assert_eq!(
        wrong("with 1 runs, 2 runs and 1 stages"),
        ["1 runs,", "1 stages"]
    );
    assert!(wrong("1 run, 1 s, 11 runs, 1 process").is_empty());
}

#[test]
fn no_snapshot_has_a_plural_behind_one() {
    let snapshots = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/commands/snapshots");
    let mut seen = 0;
    for file in fs::read_dir(snapshots).expect("snapshots").flatten() {
        let text = fs::read_to_string(file.path()).expect("text");
        // Only sentences are checked, because tables have columns of numbers beside words.
        let sentences = text.lines().filter(|line| !line.contains("   "));
        for line in sentences {
            assert_eq!(wrong(line), [""; 0], "{}: {line}", file.path().display());
        }
        seen += 1;
    }
    assert!(seen > 20);
}
