//! Calls in bytecode that C2 may inline late.
//!
//! C2 inlines some calls after it has parsed all code: calls of `Long.valueOf` and similar methods, and any calls in a
//! method that has become large. From then on it describes all code that it makes or changes as the last of these call
//! sites, wherever that code is. So an unrolled loop in another function is described as the line that boxes a number.

/// These are followed by the index of a method in the constant pool, two bytes.
const INVOKESPECIAL: u8 = 0xb7;
const INVOKESTATIC: u8 = 0xb8;
const INVOKEDYNAMIC: u8 = 0xba;

/// A call whose callee does not depend on the receiver's class. For other calls, code that compares the class is
/// correctly described as the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FixedCall {
    /// A call of a static method, with its index in the constant pool.
    Static(u16),
    /// Any other such call.
    Other,
}

impl FixedCall {
    /// The call at an index of a method's bytecodes, if there is one.
    pub(crate) fn at_bci(bytecodes: &[u8], bci: i32) -> Option<Self> {
        let offset = usize::try_from(bci).ok()?;
        match bytecodes.get(offset..offset.checked_add(3)?)? {
            [INVOKESTATIC, index @ ..] => half(index, 0).map(Self::Static),
            [INVOKESPECIAL | INVOKEDYNAMIC, ..] => Some(Self::Other),
            _ => None,
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

/// Indices of the methods in a constant pool, as JVMTI returns it, that box a number. If C2 inlines such a method, it
/// may remove all of its code.
pub(crate) fn boxing_methods(pool: &[u8]) -> Vec<u16> {
    let Some(entries) = entries(pool) else {
        return Vec::new();
    };
    let body = |index: u16| entries.get(usize::from(index)).copied().flatten();
    let text = |index: u16| match body(index)? {
        [1, _, _, text @ ..] => Some(text),
        _ => None,
    };
    let boxes = |method: &[u8]| {
        let class = body(half(method, 1)?)?;
        let name_and_type = body(half(method, 3)?)?;
        let is_box = BOXES.contains(&text(half(class, 1)?)?);
        let is_value = text(half(name_and_type, 1)?)? == b"valueOf";
        // The others parse text.
        let is_of_number = !text(half(name_and_type, 3)?)?.starts_with(b"(L");
        Some(is_box && is_value && is_of_number)
    };
    let methods = (0..).zip(&entries);
    let boxing = methods.filter(|(_, entry)| {
        entry.is_some_and(|entry| matches!(entry[0], 10 | 11) && boxes(entry) == Some(true))
    });
    boxing.map(|(index, _)| index).collect()
}

/// The entries of a constant pool with their tags, by index; `None` if they are not of the class file format.
fn entries(pool: &[u8]) -> Option<Vec<Option<&[u8]>>> {
    let mut entries = vec![None];
    let mut offset = 0;
    while offset < pool.len() {
        let (length, slots) = match pool[offset] {
            1 => (3 + usize::from(half(pool, offset + 1)?), 1),
            3 | 4 | 9..=12 | 17 | 18 => (5, 1),
            5 | 6 => (9, 2),
            7 | 8 | 16 | 19 | 20 => (3, 1),
            15 => (4, 1),
            _ => return None,
        };
        entries.push(Some(pool.get(offset..offset + length)?));
        // An entry of eight bytes takes two indices.
        entries.extend((1..slots).map(|_| None));
        offset += length;
    }
    Some(entries)
}

/// The u16 at an offset; class files are big-endian.
fn half(bytes: &[u8], offset: usize) -> Option<u16> {
    let bytes = bytes.get(offset..offset.checked_add(2)?)?;
    bytes.try_into().ok().map(u16::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A constant pool: entry 1 is a long, entry 8 the method.
    fn pool(class: &str, method: &str, signature: &str) -> Vec<u8> {
        let text = |text: &str| [&[1, 0, text.len() as u8], text.as_bytes()].concat();
        [
            vec![5, 0, 0, 0, 0, 0, 0, 0, 1],
            text(class),
            text(method),
            text(signature),
            vec![7, 0, 3],
            vec![12, 0, 4, 0, 5],
            vec![10, 0, 6, 0, 7],
        ]
        .concat()
    }

    #[test]
    fn boxing_methods_have_their_class_name_and_parameter() {
        let boxing = |class, method, signature| boxing_methods(&pool(class, method, signature));
        assert_eq!(
            boxing("java/lang/Long", "valueOf", "(J)Ljava/lang/Long;"),
            [8]
        );
        assert!(boxing("java/lang/Long", "parseLong", "(J)J").is_empty());
        assert!(boxing("java/lang/String", "valueOf", "(J)Ljava/lang/String;").is_empty());
        assert!(
            boxing(
                "java/lang/Long",
                "valueOf",
                "(Ljava/lang/String;)Ljava/lang/Long;"
            )
            .is_empty()
        );
    }

    #[test]
    fn a_pool_that_is_cut_off_has_none() {
        let whole = pool("java/lang/Long", "valueOf", "(J)Ljava/lang/Long;");
        for end in 0..whole.len() {
            assert!(boxing_methods(&whole[..end]).is_empty());
        }
    }

    #[test]
    fn calls_are_those_of_the_bytecode() {
        let code = [
            0x2a,
            INVOKESTATIC,
            1,
            2,
            0xb6,
            0,
            7,
            INVOKESPECIAL,
            0,
            7,
            INVOKEDYNAMIC,
            0,
            6,
            INVOKESTATIC,
            0,
        ];
        let calls: Vec<(i32, FixedCall)> = (-1..17)
            .filter_map(|bci| Some((bci, FixedCall::at_bci(&code, bci)?)))
            .collect();
        let expected = [
            (1, FixedCall::Static(0x102)),
            (7, FixedCall::Other),
            (10, FixedCall::Other),
        ];
        assert_eq!(calls, expected);
    }
}
