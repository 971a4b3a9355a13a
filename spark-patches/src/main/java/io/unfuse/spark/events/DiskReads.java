package io.unfuse.spark.events;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.HashMap;
import java.util.Map;

/**
 * Bytes that threads of this JVM caused to be read from disks, as Linux counts them: what is in the
 * page cache is not among them. Not thread-safe but for {@link #currentThread}.
 */
final class DiskReads {
    private static final String COUNT = "read_bytes: ";
    private static final ThreadLocal<String> CURRENT =
            ThreadLocal.withInitial(DiskReads::numberOfCurrentThread);

    /** The sum of each thread at the last look. */
    private final Map<String, Long> counted = new HashMap<>();

    /** Linux's number of the calling thread; empty if it is not known. */
    static String currentThread() {
        return CURRENT.get();
    }

    private static String numberOfCurrentThread() {
        try {
            // 123/task/456
            Path link = Files.readSymbolicLink(Paths.get("/proc/thread-self"));
            return link.getFileName().toString();
        } catch (IOException | RuntimeException e) {
            return "";
        }
    }

    /** Bytes that a thread has read since the last call, or since its start; -1 if unknown. */
    long sinceLastLook(String thread) {
        long now = thread.isEmpty() ? -1 : read(thread);
        if (now < 0) {
            return -1;
        }
        Long before = counted.put(thread, now);
        return Math.max(now - (before == null ? 0 : before), 0);
    }

    private static long read(String thread) {
        try {
            Path file = Paths.get("/proc/self/task", thread, "io");
            String text = new String(Files.readAllBytes(file), StandardCharsets.US_ASCII);
            int at = text.indexOf("\n" + COUNT);
            int from = at + 1 + COUNT.length();
            int to = at < 0 ? -1 : text.indexOf('\n', from);
            return to < 0 ? -1 : Long.parseLong(text.substring(from, to));
        } catch (IOException | RuntimeException e) {
            // The thread has ended, or the kernel does not count.
            return -1;
        }
    }
}
