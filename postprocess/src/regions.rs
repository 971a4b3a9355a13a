//! Operator regions of a generated source.
//!
//! `/* BeginCodeRegion(CONSUME_7) */ … /* EndCodeRegion(CONSUME_7) */` encloses the code that operator 7 wrote to
//! consume a row. Regions nest as producing and consuming code does.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;

use crate::helpers::{self, Outline};
use crate::statements::Statements;

static MARKER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"/\* (Begin|End)CodeRegion\((PRODUCE|CONSUME)_(\d{1,9})\) \*/")
        .expect("a constant pattern")
});

/// Regions nested deeper are dropped: no plan nests so deep, and each look-up of a line walks up its regions.
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

/// An index into [`RegionMap::opened`], from 1; 0 is outside all regions.
pub(crate) type Place = u32;

/// A region that was opened, and the place that encloses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OpenRegion {
    region: Region,
    around: Place,
}

/// The regions around every line of a source. Lines share them, so the size of a map is linear in its source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegionMap {
    /// Every region in the order of its begin marker; place `n` is entry `n - 1`.
    opened: Vec<OpenRegion>,
    lines: Vec<Place>,
    /// Lines (from 0) of helpers outside all regions. They have the regions of their call sites.
    by_call_site: HashSet<usize>,
    /// What the lines compute.
    statements: Statements,
}

impl RegionMap {
    /// Parses a source. An end without a begin is ignored; a begin without an end lasts as long as the enclosing
    /// region. Helpers outside all regions get the regions of their callers.
    pub fn parse(source: &str) -> Self {
        let mut map = Self::default();
        let mut open = Vec::new();
        for line in source.lines() {
            let place = map.line_place(line, &mut open);
            map.lines.push(place);
        }
        let mut lines = std::mem::take(&mut map.lines);
        let operator = |place: Place| map.region_at(place).map(|region| region.id);
        let marked = lines.clone();
        let outline = Outline::parse(source);
        helpers::resolve(&outline, &mut lines, operator);
        let resolved = lines.iter().zip(&marked).enumerate();
        map.by_call_site = resolved
            .filter(|(_, (place, marked))| place != marked)
            .map(|(line, _)| line)
            .collect();
        map.lines = lines;
        map.statements = Statements::new(&outline);
        map
    }

    /// Regions around a line (1-based), outermost first.
    pub fn line(&self, line: u32) -> Vec<Region> {
        let mut regions: Vec<Region> = self.outwards(line).collect();
        regions.reverse();
        regions
    }

    /// What the lines compute.
    pub(crate) fn statements(&self) -> &Statements {
        &self.statements
    }

    /// Whether a line (1-based) is outside all regions and has the regions of its method's call sites.
    pub fn is_by_call_site(&self, line: u32) -> bool {
        let index = (line as usize).checked_sub(1);
        index.is_some_and(|index| self.by_call_site.contains(&index))
    }

    /// The innermost region around a line (1-based).
    pub fn innermost(&self, line: u32) -> Option<Region> {
        self.outwards(line).next()
    }

    /// Regions around a line (1-based), innermost first.
    pub fn outwards(&self, line: u32) -> impl Iterator<Item = Region> + '_ {
        let index = (line as usize).checked_sub(1);
        let mut place = index
            .and_then(|index| self.lines.get(index))
            .map_or(0, |place| *place);
        std::iter::from_fn(move || {
            let opened = self.opened(place)?;
            place = opened.around;
            Some(opened.region)
        })
    }

    fn opened(&self, place: Place) -> Option<OpenRegion> {
        let index = (place as usize).checked_sub(1)?;
        self.opened.get(index).copied()
    }

    fn region_at(&self, place: Place) -> Option<Region> {
        Some(self.opened(place)?.region)
    }

    /// The place of the line's first code, or after its last marker if it has only markers.
    fn line_place(&mut self, line: &str, open: &mut Vec<Place>) -> Place {
        let innermost = |open: &[Place]| open.last().map_or(0, |place| *place);
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
                around_code.get_or_insert_with(|| innermost(open));
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
                let around = innermost(open);
                if open.len() < DEEPEST {
                    self.opened.push(OpenRegion { region, around });
                    open.push(self.opened.len() as Place);
                }
            } else if let Some(position) = open
                .iter()
                .rposition(|place| self.region_at(*place) == Some(region))
            {
                open.truncate(position);
            }
        }
        around_code.unwrap_or_else(|| innermost(open))
    }
}

/// Whether the text so far ends inside a string literal. In generated code, no literal spans lines.
#[derive(Default)]
struct Literal {
    inside: bool,
    escaped: bool,
}

impl Literal {
    /// Processes more text of the line.
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
    fn a_map_is_no_larger_than_its_source() {
        let begin = "/* BeginCodeRegion(PRODUCE_1) */";
        let end = "/* EndCodeRegion(PRODUCE_1) */";
        let deep = format!("{begin}\n").repeat(DEEPEST - 1);
        for source in [
            begin.repeat(30_000),
            format!("{begin}\n").repeat(30_000),
            // Each line is in as many regions as allowed; in the last source each line has its own region.
            format!("{deep}{}", "\n".repeat(1_000_000)),
            format!("{deep}{}", format!("{begin}\n{end}\n").repeat(15_000)),
        ] {
            let map = RegionMap::parse(&source);
            let bytes =
                map.opened.len() * size_of::<OpenRegion>() + map.lines.len() * size_of::<Place>();
            assert!(bytes <= 4 * source.len(), "{bytes} of {}", source.len());
            assert!(map.line(DEEPEST as u32 - 1).len() <= DEEPEST);
        }
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
