//! Queues events: any thread adds one without waiting, and a thread of ours sends them.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use nix::sys::signal::SigSet;

/// Maximum number of queued bytes; more are dropped and counted.
const MOST_BYTES: usize = 64 << 20;
/// Maximum number of queued events.
const MOST_EVENTS: usize = 1 << 16;
/// How long the first of many events waits for the others: waking the sending thread costs the adding thread more than
/// the event itself.
const GATHER: Duration = Duration::from_millis(5);
/// Minimum number of bytes sent at once, while more are queued.
const BATCH: usize = 256 << 10;

/// The queue.
pub(crate) struct EventQueue {
    sender: SyncSender<Vec<u8>>,
    backlog: std::sync::Arc<Backlog>,
    receiver: std::sync::Mutex<Option<Receiver<Vec<u8>>>>,
}

/// The amount queued.
#[derive(Default)]
struct Backlog {
    bytes: AtomicUsize,
    events: AtomicU64,
    broken: AtomicBool,
}

impl EventQueue {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = sync_channel(MOST_EVENTS);
        Self {
            sender,
            backlog: std::sync::Arc::default(),
            receiver: std::sync::Mutex::new(Some(receiver)),
        }
    }

    /// Starts the sending thread (once). Signals stay with the JVM's threads.
    pub(crate) fn start(&self, to: &UnixStream) {
        let receiver = self.receiver.lock().ok().and_then(|mut r| r.take());
        let (Some(receiver), Ok(to)) = (receiver, to.try_clone()) else {
            return;
        };
        let backlog = self.backlog.clone();
        let before = SigSet::all().thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_SETMASK);
        let spawned = std::thread::Builder::new()
            .name("unfuse-events".to_owned())
            .spawn(move || send_all(&receiver, to, &backlog));
        if let Ok(mask) = before {
            let _ = mask.thread_set_mask();
        }
        if spawned.is_err() {
            self.backlog.broken.store(true, Ordering::Relaxed);
        }
    }

    /// Adds an event; false if there was no space. Never waits.
    pub(crate) fn push(&self, event: Vec<u8>) -> bool {
        let bytes = event.len();
        if self.backlog.broken.load(Ordering::Relaxed)
            || self.backlog.bytes.load(Ordering::Relaxed) + bytes > MOST_BYTES
        {
            return false;
        }
        self.backlog.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.backlog.events.fetch_add(1, Ordering::AcqRel);
        let sent = self.sender.try_send(event).is_ok();
        if !sent {
            self.backlog.bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.backlog.events.fetch_sub(1, Ordering::AcqRel);
        }
        sent
    }

    /// Waits until all events are sent, at most `patience`.
    pub(crate) fn flush(&self, patience: Duration) {
        let until = Instant::now() + patience;
        while self.backlog.events.load(Ordering::Acquire) > 0
            && !self.backlog.broken.load(Ordering::Relaxed)
            && Instant::now() < until
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn send_all(receiver: &Receiver<Vec<u8>>, mut to: UnixStream, backlog: &Backlog) {
    let mut batch = Vec::new();
    while let Ok(first) = receiver.recv() {
        std::thread::sleep(GATHER);
        let (mut bytes, mut events) = (0, 0);
        batch.clear();
        for event in std::iter::once(first).chain(receiver.try_iter()) {
            batch.extend_from_slice(&(event.len() as u32).to_ne_bytes());
            batch.extend_from_slice(&event);
            bytes += event.len();
            events += 1;
            if batch.len() >= BATCH {
                break;
            }
        }
        // A blocking write, on a thread that nobody waits for. It fails when the writer is gone (Rust sends with
        // MSG_NOSIGNAL, so there is no SIGPIPE).
        if to.write_all(&batch).is_err() {
            backlog.broken.store(true, Ordering::Relaxed);
            return;
        }
        batch.shrink_to(2 * BATCH);
        backlog.bytes.fetch_sub(bytes, Ordering::Relaxed);
        backlog.events.fetch_sub(events, Ordering::AcqRel);
    }
}
