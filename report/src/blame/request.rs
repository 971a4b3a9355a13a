//! A request by names, resolved to a question about a workload.

use std::collections::BTreeSet;

use unfuse_contention::{
    Filter, HostId, Options, Query, QueryId, Resource, Split, VictimStages, Workload,
};

use super::{Question, Rank, Window};
use crate::ReportError;
use crate::text::list;

/// What the user wants to know, by names.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The source of the workload, for the begin of messages.
    pub place: String,
    /// The name of the victim; none for all queries.
    pub victim: Option<&'a str>,
    /// Only this window of time; all time if none.
    pub window: Option<Window>,
    /// Only waits for these resources; for all if empty.
    pub resources: Vec<Resource>,
    /// Only waits on hosts with these names; on all if empty.
    pub hosts: &'a [String],
    /// Only culprits of this user.
    pub user: Option<&'a str>,
    /// Only culprits of this scheduler pool.
    pub pool: Option<&'a str>,
    /// Which of a victim's stages count.
    pub stages: VictimStages,
    /// How a stage's blocked time is divided.
    pub split: Split,
    /// Whether use counts less the higher the weight of its scheduler pool is.
    pub weighted: bool,
}

impl Request<'_> {
    /// Resolves the options for a workload whose first task began at `origin_ns`.
    ///
    /// # Errors
    /// If the workload has no query, host, user or pool with a requested name, or nothing in the window. The error
    /// lists what it has.
    pub fn options(&self, workload: &Workload, origin_ns: i64) -> Result<Options, ReportError> {
        let queries = &workload.tables().queries;
        let victim = self.victim.map(|name| self.query(queries, name));
        let victims: BTreeSet<QueryId> = victim.transpose()?.into_iter().collect();
        let hosts = self.hosts.iter().map(|name| self.host(workload, name));
        let hosts = hosts.collect::<Result<_, _>>()?;
        some_have("user", self.user, queries, |query| &query.user)?;
        some_have("pool", self.pool, queries, |query| &query.pool)?;
        let ends = workload.tables().tasks.iter().map(|task| task.span.end);
        let within = self
            .window
            .map(|window| window.span(origin_ns, ends.max().unwrap_or(origin_ns)))
            .transpose()?;
        Ok(Options {
            victims,
            hosts,
            within,
            resources: self.resources.iter().copied().collect(),
            stages: self.stages,
            split: self.split,
            weighted: self.weighted,
            ..Options::default()
        })
    }

    /// The question for an answer with the first `top` rows of a ranking; `options` are those of [`Self::options`].
    pub fn question<'o>(&self, options: &'o Options, by: Rank, top: usize) -> Question<'o> {
        Question {
            options,
            victim: options.victims.first().copied(),
            filter: Filter {
                user: self.user.map(str::to_owned),
                pool: self.pool.map(str::to_owned),
                // A question about all victims asks who harms others.
                others_only: self.victim.is_none(),
                ..Filter::default()
            },
            by,
            top,
        }
    }

    fn host(&self, workload: &Workload, name: &str) -> Result<HostId, ReportError> {
        let known = &workload.tables().hosts;
        if let Some(host) = known.iter().find(|host| host.name == name) {
            return Ok(host.id);
        }
        let names: Vec<&str> = known.iter().map(|host| host.name.as_str()).collect();
        Err(ReportError::Refused(format!(
            "{} has no host {name}; it has {}",
            self.place,
            list(&names)
        )))
    }

    /// The query with this name.
    fn query(&self, queries: &[Query], name: &str) -> Result<QueryId, ReportError> {
        if let Some(query) = queries.iter().find(|query| query.name == name) {
            return Ok(query.id);
        }
        // With several applications, a number alone does not identify a query.
        let known = queries.iter().map(|query| match query.title() {
            title if title == format!("query {}", query.name) => query.name.clone(),
            title => format!("{} ({title})", query.name),
        });
        Err(ReportError::Refused(format!(
            "{} has no query {name}; it has queries {}",
            self.place,
            list(&known.collect::<Vec<_>>())
        )))
    }
}

/// Returns an error if no query has this name.
fn some_have(
    what: &str,
    name: Option<&str>,
    queries: &[Query],
    of: impl Fn(&Query) -> &String,
) -> Result<(), ReportError> {
    let Some(name) = name else { return Ok(()) };
    if queries.iter().any(|query| of(query) == name) {
        return Ok(());
    }
    let known: BTreeSet<&String> = queries.iter().map(of).filter(|n| !n.is_empty()).collect();
    let known: Vec<&String> = known.into_iter().collect();
    Err(ReportError::Refused(format!(
        "no query has {what} {name}; there are: {}",
        list(&known)
    )))
}
