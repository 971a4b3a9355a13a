//! The verdict on a terminal.

use crate::model::{Sentence, SentenceKind, Verdict};

/// Columns of a terminal.
pub const COLUMNS: usize = 110;
/// Lines that the verdict has there.
pub const LINES: usize = 6;

/// The most important sentences that fit into so many lines of so many columns, in their order.
pub fn render(verdict: &Verdict, columns: usize, lines: usize) -> String {
    let texts: Vec<Vec<String>> = verdict
        .sentences
        .iter()
        .map(|sentence| wrap(sentence, columns))
        .collect();
    let mut by_rank: Vec<usize> = (0..texts.len()).collect();
    let mut seen = [0usize; 5];
    let ranks: Vec<usize> = verdict
        .sentences
        .iter()
        .map(|sentence| {
            let number = &mut seen[sentence.kind as usize];
            *number += 1;
            rank(sentence.kind, *number)
        })
        .collect();
    by_rank.sort_by_key(|at| (ranks[*at], *at));
    let (mut taken, mut room) = (Vec::new(), lines);
    for at in by_rank {
        if texts[at].len() <= room {
            room -= texts[at].len();
            taken.push(at);
        }
    }
    taken.sort_unstable();
    let shown = taken.into_iter().flat_map(|at| &texts[at]);
    shown.fold(String::new(), |text, line| text + line + "\n")
}

/// Where the first, second … sentence of a kind stands when room is short: where the time went, how sure that is, the operator
/// that costs most, one unusual thing and one command come first.
fn rank(kind: SentenceKind, number: usize) -> usize {
    let within = match kind {
        SentenceKind::Time => 0,
        SentenceKind::Certainty => 1,
        SentenceKind::Operator => 2,
        SentenceKind::Unusual => 3,
        SentenceKind::Next => 4,
    };
    within + 5 * (number - 1)
}

/// Lines of at most so many columns where words allow, the first without and the others with indentation. A command is one word, so
/// that it can be copied.
fn wrap(sentence: &Sentence, columns: usize) -> Vec<String> {
    let mut words: Vec<&str> = sentence.text.split(' ').collect();
    if let Some(command) = &sentence.command {
        words.extend(["→", command]);
    }
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in words {
        let is_full = line.chars().count() + 1 + word.chars().count() > columns;
        if is_full && !line.trim().is_empty() {
            lines.push(std::mem::replace(&mut line, format!("  {word}")));
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}
