import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.spark.SparkConf;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.api.java.function.PairFunction;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.storage.StorageLevel;
import scala.Tuple2;

/** Programs in which one record takes long: {@code Records CASE INPUT OUTPUT}. */
public final class Records {
    private static final long SLOW_MILLIS = 1500;

    /** Uses {@code SLOW_MILLIS} of CPU time, on a busy machine too. */
    static void work() {
        ThreadMXBean cpu = ManagementFactory.getThreadMXBean();
        long until = cpu.getCurrentThreadCpuTime() + SLOW_MILLIS * 1_000_000;
        long x = 1;
        while (cpu.getCurrentThreadCpuTime() < until) {
            for (int i = 0; i < 100_000; i++) {
                x = x * 31 + i;
            }
        }
        if (x == 0) {
            System.out.println(x);
        }
    }

    static String slow(String line) {
        if (line.contains("needle")) {
            work();
        }
        return line;
    }

    public static void main(String[] arguments) throws IOException {
        SparkConf conf = new SparkConf().setAppName("records");
        switch (arguments[0]) {
            case "sums":
                sums(conf, arguments[1], arguments[2]);
                break;
            case "cached":
                cached(conf, arguments[1], arguments[2]);
                break;
            case "retried":
                retried(conf, arguments[1], arguments[2]);
                break;
            case "sorted":
                sorted(conf, arguments[1], arguments[2]);
                break;
            case "sql":
                sql(conf, arguments[1], arguments[2]);
                break;
            default:
                throw new IllegalArgumentException(arguments[0]);
        }
    }

    private static PairFunction<String, String, Integer> pair() {
        return line -> {
            String[] fields = slow(line).split(",");
            return new Tuple2<>(fields[1], Integer.parseInt(fields[2]));
        };
    }

    /** A slow line before the shuffle, and a slow key after it. */
    private static void sums(SparkConf conf, String in, String out) {
        try (JavaSparkContext spark = new JavaSparkContext(conf)) {
            JavaPairRDD<String, Integer> pairs = spark.textFile(in, 4).mapToPair(pair());
            pairs.reduceByKey(Integer::sum, 3).map(sum -> {
                if (sum._1.equals("k7")) {
                    work();
                }
                return sum._1 + "=" + sum._2;
            }).saveAsTextFile(out);
        }
    }

    /** The slow line is before a cache, a flat map and a join without aggregation. */
    private static void cached(SparkConf conf, String in, String out) {
        try (JavaSparkContext spark = new JavaSparkContext(conf)) {
            JavaRDD<String> lines = spark.textFile(in, 4).map(Records::slow).persist(StorageLevel.MEMORY_ONLY());
            lines.count();
            JavaPairRDD<String, Integer> pairs = lines
                    .flatMap((FlatMapFunction<String, String>) line -> Arrays.asList(line, line).iterator())
                    .mapToPair(line -> new Tuple2<>(line.split(",")[1], 1));
            JavaPairRDD<String, String> names = spark.parallelize(Arrays.asList("k1", "k2", "needle"), 2)
                    .mapToPair(key -> new Tuple2<>(key, key.toUpperCase()));
            pairs.join(names, 3).map(both -> both._1 + both._2._2).distinct().saveAsTextFile(out);
        }
    }

    /** The task that reads line 1 fails once, after it has read another line. */
    private static void retried(SparkConf conf, String in, String out) {
        try (JavaSparkContext spark = new JavaSparkContext(conf)) {
            spark.textFile(in, 4).map(line -> {
                if (TaskContext.get().attemptNumber() == 0 && line.startsWith("1,")) {
                    throw new IllegalStateException("the first attempt fails");
                }
                return slow(line);
            }).mapToPair(pair()).reduceByKey(Integer::sum, 3).saveAsTextFile(out);
        }
    }

    /** The function that is slow for one line follows a sort within the partition. */
    private static void sorted(SparkConf conf, String in, String out) {
        try (JavaSparkContext spark = new JavaSparkContext(conf)) {
            spark.textFile(in, 4).mapPartitions(lines -> {
                List<String> all = new ArrayList<>();
                lines.forEachRemaining(all::add);
                Collections.sort(all);
                return all.iterator();
            }).map(Records::slow).saveAsTextFile(out);
        }
    }

    /** An SQL function takes long for one row of a Parquet file. */
    private static void sql(SparkConf conf, String in, String out) throws IOException {
        try (SparkSession spark = SparkSession.builder().config(conf).getOrCreate()) {
            spark.read().csv(in).toDF("number", "name", "amount").write().parquet(out + ".parquet");
            spark.udf().register("slow", (UDF1<String, String>) Records::slow, DataTypes.StringType);
            spark.read().parquet(out + ".parquet").createOrReplaceTempView("lines");
            spark.sql("select slow(name) name, count(*) n from lines where cast(amount as int) >= 0 group by 1")
                    .write().csv(out);
        }
    }
}
