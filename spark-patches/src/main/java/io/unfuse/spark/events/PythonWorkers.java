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
import java.util.HashMap;
import java.util.Map;

/**
 * CPU time of Python processes, by task. A process serves one task at a time, so its CPU time
 * between its assignment and the end of the task is the task's. If workers are not reused ({@code
 * spark.python.worker.reuse=false}), a process may have ended by then, and its time is lost.
 */
public final class PythonWorkers {
    private PythonWorkers() {}

    /** CPU time, ns, of each process when it was assigned to this thread's task. */
    private static final ThreadLocal<Task> CURRENT = new ThreadLocal<>();

    private static final class Task {
        final TaskContext context;
        final long startMillis = System.currentTimeMillis();
        final Map<Long, Long> before = new HashMap<>();

        Task(TaskContext context) {
            this.context = context;
        }
    }

    /** Called with the pair (worker, process) that was assigned to a task. */
    public static void obtained(Object pair) {
        try {
            TaskContext context = TaskContext.get();
            Long pid = pid(((scala.Option<?>) ((scala.Product) pair).productElement(1)));
            if (context == null || pid == null) {
                return;
            }
            Task task = CURRENT.get();
            if (task == null || task.context != context) {
                task = new Task(context);
                CURRENT.set(task);
            }
            task.before.putIfAbsent(pid, cpuNanos(pid));
        } catch (Throwable error) {
            Agent.failed("finding a Python worker", error);
        }
    }

    /** Called on the task's thread at the end of the task. */
    public static void taskEnded() {
        Task task = CURRENT.get();
        if (task == null) {
            return;
        }
        CURRENT.remove();
        try {
            long nanos = 0;
            for (Map.Entry<Long, Long> worker : task.before.entrySet()) {
                nanos += Math.max(0, cpuNanos(worker.getKey()) - worker.getValue());
            }
            Agent.event(
                    new Json()
                            .field("type", "python")
                            .field("stage", task.context.stageId())
                            .field("attempt", task.context.stageAttemptNumber())
                            .field("task", task.context.taskAttemptId())
                            .field("start", task.startMillis)
                            .field("end", System.currentTimeMillis())
                            .field("ns", nanos));
        } catch (Throwable error) {
            Agent.failed("reading a Python worker's CPU time", error);
        }
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
