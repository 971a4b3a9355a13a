//! The plugin on YARN: the application master and the executors are containers that the NodeManager starts.

use unfuse_tests::{Yarn, plugin_submit, queries, run, spark};

use crate::spark::{check_executors, check_owned};

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
        check_executors(&profile, 2, mode);
        check_owned(&profile, 90, mode);
    }
}
