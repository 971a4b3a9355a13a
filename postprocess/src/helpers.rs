//! Split helpers: Spark moves parts of a long loop into methods outside the markers. If only one operator calls such a
//! method, the method belongs to that operator.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::regions::Place;

static DEFINITION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\s*(?:(?:public|private|protected|final|static|synchronized)\s+)+[\w.<>\[\], ]+?\s(\w+)\s*\(")
        .expect("a constant pattern")
});
static CALL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b(\w+)\s*\(").expect("a constant pattern"));

/// The lines of a source, and how its braces divide them.
pub(crate) struct Outline<'a> {
    pub(crate) lines: Vec<&'a str>,
    /// Number of open braces before each line, and after the last one.
    pub(crate) depths: Vec<i32>,
    /// First line (from 0) and end of each definition whose body opens and closes.
    pub(crate) bodies: Vec<(usize, usize)>,
}

impl<'a> Outline<'a> {
    pub(crate) fn parse(source: &'a str) -> Self {
        let lines: Vec<&str> = source.lines().collect();
        let depths = depths(&lines);
        let bodies = bodies(&lines, &depths);
        Self {
            lines,
            depths,
            bodies,
        }
    }
}

/// Words before parentheses in a line: names of called methods, and keywords.
pub(crate) fn called(line: &str) -> impl Iterator<Item = &str> {
    let calls = CALL.captures_iter(line);
    calls.filter_map(|call| Some(call.get(1)?.as_str()))
}

/// A method outside all regions, and what its calls say about it.
struct Method {
    /// Its lines, from 0.
    body: Range<usize>,
    state: State,
}

/// What the calls inside regions say about a method.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// No such call was seen.
    Unknown,
    /// All calls seen are of one operator; the place of the first.
    One(Place),
    /// The method has the place of its calls.
    Resolved,
    /// Several operators call it.
    Several,
}

/// Sets lines outside all regions (place 0) to the place of their helper's call sites. `lines` has an entry for each
/// line of `source`; `operator` returns the operator of a place. The time is linear in the source.
pub(crate) fn resolve(
    outline: &Outline<'_>,
    lines: &mut [Place],
    operator: impl Fn(Place) -> Option<i32>,
) {
    let mut methods = methods(outline);
    let calls = calls(&outline.lines, &methods);
    let mut outside = Outside::new(lines);
    let mut news: Vec<usize> = (0..lines.len()).filter(|line| lines[*line] != 0).collect();
    // Helpers can call helpers: each round looks at the lines that the previous one resolved.
    while !news.is_empty() {
        let mut called = Vec::new();
        for line in std::mem::take(&mut news) {
            let place = lines[line];
            for name in calls.get(&line).into_iter().flatten() {
                let Some(method) = methods.get_mut(name) else {
                    continue;
                };
                method.state = match method.state {
                    State::Unknown => {
                        called.push(*name);
                        State::One(place)
                    }
                    State::One(other) if operator(other) != operator(place) => State::Several,
                    state => state,
                };
            }
        }
        for name in called {
            let Some(method) = methods.get_mut(name) else {
                continue;
            };
            let State::One(place) = method.state else {
                continue;
            };
            method.state = State::Resolved;
            for line in outside.take(method.body.clone()) {
                lines[line] = place;
                news.push(line);
            }
        }
        news.sort_unstable();
    }
}

/// Lines outside all regions. Each can be taken once: method bodies may overlap in damaged sources.
struct Outside {
    /// For each line the next free one, or itself.
    next: Vec<usize>,
}

impl Outside {
    fn new(lines: &[Place]) -> Self {
        let mut next: Vec<usize> = (0..=lines.len()).collect();
        for line in (0..lines.len()).rev() {
            if lines[line] != 0 {
                next[line] = next[line + 1];
            }
        }
        Self { next }
    }

    /// Takes the free lines of a range.
    fn take(&mut self, range: Range<usize>) -> Vec<usize> {
        let mut taken = Vec::new();
        let mut index = self.find(range.start);
        while index < range.end {
            taken.push(index);
            self.next[index] = index + 1;
            index = self.find(index + 1);
        }
        taken
    }

    /// The first free line from `index` on; halves the path to it.
    fn find(&mut self, mut index: usize) -> usize {
        while self.next[index] != index {
            self.next[index] = self.next[self.next[index]];
            index = self.next[index];
        }
        index
    }
}

/// Methods and their lines (from 0); those whose names are not unique in the source are left out.
fn methods<'a>(outline: &Outline<'a>) -> HashMap<&'a str, Method> {
    let mut found: HashMap<&str, Option<Method>> = HashMap::new();
    for (index, end) in outline.bodies.iter().copied() {
        let name = DEFINITION
            .captures(outline.lines[index])
            .and_then(|found| found.get(1));
        let Some(name) = name else { continue };
        let method = Method {
            body: index..end,
            state: State::Unknown,
        };
        found
            .entry(name.as_str())
            .and_modify(|other| *other = None)
            .or_insert(Some(method));
    }
    found
        .into_iter()
        .filter_map(|(name, method)| Some((name, method?)))
        .collect()
}

/// First line and end of each definition whose body opens and closes: from the first line with more open braces than
/// before, to the line where they are closed.
fn bodies(lines: &[&str], depths: &[i32]) -> Vec<(usize, usize)> {
    // Definitions by the number of open braces before them: those whose body is still to come, fewest first, and open
    // ones.
    let mut coming: BinaryHeap<Reverse<(i32, usize)>> = BinaryHeap::new();
    let mut open: BinaryHeap<(i32, usize)> = BinaryHeap::new();
    let mut bodies = Vec::new();
    for (index, depth) in depths.iter().copied().enumerate() {
        while let Some((_, from)) = open
            .peek()
            .copied()
            .filter(|(outside, _)| *outside >= depth)
        {
            bodies.push((from, index));
            open.pop();
        }
        while let Some(Reverse(next)) = coming.peek().copied().filter(|next| next.0.0 < depth) {
            open.push(next);
            coming.pop();
        }
        if lines
            .get(index)
            .is_some_and(|line| DEFINITION.is_match(line))
        {
            coming.push(Reverse((depth, index)));
        }
    }
    bodies
}

/// Names of methods that each line (from 0) calls.
fn calls<'a>(
    lines: &[&'a str],
    methods: &HashMap<&'a str, Method>,
) -> HashMap<usize, Vec<&'a str>> {
    let mut calls: HashMap<usize, Vec<&str>> = HashMap::new();
    for (index, line) in lines.iter().enumerate() {
        for name in called(line) {
            let known = methods.get_key_value(name);
            if let Some((name, _)) = known.filter(|(_, method)| method.body.start != index) {
                calls.entry(index).or_default().push(name);
            }
        }
    }
    calls
}

/// Number of open braces before each line, and after the last one.
fn depths(lines: &[&str]) -> Vec<i32> {
    let mut depths = vec![0];
    let (mut depth, mut in_comment) = (0, false);
    for line in lines {
        let mut rest = line.char_indices();
        let mut quote = None;
        while let Some((offset, c)) = rest.next() {
            let next = line[offset + c.len_utf8()..].chars().next();
            match (c, quote) {
                ('*', _) if in_comment => in_comment = next != Some('/'),
                _ if in_comment => {}
                ('\\', Some(_)) => drop(rest.next()),
                (_, Some(open)) if c == open => quote = None,
                (_, Some(_)) => {}
                ('"' | '\'', None) => quote = Some(c),
                ('/', None) if next == Some('/') => break,
                ('/', None) if next == Some('*') => in_comment = true,
                ('{', None) => depth += 1,
                ('}', None) => depth -= 1,
                _ => {}
            }
        }
        depths.push(depth);
    }
    depths
}

#[cfg(test)]
mod tests {
    use crate::regions::RegionMap;

    const SOURCE: &str = r#"class A {
  private void both_0(int x) { // {
    use(x);
  }
  private void agg_doConsume_0(
      long key) throws java.io.IOException {
    String s = "}";
    agg_update_0('}');
  }
  private void agg_update_0(char c) {
    sum += c;
  }
  protected void processNext() {
    /* BeginCodeRegion(PRODUCE_1) */
    both_0(1);
    /* BeginCodeRegion(CONSUME_2) */
    agg_doConsume_0(key);
    both_0(2);
    /* EndCodeRegion(CONSUME_2) */
    /* EndCodeRegion(PRODUCE_1) */
  }
}
"#;

    fn innermost(map: &RegionMap, text: &str) -> Option<i32> {
        let line = SOURCE.lines().position(|line| line.contains(text));
        let line = line.expect("the text is in the source") as u32 + 1;
        map.innermost(line).map(|region| region.id)
    }

    #[test]
    fn helpers_belong_to_their_caller() {
        let map = RegionMap::parse(SOURCE);
        assert_eq!(innermost(&map, "agg_update_0('}')"), Some(2));
        assert_eq!(innermost(&map, "sum += c"), Some(2), "a helper's helper");
        assert_eq!(innermost(&map, "use(x)"), None, "two operators call it");
        assert_eq!(innermost(&map, "protected void processNext"), None);
        let by_call_site = |text: &str| {
            let line = SOURCE.lines().position(|line| line.contains(text));
            map.is_by_call_site(line.expect("the text is in the source") as u32 + 1)
        };
        assert!(by_call_site("sum += c"));
        assert!(!by_call_site("agg_doConsume_0(key);"), "it is in a region");
    }

    #[test]
    fn damaged_sources_take_no_longer_than_good_ones() {
        let definitions = "private void a() {\n".repeat(200_000);
        let without_bodies = "private void a()\n".repeat(200_000);
        let chain: String = (0..50_000)
            .map(|index| format!("private void m{index}() {{\nm{}();\n}}\n", index + 1))
            .collect();
        let start = "/* BeginCodeRegion(PRODUCE_1) */ m0(); /* EndCodeRegion(PRODUCE_1) */\n";
        for source in [definitions, without_bodies, format!("{chain}{start}")] {
            let map = RegionMap::parse(&source);
            let last = 3 * 49_999 + 2;
            let called = map.innermost(last).map(|region| region.id);
            assert_eq!(called, source.contains("m0").then_some(1));
        }
    }
}
