// The pages of a report for tests and pictures: name → hash. `query` is the number of one with samples.
export const places = (query, app = 0) => {
  const at = (tab) => `#/query/${app}-${query}/${tab}`;
  return {
    queries: "#/",
    runs: "#/?runs=all",
    plan: at("plan"),
    "plan-nodes": at("plan?nodes=all"),
    "plan-graph": at("plan?view=graph"),
    "wall-time": at("time"),
    "what-if": at("whatif"),
    stages: at("stages"),
    flame: at("flame"),
    "flame-code": at("flame?order=code"),
    "flame-frames": at("flame?order=frames"),
    source: at("source"),
    "query-contention": at("contention"),
    "query-skew": at("skew"),
    "query-comparison": at("compare"),
    contention: "#/contention",
    skew: "#/skew",
    advice: "#/advice",
    comparison: "#/compare",
    outside: `#/query/${app}-outside/plan`,
  };
};
