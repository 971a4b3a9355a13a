//! A request that sends a profile to a server.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};

use crate::curl::{self, Options, Url, read_headers};

/// Bytes of a server's answer that are read.
const MOST_ANSWER: u64 = 64 << 10;

/// Whether Pyroscope takes profiles at an address.
pub(super) fn is_pyroscope(url: &Url) -> bool {
    url.to_string().ends_with("/ingest")
}

/// An address with what Pyroscope's `/ingest` must know: the format of a profile and its time, s since the epoch.
fn for_profile(url: &Url, format: &str, [from, until]: [i64; 2]) -> String {
    if !is_pyroscope(url) {
        return url.whole().to_owned();
    }
    let address = url.whole().split('#').next().unwrap_or_default();
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
        Ok(Self {
            headers: read_headers(headers)?,
            url,
            body,
        })
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
        let body_file = body_file
            .to_str()
            .context("the temporary directory has a name that is not UTF-8")?;
        let address = for_profile(&self.url, format, seconds);
        let mut options = Options::new(&address, &self.headers);
        match self.body {
            Body::Bytes(of_type) => {
                options.add("header", &format!("Content-Type: {of_type}"));
                options.add("data-binary", &format!("@{body_file}"));
            }
            // Quoted, because a name of a directory can have a separator of the form.
            Body::Form(name) => options.add("form", &format!("{name}=@\"{body_file}\"")),
        }
        curl::ask(&self.url, &options, MOST_ANSWER).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().expect("an address")
    }

    #[test]
    fn pyroscope_gets_the_format_and_the_time() {
        let profile = |text| for_profile(&url(text), "pprof", [7, 9]);
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
}
