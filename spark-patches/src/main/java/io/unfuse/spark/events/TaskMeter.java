package io.unfuse.spark.events;

import io.unfuse.spark.common.Agent;
import io.unfuse.spark.common.Json;

import org.apache.hadoop.fs.FileSystem;
import org.apache.spark.TaskContext;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.memory.TaskMemoryManager;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;

/**
 * Reports the resources used by running tasks, in spans that end at heartbeats and when tasks start
 * or end.
 *
 * <p>Tasks only read the clock twice. A thread of this class reads their metrics; the start or end
 * of a task makes it read all the others at its next look. It never changes them: shuffle bytes of
 * a running task appear when Spark's own heartbeat has merged them, because merging resets the sums
 * to zero for a moment, in which the task may be sending them to the driver.
 */
public final class TaskMeter implements Runnable {
    /** Time between heartbeats, ms, set by the agent; 0 disables the meter. */
    static final String PROPERTY = "unfuse.heartbeat.millis";

    /** Number of looks in each heartbeat, if they are not too short. */
    private static final int LOOKS = 4;

    private static final long LOOK_NANOS = 100_000_000;

    /** Maximum number of rows in one event. */
    private static final int MOST_ROWS = 500;

    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final ThreadLocal<Metered> CURRENT = new ThreadLocal<>();

    private static volatile TaskMeter running;

    private final Map<Long, Metered> tasks = new ConcurrentHashMap<>();
    private final long heartbeatNanos;
    private final Thread thread = new Thread(this, "unfuse-meter");
    private final LockMeter locks;
    private volatile boolean boundary;
    private volatile boolean stopped;
    private final Heap heap = new Heap();
    private Json event;
    private int rows;

    /** Seconds since the last look for each byte that any thread allocated in them. */
    private double secondsPerByte;

    private long lastLook = System.nanoTime();

    /** Bytes read from local files and from others. */
    private long localBytes;

    private long remoteBytes;

    /**
     * The part of recently read bytes that came over the network, and the bytes that are not
     * attributed to a task yet.
     */
    private double remoteShare;

    private double unclaimedBytes;

    private TaskMeter(long heartbeatMillis) {
        heartbeatNanos = heartbeatMillis * 1_000_000;
        locks = new LockMeter(tasks.values(), heartbeatNanos);
        thread.setDaemon(true);
    }

    /** Starts the meter of this executor, once. */
    public static synchronized void start() {
        long millis = Long.getLong(PROPERTY, 0);
        if (running == null && millis > 0 && THREADS.isThreadCpuTimeSupported()) {
            TaskMeter meter = new TaskMeter(millis);
            meter.thread.start();
            meter.locks.start();
            running = meter;
        }
    }

    /** Reports the remaining data and stops the meter. */
    public static synchronized void stop(int millis) {
        TaskMeter meter = running;
        running = null;
        if (meter != null) {
            meter.stopped = true;
            LockSupport.unpark(meter.thread);
            try {
                meter.locks.stop(millis);
                meter.thread.join(millis);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Called on the task's thread. */
    public static void taskStarted(TaskContext context) {
        TaskMeter meter = running;
        if (meter != null && Agent.metersResources()) {
            Metered task = new Metered(context);
            CURRENT.set(task);
            meter.tasks.put(task.id, task);
            meter.boundary = true;
        }
    }

    /**
     * Called on the task's thread when its metrics are complete and, if it succeeded, on their way
     * to the driver.
     */
    public static void taskEnded(boolean succeeded) {
        TaskMeter meter = running;
        Metered task = meter == null ? null : CURRENT.get();
        if (task != null) {
            CURRENT.remove();
            task.succeeded = succeeded;
            task.endCpuNanos = THREADS.getCurrentThreadCpuTime();
            task.endAllocated = Heap.allocatedByCurrentThread();
            task.endNanos = System.nanoTime();
            meter.boundary = true;
        }
    }

    @Override
    public void run() {
        try {
            long last = System.nanoTime();
            countFiles();
            countAllocation();
            unclaimedBytes = 0;
            while (!stopped) {
                LockSupport.parkNanos(Math.max(LOOK_NANOS, heartbeatNanos / LOOKS));
                long now = System.nanoTime();
                if ((boundary || now - last >= heartbeatNanos) && Agent.metersResources()) {
                    boundary = false;
                    last = now;
                    report();
                }
            }
            report();
        } catch (Throwable error) {
            Agent.failed("reading what tasks use", error);
            running = null;
        }
    }

    /**
     * Spark does not record which file system a task reads, and includes cached blocks; Hadoop
     * counts by scheme, for the whole JVM. HDFS blocks on this machine have a distance of 0.
     */
    @SuppressWarnings("deprecation") // what replaces it does not count bytes of local files
    private void countFiles() {
        long local = 0;
        long remote = 0;
        for (FileSystem.Statistics each : FileSystem.getAllStatistics()) {
            long all = each.getBytesRead();
            long near =
                    "file".equals(each.getScheme())
                            ? all
                            : Math.min(each.getBytesReadByDistance(0), all);
            local += near;
            remote += all - near;
        }
        // Other code may reset them to 0.
        long fetched = Math.max(remote - remoteBytes, 0);
        long all = fetched + Math.max(local - localBytes, 0);
        if (all > 0) {
            remoteShare = (double) fetched / all;
        }
        unclaimedBytes += fetched;
        localBytes = local;
        remoteBytes = remote;
    }

    private void countAllocation() {
        long now = System.nanoTime();
        long bytes = heap.allocatedSinceLastLook();
        secondsPerByte = bytes > 0 ? (now - lastLook) / 1e9 / bytes : 0;
        lastLook = now;
    }

    private void report() {
        countFiles();
        countAllocation();
        // What Spark says that the tasks of each thread read from local files.
        Map<DiskReads, Double> read = new HashMap<>();
        List<Use> uses = new ArrayList<>();
        for (Iterator<Metered> each = tasks.values().iterator(); each.hasNext(); ) {
            Metered task = each.next();
            // Read first: then the work of a task after this is not lost, and the metrics of an
            // ended task are complete.
            boolean ended = task.endNanos != 0;
            Use use = task.use(this, ended);
            if (use != null) {
                uses.add(use);
                read.merge(task.diskReads, use.localBytes, Double::sum);
            }
            if (ended) {
                each.remove();
            }
        }
        // What came from a disk for each byte of it. Pages that are read ahead and evicted before
        // they are used make it more than 1.
        read.replaceAll(
                (thread, bytes) -> {
                    long known = bytes > 0 ? thread.sinceLastLook() : -1;
                    return known < 0 ? 1.0 : known / bytes;
                });
        for (Use use : uses) {
            use.write(this, read.get(use.task.diskReads));
        }
        if (tasks.isEmpty()) {
            // Other threads have read the rest.
            unclaimedBytes = 0;
        }
        send();
    }

    private Json row() {
        if (event == null) {
            event =
                    new Json(4096)
                            .field("type", "intervals")
                            .field("heap_bytes", Runtime.getRuntime().maxMemory())
                            .field("live_bytes", Heap.liveBytes())
                            .array("rows");
        }
        rows++;
        return event.item();
    }

    private void send() {
        if (event != null) {
            Agent.event(event.endArray());
            event = null;
            rows = 0;
        }
    }

    /** A task attempt with the sums reported so far. */
    static final class Metered {
        final long id;
        final int stage;
        final int attempt;
        final Thread thread = Thread.currentThread();
        final long threadId = thread.getId();
        final DiskReads diskReads = DiskReads.ofCurrentThread();
        final long startNanos = System.nanoTime();
        private final TaskMetrics metrics;
        private final TaskMemoryManager memory;

        /** 0 until the task ends; written after the following three. */
        volatile long endNanos;

        long endCpuNanos;
        long endAllocated;
        boolean succeeded;

        private long nanos = startNanos;
        private long cpuNanos = THREADS.getCurrentThreadCpuTime();
        private long allocated = Heap.allocatedByCurrentThread();
        private long inputBytes;
        private long localBlockBytes;
        private long writtenBytes;
        private long writeNanos;
        private long fetchedBytes;
        private long fetchWaitNanos;
        private long heldBytes;
        private boolean looked;

        Metered(TaskContext context) {
            id = context.taskAttemptId();
            stage = context.stageId();
            attempt = context.stageAttemptNumber();
            metrics = context.taskMetrics();
            memory = context.taskMemoryManager();
        }

        /** What it has used since the last call; null if no time has passed. */
        Use use(TaskMeter meter, boolean ended) {
            long now = ended ? endNanos : System.nanoTime();
            if (now <= nanos) {
                return null;
            }
            long cpu = ended ? endCpuNanos : THREADS.getThreadCpuTime(threadId);
            long allocates = ended ? endAllocated : Heap.allocatedBy(threadId);
            if (ended && succeeded) {
                // The last bytes are not merged yet if the reader was not read to its end.
                metrics.mergeShuffleReadMetrics();
            }
            long input = metrics.inputMetrics().bytesRead();
            long localBlocks = metrics.shuffleReadMetrics().localBytesRead();
            long written =
                    metrics.shuffleWriteMetrics().bytesWritten()
                            + metrics.outputMetrics().bytesWritten()
                            + metrics.diskBytesSpilled();
            long writing = metrics.shuffleWriteMetrics().writeTime();
            long fetched = metrics.shuffleReadMetrics().remoteBytesRead();
            long waited = metrics.shuffleReadMetrics().fetchWaitTime() * 1_000_000;
            long held = ended ? 0 : memory.getMemoryConsumptionForThisTask();
            double remote =
                    Math.min(
                            Math.max(input - inputBytes, 0) * meter.remoteShare,
                            meter.unclaimedBytes);
            meter.unclaimedBytes -= remote;

            Use use = new Use(this, nanos, now);
            use.cpuSeconds = (cpu - cpuNanos) / 1e9;
            // Shuffle blocks on this machine come from its disks.
            use.localBytes =
                    Math.max(input - inputBytes, 0)
                            - remote
                            + Math.max(localBlocks - localBlockBytes, 0);
            use.writtenBytes = written - writtenBytes;
            use.writeNanos = writing - writeNanos;
            use.networkBytes = Math.max(fetched - fetchedBytes, 0) + remote;
            use.fetchWaitNanos = waited - fetchWaitNanos;
            // A task too short for a look is assumed to have held half of its peak all the time.
            use.heldBytes =
                    looked || !ended
                            ? (heldBytes + held) / 2.0
                            : metrics.peakExecutionMemory() / 2.0;
            use.allocated = allocates - allocated;

            looked = true;
            nanos = now;
            cpuNanos = Math.max(cpu, cpuNanos);
            allocated = Math.max(allocates, allocated);
            // Sums that are being merged can be lower for a moment.
            inputBytes = Math.max(input, inputBytes);
            localBlockBytes = Math.max(localBlocks, localBlockBytes);
            writtenBytes = Math.max(written, writtenBytes);
            writeNanos = Math.max(writing, writeNanos);
            fetchedBytes = Math.max(fetched, fetchedBytes);
            fetchWaitNanos = Math.max(waited, fetchWaitNanos);
            heldBytes = held;
            return use;
        }
    }

    /** What a task has used in a span of time. */
    private static final class Use {
        final Metered task;
        private final long fromNanos;
        private final long toNanos;
        double cpuSeconds;

        /** What Spark says that it read from files and shuffle blocks of this machine. */
        double localBytes;

        double writtenBytes;
        long writeNanos;
        double networkBytes;
        long fetchWaitNanos;
        double heldBytes;
        double allocated;

        Use(Metered task, long fromNanos, long toNanos) {
            this.task = task;
            this.fromNanos = fromNanos;
            this.toNanos = toNanos;
        }

        /** Writes the rows; so many bytes came from a disk for each local byte. */
        void write(TaskMeter to, double fromDisk) {
            write(to, "cpu", cpuSeconds, 0);
            write(to, "io-read", localBytes * fromDisk, 0);
            write(to, "io-write", writtenBytes, writeNanos);
            write(to, "network", networkBytes, fetchWaitNanos);
            write(to, "execution-memory", heldBytes * (toNanos - fromNanos) / 1e9, 0);
            // The part of what all threads of the JVM allocated, times the seconds in which they
            // did.
            write(to, "allocation", allocated * to.secondsPerByte, 0);
        }

        private void write(TaskMeter to, String kind, double units, long blockedNanos) {
            if (units <= 0 && blockedNanos <= 0) {
                return;
            }
            to.row()
                    .field("stage", task.stage)
                    .field("attempt", task.attempt)
                    .field("task", task.id)
                    .field("kind", kind)
                    // In the clock of samples; the writer converts it.
                    .field("start_ns", fromNanos)
                    .field("end_ns", toNanos)
                    .field("units", Math.max(units, 0))
                    .field("blocked_ns", Math.min(Math.max(blockedNanos, 0), toNanos - fromNanos))
                    .end();
            if (to.rows >= MOST_ROWS) {
                to.send();
            }
        }
    }
}
