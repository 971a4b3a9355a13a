//! The shell's support for unfuse: completions, manual pages, a page in the browser.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

fn unfuse() -> Command {
    Command::new(env!("CARGO_BIN_EXE_unfuse"))
}

fn text(output: Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).expect("text")
}

/// The completions of bash for a command line, with the script of `unfuse completions bash`.
fn bash(line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let script = format!(
        r#"eval "$("$UNFUSE" completions bash)"
           COMP_WORDS=({line}); COMP_CWORD={last}
           [ -n "${{COMP_WORDS[{last}]-}}" ] || COMP_WORDS+=("")
           $(complete -p unfuse | sed 's/.*-F \([^ ]*\).*/\1/') unfuse "${{COMP_WORDS[{last}]}}" "{before}"
           printf '%s\n' "${{COMPREPLY[@]}}""#,
        last = words.len() - 1,
        before = words[words.len() - 2],
    );
    let output = Command::new("bash")
        .args(["--norc", "-c", &script])
        .env("UNFUSE", env!("CARGO_BIN_EXE_unfuse"))
        .output();
    let text = text(output.expect("bash runs"));
    text.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_options() {
    assert_eq!(bash("unfuse to"), ["top"]);
    assert_eq!(bash("unfuse re"), ["record", "resume", "report"]);
    assert_eq!(bash("unfuse size che"), ["cheapest"]);
    assert_eq!(bash("unfuse top --li"), ["--limit"]);
    assert_eq!(bash("unfuse top --kind off"), ["off-cpu"]);
    let all = bash("unfuse ");
    assert!(all.contains(&"doctor".to_owned()), "{all:?}");
    // Internal commands and old spellings are not offered.
    assert_eq!(bash("unfuse impact g"), [""]);
    assert_eq!(bash("unfuse run --out"), ["--output"]);
}

#[test]
fn zsh_and_fish_scripts_name_every_command() {
    for shell in ["zsh", "fish"] {
        let script = text(
            unfuse()
                .args(["completions", shell])
                .output()
                .expect("unfuse runs"),
        );
        for command in ["run", "blame", "completions", "--since"] {
            let command = command.trim_start_matches('-');
            assert!(script.contains(command), "{shell}: {command}");
        }
        // Only unfuse itself calls these.
        for hidden in ["guard", "within"] {
            assert!(!script.contains(hidden), "{shell}: {hidden}");
        }
    }
}

#[test]
fn manual_pages_are_without_errors() {
    let dir = tempfile::tempdir().expect("a directory");
    let pages = dir.path().join("man1");
    let output = unfuse()
        .arg("man")
        .arg(&pages)
        .output()
        .expect("unfuse runs");
    text(output);
    let mut files: Vec<_> = fs::read_dir(&pages)
        .expect("a directory")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    files.sort();
    let names: Vec<_> = files
        .iter()
        .filter_map(|file| file.file_name()?.to_str())
        .collect();
    for name in [
        "unfuse.1",
        "unfuse-top.1",
        "unfuse-size-fit.1",
        "unfuse-impact-measure.1",
    ] {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
    assert!(
        !names
            .iter()
            .any(|name| name.contains("guard") || name.contains("help")),
        "{names:?}"
    );
    for file in &files {
        let page = groff(file);
        for part in ["NAME", "SYNOPSIS", "DESCRIPTION"] {
            assert!(
                page.contains(part),
                "{}: no {part}:\n{page}",
                file.display()
            );
        }
    }
    let page = groff(&pages.join("unfuse-top.1"));
    for part in [
        "--limit",
        "--since",
        "EXAMPLES",
        "unfuse top unfuse-demo/profile --limit 10",
    ] {
        assert!(page.contains(part), "no {part}:\n{page}");
    }
    let printed = text(unfuse().arg("man").output().expect("unfuse runs"));
    assert_eq!(
        printed,
        fs::read_to_string(&files[names.iter().position(|n| *n == "unfuse.1").expect("a page")])
            .expect("a page")
    );
}

/// A page as a terminal shows it. groff must not print a warning.
fn groff(page: &Path) -> String {
    let output = Command::new("groff")
        .args(["-k", "-ww", "-man", "-Tutf8", "-P-c", "-P-b", "-P-u"])
        .arg(page)
        .output()
        .expect("groff runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success() && said.is_empty(),
        "{}: {said}",
        page.display()
    );
    String::from_utf8(output.stdout)
        .expect("text")
        .replace(['\u{2010}', '\u{2212}'], "-")
}

/// Runs `unfuse report --open` with an `xdg-open` that
/// returns this exit code and records its argument.
fn open(exit: i32) -> (String, String) {
    let dir = tempfile::tempdir().expect("a directory");
    let opener = dir.path().join("xdg-open");
    let got = dir.path().join("got");
    let script = format!(
        "#!/bin/sh\necho \"$1\" > '{}'\nexit {exit}\n",
        got.display()
    );
    fs::write(&opener, script).expect("a file");
    fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).expect("a file");
    let page = dir.path().join("page.html");
    let path = std::env::var("PATH").expect("a path");
    let output = unfuse()
        .args(["report", "--open", "-o"])
        .arg(&page)
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/fixtures/canonical"
        ))
        .env("PATH", format!("{}:{path}", dir.path().display()))
        .env_remove("SUDO_UID")
        .output()
        .expect("unfuse runs");
    assert!(output.status.success(), "{output:?}");
    assert!(page.exists());
    let opened = fs::read_to_string(&got).expect("xdg-open ran");
    assert_eq!(opened.trim(), page.display().to_string());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (said, page.display().to_string())
}

#[test]
fn a_page_is_opened_and_its_path_printed() {
    let (said, page) = open(0);
    assert!(
        said.contains(&format!("wrote {page}, and opened it")),
        "{said}"
    );
    let (said, page) = open(3);
    assert!(
        said.contains(&format!("wrote {page}, but could not open a browser")),
        "{said}"
    );
}
