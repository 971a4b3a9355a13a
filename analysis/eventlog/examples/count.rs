//! Counts a log's events by kind and prints the reading speed: `cargo run --release --example count -- LOG…`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use unfuse_eventlog::{Event, EventLog, EventLogError};

fn main() -> Result<(), EventLogError> {
    for path in std::env::args().skip(1) {
        let begun = Instant::now();
        let mut log = EventLog::open(Path::new(&path))?;
        let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
        for event in &mut log {
            *kinds.entry(kind(&event)).or_default() += 1;
        }
        let seconds = begun.elapsed().as_secs_f64();
        let mib = log.bytes() as f64 / f64::from(1 << 20);
        println!(
            "{path}: {mib:.1} MiB of text in {seconds:.2} s, {:.0} MiB/s",
            mib / seconds
        );
        for (kind, count) in kinds {
            println!("{count:>9}  {kind}");
        }
        for note in log.damage().notes() {
            println!("note: {note}");
        }
    }
    Ok(())
}

fn kind(event: &Event) -> String {
    match event {
        Event::LogStart(version) => format!("log of Spark {version}"),
        Event::TaskEnd(end) => format!("task end, {:?}", end.outcome),
        Event::TaskStart(task) if task.speculative => "task start, speculative".into(),
        other => {
            let text = format!("{other:?}");
            text.split(['(', ' ']).next().unwrap_or_default().to_owned()
        }
    }
}
