//! Calls of `Long.valueOf` and the like in bytecode.
//!
//! C2 inlines them after all others and, unlike for others, leaves their call site as the description of code that it makes or
//! changes from then on, wherever that is: an unrolled loop in another function is described as the line that boxes a number.

/// `invokestatic`, followed by the index of a method in the constant pool, two bytes.
const INVOKESTATIC: u8 = 0xb8;

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

/// The method that the bytecode at an index calls statically, as an index into the constant pool.
pub(crate) fn static_callee(bytecodes: &[u8], bci: i32) -> Option<u16> {
    let at = usize::try_from(bci).ok()?;
    match bytecodes.get(at..at.checked_add(3)?)? {
        [INVOKESTATIC, index @ ..] => half(index, 0),
        _ => None,
    }
}

/// Whether a method of a constant pool, as JVMTI gives it, boxes a number.
pub(crate) fn is_boxing(pool: &[u8], method: u16) -> bool {
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
    fn only_static_calls_have_a_callee() {
        let code = [0x2a, INVOKESTATIC, 1, 2, 0xb6, 0, 7, INVOKESTATIC, 1];
        let callees: Vec<Option<u16>> = (-1..10).map(|bci| static_callee(&code, bci)).collect();
        let mut expected = vec![None; 11];
        expected[2] = Some(0x102);
        assert_eq!(callees, expected);
    }
}
