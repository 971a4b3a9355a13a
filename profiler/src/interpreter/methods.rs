//! Names of interpreted methods, read from the JVM's memory.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::Layout;
use super::lines::line_of;

/// Methods remembered; emptied every few seconds too, since metadata of unloaded classes is reused.
const REMEMBERED: usize = 4096;
const REMEMBER_NS: u64 = 10_000_000_000;

/// A method that was interpreted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterpretedMethod {
    /// Binary class name with dots.
    pub class: String,
    /// Method name.
    pub name: String,
    /// JVM signature.
    pub signature: String,
    /// Source file.
    pub file: String,
    code: u64,
    code_size: u16,
    line_table: Vec<u8>,
    excess: u8,
}

impl InterpretedMethod {
    /// The bytecode index of a bytecode pointer, if it points into this method.
    pub fn bci(&self, bcp: u64) -> Option<u32> {
        let bci = bcp.checked_sub(self.code)?;
        (bci < u64::from(self.code_size)).then_some(bci as u32)
    }

    /// The line of a bytecode, 0 where unknown.
    pub fn line(&self, bci: u32) -> u32 {
        line_of(&self.line_table, bci, self.excess)
    }
}

/// Reads methods of one JVM.
#[derive(Debug)]
pub struct Methods {
    memory: File,
    layout: Layout,
    known: HashMap<u64, Option<InterpretedMethod>>,
    emptied: u64,
}

impl Methods {
    /// Opens the memory of `pid`. To be done before capabilities are dropped.
    pub fn open(pid: u32, layout: Layout) -> io::Result<Self> {
        if !layout.is_known() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "unknown JVM layout",
            ));
        }
        let memory = File::open(format!("/proc/{pid}/mem"))?;
        Ok(Self {
            memory,
            layout,
            known: HashMap::new(),
            emptied: 0,
        })
    }

    /// The method at a `Method*`; `None` if what is there is no method.
    pub fn get(&mut self, method: u64, now: u64) -> Option<&InterpretedMethod> {
        if self.known.len() >= REMEMBERED || now.saturating_sub(self.emptied) > REMEMBER_NS {
            self.known.clear();
            self.emptied = now;
        }
        if !self.known.contains_key(&method) {
            let read = self.read(method);
            self.known.insert(method, read);
        }
        self.known.get(&method)?.as_ref()
    }

    fn read(&self, method: u64) -> Option<InterpretedMethod> {
        let l = &self.layout;
        let constant = self.word(method + l.method_const_method)?;
        let pool = self.word(constant + l.const_method_constants)?;
        let holder = self.word(pool + l.constant_pool_holder)?;
        let entry = |index: u16| self.word(pool + l.constant_pool_size + 8 * u64::from(index));
        let code = constant + l.const_method_size;
        let code_size = self.half(constant + l.const_method_code_size)?;
        let has_lines = self.half(constant + l.const_method_flags)? & 1 != 0;
        let source = if l.constant_pool_source_file > 0 {
            self.half(pool + l.constant_pool_source_file)?
        } else {
            self.half(holder + l.klass_source_file)?
        };
        let mut line_table = vec![0; if has_lines { 8192 } else { 0 }];
        // Fewer bytes at the end of the mapping are fine.
        let read = self
            .memory
            .read_at(&mut line_table, code + u64::from(code_size))
            .unwrap_or(0);
        let mut end = read;
        if let Some(zero) = line_table[..read].iter().position(|byte| *byte == 0) {
            // A zero inside a number only shortens what is kept; most tables end at the first one.
            end = if l.number_excess > 0 { zero + 1 } else { read };
        }
        line_table.truncate(end);
        Some(InterpretedMethod {
            class: self
                .symbol(self.word(holder + l.klass_name)?)?
                .replace('/', "."),
            name: self.symbol(entry(self.half(constant + l.const_method_name_index)?)?)?,
            signature: self.symbol(entry(
                self.half(constant + l.const_method_signature_index)?,
            )?)?,
            file: if source == 0 {
                String::new()
            } else {
                self.symbol(entry(source)?)?
            },
            code,
            code_size,
            line_table,
            excess: l.number_excess,
        })
    }

    fn symbol(&self, at: u64) -> Option<String> {
        let length = usize::from(self.half(at + self.layout.symbol_length)?);
        let mut bytes = vec![0; length.min(1024)];
        self.memory
            .read_exact_at(&mut bytes, at + self.layout.symbol_body)
            .ok()?;
        String::from_utf8(bytes).ok()
    }

    fn word(&self, at: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.memory.read_exact_at(&mut bytes, at).ok()?;
        Some(u64::from_ne_bytes(bytes))
    }

    fn half(&self, at: u64) -> Option<u16> {
        let mut bytes = [0; 2];
        self.memory.read_exact_at(&mut bytes, at).ok()?;
        Some(u16::from_ne_bytes(bytes))
    }
}
