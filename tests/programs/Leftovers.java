import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/** Reads the clock on a stack with frame links of calls that have returned. Argument: milliseconds of CPU time. */
public class Leftovers {
    private static final ThreadMXBean CPU = ManagementFactory.getThreadMXBean();
    private static final int READS = 200;
    static long sink;

    /** Leaves frame links on the stack. */
    private static long dig(int depth, long x) {
        return depth == 0 ? x + 1 : dig(depth - 1, x ^ depth) + x;
    }

    /** Leaves frame links at other distances. */
    private static long digWide(int depth, long a, long b, long c) {
        return depth == 0 ? a : digWide(depth - 1, b ^ depth, c, a) + a * b + c;
    }

    private static long read() {
        long time = 0;
        for (int i = 0; i < READS; i++) {
            time += CPU.getCurrentThreadCpuTime();
        }
        return time;
    }

    private static long readAt(int depth, boolean wide) {
        if (depth > 0) {
            return readAt(depth - 1, wide) + 1;
        }
        return (wide ? digWide(60, sink, 3, 5) : dig(60, sink)) + read();
    }

    public static void main(String[] args) {
        long end = CPU.getCurrentThreadCpuTime() + Long.parseLong(args[0]) * 1_000_000L;
        for (int i = 0; CPU.getCurrentThreadCpuTime() < end; i++) {
            sink += readAt(i % 8, i / 8 % 2 == 1);
        }
    }
}
