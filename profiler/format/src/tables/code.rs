//! Generated code and the plans it was generated for.

table! {
    /// A generated class and the text that it was compiled from.
    pub struct SourceRow in SourceIndex {
        /// Spark application id.
        pub app: String,
        /// Hash of the text; the file is `sources/HASH.java`.
        pub hash: String,
        /// Simple name of the generated class.
        pub class: String,
        /// Codegen stage id in the class name.
        pub codegen_stage: Option<i32>,
        /// The hash under which `codegen` has the operators; empty if it is `hash`. It differs where the same code went through
        /// both of Spark's compilers.
        pub body: String,
    }
}

table! {
    /// What one codegen stage of one SQL execution generated, as the driver saw it.
    pub struct CodegenRow in Codegen {
        /// Spark application id.
        pub app: String,
        /// SQL execution id.
        pub execution: Option<i64>,
        /// Codegen stage id.
        pub codegen_stage: i32,
        /// Hash of the text.
        pub hash: String,
        /// The operators, by region id.
        pub nodes: Vec<RegionNode> => RegionNode,
    }
}

part! {
    /// The operator behind a region id.
    pub struct RegionNode {
        /// Pre-order position in the codegen stage, 0 for WholeStageCodegen itself.
        pub region: i32,
        /// Name, such as `HashAggregate`.
        pub operator: String,
        /// The operator as the plan prints it.
        pub detail: String,
    }
}

table! {
    /// A node of the plan of a SQL execution. The rows with the highest version of an execution count.
    pub struct PlanRow in Plans {
        /// Spark application id.
        pub app: String,
        /// SQL execution id.
        pub execution: i64,
        /// Increased by each adaptive re-planning.
        pub version: i32,
        /// Pre-order position in the plan, 0 for the root.
        pub node: i32,
        /// The parent's position.
        pub parent: Option<i32>,
        /// Name, such as `HashAggregate`.
        pub operator: String,
        /// The operator as the plan prints it.
        pub detail: String,
        /// Codegen stage it is fused into.
        pub codegen_stage: Option<i32>,
        /// Its region id in that stage.
        pub region: Option<i32>,
        /// Its SQL metrics.
        pub metrics: Vec<Metric> => Metric,
    }
}

part! {
    /// A SQL metric of a plan node.
    pub struct Metric {
        /// Accumulator id; `accumulators` in `stages` has the values.
        pub id: i64,
        /// Name, such as `number of output rows`.
        pub name: String,
        /// Spark's metric type, such as `sum` or `nsTiming`.
        pub kind: String,
    }
}
