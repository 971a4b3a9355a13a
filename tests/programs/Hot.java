import java.io.File;
import java.io.FileWriter;
import java.io.IOException;
import java.io.Writer;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.time.Instant;

/**
 * A program with a known profile: `sum` has twice the CPU time of `mix` at any time, in any state of compilation. Both spend it
 * in the lines marked below, and nothing else takes much. Argument: milliseconds of CPU time, so that a busy machine does not
 * reduce the work. With `-Dtruth=FILE`, writes lines of ns since the epoch, ns in `sum` and ns in `mix`, and ends early once
 * `FILE.stop` exists.
 */
public class Hot {
    private static final ThreadMXBean CPU = ManagementFactory.getThreadMXBean();
    static volatile long sink;

    static double sum(double x) {
        for (int i = 0; i < 600; i++) {
            x = Math.sqrt(x + i) / 1.0001; // HOT sum
        }
        return x;
    }

    static double mix(double x) {
        for (int i = 0; i < 300; i++) {
            x = Math.sqrt(x + 2 * i) / 1.0001; // HOT mix
        }
        return x;
    }

    /** Runs the method that is behind its share, 100 times for each reading of the clock, so that the clock costs little. */
    static double work(double x, long end, Writer truth, File stop) throws IOException {
        long inSum = 0;
        long inMix = 0;
        long written = 0;
        boolean stopped = false;
        long now = CPU.getCurrentThreadCpuTime();
        while (!stopped && now < end) {
            long from = now;
            if (inSum <= 2 * inMix) {
                for (int i = 0; i < 100; i++) {
                    x = sum(x);
                }
                now = CPU.getCurrentThreadCpuTime();
                inSum += now - from;
            } else {
                for (int i = 0; i < 100; i++) {
                    x += mix(x);
                }
                now = CPU.getCurrentThreadCpuTime();
                inMix += now - from;
            }
            if (truth != null && System.nanoTime() - written > 20_000_000L) {
                written = System.nanoTime();
                Instant instant = Instant.now();
                long epoch = instant.getEpochSecond() * 1_000_000_000L + instant.getNano();
                truth.write(epoch + " " + inSum + " " + inMix + "\n");
                truth.flush();
                stopped = stop.exists();
            }
        }
        return x;
    }

    public static void main(String[] args) throws IOException {
        String file = System.getProperty("truth");
        long end = CPU.getCurrentThreadCpuTime() + Long.parseLong(args[0]) * 1_000_000L;
        double x = 1;
        if (file != null) {
            try (Writer truth = new FileWriter(file)) {
                x = work(x, end, truth, new File(file + ".stop"));
            }
        } else {
            x = work(x, end, null, null);
        }
        sink = (long) x;
        System.out.println("true profile: sum " + args[0]);
    }
}
