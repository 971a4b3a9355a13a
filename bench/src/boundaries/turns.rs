//! Queries of fused pipelines that take turns in one JVM.

use anyhow::{Result, bail};
use unfuse_postprocess::Profile;

use crate::event_log::executions;
use crate::random::Random;
use crate::session::Answer;
use crate::spark::{Setup, Spark, Tool};

/// Runs of each query that do not count.
const WARM_UP: i32 = 2;
/// Adaptive execution could choose a join other than the hinted one. In ANSI mode each step would be a checked call.
const CONF: [&str; 2] = [
    "spark.sql.adaptive.enabled=false",
    "spark.sql.ansi.enabled=false",
];

/// A recorded JVM.
pub(crate) struct Turns {
    pub(crate) profile: Profile,
    /// The execution and the query's name of each run that counts.
    pub(crate) runs: Vec<(i64, String)>,
}

impl Turns {
    /// Runs queries (name, text) in random order: each twice to warm up, and then `runs` times. `options` are the agent's;
    /// `conf` are more settings of Spark.
    pub(crate) fn record(
        spark: &Spark,
        options: String,
        conf: &[String],
        queries: &mut [(String, String)],
        runs: u32,
        seed: u64,
    ) -> Result<Self> {
        let all = CONF.map(str::to_owned).into_iter();
        let tool = Tool::Unfuse(options, all.chain(conf.iter().cloned()).collect());
        let mut session = spark.start(&Setup::default(), &tool)?;
        let mut random = Random(seed);
        for round in -WARM_UP..runs.cast_signed() {
            random.shuffle(queries);
            for (name, sql) in &*queries {
                if let Answer::Refused(why) = session.ask(name, sql, round)? {
                    bail!("{} failed: {}", why.query, why.reason);
                }
            }
        }
        let (profile, event_log) = session.finish()?;
        let counted = executions(&event_log)?.into_iter().filter_map(|execution| {
            let name = execution.counted_query()?;
            Some((execution.id, name.to_owned()))
        });
        Ok(Self {
            runs: counted.collect(),
            profile: Profile::open(&profile)?,
        })
    }
}
