//! The text of lines of Python files.

use std::collections::HashMap;
use std::path::Path;

/// Longest text of a line that is kept, characters.
const LONGEST: usize = 160;
/// Largest file that is read, bytes.
const LARGEST: u64 = 2 << 20;
/// Number of files remembered; all are forgotten when there are more.
const REMEMBERED: usize = 64;

/// Parts of the paths of libraries, which are many and whose lines say little.
const LIBRARIES: [&str; 4] = [
    "/site-packages/",
    "/dist-packages/",
    "/lib/python",
    "/pyspark/",
];

/// Files read so far; `None` for one that cannot be read.
#[derive(Debug, Default)]
pub(super) struct FileTexts(HashMap<String, Option<Vec<String>>>);

impl FileTexts {
    /// The text of a line, without the space around it; empty if the file cannot be read. Relative paths are those of a
    /// process.
    pub(super) fn line(&mut self, pid: u32, file: &str, line: u32) -> &str {
        if self.0.len() >= REMEMBERED && !self.0.contains_key(file) {
            self.0.clear();
        }
        let lines = self
            .0
            .entry(file.to_owned())
            .or_insert_with(|| read(pid, file));
        let at = (line as usize).checked_sub(1);
        let lines = lines.as_deref().unwrap_or_default();
        at.and_then(|at| lines.get(at)).map_or("", String::as_str)
    }
}

fn read(pid: u32, file: &str) -> Option<Vec<String>> {
    // `<stdin>`, cells of notebooks.
    let is_named = file.is_empty() || file.starts_with('<');
    if is_named || LIBRARIES.iter().any(|part| file.contains(part)) {
        return None;
    }
    let home = format!("/proc/{pid}/cwd");
    let path = Path::new(&home).join(file);
    let text = unfuse_files::read_given_text(&path, LARGEST).ok()?;
    let short = |line: &str| line.trim().chars().take(LONGEST).collect();
    Some(text.lines().map(short).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_once_and_what_is_no_file_has_none() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("job.py");
        std::fs::write(&file, "import re\n\n    return re.sub(a, b, c)  \n").unwrap();
        let path = file.to_str().unwrap();
        let mut texts = FileTexts::default();
        let own = std::process::id();
        assert_eq!(texts.line(own, path, 3), "return re.sub(a, b, c)");
        std::fs::remove_file(&file).unwrap();
        assert_eq!(texts.line(own, path, 1), "import re");
        for line in [0, 2, 4, u32::MAX] {
            assert_eq!(texts.line(own, path, line), "");
        }
        for file in ["", "<string>", "/nowhere.py", "/dev/zero", "/"] {
            assert_eq!(texts.line(own, file, 1), "", "{file}");
        }
        for other in 0..2 * REMEMBERED {
            texts.line(own, &format!("{path}{other}"), 1);
            assert!(texts.0.len() <= REMEMBERED);
        }
    }
}
