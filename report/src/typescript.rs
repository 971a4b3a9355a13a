//! The page's types in TypeScript, generated from those of its blocks.

use std::collections::BTreeMap;

use ts_rs::{Config, TS, TypeVisitor};

use crate::bundle::{Bundle, Places};
use crate::model::{Comparison, FlameKind, FrameNames, QueryDetail, Source, Summary};
use crate::what_if::QueryWhatIf;
use crate::why::WallTime;
use crate::{blame, skew};

/// Declarations in TypeScript, by name.
pub(crate) struct Declarations {
    config: Config,
    by_name: BTreeMap<String, String>,
}

impl Declarations {
    /// Adds a type and the types that it contains.
    pub(crate) fn add<T: TS + 'static + ?Sized>(&mut self) {
        self.visit::<T>();
    }
}

impl TypeVisitor for Declarations {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        // Types of the language itself have no file.
        if T::output_path().is_none() {
            return;
        }
        let name = T::ident(&self.config);
        let docs = T::docs().unwrap_or_default();
        let declaration = format!("{docs}export {}\n", T::decl(&self.config));
        if let Some(known) = self.by_name.get(&name) {
            assert_eq!(*known, declaration, "two types have the name {name}");
            return;
        }
        self.by_name.insert(name, declaration);
        T::visit_dependencies(self);
    }
}

/// All declarations.
fn declarations() -> String {
    let mut all = Declarations {
        // JSON has only one type of numbers; a report's are below 2^53.
        config: Config::new().with_large_int("number"),
        by_name: BTreeMap::new(),
    };
    all.add::<Summary>();
    all.add::<QueryDetail>();
    all.add::<Bundle>();
    all.add::<WallTime>();
    all.add::<QueryWhatIf>();
    all.add::<Places>();
    all.add::<FrameNames>();
    all.add::<Source>();
    all.add::<Comparison>();
    blame::declare(&mut all);
    skew::declare(&mut all);
    let kinds = [
        ("STAGE", FlameKind::Stage),
        ("HEADING", FlameKind::Heading),
        ("OPERATOR", FlameKind::Operator),
    ];
    let kinds = kinds.map(|(name, kind)| format!("export const {name} = {};\n", kind as u8));
    let head = "// Made from the Rust types of the report's blocks; a test in report/src/typescript.rs compares them.\n";
    let parts = all.by_name.into_values().chain(kinds);
    let parts: Vec<String> = [head.to_owned()].into_iter().chain(parts).collect();
    parts.join("\n")
}

#[test]
fn the_pages_types_are_those_of_its_blocks() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/page/src/generated/model.ts");
    let made = declarations();
    if std::env::var_os("UNFUSE_UPDATE_DOCS").is_some() {
        std::fs::write(path, &made).expect("it can be written");
    }
    let committed = std::fs::read_to_string(path).expect("the page has types");
    assert!(
        committed == made,
        "{path} is not made from these types: UNFUSE_UPDATE_DOCS=1 cargo test --package unfuse-report"
    );
}
