//! Tables that all threads of a profile share.

use indexmap::IndexMap;

use super::message::{Category, Frames, Funcs, NativeSymbols, Resources, Shared, Sources, Stacks};
use crate::export::table::Table;
use crate::stacks::{FrameKind, Stack, StackFrame};

/// The profiler's colours for work, used by operators in turn. Grey is only for the first category.
const COLORS: [&str; 10] = [
    "blue",
    "orange",
    "green",
    "purple",
    "yellow",
    "lightblue",
    "magenta",
    "brown",
    "red",
    "lightred",
];

/// The category of work that no operator does.
const NO_OPERATOR: &str = "No operator";

#[derive(PartialEq, Eq, Hash)]
struct Func {
    name: usize,
    source: Option<usize>,
}

#[derive(PartialEq, Eq, Hash)]
struct Frame {
    func: usize,
    line: u32,
    /// Category and subcategory; the caller's where there is none.
    category: Option<(usize, usize)>,
}

/// Tables that grow with every stack.
pub(super) struct SharedTables {
    strings: Table<String>,
    /// File names, as indices of strings.
    sources: Table<usize>,
    funcs: Table<Func>,
    frames: Table<Frame>,
    /// Caller and frame.
    stacks: Table<(Option<usize>, usize)>,
    categories: IndexMap<String, Table<String>>,
}

impl SharedTables {
    pub(super) fn new() -> Self {
        let mut tables = Self {
            strings: Table::new(),
            sources: Table::new(),
            funcs: Table::new(),
            frames: Table::new(),
            stacks: Table::new(),
            categories: IndexMap::new(),
        };
        tables.category("Other", "Other");
        tables
    }

    /// The index of a stack; none for one without frames.
    pub(super) fn stack(&mut self, stack: Stack) -> Option<usize> {
        let mut caller = None;
        for frame in stack.frames {
            let frame = self.frame(&frame);
            caller = Some(self.stacks.index((caller, frame)));
        }
        caller
    }

    fn frame(&mut self, frame: &StackFrame) -> usize {
        let source = (!frame.file.is_empty()).then(|| {
            let name = self.strings.index(frame.file.to_owned());
            self.sources.index(name)
        });
        let name = self.strings.index(frame.name.to_string());
        let category = match frame.kind {
            FrameKind::Operator => Some(self.category(frame.operator, &frame.name)),
            FrameKind::Heading => Some(self.category(NO_OPERATOR, &frame.name)),
            _ => None,
        };
        let func = self.funcs.index(Func { name, source });
        self.frames.index(Frame {
            func,
            line: frame.line,
            category,
        })
    }

    fn category(&mut self, name: &str, subcategory: &str) -> (usize, usize) {
        let entry = self.categories.entry(name.to_owned());
        let position = entry.index();
        let subcategories = entry.or_insert_with(|| Table::starting_with("Other".to_owned()));
        (position, subcategories.index(subcategory.to_owned()))
    }

    pub(super) fn categories(&self) -> Vec<Category> {
        let colors = std::iter::once("grey").chain(COLORS.into_iter().cycle());
        self.categories
            .iter()
            .zip(colors)
            .map(|((name, subcategories), color)| Category {
                name: name.clone(),
                color,
                subcategories: subcategories.iter().cloned().collect(),
            })
            .collect()
    }

    pub(super) fn into_message(self) -> Shared {
        let sources: Vec<usize> = self.sources.into_values();
        let funcs: Vec<Func> = self.funcs.into_values();
        let frames: Vec<Frame> = self.frames.into_values();
        let stacks = self.stacks.into_values();
        Shared {
            string_array: self.strings.into_values(),
            sources: Sources {
                length: sources.len(),
                id: vec![None; sources.len()],
                start_line: vec![1; sources.len()],
                start_column: vec![1; sources.len()],
                source_map_url: vec![None; sources.len()],
                filename: sources,
            },
            func_table: Funcs {
                length: funcs.len(),
                name: funcs.iter().map(|func| func.name).collect(),
                is_js: vec![false; funcs.len()],
                relevant_for_js: vec![false; funcs.len()],
                resource: vec![-1; funcs.len()],
                source: funcs.iter().map(|func| func.source).collect(),
                line_number: vec![None; funcs.len()],
                column_number: vec![None; funcs.len()],
            },
            frame_table: Frames {
                length: frames.len(),
                address: vec![-1; frames.len()],
                inline_depth: vec![0; frames.len()],
                category: frames
                    .iter()
                    .map(|frame| frame.category.map(|c| c.0))
                    .collect(),
                subcategory: frames
                    .iter()
                    .map(|frame| frame.category.map(|c| c.1))
                    .collect(),
                func: frames.iter().map(|frame| frame.func).collect(),
                native_symbol: vec![None; frames.len()],
                inner_window_id: vec![None; frames.len()],
                line: frames
                    .iter()
                    .map(|frame| Some(frame.line).filter(|line| *line > 0))
                    .collect(),
                column: vec![None; frames.len()],
            },
            stack_table: Stacks {
                length: stacks.len(),
                prefix: stacks.iter().map(|(caller, _)| *caller).collect(),
                frame: stacks.iter().map(|(_, frame)| *frame).collect(),
            },
            resource_table: Resources::default(),
            native_symbols: NativeSymbols::default(),
        }
    }
}
