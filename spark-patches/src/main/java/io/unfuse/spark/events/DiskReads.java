package io.unfuse.spark.events;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;

/**
 * Bytes that a thread of this JVM caused to be read from disks, as Linux counts them: what is in
 * the page cache is not among them. One thread at a time may look.
 */
final class DiskReads {
    private static final String COUNT = "read_bytes: ";
    private static final ThreadLocal<DiskReads> CURRENT =
            ThreadLocal.withInitial(() -> new DiskReads(fileOfCurrentThread()));

    /** The file with the thread's counters; null if it is not known. */
    private final Path file;

    /** The sum at the last look. */
    private long counted;

    private DiskReads(Path file) {
        this.file = file;
    }

    /** Those of the calling thread. */
    static DiskReads ofCurrentThread() {
        return CURRENT.get();
    }

    private static Path fileOfCurrentThread() {
        try {
            // 123/task/456
            Path link = Files.readSymbolicLink(Paths.get("/proc/thread-self"));
            return Paths.get("/proc/self/task", link.getFileName().toString(), "io");
        } catch (IOException | RuntimeException e) {
            return null;
        }
    }

    /** Bytes that the thread has read since the last call, or since its start; -1 if unknown. */
    long sinceLastLook() {
        long now = file == null ? -1 : read();
        if (now < 0) {
            return -1;
        }
        long read = Math.max(now - counted, 0);
        counted = now;
        return read;
    }

    private long read() {
        try {
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
