//! Statements of a generated source: how much arithmetic each line has, and which method and loops enclose it.
//!
//! A compiler describes few of its instructions. For the others, [`Statements::between`] says which lines they can come
//! from.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use regex::Regex;

use crate::helpers::{self, Outline};

/// Loops nested deeper are left out: each look-up walks up the loops around a line.
const DEEPEST: usize = 1024;
/// At most so many lines between two descriptions are searched.
const MOST_LINES: u32 = 4096;

static LOOP: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\s*(?:for|while|do)\b").expect("a constant pattern"));
/// Words before a parenthesis that are no names of methods.
const KEYWORDS: [&str; 8] = [
    "if",
    "for",
    "while",
    "switch",
    "return",
    "catch",
    "synchronized",
    "case",
];

/// An index into [`Statements::loops`], from 1; 0 is no loop.
type LoopIndex = u32;

/// For each line of a source, its arithmetic, its method and the loops around it. Line numbers begin at 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statements {
    /// Operations of each line that become instructions without a description of their own.
    weights: Vec<u8>,
    /// The first line of each line's method; 0 outside methods.
    methods: Vec<u32>,
    /// The innermost loop around each line.
    around: Vec<LoopIndex>,
    loops: Vec<Loop>,
}

/// A loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Loop {
    /// Its last line.
    last: u32,
    /// The loop around it.
    around: LoopIndex,
}

impl Statements {
    /// What the lines of a source compute. Takes time linear in its length.
    pub(crate) fn new(outline: &Outline<'_>) -> Self {
        let lines = &outline.lines;
        let mut statements = Self {
            weights: lines.iter().map(|line| weight(line)).collect(),
            methods: vec![0; lines.len()],
            around: vec![0; lines.len()],
            loops: Vec::new(),
        };
        let mut bodies = outline.bodies.clone();
        // Bodies of damaged sources may overlap: each line is of the first one.
        bodies.sort_unstable();
        let mut free = 0;
        for (first, end) in bodies {
            let first_line = line_number(first);
            for method in statements
                .methods
                .iter_mut()
                .take(end)
                .skip(free.max(first))
            {
                *method = first_line;
            }
            free = free.max(end);
        }
        statements.find_loops(outline);
        statements
    }

    fn find_loops(&mut self, outline: &Outline<'_>) {
        let Outline { lines, depths, .. } = outline;
        // Loops whose body is open, with the number of open braces before them.
        let mut open: Vec<(LoopIndex, i32)> = Vec::new();
        for (index, line) in lines.iter().enumerate() {
            while let Some((number, outside)) = open.last().copied()
                && depths[index] <= outside
            {
                self.loops[number as usize - 1].last = line_number(index.saturating_sub(1));
                open.pop();
            }
            let around = open.last().map_or(0, |(number, _)| *number);
            let opens = LOOP.is_match(line) && depths[index + 1] > depths[index];
            if opens && open.len() < DEEPEST {
                self.loops.push(Loop {
                    last: line_number(lines.len().saturating_sub(1)),
                    around,
                });
                open.push((self.loops.len() as LoopIndex, depths[index]));
            }
            self.around[index] = open.last().map_or(0, |(number, _)| *number);
        }
    }

    /// The lines that an instruction between the descriptions of two lines of a method can come from. None if they are
    /// far apart, or if the second one is above the first one and a loop leads back to it: the instruction then mostly
    /// is of the loop itself.
    pub(crate) fn between(&self, before: u32, line: u32) -> Option<RangeInclusive<u32>> {
        let lines = before.min(line)..=before.max(line);
        let is_near = before.abs_diff(line) < MOST_LINES;
        let jumps_back = before > line && self.is_in_loop(&lines);
        (is_near && !jumps_back).then_some(lines)
    }

    /// The lines of a method up to one of them; only that line outside methods.
    pub(crate) fn method_until(&self, line: u32) -> RangeInclusive<u32> {
        let first = self.at(&self.methods, line).filter(|first| *first > 0);
        first.unwrap_or(line).max(line.saturating_sub(MOST_LINES))..=line
    }

    /// Operations of a line that become instructions without a description of their own.
    pub(crate) fn weight(&self, line: u32) -> u32 {
        self.at(&self.weights, line).map_or(0, u32::from)
    }

    /// Whether one loop contains all of the lines.
    fn is_in_loop(&self, lines: &RangeInclusive<u32>) -> bool {
        let mut number = self.at(&self.around, *lines.start()).unwrap_or(0);
        while let Some(found) = (number as usize)
            .checked_sub(1)
            .and_then(|index| self.loops.get(index))
        {
            if found.last >= *lines.end() {
                return true;
            }
            number = found.around;
        }
        false
    }

    fn at<T: Copy>(&self, of_lines: &[T], line: u32) -> Option<T> {
        of_lines.get((line as usize).checked_sub(1)?).copied()
    }
}

fn line_number(index: usize) -> u32 {
    u32::try_from(index + 1).unwrap_or(u32::MAX)
}

/// Number of arithmetic operations, comparisons and array accesses of a line; 0 if it calls methods, because calls have
/// descriptions.
fn weight(line: &str) -> u8 {
    let code = line.split("//").next().unwrap_or_default().trim();
    if code.starts_with("/*") || helpers::called(code).any(|name| !KEYWORDS.contains(&name)) {
        return 0;
    }
    let mut count: u8 = 0;
    let (mut quote, mut last) = (None, ' ');
    for c in code.chars() {
        match (c, quote) {
            (_, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(c),
            // A sign; the second character of an operator.
            ('-', None) if matches!(last, '=' | '(' | '?' | ':' | ',') => {}
            (
                '+' | '-' | '*' | '/' | '%' | '^' | '&' | '|' | '<' | '>' | '!' | '~' | '?' | '[',
                None,
            ) => {
                let again = c == last;
                count = count.saturating_add(u8::from(!again));
            }
            ('=', None) if last == '=' => count = count.saturating_add(1),
            _ => {}
        }
        if !c.is_whitespace() {
            last = c;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_weighs_as_much_as_it_computes() {
        assert_eq!(weight("a = b * 7L ^ c;"), 2);
        assert_eq!(weight("long project_value_1 = -1L;"), 0);
        assert_eq!(weight("boolean isNull_0 = false;"), 0);
        assert_eq!(weight("if (a >= b && !isNull_0) {"), 3);
        assert_eq!(weight("x = (long) (a == b ? c[1] : d);"), 3);
        assert_eq!(weight("y = row.getLong(0) + 1;"), 0);
        assert_eq!(weight("agg_doConsume_0(value_1);"), 0);
        assert_eq!(weight("// a + b"), 0);
        assert_eq!(weight("/* BeginCodeRegion(CONSUME_2) */"), 0);
        assert_eq!(weight("c = '+' + x;"), 1);
    }

    const SOURCE: &str = "class A {
private void one() {
a = b + c;
for (int i = 0; i < n; i++) {
d = a * i;
while (d > 0) {
d--;
}
e = d;
}
f = e;
}
private void two() {
g = f;
}
}";

    #[test]
    fn lines_know_their_method_and_loops() {
        let statements = Statements::new(&Outline::parse(SOURCE));
        assert_eq!(statements.method_until(5), 2..=5);
        assert_eq!(statements.method_until(14), 13..=14);
        assert_eq!(statements.method_until(16), 16..=16);
        // Upwards within a loop, out of it, and downwards.
        assert_eq!(statements.between(9, 4), None);
        assert_eq!(statements.between(7, 6), None);
        assert_eq!(statements.between(9, 7), None);
        assert_eq!(statements.between(11, 5), Some(5..=11));
        assert_eq!(statements.between(11, 3), Some(3..=11));
        assert_eq!(statements.between(4, 9), Some(4..=9));
        assert_eq!(statements.between(1, 1 + MOST_LINES), None);
    }

    #[test]
    fn damaged_sources_take_no_longer_than_good_ones() {
        let line = "private void a() {\nfor (;;) {\n";
        let source = line.repeat(100_000);
        let statements = Statements::new(&Outline::parse(&source));
        assert_eq!(statements.weight(100_000), 0);
        assert_eq!(statements.between(2_000, 1_999), None);
        assert_eq!(statements.loops.len(), DEEPEST);
        assert_eq!(statements.between(0, 0), Some(0..=0));
    }
}
