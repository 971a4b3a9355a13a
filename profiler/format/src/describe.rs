//! The tables as a page of documentation.

use std::fmt::Write;

use arrow_schema::{DataType, Field};

use crate::{Column, TableId};

/// Every table with its columns, their types and what they mean, as Markdown: a part of docs/profile-format.md.
pub fn describe_tables() -> String {
    let mut text = String::new();
    for table in TableId::ALL {
        let _ = write!(
            text,
            "### `{}/`\n\n{}\n\n| column | type | meaning |\n|---|---|---|\n",
            table.name(),
            sentence(table.doc()),
        );
        let fields = table.fields();
        for (column, field) in table.columns().iter().zip(&fields) {
            row(&mut text, "", column, field);
        }
        text.push('\n');
    }
    text
}

fn row(text: &mut String, of: &str, column: &Column, field: &Field) {
    let name = format!("{of}{}", column.name);
    let null = if field.is_nullable() { ", or null" } else { "" };
    let _ = writeln!(
        text,
        "| `{name}` | {}{null} | {} |",
        type_name(field.data_type()),
        sentence(column.doc).replace('|', "\\|"),
    );
    for part in column.parts {
        if let Some(field) = part_field(field, part.name) {
            row(text, &format!("{name}."), part, field);
        }
    }
}

/// The field of a struct in a list.
fn part_field<'a>(list: &'a Field, name: &str) -> Option<&'a Field> {
    let DataType::List(item) = list.data_type() else {
        return None;
    };
    let DataType::Struct(fields) = item.data_type() else {
        return None;
    };
    let field = fields.iter().find(|field| field.name() == name)?;
    Some(field)
}

/// Lines of a doc comment as one.
fn sentence(doc: &[&str]) -> String {
    let lines: Vec<_> = doc.iter().map(|line| line.trim()).collect();
    lines.join(" ").trim().to_owned()
}

fn type_name(of: &DataType) -> String {
    match of {
        DataType::Utf8 | DataType::LargeUtf8 => "text".to_owned(),
        DataType::Boolean => "boolean".to_owned(),
        DataType::List(item) => match item.data_type() {
            DataType::Struct(_) => "list of structs".to_owned(),
            other => format!("list of {}", type_name(other)),
        },
        number => number.to_string().to_lowercase(),
    }
}
