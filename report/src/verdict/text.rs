//! The verdict as text for a terminal.

use crate::model::{Sentence, SentenceKind, Verdict};

/// Width of a terminal, columns.
pub const COLUMNS: usize = 110;
/// Number of lines for the verdict.
pub const LINES: usize = 6;

/// The most important sentences that fit into `lines` lines of `columns` columns, in their order.
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
    by_rank.sort_by_key(|index| (ranks[*index], *index));
    let (mut taken, mut room) = (Vec::new(), lines);
    for index in by_rank {
        if texts[index].len() <= room {
            room -= texts[index].len();
            taken.push(index);
        }
    }
    taken.sort_unstable();
    let shown = taken.into_iter().flat_map(|index| &texts[index]);
    shown.fold(String::new(), |text, line| text + line + "\n")
}

/// The rank of a kind's sentence number `number` if space is short: where the time went, its certainty, the most
/// expensive operator, one unusual thing and one command come first.
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

/// Wraps a sentence between words. All lines but the first are indented. A command is not split, so it can be copied.
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
