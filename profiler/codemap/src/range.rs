//! A range of code as it goes in, and a frame as it comes out.

/// What kind of code a range is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// A compiled Java method (nmethod).
    #[default]
    Java,
    /// Code the VM generated for itself; its one method's name is the stub's.
    Stub,
}

/// A compiled range to insert.
#[derive(Debug, Clone, Copy)]
pub struct CodeRange<'a> {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub size: u32,
    /// When it was loaded, CLOCK_MONOTONIC ns.
    pub load_time: u64,
    /// What it is.
    pub kind: Kind,
    /// Words of its stack frame, return address included; 0 where unknown.
    pub frame_words: u32,
    /// Whether only calls and the like are described, as in code that was compiled before anyone asked for
    /// more: then the line of an instruction between them is not known.
    pub sparse: bool,
    /// The methods its frames refer to.
    pub methods: &'a [Method<'a>],
    /// Inline chains as a tree.
    pub frames: &'a [FrameRec],
    /// Described pcs in ascending order.
    pub pcs: &'a [PcRec],
}

/// A method by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method<'a> {
    /// Binary class name with dots.
    pub class: &'a str,
    /// Method name.
    pub name: &'a str,
    /// JVM signature.
    pub signature: &'a str,
    /// Source file.
    pub file: &'a str,
}

/// A node of the inline tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameRec {
    /// The frame it was inlined into, [`FrameRec::OUTERMOST`] for none.
    pub parent: u32,
    /// Index of its method.
    pub method: u32,
    /// Bytecode index.
    pub bci: i32,
    /// Source line, 0 where unknown.
    pub line: u32,
}

impl FrameRec {
    /// Parent of a frame that was not inlined.
    pub const OUTERMOST: u32 = u32::MAX;
}

/// What is described at a pc: HotSpot describes the code *up to and including* it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PcRec {
    /// Offset of the pc from the range's start.
    pub offset: u32,
    /// Innermost frame.
    pub frame: u32,
}

/// A resolved frame.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frame {
    /// Binary class name with dots.
    pub class: String,
    /// Method or stub name.
    pub method: String,
    /// JVM signature.
    pub signature: String,
    /// Source file.
    pub file: String,
    /// Source line, 0 where unknown.
    pub line: u32,
    /// Bytecode index.
    pub bci: i32,
    /// Whether it was inlined into the frame before it.
    pub inlined: bool,
    /// Of an instruction being executed: the line of the code described just before it, where that is another line of
    /// this method; 0 otherwise. The instruction may belong to any line between the two, see [`FrameRec`].
    pub line_before: u32,
}
