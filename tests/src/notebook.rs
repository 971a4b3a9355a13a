//! Jupyter with the wheel, in an environment that has Spark too.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::python::{packages, python_environment};
use crate::{root, run, spark};

/// A Python environment with the wheel.
#[derive(Debug)]
pub struct Notebook {
    python: PathBuf,
    home: tempfile::TempDir,
}

impl Notebook {
    /// Makes the wheel of the built programs, and installs it.
    ///
    /// # Panics
    /// If that fails.
    pub fn with_wheel() -> Self {
        let jupyter = python_environment("notebook");
        let home = tempfile::tempdir().expect("a directory");
        let (wheels, venv) = (home.path().join("wheels"), home.path().join("venv"));
        fs::create_dir(&wheels).expect("a directory");
        run(Command::new(root().join("dist/wheel.sh"))
            .arg(root().join("target/release"))
            .arg(root().join("target/release/unfuse-spark.jar"))
            .arg(format!("manylinux_2_17_{}", std::env::consts::ARCH))
            .arg(&wheels)
            .arg(jupyter.join("bin/python")));
        let wheel = fs::read_dir(&wheels).expect("a directory").next();
        run(Command::new("python3")
            .args(["-m", "venv", "--without-pip"])
            .arg(&venv));
        let python = venv.join("bin/python");
        run(Command::new(jupyter.join("bin/python"))
            .args(["-m", "pip", "--python"])
            .arg(&python)
            .args(["install", "--quiet", "--no-index", "--no-deps"])
            .arg(wheel.expect("a wheel").expect("a name").path()));
        Self { python, home }
    }

    /// Where cells run.
    pub fn directory(&self) -> &Path {
        self.home.path()
    }

    /// Runs cells in one kernel; returns the outputs of each.
    ///
    /// # Panics
    /// If the kernel does not start or a cell takes more than five minutes.
    pub fn run(&self, cells: &[&str]) -> Vec<Value> {
        let spark = spark("4.3");
        let packages =
            [python_environment("notebook"), spark.join("venv")].map(|venv| packages(&venv));
        let mut child = Command::new(&self.python)
            .arg(root().join("tests/notebook/run.py"))
            .env("PYTHONPATH", std::env::join_paths(packages).expect("paths"))
            .env("PYSPARK_PYTHON", &self.python)
            .env("IPYTHONDIR", self.home.path().join("ipython"))
            .env_remove("SPARK_HOME")
            .current_dir(self.home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let cells = serde_json::to_vec(cells).expect("JSON");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(&cells).expect("Python reads");
        drop(stdin);
        let output = child.wait_with_output().expect("Python ends");
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
}
