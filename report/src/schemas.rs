//! JSON schemas of what `--json` prints. The files in docs/schemas are made from the types of the answers, except that of
//! `unfuse export`, which other programs decide.

#[cfg(test)]
use schemars::{
    JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, transform::RecursiveTransform,
};

/// Lists the answers with the names of their files.
macro_rules! schemas {
    ($($name:literal: $command:literal, $answer:ty;)*) => {
        /// The schema of each answer: its name, the command that prints it, and the text of the schema.
        pub const SCHEMAS: &[(&str, &str, &str)] = &[
            $(($name, $command, include_str!(concat!("../../docs/schemas/", $name, ".json"))),)*
            ("export", "unfuse export --format json", include_str!("../../docs/schemas/export.json")),
        ];

        /// The name and the text of each schema that is made from a type.
        #[cfg(test)]
        fn made() -> Vec<(&'static str, String)> {
            vec![$(($name, schema::<$answer>($command)),)*]
        }
    };
}

schemas! {
    "advise": "unfuse advise --json", crate::advise::Answer;
    "blame": "unfuse blame --json", crate::blame::Answer;
    "blame-alert": "unfuse blame --follow --alert --json", crate::blame::Alert;
    "blame-proof": "unfuse blame --prove --json", crate::blame::ProofAnswer;
    "check": "unfuse check --json", crate::check::Answer;
    "history": "unfuse history --json", crate::history::Answer;
    "impact": "unfuse impact --json", crate::impact::Answer;
    "plan": "unfuse plan --json", Vec<crate::plan::Answer>;
    "size-curve": "unfuse size curve --json", crate::size::Curve;
    "size-fit": "unfuse size fit --json", crate::size::FitAnswer<'_>;
    "size-offer": "unfuse size cheapest|best --json", crate::size::Answer;
    "size-predict": "unfuse size predict --json", crate::size::PredictionAnswer;
    "skew": "unfuse skew --json", crate::skew::Answer;
    "top": "unfuse top --json", Vec<crate::top::TopRow<'_>>;
    "what-if": "unfuse what-if --json", crate::what_if::Answer;
    "why": "unfuse why --json", crate::why::Answer;
}

#[cfg(test)]
fn schema<T: JsonSchema>(command: &str) -> String {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    // Not formats of JSON Schema, but types of Rust.
    let settings = settings.with_transform(RecursiveTransform(|schema: &mut Schema| {
        schema.remove("format");
    }));
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<T>();
    schema.insert("title".to_owned(), command.into());
    serde_json::to_string_pretty(&schema).expect("JSON") + "\n"
}

#[test]
fn the_schemas_are_those_of_the_answers() {
    for (name, made) in made() {
        let path = format!("{}/../docs/schemas/{name}.json", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("UNFUSE_UPDATE_DOCS").is_some() {
            std::fs::write(&path, &made).expect("it can be written");
        }
        let committed = std::fs::read_to_string(&path).expect("there is a schema");
        assert!(
            committed == made,
            "{path} is not made from its type: UNFUSE_UPDATE_DOCS=1 cargo test --package unfuse-report"
        );
    }
}
