package io.unfuse.spark.events;

import io.unfuse.spark.common.Agent;
import io.unfuse.spark.common.Json;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.AbstractOwnableSynchronizer;
import java.util.concurrent.locks.LockSupport;

/**
 * Reports which threads hold the monitors and locks that running tasks wait for.
 *
 * <p>A thread of this class looks at the tasks' threads at random times. Each look stands for the
 * time since the one before. Only for tasks that wait does it ask the JVM for the owner of their
 * lock, without stacks, so that no thread has to stop for the answer.
 */
final class LockMeter implements Runnable {
    /** Bounds of the time between two looks, ns. */
    private static final long SHORTEST_NANOS = 10_000_000;

    private static final long LONGEST_NANOS = 30_000_000;

    /** Time between two looks while no task runs, ns. */
    private static final long IDLE_NANOS = 100_000_000;

    /** Maximum time for which a look stands, ns: the host may have been suspended. */
    private static final long MOST_NANOS = 1_000_000_000;

    /** The time between two looks is at least this many times the CPU time of a look. */
    private static final long REST = 200;

    /** Maximum of that time, ns: the first looks load classes. */
    private static final long MOST_REST_NANOS = 300_000_000;

    /** Maximum number of locks that are followed from a waiting task to the last holder. */
    private static final int MOST_HOPS = 8;

    /** Maximum number of pairs of a waiting task and a holder in one event. */
    private static final int MOST_PAIRS = 500;

    private static final int MOST_CHARACTERS = 200;

    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private final Collection<TaskMeter.Metered> tasks;
    private final long heartbeatNanos;
    private final Thread thread = new Thread(this, "unfuse-locks");
    private volatile boolean stopped;
    private long lastLook = System.nanoTime();

    /** What was found since the last event. */
    private final Map<List<Object>, Wait> waits = new HashMap<>();

    /**
     * @param tasks the tasks that run now, a concurrent collection
     */
    LockMeter(Collection<TaskMeter.Metered> tasks, long heartbeatNanos) {
        this.tasks = tasks;
        this.heartbeatNanos = heartbeatNanos;
        thread.setDaemon(true);
    }

    void start() {
        thread.start();
    }

    /** Reports the remaining data and stops the thread. */
    void stop(int millis) throws InterruptedException {
        stopped = true;
        LockSupport.unpark(thread);
        thread.join(millis);
    }

    @Override
    public void run() {
        try {
            long lastSent = System.nanoTime();
            long rest = 0;
            while (!stopped) {
                long pause = ThreadLocalRandom.current().nextLong(SHORTEST_NANOS, LONGEST_NANOS);
                LockSupport.parkNanos(tasks.isEmpty() ? IDLE_NANOS : Math.max(pause, rest));
                if (Agent.metersResources()) {
                    long before = THREADS.getCurrentThreadCpuTime();
                    look();
                    long took = THREADS.getCurrentThreadCpuTime() - before;
                    rest = Math.min(REST * took, MOST_REST_NANOS);
                } else {
                    lastLook = System.nanoTime();
                }
                long now = System.nanoTime();
                if (now - lastSent >= heartbeatNanos || waits.size() >= MOST_PAIRS) {
                    lastSent = now;
                    send();
                }
            }
            send();
        } catch (Throwable error) {
            Agent.failed("reading who holds locks", error);
        }
    }

    private void look() {
        long now = System.nanoTime();
        long nanos = Math.min(now - lastLook, MOST_NANOS);
        lastLook = now;
        Map<Long, TaskMeter.Metered> waiting = new HashMap<>();
        for (TaskMeter.Metered task : tasks) {
            if (task.endNanos == 0 && waitsForLock(task.thread)) {
                waiting.put(task.threadId, task);
            }
        }
        if (!waiting.isEmpty()) {
            Map<Long, TaskMeter.Metered> running = new HashMap<>();
            for (TaskMeter.Metered task : tasks) {
                if (task.endNanos == 0) {
                    running.put(task.threadId, task);
                }
            }
            Map<Long, ThreadInfo> blocked = owners(waiting.keySet());
            for (TaskMeter.Metered task : waiting.values()) {
                if (blocked.containsKey(task.threadId)) {
                    add(task, blocked, running, now, nanos);
                }
            }
        }
    }

    /** Whether a thread waits for a monitor, or for a lock that knows its owner. */
    private static boolean waitsForLock(Thread thread) {
        switch (thread.getState()) {
            case BLOCKED:
                return true;
            case WAITING:
            case TIMED_WAITING:
                return LockSupport.getBlocker(thread) instanceof AbstractOwnableSynchronizer;
            default:
                return false;
        }
    }

    /**
     * What is known about waiting threads whose lock has an owner, by their ids; also about these
     * owners, if they wait for another thread's monitor.
     */
    private static Map<Long, ThreadInfo> owners(Set<Long> waiting) {
        Map<Long, ThreadInfo> blocked = new HashMap<>();
        Set<Long> asked = new HashSet<>();
        Set<Long> next = new HashSet<>(waiting);
        for (int hop = 0; hop < MOST_HOPS && !next.isEmpty(); hop++) {
            asked.addAll(next);
            long[] ids = next.stream().mapToLong(Long::longValue).toArray();
            next.clear();
            for (ThreadInfo info : THREADS.getThreadInfo(ids, 0)) {
                if (info == null || info.getLockOwnerId() < 0) {
                    continue;
                }
                // A thread in Object.wait() waits for a notification and not for the owner.
                boolean waits =
                        waiting.contains(info.getThreadId())
                                || info.getThreadState() == Thread.State.BLOCKED;
                if (waits) {
                    blocked.put(info.getThreadId(), info);
                    next.add(info.getLockOwnerId());
                }
            }
            next.removeAll(asked);
        }
        return blocked;
    }

    private void add(
            TaskMeter.Metered task,
            Map<Long, ThreadInfo> blocked,
            Map<Long, TaskMeter.Metered> running,
            long now,
            long nanos) {
        ThreadInfo first = blocked.get(task.threadId);
        ThreadInfo last = first;
        int between = 0;
        while (between < MOST_HOPS && blocked.containsKey(last.getLockOwnerId())) {
            last = blocked.get(last.getLockOwnerId());
            between++;
        }
        if (between == MOST_HOPS || last.getLockOwnerId() == task.threadId) {
            // A deadlock has no last holder.
            last = first;
            between = 0;
        }
        TaskMeter.Metered holder = running.get(last.getLockOwnerId());
        List<Object> key =
                Arrays.asList(task.id, last.getLockOwnerId(), holder == null ? -1 : holder.id);
        Wait wait = waits.get(key);
        if (wait == null) {
            wait = new Wait(task, holder, last.getLockOwnerName(), first.getLockInfo());
            wait.startNanos = Math.max(now - nanos, task.startNanos);
            waits.put(key, wait);
        }
        wait.endNanos = now;
        wait.waitedNanos += nanos;
        wait.between = Math.max(wait.between, between);
    }

    private void send() {
        if (waits.isEmpty()) {
            return;
        }
        Json event = new Json(4096).field("type", "lock_waits").array("rows");
        for (Wait wait : new ArrayList<>(waits.values())) {
            wait.write(event.item());
        }
        waits.clear();
        Agent.event(event.endArray());
    }

    /** A task that waits for what one thread holds. */
    private static final class Wait {
        private final TaskMeter.Metered task;

        /** Null for a thread without a task. */
        private final TaskMeter.Metered holder;

        private final String holderThread;
        private final String lock;
        private long startNanos;
        private long endNanos;
        private long waitedNanos;
        private int between;

        Wait(TaskMeter.Metered task, TaskMeter.Metered holder, String holderThread, Object lock) {
            this.task = task;
            this.holder = holder;
            this.holderThread = bounded(holderThread);
            // "CLASS@HASH": the hash is of no use in another run.
            String text = String.valueOf(lock);
            int at = text.lastIndexOf('@');
            this.lock = bounded(at < 0 ? text : text.substring(0, at));
        }

        void write(Json row) {
            row.field("stage", task.stage)
                    .field("attempt", task.attempt)
                    .field("task", task.id)
                    // In the clock of samples; the writer converts it.
                    .field("start_ns", startNanos)
                    .field("end_ns", endNanos)
                    .field("waited_ns", Math.min(waitedNanos, endNanos - startNanos))
                    .field("lock", lock)
                    .field("holder", holder == null ? "thread" : "task");
            if (holder != null) {
                row.field("holder_stage", holder.stage)
                        .field("holder_attempt", holder.attempt)
                        .field("holder_task", holder.id);
            }
            row.field("holder_thread", holderThread).field("between", between).end();
        }

        private static String bounded(String text) {
            return text == null || text.length() <= MOST_CHARACTERS
                    ? text
                    : text.substring(0, MOST_CHARACTERS);
        }
    }
}
