//! Sums by operator as Prometheus metrics, in the text format 0.0.4.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use unfuse_format::SampleKind;

use crate::attribute::{Attributor, Owner};
use crate::plain::shorten;
use crate::profile::{Profile, Selection};

/// Most operators of an application; the others are one series, because each series costs a server memory.
const MOST: usize = 200;
/// Longest value of a label, characters.
const LONGEST: usize = 100;
/// The name of the rest.
const OTHERS: &str = "other";

/// Time of an application's operators, ns.
#[derive(Default)]
struct Sums<'a> {
    cpu: BTreeMap<String, u64>,
    /// By operator and reason.
    waits: BTreeMap<(String, &'a str), u64>,
    samples: u64,
}

/// Writes the CPU time and the waits of each operator's name, of the selection.
///
/// # Errors
/// Those of `out`.
pub fn prometheus(profile: &Profile, selection: Selection, out: &mut dyn Write) -> io::Result<()> {
    let mut apps: BTreeMap<&str, Sums<'_>> = BTreeMap::new();
    let mut attributor = Attributor::new(profile);
    for (group, weight) in profile.selected(selection) {
        let attribution = attributor.attribute(group);
        let operator = match &attribution.owner {
            Owner::Node(execution, node) => profile
                .plans
                .get(execution)
                .and_then(|plan| plan.nodes.get(*node))
                .map_or("", |node| node.operator.as_str()),
            Owner::Heading(heading) => heading,
        };
        let operator = shorten(operator, LONGEST);
        let sums = apps.entry(&group.app).or_default();
        let (sum, ns) = match group.kind {
            SampleKind::Cpu => {
                sums.samples = sums.samples.saturating_add(weight.samples);
                (sums.cpu.entry(operator).or_default(), weight.ns)
            }
            SampleKind::OffCpu => {
                let reason = profile.waiting(group).name();
                let key = (operator, reason);
                (sums.waits.entry(key).or_default(), weight.ns)
            }
        };
        *sum = sum.saturating_add(ns);
    }
    for sums in apps.values_mut() {
        sums.keep_largest();
    }
    let mut family = |name: &str, help: &str, rows: Vec<(String, f64)>| {
        writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge")?;
        rows.into_iter()
            .try_for_each(|(labels, value)| writeln!(out, "{name}{{{labels}}} {value}"))
    };
    let seconds = |ns: &u64| *ns as f64 / 1e9;
    let all = || apps.iter();
    let cpu = all().flat_map(|(app, sums)| {
        let rows = sums.cpu.iter();
        rows.map(|(name, ns)| (labels(&[("app", app), ("operator", name)]), seconds(ns)))
    });
    family(
        "unfuse_cpu_seconds",
        "CPU time in the profile by operator, or by heading for work of no operator.",
        cpu.collect(),
    )?;
    let waits = all().flat_map(|(app, sums)| {
        let rows = sums.waits.iter();
        rows.map(|((name, reason), ns)| {
            let named = [("app", *app), ("operator", name), ("reason", reason)];
            (labels(&named), seconds(ns))
        })
    });
    family(
        "unfuse_wait_seconds",
        "Time that threads waited in the profile, by operator and reason.",
        waits.collect(),
    )?;
    let samples = all().map(|(app, sums)| (labels(&[("app", app)]), sums.samples as f64));
    family(
        "unfuse_samples",
        "CPU samples in the profile.",
        samples.collect(),
    )
}

impl Sums<'_> {
    /// Merges all but the largest operators.
    fn keep_largest(&mut self) {
        let mut sizes: BTreeMap<String, u64> = self.cpu.clone();
        for ((name, _), ns) in &self.waits {
            let size = sizes.entry(name.clone()).or_default();
            *size = size.saturating_add(*ns);
        }
        let mut sizes: Vec<(u64, String)> =
            sizes.into_iter().map(|(name, ns)| (ns, name)).collect();
        sizes.sort_by(|a, b| b.cmp(a));
        let kept: BTreeSet<String> = sizes.into_iter().take(MOST).map(|(_, name)| name).collect();
        let name_of = |name: String| {
            if kept.contains(&name) {
                name
            } else {
                OTHERS.to_owned()
            }
        };
        for (name, ns) in std::mem::take(&mut self.cpu) {
            let sum = self.cpu.entry(name_of(name)).or_default();
            *sum = sum.saturating_add(ns);
        }
        for ((name, reason), ns) in std::mem::take(&mut self.waits) {
            let sum = self.waits.entry((name_of(name), reason)).or_default();
            *sum = sum.saturating_add(ns);
        }
    }
}

/// Labels as the format wants them: backslashes, quotes and line ends are escaped.
fn labels(named: &[(&str, &str)]) -> String {
    let labels = named.iter().map(|(name, value)| {
        let value = value
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        format!("{name}=\"{value}\"")
    });
    labels.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_cannot_end_early() {
        let text = labels(&[("a", "x\"} 1\ny\\"), ("b", "")]);
        assert_eq!(text, "a=\"x\\\"} 1\\ny\\\\\",b=\"\"");
    }

    #[test]
    fn small_operators_are_one_series() {
        let mut sums = Sums::default();
        for number in 0..MOST as u64 + 50 {
            sums.cpu.insert(format!("op{number}"), number + 1);
        }
        sums.waits.insert(("op0".to_owned(), "disk read"), 7);
        sums.waits
            .insert(("never on a CPU".to_owned(), "disk read"), 5);
        let all: u64 = sums.cpu.values().sum();
        sums.keep_largest();
        assert_eq!(sums.cpu.len(), MOST + 1);
        assert_eq!(sums.cpu.values().sum::<u64>(), all);
        assert_eq!(sums.waits.get(&(OTHERS.to_owned(), "disk read")), Some(&12));
    }
}
