//! Calls in bytecode that C2 may inline late.
//!
//! It inlines some calls after it has parsed all code: those of `Long.valueOf` and the like, of method handles, and any in methods
//! that have become large. It leaves the call site as the description of the code that it makes or changes from then on,
//! wherever that is: an unrolled loop in another function is described as the line that boxes a number.

/// These are followed by the index of a method in the constant pool, two bytes.
const INVOKESPECIAL: u8 = 0xb7;
const INVOKESTATIC: u8 = 0xb8;
const INVOKEDYNAMIC: u8 = 0xba;

/// What a bytecode calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Callee {
    /// Nothing, or what is chosen by the receiver's class: the code that looks at the class is described as the call, too.
    None,
    /// A method that boxes a number. Where it is inlined, nothing may remain of it.
    Box,
    /// Another method, always the same one.
    Fixed,
}

impl Callee {
    /// Reads a method's bytecodes, and asks for the constant pool of its class, as JVMTI gives it, where that decides.
    pub(crate) fn new(bytecodes: &[u8], bci: i32, pool: impl FnOnce() -> Option<Vec<u8>>) -> Self {
        let at = usize::try_from(bci).ok();
        match at.and_then(|at| bytecodes.get(at..at.checked_add(3)?)) {
            Some([INVOKESTATIC, index @ ..]) => {
                let is_box = |pool: Vec<u8>| Some(is_boxing(&pool, half(index, 0)?));
                match pool().and_then(is_box) {
                    Some(true) => Self::Box,
                    _ => Self::Fixed,
                }
            }
            Some([INVOKESPECIAL | INVOKEDYNAMIC, ..]) => Self::Fixed,
            _ => Self::None,
        }
    }
}

/// The classes of boxes; each has a static method `valueOf`.
const BOXES: [&[u8]; 8] = [
    b"java/lang/Boolean",
    b"java/lang/Byte",
    b"java/lang/Character",
    b"java/lang/Short",
    b"java/lang/Integer",
    b"java/lang/Long",
    b"java/lang/Float",
    b"java/lang/Double",
];

/// Whether a method of a constant pool boxes a number.
fn is_boxing(pool: &[u8], method: u16) -> bool {
    let named = || {
        let entries = entries(pool)?;
        let body = |index: u16| entries.get(usize::from(index)).copied().flatten();
        let text = |index: u16| match body(index)? {
            [1, _, _, text @ ..] => Some(text),
            _ => None,
        };
        let method = body(method).filter(|entry| matches!(entry[0], 10 | 11))?;
        let class = body(half(method, 1)?)?;
        let name_and_type = body(half(method, 3)?)?;
        let is_box = BOXES.contains(&text(half(class, 1)?)?);
        Some(is_box && text(half(name_and_type, 1)?)? == b"valueOf")
    };
    named().unwrap_or(false)
}

/// The entries of a constant pool with their tags, by index; `None` if they are not of the class file format.
fn entries(pool: &[u8]) -> Option<Vec<Option<&[u8]>>> {
    let mut entries = vec![None];
    let mut at = 0;
    while at < pool.len() {
        let (length, slots) = match pool[at] {
            1 => (3 + usize::from(half(pool, at + 1)?), 1),
            3 | 4 | 9..=12 | 17 | 18 => (5, 1),
            5 | 6 => (9, 2),
            7 | 8 | 16 | 19 | 20 => (3, 1),
            15 => (4, 1),
            _ => return None,
        };
        entries.push(Some(pool.get(at..at + length)?));
        // What has eight bytes takes two indices.
        entries.extend((1..slots).map(|_| None));
        at += length;
    }
    Some(entries)
}

/// The u16 at an offset; class files have the high byte first.
fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at.checked_add(2)?)?;
    bytes.try_into().ok().map(u16::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pool in which 1 is a long, 7 a method.
    fn pool(class: &str, method: &str) -> Vec<u8> {
        let text = |text: &str| [&[1, 0, text.len() as u8], text.as_bytes()].concat();
        [
            vec![5, 0, 0, 0, 0, 0, 0, 0, 1],
            text(class),
            text(method),
            vec![7, 0, 3],
            vec![12, 0, 4, 0, 4],
            vec![10, 0, 5, 0, 6],
        ]
        .concat()
    }

    #[test]
    fn boxing_methods_have_their_class_and_name() {
        assert!(is_boxing(&pool("java/lang/Long", "valueOf"), 7));
        assert!(!is_boxing(&pool("java/lang/Long", "parseLong"), 7));
        assert!(!is_boxing(&pool("java/lang/String", "valueOf"), 7));
        assert!(!is_boxing(&pool("java/lang/Long", "valueOf"), 5));
    }

    #[test]
    fn a_pool_that_is_cut_off_has_none() {
        let whole = pool("java/lang/Long", "valueOf");
        for end in 0..whole.len() {
            for method in [0, 2, 7, 8, u16::MAX] {
                assert!(!is_boxing(&whole[..end], method));
            }
        }
    }

    #[test]
    fn callees_are_those_of_the_bytecode() {
        let code = [
            0x2a,
            INVOKESTATIC,
            0,
            7,
            0xb6,
            0,
            7,
            INVOKESPECIAL,
            0,
            7,
            INVOKESTATIC,
            0,
            6,
            INVOKESTATIC,
            0,
        ];
        let callee = |bci| Callee::new(&code, bci, || Some(pool("java/lang/Long", "valueOf")));
        let at: Vec<i32> = (-1..17)
            .filter(|bci| callee(*bci) != Callee::None)
            .collect();
        assert_eq!(at, [1, 7, 10]);
        assert_eq!(
            [callee(1), callee(7), callee(10)],
            [Callee::Box, Callee::Fixed, Callee::Fixed]
        );
        assert_eq!(Callee::new(&code, 1, || None), Callee::Fixed);
    }
}
