//! Frames of Spark's own code at which another plan node takes over, outside fused code.

use crate::rule::BoundaryKind;

/// Which plan node a boundary frame belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Boundary {
    /// The nearest node of the stage below the current one whose name starts so (a scan under the row
    /// conversion).
    Source(&'static [&'static str]),
    /// The exchange whose blocks are read; the current node if that is an exchange, which writes.
    ExchangeRead,
    /// The exchange whose blocks this stage writes.
    ExchangeWrite,
    /// The broadcast or subquery that this stage's rows are packed for.
    Collect,
    /// A node of this stage whose name contains one of these.
    Node(&'static [&'static str]),
    /// One of the operators in [`MAPPING`] that is not fused. It hands its function to an iterator, so no frame names its class;
    /// an iterator calls the frame.
    Mapped,
    /// The node of this stage that is named as the class is, `FooExec` for `Foo`.
    NamedAsClass,
}

use Boundary::{Collect, ExchangeRead, ExchangeWrite, Mapped, NamedAsClass, Node, Source};

impl Boundary {
    /// What kind of code it is.
    pub(crate) fn kind(self) -> BoundaryKind {
        match self {
            Source(_) => BoundaryKind::Scan,
            ExchangeRead => BoundaryKind::ShuffleRead,
            ExchangeWrite => BoundaryKind::ShuffleWrite,
            Collect => BoundaryKind::Collect,
            Node(_) | Mapped | NamedAsClass => BoundaryKind::Operator,
        }
    }
}

const SCAN: Boundary = Source(&["Scan", "BatchScan", "FileScan"]);
const WRITE: Boundary = Node(&[
    "Write",
    "Insert",
    "Append",
    "Overwrite",
    "CreateTable",
    "Execute",
]);
const PYTHON: Boundary = Node(&["Python", "Pandas", "Arrow"]);

/// Class name prefixes, the more special ones first. What ends in `E` stands for the operator's `…Exec` and its
/// `…EvaluatorFactory`, which iterates where it is not fused.
static RULES: &[(&str, Boundary)] = &[
    (
        "org.apache.spark.sql.execution.datasources.FileFormatWriter",
        WRITE,
    ),
    (
        "org.apache.spark.sql.execution.datasources.FileFormatDataWriter",
        WRITE,
    ),
    (
        "org.apache.spark.sql.execution.datasources.SingleDirectoryDataWriter",
        WRITE,
    ),
    (
        "org.apache.spark.sql.execution.datasources.BaseDynamicPartitionDataWriter",
        WRITE,
    ),
    (
        "org.apache.spark.sql.execution.datasources.DynamicPartitionData",
        WRITE,
    ),
    (
        "org.apache.spark.sql.execution.datasources.WriteFilesExec",
        WRITE,
    ),
    (
        "org.apache.spark.sql.execution.datasources.v2.DataWritingSparkTask",
        WRITE,
    ),
    (
        "org.apache.spark.sql.execution.datasources.v2.WritingSparkTask",
        WRITE,
    ),
    (
        "org.apache.spark.sql.execution.datasources.v2.V2TableWriteExec",
        WRITE,
    ),
    ("org.apache.spark.sql.execution.datasources.noop.", WRITE),
    (
        "org.apache.spark.sql.execution.datasources.parquet.ParquetWrite",
        WRITE,
    ),
    (
        "org.apache.spark.sql.execution.datasources.parquet.ParquetOutputWriter",
        WRITE,
    ),
    (
        "org.apache.spark.sql.execution.datasources.orc.OrcOutputWriter",
        WRITE,
    ),
    (
        "org.apache.spark.sql.execution.datasources.orc.OrcSerializer",
        WRITE,
    ),
    (
        "org.apache.spark.sql.execution.datasources.csv.CsvOutputWriter",
        WRITE,
    ),
    (
        "org.apache.spark.sql.execution.datasources.json.JsonOutputWriter",
        WRITE,
    ),
    (
        "org.apache.spark.sql.execution.datasources.text.TextOutputWriter",
        WRITE,
    ),
    (
        "org.apache.spark.sql.execution.datasources.xml.XmlOutputWriter",
        WRITE,
    ),
    ("org.apache.spark.sql.avro.AvroOutputWriter", WRITE),
    (
        "org.apache.spark.sql.execution.datasources.FileScanRDD",
        SCAN,
    ),
    (
        "org.apache.spark.sql.execution.datasources.RecordReaderIterator",
        SCAN,
    ),
    (
        "org.apache.spark.sql.execution.datasources.HadoopFile",
        SCAN,
    ),
    ("org.apache.spark.sql.execution.datasources.parquet.", SCAN),
    ("org.apache.spark.sql.execution.datasources.orc.", SCAN),
    ("org.apache.spark.sql.execution.datasources.csv.", SCAN),
    ("org.apache.spark.sql.execution.datasources.json.", SCAN),
    ("org.apache.spark.sql.execution.datasources.text.", SCAN),
    ("org.apache.spark.sql.execution.datasources.xml.", SCAN),
    (
        "org.apache.spark.sql.execution.datasources.binaryfile.",
        SCAN,
    ),
    (
        "org.apache.spark.sql.execution.datasources.jdbc.JDBCRDD",
        SCAN,
    ),
    (
        "org.apache.spark.sql.execution.datasources.v2.DataSourceRDD",
        SCAN,
    ),
    (
        "org.apache.spark.sql.execution.datasources.v2.FilePartitionReader",
        SCAN,
    ),
    (
        "org.apache.spark.sql.execution.datasources.v2.PartitionReader",
        SCAN,
    ),
    (
        "org.apache.spark.sql.execution.datasources.v2.PartitionIterator",
        SCAN,
    ),
    (
        "org.apache.spark.sql.execution.datasources.v2.MetricsRowIterator",
        SCAN,
    ),
    (
        "org.apache.spark.sql.execution.datasources.v2.MetricsBatchIterator",
        SCAN,
    ),
    (
        "org.apache.spark.sql.execution.datasources.v2.parquet.",
        SCAN,
    ),
    ("org.apache.spark.sql.execution.datasources.v2.orc.", SCAN),
    ("org.apache.spark.sql.execution.datasources.v2.csv.", SCAN),
    ("org.apache.spark.sql.execution.datasources.v2.json.", SCAN),
    ("org.apache.spark.sql.execution.datasources.v2.text.", SCAN),
    ("org.apache.spark.sql.execution.datasources.v2.jdbc.", SCAN),
    ("org.apache.spark.sql.execution.datasources.v2.state.", SCAN),
    ("org.apache.spark.sql.avro.", SCAN),
    ("org.apache.spark.rdd.HadoopRDD", SCAN),
    ("org.apache.spark.rdd.NewHadoopRDD", SCAN),
    ("org.apache.spark.sql.hive.HadoopTableReader", SCAN),
    ("org.apache.spark.sql.execution.DataSourceScanExec", SCAN),
    ("org.apache.spark.sql.execution.FileSourceScan", SCAN),
    (
        "org.apache.spark.sql.execution.UnsafeRowSerializerInstance",
        ExchangeRead,
    ),
    (
        "org.apache.spark.sql.execution.columnar.",
        Node(&["InMemoryTableScan", "InMemoryRelation"]),
    ),
    (
        "org.apache.spark.sql.execution.ShuffledRowRDD",
        ExchangeRead,
    ),
    ("org.apache.spark.rdd.ShuffledRDD", ExchangeRead),
    (
        "org.apache.spark.storage.ShuffleBlockFetcherIterator",
        ExchangeRead,
    ),
    (
        "org.apache.spark.shuffle.BlockStoreShuffleReader",
        ExchangeRead,
    ),
    (
        "org.apache.spark.shuffle.ShuffleWriteProcessor",
        ExchangeWrite,
    ),
    ("org.apache.spark.shuffle.sort.", ExchangeWrite),
    (
        "org.apache.spark.sql.execution.exchange.ShuffleExchangeExec",
        ExchangeWrite,
    ),
    (
        "org.apache.spark.sql.execution.exchange.BroadcastExchangeExec",
        Node(&["BroadcastExchange"]),
    ),
    ("org.apache.spark.sql.execution.window.", Node(&["Window"])),
    ("org.apache.spark.sql.execution.python.", PYTHON),
    ("org.apache.spark.api.python.", PYTHON),
    ("org.apache.spark.sql.execution.SortExec", Node(&["Sort"])),
    (
        "org.apache.spark.sql.execution.UnsafeExternalRowSorter",
        Node(&["Sort"]),
    ),
    (
        "org.apache.spark.sql.execution.GenerateExec",
        Node(&["Generate"]),
    ),
    (
        "org.apache.spark.sql.execution.ExpandExec",
        Node(&["Expand"]),
    ),
    (
        "org.apache.spark.sql.execution.ProjectE",
        Node(&["Project"]),
    ),
    ("org.apache.spark.sql.execution.FilterE", Node(&["Filter"])),
    (
        "org.apache.spark.sql.execution.SampleExec",
        Node(&["Sample"]),
    ),
    ("org.apache.spark.sql.execution.RangeExec", Node(&["Range"])),
    (
        "org.apache.spark.sql.execution.ColumnarToRowE",
        Node(&["ColumnarToRow"]),
    ),
    (
        "org.apache.spark.sql.execution.RowToColumnarE",
        Node(&["RowToColumnar"]),
    ),
    (
        "org.apache.spark.sql.execution.LocalTableScanExec",
        Node(&["LocalTableScan"]),
    ),
    (
        "org.apache.spark.sql.execution.CollectLimitExec",
        Node(&["CollectLimit"]),
    ),
    (
        "org.apache.spark.sql.execution.TakeOrderedAndProjectExec",
        Node(&["TakeOrderedAndProject"]),
    ),
    (
        "org.apache.spark.util.collection.Utils",
        Node(&["TakeOrderedAndProject"]),
    ),
    (
        "org.apache.spark.util.BoundedPriorityQueue",
        Node(&["TakeOrderedAndProject"]),
    ),
    (
        "org.apache.spark.sql.execution.aggregate.ObjectHashAggregate",
        Node(&["ObjectHashAggregate"]),
    ),
    (
        "org.apache.spark.sql.execution.aggregate.ObjectAggregation",
        Node(&["ObjectHashAggregate"]),
    ),
    (
        "org.apache.spark.sql.execution.aggregate.SortAggregate",
        Node(&["SortAggregate"]),
    ),
    (
        "org.apache.spark.sql.execution.aggregate.SortBasedAggregation",
        Node(&["SortAggregate", "Aggregate"]),
    ),
    (
        "org.apache.spark.sql.execution.aggregate.TungstenAggregation",
        Node(&["HashAggregate"]),
    ),
    (
        "org.apache.spark.sql.execution.aggregate.HashAggregateExec",
        Node(&["HashAggregate"]),
    ),
    (
        "org.apache.spark.sql.execution.joins.SortMergeJoin",
        Node(&["SortMergeJoin"]),
    ),
    (
        "org.apache.spark.sql.execution.joins.ShuffledHashJoinExec",
        Node(&["ShuffledHashJoin"]),
    ),
    (
        "org.apache.spark.sql.execution.joins.BroadcastHashJoinExec",
        Node(&["BroadcastHashJoin"]),
    ),
    (
        "org.apache.spark.sql.execution.joins.BroadcastNestedLoopJoinExec",
        Node(&["BroadcastNestedLoopJoin"]),
    ),
    (
        "org.apache.spark.sql.execution.joins.CartesianProductExec",
        Node(&["CartesianProduct"]),
    ),
    (
        "org.apache.spark.sql.execution.joins.HashJoin",
        Node(&["HashJoin"]),
    ),
    (
        "org.apache.spark.sql.execution.joins.UnsafeCartesianRDD",
        Node(&["CartesianProduct"]),
    ),
    (
        "org.apache.spark.sql.execution.MapElementsExec",
        Node(&["MapElements"]),
    ),
    (
        "org.apache.spark.sql.execution.MapPartitionsExec",
        Node(&["MapPartitions"]),
    ),
    (
        "org.apache.spark.sql.execution.DeserializeToObjectExec",
        Node(&["DeserializeToObject"]),
    ),
    (
        "org.apache.spark.sql.execution.SerializeFromObjectExec",
        Node(&["SerializeFromObject"]),
    ),
    (
        "org.apache.spark.sql.execution.MapGroupsExec",
        Node(&["MapGroups"]),
    ),
    (
        "org.apache.spark.sql.execution.FlatMapGroupsWithState",
        Node(&["FlatMapGroupsWithState"]),
    ),
    (
        "org.apache.spark.sql.execution.CoGroupExec",
        Node(&["CoGroup"]),
    ),
    (
        "org.apache.spark.sql.execution.streaming.state.ReadStateStoreRDD",
        Node(&["StateStoreRestore"]),
    ),
    (
        "org.apache.spark.sql.execution.streaming.state.StateStoreRDD",
        Node(&[
            "StateStoreSave",
            "StreamingDeduplicate",
            "StreamingGlobalLimit",
            "GroupsWithState",
        ]),
    ),
    ("org.apache.spark.sql.execution.SparkPlan", Collect),
    (
        "org.apache.spark.sql.catalyst.expressions.InterpretedUnsafeProjection",
        Mapped,
    ),
];

/// Operators that hand a function to an iterator.
pub(crate) const MAPPING: [&str; 2] = ["Project", "SerializeFromObject"];

/// The boundary at a generated function that an iterator calls.
pub(crate) static MAPPED: Boundary = Mapped;

/// Classes of operators that no rule names.
static OTHERS: Boundary = NamedAsClass;

/// The rule for a class.
pub(crate) fn of(class: &str) -> Option<&'static Boundary> {
    // Most frames are none of Spark's.
    if !class.starts_with("org.apache.spark.") {
        return None;
    }
    RULES
        .iter()
        .find(|(prefix, _)| class.starts_with(prefix))
        .map(|(_, boundary)| boundary)
        .or_else(|| operator_of(class).map(|_| &OTHERS))
}

/// The operator that a class of Spark implements, by its name: `Foo` for `…FooExec$$anon$1`.
pub(crate) fn operator_of(class: &str) -> Option<&str> {
    let path = class.strip_prefix("org.apache.spark.sql.execution.")?;
    let outer = path.split('$').next().unwrap_or(path);
    let simple = outer.rsplit('.').next().unwrap_or(outer);
    let operator = simple
        .strip_suffix("Exec")
        .or_else(|| simple.strip_suffix("EvaluatorFactory"))?;
    // Fused code tells its operators itself.
    (!operator.is_empty() && operator != "WholeStageCodegen").then_some(operator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_rules_come_before_general_ones() {
        for (index, (prefix, _)) in RULES.iter().enumerate() {
            let shadowed = RULES[..index]
                .iter()
                .find(|(earlier, _)| prefix.starts_with(earlier));
            assert_eq!(shadowed, None, "{prefix} is never reached");
        }
    }

    #[test]
    fn operators_that_are_not_fused_iterate_in_evaluators() {
        for class in [
            "org.apache.spark.sql.execution.FilterExec",
            "org.apache.spark.sql.execution.FilterEvaluatorFactory$FilterPartitionEvaluator",
        ] {
            assert_eq!(of(class), Some(&Node(&["Filter"])));
        }
    }

    #[test]
    fn operators_without_a_rule_are_told_by_their_class() {
        let execution = |class: &str| {
            operator_of(&format!("org.apache.spark.sql.execution.{class}")).map(str::to_owned)
        };
        assert_eq!(execution("UnionExec"), Some("Union".to_owned()));
        assert_eq!(
            execution("streaming.StateStoreSaveExec$$anon$3"),
            Some("StateStoreSave".to_owned())
        );
        assert_eq!(execution("WholeStageCodegenExec$$anon$1"), None);
        assert_eq!(execution("WholeStageCodegenEvaluatorFactory"), None);
        assert_eq!(execution("BufferedRowIterator"), None);
        assert_eq!(operator_of("org.apache.spark.executor.Executor"), None);
        assert_eq!(
            of("org.apache.spark.sql.execution.UnionExec"),
            Some(&NamedAsClass)
        );
        assert_eq!(
            of("org.apache.spark.sql.execution.SparkPlan$$Lambda/0x1"),
            Some(&Collect)
        );
    }

    #[test]
    fn readers_and_writers_of_files_differ() {
        assert_eq!(
            of("org.apache.spark.sql.execution.datasources.FileScanRDD$$anon$1"),
            Some(&SCAN)
        );
        assert_eq!(
            of("org.apache.spark.sql.execution.datasources.FileFormatWriter$"),
            Some(&WRITE)
        );
        assert_eq!(
            of("org.apache.spark.sql.execution.datasources.csv.CsvOutputWriter"),
            Some(&WRITE)
        );
        assert_eq!(
            of("org.apache.spark.sql.execution.datasources.csv.CSVFileFormat"),
            Some(&SCAN)
        );
        assert_eq!(
            of("org.apache.spark.sql.execution.datasources.SomethingElse"),
            None
        );
        assert_eq!(of("java.lang.String"), None);
    }
}
