//! Names and line tables of methods, requested from the JVM once.

use std::sync::Arc;

use crossbeam_skiplist::SkipMap;
use jvmti_bindings::env::Jvmti;
use jvmti_bindings::sys::jni::jmethodID;

/// Maximum number of cached methods. A JVM that generates code loads and unloads classes, so the cache is cleared
/// instead of growing.
const REMEMBERED: usize = 16_384;

/// A method as shown in frames.
#[derive(Debug, Default)]
pub(crate) struct Method {
    pub(crate) class: String,
    pub(crate) name: String,
    pub(crate) signature: String,
    pub(crate) file: String,
    /// First bci and line, in order of bci.
    lines: Vec<(i32, u32)>,
}

impl Method {
    /// The line of a bytecode; 0 if the class has no line table.
    pub(crate) fn line(&self, bci: i32) -> u32 {
        // -1 is the entry of a synchronized method, which is at the first line.
        let after = self
            .lines
            .partition_point(|(start, _)| *start <= bci.max(0));
        after.checked_sub(1).map_or(0, |index| self.lines[index].1)
    }
}

/// Methods by jmethodID. HotSpot never reuses an id.
#[derive(Default)]
pub(crate) struct Methods {
    known: SkipMap<usize, Arc<Method>>,
}

impl Methods {
    /// The method with an id. A method of an unloaded class has empty names.
    pub(crate) fn get(&self, jvmti: &Jvmti, id: jmethodID) -> Arc<Method> {
        if let Some(known) = self.known.get(&(id as usize)) {
            return known.value().clone();
        }
        let method = Arc::new(describe(jvmti, id).unwrap_or_default());
        if self.known.len() >= REMEMBERED {
            self.known.clear();
        }
        self.known.insert(id as usize, method.clone());
        method
    }
}

/// Whether the class of a method is still loaded.
pub(crate) fn is_loaded(jvmti: &Jvmti, id: jmethodID) -> bool {
    // SAFETY: HotSpot keeps the memory of ids, and refuses those of unloaded classes.
    unsafe { jvmti.get_method_modifiers(id) }.is_ok()
}

fn describe(jvmti: &Jvmti, id: jmethodID) -> Option<Method> {
    // SAFETY: `id` came with the event being handled, so its class is still loaded; local references
    // made here die with the event.
    unsafe {
        let (name, signature, _) = jvmti.get_method_name(id).ok()?;
        let class = jvmti.get_method_declaring_class(id).ok()?;
        let (class_signature, _) = jvmti.get_class_signature(class).ok()?;
        let mut lines: Vec<_> = jvmti
            .get_line_number_table(id)
            .unwrap_or_default()
            .iter()
            .map(|entry| (entry.start_location as i32, entry.line_number.max(0) as u32))
            .collect();
        lines.sort_unstable();
        Some(Method {
            class: binary_name(&class_signature),
            name,
            signature,
            file: jvmti.get_source_file_name(class).unwrap_or_default(),
            lines,
        })
    }
}

/// `Ljava/lang/String;` → `java.lang.String`. Hidden classes already have a dot before their suffix.
fn binary_name(signature: &str) -> String {
    let inner = signature
        .strip_prefix('L')
        .and_then(|s| s.strip_suffix(';'))
        .unwrap_or(signature);
    inner.replace('/', ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_reach_to_the_next_entry() {
        let method = Method {
            lines: vec![(0, 10), (4, 11), (9, 10)],
            ..Method::default()
        };
        let lines: Vec<_> = [-1, 0, 3, 4, 8, 9, 100]
            .iter()
            .map(|bci| method.line(*bci))
            .collect();
        assert_eq!(lines, [10, 10, 10, 11, 11, 10, 10]);
        assert_eq!(Method::default().line(3), 0);
    }

    #[test]
    fn names_have_dots() {
        assert_eq!(binary_name("Ljava/util/Map$Entry;"), "java.util.Map$Entry");
    }
}
