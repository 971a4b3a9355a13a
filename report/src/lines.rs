//! The lines of code in which operators' own CPU time was sampled.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use unfuse_format::{Frame, StackId};
use unfuse_postprocess::{
    Attribution, Owner, Profile, generated_hash, is_python, method_name, python_file, python_line,
};

use crate::model::{Cost, HotLine};
use crate::text::shorten;

/// Number of lines kept for an operator.
const MOST: usize = 3;
/// Number of characters kept of a line.
const LONGEST: usize = 120;

/// A line of generated code, by hash, or a line of another class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Place<'a> {
    Generated(&'a str, u32),
    /// Class, method, file and line; the line is 0 if unknown.
    Class(&'a str, &'a str, &'a str, u32),
    /// Function, file, line and its text in a Python worker.
    Python(&'a str, &'a str, u32, &'a str),
}

/// Samples in a line, and in the methods that it calls.
#[derive(Debug, Default)]
struct Line<'a> {
    cost: Cost,
    /// By class and method, or by file and function.
    callees: HashMap<(&'a str, &'a str), (&'a Frame, u64), ahash::RandomState>,
}

/// The lines of an operator.
type Lines<'a> = HashMap<Place<'a>, Line<'a>, ahash::RandomState>;

/// The lines of each operator of a query.
#[derive(Debug, Default)]
pub(super) struct NodeLines<'a>(HashMap<usize, Lines<'a>, ahash::RandomState>);

impl<'a> NodeLines<'a> {
    /// Adds samples at the line of Python that says best what a worker did; in the JVM at the innermost line of generated
    /// code that belongs to their operator. Without one, at the innermost line of Java, if possible outside libraries.
    pub(super) fn add(
        &mut self,
        profile: &'a Profile,
        stack: StackId,
        attribution: &Attribution,
        cost: Cost,
    ) {
        let Owner::Node(_, node) = attribution.owner else {
            return;
        };
        let frames = profile.stacks.get(&stack).map_or(&[][..], Vec::as_slice);
        let begin = attribution.begins.last().map_or(0, |(index, _)| *index);
        let own = frames.get(begin..).unwrap_or_default();
        let is_java = |frame: &&Arc<Frame>| !frame.class.is_empty();
        let last = |wanted: &dyn Fn(&Arc<Frame>) -> bool| own.iter().rposition(wanted);
        let position = python_line(own)
            .or_else(|| last(&|frame| generated_hash(&frame.file).is_some()))
            .or_else(|| last(&|frame| is_java(&frame) && !is_library(&frame.class)))
            .or_else(|| last(&|frame| is_java(&frame)));
        let Some(position) = position else { return };
        let line = self.0.entry(node).or_default();
        let line = line.entry(place(&own[position])).or_default();
        line.cost.add(cost);
        let is_code = |frame: &&Arc<Frame>| is_java(frame) || is_python(frame);
        if let Some(callee) = own[position + 1..].iter().rev().find(is_code) {
            let of = match is_python(callee) {
                true => &callee.file,
                false => &callee.class,
            };
            let key = (of.as_str(), callee.method.as_str());
            let (_, ns) = line.callees.entry(key).or_insert((callee, 0));
            *ns = ns.saturating_add(cost.cpu_ns);
        }
    }

    /// The lines of an operator with the most CPU time, each with at least `least` ns.
    pub(super) fn hottest(&self, node: usize, least: u64, texts: &LineTexts) -> Vec<HotLine> {
        let lines = self.0.get(&node).into_iter().flatten();
        let lines = lines.filter(|(_, line)| line.cost.cpu_ns >= least);
        let mut lines: Vec<_> = lines.collect();
        lines.sort_by_key(|(place, line)| (Reverse(line.cost.cpu_ns), **place));
        let lines = lines.into_iter().take(MOST);
        lines
            .map(|(place, line)| hot_line(*place, line, texts))
            .collect()
    }
}

/// Classes that any code can call: their callers are more specific.
fn is_library(class: &str) -> bool {
    let libraries = ["java.", "jdk.", "sun.", "scala."];
    libraries.iter().any(|begin| class.starts_with(begin))
}

fn place(frame: &Frame) -> Place<'_> {
    if is_python(frame) {
        return Place::Python(&frame.method, &frame.file, frame.line, &frame.signature);
    }
    match generated_hash(&frame.file) {
        Some(hash) => Place::Generated(hash, frame.line),
        None => Place::Class(&frame.class, &frame.method, &frame.file, frame.line),
    }
}

fn hot_line(place: Place<'_>, line: &Line<'_>, texts: &LineTexts) -> HotLine {
    let callee = line
        .callees
        .iter()
        .max_by_key(|(name, (_, ns))| (*ns, Reverse(**name)));
    // If the line itself has most of the time, its callees do not matter.
    let callee = callee.filter(|(_, (_, ns))| *ns > line.cost.cpu_ns / 2);
    let simple = |class: &str| class.rsplit('.').next().unwrap_or(class).to_owned();
    let (hash, place, number, text) = match place {
        Place::Generated(hash, line) => {
            let text = texts.text(hash, line).to_owned();
            (Some(hash), format!("generated.java:{line}"), line, text)
        }
        Place::Class(class, method, file, line) => {
            let place = match line {
                0 => simple(class),
                line => format!("{file}:{line}"),
            };
            let method = format!("{}.{method}", simple(class));
            (None, place, line, shorten(&method, LONGEST))
        }
        Place::Python(function, file, line, text) => {
            let place = format!("{}:{line} {function}", python_file(file));
            let text = match text {
                "" => function,
                text => text,
            };
            (None, place, line, shorten(text, LONGEST))
        }
    };
    HotLine {
        text,
        hash: hash.map(str::to_owned),
        place: shorten(&place, LONGEST),
        line: number,
        callee: callee.map(|(_, (frame, _))| shorten(&callee_name(frame), LONGEST)),
        cost: line.cost,
    }
}

/// The name of a method, or of a Python function with its file.
fn callee_name(frame: &Frame) -> String {
    match is_python(frame) {
        true => format!("{} of {}", frame.method, python_file(&frame.file)),
        false => method_name(frame),
    }
}

/// Texts of the lines of generated code with samples.
#[derive(Debug, Default)]
pub(super) struct LineTexts(BTreeMap<String, BTreeMap<u32, String>>);

impl LineTexts {
    /// The texts of all lines with samples in a profile.
    pub(super) fn from_profile(profile: &Profile) -> Self {
        let frames = profile.stacks.values().flatten();
        let lines = frames.filter_map(|frame| Some((generated_hash(&frame.file)?, frame.line)));
        Self::read(profile, lines)
    }

    /// The texts of some lines.
    pub(super) fn from_lines<'a>(
        profile: &Profile,
        lines: impl Iterator<Item = &'a HotLine>,
    ) -> Self {
        let line = |line: &'a HotLine| Some((line.hash.as_deref()?, line.line));
        Self::read(profile, lines.filter_map(line))
    }

    /// Sources that cannot be read have no lines.
    fn read<'a>(profile: &Profile, lines: impl Iterator<Item = (&'a str, u32)>) -> Self {
        let mut wanted: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
        for (hash, line) in lines {
            wanted.entry(hash).or_default().insert(line);
        }
        let lines = |(hash, wanted): (&str, BTreeSet<u32>)| {
            let text = profile.source(hash).ok().flatten().unwrap_or_default();
            let lines = (1..).zip(text.lines());
            let lines = lines.filter(|(number, _)| wanted.contains(number));
            let lines = lines.map(|(number, line)| (number, shorten(line, LONGEST)));
            (hash.to_owned(), lines.collect())
        };
        Self(wanted.into_iter().map(lines).collect())
    }

    /// The text of a line; empty if unknown.
    pub(super) fn text(&self, hash: &str, line: u32) -> &str {
        let lines = self.0.get(hash);
        lines
            .and_then(|lines| lines.get(&line))
            .map_or("", String::as_str)
    }
}
