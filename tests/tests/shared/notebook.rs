//! The Python package in a Jupyter kernel: `unfuse.enable` and the magic `%%unfuse`.

use serde_json::Value;
use unfuse_tests::{Notebook, tpch};

/// What a cell printed or displayed, of all kinds of text.
fn text(outputs: &Value, kind: &str) -> String {
    let outputs = outputs.as_array().expect("outputs");
    let texts = outputs.iter().flat_map(|output| {
        let stream = output["text"].as_str().filter(|_| output["name"] == kind);
        let error = output["evalue"].as_str().filter(|_| kind == "error");
        stream.or(error).or(output["data"][kind].as_str())
    });
    texts.collect()
}

#[test]
fn a_cell_shows_where_its_time_went() {
    let data = tpch("1");
    let enable = "import unfuse\n\
        from pyspark.sql import SparkSession\n\
        builder = SparkSession.builder.master('local[2]').config('spark.ui.enabled', False)\n\
        spark = unfuse.enable(builder, dir='profile', rate=500).getOrCreate()\n\
        spark.sparkContext.setLogLevel('ERROR')";
    let query = format!(
        "%%unfuse\n\
         lines = spark.read.parquet('{}/lineitem.parquet')\n\
         sums = lines.filter('l_quantity < 40').groupBy('l_returnflag').agg({{'l_extendedprice': 'avg'}})\n\
         print(len(sums.collect()), 'rows')",
        data.display()
    );
    let notebook = Notebook::with_wheel();
    let outputs = notebook.run(&[
        enable,
        &query,
        "%%unfuse\nprint(1 + 1)",
        "%%unfuse many\n1",
        "%%unfuse\nspark.sql(\"select raise_error('<b>no</b>')\").collect()",
        "builder = unfuse.enable(SparkSession.builder)",
        "print(unfuse.profile_dir())",
    ]);
    let [_, answer, nothing, wrong, failed, again, dir] = &outputs[..] else {
        panic!("{} cells", outputs.len());
    };
    assert_eq!(text(answer, "stdout"), "3 rows\n", "{answer}");
    let html = text(answer, "text/html");
    for part in ["wall time", "HashAggregate", "Filter", "95% certainty"] {
        assert!(html.contains(part), "{part} is missing: {answer}");
    }
    let plain = text(answer, "text/plain");
    assert!(
        plain.contains("wall time") && plain.contains("HashAggregate"),
        "{plain}"
    );
    assert_eq!(text(nothing, "stdout"), "2\n");
    assert_eq!(text(nothing, "stderr"), "unfuse: the cell ran no query\n");
    assert!(
        text(wrong, "stderr").contains("number of queries"),
        "{wrong}"
    );
    assert!(text(failed, "error").contains("USER_RAISED"), "{failed}");
    assert!(!text(failed, "text/html").contains("<b>no</b>"), "{failed}");
    assert!(text(again, "stderr").contains("a session is running already"));
    let profile = notebook.directory().join("profile");
    assert_eq!(text(dir, "stdout").trim(), profile.display().to_string());
    assert!(profile.join("samples").is_dir());
}
