package marks;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

import org.apache.spark.api.java.function.MapFunction;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.expressions.MutableAggregationBuffer;
import org.apache.spark.sql.expressions.UserDefinedAggregateFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * Work whose operator is known. One place of one plan calls each function; it computes for a while and adds up the CPU time
 * that it used. A frame of its class on the stack of a sample says which operator did the work.
 */
public final class Marks {
    private static final ThreadMXBean CPU = ManagementFactory.getThreadMXBean();
    /** CPU time, ns, by the name of the function. */
    private static final Map<String, AtomicLong> SPENT = new ConcurrentHashMap<>();
    /** No chain of rounds is likely to end in it, but the compiler cannot know. */
    private static volatile long never = 0x5eed_5eed_5eed_5eedL;

    private Marks() {
    }

    /** CPU time of each function since the last call, s. */
    public static Map<String, Double> spent() {
        Map<String, Double> seconds = new TreeMap<>();
        SPENT.forEach((name, ns) -> seconds.put(name, ns.getAndSet(0) / 1e9));
        return seconds;
    }

    /** Makes a view that applies a function to each value of the only column of a query. */
    public static void map(SparkSession spark, String source, String view) {
        spark.sql(source).as(Encoders.LONG()).map(new MapElements(), Encoders.LONG()).createOrReplaceTempView(view);
    }

    /** About 50 µs of arithmetic; returns the value. */
    private static Long spin(String name, Long value) {
        long from = CPU.getCurrentThreadCpuTime();
        long x = value;
        for (int i = 0; i < 40_000; i++) {
            x = (x ^ x >>> 31) * 0x9e3779b97f4a7c15L;
        }
        if (x == never) {
            throw new IllegalStateException();
        }
        SPENT.computeIfAbsent(name, key -> new AtomicLong()).addAndGet(CPU.getCurrentThreadCpuTime() - from);
        return value;
    }

    // Functions for SQL: mark_NAME. Spark takes only classes that implement the interface themselves.

    public static final class Filter implements UDF1<Long, Long> {
        @Override
        public Long call(Long value) {
            return spin("Filter", value);
        }
    }

    public static final class Project implements UDF1<Long, Long> {
        @Override
        public Long call(Long value) {
            return spin("Project", value);
        }
    }

    public static final class Generate implements UDF1<Long, Long> {
        @Override
        public Long call(Long value) {
            return spin("Generate", value);
        }
    }

    public static final class Expand implements UDF1<Long, Long> {
        @Override
        public Long call(Long value) {
            return spin("Expand", value);
        }
    }

    public static final class BroadcastKey implements UDF1<Long, Long> {
        @Override
        public Long call(Long value) {
            return spin("BroadcastKey", value);
        }
    }

    public static final class BroadcastCondition implements UDF1<Long, Long> {
        @Override
        public Long call(Long value) {
            return spin("BroadcastCondition", value);
        }
    }

    public static final class ShuffledCondition implements UDF1<Long, Long> {
        @Override
        public Long call(Long value) {
            return spin("ShuffledCondition", value);
        }
    }

    public static final class MergeCondition implements UDF1<Long, Long> {
        @Override
        public Long call(Long value) {
            return spin("MergeCondition", value);
        }
    }

    public static final class LoopCondition implements UDF1<Long, Long> {
        @Override
        public Long call(Long value) {
            return spin("LoopCondition", value);
        }
    }

    public static final class HashAggregate implements UDF1<Long, Long> {
        @Override
        public Long call(Long value) {
            return spin("HashAggregate", value);
        }
    }

    public static final class SortAggregate implements UDF1<Long, Long> {
        @Override
        public Long call(Long value) {
            return spin("SortAggregate", value);
        }
    }

    public static final class ObjectAggregate implements UDF1<Long, Long> {
        @Override
        public Long call(Long value) {
            return spin("ObjectAggregate", value);
        }
    }

    /** A sum. It is an aggregate function because Spark computes the arguments of window functions in a projection. */
    public static final class Window extends UserDefinedAggregateFunction {
        private static final StructType LONG = new StructType().add("value", DataTypes.LongType);

        @Override
        public StructType inputSchema() {
            return LONG;
        }

        @Override
        public StructType bufferSchema() {
            return LONG;
        }

        @Override
        public DataType dataType() {
            return DataTypes.LongType;
        }

        @Override
        public boolean deterministic() {
            return true;
        }

        @Override
        public void initialize(MutableAggregationBuffer buffer) {
            buffer.update(0, 0L);
        }

        @Override
        public void update(MutableAggregationBuffer buffer, Row input) {
            buffer.update(0, buffer.getLong(0) + spin("Window", input.getLong(0)));
        }

        @Override
        public void merge(MutableAggregationBuffer buffer, Row other) {
            buffer.update(0, buffer.getLong(0) + other.getLong(0));
        }

        @Override
        public Object evaluate(Row buffer) {
            return buffer.getLong(0);
        }
    }

    public static final class WindowArgument implements UDF1<Long, Long> {
        @Override
        public Long call(Long value) {
            return spin("WindowArgument", value);
        }
    }

    public static final class Sort implements UDF1<Long, Long> {
        @Override
        public Long call(Long value) {
            return spin("Sort", value);
        }
    }

    public static final class Exchange implements UDF1<Long, Long> {
        @Override
        public Long call(Long value) {
            return spin("Exchange", value);
        }
    }

    public static final class TopK implements UDF1<Long, Long> {
        @Override
        public Long call(Long value) {
            return spin("TopK", value);
        }
    }

    public static final class MapElements implements MapFunction<Long, Long> {
        @Override
        public Long call(Long value) {
            return spin("MapElements", value);
        }
    }

    /** Reads a {@link MarkedTable}. */
    static final class Scan extends MarkedTable.Reader {
        @Override
        Long make(long value) {
            return spin("Scan", value);
        }
    }

    /** Writes a {@link MarkedTable}. */
    static final class Write extends MarkedTable.Writer {
        @Override
        public void write(InternalRow row) {
            spin("Write", row.getLong(0));
        }
    }
}
