import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;

import java.util.ArrayList;
import java.util.List;

/** What queries do in a known amount; SQL calls it by {@code reflect}. */
public final class Neighbours {
    private static final int CHUNK = 1000;
    private static final ThreadLocal<Ring> RING = ThreadLocal.withInitial(Neighbours::ring);

    private Neighbours() {}

    private static Ring ring() {
        // Threads outlive their tasks.
        TaskContext.get()
                .addTaskCompletionListener((TaskCompletionListener) task -> RING.remove());
        return new Ring();
    }

    /** What a task has allocated last. */
    private static final class Ring {
        private final List<byte[]> chunks = new ArrayList<>();
        private int next;

        void add(int most) {
            if (chunks.size() < most) {
                chunks.add(new byte[CHUNK]);
            } else {
                next = (next + 1) % most;
                chunks.set(next, new byte[CHUNK]);
            }
        }
    }

    /** Computes and then sleeps, ms. */
    public static long busy(int computeMillis, int sleepMillis, long row) throws InterruptedException {
        double sum = 0;
        for (long end = System.nanoTime() + computeMillis * 1_000_000L; System.nanoTime() < end; ) {
            sum += work(1000);
        }
        Thread.sleep(sleepMillis);
        return sum < 0 ? 0 : row;
    }

    /** Computes as much each time, whatever else runs. */
    public static long spin(int thousands, int sleepMillis, long row) throws InterruptedException {
        Thread.sleep(sleepMillis);
        return work(1000L * thousands) < 0 ? 0 : row;
    }

    /** Allocates for some ms, of which it keeps the last megabytes, and then sleeps, ms. */
    public static long allocate(int allocateMillis, int keptMegabytes, int sleepMillis, long row)
            throws InterruptedException {
        Ring ring = RING.get();
        for (long end = System.nanoTime() + allocateMillis * 1_000_000L; System.nanoTime() < end; ) {
            for (int number = 0; number < 100; number++) {
                ring.add(keptMegabytes * 1_000_000 / CHUNK);
            }
        }
        Thread.sleep(sleepMillis);
        return row;
    }

    /** Allocates a number of megabytes, of which it keeps the last ones. */
    public static long allocateAll(int megabytes, int keptMegabytes, long row) {
        Ring ring = RING.get();
        for (long number = 0; number < megabytes * 1_000_000L / CHUNK; number++) {
            ring.add(keptMegabytes * 1_000_000 / CHUNK);
        }
        return row;
    }

    private static double work(long times) {
        double sum = 0;
        for (long number = 0; number < times; number++) {
            sum += Math.sqrt(number);
        }
        return sum;
    }
}
