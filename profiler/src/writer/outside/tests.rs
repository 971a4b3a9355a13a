use std::process::Command;
use std::time::Duration;

use super::home::{MOST_TEXT, group_path};
use super::*;

/// A child that ends with the test.
struct Hog(std::process::Child);

impl Drop for Hog {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn hog(script: &str) -> Hog {
    let child = Command::new("sh").args(["-c", script]).spawn();
    Hog(child.expect("sh"))
}

fn seen(command: &str, parent: u32, ticks: u64, waited_ticks: u64) -> Seen {
    Seen {
        stat: ProcessStat {
            command: command.to_owned(),
            parent,
            ticks,
            waited_ticks,
            started: 1,
            ..ProcessStat::default()
        },
        bytes: None,
        own_bytes: None,
        child: None,
        home: Some(Home {
            uid: 0,
            cgroup: None,
            container: None,
        }),
    }
}

fn scan(processes: Vec<(u32, Seen)>) -> Scan {
    Scan {
        processes: processes.into_iter().collect(),
        ..Scan::default()
    }
}

fn ticks(groups: &BTreeMap<Group, Used>) -> Vec<(Option<u32>, &str, u64)> {
    let groups = groups.iter();
    groups
        .map(|((java, command, _), used)| (*java, command.as_str(), used.ticks))
        .collect()
}

#[test]
fn the_line_of_a_process_may_hold_anything() {
    let rest = "S 7 1 1 0 -1 2097152 10 0 5 0 30 12 4 3 20 0 1 0 99 1000 25 0";
    let line = format!("42 (a) b (c)\n) {rest}");
    let stat = ProcessStat::parse(line.as_bytes()).unwrap();
    assert_eq!((stat.command.as_str(), stat.parent), ("a) b (c)\n", 7));
    assert_eq!((stat.ticks, stat.waited_ticks), (42, 7));
    assert_eq!((stat.started, stat.pages, stat.is_kernel), (99, 25, true));
    for odd in ["", "1", "1 (", "1 ()", "1 )( S", "1 (a) S 1 2", "1 (a) S x"] {
        assert_eq!(ProcessStat::parse(odd.as_bytes()), None, "{odd}");
    }
    let huge = rest.replace("30 12", "18446744073709551615 12");
    let stat = ProcessStat::parse(format!("1 (a) {huge}").as_bytes()).unwrap();
    assert_eq!(stat.ticks, u64::MAX);
}

#[test]
fn the_jvm_and_its_workers_are_not_outside() {
    let last = scan(vec![
        (10, seen("java", 1, 100, 0)),
        (11, seen("python3", 10, 100, 0)),
        (20, seen("java", 1, 100, 0)),
        (21, seen("python3", 20, 100, 0)),
        (30, seen("sh", 1, 100, 0)),
        (40, seen("unfuse-s-99", 1, 0, 0)),
        (41, seen("unfuse-writer", 1, 0, 0)),
    ]);
    let later = last.processes.iter().map(|(pid, before)| {
        let mut after = before.clone();
        after.stat.ticks += 5;
        (*pid, after)
    });
    let found = groups(10, None, &last, &mut scan(later.collect()));
    assert_eq!(
        ticks(&found),
        [
            (None, "sh", 5),
            (None, "unfuse", 10),
            (Some(20), "java", 5),
            (Some(20), "python3", 5)
        ]
    );
}

#[test]
fn the_time_of_ended_children_counts_once() {
    let last = scan(vec![
        (1, seen("init", 0, 0, 0)),
        (5, seen("make", 1, 10, 100)),
        (6, seen("cc1", 5, 40, 0)),
    ]);
    // cc1 used 20 more and ended; another one of 30 began and ended in between.
    let mut now = scan(vec![
        (1, seen("init", 0, 0, 0)),
        (5, seen("make", 1, 11, 100 + 60 + 30)),
    ]);
    assert_eq!(
        ticks(&groups(9, None, &last, &mut now)),
        [(None, "cc1", 50), (None, "make", 1)]
    );
    // The next one begins and ends between two scans: it gets the name of the last one.
    let mut later = scan(vec![(5, seen("make", 1, 12, 190 + 7))]);
    assert_eq!(
        ticks(&groups(9, None, &now, &mut later)),
        [(None, "cc1", 7), (None, "make", 1)]
    );
    // Its bytes become its parent's, which has moved 2 by itself.
    let mut last = last;
    let bytes = |scan: &mut Scan, pid, all, own| {
        let seen = scan.processes.get_mut(&pid).unwrap();
        (seen.bytes, seen.own_bytes) = (Some(all), own);
    };
    bytes(&mut last, 5, [100, 0], Some([10, 0]));
    bytes(&mut last, 6, [1000, 50], None);
    bytes(&mut now, 5, [100 + 1000 + 7, 50 + 3], Some([12, 0]));
    let moved = |last: &Scan, now: &mut Scan| -> Vec<_> {
        let found = groups(9, None, last, now).into_iter();
        found
            .map(|((_, name, _), used)| (name, used.bytes))
            .collect()
    };
    let (cc1, make) = ("cc1".to_owned(), "make".to_owned());
    assert_eq!(
        moved(&last, &mut now),
        [(cc1.clone(), Some([5, 3])), (make.clone(), Some([2, 0]))]
    );
    // What make moved by itself is not known: all is its own.
    bytes(&mut last, 5, [100, 0], None);
    assert_eq!(moved(&last, &mut now), [(cc1, None), (make, Some([7, 3]))]);
    // So does the time of children's children, if both have ended.
    let family = vec![
        (5, seen("bash", 1, 10, 0)),
        (6, seen("make", 5, 1, 100)),
        (7, seen("cc1", 6, 40, 0)),
    ];
    let mut after = scan(vec![(5, seen("bash", 1, 10, 1 + 100 + 40 + 2))]);
    assert_eq!(
        ticks(&groups(9, None, &scan(family), &mut after)),
        [(None, "make", 2)]
    );
    // A parent that does not wait for its children.
    let mut now = scan(vec![(5, seen("make", 1, 11, 100))]);
    assert_eq!(
        ticks(&groups(9, None, &last, &mut now)),
        [(None, "make", 1)]
    );
    // A loop of parents, which two readings at different times can show.
    let mut now = scan(vec![
        (5, seen("make", 6, 11, 100)),
        (6, seen("cc1", 5, 41, 0)),
    ]);
    assert_eq!(groups(9, None, &last, &mut now).len(), 2);
}

#[test]
fn few_groups_get_rows() {
    let used = |ticks| Used {
        ticks,
        ..Used::default()
    };
    let home = Home {
        uid: 0,
        cgroup: None,
        container: None,
    };
    let group = |name: usize| (None, format!("p{name:02}"), home.clone());
    let groups = (0..20).map(|name| (group(name), used(name as u64 * 10)));
    let chosen = largest(&groups.collect(), 2.0);
    let expected: HashSet<Group> = (15..20).map(group).collect();
    assert_eq!(chosen, expected);
    let groups = BTreeMap::from([(group(1), used(1000)), (group(2), used(19))]);
    assert_eq!(largest(&groups, 2.0), HashSet::from([group(1)]));
    let groups = BTreeMap::from([(group(1), used(1))]);
    assert!(largest(&groups, 2.0).is_empty());
}

#[test]
fn paths_of_control_groups() {
    for (text, expected) in [
        ("0::/\n", None),
        (
            "0::/system.slice/x.service\n",
            Some("/system.slice/x.service"),
        ),
        (
            "4:memory:/a/long/path\n1:cpu,cpuacct:/b\n0::/\n",
            Some("/b"),
        ),
        ("4:memory:/a\n3:pids:/a/b\n1:cpu:/\n", Some("/a/b")),
        ("nonsense\n:\n", None),
    ] {
        assert_eq!(group_path(text), expected, "{text}");
    }
    assert_eq!(shortened(&"ä".repeat(1000)).len(), MOST_TEXT);
}

#[test]
fn a_process_beside_this_one_is_named() {
    // Several of them, and several looks: only those are named that use most, and a build beside this test uses much.
    let hogs: [Hog; 4] = std::array::from_fn(|_| hog("while :; do :; done"));
    // This process counts as another JVM's neighbour, so its children are outside.
    let mut meter = OutsideMeter::new(u32::MAX, true);
    assert!(
        meter.look(EpochOffset::measure(), None).is_empty(),
        "too early"
    );
    let mut looks = (0..20).map(|_| {
        std::thread::sleep(Duration::from_millis(1500));
        let rows = meter.look(EpochOffset::measure(), None);
        rows.into_iter().find(|row| row.command == "sh")
    });
    let row = looks.find_map(|row| row).expect("they are named");
    assert!(row.cpu_s > 0.1 && row.processes >= 1, "{row:?}");
    assert!(row.end_ns - row.start_ns >= 1_000_000_000, "{row:?}");
    assert!(!row.user.is_empty());
    drop(hogs);
    // The meter of its parent does not count it.
    let mut meter = OutsideMeter::new(std::process::id(), true);
    let hog = self::hog("while :; do :; done");
    std::thread::sleep(Duration::from_millis(1200));
    let rows = meter.look(EpochOffset::measure(), None);
    assert!(meter.descendants().contains(&hog.0.id()));
    let own = std::process::id();
    assert!(rows.iter().all(|row| row.jvm != Some(own)), "{rows:?}");
}

#[test]
fn short_children_are_named_and_not_the_shell_that_starts_them() {
    // A file system in memory, as /tmp may be, counts no bytes.
    let program = std::env::current_exe().expect("a path");
    let dir = tempfile::tempdir_in(program.parent().expect("a directory")).expect("a directory");
    let file = dir.path().join("written");
    // Each writes 32 MiB and ends within a fraction of a second.
    let hog = hog(&format!(
        "while :; do dd if=/dev/zero of={} bs=1M count=32 2>/dev/null; done",
        file.display()
    ));
    let mut meter = OutsideMeter::new(u32::MAX, true);
    let mut look = || {
        std::thread::sleep(Duration::from_millis(1200));
        let rows = meter.look(EpochOffset::measure(), None);
        let written = |name: &str| -> u64 {
            let of_name = rows.iter().filter(|row| row.command == name);
            of_name.filter_map(|row| row.write_bytes).sum()
        };
        (written("dd"), written("sh"))
    };
    // Until a scan has seen one of them, their bytes are the shell's.
    assert!((0..20).any(|_| look().0 > 0), "no dd was seen");
    for _ in 0..3 {
        let (dd, sh) = look();
        assert!(dd > 0 && sh < dd / 10, "dd {dd}, sh {sh}");
    }
    drop(hog);
}
