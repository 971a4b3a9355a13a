//! The help lists every command, and clap accepts its examples.

use std::collections::BTreeSet;

use clap::Command as ClapCommand;
use clap::FromArgMatches;

use super::table::{Entry, GROUPS, NESTED};
use super::*;
use crate::Cli;

/// The names of a command's subcommands that are not hidden.
fn visible(command: &ClapCommand) -> BTreeSet<&str> {
    let all = command.get_subcommands();
    all.filter(|of| !of.is_hide_set() && of.get_name() != "help")
        .map(ClapCommand::get_name)
        .collect()
}

fn names(entries: &[Entry]) -> BTreeSet<&str> {
    entries.iter().map(|entry| entry.name).collect()
}

/// Parses a command line as a shell and clap do.
fn parse(line: &str) -> Result<Cli, clap::Error> {
    // A number replaces the command substitution in all examples.
    // The words after a pipe or `>` are not for unfuse.
    let line = line.replace("$(pgrep -o java)", "1");
    let line = line.strip_prefix("eval \"$(").unwrap_or(&line);
    let line = line.trim_end_matches(")\"");
    let ours = line.split(" | ").next().unwrap_or(line);
    let ours = ours.split(" > ").next().unwrap_or(ours);
    let words = shlex::split(ours).expect("quotes are closed");
    assert_eq!(words[0], "unfuse");
    let matches = command().try_get_matches_from(words)?;
    Cli::from_arg_matches(&matches)
}

#[test]
fn every_command_is_in_a_group() {
    let command = command();
    let listed: Vec<&str> = GROUPS
        .iter()
        .flat_map(|group| group.entries)
        .map(|entry| entry.name)
        .collect();
    let distinct: BTreeSet<&str> = listed.iter().copied().collect();
    assert_eq!(distinct.len(), listed.len(), "a command is there twice");
    assert_eq!(distinct, visible(&command));
    let nested: Vec<&ClapCommand> = command
        .get_subcommands()
        .filter(|of| !visible(of).is_empty())
        .collect();
    assert_eq!(nested.len(), NESTED.len());
    for parent in nested {
        let entries = NESTED.iter().find(|(name, _)| *name == parent.get_name());
        let (_, entries) = entries.expect("a command with commands");
        assert_eq!(names(entries), visible(parent));
    }
}

#[test]
fn every_example_is_accepted() {
    let groups = GROUPS.iter().flat_map(|group| group.entries);
    let nested = NESTED.iter().flat_map(|(_, entries)| *entries);
    let mut seen = BTreeSet::new();
    for entry in groups.chain(nested) {
        for example in entry.examples {
            assert!(example.contains(&format!(" {}", entry.name)), "{example}");
            if let Err(error) = parse(example) {
                panic!("{example}: {error}");
            }
            seen.insert(example);
        }
    }
    assert!(seen.len() > 40);
    assert!(parse("unfuse top prof --no-such-option").is_err());
}

#[test]
fn old_spellings_are_accepted_and_hidden() {
    for (old, new) in [
        ("run --out p -- java", "run --output p -- java"),
        ("record --pid 1 --out p", "record --pid 1 --output p"),
        ("record --pid 1 --for 7", "record --pid 1 --for 7s"),
        ("report p --out r", "report p --output r"),
        ("flame p --out f", "flame p --output f"),
        (
            "export p --format json --out f",
            "export p --format json --output f",
        ),
        ("blame p --out f --top 3", "blame p --output f --limit 3"),
        ("blame p --follow --every 9", "blame p --follow --every 9s"),
        ("blame p --victim 3", "blame p --query 3"),
        ("skew p --out f --top 3", "skew p --output f --limit 3"),
        ("impact t --out f --top 3", "impact t --output f --limit 3"),
        (
            "impact measure --out d -- true",
            "impact measure --output d -- true",
        ),
        ("size fit d --out f", "size fit d --output f"),
        (
            "size predict j --slots 1 --size 1024",
            "size predict j --slots 1 --input-size 1KB",
        ),
        (
            "size curve j --prices p --size 1GB --out f",
            "size curve j --prices p --input-size 1GB --output f",
        ),
        ("demo --out d", "demo --output d"),
    ] {
        let read = |line: &str| {
            let cli = parse(&format!("unfuse {line}"));
            format!(
                "{:?}",
                cli.unwrap_or_else(|error| panic!("{line}: {error}"))
            )
        };
        assert_eq!(read(old), read(new), "{old}");
    }
    assert!(parse("unfuse blame p --window -60..-30").is_ok());
    for hidden in ["--out <", "--top <", "--window", "--size <"] {
        for of in command().get_subcommands_mut() {
            let help = of.render_long_help().to_string();
            assert!(!help.contains(hidden), "{} shows {hidden}", of.get_name());
        }
    }
}

/// An option that several commands share has the same
/// meaning in all: the same short form, value and name.
#[test]
fn options_are_the_same_everywhere() {
    let command = command();
    let mut all: Vec<&ClapCommand> = command.get_subcommands().collect();
    let nested: Vec<&ClapCommand> = all.iter().flat_map(|of| of.get_subcommands()).collect();
    all.extend(nested);
    let expected = [
        ("output", Some('o'), &["FILE", "DIR"][..]),
        ("limit", None, &["N"][..]),
        ("query", None, &["N"][..]),
        ("stage", None, &["N"][..]),
        ("since", None, &["TIME"][..]),
        ("until", None, &["TIME"][..]),
        ("for", None, &["DURATION"][..]),
        ("every", None, &["DURATION"][..]),
        ("deadline", None, &["DURATION"][..]),
        ("keep-for", None, &["DURATION"][..]),
        ("keep", None, &["SIZE"][..]),
        ("input-size", None, &["SIZE"][..]),
    ];
    for (long, short, values) in expected {
        let options: Vec<_> = all
            .iter()
            .flat_map(|of| of.get_arguments())
            .filter(|option| option.get_long() == Some(long))
            .collect();
        assert!(!options.is_empty(), "--{long}");
        for option in options {
            assert_eq!(option.get_short(), short, "--{long}");
            let names = option.get_value_names().unwrap_or_default();
            assert!(
                names.iter().all(|name| values.contains(&name.as_str())),
                "--{long} {names:?}"
            );
        }
    }
    let short_o = all.iter().flat_map(|of| of.get_arguments());
    for option in short_o.filter(|option| option.get_short() == Some('o')) {
        assert_eq!(option.get_long(), Some("output"));
    }
}

#[test]
fn the_first_page_is_as_agreed() {
    insta::assert_snapshot!(command().render_help().to_string());
}

#[test]
fn clap_accepts_the_definition() {
    command().debug_assert();
}
