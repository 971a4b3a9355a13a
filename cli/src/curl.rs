//! Requests by `curl`, which knows proxies, certificates and HTTP.
//!
//! Other users can read the arguments of a process, so `curl` gets the address and the headers on its standard input.

use std::fmt::{self, Write as _};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use unfuse_files::read_given_text;

/// Bytes of a file of headers, of which a request has a few.
const MOST_HEADERS: u64 = 1 << 20;
/// Time for one request, s.
const LONGEST: &str = "60";
/// Characters of an answer in a message.
const SHOWN: usize = 300;

/// The address of a server, without a password: other users can read the arguments of a command. Its text has no
/// parameters, which may be secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url(String);

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rest = text
            .strip_prefix("http://")
            .or_else(|| text.strip_prefix("https://"));
        let Some(rest) = rest.filter(|rest| !rest.chars().any(|c| c.is_control() || c == ' '))
        else {
            return Err(
                "an address such as http://collector:4318/v1development/profiles or https://trino.example.com is expected"
                    .to_owned(),
            );
        };
        if rest
            .split('?')
            .next()
            .is_some_and(|place| place.contains('@'))
        {
            return Err(
                "other users can read a password in the arguments of a command; put the header `Authorization: …` into a file and \
                 give it with --headers"
                    .to_owned(),
            );
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Url {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.0.split(['?', '#']).next().unwrap_or_default())
    }
}

impl Url {
    /// The whole address, with parameters.
    pub fn whole(&self) -> &str {
        &self.0
    }

    /// The address of a path below this one, which has no parameters.
    pub fn below(&self, path: &str) -> Self {
        Self(format!("{}/{path}", self.to_string().trim_end_matches('/')))
    }
}

/// The options of one request.
#[derive(Debug, Default)]
pub struct Options(String);

impl Options {
    /// Those of a request to an address with these headers.
    pub fn new(address: &str, headers: &[String]) -> Self {
        let mut options = Self::default();
        options.add("url", address);
        for header in headers {
            options.add("header", header);
        }
        options
    }

    /// Adds an option, whatever is in its value.
    pub fn add(&mut self, name: &str, value: &str) {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"");
        let _ = writeln!(self.0, "{name} = \"{value}\"");
    }
}

/// Sends a request, and returns the answer, of at most `most` bytes.
///
/// # Errors
/// If `curl` is missing or reaches no server, if the answer is longer, and if its status is not one of success.
pub fn ask(url: &Url, options: &Options, most: u64) -> Result<String> {
    // Without a file of settings: with sudo, it can be another user's.
    let mut curl = Command::new("curl")
        .args(["--disable", "--silent", "--show-error", "--globoff"])
        .args(["--proto", "=http,https", "--max-time", LONGEST])
        .args(["--write-out", "\n%{http_code}", "--config", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run curl, which sends requests (Debian: apt-get install curl)")?;
    if let Some(mut input) = curl.stdin.take() {
        // If curl has ended already, its status and its message say why.
        let _ = input.write_all(options.0.as_bytes());
    }
    let mut answer = Vec::new();
    if let Some(output) = curl.stdout.take() {
        output.take(most).read_to_end(&mut answer)?;
    }
    let is_cut = answer.len() as u64 == most;
    if is_cut {
        // It may have ended by itself.
        let _ = curl.kill();
    }
    let output = curl.wait_with_output()?;
    if is_cut {
        bail!("{url} answers with more than {most} bytes");
    }
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("cannot reach {url}: {} ({})", error.trim(), output.status);
    }
    let answer = String::from_utf8_lossy(&answer);
    let (text, code) = answer.rsplit_once('\n').unwrap_or(("", &answer));
    if !code.starts_with('2') {
        let text: String = text.trim().chars().take(SHOWN).collect();
        bail!("{url} refuses the request: status {code} {text}");
    }
    Ok(text.to_owned())
}

/// Headers of a file, if there is one.
///
/// # Errors
/// If it cannot be read, or has a line that is no header.
pub fn read_headers(file: Option<&Path>) -> Result<Vec<String>> {
    let Some(file) = file else {
        return Ok(Vec::new());
    };
    let text = read_given_text(file, MOST_HEADERS)
        .with_context(|| format!("cannot read {}", file.display()))?;
    parse_headers(&text).with_context(|| file.display().to_string())
}

/// Headers, one on each line. Empty lines and those that begin with `#` are left out.
fn parse_headers(text: &str) -> Result<Vec<String>> {
    let lines = text
        .lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line.trim()));
    let mut headers = Vec::new();
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let is_name = |name: &str| {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        };
        let is_header = line.split_once(':').is_some_and(|(name, _)| is_name(name));
        // The line itself may be a secret.
        ensure!(
            is_header && !line.chars().any(char::is_control),
            "line {number} is not a header such as `Authorization: Bearer …`"
        );
        headers.push(line.to_owned());
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().expect("an address")
    }

    #[test]
    fn an_address_has_no_password_and_is_shown_without_parameters() {
        for (given, shown) in [
            ("http://collector:4318/v1", "http://collector:4318/v1"),
            ("https://host/a?token=b#c", "https://host/a"),
            ("http://host?name=a@b", "http://host"),
        ] {
            assert_eq!(url(given).to_string(), shown);
        }
        for wrong in [
            "collector:4318",
            "file:///etc/passwd",
            "http://a b",
            "http://a\nurl = b",
            "https://me:pa/ss@host",
        ] {
            let error = wrong.parse::<Url>().expect_err(wrong);
            assert!(!error.contains("pa/ss"), "{error}");
        }
    }

    #[test]
    fn a_header_has_a_name_and_one_line() {
        let headers =
            parse_headers("# of the team\n\nAuthorization: Bearer a\\\"b\nX-Scope-OrgID:7\n");
        assert_eq!(
            headers.expect("headers"),
            ["Authorization: Bearer a\\\"b", "X-Scope-OrgID:7"]
        );
        for wrong in ["a", ": b", "a b: c", "a: \u{1}"] {
            let error = parse_headers(wrong).expect_err(wrong).to_string();
            assert!(error.starts_with("line 1 "), "{error}");
        }
    }

    #[test]
    fn values_cannot_end_their_option() {
        let mut options = Options::new("http://host/\"\\", &["a: \"".to_owned()]);
        options.add("form", "profile=@\"/tmp/body\"");
        assert_eq!(
            options.0,
            "url = \"http://host/\\\"\\\\\"\nheader = \"a: \\\"\"\nform = \"profile=@\\\"/tmp/body\\\"\"\n"
        );
    }

    #[test]
    fn a_path_is_below_an_address() {
        for given in [
            "http://host:8080",
            "http://host:8080/",
            "http://host:8080?a=b",
        ] {
            assert_eq!(
                url(given).below("v1/query").whole(),
                "http://host:8080/v1/query"
            );
        }
    }
}
