import java.io.File;
import java.io.FileWriter;
import java.io.IOException;
import java.io.Writer;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.time.Instant;

/**
 * Its true profile: `sum` about twice `mix`; both in lines marked below, nothing else of weight.
 * Arguments: milliseconds and, if it is to work no less on a busy machine, rounds at least. With `-Dtruth=FILE` it measures
 * the CPU time that both have had and writes it to the file: ns since the epoch, ns in `sum`, ns in `mix`; and it ends early
 * once `FILE.stop` exists.
 */
public class Hot {
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

    /** Both in turns, many times each, so that the clock between them costs next to nothing. */
    static double measured(double x, long end, Writer truth, File stop) throws IOException {
        ThreadMXBean cpu = ManagementFactory.getThreadMXBean();
        long inSum = 0;
        long inMix = 0;
        long written = 0;
        boolean stopped = false;
        while (!stopped && System.nanoTime() < end) {
            long from = cpu.getCurrentThreadCpuTime();
            for (int i = 0; i < 100; i++) {
                x = sum(x);
            }
            long between = cpu.getCurrentThreadCpuTime();
            for (int i = 0; i < 100; i++) {
                x += mix(x);
            }
            inMix += cpu.getCurrentThreadCpuTime() - between;
            inSum += between - from;
            if (System.nanoTime() - written > 20_000_000L) {
                written = System.nanoTime();
                Instant now = Instant.now();
                long epoch = now.getEpochSecond() * 1_000_000_000L + now.getNano();
                truth.write(epoch + " " + inSum + " " + inMix + "\n");
                truth.flush();
                stopped = stop.exists();
            }
        }
        return x;
    }

    public static void main(String[] args) throws IOException {
        String file = System.getProperty("truth");
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000L;
        long least = args.length > 1 ? Long.parseLong(args[1]) : 0;
        double x = 1;
        if (file != null) {
            try (Writer truth = new FileWriter(file)) {
                x = measured(x, end, truth, new File(file + ".stop"));
            }
        } else {
            for (long round = 0; round < least || System.nanoTime() < end; round++) {
                x = sum(x);
                x += mix(x);
            }
        }
        sink = (long) x;
        System.out.println("true profile: sum " + args[0]);
    }
}
