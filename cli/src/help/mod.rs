//! The parts of `--help` that clap does not write: groups of commands, and examples.

mod table;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use clap::{Command, CommandFactory};

use table::{Entry, GROUPS, NESTED};

/// The command line of unfuse, with help.
pub fn command() -> Command {
    let mut command = crate::Cli::command();
    let template = template(&command);
    command = command.help_template(template);
    for entry in GROUPS.iter().flat_map(|group| group.entries) {
        command = command.mut_subcommand(entry.name, |of| with_examples(of, entry));
    }
    for (parent, entries) in NESTED {
        for entry in *entries {
            command = command.mut_subcommand(*parent, |of| {
                of.mut_subcommand(entry.name, |of| with_examples(of, entry))
            });
        }
    }
    command
}

/// The first page: the commands in groups, which clap does not support.
fn template(command: &Command) -> String {
    let names = GROUPS.iter().flat_map(|group| group.entries);
    let width = names.map(|entry| entry.name.len()).max().unwrap_or(0);
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for group in GROUPS {
        let _ = writeln!(text, "\n{}:", group.title);
        for entry in group.entries {
            let known = command.find_subcommand(entry.name);
            let about = known.and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {:width$}  {about}", entry.name);
        }
    }
    text.push_str("\nOptions:\n{options}\n");
    let _ = write!(
        text,
        "\nStart with `unfuse demo`, or profile a job of yours:\n  unfuse run -o prof -- spark-submit job.py\n  unfuse report \
         prof --open\n\n`unfuse COMMAND -h` shows the options of a command, `unfuse COMMAND --help` explains them."
    );
    text
}

fn with_examples(command: Command, entry: &Entry) -> Command {
    let mut text = command
        .get_after_help()
        .map(|text| format!("{text}\n"))
        .unwrap_or_default();
    text.push_str("Examples:\n");
    for example in entry.examples {
        let _ = writeln!(text, "  {example}");
    }
    command.after_help(text.trim_end().to_owned())
}
