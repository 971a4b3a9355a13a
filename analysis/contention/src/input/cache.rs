//! Memory of cached blocks.

use std::collections::BTreeMap;

use unfuse_format::CachedRow;

use crate::Span;

/// Memory of the blocks of one RDD on one executor.
pub(super) struct CachedBlocks {
    pub(super) app: String,
    pub(super) executor: String,
    /// The stage that filled the cache.
    pub(super) stage: Option<i32>,
    /// Spans of time and the number of bytes in each.
    pub(super) spans: Vec<(Span, f64)>,
}

/// Each row is valid until the next one of its RDD and executor; the last one until its application ends (`ends_ns`).
pub(super) fn holders(rows: &[CachedRow], ends_ns: &BTreeMap<String, i64>) -> Vec<CachedBlocks> {
    let mut by_holder: BTreeMap<(&str, &str, i32), Vec<&CachedRow>> = BTreeMap::new();
    for row in rows {
        by_holder
            .entry((&row.app, &row.executor, row.rdd))
            .or_default()
            .push(row);
    }
    by_holder
        .into_iter()
        .map(|((app, executor, _), mut rows)| {
            rows.sort_by_key(|row| row.since_ms);
            let starts = rows
                .iter()
                .map(|row| row.since_ms.saturating_mul(1_000_000));
            let end = ends_ns.get(app).copied().unwrap_or(0);
            let ends = starts.clone().skip(1).chain([end]);
            let spans = starts.zip(ends).zip(&rows);
            CachedBlocks {
                app: app.to_owned(),
                executor: executor.to_owned(),
                stage: rows.iter().find_map(|row| row.stage),
                spans: spans
                    .map(|((start, end), row)| (Span { start, end }, row.memory_bytes as f64))
                    .filter(|(span, bytes)| span.start < span.end && *bytes > 0.0)
                    .collect(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_holds_until_the_next() {
        let row = |since_ms: i64, memory_bytes: u64| CachedRow {
            rdd: 3,
            stage: Some(5),
            since_ms,
            memory_bytes,
            ..CachedRow::default()
        };
        let ends = [(String::new(), 9_000_000_000)].into();
        let held = holders(&[row(2000, 7), row(1000, 5), row(4000, 0)], &ends);
        let spans: Vec<_> = held[0]
            .spans
            .iter()
            .map(|(span, bytes)| (span.start / 1_000_000, span.end / 1_000_000, *bytes))
            .collect();
        assert_eq!(spans, [(1000, 2000, 5.0), (2000, 4000, 7.0)]);
        assert_eq!(held[0].stage, Some(5));
    }

    #[test]
    fn blocks_go_with_their_application() {
        let row = |app: &str| CachedRow {
            app: app.to_owned(),
            memory_bytes: 5,
            ..CachedRow::default()
        };
        let ends = [("a".to_owned(), 3), ("b".to_owned(), 7)].into();
        let held = holders(&[row("a"), row("b")], &ends);
        let ends: Vec<i64> = held.iter().map(|held| held.spans[0].0.end).collect();
        assert_eq!(ends, [3, 7]);
    }
}
