import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;

/** Runs parts in turns and prints the CPU time of each: `truth NAME NANOSECONDS`. */
public class Truth {
    private static final ThreadMXBean CPU = ManagementFactory.getThreadMXBean();
    private static final Map<String, Long> SPENT = new TreeMap<>();
    static volatile long sink;

    /** Work with a result, so that no compiler removes it. */
    interface Part {
        long run() throws Exception;
    }

    /** CPU time of this thread, ns. */
    static long now() {
        return CPU.getCurrentThreadCpuTime();
    }

    static synchronized void spent(String name, long ns) {
        SPENT.merge(name, ns, Long::sum);
    }

    /** Runs a part once. */
    static void once(String name, Part part) throws Exception {
        long from = now();
        sink += part.run();
        spent(name, now() - from);
    }

    /**
     * Runs parts, each given by its name and its code, in turns until they have used this CPU time. A turn has one to four
     * runs, at random, so that turns do not fall into step with the ticks of a timer.
     */
    static void turns(long millis, Object... parts) throws Exception {
        Random random = new Random(millis);
        long end = now() + millis * 1_000_000L;
        while (now() < end) {
            for (int i = 0; i < parts.length; i += 2) {
                for (int runs = 1 + random.nextInt(4); runs > 0; runs--) {
                    once((String) parts[i], (Part) parts[i + 1]);
                }
            }
        }
    }

    static void print() {
        SPENT.forEach((name, ns) -> System.out.println("truth " + name + " " + ns));
    }
}
