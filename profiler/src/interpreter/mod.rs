//! Interpreted frames: their methods and bytecodes.
//!
//! All interpreted code runs at the same few addresses. The frame contains what it interprets: the `Method*` and the
//! bytecode pointer. They are in the sample's copy of the stack; the names behind them are read from the JVM's memory
//! as debuggers do, with the layout that HotSpot describes in `gHotSpotVMStructs`.

mod lines;
mod methods;
mod unloads;

use serde::{Deserialize, Serialize};

pub use methods::{InterpretedMethod, Methods, Names};

/// Offsets in HotSpot's structures, bytes. All zero if unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// `Method::_constMethod`.
    pub method_const_method: u64,
    /// `sizeof(ConstMethod)`; the bytecodes follow it.
    pub const_method_size: u64,
    /// `ConstMethod::_constants`.
    pub const_method_constants: u64,
    /// `ConstMethod::_code_size`, u16.
    pub const_method_code_size: u64,
    /// `ConstMethod::_flags`; the lowest bit is set if there is a line table.
    pub const_method_flags: u64,
    /// `ConstMethod::_name_index`, u16.
    pub const_method_name_index: u64,
    /// `ConstMethod::_signature_index`, u16.
    pub const_method_signature_index: u64,
    /// `sizeof(ConstantPool)`; the entries follow it.
    pub constant_pool_size: u64,
    /// `ConstantPool::_pool_holder`.
    pub constant_pool_holder: u64,
    /// `ConstantPool::_source_file_name_index` (JDK 18 and newer), u16.
    pub constant_pool_source_file: u64,
    /// `InstanceKlass::_source_file_name_index` (JDK 11 and 17), u16.
    pub klass_source_file: u64,
    /// `Klass::_name`.
    pub klass_name: u64,
    /// `Symbol::_length`, u16.
    pub symbol_length: u64,
    /// `Symbol::_body`.
    pub symbol_body: u64,
    /// Address of `PerfMemory::_start`, which points to the JVM's counters; 0 if unknown.
    pub counters: u64,
    /// HotSpot adds this to every byte of a compressed number: 0, since JDK 20 1.
    pub number_excess: u8,
}

impl Layout {
    /// Whether all needed offsets are known.
    pub fn is_known(&self) -> bool {
        self.method_const_method > 0
            && self.const_method_size > 0
            && self.constant_pool_size > 0
            && self.klass_name > 0
            && self.symbol_body > 0
            && (self.constant_pool_source_file > 0 || self.klass_source_file > 0)
    }
}
