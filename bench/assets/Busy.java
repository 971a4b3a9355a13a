import java.util.HashMap;
import java.util.Map;

/** Threads that compute, each the same mixture. Arguments: threads, seconds. */
public class Busy {
    static volatile long sink;

    public static void main(String[] args) throws InterruptedException {
        int count = Integer.parseInt(args[0]);
        long end = System.nanoTime() + Long.parseLong(args[1]) * 1_000_000_000L;
        Thread[] threads = new Thread[count];
        for (int i = 0; i < count; i++) {
            threads[i] = new Thread(() -> work(end), "busy-" + i);
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    static void work(long end) {
        Map<Long, String> map = new HashMap<>();
        for (long x = 1; System.nanoTime() < end; x++) {
            map.put(x % 1000, Long.toString(x));
            sink += hash(x) + map.get(x % 500 + 1 > x ? x : x % 500 + 1).length();
        }
    }

    static long hash(long x) {
        for (int i = 0; i < 20; i++) {
            x = (x ^ x >>> 31) * 0x9e3779b97f4a7c15L;
        }
        return x;
    }
}
