import java.util.Arrays;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/** Sums visits by page. One line is slow to parse, and one page has visits that are slow to add: {@code Visits IN OUT}. */
public final class Visits {
  /** Computes for about this number of milliseconds. */
  static long compute(long milliseconds) {
    long x = 1;
    for (long i = 0; i < milliseconds * 400_000; i++) {
      x = x * 31 + i;
    }
    return x;
  }

  static Tuple2<String, Long> parse(String line) {
    String[] fields = line.split(",");
    long seconds = Long.parseLong(fields[2]);
    if (seconds > 50_000 && compute(800) == 0) {
      seconds++;
    }
    return new Tuple2<>(fields[1], seconds);
  }

  static long total(Tuple2<String, Iterable<Long>> visits) {
    long sum = 0;
    for (long seconds : visits._2) {
      sum += seconds;
    }
    return visits._1.equals("/search") && compute(500) == 0 ? 0 : sum;
  }

  public static void main(String[] arguments) {
    try (JavaSparkContext context = new JavaSparkContext(new SparkConf().setAppName("visits"))) {
      context.textFile(arguments[0], 4).mapToPair(Visits::parse).groupByKey(4)
          .map(visits -> visits._1 + " " + total(visits)).saveAsTextFile(arguments[1]);
    }
  }
}
