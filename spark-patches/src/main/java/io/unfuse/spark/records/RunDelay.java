package io.unfuse.spark.records;

import java.io.Closeable;
import java.io.IOException;
import java.io.RandomAccessFile;

/** The time for which its creator's thread was runnable without a CPU, from the kernel. */
final class RunDelay implements Closeable {
    private final byte[] text = new byte[96];
    private RandomAccessFile file;
    private long last;

    RunDelay() {
        try {
            file = new RandomAccessFile("/proc/thread-self/schedstat", "r");
        } catch (IOException e) {
            // The kernel does not count it.
            file = null;
        }
    }

    /** Run delay since the thread began, ns; 0 if unknown. */
    long nanos() {
        try {
            if (file == null) {
                return last;
            }
            file.seek(0);
            int length = file.read(text);
            // Time on a CPU, time waiting for one, number of runs.
            int at = 0;
            while (at < length && text[at] != ' ') {
                at++;
            }
            long nanos = 0;
            for (at++; at < length && text[at] >= '0' && text[at] <= '9'; at++) {
                nanos = 10 * nanos + text[at] - '0';
            }
            last = nanos;
        } catch (IOException e) {
            // Keep the last value.
        }
        return last;
    }

    @Override
    public void close() throws IOException {
        if (file != null) {
            file.close();
        }
    }
}
