//! Operator regions of a generated source.
//!
//! `/* BeginCodeRegion(CONSUME_7) */ … /* EndCodeRegion(CONSUME_7) */` brackets the code that operator 7
//! wrote to consume a row; regions nest as producing and consuming code does.

use std::sync::LazyLock;

use regex::Regex;

use crate::helpers;

static MARKER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"/\* (Begin|End)CodeRegion\((PRODUCE|CONSUME)_(\d{1,9})\) \*/")
        .expect("a constant pattern")
});

/// Regions nested deeper are not kept: no plan nests so deep, and every line keeps its own.
const DEEPEST: usize = 1024;

/// What the code of a region does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegionKind {
    /// Pushes rows into the pipeline.
    Produce,
    /// Takes a row from its child.
    Consume,
}

/// A region: an operator, by its pre-order position in the codegen stage, and what it does there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// Produce or consume.
    pub kind: RegionKind,
    /// The operator's region id.
    pub id: i32,
}

/// The region stack of every line of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegionMap {
    lines: Vec<Vec<Region>>,
}

impl RegionMap {
    /// Parses a source. An end without a beginning is ignored; a beginning without an end lasts as
    /// long as the region around it. Helpers outside all regions are in those of their callers.
    pub fn parse(source: &str) -> Self {
        let mut open: Vec<Region> = Vec::new();
        let mut lines: Vec<_> = source
            .lines()
            .map(|line| line_regions(line, &mut open))
            .collect();
        helpers::resolve(source, &mut lines);
        Self { lines }
    }

    /// Regions around a line (1-based), outermost first.
    pub fn line(&self, line: u32) -> &[Region] {
        let index = (line as usize).checked_sub(1);
        index
            .and_then(|index| self.lines.get(index))
            .map_or(&[], Vec::as_slice)
    }
}

/// The regions around the line's first code, or after its last marker where it has only markers.
fn line_regions(line: &str, open: &mut Vec<Region>) -> Vec<Region> {
    let mut around_code = None;
    let mut from = 0;
    let mut literal = Literal::default();
    let mut seen = 0;
    for marker in MARKER.captures_iter(line) {
        let Some(whole) = marker.get(0) else { continue };
        literal.pass(&line[seen..whole.start()]);
        seen = whole.start();
        if literal.inside {
            continue;
        }
        if !line[from..whole.start()].trim().is_empty() {
            around_code.get_or_insert_with(|| open.clone());
        }
        from = whole.end();
        let kind = if &marker[2] == "PRODUCE" {
            RegionKind::Produce
        } else {
            RegionKind::Consume
        };
        let Ok(id) = marker[3].parse() else { continue };
        let region = Region { kind, id };
        if &marker[1] == "Begin" {
            if open.len() < DEEPEST {
                open.push(region);
            }
        } else if let Some(at) = open.iter().rposition(|other| *other == region) {
            open.truncate(at);
        }
    }
    around_code.unwrap_or_else(|| open.clone())
}

/// Whether the text so far ends inside a string literal. Generated code has no literal over several
/// lines.
#[derive(Default)]
struct Literal {
    inside: bool,
    escaped: bool,
}

impl Literal {
    /// Goes on over more text of the line.
    fn pass(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                _ if self.escaped => self.escaped = false,
                '\\' if self.inside => self.escaped = true,
                '"' => self.inside = !self.inside,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ids(map: &RegionMap, line: u32) -> Vec<i32> {
        map.line(line).iter().map(|region| region.id).collect()
    }

    #[test]
    fn regions_nest_and_end() {
        let map = RegionMap::parse(
            "start\n/* BeginCodeRegion(PRODUCE_2) */\nloop {\n/* BeginCodeRegion(CONSUME_1) */\nsum += x;\n\
             /* EndCodeRegion(CONSUME_1) */\n}\n/* EndCodeRegion(PRODUCE_2) */\nend",
        );
        assert!(ids(&map, 1).is_empty());
        assert_eq!(ids(&map, 3), [2]);
        assert_eq!(ids(&map, 5), [2, 1]);
        assert_eq!(map.line(5)[1].kind, RegionKind::Consume);
        assert_eq!(ids(&map, 7), [2]);
        assert!(ids(&map, 9).is_empty());
        assert!(ids(&map, 0).is_empty());
        assert!(ids(&map, 10_000).is_empty());
    }

    #[test]
    fn several_markers_on_one_line_surround_its_code() {
        let map = RegionMap::parse(
            "/* BeginCodeRegion(CONSUME_4) */ if (x) /* BeginCodeRegion(CONSUME_3) */ y(); \
             /* EndCodeRegion(CONSUME_3) */ /* EndCodeRegion(CONSUME_4) */\nz();",
        );
        assert_eq!(ids(&map, 1), [4]);
        assert!(ids(&map, 2).is_empty());
    }

    #[test]
    fn literals_of_the_query_are_no_markers() {
        let map =
            RegionMap::parse("String s = \"a \\\" /* BeginCodeRegion(PRODUCE_9) */\";\nnext();");
        assert!(ids(&map, 2).is_empty());
    }

    #[test]
    fn unbalanced_markers_do_no_harm() {
        let map = RegionMap::parse(
            "/* EndCodeRegion(PRODUCE_1) */\n/* BeginCodeRegion(PRODUCE_1) */\n/* BeginCodeRegion(CONSUME_2) */\n\
             a\n/* EndCodeRegion(PRODUCE_1) */\nb",
        );
        assert_eq!(ids(&map, 4), [1, 2]);
        assert!(ids(&map, 6).is_empty());
    }

    #[test]
    fn a_megabyte_of_markers_takes_neither_minutes_nor_gigabytes() {
        let marker = "/* BeginCodeRegion(PRODUCE_1) */";
        let one_line = RegionMap::parse(&marker.repeat(30_000));
        assert_eq!(one_line.line(1).len(), DEEPEST);
        let lines = RegionMap::parse(&format!("{marker}\n").repeat(30_000));
        assert_eq!(lines.line(30_000).len(), DEEPEST);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(/\\* (Begin|End)CodeRegion\\((PRODUCE|CONSUME)_[0-9]{1,12}\\) \\*/|\"|\\\\|[a-z\n ]){0,40}") {
            let map = RegionMap::parse(&text);
            for line in 0..50 {
                let _ = map.line(line);
            }
        }

        #[test]
        fn balanced_regions_leave_nothing_open(ids in proptest::collection::vec(0i32..50, 0..20)) {
            let mut text = String::new();
            for id in &ids { text += &format!("/* BeginCodeRegion(PRODUCE_{id}) */\n"); }
            text += "code\n";
            for id in ids.iter().rev() { text += &format!("/* EndCodeRegion(PRODUCE_{id}) */\n"); }
            text += "after";
            let map = RegionMap::parse(&text);
            let inner = ids.len() as u32 + 1;
            prop_assert_eq!(self::ids(&map, inner), ids);
            prop_assert!(map.line(2 * inner).is_empty());
        }
    }
}
