//! The plugin on YARN: the application master and the executors are containers that the NodeManager starts.

use unfuse_tests::{Yarn, ask_number, plugin_submit, queries, run, samples, spark, top};

use crate::spark::{fused_stages, is_in};

#[test]
fn containers_of_yarn_are_profiled_in_both_modes() {
    let dir = tempfile::tempdir().expect("a directory");
    let spark = spark("4.3");
    let yarn = Yarn::start(&spark, dir.path());
    for mode in ["client", "cluster"] {
        let profile = dir.path().join(mode);
        let options = ["--master", "yarn", "--deploy-mode", mode];
        let mut command = plugin_submit("4.3", &profile, &options);
        yarn.configure(&mut command, &spark)
            .args(["--conf", "spark.executor.instances=1"])
            .args(["--conf", "spark.executor.memory=1g"])
            .args(["--conf", "spark.scheduler.minRegisteredResourcesRatio=1.0"])
            .env("SPARK_LOCAL_IP", "127.0.0.1");
        run(queries(&mut command, "3"));
        let processes =
            "select count(distinct executor) from 'DIR/processes/*.parquet' where executor != ''";
        assert_eq!(ask_number(&profile, processes), 2.0, "{mode}");
        let rows = top(&profile, &[]);
        let stages = fused_stages(&rows);
        let all = samples(&rows, |row| is_in(&stages, row));
        let owned = samples(&rows, |row| is_in(&stages, row) && row["node_id"].is_i64());
        assert!(
            all > 100 && owned * 100 >= 90 * all,
            "{mode}: {owned} of {all} samples carry an operator"
        );
    }
}
