//! Names of interpreted methods, read from the JVM's memory.

use std::collections::HashMap;
use std::io;

use super::Layout;
use super::lines::line_of;
use crate::memory::Memory;

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
    memory: Memory,
    layout: Layout,
    known: HashMap<u64, Option<InterpretedMethod>>,
    emptied: u64,
}

impl Methods {
    /// Methods in a JVM's memory, if its layout is known.
    pub(crate) fn new(memory: Memory, layout: Layout) -> io::Result<Self> {
        if !layout.is_known() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "unknown JVM layout",
            ));
        }
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
        let constant = self.memory.word(method + l.method_const_method)?;
        let pool = self.memory.word(constant + l.const_method_constants)?;
        let holder = self.memory.word(pool + l.constant_pool_holder)?;
        let entry = |index: u16| {
            self.memory
                .word(pool + l.constant_pool_size + 8 * u64::from(index))
        };
        let code = constant + l.const_method_size;
        let code_size = self.memory.half(constant + l.const_method_code_size)?;
        let has_lines = self.memory.half(constant + l.const_method_flags)? & 1 != 0;
        let source = if l.constant_pool_source_file > 0 {
            self.memory.half(pool + l.constant_pool_source_file)?
        } else {
            self.memory.half(holder + l.klass_source_file)?
        };
        let mut line_table = vec![0; if has_lines { 8192 } else { 0 }];
        // Fewer bytes at the end of the mapping are fine.
        let read = self
            .memory
            .read(&mut line_table, code + u64::from(code_size));
        let mut end = read;
        if let Some(zero) = line_table[..read].iter().position(|byte| *byte == 0) {
            // A zero inside a number only shortens what is kept; most tables end at the first one.
            end = if l.number_excess > 0 { zero + 1 } else { read };
        }
        line_table.truncate(end);
        Some(InterpretedMethod {
            class: self
                .symbol(self.memory.word(holder + l.klass_name)?)?
                .replace('/', "."),
            name: self.symbol(entry(
                self.memory.half(constant + l.const_method_name_index)?,
            )?)?,
            signature: self.symbol(entry(
                self.memory
                    .half(constant + l.const_method_signature_index)?,
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
        let length = usize::from(self.memory.half(at + self.layout.symbol_length)?);
        let mut bytes = vec![0; length.min(1024)];
        let read = self.memory.read(&mut bytes, at + self.layout.symbol_body);
        bytes.truncate(read);
        String::from_utf8(bytes).ok()
    }
}
