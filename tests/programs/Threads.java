import java.lang.management.ManagementFactory;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Many threads do the work of {@link Hot}. `crowd THREADS ROUNDS`: all begin when standard input ends. `brief THREADS ROUNDS`: at
 * most 16 run at a time. `until THREADS MILLISECONDS`: each runs until it has used this CPU time. The number of rounds, THREADS
 * times ROUNDS, and the exit code 7 are known.
 */
public class Threads {
    static final AtomicLong done = new AtomicLong();
    static volatile double sink;

    static void rounds(long rounds) {
        double x = 1;
        for (long i = 0; i < rounds; i++) {
            x = Hot.sum(x);
            x += Hot.mix(x);
        }
        sink = x;
        done.addAndGet(rounds);
    }

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[1]);
        long amount = Long.parseLong(args[2]);
        boolean together = args[0].equals("crowd");
        var start = new CountDownLatch(together ? 1 : 0);
        var room = new Semaphore(args[0].equals("brief") ? 16 : threads);
        var workers = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            room.acquire();
            workers[i] = new Thread(() -> {
                try {
                    start.await();
                    if (args[0].equals("until")) {
                        var cpu = ManagementFactory.getThreadMXBean();
                        long end = cpu.getCurrentThreadCpuTime() + amount * 1_000_000;
                        while (cpu.getCurrentThreadCpuTime() < end) {
                            rounds(1);
                        }
                    } else {
                        rounds(amount);
                    }
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                } finally {
                    room.release();
                }
            }, "worker-" + i);
            workers[i].start();
        }
        if (together) {
            System.in.readAllBytes();
            start.countDown();
        }
        for (Thread worker : workers) {
            worker.join();
        }
        System.out.println(args[0] + ": " + threads + " threads" + (args[0].equals("until") ? "" : ", " + done + " rounds"));
        System.exit(7);
    }
}
