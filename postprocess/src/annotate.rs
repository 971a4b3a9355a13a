//! Generated source with the samples of each line (the thesis's appendix B), and the lines of Python files with samples.

use std::collections::{BTreeMap, HashMap};

use unfuse_format::{ExecutionId, FormatError};

use crate::generated::generated_hash;
use crate::plan::Plan;
use crate::profile::{Profile, Selection, Weight};
use crate::python::python_line;
use crate::regions::RegionKind;

/// One line of a source.
#[derive(Debug, Clone, PartialEq)]
pub struct AnnotatedLine {
    /// Line number, from 1.
    pub number: u32,
    /// Samples in this line and in the code outside generated code that it called.
    pub weight: Weight,
    /// The operator of the line's region, with `+` for producing and `<` for consuming; in a Python file the function.
    pub operator: Option<String>,
    /// The text.
    pub text: String,
}

/// A generated source, or a Python file.
#[derive(Debug, Clone, PartialEq)]
pub struct AnnotatedSource {
    /// Its hash; empty for a Python file.
    pub hash: String,
    /// The generated class, or the path of the Python file.
    pub class: String,
    /// Executions that ran it, in the selection.
    pub queries: Vec<i64>,
    /// Samples in all lines.
    pub weight: Weight,
    /// Samples of the whole selection.
    pub of: Weight,
    /// The lines; of a Python file those with samples.
    pub lines: Vec<AnnotatedLine>,
}

/// Every generated source with samples in the selection, most samples first. A sample counts at the line of its
/// innermost generated frame.
pub fn annotated(
    profile: &Profile,
    selection: Selection,
) -> Result<Vec<AnnotatedSource>, FormatError> {
    let mut all = Weight::default();
    let mut hot: BTreeMap<&str, HashMap<u32, Weight>> = BTreeMap::new();
    let mut runs: BTreeMap<&str, Vec<ExecutionId>> = BTreeMap::new();
    for (group, weight) in profile.selected(selection) {
        all.add(weight);
        let Some(frames) = profile.stacks.get(&group.stack) else {
            continue;
        };
        let innermost = frames
            .iter()
            .rev()
            .find_map(|frame| Some((generated_hash(&frame.file)?, frame.line)));
        if let Some((hash, line)) = innermost {
            hot.entry(hash)
                .or_default()
                .entry(line)
                .or_default()
                .add(weight);
            if let Some(query) = group.query {
                runs.entry(hash)
                    .or_default()
                    .push(ExecutionId::new(&*group.app, query));
            }
        }
    }
    let mut sources = Vec::new();
    for (hash, lines) in hot {
        let Some(text) = profile.source(hash)? else {
            continue;
        };
        let mut executions = runs.remove(hash).unwrap_or_default();
        executions.sort();
        executions.dedup();
        sources.push(source(profile, hash, &text, &lines, &executions, all));
    }
    sources.extend(python_files(profile, selection, all));
    sources.sort_by_key(|source| std::cmp::Reverse(source.weight.value));
    Ok(sources)
}

/// Every Python file with samples in the selection. A sample counts at the line that says best where the worker was.
fn python_files(profile: &Profile, selection: Selection, of: Weight) -> Vec<AnnotatedSource> {
    let mut files: BTreeMap<&str, AnnotatedSource> = BTreeMap::new();
    let mut places: HashMap<(&str, u32), usize> = HashMap::new();
    for (group, weight) in profile.selected(selection) {
        let frames = profile.stacks.get(&group.stack).map_or(&[][..], |f| f);
        let Some(frame) = python_line(frames).map(|at| &frames[at]) else {
            continue;
        };
        let file = files.entry(&frame.file).or_insert_with(|| AnnotatedSource {
            hash: String::new(),
            class: frame.file.clone(),
            queries: Vec::new(),
            weight: Weight::default(),
            of,
            lines: Vec::new(),
        });
        file.weight.add(weight);
        file.queries.extend(group.query);
        let place = *places.entry((&frame.file, frame.line)).or_insert_with(|| {
            file.lines.push(AnnotatedLine {
                number: frame.line,
                weight: Weight::default(),
                operator: Some(frame.method.clone()),
                text: frame.signature.clone(),
            });
            file.lines.len() - 1
        });
        file.lines[place].weight.add(weight);
    }
    let mut files: Vec<AnnotatedSource> = files.into_values().collect();
    for file in &mut files {
        file.lines.sort_by_key(|line| line.number);
        file.queries.sort_unstable();
        file.queries.dedup();
    }
    files
}

fn source(
    profile: &Profile,
    hash: &str,
    text: &str,
    hot: &HashMap<u32, Weight>,
    executions: &[ExecutionId],
    of: Weight,
) -> AnnotatedSource {
    let nodes = executions.iter().find_map(|execution| {
        let nodes = profile.generated.get(execution)?.get(hash)?;
        Some((profile.plans.get(execution)?, nodes.as_slice()))
    });
    let mut weight = Weight::default();
    let lines = (1..)
        .zip(text.lines())
        .map(|(number, text)| {
            let own = hot.get(&number).copied().unwrap_or_default();
            weight.add(own);
            let operator = operator(profile, hash, number, nodes);
            AnnotatedLine {
                number,
                weight: own,
                operator,
                text: text.to_owned(),
            }
        })
        .collect();
    let mut queries: Vec<i64> = executions.iter().map(|id| id.execution).collect();
    queries.dedup();
    let class = profile.classes.get(hash).cloned().unwrap_or_default();
    AnnotatedSource {
        hash: hash.to_owned(),
        class,
        queries,
        weight,
        of,
        lines,
    }
}

fn operator(
    profile: &Profile,
    hash: &str,
    line: u32,
    nodes: Option<(&Plan, &[usize])>,
) -> Option<String> {
    let region = profile.regions.get(hash)?.innermost(line)?;
    let (plan, nodes) = nodes?;
    let node = &plan.nodes[*nodes.get(region.id as usize)?];
    let sign = match region.kind {
        RegionKind::Produce => '+',
        RegionKind::Consume => '<',
    };
    Some(format!("{sign}{}", node.operator))
}
