//! Split helpers: Spark moves parts of a long loop into methods of their own, outside the markers. Such
//! a method belongs to the operator that calls it, if only one does.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::regions::Region;

static DEFINITION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\s*(?:(?:public|private|protected|final|static|synchronized)\s+)+[\w.<>\[\], ]+?\s(\w+)\s*\(")
        .expect("a constant pattern")
});
static CALL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b(\w+)\s*\(").expect("a constant pattern"));

/// Fills the empty region stacks of helpers' lines with those of their call sites. `regions` has an
/// entry for each line of `source`.
pub(crate) fn resolve(source: &str, regions: &mut [Vec<Region>]) {
    let lines: Vec<&str> = source.lines().collect();
    let mut methods = methods(&lines);
    let calls = calls(&lines, &methods);
    // A helper may be called by another one; each round resolves at least one, or is the last.
    loop {
        let before = methods.len();
        methods.retain(|name, body| {
            let Some(around) = caller(calls.get(name).map_or(&[], Vec::as_slice), regions) else {
                return true;
            };
            for line in &mut regions[body.clone()] {
                if line.is_empty() {
                    line.clone_from(&around);
                }
            }
            false
        });
        if methods.len() == before {
            return;
        }
    }
}

/// The regions around the calls, if they are all of one operator.
fn caller(calls: &[usize], regions: &[Vec<Region>]) -> Option<Vec<Region>> {
    let mut known = calls
        .iter()
        .map(|line| &regions[*line])
        .filter(|around| !around.is_empty());
    let first = known.next()?;
    let id = |around: &[Region]| around.last().map(|region| region.id);
    known
        .all(|other| id(other) == id(first))
        .then(|| first.clone())
}

/// Methods and their lines (from 0); those whose names are not unique in the source are left out.
fn methods(lines: &[&str]) -> HashMap<String, Range<usize>> {
    let depths = depths(lines);
    let mut found: HashMap<String, Vec<Range<usize>>> = HashMap::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = DEFINITION.captures(line) else {
            continue;
        };
        let outside = depths[at];
        let opened = (at + 1..depths.len()).find(|next| depths[*next] > outside);
        let closed = opened.and_then(|open| {
            (open..depths.len())
                .find(|next| depths[*next] <= outside)
                .map(|end| at..end)
        });
        if let Some(body) = closed {
            found.entry(name[1].to_owned()).or_default().push(body);
        }
    }
    found
        .into_iter()
        .filter_map(|(name, mut bodies)| Some((name, bodies.pop().filter(|_| bodies.is_empty())?)))
        .collect()
}

/// Lines (from 0) that call each method.
fn calls(lines: &[&str], methods: &HashMap<String, Range<usize>>) -> HashMap<String, Vec<usize>> {
    let mut calls: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, line) in lines.iter().enumerate() {
        for call in CALL.captures_iter(line) {
            let name = &call[1];
            if methods.get(name).is_some_and(|body| body.start != at) {
                calls.entry(name.to_owned()).or_default().push(at);
            }
        }
    }
    calls
}

/// Braces open before each line, and after the last one.
fn depths(lines: &[&str]) -> Vec<i32> {
    let mut depths = vec![0];
    let (mut depth, mut in_comment) = (0, false);
    for line in lines {
        let mut rest = line.char_indices();
        let mut quote = None;
        while let Some((at, c)) = rest.next() {
            let next = line[at + c.len_utf8()..].chars().next();
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
        map.line(line).last().map(|region| region.id)
    }

    #[test]
    fn helpers_belong_to_their_caller() {
        let map = RegionMap::parse(SOURCE);
        assert_eq!(innermost(&map, "agg_update_0('}')"), Some(2));
        assert_eq!(innermost(&map, "sum += c"), Some(2), "a helper's helper");
        assert_eq!(innermost(&map, "use(x)"), None, "two operators call it");
        assert_eq!(innermost(&map, "protected void processNext"), None);
    }
}
