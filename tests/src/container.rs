//! A control group with limits, as a container has.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use unfuse_machine::cgroup::ControlGroup;

use crate::with_command;

/// A control group with a CPU limit. It goes away when its last process has ended.
#[derive(Debug)]
pub struct Container(Vec<PathBuf>);

impl Container {
    /// Makes one.
    ///
    /// # Panics
    /// If that fails; it needs root.
    pub fn with_cpus(cpus: f64) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("unfuse-test-{}-{number}", std::process::id());
        let group = ControlGroup::find(&name).expect("control groups");
        let container = Self(group.dirs());
        for dir in &container.0 {
            fs::create_dir(dir).expect("a control group, which needs root");
        }
        for setting in group.cpus(cpus) {
            setting.apply().expect("a limit");
        }
        container
    }

    /// Prefers it to all others: programs beside it do not keep it below its limit.
    ///
    /// # Panics
    /// If the kernel refuses the weight.
    #[must_use]
    pub fn preferred(self) -> Self {
        for (file, most) in [("cpu.shares", "262144"), ("cpu.weight", "10000")] {
            let weights = self.0.iter().map(|dir| dir.join(file));
            for weight in weights.filter(|weight| weight.exists()) {
                fs::write(weight, most).expect("a weight");
            }
        }
        self
    }

    /// The same command in it.
    pub fn command(&self, command: &Command) -> Command {
        let enter = "while [ \"$1\" != -- ]; do echo $$ > \"$1/cgroup.procs\" || exit 1; shift; done; shift; exec \"$@\"";
        let mut inside = Command::new("sh");
        inside.args(["-c", enter, "sh"]).args(&self.0).arg("--");
        with_command(&mut inside, command);
        inside
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        for dir in &self.0 {
            // It is busy until its last process is gone.
            for _ in 0..300 {
                if !dir.exists() || fs::remove_dir(dir).is_ok() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}
