package io.unfuse.spark.events;

import com.sun.management.ThreadMXBean;

import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.lang.management.MemoryUsage;
import java.util.HashMap;
import java.util.Map;

/** Which threads allocate on the heap, and how full it is after a collection. */
final class Heap {
    private static final ThreadMXBean THREADS = threads();

    /** Bytes that each living thread had allocated at the last look. */
    private Map<Long, Long> allocated = new HashMap<>();

    private static ThreadMXBean threads() {
        try {
            ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
            return threads.isThreadAllocatedMemorySupported()
                            && threads.isThreadAllocatedMemoryEnabled()
                    ? threads
                    : null;
        } catch (ClassCastException | LinkageError | UnsupportedOperationException e) {
            // Another JVM than HotSpot, or one without the module jdk.management.
            return null;
        }
    }

    /** Bytes that the calling thread has allocated so far; 0 if the JVM does not count them. */
    static long allocatedByCurrentThread() {
        return THREADS == null
                ? 0
                : Math.max(THREADS.getThreadAllocatedBytes(Thread.currentThread().getId()), 0);
    }

    /** The same for another thread; 0 if it has ended. */
    static long allocatedBy(long thread) {
        return THREADS == null ? 0 : Math.max(THREADS.getThreadAllocatedBytes(thread), 0);
    }

    /**
     * Bytes that the living threads have allocated since the last call. A thread that has begun
     * since then counts from its start, and one that has ended does not count.
     */
    long allocatedSinceLastLook() {
        if (THREADS == null) {
            return 0;
        }
        long[] ids = THREADS.getAllThreadIds();
        long[] bytes = THREADS.getThreadAllocatedBytes(ids);
        Map<Long, Long> now = new HashMap<>(2 * ids.length);
        long sum = 0;
        for (int at = 0; at < ids.length; at++) {
            if (bytes[at] > 0) {
                now.put(ids[at], bytes[at]);
                sum += Math.max(bytes[at] - allocated.getOrDefault(ids[at], 0L), 0);
            }
        }
        allocated = now;
        return sum;
    }

    /**
     * Bytes of the heap that were in use after the last collection of each of its parts; 0 before
     * the first one.
     */
    static long liveBytes() {
        long live = 0;
        for (MemoryPoolMXBean pool : ManagementFactory.getMemoryPoolMXBeans()) {
            MemoryUsage after =
                    pool.getType() == MemoryType.HEAP ? pool.getCollectionUsage() : null;
            live += after == null ? 0 : after.getUsed();
        }
        return live;
    }
}
