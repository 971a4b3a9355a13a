import java.util.HashMap;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/**
 * Programs in the manner of PerfDebug's: {@code Skewed PROGRAM INPUT OUTPUT SLOW MILLIS}. The line whose first field is SLOW takes so many
 * milliseconds longer. Prints what the job took, ms.
 */
public final class Skewed {

    /** Fields of a line; the line that is to be slow is. */
    private static String[] fields(String line, String slow, long millis) {
        String[] fields = line.split(",");
        if (fields[0].equals(slow)) {
            work(millis);
        }
        return fields;
    }

    private static void work(long millis) {
        long until = System.nanoTime() + millis * 1_000_000;
        while (System.nanoTime() < until) {
            Thread.onSpinWait();
        }
    }

    public static void main(String[] arguments) {
        String slow = arguments[3];
        long millis = Long.parseLong(arguments[4]);
        try (JavaSparkContext spark = new JavaSparkContext(new SparkConf().setAppName(arguments[0]))) {
            JavaRDD<String> lines = spark.textFile(arguments[1], 8);
            long begun = System.nanoTime();
            program(arguments[0], lines.map(line -> fields(line, slow, millis))).saveAsTextFile(arguments[2]);
            System.out.println("took " + (System.nanoTime() - begun) / 1_000_000);
        }
    }

    private static JavaRDD<?> program(String name, JavaRDD<String[]> lines) {
        switch (name) {
            case "movies":
                return movies(lines);
            case "students":
                return students(lines);
            case "weather":
                return weather(lines);
            case "taxi":
                return taxi(lines);
            default:
                throw new IllegalArgumentException(name);
        }
    }

    /** How often each movie got which rating. */
    private static JavaRDD<?> movies(JavaRDD<String[]> lines) {
        return lines.mapToPair(f -> new Tuple2<>(f[1] + " " + f[2], 1)).reduceByKey(Integer::sum, 8).map(Tuple2::toString);
    }

    /** Mean mark of each year. */
    private static JavaRDD<?> students(JavaRDD<String[]> lines) {
        JavaPairRDD<String, Tuple2<Long, Long>> marks = lines
                .mapToPair(f -> new Tuple2<>(f[1], new Tuple2<>(Long.parseLong(f[2]), 1L)));
        return marks.reduceByKey((a, b) -> new Tuple2<>(a._1 + b._1, a._2 + b._2), 8)
                .map(sum -> sum._1 + "=" + (double) sum._2._1 / sum._2._2);
    }

    /** The largest difference in snow of each state: by day, and by year. */
    private static JavaRDD<?> weather(JavaRDD<String[]> lines) {
        JavaPairRDD<String, Double> snow = lines.flatMapToPair(f -> {
            double mm = f[3].endsWith("ft") ? 304.8 * Double.parseDouble(f[3].substring(0, f[3].length() - 2))
                    : Double.parseDouble(f[3].substring(0, f[3].length() - 2));
            return java.util.Arrays.asList(new Tuple2<>(f[1] + " " + f[2].substring(5), mm),
                    new Tuple2<>(f[1] + " " + f[2].substring(0, 4), mm)).iterator();
        });
        return snow.groupByKey(8).mapValues(all -> {
            double least = Double.MAX_VALUE;
            double most = -Double.MAX_VALUE;
            for (double mm : all) {
                least = Math.min(least, mm);
                most = Math.max(most, mm);
            }
            return most - least;
        }).map(Tuple2::toString);
    }

    /** Mean cost of a ride by borough; the rides whose borough is not in a table of squares need the polygons. */
    private static JavaRDD<?> taxi(JavaRDD<String[]> lines) {
        Map<String, String> squares = new HashMap<>();
        for (int x = 0; x < 20; x++) {
            for (int y = 0; y < 20; y++) {
                squares.put(x + " " + y, "borough " + (x / 8 + 3 * (y / 8)));
            }
        }
        JavaPairRDD<String, Tuple2<Double, Long>> costs = lines.mapToPair(f -> new Tuple2<>(
                borough(squares, Double.parseDouble(f[1]), Double.parseDouble(f[2])), new Tuple2<>(Double.parseDouble(f[3]), 1L)));
        return costs.reduceByKey((a, b) -> new Tuple2<>(a._1 + b._1, a._2 + b._2), 8)
                .map(sum -> sum._1 + "=" + sum._2._1 / sum._2._2);
    }

    private static String borough(Map<String, String> squares, double x, double y) {
        String borough = squares.get((int) x + " " + (int) y);
        return borough != null ? borough : polygons(x, y);
    }

    /** Outside the table: which of many polygons holds the point. */
    private static String polygons(double x, double y) {
        int inside = 0;
        for (int polygon = 0; polygon < 2000; polygon++) {
            boolean in = false;
            for (int i = 0; i < 200; i++) {
                double a = Math.sin(polygon + i);
                double b = Math.cos(polygon + i + 1);
                in ^= (a > y / 40) != (b > y / 40) && x / 40 < (b - a) * y + a;
            }
            inside += in ? 1 : 0;
        }
        return "borough " + inside % 5;
    }
}
