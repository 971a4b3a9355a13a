//! The footer of a Parquet file, checked before the Parquet reader takes it apart.
//!
//! The reader descends once for each group in a group, allocates what lists and groups claim to hold and goes by the
//! numbers of fields, whatever types they have. So this goes by both, and refuses a field of another type: both must
//! read the same.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::thrift::{Kind, Thrift, damaged};

/// Longest footer, bytes. Ours have below 64 KiB.
const LONGEST: u32 = 1 << 20;
/// Bytes behind the footer: its length and the magic number.
const TAIL: u64 = 8;
/// Deepest nesting of columns.
const DEEPEST: usize = 16;
/// Most columns and groups of them, and bytes of a name: the Parquet reader copies the names of its groups for each column.
const MOST_COLUMNS: usize = 4096;
const LONGEST_NAME: u64 = 256;

/// What a field holds.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Boolean,
    Byte,
    Int,
    Double,
    Binary,
    List(&'static Self),
    Struct(Fields),
    /// A `SchemaElement`: a column or a group of them.
    Element,
    /// The name of an element.
    Name,
    /// How many elements are in a group.
    Children,
}

/// The fields of a struct that the Parquet reader reads, by their numbers in parquet.thrift. It skips others by type.
type Fields = &'static [(i16, Shape)];

use Shape::{Binary, Boolean, Byte, Children, Double, Element, Int, List, Name, Struct};

const EMPTY: Shape = Struct(&[]);
const FILE_META_DATA: Fields = &[
    (1, Int),
    (2, List(&Element)),
    (3, Int),
    (4, List(&Struct(ROW_GROUP))),
    (5, List(&Struct(&[(1, Binary), (2, Binary)]))),
    (6, Binary),
    (7, List(&Struct(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]))),
];
const SCHEMA_ELEMENT: Fields = &[
    (1, Int),
    (2, Int),
    (3, Int),
    (4, Name),
    (5, Children),
    (6, Int),
    (7, Int),
    (8, Int),
    (9, Int),
    (10, Struct(LOGICAL_TYPE)),
];
const TIME: Shape = Struct(&[
    (1, Boolean),
    (2, Struct(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)])),
]);
const LOGICAL_TYPE: Fields = &[
    (1, EMPTY),
    (2, EMPTY),
    (3, EMPTY),
    (4, EMPTY),
    (5, Struct(&[(1, Int), (2, Int)])),
    (6, EMPTY),
    (7, TIME),
    (8, TIME),
    (10, Struct(&[(1, Byte), (2, Boolean)])),
    (11, EMPTY),
    (12, EMPTY),
    (13, EMPTY),
    (14, EMPTY),
    (15, EMPTY),
    (16, Struct(&[(1, Byte)])),
    (17, Struct(&[(1, Binary)])),
    (18, Struct(&[(1, Binary), (2, Int)])),
    (19, EMPTY),
];
const ROW_GROUP: Fields = &[
    (1, List(&Struct(COLUMN_CHUNK))),
    (2, Int),
    (3, Int),
    (4, List(&Struct(&[(1, Int), (2, Boolean), (3, Boolean)]))),
    (5, Int),
    (7, Int),
];
const COLUMN_CHUNK: Fields = &[
    (1, Binary),
    (2, Int),
    (3, Struct(COLUMN_META_DATA)),
    (4, Int),
    (5, Int),
    (6, Int),
    (7, Int),
];
const COLUMN_META_DATA: Fields = &[
    (1, Int),
    (2, List(&Int)),
    (4, Int),
    (5, Int),
    (6, Int),
    (7, Int),
    (9, Int),
    (10, Int),
    (11, Int),
    (12, Struct(STATISTICS)),
    (13, List(&Struct(&[(1, Int), (2, Int), (3, Int)]))),
    (14, Int),
    (15, Int),
    (16, Struct(&[(1, Int), (2, List(&Int)), (3, List(&Int))])),
    (17, Struct(&[(1, Struct(BOUNDING_BOX)), (2, List(&Int))])),
];
const STATISTICS: Fields = &[
    (1, Binary),
    (2, Binary),
    (3, Int),
    (4, Int),
    (5, Binary),
    (6, Binary),
    (7, Boolean),
    (8, Boolean),
    (9, Int),
];
const BOUNDING_BOX: Fields = &[
    (1, Double),
    (2, Double),
    (3, Double),
    (4, Double),
    (5, Double),
    (6, Double),
    (7, Double),
    (8, Double),
];

/// The footer of a file, without its length and magic number.
///
/// # Errors
/// If it is none that the Parquet reader takes apart in memory and time that its length bounds.
pub(crate) fn checked(file: &File) -> io::Result<Vec<u8>> {
    let footer = read(file)?;
    check(&footer)?;
    Ok(footer)
}

/// Reads a footer. What a longer one than any of ours unpacks to is a multiple of it: it is refused.
fn read(file: &File) -> io::Result<Vec<u8>> {
    let Some(end) = file.metadata()?.len().checked_sub(TAIL) else {
        return Err(damaged("it is shorter than a footer"));
    };
    let mut tail = [0; TAIL as usize];
    file.read_exact_at(&mut tail, end)?;
    let [a, b, c, d, magic @ ..] = tail;
    if magic != *b"PAR1" {
        return Err(damaged("it does not end as a Parquet file does"));
    }
    let length = u32::from_le_bytes([a, b, c, d]);
    if length > LONGEST {
        return Err(damaged("its footer is longer than any that unfuse writes"));
    }
    let Some(start) = end.checked_sub(u64::from(length)) else {
        return Err(damaged("its footer is longer than the file"));
    };
    let mut footer = vec![0; length as usize];
    file.read_exact_at(&mut footer, start)?;
    Ok(footer)
}

/// Refuses a footer that has other fields than it should, or whose columns are no tree or too deep a one.
fn check(footer: &[u8]) -> io::Result<()> {
    let mut walk = Walk {
        thrift: Thrift::new("its footer", footer),
        children: Vec::new(),
    };
    walk.fields(FILE_META_DATA)?;
    check_tree(&walk.children)
}

/// A walk over a footer.
struct Walk<'a> {
    thrift: Thrift<'a>,
    /// How many elements each element of the schema claims to hold.
    children: Vec<i32>,
}

impl Walk<'_> {
    fn fields(&mut self, fields: Fields) -> io::Result<()> {
        let mut id = 0;
        while let Some(kind) = self.thrift.field(&mut id)? {
            match fields.iter().find(|(of, _)| *of == id) {
                Some((_, shape)) => self.value(*shape, kind)?,
                None => self.thrift.skip(kind)?,
            }
        }
        Ok(())
    }

    fn value(&mut self, shape: Shape, kind: Kind) -> io::Result<()> {
        match (shape, kind) {
            (Boolean, Kind::Boolean)
            | (Byte, Kind::Byte)
            | (Int, Kind::Int)
            | (Double, Kind::Double)
            | (Binary, Kind::Binary) => self.thrift.skip(kind),
            (List(of), Kind::List) => self.inside(|walk| walk.list(*of)),
            (Struct(fields), Kind::Struct) => self.inside(|walk| walk.fields(fields)),
            (Element, Kind::Struct) => self.element(),
            (Name, Kind::Binary) => self.name(),
            (Children, Kind::Int) => self.claim_children(),
            _ => Err(self.thrift.damaged("has a field of another type")),
        }
    }

    fn inside(&mut self, walk: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        self.thrift.enter()?;
        walk(self)?;
        self.thrift.leave();
        Ok(())
    }

    fn list(&mut self, of: Shape) -> io::Result<()> {
        let (kind, length) = self.thrift.list()?;
        for _ in 0..length {
            self.value(of, kind)?;
        }
        Ok(())
    }

    fn element(&mut self) -> io::Result<()> {
        if self.children.len() == MOST_COLUMNS {
            return Err(damaged("it has more columns than any that unfuse writes"));
        }
        self.children.push(0);
        self.inside(|walk| walk.fields(SCHEMA_ELEMENT))
    }

    fn name(&mut self) -> io::Result<()> {
        if self.thrift.binary()? > LONGEST_NAME {
            return Err(damaged("a column's name is longer than any of unfuse"));
        }
        Ok(())
    }

    fn claim_children(&mut self) -> io::Result<()> {
        let claim = self.thrift.int()?;
        if let Some(children) = self.children.last_mut() {
            *children = claim;
        }
        Ok(())
    }
}

/// Refuses elements of a schema that are no tree, or too deep a one. Each comes before those that it claims to hold.
fn check_tree(children: &[i32]) -> io::Result<()> {
    // How many elements each open group still lacks; the root is in none.
    let mut open = vec![1];
    for (index, claim) in children.iter().enumerate() {
        while open.pop_if(|lacking| *lacking == 0).is_some() {}
        let Some(lacking) = open.last_mut() else {
            return Err(damaged("its columns are more than its groups hold"));
        };
        *lacking -= 1;
        let left = children.len() - index - 1;
        let Some(claim) = usize::try_from(*claim).ok().filter(|claim| *claim <= left) else {
            return Err(damaged(
                "a group claims to hold more columns than there are",
            ));
        };
        open.push(claim);
        if open.len() > DEEPEST + 1 {
            return Err(damaged("its columns nest too deep"));
        }
    }
    if open.iter().any(|lacking| *lacking > 0) {
        return Err(damaged("a group holds fewer columns than it claims"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The version, and the head of the schema's field: a list of so many structs, at least 15.
    fn schema(elements: usize) -> Vec<u8> {
        let mut footer = vec![0x15, 2, 0x19, 0xfc];
        footer.extend(varint(elements as u64));
        footer
    }

    fn varint(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    /// A `SchemaElement` with a repetition, a name and children.
    fn element(children: i32) -> Vec<u8> {
        let mut element = vec![0x35, 0, 0x18, 1, b'a', 0x15];
        element.extend(varint(((children << 1) ^ (children >> 31)) as u32 as u64));
        element.push(0);
        element
    }

    fn schema_of(children: impl ExactSizeIterator<Item = i32>) -> Vec<u8> {
        let mut footer = schema(children.len());
        children.for_each(|children| footer.extend(element(children)));
        footer.push(0);
        footer
    }

    #[track_caller]
    fn refused(footer: &[u8], why: &str) {
        let error = check(footer).expect_err("refused").to_string();
        assert_eq!(error, why);
    }

    #[test]
    fn columns_are_a_tree_of_some_levels() {
        let chain = |levels: i32| (0..levels).map(move |index| i32::from(index + 1 < levels));
        check(&schema_of(chain(16))).expect("as deep as allowed");
        let flat = (0..4000).map(|index| if index == 0 { 3999 } else { 0 });
        check(&schema_of(flat)).expect("many columns");
        refused(&schema_of(chain(17)), "its columns nest too deep");
        refused(&schema_of(chain(4096)), "its columns nest too deep");
        refused(
            &schema_of(chain(130_000)),
            "it has more columns than any that unfuse writes",
        );
        let one =
            |root: i32| schema_of((0..20).map(move |index| if index == 0 { root } else { 0 }));
        check(&one(19)).expect("a flat table");
        for claim in [20, i32::MAX, -1, i32::MIN] {
            let why = "a group claims to hold more columns than there are";
            refused(&one(claim), why);
        }
        refused(&one(18), "its columns are more than its groups hold");
        let lacking = (0..20).map(|index| [19, 2][usize::from(index == 1)] * i32::from(index < 2));
        refused(
            &schema_of(lacking),
            "a group holds fewer columns than it claims",
        );
        refused(&[0x15, 2, 0], "a group holds fewer columns than it claims");
    }

    #[test]
    fn a_name_has_a_length() {
        let mut footer = vec![0x15, 2, 0x19, 0x1c, 0x48];
        footer.extend(varint(1 << 16));
        footer.resize(footer.len() + (1 << 16), b'a');
        footer.extend([0, 0]);
        refused(&footer, "a column's name is longer than any of unfuse");
    }

    #[test]
    fn lists_claim_no_more_than_there_is() {
        let most = varint(i32::MAX as u64);
        // A field that the Parquet reader does not know (8), before the schema.
        let unknown = |list: &[u8]| [&[0x15, 2, 0x79], list, &[0]].concat();
        for head in [0xf1, 0xf2, 0xf5, 0xfc] {
            let list = [&[head], &most[..]].concat();
            refused(
                &unknown(&list),
                "its footer has a list that is longer than itself",
            );
        }
        for booleans in [0x11, 0x12] {
            refused(
                &unknown(&[booleans, 1]),
                "its footer has a list of booleans",
            );
        }
        // A list of one number is read; a schema is lacking.
        refused(
            &unknown(&[0x15, 1]),
            "a group holds fewer columns than it claims",
        );
        refused(&unknown(&[0x19; 40]), "its footer nests too deep");
        refused(
            &unknown(&[0x1b, 1]),
            "its footer has a field of an unknown type",
        );
        refused(
            &[&[0x15, 2, 0x19, 0xfc], &most[..]].concat(),
            "its footer has a list that is longer than itself",
        );
    }

    #[test]
    fn structs_nest_to_a_level() {
        let nested = |levels: usize| [vec![0x1c; levels], vec![0; levels]].concat();
        let unknown = |levels| [&[0x15, 2, 0x9c][..], &nested(levels), &[0, 0]].concat();
        refused(&unknown(1 << 19), "its footer nests too deep");
        refused(&unknown(16), "its footer nests too deep");
        // It has no schema, but is read.
        refused(&unknown(15), "a group holds fewer columns than it claims");
    }

    #[test]
    fn fields_have_their_types() {
        // The schema as a number; its name as a number; the version as a struct, in which another could hide.
        for footer in [
            &[0x15, 2, 0x15, 2, 0][..],
            &[0x15, 2, 0x19, 0x1c, 0x45, 2, 0, 0],
            &[0x1c, 0x19, 0x1c, 0, 0, 0],
            &[0x15, 2, 0x19, 0x15, 2, 0],
        ] {
            refused(footer, "its footer has a field of another type");
        }
        refused(&[0x15, 2, 0x19], "its footer is cut off");
        refused(&[], "its footer is cut off");
    }
}
