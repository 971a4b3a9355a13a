package io.unfuse.spark.events;

import io.unfuse.spark.common.Agent;
import io.unfuse.spark.common.Json;

import org.apache.spark.TaskContext;

import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Which Python process works for which task, and its CPU time meanwhile. A process serves one task
 * at a time, so its CPU time between its assignment and the end of the task is the task's. If
 * workers are not reused ({@code spark.python.worker.reuse=false}), a process may have ended by
 * then, and its time is not known here.
 */
public final class PythonWorkers {
    private PythonWorkers() {}

    /** The package of the code that talks to workers. */
    private static final String RUNNERS = "org.apache.spark.api.python.";

    /** That of the operators of SQL that use it. */
    private static final String OPERATORS = "org.apache.spark.sql.execution.python.";

    /** The class whose parts read from a worker and write to it. */
    private static final String RUNNER = RUNNERS + "BasePythonRunner";

    /** Maximum number of frames in an event. */
    private static final int MOST_CALLERS = 32;

    /** The task of this thread. */
    private static final ThreadLocal<Task> CURRENT = new ThreadLocal<>();

    /**
     * All running tasks, by attempt id. A task may get a worker on another thread than its own: the
     * one that writes to the next worker.
     */
    private static final Map<Long, Task> RUNNING = new ConcurrentHashMap<>();

    private static final class Task {
        final TaskContext context;

        /** CPU time, ns, of each process when it was assigned. */
        final Map<Long, Long> before = new ConcurrentHashMap<>();

        /** When the first one was assigned. */
        volatile long startMillis;

        Task(TaskContext context) {
            this.context = context;
        }
    }

    /** Called on the task's thread when a task starts. */
    public static void taskStarted(TaskContext context) {
        Task task = new Task(context);
        CURRENT.set(task);
        RUNNING.put(context.taskAttemptId(), task);
    }

    /** Called with the pair (worker, process) that was assigned to a task. */
    public static void obtained(Object pair) {
        try {
            TaskContext context = TaskContext.get();
            Long pid = pid(((scala.Option<?>) ((scala.Product) pair).productElement(1)));
            Task task = context == null ? null : RUNNING.get(context.taskAttemptId());
            if (task == null || pid == null) {
                return;
            }
            if (task.before.isEmpty()) {
                task.startMillis = System.currentTimeMillis();
            }
            task.before.putIfAbsent(pid, cpuNanos(pid));
            Json event = place("python_begin", context, pid).array("callers");
            for (StackTraceElement frame : callers(new Throwable().getStackTrace())) {
                event.item()
                        .field("class", frame.getClassName())
                        .field("method", frame.getMethodName())
                        .field("file", frame.getFileName())
                        .field("line", frame.getLineNumber())
                        .end();
            }
            Agent.event(event.endArray());
        } catch (Throwable error) {
            Agent.failed("finding a Python worker", error);
        }
    }

    /** Called on the task's thread at the end of the task, when it has no context any more. */
    public static void taskEnded() {
        Task task = CURRENT.get();
        if (task == null) {
            return;
        }
        CURRENT.remove();
        RUNNING.remove(task.context.taskAttemptId());
        try {
            for (Map.Entry<Long, Long> worker : task.before.entrySet()) {
                long nanos = Math.max(0, cpuNanos(worker.getKey()) - worker.getValue());
                Agent.event(
                        place("python", task.context, worker.getKey())
                                .field("start", task.startMillis)
                                .field("end", System.currentTimeMillis())
                                .field("ns", nanos));
            }
        } catch (Throwable error) {
            Agent.failed("reading a Python worker's CPU time", error);
        }
    }

    private static Json place(String type, TaskContext context, long pid) {
        return new Json()
                .field("type", type)
                .field("stage", context.stageId())
                .field("attempt", context.stageAttemptNumber())
                .field("task", context.taskAttemptId())
                .field("pid", pid);
    }

    /**
     * The frames of Spark's code that will talk to the worker, root first: from the operator's to
     * the runner's. Callers further up may serve another worker.
     */
    static List<StackTraceElement> callers(StackTraceElement[] innermostFirst) {
        List<StackTraceElement> callers = new ArrayList<>();
        int wanted = 0;
        for (StackTraceElement frame : innermostFirst) {
            String name = frame.getClassName();
            boolean isRunner = name.startsWith(RUNNERS);
            if (callers.isEmpty() && !isRunner) {
                continue;
            }
            if (callers.size() == MOST_CALLERS || name.startsWith(RUNNER + "$")) {
                break;
            }
            callers.add(0, frame);
            if (isRunner || name.startsWith(OPERATORS)) {
                wanted = callers.size();
            }
        }
        return callers.subList(callers.size() - wanted, callers.size());
    }

    /**
     * The process id: Spark 3.5 returns the number itself, later versions an object with a {@link
     * ProcessHandle}.
     */
    private static Long pid(scala.Option<?> process) throws IllegalAccessException {
        if (process.isEmpty()) {
            return null;
        }
        Object value = process.get();
        if (value instanceof Number) {
            return ((Number) value).longValue();
        }
        if (value instanceof ProcessHandle) {
            return ((ProcessHandle) value).pid();
        }
        for (Field field : value.getClass().getDeclaredFields()) {
            if (ProcessHandle.class.isAssignableFrom(field.getType())) {
                field.setAccessible(true);
                return ((ProcessHandle) field.get(value)).pid();
            }
        }
        return null;
    }

    /** CPU time of all threads of a process, ns; 0 if it has ended. */
    private static long cpuNanos(long pid) {
        long sum = 0;
        Path tasks = Paths.get("/proc", Long.toString(pid), "task");
        try (DirectoryStream<Path> threads = Files.newDirectoryStream(tasks)) {
            for (Path thread : threads) {
                String text = new String(Files.readAllBytes(thread.resolve("schedstat")));
                sum += Long.parseLong(text.substring(0, text.indexOf(' ')));
            }
        } catch (IOException | RuntimeException gone) {
            return sum;
        }
        return sum;
    }
}
