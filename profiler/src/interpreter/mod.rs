//! Interpreted frames: which method, which bytecode.
//!
//! All interpreted code runs at the same few addresses; what it interprets stands in its frame: the
//! `Method*` and the bytecode pointer. They come with the sample's copy of the stack; the names behind
//! them are read from the JVM's memory the way debuggers do, by the layout that HotSpot describes in
//! `gHotSpotVMStructs`.

mod lines;
mod methods;
mod unloads;

use serde::{Deserialize, Serialize};

pub use methods::{InterpretedMethod, Methods, Names};

/// Where HotSpot keeps what, in bytes from the start of each structure. All zero: not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// `Method::_constMethod`.
    pub method_const_method: u64,
    /// `sizeof(ConstMethod)`, after which the bytecodes follow.
    pub const_method_size: u64,
    /// `ConstMethod::_constants`.
    pub const_method_constants: u64,
    /// `ConstMethod::_code_size`, u16.
    pub const_method_code_size: u64,
    /// `ConstMethod::_flags`, whose lowest bit says that there is a line table.
    pub const_method_flags: u64,
    /// `ConstMethod::_name_index`, u16.
    pub const_method_name_index: u64,
    /// `ConstMethod::_signature_index`, u16.
    pub const_method_signature_index: u64,
    /// `sizeof(ConstantPool)`, after which the entries follow.
    pub constant_pool_size: u64,
    /// `ConstantPool::_pool_holder`.
    pub constant_pool_holder: u64,
    /// `ConstantPool::_source_file_name_index` (JDK 18 and newer), u16.
    pub constant_pool_source_file: u64,
    /// `InstanceKlass::_source_file_name_index` (JDK 17), u16.
    pub klass_source_file: u64,
    /// `Klass::_name`.
    pub klass_name: u64,
    /// `Symbol::_length`, u16.
    pub symbol_length: u64,
    /// `Symbol::_body`.
    pub symbol_body: u64,
    /// Address of `PerfMemory::_start`, which points to the JVM's counters; 0 if not known.
    pub counters: u64,
    /// What HotSpot adds to every byte of a compressed number: 0, since JDK 20 1.
    pub number_excess: u8,
}

impl Layout {
    /// Whether everything needed is known.
    pub fn is_known(&self) -> bool {
        self.method_const_method > 0
            && self.const_method_size > 0
            && self.constant_pool_size > 0
            && self.klass_name > 0
            && self.symbol_body > 0
            && (self.constant_pool_source_file > 0 || self.klass_source_file > 0)
    }
}
