//! A network namespace with a slow link to this machine, as another host has.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{run, with_command};

/// A network namespace. Its only link carries a limited rate of data towards it. Dropping it removes it.
#[derive(Debug)]
pub struct SlowNetwork {
    namespace: String,
    address: String,
}

impl SlowNetwork {
    /// Makes one whose link carries this many megabits a second.
    ///
    /// # Panics
    /// If that fails; it needs root, and `ip` and `tc`.
    pub fn with_megabits(megabits: u32) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let id = std::process::id();
        let network = format!("10.{}.{}", 100 + id / 256 % 100, id % 256);
        let link = 4 * (number % 64);
        let slow = Self {
            namespace: format!("unfuse-{id}-{number}"),
            address: format!("{network}.{}", link + 1),
        };
        let (here, there) = (format!("u{id}h{number}"), format!("u{id}n{number}"));
        let Self { namespace, address } = &slow;
        for line in [
            format!("ip netns add {namespace}"),
            format!("ip link add {here} type veth peer name {there} netns {namespace}"),
            format!("ip addr add {address}/30 dev {here}"),
            format!("ip link set {here} up"),
            format!(
                "ip -n {namespace} addr add {network}.{}/30 dev {there}",
                link + 2
            ),
            format!("ip -n {namespace} link set {there} up"),
            format!("ip -n {namespace} link set lo up"),
            format!(
                "tc qdisc add dev {here} root tbf rate {megabits}mbit burst 256k latency 100ms"
            ),
        ] {
            let mut words = line.split(' ');
            run(Command::new(words.next().expect("a program")).args(words));
        }
        slow
    }

    /// The address of this machine, as the namespace sees it.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The same command in it.
    pub fn command(&self, command: &Command) -> Command {
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &self.namespace]);
        with_command(&mut inside, command);
        inside
    }
}

impl Drop for SlowNetwork {
    fn drop(&mut self) {
        // The link goes with it.
        let _ = Command::new("ip")
            .args(["netns", "del", &self.namespace])
            .status();
    }
}
