//! A server of Spark that answers on a port.

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{free_port, wait_for};

/// A running server; ended on drop.
#[derive(Debug)]
pub struct Server {
    process: Child,
    port: u16,
    log: PathBuf,
}

impl Server {
    /// Starts a server by `spark-submit`, with further arguments that depend on its port, and waits until it answers.
    ///
    /// # Panics
    /// If it does not.
    pub fn start(
        mut submit: Command,
        arguments: impl FnOnce(u16) -> [String; 3],
        dir: &Path,
    ) -> Self {
        let (port, log) = (free_port(), dir.join("server.log"));
        let file = File::create(&log).expect("a file");
        let process = submit
            .args(arguments(port))
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a descriptor"))
            .stderr(file)
            .spawn()
            .expect("spark-submit starts");
        let mut server = Self { process, port, log };
        wait_for("the server", || {
            let ended = server.process.try_wait().expect("a status");
            assert!(ended.is_none(), "{}", server.log());
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        server
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What it has printed.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Ends it as its user would, and returns what it has printed.
    ///
    /// # Panics
    /// If it does not end, or not by this signal.
    pub fn end(mut self) -> String {
        self.terminate();
        let status = self.process.try_wait().expect("a status");
        // The JVM's code for SIGTERM.
        let code = status.and_then(|status| status.code());
        assert_eq!(code, Some(143), "{}", self.log());
        self.log()
    }

    fn terminate(&mut self) {
        if !matches!(self.process.try_wait(), Ok(None)) {
            return;
        }
        let _ = Command::new("kill")
            .arg(self.process.id().to_string())
            .status();
        let until = Instant::now() + Duration::from_secs(60);
        while Instant::now() < until && matches!(self.process.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.terminate();
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
