import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantLock;

/** Locks of the whole JVM that queries take by SQL's {@code reflect}; see {@code locks.py}. */
public final class Locks {
    private static final Map<String, ReentrantLock> LOCKS = new ConcurrentHashMap<>();
    private static final Map<String, Object> MONITORS = new ConcurrentHashMap<>();
    private static volatile boolean stopped;

    private Locks() {}

    /** From now on queries end soon, or no longer. */
    public static void stop(boolean now) {
        stopped = now;
    }

    /** Whether a query has taken a lock so far. */
    public static boolean isTaken(String lock) {
        return LOCKS.containsKey(lock) || MONITORS.containsKey(lock);
    }

    /**
     * Takes locks, separated by spaces, one inside the other, and computes or sleeps for some ms
     * while it holds them. Names that begin with {@code monitor} are those of monitors.
     */
    public static long hold(String locks, int computeMillis, int sleepMillis, long row)
            throws InterruptedException {
        int end = locks.indexOf(' ');
        String first = end < 0 ? locks : locks.substring(0, end);
        String rest = end < 0 ? "" : locks.substring(end + 1);
        if (stopped) {
            return row;
        }
        if (first.isEmpty()) {
            work(computeMillis);
            Thread.sleep(sleepMillis);
        } else if (first.startsWith("monitor")) {
            synchronized (MONITORS.computeIfAbsent(first, name -> new Object())) {
                hold(rest, computeMillis, sleepMillis, row);
            }
        } else {
            ReentrantLock lock = LOCKS.computeIfAbsent(first, name -> new ReentrantLock());
            lock.lock();
            try {
                hold(rest, computeMillis, sleepMillis, row);
            } finally {
                lock.unlock();
            }
        }
        return row;
    }

    /** The same, and then leaves the locks to others for some ms. */
    public static long holdOften(String locks, int computeMillis, int sleepMillis, long row)
            throws InterruptedException {
        hold(locks, computeMillis, sleepMillis, row);
        Thread.sleep(stopped ? 0 : 5);
        return row;
    }

    private static double work(int millis) {
        double sum = 0;
        for (long end = System.nanoTime() + millis * 1_000_000L; System.nanoTime() < end; ) {
            for (int number = 0; number < 1000; number++) {
                sum += Math.sqrt(number);
            }
        }
        return sum;
    }
}
