//! Constants of the added arithmetic that a compiler keeps as they are, and how they are found in machine code.

/// Both have too many bits set to become shifts and additions.
const FACTOR: u32 = 0x4a00_0001;
const MASK: u32 = 0x3600_0055;
/// The bits of the place and of the step.
const PLACE_AND_STEP: u32 = 0x00ff_ff00;

/// The factor and the mask of a step at a place, both below 256.
pub(super) fn operands(place: usize, step: u32) -> [u32; 2] {
    let bits = (place as u32 & 0xff) << 16 | (step & 0xff) << 8;
    [FACTOR | bits, MASK | bits]
}

/// The place to which a constant belongs.
fn place(constant: u32) -> Option<usize> {
    let is_marked = [FACTOR, MASK].contains(&(constant & !PLACE_AND_STEP));
    is_marked.then_some((constant >> 16) as usize & 0xff)
}

/// The place of the added arithmetic to which the x86-64 instruction at the begin of `code` belongs, if it is
/// a multiplication by a constant or an exclusive or with one, of 64 bits.
pub(super) fn marked(code: &[u8]) -> Option<usize> {
    let [0x48..=0x4f, opcode, rest @ ..] = code else {
        return None;
    };
    let operands = match (opcode, rest) {
        (0x69, [modrm, rest @ ..]) => &rest[address_length(*modrm, rest)?..],
        (0x81, [modrm, rest @ ..]) if modrm >> 3 & 7 == 6 => &rest[address_length(*modrm, rest)?..],
        (0x35, rest) => rest,
        _ => return None,
    };
    place(u32::from_le_bytes(*operands.first_chunk()?))
}

/// Bytes between a ModRM byte and the constant behind its operand; `None` if there are fewer.
fn address_length(modrm: u8, rest: &[u8]) -> Option<usize> {
    let (mode, register) = (modrm >> 6, modrm & 7);
    if mode == 3 {
        return Some(0);
    }
    let index = usize::from(register == 4);
    let base = if index == 1 {
        rest.first()? & 7
    } else {
        register
    };
    let displacement = match mode {
        0 if base == 5 => 4,
        0 => 0,
        1 => 1,
        _ => 4,
    };
    (index + displacement <= rest.len()).then_some(index + displacement)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_constant(begin: &[u8], constant: u32) -> Vec<u8> {
        [begin, &constant.to_le_bytes(), &[0x90; 8]].concat()
    }

    #[test]
    fn instructions_are_found_by_their_constants() {
        let [factor, mask] = operands(7, 200);
        // imul r10, r11, N; imul r8, [rsp+0x18], N; imul rax, [rbx+rcx*8+0x100], N; xor r11, N; xor rax, N
        for begin in [
            &[0x4d, 0x69, 0xd3][..],
            &[0x4c, 0x69, 0x44, 0x24, 0x18],
            &[0x48, 0x69, 0x84, 0xcb, 0, 1, 0, 0],
        ] {
            assert_eq!(marked(&with_constant(begin, factor)), Some(7));
            assert_eq!(marked(&with_constant(begin, factor ^ 2)), None);
        }
        for begin in [&[0x49, 0x81, 0xf3][..], &[0x48, 0x35]] {
            assert_eq!(marked(&with_constant(begin, mask)), Some(7));
        }
        // add r11, N; mov r11, N; nothing
        assert_eq!(marked(&with_constant(&[0x49, 0x81, 0xc3], mask)), None);
        assert_eq!(marked(&with_constant(&[0x49, 0xc7, 0xc3], mask)), None);
        assert_eq!(marked(&[]), None);
        assert_eq!(marked(&[0x48, 0x69, 0x04]), None);
        assert_eq!(marked(&[0x48, 0x69, 0x44, 0x24]), None);
    }
}
