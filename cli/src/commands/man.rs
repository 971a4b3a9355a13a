//! `unfuse man`: manual pages.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_mangen::Man as Page;

use crate::output::write_to;

/// Write manual pages
#[derive(Debug, Args)]
pub struct Man {
    /// Directory for a page of each command, such as ~/.local/share/man/man1 [default: print the page of unfuse]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Man {
    /// Prints or writes the pages.
    pub fn execute(self) -> Result<ExitCode> {
        let mut command = crate::help::command();
        command.build();
        let Some(dir) = &self.dir else {
            let page = render(&command)?;
            write_to(None, |out| Ok(out.write_all(&page)?))?;
            return Ok(ExitCode::SUCCESS);
        };
        std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        let mut written = 0;
        for command in documented(&command) {
            let page = render(command)?;
            let file = dir.join(format!("{}.1", name(command)));
            write_to(Some(&file), |out| Ok(out.write_all(&page)?))?;
            written += 1;
        }
        crate::say!(
            "unfuse: wrote {} to {}",
            unfuse_format::counted(written, "page"),
            dir.display()
        );
        Ok(ExitCode::SUCCESS)
    }
}

/// A command and all below it that have a page.
fn documented(command: &Command) -> Vec<&Command> {
    let mut all = vec![command];
    for below in command.get_subcommands() {
        if !below.is_hide_set() && below.get_name() != "help" {
            all.extend(documented(below));
        }
    }
    all
}

/// The name of a command's page, such as `unfuse-size-fit`.
fn name(command: &Command) -> String {
    command
        .get_display_name()
        .unwrap_or(command.get_name())
        .to_owned()
}

fn render(command: &Command) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let page = Page::new(command.clone()).title(name(command).to_uppercase());
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    if command.get_arguments().any(|option| !option.is_hide_set()) {
        page.render_options_section(&mut text)?;
    }
    if documented(command).len() > 1 {
        page.render_subcommands_section(&mut text)?;
    }
    let after = command.get_after_help().map(ToString::to_string);
    text.extend_from_slice(sections(&after.unwrap_or_default()).as_bytes());
    Ok(text)
}

/// The sections after the options, such as examples, line by line. clap_mangen itself would join the lines.
fn sections(text: &str) -> String {
    let mut roff = String::new();
    let mut is_open = false;
    for line in text.lines().filter(|line| !line.is_empty()) {
        match line.strip_suffix(':') {
            Some(heading) if !line.starts_with(' ') => {
                if is_open {
                    roff.push_str(".EE\n");
                }
                roff.push_str(&format!(".SH {}\n.EX\n", heading.to_uppercase()));
                is_open = true;
            }
            _ => {
                // The escape \& keeps the line from being a roff request.
                let line = line.replace('\\', "\\e").replace('-', "\\-");
                roff.push_str(&format!("\\&{line}\n"));
            }
        }
    }
    if is_open {
        roff.push_str(".EE\n");
    }
    roff
}
