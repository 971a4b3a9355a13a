//! A request to a server, sent by `curl`, which knows proxies, certificates and HTTP.
//!
//! Other users can read the arguments of a process, so `curl` gets the address and the headers on its standard input.

use std::fmt::{self, Write as _};
use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use unfuse_files::read_given_text;

/// Bytes of a file of headers, of which a request has a few.
const MOST_HEADERS: u64 = 1 << 20;
/// Bytes of a server's answer that are read.
const MOST_ANSWER: u64 = 64 << 10;
/// Characters of it in a message.
const SHOWN: usize = 300;
/// Time for one request, s.
const LONGEST: &str = "60";

/// The address of a server, without a password: other users can read the arguments of a command. Its text has no
/// parameters, which may be secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Url(String);

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rest = text
            .strip_prefix("http://")
            .or_else(|| text.strip_prefix("https://"));
        let Some(rest) = rest.filter(|rest| !rest.chars().any(|c| c.is_control() || c == ' '))
        else {
            return Err(
                "an address such as http://collector:4318/v1development/profiles is expected"
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
    /// Whether Pyroscope takes profiles there.
    pub fn is_pyroscope(&self) -> bool {
        self.to_string().ends_with("/ingest")
    }

    /// The same with what Pyroscope's `/ingest` must know: the format of a profile and its time, s since the epoch.
    fn for_profile(&self, format: &str, [from, until]: [i64; 2]) -> String {
        if !self.is_pyroscope() {
            return self.0.clone();
        }
        let address = self.0.split('#').next().unwrap_or_default();
        let (path, given) = address.split_once('?').unwrap_or((address, ""));
        let mut parameters: Vec<String> = given
            .split('&')
            .filter(|parameter| !parameter.is_empty())
            .map(str::to_owned)
            .collect();
        for (name, value) in [
            ("name", "unfuse".to_owned()),
            ("format", format.to_owned()),
            ("from", from.to_string()),
            ("until", until.to_string()),
        ] {
            let is_given = |parameter: &String| parameter.split('=').next() == Some(name);
            if !parameters.iter().any(is_given) {
                parameters.push(format!("{name}={value}"));
            }
        }
        format!("{path}?{}", parameters.join("&"))
    }
}

/// How a server takes a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// As the body of the request, of this type.
    Bytes(&'static str),
    /// As a file of this name in a form.
    Form(&'static str),
}

/// A request that can be sent with several bodies.
pub(super) struct Request {
    url: Url,
    body: Body,
    headers: Vec<String>,
}

impl Request {
    /// Reads the headers.
    ///
    /// # Errors
    /// If the file cannot be read, or has a line that is no header.
    pub fn new(url: Url, body: Body, headers: Option<&Path>) -> Result<Self> {
        let headers = match headers {
            None => Vec::new(),
            Some(file) => {
                let text = read_given_text(file, MOST_HEADERS)
                    .with_context(|| format!("cannot read {}", file.display()))?;
                parse_headers(&text).with_context(|| file.display().to_string())?
            }
        };
        Ok(Self { url, body, headers })
    }

    /// Where it goes.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Sends a profile in this format, of this time (s since the epoch).
    ///
    /// # Errors
    /// If `curl` is missing or reaches no server, or if the server does not take it.
    pub fn send(&self, body: &[u8], format: &str, seconds: [i64; 2]) -> Result<()> {
        let scratch = tempfile::Builder::new()
            .permissions(Permissions::from_mode(0o700))
            .tempdir()
            .context("no temporary directory for the request")?;
        let body_file = scratch.path().join("body");
        fs::write(&body_file, body)
            .with_context(|| format!("cannot write {}", body_file.display()))?;
        let config = self.config(&body_file, format, seconds)?;
        // Without a file of settings: with sudo, it can be another user's.
        let mut curl = Command::new("curl")
            .args(["--disable", "--silent", "--show-error", "--globoff"])
            .args(["--proto", "=http,https", "--max-time", LONGEST])
            .args(["--write-out", "\n%{http_code}", "--config", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run curl, which sends the profile (Debian: apt-get install curl)")?;
        if let Some(mut input) = curl.stdin.take() {
            // If curl has ended already, its status and its message say why.
            let _ = input.write_all(config.as_bytes());
        }
        let mut answer = Vec::new();
        if let Some(output) = curl.stdout.take() {
            output.take(MOST_ANSWER).read_to_end(&mut answer)?;
        }
        let is_cut = answer.len() as u64 == MOST_ANSWER;
        if is_cut {
            // It may have ended by itself.
            let _ = curl.kill();
        }
        let output = curl.wait_with_output()?;
        if is_cut {
            bail!("{} answers with more than {MOST_ANSWER} bytes", self.url);
        }
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            bail!(
                "cannot send to {}: {} ({})",
                self.url,
                error.trim(),
                output.status
            );
        }
        let answer = String::from_utf8_lossy(&answer);
        let (text, code) = answer.rsplit_once('\n').unwrap_or(("", &answer));
        if !code.starts_with('2') {
            let text: String = text.trim().chars().take(SHOWN).collect();
            bail!("{} does not take it: status {code} {text}", self.url);
        }
        Ok(())
    }

    /// What `curl` reads on its standard input.
    fn config(&self, body: &Path, format: &str, seconds: [i64; 2]) -> Result<String> {
        let body = body
            .to_str()
            .context("the temporary directory has a name that is not UTF-8")?;
        let mut config = String::new();
        let mut option = |name: &str, value: &str| {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            let _ = writeln!(config, "{name} = \"{value}\"");
        };
        option("url", &self.url.for_profile(format, seconds));
        match self.body {
            Body::Bytes(of_type) => {
                option("header", &format!("Content-Type: {of_type}"));
                option("data-binary", &format!("@{body}"));
            }
            // Quoted, because a name of a directory can have a separator of the form.
            Body::Form(name) => option("form", &format!("{name}=@\"{body}\"")),
        }
        for header in &self.headers {
            option("header", header);
        }
        Ok(config)
    }
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
    fn pyroscope_gets_the_format_and_the_time() {
        let profile = |text| url(text).for_profile("pprof", [7, 9]);
        assert_eq!(
            profile("http://host/ingest"),
            "http://host/ingest?name=unfuse&format=pprof&from=7&until=9"
        );
        assert_eq!(
            profile("http://host/ingest?name=job{a=b}&from=1#x"),
            "http://host/ingest?name=job{a=b}&from=1&format=pprof&until=9"
        );
        assert_eq!(profile("http://host/v1?a=b"), "http://host/v1?a=b");
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
        let request = Request {
            url: url("http://host/\"\\"),
            body: Body::Form("profile"),
            headers: vec!["a: \"".to_owned()],
        };
        assert_eq!(
            request
                .config(Path::new("/tmp/body"), "pprof", [0, 0])
                .expect("UTF-8"),
            "url = \"http://host/\\\"\\\\\"\nform = \"profile=@\\\"/tmp/body\\\"\"\nheader = \"a: \\\"\"\n"
        );
    }
}
