import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Runs for MILLISECONDS. In turns, it sleeps, waits for a monitor and a lock that a helper holds, reads from a pipe
 * before the helper writes, and computes. Prints the time of each, measured by itself.
 */
public class Waits {
    static final Object monitor = new Object();
    static final ReentrantLock lock = new ReentrantLock();
    static final SynchronousQueue<Runnable> orders = new SynchronousQueue<>();
    static volatile boolean held;
    static volatile long sink;
    static final long[] took = new long[5];

    static void sleeps() throws Exception {
        Thread.sleep(30);
    }

    static void orderMonitor() throws Exception {
        order(() -> {
            synchronized (monitor) {
                held = true;
                LockSupport.parkNanos(20_000_000);
            }
        });
    }

    static void monitor() {
        synchronized (monitor) {
            sink++;
        }
    }

    static void orderLock() throws Exception {
        order(() -> {
            lock.lock();
            held = true;
            LockSupport.parkNanos(20_000_000);
            lock.unlock();
        });
    }

    static void lock() {
        lock.lock();
        lock.unlock();
    }

    static void orderWrite(OutputStream out) throws Exception {
        order(() -> {
            held = true;
            LockSupport.parkNanos(20_000_000);
            try {
                out.write(1);
            } catch (java.io.IOException e) {
                throw new IllegalStateException(e);
            }
        });
    }

    static void computes() {
        long end = System.nanoTime() + 20_000_000, x = 1;
        while (System.nanoTime() < end) {
            for (int i = 0; i < 1000; i++) {
                x = x * 31 + i;
            }
        }
        sink = x;
    }

    /** Passes work to the helper, and returns when the helper has begun it. */
    static void order(Runnable work) throws Exception {
        held = false;
        orders.put(work);
        while (!held) {
            Thread.onSpinWait();
        }
    }

    interface Part {
        void run() throws Exception;
    }

    static void measure(int part, Part work) throws Exception {
        long start = System.nanoTime();
        work.run();
        took[part] += System.nanoTime() - start;
    }

    public static void main(String[] args) throws Exception {
        File fifo = new File(args[1]);
        new ProcessBuilder("mkfifo", fifo.getPath()).start().waitFor();
        var helper = new Thread(() -> {
            try {
                while (true) {
                    orders.take().run();
                }
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }, "helper");
        helper.setDaemon(true);
        helper.start();
        var streams = new Object() {
            OutputStream out;
        };
        var opener = new Thread(() -> {
            try {
                streams.out = new FileOutputStream(fifo);
            } catch (java.io.IOException e) {
                throw new IllegalStateException(e);
            }
        });
        opener.start();
        InputStream in = new FileInputStream(fifo);
        opener.join();
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000;
        while (System.nanoTime() < end) {
            measure(0, Waits::sleeps);
            orderMonitor();
            measure(1, Waits::monitor);
            orderLock();
            measure(2, Waits::lock);
            orderWrite(streams.out);
            measure(3, in::read);
            measure(4, Waits::computes);
        }
        System.out.printf("ms: sleep %d monitor %d lock %d read %d cpu %d%n",
            took[0] / 1_000_000, took[1] / 1_000_000, took[2] / 1_000_000, took[3] / 1_000_000, took[4] / 1_000_000);
    }
}
