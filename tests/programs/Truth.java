import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;

/** Runs parts in turns and says how much CPU time each had: `truth NAME NANOSECONDS`. */
public class Truth {
    private static final ThreadMXBean CPU = ManagementFactory.getThreadMXBean();
    private static final Map<String, Long> SPENT = new TreeMap<>();
    static volatile long sink;

    /** Work that leaves something behind, so that no compiler drops it. */
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

    /** A part once. */
    static void once(String name, Part part) throws Exception {
        long from = now();
        sink += part.run();
        spent(name, now() - from);
    }

    /**
     * Names and parts, in turns, until they have had this much CPU time. A turn is of one to four runs, so that turns and a
     * timer's ticks do not keep step.
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
